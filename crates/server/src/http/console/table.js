// A table's page: what it is and how it does, its rows, and what is in it by samples.
import { identifier, look, mayRead, named, NOT_READ, Refused } from "./ask.js";
import { address, facts, link, make, scroller, section } from "./dom.js";
import { Grid } from "./grid.js";
import { Rows } from "./rows.js";
import { bytes, count, duration, formOf, heading, isNumber, percent } from "./words.js";

// Upper bounds of the times to live that are counted together, in seconds, and their names.
const LIVES = [[10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [21600, "6 h"], [86400, "1 day"], [604800, "7 days"]];
// Rows that are looked at for them: some milliseconds, however large the table is.
const LOOKED_AT = 16384;

const COLUMNS = `SELECT a.attname AS column_name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
  pg_get_expr(d.adbin, d.adrelid) AS "default"
  FROM sqlcached_tables t JOIN pg_attribute a ON a.attrelid = t.oid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE t.table_name = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;
const OWNER = "SELECT pg_get_userbyid(c.relowner) AS owner FROM sqlcached_tables t JOIN pg_class c ON c.oid = t.oid WHERE t.table_name = $1";
const INDEXES = `SELECT index_name, columns, is_unique, is_primary, ordered, entries, bytes
  FROM sqlcached_indexes WHERE table_name = $1 ORDER BY is_primary DESC, index_name`;
const LIMITS = "SELECT rule, setting, unit, current, removed FROM sqlcached_limits WHERE table_name = $1 ORDER BY rule";
const RULES = `SELECT rule_name, condition, every, runs, rows, last_run, last_error
  FROM sqlcached_expiry_rules WHERE table_name = $1 ORDER BY rule_name`;
const HOT = "SELECT key, reads, writes, share FROM sqlcached_hot WHERE table_name = $1 ORDER BY reads + writes DESC LIMIT 25";
const PREFIXES = "SELECT prefix, rows, bytes, mean_bytes, sampled FROM sqlcached_prefixes WHERE table_name = $1 ORDER BY bytes DESC LIMIT 25";
const LARGEST = "SELECT key, bytes FROM sqlcached_largest WHERE table_name = $1 ORDER BY bytes DESC LIMIT 25";

// A section that shows the rows of a statement about the table.
class Part {
  constructor(title, statement, empty) {
    Object.assign(this, { title, statement, empty, place: make("div", {}, make("p", { className: "empty" }, "waiting for the server")) });
    this.box = section(title, this.place);
  }

  async ask(name) {
    try {
      const { columns, rows } = await look(this.statement, [name]);
      this.grid ??= this.begin(columns);
      this.grid.fill(rows, this.empty);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.refuse(error.message);
    }
  }

  refuse(words) {
    this.grid = undefined;
    this.place.replaceChildren(make("p", { className: "error" }, words));
  }

  begin(columns) {
    const shown = columns.map((column) => ({ name: heading(column.name), number: isNumber(column.type), show: formOf(column) }));
    const grid = new Grid(shown, { empty: this.empty, label: this.title });
    this.place.replaceChildren(scroller(this.title, grid.table));
    return grid;
  }
}

// What the table is and how it does.
class Definition {
  constructor(name) {
    this.name = name;
    this.facts = make("div", {}, make("p", { className: "empty" }, "waiting for sqlcached_tables"));
    this.slow = [
      new Part("Columns", COLUMNS, "it has no column"), new Part("Indexes", INDEXES, "it has no index and no primary key"),
      new Part("Limits", LIMITS, "nothing limits it but the memory of the server"), new Part("Expiry rules", RULES, "it has no expiry rule"),
    ];
    this.box = [section("Figures and options", this.facts), ...this.slow.map((part) => part.box)];
  }

  async turn(number) {
    if (number % 2 === 0) await this.askFacts();
    if (number % 10 === 0) await Promise.all(this.slow.map((part) => part.ask(this.name)));
  }

  async askFacts() {
    const answer = await look("SELECT * FROM sqlcached_tables WHERE table_name = $1", [this.name]);
    this.owner ??= (await look(OWNER, [this.name])).rows[0]?.[0];
    const [row] = named(answer);
    if (!row) {
      this.facts.replaceChildren(make("p", { className: "error" }, "there is no table of this name"));
      return;
    }
    const types = answer.columns.filter(({ name }) => name !== "table_name" && name !== "oid");
    const lookups = row.hits + row.misses;
    this.facts.replaceChildren(facts([
      ["owner", this.owner], ["hit ratio since the start", lookups > 0 ? percent(row.hits / lookups) : "no lookup"],
      ...types.map((column) => [heading(column.name), row[column.name] === null ? null : formOf(column)(row[column.name])]),
    ]));
  }
}

// How long rows have to live, how old they are, hot keys, prefixes, the largest rows. Samples cost time: seldom.
class Contents {
  constructor(name) {
    this.name = name;
    this.lives = make("div", {}, make("p", { className: "empty" }, "looking at a sample"));
    this.parts = [
      new Part("Hot keys of the last minute, estimated", HOT, "no memcached client used a key of it"),
      new Part("Prefixes of keys, estimated", PREFIXES, "the sample found no row"),
      new Part("Largest rows of the sample", LARGEST, "the sample found no row"),
    ];
    this.box = [section("Times to live", this.lives), ...this.parts.map((part) => part.box)];
  }

  async turn(number) {
    if (number % 10 !== 0) return;
    if (await mayRead(this.name)) {
      await Promise.all([this.askLives(), ...this.parts.map((part) => part.ask(this.name))]);
    } else {
      this.lives.replaceChildren(make("p", { className: "error" }, NOT_READ));
      this.parts.forEach((part) => part.refuse(NOT_READ));
    }
  }

  async askLives() {
    const steps = LIVES.map(([end], step) => `WHEN _ttl <= ${end} THEN ${step}`).join(" ");
    try {
      const { rows } = await look(`SELECT CASE WHEN _ttl IS NULL THEN ${LIVES.length + 1} ${steps} ELSE ${LIVES.length} END AS step,
        count(*) AS rows, max(_age) AS age
        FROM (SELECT _ttl, _age FROM ${identifier(this.name)} LIMIT ${LOOKED_AT}) AS seen GROUP BY 1 ORDER BY 1`);
      this.drawLives(rows);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.lives.replaceChildren(make("p", { className: "error" }, error.message));
    }
  }

  drawLives(rows) {
    const seen = rows.reduce((sum, [, own]) => sum + Number(own), 0);
    const names = [...LIVES.map(([, words]) => `up to ${words}`), `more than ${LIVES.at(-1)[1]}`, "without end"];
    const oldest = Math.max(...rows.map(([, , age]) => Number(age)));
    const among = seen < LOOKED_AT ? "" : `, among ${count(seen)} that were looked at`;
    const words = seen === 0 ? "no row" : `Oldest row: written ${duration(oldest)} ago${among}`;
    const grid = new Grid([
      { name: "ends in" }, { name: "rows", number: true, show: count }, { name: "share", number: true, show: percent },
      { name: "rows as a bar", of: ([, , own]) => bar(own) },
    ], { empty: "no row", label: "Times to live" });
    grid.fill(rows.map(([step, own]) => [names[step], Number(own), Number(own) / seen]));
    this.lives.replaceChildren(make("p", { className: "oldest" }, words), scroller("Times to live", grid.table));
  }
}

function bar(share) {
  const own = make("span", { className: "bar" });
  own.style.width = `${share * 12}rem`;
  return own;
}

const SIDES = [["", "Definition", Definition], ["rows", "Rows", Rows], ["keys", "Keys and sizes", Contents]];

class TablePage {
  constructor({ parts: [name = "", side = ""], query }) {
    const [, , Side] = SIDES.find(([own]) => own === side) ?? SIDES[0];
    this.title = name;
    this.side = new Side(name, query);
    this.quiet = this.side.quiet;
    const sideLink = ([own, words]) => link(words, address("table", own ? [name, own] : [name]), { "aria-current": own === side ? "page" : undefined });
    const links = SIDES.map((own) => make("li", {}, sideLink(own)));
    const all = make("li", {}, link("All tables", address("tables")));
    const sides = make("nav", { "aria-label": "Of this table" }, make("ul", { className: "sides" }, all, ...links));
    this.box = [sides, ...[this.side.box].flat()];
  }

  turn(number) { return this.side.turn(number); }
}

export const table = { name: "table", title: "Table", of: "tables", open: (place) => new TablePage(place) };
