// Shows how the caches do, four times a second, and says what the buttons want.
"use strict";

const at = (id) => document.getElementById(id);
const FACTS = [
  ["hears nothing since", (node) => node.lag_ms === null ? "?" : `${(node.lag_ms / 1000).toFixed(1)} s`],
  ["caches that it hears", (node) => node.heard],
  ["breaks", (node) => node.breaks],
  ["not told yet", (node) => node.outbox],
  ["rows", (node) => node.rows],
  ["hit ratio", (node) => node.hit_ratio === null ? "?" : `${(100 * node.hit_ratio).toFixed(0)} %`],
  ["visits", (node) => node.visits],
  ["not served", (node) => node.away],
  ["old prices", (node) => node.old],
];

function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) at("verdict").textContent = await answer.text();
}

function buttons(name, hows) {
  const row = make("p", undefined, "buttons");
  for (const how of hows) {
    const button = make("button", how);
    button.dataset.fail = `${name} ${how}`;
    button.addEventListener("click", () => post("/fail", { name, how }).then(turn));
    row.append(button, " ");
  }
  return row;
}

// Made once, so that a button is there while it is clicked.
function strip(place, name, hows, facts) {
  const known = at(name);
  if (known) return known;
  const section = make("section");
  section.id = name;
  const list = make("dl");
  for (const [title] of facts) list.append(make("dt", title), make("dd"));
  section.append(make("h2", name), make("p", "", "says"), list, buttons(name, hows));
  at(place).append(section);
  return section;
}

function show(state) {
  at("max-lag").textContent = state.max_lag;
  for (const node of state.nodes) {
    const section = strip("nodes", node.name, ["kill", "pause", "cut", "heal"], FACTS);
    const fresh = node.says === "fresh";
    section.className = fresh ? "good" : "bad";
    section.querySelector(".says").textContent = `${node.machine}, and ${fresh ? "it is fresh" : `it ${node.says}`}`;
    section.querySelectorAll("dd").forEach((cell, index) => { cell.textContent = FACTS[index][1](node) ?? "?"; });
  }
  for (const server of state.bus) {
    const section = strip("bus", server.name, ["kill", "pause", "heal"], []);
    section.className = server.state === "up" ? "good" : "bad";
    section.querySelector(".says").textContent = server.state;
  }
  for (const name of ["load", "editing"]) at(name).setAttribute("aria-pressed", String(state[name]));
  const old = state.nodes.reduce((sum, node) => sum + node.old, 0);
  at("verdict").textContent = `${state.acknowledged} edits were acknowledged. Old prices that a fresh cache showed: ${old}.`;
  at("log").tBodies[0].replaceChildren(...state.edits.map((edit) => {
    const line = make("tr");
    for (const cell of [edit.number, edit.product, edit.price, edit.acknowledged ?? "nobody"]) line.append(make("td", cell));
    return line;
  }));
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
setInterval(turn, 250);
