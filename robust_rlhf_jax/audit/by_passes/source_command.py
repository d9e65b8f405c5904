"""`audit --memory` as a command: open, look, fit, print, write; and the refusals that point to it."""

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from robust_rlhf_jax.io.containers.parquet_files import SUFFIXES as PARQUET
from robust_rlhf_jax.memory import host_bytes, in_words
from robust_rlhf_jax.outputs import whole_folder
from robust_rlhf_jax.raters import Rater
from robust_rlhf_jax.rewards import Streaming
from robust_rlhf_jax.rewards.streamed.config import Tell
from robust_rlhf_jax.sources import PairSource, ShardSource, open_pairs
from robust_rlhf_jax.sources.copies import is_folder
from robust_rlhf_jax.terminal import counted, harmless, marked

from ..config import AuditConfig, Reading, Writing
from ..old_raters import remove_old_raters
from ..progress import shown_steps
from .source_audit import SourceAudit, audit_source
from .source_files import FILES, RATERS, files_of, write_source_files
from .source_page import suspect
from .source_raters import SourceRater

# Copies of the differences in float32 that an audit in memory holds at least: both sides, whitened, in coordinates.
COPIES = 8


def audit_source_command(
    path: str, memory: str, config: AuditConfig, reading: Reading, writing: Writing, top: int = 10
) -> SourceAudit:
    """Audit the pairs at `path` by passes, print what was found and `top` suspicious pairs, and write the files.

    **Raises:** as `open_pairs` and `audit_source`; ValueError for options that need all pairs in memory.
    """
    from rich.console import Console

    _check_options(path, config, reading, writing)
    if top < 0:
        raise ValueError(f"top={top} is negative: give the number of suspicious pairs to print.")
    console, source, begun = Console(), open_pairs(path), time.monotonic()
    opened = contextlib.nullcontext() if writing.out is None else whole_folder(writing.out, (*FILES, RATERS))
    with opened as folder:
        with _passes() as tell:
            found = audit_source(source, config.epsilon, streaming=Streaming(memory=memory, tell=tell))
        seconds = time.monotonic() - begun
        if folder is not None:
            command = _fit_command(path, memory, config.epsilon, is_folder(source))
            write_source_files(folder, source, found, harmless(Path(path).name), command, seconds)
    if writing.out is not None and not found.raters:
        remove_old_raters(Path(writing.out), Rater, SourceRater)
    console.print(
        marked(
            f"{counted(source.n_pairs, 'pair')} of {counted(source.n_features, 'feature')}, in {seconds:.1f} s."
        ),
        highlight=False,
    )
    for sentence in found.sentences():
        console.print(marked(sentence), highlight=False)
    _print_suspects(console, source, found, top)
    if writing.out is not None:
        console.print(marked(f"Wrote {', '.join(files_of(found))} in {writing.out}"), highlight=False)
    return found


def point_to_passes(path: str) -> None:
    """**Raises:** ValueError for embeddings of which an audit in memory needs more than there is, and for shards of
    differences, which only passes can read; the message names `--memory`.
    """
    place = Path(path)
    if not (place.is_dir() or place.suffix.lower() in PARQUET):
        return
    try:
        source = open_pairs(path)
    except (ValueError, OSError, ImportError):
        return
    needed = 4 * COPIES * source.n_pairs * source.n_features
    if needed > host_bytes():
        raise ValueError(
            f"{path} has {source.n_pairs:,} pairs of {source.n_features:,} features, and an audit of held-out pairs "
            f"needs {in_words(needed)} of memory: give --memory 4GB or the like, which audits them by passes."
        )
    if isinstance(source, ShardSource) and len(source.sides) == 1:
        raise ValueError(
            f"{path} has shards of differences: give --memory 4GB or the like, which audits them by passes."
        )


def _fit_command(path: str, memory: str, epsilon: float | None, folder: bool) -> str:
    """What writes a weight for each pair, and a copy without those that are left out."""
    told = "" if epsilon is None else f" --epsilon {epsilon:g}"
    copy = "clean" if folder else "clean.parquet"
    return (
        f"robust-rlhf fit {shlex.quote(path)} --memory {shlex.quote(memory)}{told} --out fit --clean {copy}"
    )


def _check_options(path: str, config: AuditConfig, reading: Reading, writing: Writing) -> None:
    usual = (AuditConfig(epsilon=config.epsilon), Reading(), Writing(writing.out))
    for given, default in zip((config, reading, writing), usual, strict=True):
        other = next(
            (f.name for f in dataclasses.fields(given) if getattr(given, f.name) != getattr(default, f.name)),
            None,
        )
        if other is not None:
            clean = f"; robust-rlhf fit {path} --clean PATH writes a copy" if given is writing else ""
            raise ValueError(
                f"--memory audits embeddings by passes, and takes no --{other.replace('_', '-')}, for which all "
                f"pairs are needed: leave one of the two out{clean}."
            )


@contextlib.contextmanager
def _passes() -> Iterator[Tell]:
    """The bar of an audit, a step for each thing that is done."""
    with shown_steps() as step:
        name, tell_step = "", step("reading")

        def tell(doing: str, done: int, total: int) -> None:
            nonlocal name, tell_step
            if doing != name:
                name, tell_step = doing, step(doing)
            if total:
                tell_step(done, total)

        yield tell


def _print_suspects(console, source: PairSource, found: SourceAudit, top: int) -> None:
    from rich.table import Table

    raters = getattr(source, "raters", None) if found.raters else None
    rows = [suspect(found, int(i), raters) for i in found.worst()[:top]]
    if not rows:
        return
    table = Table(title="Most suspicious pairs, by their place from 0")
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*(marked(f"{v:.3g}" if isinstance(v, float) else str(v)) for v in row.values()))
    console.print(table)
