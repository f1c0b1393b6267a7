// The rows of a table: filtered, page by page, and deleted by whoever may. Values are parameters of the statements,
// never a part of their text. Before rows are deleted it is said how many there are and how they are found.
import { fromBase64, identifier, look, mayRead, named, NOT_READ, Refused, sql, toBase64 } from "./ask.js";
import { address, at, button, close, link, make, open, scroller } from "./dom.js";
import { Grid } from "./grid.js";
import { bytes, formOf, isNumber, rows as rowsOf, shown } from "./words.js";

const PAGE = 50;
// Signs of a value that are read: a row may have a megabyte.
const SIGNS = 200;
// Operators, and whether they take a value.
const OPERATORS = { "=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true, LIKE: true, "IS NULL": false, "IS NOT NULL": false };

const COLUMNS = `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, coalesce(i.place, 0) AS place
  FROM sqlcached_tables t JOIN pg_attribute a ON a.attrelid = t.oid
  LEFT JOIN (SELECT indrelid, unnest(indkey) AS attnum, 1 AS place FROM pg_index WHERE indisprimary) AS i ON i.indrelid = t.oid AND i.attnum = a.attnum
  WHERE t.table_name = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;
const ORDERED = "SELECT ordered FROM sqlcached_indexes WHERE table_name = $1 AND is_primary";

const isBytes = (type) => type === "bytea";
const isLong = (type) => isBytes(type) || /^(text|character varying|json|jsonb|xml)/.test(type) || type.endsWith("[]");

// What somebody typed, as a parameter of the column's type.
function parameter(type, text) {
  if (isBytes(type)) {
    const hex = /^\\x((?:[0-9a-f]{2})*)$/i.exec(text);
    const bytes = hex ? Uint8Array.from(hex[1].match(/../g) ?? [], (two) => parseInt(two, 16)) : new TextEncoder().encode(text);
    return { base64: toBase64(bytes) };
  }
  if (type === "boolean") return /^(t|true|yes|on|1)$/i.test(text);
  return isNumber(type) && text.trim() !== "" && Number.isSafeInteger(Number(text)) ? Number(text) : text;
}

// Bytes that are a text are shown as it, also where they were cut within a sign.
function readable(value) {
  if (typeof value !== "object" || value === null || value.base64 === undefined) return shown(value);
  const bytes = fromBase64(value.base64);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: bytes.length > SIGNS });
  } catch {
    return `\\x${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }
}

function clipped(value) {
  const text = readable(value);
  return text.length > SIGNS ? `${text.slice(0, SIGNS)}…` : text;
}

// The first signs of a column, and one more, which says that there are more.
const begin = (own, type) => isBytes(type) ? `substr(${own}, 1, ${SIGNS + 1})` : `left(CAST(${own} AS text), ${SIGNS + 1})`;

// Conditions as a WHERE and its parameters. Operators are of the list above, names are quoted.
function where(conditions) {
  const parameters = [];
  const texts = conditions.map(({ column, operator, value }) => {
    if (OPERATORS[operator]) parameters.push(value);
    return `${identifier(column)} ${operator}${OPERATORS[operator] ? ` $${parameters.length}` : ""}`;
  });
  return { text: texts.length ? ` WHERE ${texts.join(" AND ")}` : "", parameters };
}

export class Rows {
  constructor(name, query) {
    // It asks when somebody wants rows, and not again and again.
    Object.assign(this, { name, columns: null, first: Number(query.first) || 0, quiet: true });
    this.asked = this.readConditions(query.where);
    this.filter = make("form", { id: "conditions", onsubmit: (event) => { event.preventDefault(); this.turnTo(0); } });
    this.words = make("p", { id: "rows-words", role: "status" }, "waiting for the table's columns");
    this.place = make("div", {});
    this.box = [this.filter, this.words, this.place];
  }

  // What an address says is taken for nothing but names, operators and values.
  readConditions(text) {
    try {
      const all = JSON.parse(text ?? "[]");
      const is = (own) => Array.isArray(own) && typeof own[0] === "string" && Object.hasOwn(OPERATORS, own[1]) && typeof own[2] === "string";
      return all.filter(is);
    } catch { return []; }
  }

  async turn(number) {
    if (number === 0) await this.begin();
  }

  async begin() {
    try {
      const [columns, ordered] = await Promise.all([look(COLUMNS, [this.name]), look(ORDERED, [this.name])]);
      this.columns = named(columns);
      this.isOrdered = ordered.rows[0]?.[0] === true;
      if (this.columns.length === 0) throw new Refused("there is no table of this name");
      if (!await mayRead(this.name)) throw new Refused(NOT_READ);
      this.drawFilter();
      await this.read();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.tell(error.message, true);
    }
  }

  tell(words, failed = false) {
    this.words.textContent = words;
    this.words.className = failed ? "error" : "";
  }

  get keys() { return this.columns.filter(({ place }) => place > 0); }

  drawFilter() {
    const lines = make("div", { id: "lines" }, ...this.asked.map((own) => this.line(own)));
    const add = button("Add a condition", () => { lines.append(this.line()); lines.lastChild.querySelector("select").focus(); });
    const all = button("Delete these rows", () => this.askToDelete(this.conditions()), { id: "delete-all" });
    this.filter.replaceChildren(lines, make("p", { className: "buttons" }, add, make("button", { type: "submit" }, "Show rows"), all));
  }

  // A condition: a column, an operator, a value.
  line([column, operator, value] = []) {
    const names = make("select", { "aria-label": "Column" }, ...this.columns.map(({ name }) => make("option", { value: name }, name)));
    const operators = make("select", { "aria-label": "Operator" }, ...Object.keys(OPERATORS).map((own) => make("option", { value: own }, own)));
    const input = make("input", { "aria-label": "Value", autocomplete: "off", spellcheck: false, value: value ?? "" });
    if (column !== undefined) [names.value, operators.value] = [column, operator];
    const follow = () => { input.hidden = !OPERATORS[operators.value]; };
    operators.addEventListener("change", follow);
    follow();
    const line = make("p", { className: "condition" }, names, operators, input);
    line.append(button("×", () => line.remove(), { "aria-label": "Remove this condition" }));
    return line;
  }

  typed() {
    return [...this.filter.querySelectorAll(".condition")].map((line) => [...line.querySelectorAll("select, input")].map((own) => own.value));
  }

  conditions() {
    return this.typed().map(([column, operator, text]) => {
      const { type } = this.columns.find(({ name }) => name === column) ?? { type: "text" };
      return { column, operator, value: parameter(type, text) };
    });
  }

  // The address has the conditions and the page, so that they can be gone back to. It never deletes.
  turnTo(first) {
    const typed = this.typed();
    location.hash = address("table", [this.name, "rows"], { where: typed.length ? JSON.stringify(typed) : undefined, first: first || undefined });
    if (first === this.first && JSON.stringify(typed) === JSON.stringify(this.asked)) this.read();
  }

  // One row more than is shown says whether there is a next page.
  async read() {
    const { text, parameters } = where(this.conditions());
    const key = (name) => this.keys.some((own) => own.name === name);
    const cut = ({ name, type }) => isLong(type) && !key(name) ? `${begin(identifier(name), type)} AS ${identifier(name)}` : identifier(name);
    const order = this.isOrdered ? ` ORDER BY ${this.keys.map(({ name }) => identifier(name)).join(", ")}` : "";
    const list = [...this.columns.map(cut), "_ttl", "_age", "_size"].join(", ");
    this.tell("reading rows");
    try {
      const began = performance.now();
      const answer = await look(`SELECT ${list} FROM ${identifier(this.name)}${text}${order} LIMIT ${PAGE + 1} OFFSET ${this.first}`, parameters);
      this.draw(answer, performance.now() - began);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.place.replaceChildren();
      this.tell(error.message, true);
    }
  }

  draw({ columns, rows }, took) {
    const isKey = this.keys.length > 0;
    const shownColumns = columns.map((column, index) => this.formOf(column, this.columns[index]?.type));
    if (isKey) shownColumns.push({ name: "action", className: "action", of: (row) => this.deletes(row) });
    const grid = new Grid(shownColumns, { empty: "no row is like this", label: "Rows", key: (row) => this.nameOf(row) });
    grid.fill(rows.slice(0, PAGE));
    grid.table.id = "rows";
    const last = this.first + Math.min(rows.length, PAGE);
    const which = `rows ${this.first + 1} to ${last}${rows.length > PAGE ? "" : ", the last"}`;
    this.tell(rows.length ? `${which}, in ${took.toFixed(0)} ms${this.isOrdered ? "" : "; in no order"}` : "no row");
    const turn = (words, first, there) => there ? [link(words, this.addressOf(first))] : [];
    const turns = [...turn("Earlier", Math.max(0, this.first - PAGE), this.first > 0), ...turn("Next", this.first + PAGE, rows.length > PAGE)];
    this.place.replaceChildren(scroller("Rows", grid.table), make("p", { className: "buttons", id: "turns" }, ...turns));
  }

  deletes(row) {
    return button("delete", () => this.askToDelete(this.ofRow(row)), { "aria-label": `delete the row ${this.nameOf(row)}` });
  }

  // A value of a row is shown as it is. What is known of the row beside its columns is a figure.
  formOf({ name, type }, own) {
    if (own) return { name, number: isNumber(own), show: isLong(own) ? clipped : readable };
    return { name, number: true, show: name === "_size" ? bytes : formOf({ name, type }) };
  }

  addressOf(first) {
    return address("table", [this.name, "rows"], { where: this.asked.length ? JSON.stringify(this.asked) : undefined, first: first || undefined });
  }

  nameOf(row) {
    const keys = this.columns.flatMap(({ place }, index) => place > 0 ? [readable(row[index])] : []);
    return keys.length ? keys.join(", ") : row.map(readable).join(", ");
  }

  ofRow(row) {
    return this.columns.flatMap(({ name, place }, index) => place > 0 ? [{ column: name, operator: "=", value: row[index] }] : []);
  }

  // Counts before it asks: nobody deletes what was not counted.
  async askToDelete(conditions) {
    const { text, parameters } = where(conditions);
    const from = `FROM ${identifier(this.name)}${text}`;
    const statement = `DELETE ${from}`;
    const values = parameters.map((value, index) => make("li", {}, `$${index + 1} = ${readable(value)}`));
    const say = make("p", { id: "cost", role: "status" }, "counting the rows");
    open("Delete rows", make("pre", { className: "statement" }, statement), make("ul", {}, ...values), say);
    try {
      const began = performance.now();
      const counted = await look(`SELECT count(*) ${from}`, parameters);
      const plan = await look(`EXPLAIN ${statement}`, parameters);
      this.offer(say, statement, parameters, counted.rows[0][0], plan.rows.map(([line]) => line), performance.now() - began);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say.textContent = error.message;
      say.className = "error";
    }
  }

  offer(say, statement, parameters, number, plan, took) {
    const words = statement.includes(" WHERE ") ? "" : " This is the whole table.";
    say.textContent = `${rowsOf(number)} will be deleted.${words} Counting took ${took.toFixed(0)} ms. This is how they are found:`;
    const remove = () => this.remove(say, statement, parameters, act);
    const act = button(`Delete ${rowsOf(number)}`, remove, { id: "delete", className: "danger", disabled: Number(number) === 0 });
    const keep = button("Keep them", close, { id: "keep" });
    at("details-body").append(make("pre", { className: "statement" }, plan.join("\n")), make("p", { className: "buttons" }, keep, act));
    keep.focus();
  }

  async remove(say, statement, parameters, act) {
    act.disabled = true;
    say.textContent = "deleting";
    try {
      const began = performance.now();
      const { count } = await sql(statement, { write: true, parameters });
      close();
      await this.read();
      this.tell(`${rowsOf(count)} deleted in ${(performance.now() - began).toFixed(0)} ms; ${this.words.textContent}`);
    } catch (error) {
      say.textContent = error.message;
      say.className = "error";
    }
  }
}
