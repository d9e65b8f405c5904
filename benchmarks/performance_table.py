"""Writes benchmarks/RESULTS.md and the short table of docs/speed.md: `python benchmarks/performance_table.py`.

RESULTS.md has a section per device, one for each benchmarks/results*.json; docs/speed.md shows the key rows of
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
# RESULTS.md alone has these.
WIDE_HEAD, WIDE_LINE = " throughput | peak MB | fraction |", "---:|---:|---|"
INTRODUCTION = """# Results

Run time is the median and, in brackets, the minimum, after the whole output is ready and without compilation;
*compile* is the first call on empty caches less the median run. Ratios are those of the rival's medians (minima) to
ours, taken in turns within one run. *Throughput* is what a median run processes per second; *peak MB* is the compiler's
account of a program's arguments, outputs and temporaries; *fraction* is that of the machine's own rate, measured in the
same run. Written by `python benchmarks/performance_table.py`."""
# What docs/speed.md shows, by the start of a row's name: the rest is in RESULTS.md.
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


def throughput(facts):
    """Three digits, a thousand-fold unit and what is counted: "12.3 M rows/s"."""
    if "throughput" not in facts:
        return ""
    value = float(f"{facts['throughput']:.3g}")
    scale, prefix = next(((s, p) for s, p in ((1e9, "G "), (1e6, "M "), (1e3, "k ")) if value >= s), (1, ""))
    return f"{value / scale:g} {prefix}{facts['throughput_unit']}"


def megabytes(size):
    """Nothing where it is not known."""
    if size is None:
        return ""
    return f"{size / 1e6:,.0f}" if size >= 1e8 else f"{size / 1e6:.3g}"


def fraction(facts):
    if "fraction" not in facts:
        return ""
    target = f", target {facts['target']:g}" if "target" in facts else ""
    return f"{facts['fraction']:.2g} {facts['fraction_of']}{target}"


def row(benchmark, wide):
    """One benchmark as a line; where it was measured beside a rival, both times are those of the turns."""
    facts, stats = benchmark["extra_info"], benchmark["stats"]
    run, rival, ratio = pair(stats["median"], stats["min"]), "", ""
    if "beside" in facts:
        run = pair(facts["ours_median_s"], facts["ours_min_s"])
        rival = pair(facts["beside_median_s"], facts["beside_min_s"])
        ratio = f"{facts['ratio_median']:.2g} ({facts['ratio_min']:.2g})"
    compiled = f"{facts['compile_s']:.2f}"
    cells = [facts["what"], facts["size"], compiled, run, facts.get("beside", ""), rival, ratio]
    if wide:
        cells += [throughput(facts), megabytes(facts.get("peak_memory_bytes")), fraction(facts)]
    return f"| {' | '.join(cells)} |"


def key_rows(benchmarks):
    """The first row of each key, in the keys' order."""
    names = [(b["extra_info"]["what"], b) for b in benchmarks]
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


def table(benchmarks, wide):
    head, line = (HEAD + WIDE_HEAD, LINE + WIDE_LINE) if wide else (HEAD, LINE)
    return "\n".join([head, line, *(row(b, wide) for b in benchmarks)])


def rates(benchmarks):
    """A sentence of what the machine itself reached, if a row was held against it."""
    facts = {name: value for b in benchmarks for name, value in b["extra_info"].items()}
    units = (
        ("copy_gb_per_s", "{:,.3g} GB/s read and written in a copy"),
        ("product_gflops", "{:,.3g} Gflop/s in a product of matrices"),
    )
    found = [form.format(facts[name]) for name, form in units if name in facts]
    return f"The machine itself: {', '.join(found)}." if found else ""


def notes(benchmarks):
    """Sentences that a benchmark stored about itself."""
    return [f"- {b['extra_info']['note']}" for b in benchmarks if "note" in b["extra_info"]]


def section(results, name):
    """One device's part of RESULTS.md."""
    benchmarks = results["benchmarks"]
    parts = [f"## {device_of(results['machine_info'])}", footer(results, name), rates(benchmarks)]
    parts += [table(benchmarks, wide=True), "\n".join(notes(benchmarks))]
    return "\n\n".join(part for part in parts if part)


def page(files):
    sections = [section(json.loads(path.read_text(encoding="utf-8")), path.name) for path in files]
    return "\n\n".join([INTRODUCTION, *sections]) + "\n"


def short_table(results):
    """The key rows, and where the others are."""
    rows = table(key_rows(results["benchmarks"]), wide=False)
    more = (
        "All rows, with throughput, memory and fractions of the machine's rates: [all timings](timings.md)."
    )
    return "\n\n".join([rows, f"Medians (minima). {footer(results)} {more}"])


def between_markers(text, content):
    """`text` with `content` between the markers; ValueError unless both stand there once and in order."""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise ValueError(
            f"The page of the short table needs the lines {START} and {END}, once each and in this order."
        )
    before, rest = text.split(START)
    return f"{before}{START}\n{content}\n{END}{rest.split(END)[1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "benchmarks", help="of results*.json and RESULTS.md"
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "speed.md", help="of the short table")
    parser.add_argument("--print", action="store_true", help="print RESULTS.md and write nothing")
    arguments = parser.parse_args()
    main_file = arguments.folder / "results.json"
    # That of the short table first, then the others by name.
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
        text = between_markers(arguments.page.read_text(encoding="utf-8"), short_table(results))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    arguments.page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
