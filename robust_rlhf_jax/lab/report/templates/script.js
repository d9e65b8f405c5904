"use strict";
// The page reads well without this script; it adds sorting, filtering and choosing what is drawn.
document.documentElement.classList.add("js");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function value(row, column, numeric) {
  const text = row.cells[column].textContent.trim();
  if (!numeric) return text;
  const number = parseFloat(text);
  return Number.isNaN(number) ? -Infinity : number;
}

function sort(header) {
  const table = header.closest("table");
  const column = header.cellIndex;
  const numeric = header.classList.contains("n");
  const descending = header.getAttribute("aria-sort") === "ascending";
  all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const keyed = [...table.tBodies[0].rows].map((row) => [value(row, column, numeric), row]);
  const compare = numeric ? (a, b) => (a === b ? 0 : a - b) : (a, b) => a.localeCompare(b);
  keyed.sort(([a], [b]) => (descending ? compare(b, a) : compare(a, b)));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function filter(input) {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const text = [...row.cells].map((cell) => cell.textContent.trim().toLowerCase()).join(" ");
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  input.parentElement.querySelector("output").value = `${shown} of ${rows.length} rows`;
}

function draw(algorithm, shown) {
  all(`.line.${algorithm}`).forEach((line) => line.classList.toggle("off", !shown));
  all(`.key[data-algorithm=${algorithm}]`).forEach((key) => key.setAttribute("aria-pressed", shown));
}

function choose(select) {
  const panels = all(".panel", select.closest("section"));
  panels.forEach((panel) => panel.classList.toggle("other", panel.dataset.family !== select.value));
}

all("th button").forEach((b) => b.addEventListener("click", () => sort(b.closest("th"))));
all("input[type=search]").forEach((i) => i.addEventListener("input", () => filter(i)));
all(".key").forEach((key) =>
  key.addEventListener("click", () =>
    draw(key.dataset.algorithm, key.getAttribute("aria-pressed") !== "true")));
all("[data-all]").forEach((b) =>
  b.addEventListener("click", () =>
    all(".key", b.parentElement).forEach((key) => draw(key.dataset.algorithm, b.dataset.all === "show"))));
all(".bands").forEach((box) =>
  box.addEventListener("change", () => document.body.classList.toggle("no-bands", !box.checked)));
all("select.family").forEach((select) => {
  select.addEventListener("change", () => choose(select));
  choose(select);
});
