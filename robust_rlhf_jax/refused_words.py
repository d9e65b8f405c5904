"""What is said of words of the command that it does not take: one sentence instead of the parser's box."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Sequence

# What a value may be, by what the parser calls it.
KINDS = {"FLOAT": "a number such as 0.05", "INT": "a whole number", "PATH": "a path"}
OF_A_FLAG = re.compile(r"Error parsing (?P<flag>[^\s:]+): ")
UNKNOWN = re.compile(r"Unrecognized (?:or misplaced )?options: ?(?P<words>.+)$")
OTHER_CHOICE = re.compile(
    r"invalid choice '(?P<value>.*)' for argument '(?P<flag>.+?)'. Expected one of \((?P<known>.*)\)\."
)
# The first line of what the box proposes, and of what it says of a flag.
FLAG = re.compile(r"--[a-z][\w-]*")
# A word of the command that is one of several, as the box of a missing one calls it.
CHOICES = re.compile(r"\{([\w,-]+)\}")


@contextlib.contextmanager
def one_sentence(words: Sequence[str]) -> Iterator[None]:
    """While the block runs, a parser's refusal of `words` ends in a ValueError with one sentence instead of its box."""
    written = io.StringIO()
    said = None
    try:
        with contextlib.redirect_stderr(written):
            yield
    except SystemExit as end:
        said = sentence(written.getvalue(), words) if end.code == 2 else None
        if said is None:
            raise
        raise ValueError(said) from None
    finally:
        if said is None and sys.stderr is not None:
            sys.stderr.write(written.getvalue())


def sentence(box: str, words: Sequence[str]) -> str | None:
    """The refusal in a box, or None if there is no box."""
    parts = _parts(box)
    if not parts:
        return None
    said, more = " ".join(parts[0]), parts[1] if len(parts) > 1 else []
    command = f"robust-rlhf {words[0]}" if words and re.fullmatch("[a-z][a-z-]*", words[0]) else "robust-rlhf"
    for pattern, sentence_of in ((OF_A_FLAG, _of_a_flag), (UNKNOWN, _unknown), (OTHER_CHOICE, _other_choice)):
        match = pattern.search(said)
        if match:
            return sentence_of(match, more, words, command)
    missing = [line for line in parts[0][1:] if re.match(r"[A-Z]+$|--", line)]
    missing += [_listed(match[1]) for line in parts[0][1:] if (match := CHOICES.match(line))]
    if said.startswith("Missing from ") and missing:
        return f"{command} needs {' and '.join(missing)}: see {command} --help."
    return f"{said.rstrip('.')}: see {command} --help."


def _parts(box: str) -> list[list[str]]:
    """The lines between the rules of a box; where it is drawn in ASCII, its title stands above the first rule."""
    drawn = "│" in box
    lines = (line.strip(" │") for line in box.splitlines() if line.startswith("│" if drawn else " "))
    parts: list[list[str]] = [[]]
    for line in lines:
        if line and set(line) <= {"─", "-"}:
            parts.append([])
        else:
            parts[-1].append(line)
    parts = [[line for line in part if line] for part in parts]
    return [part for part in parts[not drawn :] if part]


def _of_a_flag(match: re.Match, more: list[str], words: Sequence[str], command: str) -> str:
    flag, given = match["flag"], _after(match["flag"], words)
    called = next((line for line in more if line.startswith(flag)), "")
    kind = next((kind for name, kind in KINDS.items() if name in called), None)
    wanted = "what its help says" if kind is None else f"{kind}, or several" if "..." in called else kind
    return f"{' '.join([flag, *given])}: give {wanted} ({command} --help)."


def _unknown(match: re.Match, more: list[str], words: Sequence[str], command: str) -> str:
    unknown = match["words"].split(", ")
    if unknown[0] == words[0]:
        known = " ".join(more).partition("Available subcommands: ")[2]
        return f"there is no command {words[0]}: choose {_listed(known)} (robust-rlhf --help)."
    if not unknown[0].startswith("-"):
        return f"{' '.join(unknown)} is more than {command} takes: see {command} --help."
    nearest = next((flag[0] for line in more if (flag := FLAG.match(line))), None)
    meant = "" if nearest is None else f"did you mean {nearest}? "
    return f"{command} has no {unknown[0]}: {meant}See {command} --help.".replace(": See", ": see")


def _other_choice(match: re.Match, more: list[str], words: Sequence[str], command: str) -> str:
    flag = f"{match['flag']} " if match["flag"].startswith("-") else ""
    return f"{flag}{match['value']}: choose {_listed(match['known'])} ({command} --help)."


def _listed(known: str) -> str:
    """ "`a, b or c` of names with commas between."""
    names = [stripped for name in known.split(",") if (stripped := name.strip(" '"))]
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names) or "another"


def _after(flag: str, words: Sequence[str]) -> list[str]:
    """The words that follow a flag, up to the next one."""
    start = next((i for i, word in enumerate(words) if word.replace("_", "-") == flag), None)
    if start is None:
        equal = next((word for word in words if word.startswith(f"{flag}=")), "")
        return [equal.partition("=")[2]] if equal else []
    rest = list(words[start + 1 :])
    end = next((i for i, word in enumerate(rest) if FLAG.match(word)), len(rest))
    return rest[:end]
