"""Writes benchmarks/RESULTS.md and the README's short table: `python benchmarks/performance_table.py`.

RESULTS.md has a section per device, one for each benchmarks/results*.json; the README shows the key rows of
benchmarks/results.json, which `python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results.json`
writes.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- performance:start -->", "<!-- performance:end -->"
COMMAND = "python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results.json"
HEAD = "| what | size | compile s | run ms | beside | its ms | ratio |"
LINE = "|---|---|---:|---:|---|---:|---:|"
INTRODUCTION = """# Results

Run time is the median and, in brackets, the minimum, after the whole output is ready and without compilation;
*compile* is the first call on empty caches less the median run. Ratios are those of the rival's medians (minima) to
ours, taken in turns within one run. Written by `python benchmarks/performance_table.py`."""
FRACTION_HEAD, FRACTION_LINE = " fraction |", "---:|"
# What the README shows, by the start of a row's name: the rest is in RESULTS.md.
KEY_ROWS = (
    "`trimmed_mle`",
    "`robust_mean`",
    "`robust_covariance`",
    "`value_gradient`",
    "R-LSVI `prepare`",
    "R-LSVI `solve`, 256",
    "LSVI `solve`, 256",
    "R-LSVI smoothed",
    "`PrimalDual` `solve`, T = 1000",
    "1,024 cells",
)


def milliseconds(seconds):
    return f"{1e3 * seconds:,.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def pair(median, low):
    return f"{milliseconds(median)} ({milliseconds(low)})"


def row(benchmark, fractions):
    """One benchmark as a line; where it was measured beside a rival, both times are those of the turns."""
    facts, stats = benchmark["extra_info"], benchmark["stats"]
    compiled = "–" if facts["compile_s"] is None else f"{facts['compile_s']:.2f}"
    run, rival, ratio = pair(stats["median"], stats["min"]), "", ""
    if "beside" in facts:
        run = pair(facts["ours_median_s"], facts["ours_min_s"])
        rival = pair(facts["beside_median_s"], facts["beside_min_s"])
        ratio = f"{facts['ratio_median']:.2g} ({facts['ratio_min']:.2g})"
    cells = [facts["what"], facts["size"], compiled, run, facts.get("beside", ""), rival, ratio]
    if fractions:
        target = f", target {facts['target']:g}" if "target" in facts else ""
        cells.append(f"{facts['fraction']:.2f} {facts['fraction_of']}{target}" if "fraction" in facts else "")
    return f"| {' | '.join(cells)} |"


def shown(benchmarks):
    """All but a rival's own benchmark, which is not repeated below the line that it stands beside."""
    beside = {b["group"] for b in benchmarks if "beside" in b["extra_info"]}
    return [b for b in benchmarks if "beside" in b["extra_info"] or b["group"] not in beside]


def key_rows(benchmarks):
    """The first row of each key, in the keys' order."""
    names = [(b["extra_info"]["what"], b) for b in shown(benchmarks)]
    found = [next((b for name, b in names if name.startswith(key)), None) for key in KEY_ROWS]
    return [b for b in found if b is not None]


def device_of(machine):
    """What the section is called."""
    cpu = machine.get("cpu", {})
    if machine["device"]["platform"] != "cpu":
        return machine["device"]["kind"]
    brand = cpu.get("brand_raw", machine.get("processor") or machine["machine"])
    return f"CPU, {cpu.get('count', '?')} cores, {brand}"


def footer(results, name="results.json"):
    machine = results["machine_info"]
    versions = ", ".join(f"{package} {version}" for package, version in machine["packages"].items())
    command = COMMAND.replace("results.json", name)
    return f"`{command}`; {device_of(machine)}, {machine['system']}; {results['datetime'][:10]}; {versions}."


def table(benchmarks, fractions):
    head, line = (HEAD + FRACTION_HEAD, LINE + FRACTION_LINE) if fractions else (HEAD, LINE)
    return "\n".join([head, line, *(row(b, fractions) for b in benchmarks)])


def notes(benchmarks):
    """Sentences that a benchmark stored about itself."""
    return [f"- {b['extra_info']['note']}" for b in shown(benchmarks) if "note" in b["extra_info"]]


def section(results, name):
    """One device's part of RESULTS.md."""
    benchmarks = results["benchmarks"]
    fractions = any("fraction" in b["extra_info"] for b in benchmarks)
    parts = [f"## {device_of(results['machine_info'])}", footer(results, name)]
    parts += [table(shown(benchmarks), fractions), "\n".join(notes(benchmarks))]
    return "\n\n".join(part for part in parts if part)


def page(files):
    sections = [section(json.loads(path.read_text(encoding="utf-8")), path.name) for path in files]
    return "\n\n".join([INTRODUCTION, *sections]) + "\n"


def short_table(results):
    """The README's: the key rows, and where the others are."""
    rows = table(key_rows(results["benchmarks"]), fractions=False)
    more = (
        "All rows, with fractions of the machine's bandwidth: [benchmarks/RESULTS.md](benchmarks/RESULTS.md)."
    )
    return "\n\n".join([rows, f"Medians (minima). {footer(results)} {more}"])


def between_markers(text, content):
    """`text` with `content` between the markers; ValueError unless both stand there once and in order."""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise ValueError(f"README.md needs the lines {START} and {END}, once each and in this order.")
    before, rest = text.split(START)
    return f"{before}{START}\n{content}\n{END}{rest.split(END)[1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "benchmarks", help="of results*.json and RESULTS.md"
    )
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--print", action="store_true", help="print RESULTS.md and write nothing")
    arguments = parser.parse_args()
    main_file = arguments.folder / "results.json"
    # That of the README first, then the others by name.
    files = sorted(arguments.folder.glob("results*.json"), key=lambda path: (path != main_file, path.name))
    if not files:
        sys.exit(
            f"{arguments.folder} has no results*.json: run `{COMMAND}` from the repository's root first."
        )
    content = page(files)
    if arguments.print:
        print(content)
        return 0
    (arguments.folder / "RESULTS.md").write_text(content, encoding="utf-8")
    if main_file not in files:
        return 0
    try:
        results = json.loads(main_file.read_text(encoding="utf-8"))
        text = between_markers(arguments.readme.read_text(encoding="utf-8"), short_table(results))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    arguments.readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
