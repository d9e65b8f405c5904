"""Which split of several is meant."""

from pathlib import Path


def one_split(path: Path, names: list[str], asked: str | None) -> str:
    """The split asked for, or the only one.

    **Raises:** ValueError that names the splits.
    """
    if not names:
        raise ValueError(f"{path} holds no files that are called after splits: leave --split out.")
    listed = ", ".join(names)
    if asked is not None:
        if asked not in names:
            raise ValueError(f"{path} has no split {asked}: it has {listed}.")
        return asked
    if len(names) > 1:
        raise ValueError(
            f"{path} holds the splits {listed}: choose one by --split {names[-1] if 'train' not in names else 'train'}."
        )
    return names[0]
