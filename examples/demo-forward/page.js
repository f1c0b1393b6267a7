// Shows how both shops do, twice a second, and says what the buttons want.
"use strict";

const EVERY = 500;

const at = (id) => document.getElementById(id);
const number = (value) => Math.round(value).toLocaleString("en");
const ms = (value) => value === null ? "?" : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const FACTS = [
  ["queries a second", (side) => number(side.rate), "large"],
  ["the dashboard's query", (side) => ms(side.dashboard_ms), "large"],
  ["queries", (side) => number(side.queries)],
  ["pages", (side) => number(side.visits)],
];

function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function row(cells, kind) {
  const line = make("tr", undefined, kind);
  for (const cell of cells) line.append(make("td", cell));
  return line;
}

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) at("verdict").textContent = await answer.text();
}

function side(facts) {
  const section = make("section");
  const list = make("dl");
  for (const [title, of, kind] of FACTS) list.append(make("dt", title), make("dd", of(facts), kind));
  section.append(make("h2", facts.name), list);
  return section;
}

function show(state) {
  at("sides").replaceChildren(...state.sides.map(side));
  at("psql").textContent = state.psql;
  at("console").href = state.console;
  at("product").max = state.products;
  for (const name of ["load", "editing"]) at(name).setAttribute("aria-pressed", String(state[name]));
  at("verdict").textContent = `${state.same} edits: both shops showed the same afterwards. Edits after which they differed: ${state.differing}.`;
  at("log").tBodies[0].replaceChildren(...state.edits.map((edit) =>
    row([edit.number, edit.sql, ms(edit.ms), edit.same ? "yes" : "no"], edit.same ? "" : "differs")));
  at("statements").tBodies[0].replaceChildren(...state.statements.map((kind) =>
    row([kind.statement, kind.state, kind.depends, [kind.reason, kind.cure].filter(Boolean).join("; "), number(kind.forwarded),
      number(kind.forwarded_ms), number(kind.hits)], kind.state)));
}

async function turn() {
  try {
    show(await (await fetch("/state")).json());
  } catch (why) {
    at("verdict").textContent = `The demo does not answer: ${why.message}`;
  }
}

for (const name of ["load", "editing"]) {
  at(name).addEventListener("click", () => post(`/${name}`, { on: at(name).getAttribute("aria-pressed") !== "true" }).then(turn));
}
at("edit").addEventListener("click", () => post("/edit", { product: Number(at("product").value) }).then(turn));
turn();
setInterval(turn, EVERY);
