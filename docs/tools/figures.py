"""What draws each picture and each marked table of the docs, and whether it is older than what it shows.

    python docs/tools/figures.py                    # says which are old, and what draws them
    python docs/tools/figures.py --redraw rail.png  # draws it and notes that it is of today
    python docs/tools/figures.py --stamp rail.png   # notes it alone, after its command ran
    python docs/tools/figures.py --witness audit    # after a change that was meant to change results

`docs/figures.toml` has, by name (a picture's file, or `page.md#marker` of a table between `<!-- marker:start -->` and
`<!-- marker:end -->`): the command; the day; a digest of the picture or table; and, of each witness (`witnesses.py`) of
what it shows, the digest that it had on that day. A figure is older than what it shows where that is another one today.
It is then drawn again, or its page says so, in the words that the entry has as `says`.
"""

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MANIFEST = DOCS / "figures.toml"
# In place of a digest: the figure is older than its witness.
BEFORE = "before"
HEADER = "# What draws the figures of the docs, and of when they are: kept and explained by docs/tools/figures.py.\n\n"


def read(path: Path = MANIFEST) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def write(manifest: dict[str, Any], path: Path = MANIFEST) -> None:
    import tomli_w

    path.write_text(HEADER + tomli_w.dumps(manifest), encoding="utf-8")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def digest_of_witness(manifest: dict[str, Any], name: str) -> str:
    return digest(repr(manifest["witness"][name]["numbers"]).encode())


def content(name: str, docs: Path = DOCS) -> bytes | None:
    """The picture, or the text of the marked table; None where there is none."""
    page, _, marker = name.partition("#")
    path = docs / page
    if not path.is_file():
        return None
    if not marker:
        return path.read_bytes()
    text = path.read_text(encoding="utf-8")
    table = re.search(rf"<!-- {marker}:start -->(.*?)<!-- {marker}:end -->", text, re.DOTALL)
    return table[1].encode() if table else None


def pages(docs: Path = DOCS) -> dict[str, str]:
    """Text of every page by its path in `docs`, and of the README."""
    found = {path.relative_to(docs).as_posix(): path for path in sorted(docs.rglob("*.md"))}
    found["README.md"] = docs.parent / "README.md"
    return {name: path.read_text(encoding="utf-8") for name, path in found.items() if path.is_file()}


def shown_on(name: str, texts: dict[str, str]) -> list[str]:
    """Names of the pages that embed a picture, or the page of a table."""
    page, _, marker = name.partition("#")
    if marker:
        return [page]
    return [title for title, text in texts.items() if re.search(rf"\]\([\w./]*\b{re.escape(name)}\)", text)]


def older_than(entry: dict[str, Any], manifest: dict[str, Any]) -> list[str]:
    """The witnesses that have changed since the figure was drawn."""
    return [name for name, then in entry["shows"].items() if then != digest_of_witness(manifest, name)]


def complaints(manifest: dict[str, Any], docs: Path = DOCS) -> list[str]:
    """A sentence for everything that is wrong with the figures."""
    texts, listed = pages(docs), manifest["figure"]
    there = {path.name for path in docs.glob("*.png")}
    there |= {
        f"{path.name}#{marker}"
        for path in docs.glob("*.md")
        for marker in re.findall(r"<!-- (\w+):start -->", path.read_text(encoding="utf-8"))
    }
    found = [
        f"{name} is in no entry of figures.toml: add its command there." for name in sorted(there - {*listed})
    ]
    for name, entry in listed.items():
        found += _complaints_of(name, entry, manifest, texts, docs)
    return found


def _complaints_of(
    name: str, entry: dict[str, Any], manifest, texts: dict[str, str], docs: Path
) -> list[str]:
    made, on = content(name, docs), shown_on(name, texts)
    if made is None:
        return [f"{name} is listed in figures.toml and is not there: draw it with {entry['command']}"]
    if not on:
        return [f"No page shows {name}: embed it, or remove it and its entry in figures.toml."]
    found = []
    if digest(made) != entry["digest"]:
        found.append(
            f"{name} is not the one that was stamped: run python docs/tools/figures.py --stamp {name}"
        )
    said = " ".join(" ".join(texts[page] for page in on).split())
    if f"{entry['drawn']}" not in said:
        found.append(f"No page that shows {name} says that it is of {entry['drawn']}.")
    changed, says = older_than(entry, manifest), " ".join(entry.get("says", "").split())
    if changed and not says:
        found.append(
            f"{name} is of {entry['drawn']}, and {', '.join(changed)} gives other numbers since then: draw it with "
            f"{entry['command']}, or say on {on[0]} that it is older and repeat the words as `says` in figures.toml."
        )
    if changed and says and says not in said:
        found.append(
            f"{name} is older than {', '.join(changed)}, and {on[0]} does not say so: {says!r} is not on it."
        )
    if says and not changed:
        found.append(
            f"{name} is up to date, and its entry has `says`: remove it there and the words on {on[0]}."
        )
    return found


def stamp(name: str, manifest: dict[str, Any], day: datetime.date) -> None:
    entry, made = manifest["figure"][name], content(name)
    if made is None:
        raise SystemExit(f"{name} is not there: draw it with {entry['command']}")
    entry |= {"drawn": day, "digest": digest(made)}
    entry["shows"] = {witness: digest_of_witness(manifest, witness) for witness in entry["shows"]}
    entry.pop("says", None)


def redraw(name: str, entry: dict[str, Any]) -> None:
    """Run the command of a picture, with the Python that runs this; put what it made in its place."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", entry["command"]], cwd=ROOT, env=os.environ | {"PATH": path}, check=True)
    if "made" in entry:
        shutil.copyfile(ROOT / entry["made"], DOCS / name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--redraw", metavar="NAME", nargs="+", default=[])
    parser.add_argument("--stamp", metavar="NAME", nargs="+", default=[])
    parser.add_argument("--witness", metavar="NAME", nargs="+", default=[])
    given, manifest = parser.parse_args(), read()
    for name in given.witness:
        from witnesses import numbers_of

        manifest["witness"][name] = {"numbers": numbers_of(name)}
    for name in given.redraw:
        redraw(name, manifest["figure"][name])
    today = datetime.datetime.now(datetime.UTC).date()
    for name in [*given.redraw, *given.stamp]:
        stamp(name, manifest, today)
    if given.witness or given.redraw or given.stamp:
        write(manifest)
    found = complaints(manifest)
    print("\n".join(found) or "Every figure is of today's code, or its page says that it is older.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
