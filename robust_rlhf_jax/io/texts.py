"""Texts and messages in the shapes that preference sets have, as prompt, chosen and rejected."""

import dataclasses
import json

from .bad_cells import BadCell, shown

# Where dialogues in one string turn to the assistant.
TURN = "\n\nAssistant:"


@dataclasses.dataclass(frozen=True)
class Texts:
    """`prompt`, `chosen`, `rejected`: a text for each pair; prompts may be empty."""

    prompt: list[str]
    chosen: list[str]
    rejected: list[str]

    def take(self, rows) -> "Texts":
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
        given = None if prompts is None else prompts[row]
        sides = {names[1]: first, names[2]: second}
        sides |= {} if names[0] is None or given is None else {names[0]: given}
        wrong = [BadCell(row, name, why) for name, cell in sides.items() if (why := _wrong(cell))]
        bad += wrong
        rows.append(("", "", "") if wrong else _split(given, first, second))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    texts = Texts(*columns)
    bad += [
        BadCell(row, name, "holds no text")
        for name, column in zip(names[1:], (texts.chosen, texts.rejected), strict=True)
        for row, text in enumerate(column)
        if not text.strip() and row not in {cell.row for cell in bad}
    ]
    return texts, bad


def _wrong(cell) -> str:
    """Why a cell is neither a text nor a list of messages, or ""."""
    if cell is None:
        return "is missing"
    if isinstance(cell, str):
        return ""
    if not isinstance(cell, list) or not cell:
        return f"holds {shown(cell)}, neither a text nor messages"
    broken = [m for m in cell if not isinstance(m, dict) or "content" not in m or "role" not in m]
    return f"holds a message without role and content ({shown(broken[0])})" if broken else ""


def _split(prompt, chosen, rejected) -> tuple[str, str, str]:
    if isinstance(chosen, list) and isinstance(rejected, list):
        shared = _shared_messages(chosen, rejected)
        before = [] if prompt is not None and not shared else chosen[:shared]
        said = plain_text(prompt) if prompt is not None else plain_text(before)
        return (
            said,
            plain_text(chosen[shared:] or chosen[-1:]),
            plain_text(rejected[shared:] or rejected[-1:]),
        )
    first, second = plain_text(chosen), plain_text(rejected)
    if prompt is None:
        return _shared_turns(first, second)
    said = plain_text(prompt)
    if said and first.startswith(said) and second.startswith(said):
        first, second = (text[len(said) :] if len(text) > len(said) else text for text in (first, second))
    return said, first, second


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


def plain_text(cell) -> str:
    """A text as it is; messages as their contents, a blank line between."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    return "\n\n".join(_content(message) for message in cell)


def _content(message: dict) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # parts, of which some are texts
        return "\n".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return json.dumps(message.get("tool_calls") or "", ensure_ascii=False).strip('"')
