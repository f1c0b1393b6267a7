// The page of a statement: its result as a table or as a chart, its plan, and statements that the browser keeps.
import { sql } from "./ask.js";
import { Chart } from "./chart.js";
import { address, at, button, link, make, scroller, section } from "./dom.js";
import { statement, write } from "./editor.js";
import { Grid } from "./grid.js";
import * as kept from "./kept.js";
import { View } from "./view.js";
import { count, isMoment, isNumber, moment, shown } from "./words.js";

// Rows that a chart of bars has at most.
const BARS = 100;

// The statement that runs, and the last result: they stay while other pages are looked at.
let running = null;
let result = null;
let outcome = { words: "", failed: false, place: "" };
let side = "table";
// The column that bars show, where it is one of the result.
let barred = "";
// Called when one of them changed.
let changed = () => {};

function tell(words, failed = false, place = "") {
  outcome = { words, failed, place };
  changed();
}

// The line of a statement with the place of its error, for letters of one width.
function caret(text, position) {
  const before = [...text].slice(0, position - 1).join("");
  const begin = before.lastIndexOf("\n") + 1;
  return `${text.slice(begin).split("\n")[0]}\n${" ".repeat([...before.slice(begin)].length)}^`;
}

function tellError(error, text) {
  if (error.name === "AbortError") return tell("stopped", true);
  const more = [error.detail, error.hint && `Hint: ${error.hint}`].filter(Boolean).join("\n");
  return tell(`${error.sqlstate || "error"}: ${error.message}${more ? `\n${more}` : ""}`, true, error.position ? caret(text, error.position) : "");
}

// Runs a statement. What was there before is gone: a result belongs to the statement above it.
export async function execute(text, shift = 0) {
  if (running || !text.trim()) return;
  running = new AbortController();
  result = null;
  at("stop").disabled = false;
  tell("running");
  const began = performance.now();
  try {
    const answer = await sql(text, { write: at("write").checked, signal: running.signal });
    result = answer;
    const rows = answer.count === null ? "" : ` ${answer.count}`;
    const notices = answer.notices.map(({ severity, message }) => `\n${severity}: ${message}`).join("");
    tell(`${answer.tag}${rows} in ${(performance.now() - began).toFixed(0)} ms${notices}`);
  } catch (error) {
    // The place is one of the statement in the box.
    if (error.position) error.position = Math.max(1, error.position - shift);
    tellError(error, text.slice(shift));
  } finally {
    running = null;
    at("stop").disabled = true;
    changed();
  }
}

export const stop = () => running?.abort();

export function submit() {
  const text = statement();
  kept.remember(text);
  if (location.hash !== address("sql", [text])) location.hash = address("sql", [text]);
  execute(text);
}

export function explain() {
  const text = statement();
  location.hash = address("sql", [text]);
  execute(`EXPLAIN ${text}`, "EXPLAIN ".length);
}

function csv({ columns, rows }) {
  const field = (value) => {
    const text = value === null ? "" : shown(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(field).join(",") + "\r\n").join("");
}

function download() {
  const file = make("a", { href: URL.createObjectURL(new Blob([csv(result)], { type: "text/csv" })), download: "sqlcached.csv" });
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 10_000);
}

// --- The result as a chart -----------------------------------------------------------------------------------------

const numbers = (columns) => columns.flatMap(({ type }, index) => isNumber(type) ? [index] : []);

// Lines over the first column that is a time; without one, bars with the first other column as their names.
function chartOf({ columns, rows }) {
  const figures = numbers(columns);
  const time = columns.findIndex(({ type }) => isMoment(type));
  if (rows.length === 0 || figures.length === 0) return make("p", { className: "empty" }, "a chart needs rows with numbers");
  return time < 0 ? bars(columns, rows, figures) : lines(columns, rows, figures, time);
}

function lines(columns, rows, figures, time) {
  const sorted = rows.filter((row) => row[time] !== null).map((row) => [moment(row[time]), row]).sort(([one], [other]) => one - other);
  const [first, last] = [sorted[0]?.[0] ?? 0, sorted.at(-1)?.[0] ?? 0];
  const view = new View(last - first, () => chart.draw());
  view.part = [first, Math.max(last, first + 1000)];
  view.follow = () => { view.part = [first, Math.max(last, first + 1000)]; chart.draw(); };
  const chart = new Chart(figures.map((index) => columns[index].name).join(", "), view, { show: count });
  const values = (row) => Object.fromEntries(figures.map((index) => [columns[index].name, row[index] === null ? NaN : Number(row[index])]));
  // All of them are one line: nothing is known of the time between two rows.
  chart.fill(sorted.map(([at, row]) => ({ moment: at, seconds: (last - first) / 1000, values: values(row) })));
  requestAnimationFrame(() => chart.draw());
  return chart.box;
}

function bars(columns, rows, figures) {
  const names = columns.findIndex((_, index) => !figures.includes(index));
  const figure = figures.find((index) => columns[index].name === barred) ?? figures[0];
  const most = Math.max(...rows.map((row) => Math.abs(Number(row[figure]))), 1e-9);
  const own = (row) => {
    const bar = make("span", { className: "bar" });
    bar.style.width = `${Math.abs(Number(row[figure])) / most * 100}%`;
    return bar;
  };
  const grid = new Grid([
    { name: names < 0 ? "row" : columns[names].name }, { name: columns[figure].name, number: true },
    { name: "as a bar", of: (row) => own(row.all) },
  ], { label: "Result as bars" });
  grid.fill(rows.slice(0, BARS).map((row, index) => Object.assign([names < 0 ? index + 1 : row[names], row[figure]], { all: row })));
  grid.table.className = "bars";
  const option = (index) => make("option", { value: columns[index].name, selected: index === figure }, columns[index].name);
  const choice = make("select", {}, ...figures.map(option));
  choice.addEventListener("change", () => { barred = choice.value; changed(); });
  return make("div", {}, make("p", { className: "buttons" }, make("label", {}, "Bars of ", choice)), scroller("Result as bars", grid.table));
}

// --- The page ------------------------------------------------------------------------------------------------------

class Query {
  constructor({ parts: [text] }) {
    // It asks nothing by itself.
    this.quiet = true;
    // A link brings a statement, and does not run it.
    if (text !== undefined && text !== statement()) write(text);
    this.outcome = make("p", { id: "outcome", role: "status" });
    this.caret = make("pre", { id: "caret", className: "error" });
    this.csv = button("CSV", download, { id: "csv" });
    this.sides = ["table", "chart"].map((name) => button(name, () => { side = name; this.draw(); }, { id: `as-${name}` }));
    this.result = make("div", { id: "result-place" });
    this.kept = make("div", { id: "kept" });
    this.box = [make("div", { className: "buttons" }, this.outcome, ...this.sides, this.csv), this.caret, this.result, this.kept];
    changed = () => this.draw();
    this.draw();
    this.drawKept();
  }

  draw() {
    this.outcome.textContent = outcome.words || "The statement has not run: Ctrl Enter runs it.";
    this.outcome.className = outcome.failed ? "error" : "";
    this.caret.textContent = outcome.place;
    this.caret.hidden = !outcome.place;
    const has = Boolean(result?.columns.length);
    this.csv.disabled = !has;
    this.sides.forEach((own) => { own.disabled = !has; own.setAttribute("aria-pressed", own.id === `as-${side}`); });
    this.result.replaceChildren(...has ? [side === "chart" ? chartOf(result) : tableOf(result)] : []);
    if (outcome.words && !running) this.drawKept();
  }

  drawKept() {
    const name = make("input", { id: "save-name", "aria-label": "Name", placeholder: "a name", autocomplete: "off", maxLength: 80 });
    const form = make("form", { className: "buttons", onsubmit: (event) => { event.preventDefault(); this.save(name.value.trim()); } },
      make("label", {}, "Save the statement as ", name), make("button", { type: "submit" }, "Save"));
    const grid = new Grid([
      { name: "name", of: ([own, text]) => link(own, address("sql", [text])) }, { name: "statement" },
      { name: "action", of: ([own]) => button("forget", () => { kept.forget(own); this.drawKept(); }, { "aria-label": `forget ${own}` }) },
    ], { empty: "nothing is saved in this browser", label: "Saved statements" });
    grid.fill(kept.saved().map((own) => [own.name, own.text]));
    const opened = { name: "statement", of: ([text]) => link(text, address("sql", [text])) };
    const ran = new Grid([opened], { empty: "nothing ran in this browser", label: "Earlier statements" });
    ran.fill(kept.ran().map((text) => [text]));
    ran.table.id = "earlier";
    grid.table.id = "saved";
    const typed = this.kept.querySelector("#save-name")?.value;
    if (typed) name.value = typed;
    const [saved, earlier] = [scroller("Saved statements", grid.table), scroller("Earlier statements", ran.table)];
    this.kept.replaceChildren(form, section("Saved in this browser", saved), section("Ran in this browser", earlier));
  }

  save(name) {
    if (!name || !statement().trim()) return;
    const done = kept.save(name, statement());
    this.kept.querySelector("#save-name").value = "";
    this.drawKept();
    if (!done) tell("this browser keeps nothing", true);
  }
}

function tableOf({ columns, rows }) {
  const grid = new Grid(columns.map(({ name, type }) => ({ name, number: isNumber(type) })), { empty: "no rows", label: "Result" });
  grid.table.id = "result";
  grid.fill(rows);
  return scroller("Result", grid.table);
}

export const query = { name: "sql", title: "SQL", key: "s", open: (place) => new Query(place) };
