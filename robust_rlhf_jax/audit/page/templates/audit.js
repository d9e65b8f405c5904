"use strict";
(async () => {
  const SHOWN = 20, LONGEST = 600;
  const at = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (name && name.startsWith("text")) node.dir = "auto"; // Arabic and Hebrew run from the right
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const { total, name, pairs } = await unpack(at("flagged").textContent);
  const decided = new Map();
  let page = 0;

  // What differs: the words outside the longest common subsequence of both texts' words.
  const words = (text) => text.match(/\S+\s*|^\s+/g) || [];
  const differences = (first, second) => {
    const a = words(first), b = words(second);
    if (Math.max(a.length, b.length) > LONGEST) return [[[first, false]], [[second, false]]];
    const key = (w) => w.trim(), wide = b.length + 1;
    const common = new Uint16Array((a.length + 1) * wide);
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--)
        common[i * wide + j] = key(a[i]) === key(b[j]) ? common[(i + 1) * wide + j + 1] + 1
          : Math.max(common[(i + 1) * wide + j], common[i * wide + j + 1]);
    const runs = [[], []];
    const add = (side, word, differs) => {
      const last = runs[side].at(-1);
      if (last && last[1] === differs) last[0] += word; else runs[side].push([word, differs]);
    };
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && key(a[i]) === key(b[j])) { add(0, a[i++], false); add(1, b[j++], false); }
      else if (j >= b.length || (i < a.length && common[(i + 1) * wide + j] >= common[i * wide + j + 1])) add(0, a[i++], true);
      else add(1, b[j++], true);
    }
    return runs;
  };
  const side = (heading, runs) => {
    const box = make("div"), text = make("div", "text");
    for (const [part, differs] of runs) text.append(differs ? make("mark", "", part) : part);
    box.append(make("h4", "", heading), text);
    return box;
  };

  const decisionOf = (p) => decided.get(p.pair) || (p.drop ? "drop" : "keep");
  const choice = (p) => {
    const box = make("fieldset", "choice");
    box.append(make("legend", "", "Your decision"));
    for (const word of ["drop", "keep"]) {
      const label = make("label"), input = make("input");
      input.type = "radio"; input.name = `p${p.pair}`; input.value = word; input.checked = decisionOf(p) === word;
      input.addEventListener("change", () => { decided.set(p.pair, word); tell(); });
      label.append(input, ` ${word}`);
      box.append(label);
    }
    return box;
  };
  const card = (p) => {
    const box = make("article", decisionOf(p) === "drop" ? "pair" : "pair kept"), head = make("header");
    head.append(make("h3", "", `Row ${p.row}`));
    if (p.at) head.append(make("span", "soft", p.at));
    for (const issue of p.issues) head.append(make("span", "tag", issue));
    let facts = `suspicion ${p.suspicion.toFixed(2)}, margin ${p.margin.toFixed(2)}`;
    if (p.suggested !== "chosen") facts += `, suggested label: ${p.suggested}`;
    if (p.rater !== null) facts += `, rater ${p.rater}`;
    head.append(make("span", "soft", facts));
    box.append(head, make("p", "", p.reason));
    if (p.features) {
      box.append(make("p", "soft", "Chosen − rejected: " + p.features.map(([n, v]) => `${n} ${v > 0 ? "+" : ""}${v}`).join(", ")));
    } else {
      if (p.prompt) box.append(make("div", "text prompt", p.prompt));
      const runs = differences(p.chosen, p.rejected), sides = make("div", "sides");
      sides.append(side("Chosen", runs[0]), side("Rejected", runs[1]));
      box.append(sides);
    }
    box.append(choice(p));
    return box;
  };

  for (const p of pairs)
    p.all = [p.row, p.at, p.reason, p.rater, p.prompt, p.chosen, p.rejected, ...p.issues].filter(Boolean).join("\n").toLowerCase();
  const fill = (id, values) => {
    const counts = new Map();
    for (const v of values) if (v !== null) counts.set(v, (counts.get(v) || 0) + 1);
    for (const [v, n] of [...counts].sort((a, b) => b[1] - a[1])) {
      const option = make("option", "", `${v} (${n})`);
      option.value = v;
      at(id).append(option);
    }
    at(id).parentElement.hidden = counts.size === 0;
  };
  fill("by-issue", pairs.flatMap((p) => p.issues));
  fill("by-rater", pairs.map((p) => p.rater));

  const found = () => {
    const issue = at("by-issue").value, rater = at("by-rater").value, asked = at("by-text").value.trim().toLowerCase();
    return pairs.filter((p) => (!issue || p.issues.includes(issue)) && (!rater || p.rater === rater)
      && (!asked || p.all.includes(asked)));
  };
  const tell = () => {
    const dropped = pairs.filter((p) => decisionOf(p) === "drop").length;
    at("decided").textContent = `${decided.size} decided by you; ${dropped} of ${pairs.length} flagged pairs are dropped.`;
  };
  const show = () => {
    const some = found(), pages = Math.max(1, Math.ceil(some.length / SHOWN));
    page = Math.min(Math.max(page, 0), pages - 1);
    const here = some.slice(page * SHOWN, (page + 1) * SHOWN);
    at("cards").replaceChildren(...here.map(card));
    at("place").textContent = some.length ? `${page * SHOWN + 1}–${page * SHOWN + here.length} of ${some.length}` : "no pair";
    at("before").disabled = page === 0;
    at("after").disabled = page === pages - 1;
    tell();
  };
  for (const id of ["by-issue", "by-rater", "by-text"])
    at(id).addEventListener("input", () => { page = 0; show(); });
  at("before").addEventListener("click", () => { page--; show(); at("pairs").scrollIntoView(); });
  at("after").addEventListener("click", () => { page++; show(); at("pairs").scrollIntoView(); });

  const entries = () => pairs.map((p) => ({ pair: p.pair, row: p.row, decision: decisionOf(p), by: decided.has(p.pair) ? "you" : "advice", check: p.check }));
  const asJson = () => JSON.stringify({ schema: "robust_rlhf_jax.decisions", version: 1, file: name, pairs: total, decisions: entries() }, null, 1) + "\n";
  const asCsv = () => ["pair,row,decision,by,check", ...entries().map((e) => [e.pair, e.row, e.decision, e.by, e.check].join(","))].join("\n") + "\n";
  const save = (file, text, type) => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  at("save-json").addEventListener("click", () => save("decisions.json", asJson(), "application/json"));
  at("save-csv").addEventListener("click", () => save("decisions.csv", asCsv(), "text/csv"));

  show();
  at("fixed").hidden = true;
  at("tools").hidden = at("pages").hidden = false;
  document.body.dataset.ready = String(pairs.length);
})();
