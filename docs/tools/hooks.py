"""Pages that are made from the repository: the front page, the API reference, notebooks, changelog, timings.

mkdocs calls `on_config` and `on_files`; no page made here exists as a file, so that none can go stale.
"""

import re
import sys
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
from commonmark import spaced
from notebook_pages import notebook_page
from public_names import CONSTANTS, PACKAGE, ROOT, PublicName, is_constant, packages, public_names, signature

TITLES = {
    "rewards": "Rewards",
    "algorithms": "Algorithms",
    "io": "Preference files",
    "sources": "Pairs on the disk",
    "heads": "Heads on deep models",
    "audit": "Audits",
    "likelihood": "Likelihood",
    "moments": "Robust moments",
    "oracles": "Offline planners",
    "preferences": "Preference data",
    "mdp": "Linear MDPs and planning",
    "lab.worlds": "Laboratory: worlds",
    "lab.attacks": "Laboratory: attacks",
    "lab.rivals": "Laboratory: rivals",
    "lab.methods": "Laboratory: table of methods",
    "lab.diagnostics": "Laboratory: diagnostics",
    "lab.sweeps": "Laboratory: sweeps",
    "lab.reproduce": "Laboratory: reproduction",
    "lab.report": "Laboratory: report",
}
OTHER = "Iteration and status"
FIRST = ("fit_reward", "RewardModel", "robust_policy", "Solution")
COPIES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "timings.md": "benchmarks/RESULTS.md",
    "benchmarks.md": "benchmarks/README.md",
}
LINKS = {
    "](docs/": "](",
    "](CONTRIBUTING.md": "](contributing.md",
    "](CHANGELOG.md": "](changelog.md",
    "](benchmarks/RESULTS.md": "](timings.md",
    "](benchmarks/README.md": "](benchmarks.md",
    "](../docs/": "](",
    "](../README.md": "](index.md",
    "](../CHANGELOG.md": "](changelog.md",
    "](RESULTS.md": "](timings.md",
    "# Results\n\nRun time": "# All timings\n\nRun time",
}
HIDDEN = {"index.md": ["navigation"]}
# Last columns that a reader looks for first.
JUDGEMENTS = ("verdict", "bars")
NOTEBOOKS = (
    "own_file",
    "epsilon_sweep",
    "own_attack",
    "own_estimator",
    "attacks_side_by_side",
    "quickstart",
    "audit_rail",
    "inside_the_filter",
    "primal_dual",
    "smoothing_variance",
)


def on_config(config):
    """Fills in the navigation of the pages made here."""
    for entry in config.nav:
        if "API reference" in entry:
            entry["API reference"] = ["reference/index.md", *(f"reference/{page}.md" for page in pages())]
    return config


def on_files(files, config):
    for name, content in made_pages().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown, page, **kwargs):
    """Lists as GitHub reads them; no empty sidebar beside the front page."""
    hidden = HIDDEN.get(page.file.src_uri)
    if hidden:
        page.meta["hide"] = hidden
    return spaced(markdown)


def on_page_content(html, **kwargs):
    """Tables that end with a judgement say so, for docs/style.css to keep that column in view."""
    return re.sub(
        rf"<table>(?=\s*<thead>\s*<tr>(?:(?!</tr>).)*<th[^>]*>(?:{'|'.join(JUDGEMENTS)})</th>\s*</tr>)",
        "<table data-verdict>",
        html,
        flags=re.DOTALL,
    )


def made_pages() -> dict[str, str | bytes]:
    try:
        reference, notebooks = reference_pages(), notebook_files()
    except ValueError as error:
        raise PluginError(str(error)) from error
    copies = {page: relinked((ROOT / source).read_text(encoding="utf-8")) for page, source in COPIES.items()}
    return {**copies, **notebooks, **reference}


def notebook_files() -> dict[str, str | bytes]:
    """Pages of the notebooks, and their pictures beside them."""
    made: dict[str, str | bytes] = {}
    for name in NOTEBOOKS:
        text, pictures = notebook_page(name)
        made[f"notebooks/{name}.md"] = text
        made.update({f"notebooks/{file}": content for file, content in pictures.items()})
    return made


def relinked(text: str) -> str:
    for old, new in LINKS.items():
        text = text.replace(old, new)
    return text


# --- API reference -------------------------------------------------------------------------------------------------


def pages() -> list[str]:
    """Subpackages with a page, those that this file knows first; names of single modules come last."""
    known = packages()
    return [*(p for p in TITLES if p in known), *(p for p in known if p not in TITLES), "other"]


def reference_pages() -> dict[str, str]:
    top = public_names()
    made, placed = {}, {}
    # A name that several packages export has its entry with the first of them.
    known = {name.target for name in top}
    for package in pages()[:-1]:
        mine = public_names(package)
        here = {name.target for name in mine}
        front = [name for name in top if name.target in here and name.target not in placed]
        placed.update({name.target: f"{package}.md" for name in front})
        rest = [name for name in mine if name.target not in known]
        known.update(name.target for name in rest)
        made[f"reference/{package}.md"] = reference_page(TITLES.get(package, package), package, front, rest)
    other = [name for name in top if name.target not in placed]
    placed.update({name.target: "other.md" for name in other})
    made["reference/other.md"] = reference_page(OTHER, "", other, [])
    made["reference/index.md"] = index_page(top, placed)
    return made


def reference_page(title: str, package: str, front: list[PublicName], rest: list[PublicName]) -> str:
    parts = [f"# {title}"]
    parts += [entry(name) for name in ordered(front)]
    source = f"These names are imported from `{PACKAGE}.{package}`."
    if rest and front:
        parts += [f"## In `{PACKAGE}.{package}`", source, *(entry(name, level=3) for name in rest)]
    elif rest:
        parts += [source, *(entry(name) for name in rest)]
    return "\n\n".join(parts) + "\n"


def ordered(names: list[PublicName]) -> list[PublicName]:
    place = {name: i for i, name in enumerate(FIRST)}
    return sorted(names, key=lambda found: place.get(found.name, len(FIRST)))


def entry(found: PublicName, level: int = 2) -> str:
    """mkdocstrings' block under the name that a user imports, which is its heading and its anchor."""
    heading = f"{'#' * level} `{found.shown.removeprefix(f'{PACKAGE}.')}` {{ #{found.shown} }}"
    text = CONSTANTS[found.name] if is_constant(found) else ""
    options = f"    options:\n      heading_level: {level + 1}\n"
    return "\n\n".join(
        part for part in (heading, signature(found), text, f"::: {found.target}\n{options}") if part
    )


def index_page(top: list[PublicName], placed: dict[str, str]) -> str:
    parts = [
        "# API reference",
        f"Every name that `import {PACKAGE}` offers. The pages of this section add the names of its subpackages. The "
        "build fails on a public name without documentation.",
    ]
    for package in pages():
        mine = ordered([name for name in top if placed[name.target] == f"{package}.md"])
        rows = [f"| [`{name.name}`]({package}.md#{name.shown}) | {cell(name.line)} |" for name in mine]
        if rows:
            title = TITLES.get(package, OTHER if package == "other" else package)
            parts.append("\n".join([f"## {title}\n", "| name | what it is |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def cell(line: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", line)
