"""Texts and messages in the shapes that preference sets have, as prompt, chosen and rejected."""

import dataclasses
import json
import re
from typing import Any

from .bad_cells import BadCell, shown
from .schemas.base import structured

# Where dialogues in one string turn to the assistant.
TURN = "\n\nAssistant:"
# What databases write where a text is missing.
NULL = "\\N"
# What a message says something by.
CONTENT = {"content", "tool_calls", "function_call"}
# Keys of messages, each as another library has them.
MESSAGES = ({"role", "content"}, {"from", "value"}, {"role", "parts"})
# Names of files with pictures, sounds or films.
FILE = re.compile(
    r"[^\n]{1,500}\.(?:png|jpe?g|webp|gif|bmp|tiff?|svg|heic|mp3|wav|flac|ogg|m4a|mp4|webm|mov|avi|mkv)(?:[?#]\S*)?",
    re.I,
)


@dataclasses.dataclass(frozen=True)
class Texts:
    """`prompt`, `chosen`, `rejected`: a text for each pair; prompts may be empty.

    **Example:**

    >>> from robust_rlhf_jax.io import Texts
    >>> texts = Texts(prompt=["Hi", "Bye"], chosen=["Hello!", "So long"], rejected=["What?", "No"])
    >>> texts.take([1]).chosen
    ['So long']
    """

    prompt: list[str]
    chosen: list[str]
    rejected: list[str]

    def take(self, rows: Any) -> "Texts":
        return Texts(*([column[i] for i in rows] for column in (self.prompt, self.chosen, self.rejected)))


def read_texts(
    prompts: list | None, chosen: list, rejected: list, names: tuple[str | None, str, str]
) -> tuple[Texts, list[BadCell]]:
    """Texts of columns that hold strings or lists of messages {role, content}, with or without the prompt inside.

    A prompt that both sides begin with is taken off them: the messages they share, what stands before the last shared
    "Assistant:", or the text of the prompt's own column.

    **Returns:** texts, empty where a cell is bad, and the bad cells.
    """
    rows, bad = [], []
    for row, (first, second) in enumerate(zip(chosen, rejected, strict=True)):
        given, first, second = (
            None if cell == NULL else messages_of(cell)
            for cell in (None if prompts is None else prompts[row], first, second)
        )
        sides = {names[1]: first, names[2]: second}
        sides |= {} if names[0] is None or given is None else {names[0]: given}
        wrong = [BadCell(row, name, why) for name, cell in sides.items() if (why := why_no_text(cell))]
        bad += wrong
        rows.append(("", "", "") if wrong else _split(given, first, second))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    texts = Texts(*columns)
    known = {cell.row for cell in bad}
    bad += [
        BadCell(row, name, "holds no text")
        for name, column in zip(names[1:], (texts.chosen, texts.rejected), strict=True)
        for row, text in enumerate(column)
        if not text.strip() and row not in known
    ]
    return texts, bad


def check_no_files(texts: Texts, path: str) -> None:
    """**Raises:** ValueError where all sides are names of pictures and the like, which say nothing of their content."""
    sides = [text.strip() for column in (texts.chosen, texts.rejected) for text in column if text.strip()]
    if sides and all(FILE.fullmatch(text) for text in sides):
        raise ValueError(
            f"{path}: the sides are names of files, such as {shown(sides[0])}, of which a text's features say "
            "nothing: give numbers that describe the files, such as embeddings by --embeddings."
        )


def messages_of(cell: Any):
    """A cell as a text or a list of {role, content}, whatever it is written as: one message, `from` and `value`,
    `parts`, JSON.

    A text that is JSON of anything but messages stays a text.
    """
    if isinstance(cell, str):
        found = structured(cell) if '"role"' in cell or "'role'" in cell or '"from"' in cell else cell
        return messages_of(found) if found is not cell and _are_messages(found) else cell
    if isinstance(cell, dict):
        cell = cell["messages"] if isinstance(cell.get("messages"), list) else [cell]
    if not isinstance(cell, list):
        return cell
    return [_message(entry) for entry in cell]


def _are_messages(found: Any) -> bool:
    found = found if isinstance(found, list) else [found]
    return bool(found) and all(
        isinstance(m, dict) and any(keys <= m.keys() for keys in MESSAGES) for m in found
    )


def _message(entry: Any):
    roles = {"human": "user", "gpt": "assistant", "model": "assistant"}
    if isinstance(entry, dict) and "parts" in entry and not CONTENT & entry.keys():  # Gemini's
        role = entry.get("role", "user")
        return {"role": roles.get(role, role), "content": entry["parts"]}
    if isinstance(entry, dict) and not {"role", "from"} & entry.keys():  # an answer with its model, its score
        said = next(
            (entry[key] for key in ("content", "text", "value") if isinstance(entry.get(key), str)), None
        )
        return entry if said is None else {"role": "assistant", "content": said}
    if not isinstance(entry, dict) or "role" in entry:
        return entry
    said = str(entry["from"])
    more = {k: v for k, v in entry.items() if k not in ("from", "value")}
    return {"role": roles.get(said, said), "content": entry.get("value"), **more}


def why_no_text(cell: Any) -> str:
    """Why a cell is neither a text nor a list of messages, or ""."""
    if cell is None:
        return "is missing"
    if isinstance(cell, str):
        return ""
    if not isinstance(cell, list) or not cell:
        return f"holds {shown(cell)}, neither a text nor messages"
    if all(isinstance(m, str) for m in cell):
        return ""
    broken = [m for m in cell if not isinstance(m, dict) or "role" not in m or not (CONTENT & m.keys())]
    return f"holds a message without role and content ({shown(broken[0])})" if broken else ""


def _split(prompt: Any, chosen: Any, rejected: Any) -> tuple[str, str, str]:
    if isinstance(chosen, list) and isinstance(rejected, list):
        shared = _shared_messages(chosen, rejected)
        before = chosen[:shared]
        said = plain_text(before) if prompt is None or _begins(before, prompt) else plain_text(prompt)
        return (
            said,
            plain_text(chosen[shared:] or chosen[-1:]),
            plain_text(rejected[shared:] or rejected[-1:]),
        )
    first, second = plain_text(_after(prompt, chosen)), plain_text(_after(prompt, rejected))
    if prompt is None:
        return _shared_turns(first, second)
    said = plain_text(prompt)
    if said and first.startswith(said) and second.startswith(said):
        first, second = (text[len(said) :] if len(text) > len(said) else text for text in (first, second))
    return said, first, second


def _after(prompt: Any, side: Any) -> Any:
    """The last message of a dialogue, where the prompt is all that stands before it; anything else as it is."""
    if prompt is None or not isinstance(side, list) or len(side) < 2:
        return side
    return side[-1:] if plain_text(side[:-1]).strip() == plain_text(prompt).strip() else side


def _begins(before: list, prompt: Any) -> bool:
    """Whether the shared messages hold the prompt: then they are the whole of it."""
    said = plain_text(prompt).strip()
    return bool(before) and bool(said) and said in plain_text(before)


def _shared_messages(chosen: list, rejected: list) -> int:
    """How many messages both begin with; the answer, which is the last, is never among them."""
    most = min(len(chosen), len(rejected)) - 1
    return next((i for i in range(most) if chosen[i] != rejected[i]), max(most, 0))


def _shared_turns(first: str, second: str) -> tuple[str, str, str]:
    end = first.rfind(TURN)
    while end >= 0 and first[: end + len(TURN)] != second[: end + len(TURN)]:
        end = first.rfind(TURN, 0, end)
    if end < 0:
        return "", first, second
    end += len(TURN)
    return first[:end], first[end:], second[end:]


def plain_text(cell: Any) -> str:
    """A text as it is; messages as their contents, a blank line between."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    return "\n\n".join(message if isinstance(message, str) else _content(message) for message in cell)


def _content(message: dict) -> str:
    """The texts of a message, and the calls of tools that it makes."""
    content = message.get("content")
    if isinstance(content, list):  # parts, of which some are texts
        parts = (
            part if isinstance(part, str) else part.get("text")
            for part in content
            if isinstance(part, str | dict)
        )
        content = "\n".join(part for part in parts if part)
    calls = message.get("tool_calls") or message.get("function_call")
    said = [content] if isinstance(content, str) and content else []
    said += [json.dumps(calls, ensure_ascii=False, sort_keys=True, default=str)] if calls else []
    return "\n".join(said)
