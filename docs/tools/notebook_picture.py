"""The first picture of a notebook, run at full size, as a file: `python docs/tools/notebook_picture.py quickstart`."""

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def first_picture(notebook) -> bytes:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return base64.b64decode(next(o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})))


def main(name: str) -> None:
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    picture = first_picture(NotebookClient(notebook, timeout=None, kernel_name="python3").execute())
    (ROOT / "docs" / f"{name}.png").write_bytes(picture)


if __name__ == "__main__":
    main(sys.argv[1])
