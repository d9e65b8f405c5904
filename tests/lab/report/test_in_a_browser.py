"""The script of the page, run in headless Chromium where there is one."""

import json
import re
import shutil
import subprocess

import pytest

from robust_rlhf_jax.lab.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# What a reader does, by clicks and keys; what then stands there goes to the document's title as JSON.
ACTIONS = """
const column = (id, i) => [...document.getElementById(id).tBodies[0].rows]
  .filter((row) => !row.hidden).map((row) => row.cells[i].textContent);
const found = {};
const head = document.querySelector("#r0-t-gaps th:nth-child(6)");
found.unsorted = column("r0-t-gaps", 5);
head.querySelector("button").click();
found.rising = column("r0-t-gaps", 5);
found.aria = [head.getAttribute("aria-sort")];
head.querySelector("button").click();
found.falling = column("r0-t-gaps", 5);
found.aria.push(head.getAttribute("aria-sort"));
document.querySelector("#r0-t-gaps th:nth-child(2) button").click();
found.attacks = column("r0-t-gaps", 1);
found.aria.push(head.getAttribute("aria-sort"));
const search = document.querySelector("[data-table=r0-t-gaps]");
search.value = "CHAIN standard";
search.dispatchEvent(new Event("input"));
found.filtered = column("r0-t-gaps", 0);
found.told = search.parentElement.querySelector("output").value;
const visible = (selector) => [...document.querySelectorAll(selector)]
  .filter((e) => getComputedStyle(e).display !== "none").length;
const seen = () => [visible(".line.a0"), visible(".line.a1")];
found.lines = [seen()];
document.querySelector(".key[data-algorithm=a0]").click();
found.lines.push(seen());
document.querySelector("[data-all=hide]").click();
found.lines.push(seen());
document.querySelector("[data-all=show]").click();
found.lines.push(seen());
const select = document.querySelector("select.family");
const panels = () => [...document.querySelectorAll("#r0-gaps .panel")]
  .filter((e) => getComputedStyle(e).display !== "none").map((e) => e.dataset.family);
found.families = [panels()];
select.value = "chain";
select.dispatchEvent(new Event("change"));
found.families.push(panels());
found.fetched = performance.getEntriesByType("resource").map((entry) => entry.name);
found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.body.setAttribute("data-found", JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from report_cells import make_cells, put

    folder = tmp_path_factory.mktemp("browser")
    put(folder / "results.parquet", make_cells())
    return folder


@pytest.fixture(scope="module")
def found(folder):
    """What ACTIONS found."""
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH")
    page = write_report(folder)
    html = page.read_text(encoding="utf-8").replace("</body>", f"<script>{ACTIONS}</script></body>")
    page.write_text(html, encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=2000",
        "--window-size=500,900",
    ]
    run = subprocess.run(
        [CHROMIUM, *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        timeout=120,
        text=True,
        check=True,
    )
    (text,) = re.findall(r'data-found="([^"]*)"', run.stdout)
    return json.loads(text.replace("&quot;", '"').replace("&amp;", "&"))


def test_a_click_on_a_head_sorts_and_another_turns_round(found):
    numbers = [float(x) for x in found["unsorted"]]
    assert [float(x) for x in found["rising"]] == sorted(numbers) != numbers
    assert [float(x) for x in found["falling"]] == sorted(numbers, reverse=True)
    assert found["attacks"] == sorted(found["attacks"])
    assert found["aria"] == ["ascending", "descending", None]


def test_the_filter_keeps_the_rows_that_hold_all_words(found):
    assert set(found["filtered"]) == {"chain"}
    assert len(found["filtered"]) == 2 * 3
    assert found["told"] == "6 of 36 rows"


def test_the_legend_hides_and_shows(found):
    both, without, none, again = found["lines"]
    assert both == again
    assert both[0] == both[1] > 0
    assert without == [0, both[1]]
    assert none == [0, 0]


def test_the_families_are_chosen(found):
    assert found["families"] == [["uniform"] * 2, ["chain"] * 2]


def test_nothing_is_fetched_and_nothing_sticks_out_of_a_narrow_window(found):
    assert found["fetched"] == []
    assert found["wide"] == 0
