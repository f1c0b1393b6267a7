// Shows what the server counts, once in half a second, and passes clicks on. Values become text, never markup.
"use strict";

const EVERY_MS = 500;
const USER = 5;
const FIGURES = [
  ["hit ratio", (half) => half.hit_ratio === null ? "-" : `${(100 * half.hit_ratio).toFixed(1)} %`],
  ["fragments made a second", (half) => half.made_a_second.toFixed(1)],
  ["database queries a second", (half) => half.queries_a_second.toFixed(0)],
  ["page, median", (half) => half.page_ms === null ? "-" : `${half.page_ms.toFixed(1)} ms`],
  ["page, slowest twentieth", (half) => half.slow_ms === null ? "-" : `${half.slow_ms.toFixed(0)} ms`],
  ["requests to the cache a page", (half) => half.requests_a_visit === null ? "-" : half.requests_a_visit.toFixed(1)],
  ["fragments made in all", (half) => String(half.totals.made)],
  ["pages with an old price", (half) => String(half.totals.old)],
];
const MARKS = { "-": "", "+": "made", "o": "kept" };
const NAMES = ["memcached", "sqlcached"];

const $ = (selector, from = document) => from.querySelector(selector);
const made = (name, text = "") => Object.assign(document.createElement(name), { textContent: text });
let state = null;

function build(name) {
  const half = document.getElementById(name);
  for (const [title] of FIGURES) {
    const cell = made("div");
    cell.append(made("dt", title), made("dd"));
    $("dl", half).append(cell);
  }
  for (const fragment of state.names) {
    $(".map", half).append(Object.assign(made("i"), { title: fragment }));
  }
}

function chart(svg, values, most) {
  const width = 240 / values.length;
  svg.replaceChildren(...values.map((value, at) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const height = most ? 58 * value / most : 0;
    Object.entries({ x: at * width, y: 60 - height, width: width * 0.8, height }).forEach(([key, text]) => bar.setAttribute(key, text));
    return bar;
  }));
}

function show(name, most) {
  const [half, figures] = [document.getElementById(name), state.halves[name]];
  half.querySelectorAll("dd").forEach((cell, at) => { cell.textContent = FIGURES[at][1](figures); });
  chart($(".chart", half), figures.chart, most);
  const [first, second] = half.querySelectorAll("figcaption");
  first.textContent = `Fragments made in each of the last ${figures.chart.length} seconds; full height: ${most}`;
  const cells = $(".map", half).children;
  [...figures.map].forEach((letter, at) => { cells[at].className = MARKS[letter]; });
  const cached = [...figures.map].filter((letter) => letter !== "-").length;
  second.textContent = `All fragments of the shop: ${cached} of ${state.names.length} are in the cache. Orange: made in this moment.`;
  $(".chart", half).setAttribute("aria-label", first.textContent);
  $(".map", half).setAttribute("aria-label", second.textContent);
}

function showAll() {
  const most = Math.max(10, ...NAMES.flatMap((name) => state.halves[name].chart));
  NAMES.forEach((name) => show(name, most));
  for (const [id, on, texts] of [["load", state.load, ["Start the load", "Stop the load"]], ["editing", state.editing, ["Edit a product every 2 s", "Stop editing"]]]) {
    const button = document.getElementById(id);
    button.setAttribute("aria-pressed", String(on));
    button.textContent = texts[Number(on)];
  }
  $("#way").value = state.way;
  $("#log tbody").replaceChildren(...state.edits.map((edit) => {
    const row = made("tr");
    row.dataset.number = edit.number;
    const cells = [edit.product, `${edit.price}.00`, edit.showing, edit.removed.memcached, edit.removed.sqlcached];
    row.append(...cells.map((cell) => made("td", String(cell))));
    return row;
  }));
  $("#notes").textContent = `The load: ${state.rate} visitors a second in each half, the same ones at the same moments. ` +
    `Making a fragment runs its queries, and waits ${state.make_ms} ms in place of a template and a distant database. ` +
    "Ratios, rates and times are those of the last ten seconds. A list takes a query for each product that it shows.";
}

function say(text) {
  $("#message").textContent = text;
}

async function refresh() {
  try {
    const answer = await fetch("/state");
    const first = state === null;
    state = await answer.json();
    if (first) {
      Object.entries(state.ways).forEach(([way, text]) => $("#way").append(Object.assign(made("option", text), { value: way })));
      $("#product").max = state.products;
      NAMES.forEach(build);
    }
    showAll();
    if ($("#message").dataset.away) say("");
    delete $("#message").dataset.away;
  } catch (why) {
    say(`The demo does not answer: ${why.message}`);
    $("#message").dataset.away = "1";
  }
}

async function post(path, body) {
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    say("");
  } catch (why) {
    say(why.message);
  }
  await refresh();
}

function visit() {
  const [kind, number] = (location.hash.slice(1) || "product/17").split("/");
  const path = [encodeURIComponent(kind), Number(number) || 0, USER].join("/");
  NAMES.forEach((name) => { $("iframe", document.getElementById(name)).src = `/shop/${name}/${path}`; });
}

async function edit() {
  await post("/edit", { product: Number($("#product").value) });
  if (!state.load) visit();
}

$("#edit").addEventListener("click", edit);
$("#controls").addEventListener("submit", (event) => { event.preventDefault(); edit(); });
$("#load").addEventListener("click", () => post("/load", { on: !state.load }));
$("#editing").addEventListener("click", () => post("/editing", { on: !state.editing }));
$("#way").addEventListener("change", (event) => post("/way", { way: event.target.value }));
window.addEventListener("hashchange", visit);
visit();
refresh();
setInterval(() => { if (!document.hidden) refresh(); }, EVERY_MS);
