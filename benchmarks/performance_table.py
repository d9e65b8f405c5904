"""Rewrites the performance table in README.md from benchmarks/results.json: `python benchmarks/performance_table.py`.

The results come from `python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results.json`.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- performance:start -->", "<!-- performance:end -->"
COMMAND = "python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results.json"


def milliseconds(seconds):
    return f"{1e3 * seconds:,.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def pair(median, low):
    return f"{milliseconds(median)}, {milliseconds(low)}"


def row(benchmark):
    """One benchmark as a line; where it was measured beside a rival, both times are those of the turns."""
    facts, stats = benchmark["extra_info"], benchmark["stats"]
    compiled = "–" if facts["compile_s"] is None else f"{facts['compile_s']:.2f}"
    run, rival, ratio = pair(stats["median"], stats["min"]), "", ""
    if "beside" in facts:
        run = pair(facts["ours_median_s"], facts["ours_min_s"])
        rival = f"{facts['beside']}: {pair(facts['beside_median_s'], facts['beside_min_s'])} ms"
        ratio = f"{facts['ratio_median']:.1f}, {facts['ratio_min']:.1f}"
    return f"| {facts['what']} | {facts['size']} | {compiled} | {run} | {rival} | {ratio} |"


def table(results):
    """The Markdown table and the line that says how it came about."""
    benchmarks, machine = results["benchmarks"], results["machine_info"]
    shown_beside = {b["group"] for b in benchmarks if "beside" in b["extra_info"]}
    # A rival's own benchmark is not repeated below the line that it stands beside.
    shown = [b for b in benchmarks if "beside" in b["extra_info"] or b["group"] not in shown_beside]
    head = [
        "| what | size | compile s | run ms (median, min) | beside (median, min) | ratio (medians, minima) |",
        "|---|---|---|---|---|---|",
    ]
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    cpu = machine.get("cpu", {})
    device = f"{machine['device']['platform']}, {cpu.get('count', '?')} cores"
    brand = cpu.get("brand_raw", machine.get("processor") or machine["machine"])
    footer = f"`{COMMAND}`; {device}, {brand}, {machine['system']}; {results['datetime'][:10]}; {versions}."
    return "\n".join([*head, *map(row, shown), "", footer])


def between_markers(text, content):
    """`text` with `content` between the markers; ValueError unless both stand there once and in order."""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise ValueError(f"README.md needs the lines {START} and {END}, once each and in this order.")
    before, rest = text.split(START)
    return f"{before}{START}\n{content}\n{END}{rest.split(END)[1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--print", action="store_true", help="print the table and leave the README alone")
    arguments = parser.parse_args()
    needed = [arguments.results] if arguments.print else [arguments.results, arguments.readme]
    missing = [path for path in needed if not path.is_file()]
    if missing:
        sys.exit(f"{missing[0]} does not exist: run `{COMMAND}` from the repository's root first.")
    content = table(json.loads(arguments.results.read_text(encoding="utf-8")))
    if arguments.print:
        print(content)
        return 0
    try:
        text = between_markers(arguments.readme.read_text(encoding="utf-8"), content)
    except ValueError as error:
        sys.exit(str(error))
    arguments.readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
