"""Winners by their names: models' names in the place of words for a side, and words that are both."""

from collections.abc import Iterator

from robust_rlhf_jax.io.bad_cells import shown
from robust_rlhf_jax.io.labels import is_missing, word, word_rule
from robust_rlhf_jax.io.unnamed_raters import name_of


def read_names(
    cells: list,
    column: str,
    sides: tuple[str, str],
    models: list[list[str | None]],
    first_is: str | None = None,
    tie_is: str | None = None,
) -> list:
    """The winners with the name of the side where they have the name of one of the row's two `models`.

    `first_is` says of labels that they name sides, not models, unless it is the column of the first side.

    **Raises:** ValueError, which names the flag that helps, for a word that says one thing as a side or a tie and
    another as the name of a model, unless another winner can only be a name.

    **Example:**

    >>> from robust_rlhf_jax.leaderboard.winners import read_names
    >>> read_names(["gpt", "tie", "B"], "winner", ("model_a", "model_b"), [["gpt", "x", "x"], ["x", "gpt", "gpt"]])
    ['model_a', 'tie', 'B']
    """
    if first_is is not None and word(first_is) != word(sides[0]):
        return cells
    named = dict(_named(cells, sides, models))
    if first_is is None:
        _check_one_reading(cells, column, sides, named, tie_is)
    return [named.get(row, cell) for row, cell in enumerate(cells)]


def _named(cells: list, sides: tuple[str, str], models: list[list[str | None]]) -> Iterator[tuple[int, str]]:
    for row, (cell, a, b) in enumerate(zip(cells, *models, strict=True)):
        if cell is not None and a != b and (name := name_of(cell)) in (a, b):
            yield row, sides[0] if name == a else sides[1]


def _check_one_reading(
    cells: list, column: str, sides: tuple[str, str], named: dict[int, str], tie_is: str | None
) -> None:
    said = word_rule(sides, tie_is).value
    as_side = {row: None if is_missing(cells[row]) else said(cells[row]) for row in named}
    if any(side is None for side in as_side.values()):
        return  # a name that is no word for a side: the column holds names
    ways = {sides[0]: 1, sides[1]: -1}
    torn = next((row for row, side in as_side.items() if (side or 0) * ways[named[row]] <= 0), None)
    if torn is None:
        return
    # The name of the first side's column says of `first_is` that labels are names.
    firsts = [
        cell
        for cell in cells
        if not is_missing(cell) and (said(cell) or 0) > 0 and word(cell) != word(sides[0])
    ]
    by_side = f"give --first-is {firsts[0]}" if firsts else "write it in other words"
    raise ValueError(
        f"column {column} holds {shown(cells[torn])} in row {torn + 1}, which as a word for a side or a tie and as the "
        f"name of a model says two things: {by_side} if it is a word, or give --first-is {sides[0]} if it is a name."
    )
