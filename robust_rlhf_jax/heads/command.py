"""The fit of a source as a command: passes on a bar, one sentence, and files."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robust_rlhf_jax.io import Featuriser
from robust_rlhf_jax.io.reward_head import RewardHead
from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.rewards import RewardModel, Streaming, fit_reward
from robust_rlhf_jax.rewards.model import kept
from robust_rlhf_jax.rewards.streamed.by_passes import LENGTHS
from robust_rlhf_jax.rewards.streamed.engine import Engine
from robust_rlhf_jax.sources import PairSource, open_pairs
from robust_rlhf_jax.sources.embedding import FEATURES
from robust_rlhf_jax.terminal import counted, marked

from .copies import Copies
from .progress import shown_passes

FILES = (
    "reward_model.npz",
    "reward_head.safetensors",
    "weights.npy",
    "suspicion.npy",
    "keep.npy",
    "fit.json",
)
# Names of features, and the featuriser of texts.
Features = tuple[tuple[str, ...], Featuriser | None]


def fit_command(
    path: Path,
    epsilon: float | None = None,
    memory: str | None = None,
    checkpoint: Path | None = None,
    out: Path = Path("fit"),
    quiet: bool = False,
    copies: Copies | None = None,
    engine: Engine | None = None,
) -> RewardModel:
    """Fit a reward to the pairs at `path`, print what was found, and write `FILES` to `out`, and `copies`.

    **Raises:** as `open_pairs` and `fit_reward`; ValueError if `out` or a copy cannot be written, or lies where the
    pairs are; KeyboardInterrupt that says how to go on where there is a state of the fit.
    """
    from rich.console import Console

    console, source, copies = Console(), open_pairs(path), copies or Copies()
    check_apart(path, "--out", out)
    check_apart(path, "--checkpoint", checkpoint)
    copies.check(source)
    # Here, so that what is wrong with them is not found after hours of a fit.
    features = _features(path, source)
    with whole_folder(out, FILES) as folder, _saying_how_to_go_on(checkpoint):
        begun = time.monotonic()
        with shown_passes(quiet) as tell:
            streaming = Streaming(memory=memory, checkpoint=checkpoint, tell=tell, engine=engine)
            model = fit_reward(source, epsilon, streaming=streaming)
            said = model.described(features[0])
            _write(folder, source, features, model, {"source": str(path), "epsilon": epsilon, "said": said})
            copies.write(source, model, tell)
    seconds = time.monotonic() - begun
    console.print(
        marked(
            f"{counted(source.n_pairs, 'pair')} of {counted(source.n_features, 'feature')}, in {seconds:.1f} s."
        ),
        highlight=False,
    )
    console.print(marked(said), highlight=False)
    out_of = source.n_pairs - int(kept(model).sum())
    if out_of != round(source.n_pairs * float(model.epsilon)):
        console.print(f"{out_of:,} have a weight below ½: these are not kept.", highlight=False)
    console.print(f"Wrote {', '.join(FILES)} in {marked(out)}", highlight=False)
    if copies.paths:
        console.print(marked(f"Wrote {' and '.join(map(str, copies.paths))}"), highlight=False)
    return model


@contextlib.contextmanager
def _saying_how_to_go_on(checkpoint: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None or not (checkpoint / f"{LENGTHS}.npz").exists():
            raise
        raise KeyboardInterrupt(
            f"stopped: the same command goes on after the last pass that is kept in {checkpoint}."
        ) from None


def check_apart(path: Path, option: str, folder: Path | None) -> None:
    """**Raises:** ValueError where files would come among those of the pairs, which could not be read then."""
    if folder is not None and path.is_dir() and folder.resolve() == path.resolve():
        raise ValueError(f"{option} {folder} is the folder of the pairs: give another one.")


def _write(folder: Path, source: PairSource, features: Features, model: RewardModel, facts: dict) -> None:
    keep = kept(model)
    facts |= {"pairs": source.n_pairs, "features": source.n_features, "share_left_out": float(model.epsilon)}
    facts |= {"interval": [float(end) for end in model.interval], "kept": int(keep.sum())}
    facts |= {"fingerprint": source.fingerprint()}
    model.save(folder / FILES[0])
    RewardHead(features[0], np.asarray(model.theta), features[1], facts).save(folder / FILES[1])
    arrays = {"weights": np.asarray(model.weights), "suspicion": np.asarray(model.suspicion), "keep": keep}
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    write_json(folder / FILES[-1], facts | environment())


def _features(path: Path, source: PairSource) -> Features:
    """Names of the features, and what made them of texts, where `embed` left it beside the shards."""
    if (path / FEATURES).is_file():
        made = RewardHead.load(path / FEATURES)
        if len(made.names) == source.n_features:
            return made.names, made.featuriser
    return tuple(f"f{number}" for number in range(source.n_features)), None
