// The box for SQL: its colours, and the completion of words. The box itself shows the caret alone; the statement is
// written once more behind it, in colours.
import { look } from "./ask.js";
import { at, make } from "./dom.js";

const KEYWORDS = ("SELECT FROM WHERE GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET AND OR NOT NULL IS IN LIKE BETWEEN AS JOIN LEFT ON USING DISTINCT " +
  "COUNT SUM MIN MAX AVG CASE WHEN THEN ELSE END INSERT INTO VALUES UPDATE SET DELETE TRUNCATE CREATE TABLE INDEX DROP ALTER WITH EXPLAIN").split(" ");
const IS_WORD = new Set(KEYWORDS.map((word) => word.toLowerCase()));
const OFFERED = 8;
const TOKEN = new RegExp([
  "(?<note>--[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$))", "(?<text>'(?:[^']|'')*(?:'|$))", "(?<name>\"(?:[^\"]|\"\")*(?:\"|$))", "(?<value>\\$\\d+)",
  "(?<digits>\\b\\d+(?:\\.\\d+)?\\b)", "(?<word>[A-Za-z_][A-Za-z_0-9]*)",
].join("|"), "g");
const NAMES = `SELECT table_name FROM information_schema.tables UNION SELECT column_name FROM information_schema.columns
  WHERE table_schema = 'public' OR table_name LIKE 'sqlcached%' LIMIT 5000`;

const box = () => at("statement");
export const statement = () => box().value;

export function write(text) { box().value = text; paint(); }

function paint() {
  const [text, parts] = [statement(), []];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [kind] = Object.entries(found.groups).find(([, part]) => part !== undefined);
    if (kind === "word" && !IS_WORD.has(found[0].toLowerCase())) continue;
    parts.push(text.slice(end, found.index), make("span", { className: kind }, found[0]));
    end = found.index + found[0].length;
  }
  // A last empty line takes its place, too.
  at("paint").replaceChildren(...parts, text.slice(end), "\n");
  follow();
}

function follow() { at("paint").scrollTop = box().scrollTop; }

// --- Completion ----------------------------------------------------------------------------------------------------

let known = null;
let chosen = 0;

// The names of tables and columns, read when the first word is completed.
async function names() {
  known ??= look(NAMES).then(({ rows }) => rows.map(([name]) => name)).catch(() => { known = null; return []; });
  return known;
}

function begun() {
  const found = /[A-Za-z_][A-Za-z_0-9]*$/.exec(statement().slice(0, box().selectionStart));
  return found ? found[0] : "";
}

async function offer() {
  const all = [...await names(), ...KEYWORDS];
  const word = begun();
  const fits = (name) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word;
  const fitting = word ? [...new Set(all.filter(fits))].slice(0, OFFERED) : [];
  at("words").replaceChildren(...fitting.map(option));
  at("words").hidden = fitting.length === 0;
  choose(0);
}

function option(name, index) {
  const quoted = /^[a-z_][a-z_0-9]*$|^[A-Z]+$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
  const item = make("li", { id: `word-${index}`, role: "option", "data-text": quoted }, name);
  item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(item); });
  return item;
}

function choose(index) {
  const all = [...at("words").children];
  chosen = all.length ? (index + all.length) % all.length : 0;
  all.forEach((item, own) => item.setAttribute("aria-selected", own === chosen));
  if (all.length) box().setAttribute("aria-activedescendant", all[chosen].id);
  else box().removeAttribute("aria-activedescendant");
}

function closeWords() { at("words").hidden = true; at("words").replaceChildren(); choose(0); }

function take(item) {
  box().setRangeText(item.dataset.text, box().selectionStart - begun().length, box().selectionStart, "end");
  paint();
  closeWords();
}

const takeChosen = () => take(at("words").children[chosen]);
const WORD_KEYS = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Escape: closeWords, Tab: takeChosen, Enter: takeChosen };

function press(event, submit) {
  const controls = event.ctrlKey || event.metaKey;
  if (event.key === " " && event.ctrlKey) { event.preventDefault(); offer(); return; }
  if (event.key === "Enter" && controls) { event.preventDefault(); submit(); return; }
  const act = at("words").hidden || controls ? null : WORD_KEYS[event.key];
  if (act) { event.preventDefault(); act(); } else if (event.key === "Escape") box().blur();
}

// `submit` runs the statement.
export function listen(submit) {
  box().addEventListener("keydown", (event) => press(event, submit));
  box().addEventListener("scroll", follow);
  box().addEventListener("input", () => { paint(); if (!at("words").hidden) offer(); });
  box().addEventListener("blur", closeWords);
  paint();
}
