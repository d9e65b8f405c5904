"""Which source code computes: a version stays the same while somebody works on an attack or an estimator."""

import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[2]


@functools.cache
def source_digest(folder: Path = PACKAGE) -> str:
    """A hash of the names and contents of all modules in `folder`, of the package if not given."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
