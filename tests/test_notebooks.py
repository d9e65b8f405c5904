"""Every notebook runs from top to bottom in a kernel of its own, at smoke size."""

from pathlib import Path

import pytest

WHY = "the notebooks need jupytext, nbclient and ipykernel: pip install 'robust-rlhf-jax[test]'"
jupytext = pytest.importorskip("jupytext", reason=WHY)
nbclient = pytest.importorskip("nbclient", reason=WHY)
pytest.importorskip("ipykernel", reason=WHY)

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
# Runs in the kernel before the notebook: a look-up or a connection beyond this machine is an error.
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


@pytest.fixture
def offline_kernel(monkeypatch, tmp_path):
    """Settings of the kernel, its files all below `tmp_path`."""
    monkeypatch.setenv("NOTEBOOK_SMOKE", "1")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # nearly all the time is compilation
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel's own draws into the notebook
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    here = tmp_path / "here"
    here.mkdir()
    return here


def execute(cells, folder):
    """The notebook after its cells have run in `folder`, without internet."""
    notebook = jupytext.reads(cells, fmt="py:percent")
    notebook.cells.insert(0, jupytext.reads(OFFLINE, fmt="py:percent").cells[0])
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        startup_timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def pictures(notebook):
    """PNG pictures among the outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, offline_kernel):
    before = sorted(FOLDER.rglob("*"))
    notebook = execute(path.read_text("utf-8"), offline_kernel)
    assert pictures(notebook), "a notebook without a picture"
    assert sorted(FOLDER.rglob("*")) == before
    assert not list(offline_kernel.iterdir())


def test_the_internet_is_out_of_reach(offline_kernel):
    with pytest.raises(nbclient.exceptions.CellExecutionError, match=r"tried to reach .{0,3}192\.0\.2\.1"):
        execute(
            "# %%\nimport socket\nsocket.create_connection(('192.0.2.1', 80))  # beyond this machine\n",
            offline_kernel,
        )
