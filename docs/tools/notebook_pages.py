"""Pages of notebooks: run in a kernel of their own, with what their cells print and draw."""

import base64
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from commonmark import unicode_formulas

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "notebooks"
NEEDED = ("jupytext", "nbclient", "nbformat", "ipykernel", "matplotlib")
# Longest run of a cell, in seconds, on a machine that other jobs share.
TIMEOUT = 900
# Runs in the kernel before the notebook, and is not shown: a look-up or a connection beyond this machine is an error.
OFFLINE = """
import socket
def _refuse(connect):
    def connect_locally(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise RuntimeError(f"a notebook tried to reach {address}")
        return connect(self, address)
    return connect_locally
for _name in ("connect", "connect_ex"):
    setattr(socket.socket, _name, _refuse(getattr(socket.socket, _name)))
"""


def notebook_page(name: str) -> tuple[str, dict[str, bytes]]:
    """The page of `notebooks/name.py` in Markdown, and its pictures by file name.

    **Raises:** ValueError if packages are missing, a cell fails, a picture has no alt text, or an output names a folder
    of this machine.
    """
    notebook = executed(name)
    pictures: dict[str, bytes] = {}
    parts = [cell_text(cell, name, pictures) for cell in notebook.cells]
    title, _, rest = parts[0].partition("\n")
    text = "\n\n".join([title, how_to_run(name), rest.strip(), *parts[1:]]) + "\n"
    for folder in {str(ROOT), str(Path.home()), tempfile.gettempdir(), sys.prefix}:
        if folder in text:
            raise ValueError(f"notebooks/{name}.py prints {folder}, a folder of this machine: print less.")
    return text, pictures


def how_to_run(name: str) -> str:
    return (
        f'!!! note "A notebook with its outputs"\n    The source is `notebooks/{name}.py`. To open it in Jupyter: '
        f"`.venv/bin/jupytext --to ipynb notebooks/{name}.py`."
    )


# --- running -------------------------------------------------------------------------------------------------------


def executed(name: str):
    """The notebook with outputs: those of the last run where neither the source nor the package has changed since."""
    missing = [package for package in NEEDED if importlib.util.find_spec(package) is None]
    if missing:
        raise ValueError(
            f"The pages of the notebooks need {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            'installed: pip install -e ".[docs]".'
        )
    import nbformat

    source = (ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    size = "smoke" if os.environ.get("NOTEBOOK_SMOKE") else "full"
    kept = CACHE / size / f"{name}-{digest(source)}.ipynb"
    if not kept.exists():
        notebook = run(source, name)
        kept.parent.mkdir(parents=True, exist_ok=True)
        for old in kept.parent.glob(f"{name}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, kept)
    return nbformat.read(kept, as_version=4)


def digest(source: str) -> str:
    """Of all that decides what a notebook prints: its source, the package, the libraries, how programs are compiled."""
    found = hashlib.sha256(source.encode())
    for path in sorted((ROOT / "robust_rlhf_jax").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    found.update(" ".join(version(package) for package in ("jax", "jaxlib", "numpy", "matplotlib")).encode())
    found.update(f"{sorted(compiler_settings().items())} {os.environ.get('NOTEBOOK_SMOKE')}".encode())
    return found.hexdigest()[:16]


def compiler_settings() -> dict[str, str]:
    """As in tests/conftest.py: most of the time is compilation, and no printed digit depends on it."""
    settings = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    if version("jaxlib").startswith("0.10."):  # jaxlib 0.11 refuses the flag
        settings["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false"
    return settings


def run(source: str, name: str):
    """The notebook after its cells have run in an empty folder, without internet.

    **Raises:** ValueError if a cell fails.
    """
    import jupytext
    import nbclient

    notebook = jupytext.reads(source, fmt="py:percent")
    notebook.cells.insert(0, jupytext.reads(OFFLINE, fmt="py:percent").cells[0])
    folder = tempfile.mkdtemp()
    try:
        client = nbclient.NotebookClient(
            notebook, timeout=TIMEOUT, startup_timeout=300, kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )  # fmt: skip
        client.execute(env=environment(folder))
        del notebook.cells[0]
        return notebook
    except nbclient.exceptions.CellExecutionError as error:
        raise ValueError(f"notebooks/{name}.py fails: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: str) -> dict[str, str]:
    """Of the kernel: this checkout's package, no settings of the user, and the kernel's own way to draw."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    private = dict.fromkeys(("IPYTHONDIR", "MPLCONFIGDIR"), folder)
    kept = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    return kept | private | compiler_settings() | {"PYTHONPATH": os.pathsep.join(paths)}


# --- cells ---------------------------------------------------------------------------------------------------------


def cell_text(cell, name: str, pictures: dict[str, bytes]) -> str:
    """A cell in Markdown; its pictures are added to `pictures`."""
    if cell.cell_type != "code":
        return unicode_formulas(cell.source)
    parts = [f"```python\n{cell.source}\n```"]
    printed = ""
    for output in cell.get("outputs", ()):
        printed += printed_text(output)
        if "image/png" in output.get("data", {}):
            parts += [console(printed), picture(output, cell.metadata.get("alt"), name, pictures)]
            printed = ""
    return "\n\n".join(part for part in [*parts, console(printed)] if part)


def printed_text(output) -> str:
    """What is printed, or the value of a last line; a picture's own text is not shown."""
    data = output.get("data", {})
    return output.get("text", "") if "image/png" in data or not data else data.get("text/plain", "") + "\n"


def console(printed: str) -> str:
    """In a fence, without the colours of terminals."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed).rstrip()
    return f'```{{.text .output title="Output"}}\n{plain}\n```' if plain else ""


def picture(output, alt: str | None, name: str, pictures: dict[str, bytes]) -> str:
    if not alt:
        raise ValueError(
            f"A picture of notebooks/{name}.py has no text for those who do not see it: "
            'begin its cell with # %% alt="…".'
        )
    file = f"{name}_{len(pictures) + 1}.png"
    pictures[file] = base64.b64decode(output["data"]["image/png"])
    return f"![{alt}]({file})"
