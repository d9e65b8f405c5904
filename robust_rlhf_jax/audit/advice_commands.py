"""The commands that follow an advice, as they are typed."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from robust_rlhf_jax.io import Pairs

from .config import AuditConfig, Reading, Writing


@dataclasses.dataclass(frozen=True)
class Commands:
    """How the command was called: `source`, what was fitted, how the file was read, where results went.

    **Example:**

    >>> from robust_rlhf_jax.audit.advice_commands import Commands
    >>> Commands("my pairs.csv").audit("--out audit")
    "robust-rlhf audit 'my pairs.csv' --out audit"
    """

    source: str
    config: AuditConfig = dataclasses.field(default_factory=AuditConfig)
    reading: Reading = dataclasses.field(default_factory=Reading)
    writing: Writing = dataclasses.field(default_factory=Writing)
    suffix: str | None = None

    @staticmethod
    def called(
        source: str, pairs: Pairs, config: AuditConfig, reading: Reading, writing: Writing
    ) -> "Commands":
        """The commands for a file that was read as `pairs`, which say how the names of its copies end."""
        suffix = None if pairs.source is None else pairs.source.suffix
        return Commands(source, config, reading, writing, suffix)

    def of(self, advice: Any) -> list[tuple[str, str]]:
        """(what for, command) for each part of an `Advice`."""
        found = []
        if advice.action == "drop" and self.suffix is not None:
            found.append(
                ("Write the file without the pairs to drop", self.audit(f"--clean {self._cleaned()}"))
            )
        # With --out these files are written already.
        if self.writing.out is None and (len(advice.ask) or (len(advice.drop) and self.suffix is None)):
            found.append(
                ("Write the pairs to ask about, in ask.csv and on the page", self.audit("--out audit"))
            )
        if (advice.flagged or len(advice.ask)) and self.suffix is not None:
            told = f"{shlex.quote(self.source)} decisions.json --out {self._cleaned()}{self._flags(self.reading)}"
            found.append(("Write the file as you decide on the page", f"robust-rlhf clean {told}"))
        return found

    def audit(self, rest: str) -> str:
        """`robust-rlhf audit` of the same file, with the same settings, and `rest`."""
        flags = f"{self._flags(self.config)}{self._flags(self.reading)}"
        return f"robust-rlhf audit {shlex.quote(self.source)}{flags} {rest}"

    def _cleaned(self) -> str:
        return f"cleaned{self.suffix or ''}"

    @staticmethod
    def _flags(settings: Any) -> str:
        """The fields that are not as usual, as flags with a space before each."""
        usual = type(settings)()
        changed = {
            field.name: value
            for field in dataclasses.fields(settings)
            if (value := getattr(settings, field.name)) != getattr(usual, field.name)
        }
        return "".join(f" --{name.replace('_', '-')} {_words(value)}" for name, value in changed.items())


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_words, value))
    return shlex.quote(str(value) if isinstance(value, Path) else f"{value}")
