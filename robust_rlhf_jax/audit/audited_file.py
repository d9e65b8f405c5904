"""All that an audit knows of a file: what its page, its record, its lists and the terminal are made from."""

from typing import NamedTuple

from robust_rlhf_jax.io import Pairs

from .advice import Advice
from .config import AuditConfig
from .findings import Findings
from .raters_of_file import RatersOfFile
from .result import AuditResult


class AuditedFile(NamedTuple):
    """`source` as the user named it, and its `pairs`; `result`: the audit of `pairs.decided()` under `config`; what it
    took, in `seconds`.

    `findings` and `advice` are None where labels were flipped on purpose; `raters` where nobody wants to see them.
    """

    source: str
    pairs: Pairs
    result: AuditResult
    config: AuditConfig
    seconds: float
    findings: Findings | None = None
    advice: Advice | None = None
    raters: RatersOfFile | None = None
