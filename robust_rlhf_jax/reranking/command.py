"""The choice among answers as a command: two sentences, and a file."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from robust_rlhf_jax.algorithms import Choice, fit_reranker
from robust_rlhf_jax.io import Columns, Pairs, Table, load_pairs, read_table
from robust_rlhf_jax.io.schemas.base import structured
from robust_rlhf_jax.io.texts import messages_of, plain_text, why_no_text
from robust_rlhf_jax.outputs import with_nulls
from robust_rlhf_jax.rewards.front_door import reward_model
from robust_rlhf_jax.terminal import marked
from robust_rlhf_jax.unfinished import check_file, write_whole

COLUMNS = ("prompt", "responses")


class Answers(NamedTuple):
    """`prompts` of M sets; `responses`: the texts of each."""

    prompts: list[str]
    responses: list[list[str]]


def best_of_n_command(
    candidates: Path,
    pairs: Path,
    out: Path,
    columns: Columns | None = None,
    epsilon: float | None = None,
    temperature: float = 0.0,
    featuriser: str = "hashed",
    seed: int = 0,
) -> Choice:
    """Choose one of the answers to each prompt, print what was found, and write the chosen answers to `out`.

    **Raises:** ValueError as `read_answers`, `load_pairs`, `fit_reranker` and `check_file`, or for pairs without texts;
    OSError if `out` cannot be written.
    """
    from rich.console import Console

    check_file("--out", out, (candidates, pairs))
    if not temperature >= 0 or seed < 0:
        raise ValueError(f"--temperature {temperature} --seed {seed}: give numbers from 0.")
    console, table = Console(), read_table(candidates)
    answers = answers_of(table)
    data = load_pairs(pairs, columns=columns, features="texts", featuriser=featuriser).decided()
    reranker = fit_reranker(data, epsilon)
    sets, reference = features_of(answers, data)
    choice = reranker.choose(sets, reference=reference, temperature=temperature)
    index = drawn(np.asarray(choice.probability), temperature, seed)
    write_whole(out, json_lines(beside(further_cells(table), rows(answers, choice, index))))
    others = (
        f"{behind(choice.promised, reference, index):,} are not the answers that the reward alone likes best"
    )
    console.print(marked(reward_model(reranker.reward).message), highlight=False)
    noun = "answer" if len(index) == 1 else "answers"
    console.print(
        f"{len(index):,} {noun} chosen, {int(np.sum(np.asarray(choice.pessimistic))):,} of them for what is "
        f"guaranteed; {others}.",
        highlight=False,
    )
    console.print(marked(f"Wrote {out}"), highlight=False)
    return choice


def behind(
    promised: Float[ArrayLike, "M n"], reference: Float[np.ndarray, "M n"], index: Int[np.ndarray, " M"]
) -> int:
    """The number of sets in which another answer promises more, beyond rounding, than the one at `index`."""
    there = np.where(np.isfinite(reference), promised, -np.inf)
    chosen = there[np.arange(len(index)), index]
    return int(np.sum(~np.isclose(chosen, there.max(axis=1), rtol=1e-5, atol=1e-6)))


def read_answers(path: Path) -> Answers:
    """The prompts and responses of a file; each is a text or messages, and a cell of CSV holds its list as JSON.

    **Raises:** ValueError for a file without these columns or without rows, or a row without a list of responses.
    """
    return answers_of(read_table(path))


def answers_of(table: Table) -> Answers:
    """What `read_answers` gives, from a table that was read."""
    path = table.path
    missing = [name for name in COLUMNS if name not in table.names]
    if missing:
        raise ValueError(
            f"{path} has no column {' and '.join(missing)}: give a JSON or Parquet file with prompt and responses, a "
            "list of texts."
        )
    prompts = [
        "" if cell is None else _text(cell, f"{path}: row {row}, column prompt")
        for row, cell in enumerate(table.cells("prompt"), 1)
    ]
    if not prompts:
        raise ValueError(f"{path} has no rows: give prompt and responses, a list of texts.")
    responses = [structured(cell) for cell in table.cells("responses")]
    for row, cell in enumerate(responses, 1):
        if not isinstance(cell, list) or not cell:
            raise ValueError(f"{path}: row {row}, column responses is no list of texts.")
    return Answers(
        prompts,
        [
            [
                _text(text, f"{path}: row {row}, column responses: answer {i}")
                for i, text in enumerate(cell, 1)
            ]
            for row, cell in enumerate(responses, 1)
        ],
    )


def _text(cell: Any, place: str) -> str:
    """The text of a cell that holds one, or messages.

    **Raises:** ValueError for another cell.
    """
    cell = messages_of(cell)
    if why := why_no_text(cell):
        raise ValueError(f"{place} {why}.")
    return plain_text(cell)


def features_of(answers: Answers, data: Pairs):
    """(features [M, n, k], log-weights [M, n]) for the largest number n of answers; the others are made up by some that
    have no likelihood.
    """
    made, counts = data.featuriser, [len(texts) for texts in answers.responses]
    assert made is not None
    prompts = [prompt for prompt, count in zip(answers.prompts, counts, strict=True) for _ in range(count)]
    there = np.arange(max(counts)) < np.array(counts)[:, None]
    sets = np.zeros((*there.shape, len(data.names)), np.float32)
    sets[there] = made.transform(prompts, [text for texts in answers.responses for text in texts])
    return sets, np.where(there, 0.0, -np.inf)


def further_cells(table: Table) -> list[dict[str, Any]]:
    """What the file says of each prompt beside the prompt and its responses, such as its id."""
    names = [name for name in table.names if name not in COLUMNS]
    columns = [table.cells(name) for name in names]
    return [
        {name: column[row] for name, column in zip(names, columns, strict=True)}
        for row in range(table.n_rows)
    ]


def beside(cells: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`found` and then the file's cells, none of them replaced: of a name that both have, ours is `best_<name>`."""

    def own(name: str, mine: dict[str, Any]) -> str:
        return own(f"best_{name}", mine) if name in mine else name

    return [
        {own(name, mine): value for name, value in row.items()} | mine
        for mine, row in zip(cells, found, strict=True)
    ]


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    """A line for each of `rows`; lone surrogates, the halves of characters cut in two, are escaped. What JSON lacks,
    such as a date, becomes its text, and NaN null.
    """
    lines = "".join(f"{json.dumps(with_nulls(row), ensure_ascii=False, default=str)}\n" for row in rows)
    return lines.encode("utf-8", errors="backslashreplace")


def drawn(probability: np.ndarray, temperature: float, seed: int) -> np.ndarray:
    """The likeliest of each set, or one drawn from it where there is a temperature."""
    if not temperature:
        return probability.argmax(axis=1)
    logs = np.log(probability, out=np.full(probability.shape, -np.inf), where=probability > 0)
    return (logs + np.random.default_rng(seed).gumbel(size=probability.shape)).argmax(axis=1)


def rows(answers: Answers, choice: Choice, index: np.ndarray) -> list[dict[str, Any]]:
    """What `out` says of each prompt."""
    gains = {name: np.asarray(getattr(choice, name), float) for name in ("promised", "guaranteed")}
    return [
        {"prompt": prompt, "response": texts[best], "index": int(best)}
        | {name: round(float(gain[i, best]), 4) for name, gain in gains.items()}
        | {"pessimistic": bool(choice.pessimistic[i])}
        for i, (prompt, texts, best) in enumerate(zip(answers.prompts, answers.responses, index, strict=True))
    ]
