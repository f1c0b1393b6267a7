// Pages that list a system table: one entry each. The headings are the names of the table's columns, so they mean what
// docs/introspection.md says; a row opens all of its columns.
import { look, monitors, named, NOT_SHOWN, Refused, sql } from "./ask.js";
import { address, button, facts, link, make, open, scroller, section } from "./dom.js";
import { Grid } from "./grid.js";
import { now } from "./time.js";
import { clock, duration, formOf, heading, isNumber, moment } from "./words.js";

const SECONDS = { ms: 0.001, s: 1, min: 60, h: 3600, d: 86400 };

// A rule runs again so long after the end of its last run.
function nextRun({ every, last_run: ended }) {
  const [, number, unit] = /^([\d.]+) ?([a-z]+)$/.exec(every) || [];
  if (!ended || !SECONDS[unit]) return "soon";
  const left = moment(ended) + number * SECONDS[unit] * 1000 - now();
  return left > 1000 ? `in ${duration(left / 1000)}` : "now";
}

function cancel({ pid, state }) {
  if (state !== "active") return null;
  const ask = ({ target }) => sql("SELECT pg_cancel_backend($1)", { parameters: [pid] })
    .then(() => { target.textContent = "cancelled"; }, (error) => { target.textContent = error.message; });
  return button("cancel", ask, { "aria-label": `cancel the statement of session ${pid}` });
}

const SETTING = "SELECT setting FROM sqlcached_settings WHERE name = $1";
const WHO = ["role_name", "client_addr", "protocol"];

// `from`: the table and which of its rows; `columns`: those of the list, the others are in a row's details; `key`: what
// names a row; `own`: columns that are computed here; `empty`: what it means that there is none; `off`: a setting, its
// value for off, and what that means; `shownTo`: who sees its rows, if not everybody.
const ENTRIES = [
  {
    name: "keys", title: "Hot keys", key: "h", about: "Keys that memcached clients used most in the last minute, from a sample.",
    parts: [{
      from: "sqlcached_hot ORDER BY reads + writes DESC LIMIT 500", sort: "reads",
      columns: ["key", "table_name", "reads", "writes", "share"],
      empty: "no memcached client used a key in the last minute",
    }],
  },
  {
    name: "invalidations", title: "Invalidations", key: "i", about: "The last 1,024 events that made rows invalid together.",
    parts: [{
      from: "sqlcached_invalidations ORDER BY at DESC", shownTo: "monitors",
      columns: ["at", "what", "table_name", "rows", ...WHO, "statement", "times", "duration_ms"],
      empty: "nothing was invalidated since the start, but single keys",
    }],
  },
  {
    name: "sessions", title: "Sessions", key: "e", about: "PostgreSQL clients, and statements by HTTP. The console's own questions are left out.",
    parts: [{
      from: "sqlcached_sessions WHERE pid <> pg_backend_pid() AND (protocol <> 'http' OR application_name <> 'monitor') ORDER BY pid LIMIT 1000",
      columns: ["pid", "user_name", "application_name", "client_addr", "protocol", "state", "query", "query_started"], own: { action: cancel },
      empty: "no SQL client is connected",
    }],
  },
  {
    name: "statements", title: "Statements", key: "m", about: "Those that took most time. The console's own questions are not counted.",
    parts: [{
      from: "sqlcached_statements ORDER BY total_ms DESC LIMIT 200", sort: "total_ms",
      columns: ["query", "calls", "errors", "total_ms", "mean_ms", "max_ms", "rows", "plan"],
      empty: "no statement has run yet",
    }],
  },
  {
    name: "slow", title: "Slow statements", key: "w", about: "The last 128 that took log_min_duration_statement or longer.",
    parts: [{
      from: "sqlcached_slow ORDER BY at DESC", shownTo: "monitors",
      columns: ["at", "duration_ms", ...WHO, "statement", "parameters", "rows", "sqlstate"],
      empty: "no statement was slow",
      off: ["log_min_duration_statement", "-1", "log_min_duration_statement is off (-1): no statement is slow"],
    }],
  },
  {
    name: "rules", title: "Expiry rules", key: "x",
    parts: [{
      from: "sqlcached_expiry_rules ORDER BY rule_name LIMIT 500",
      columns: ["rule_name", "table_name", "condition", "every", "runs", "rows", "errors", "last_run", "last_rows", "last_ms", "last_error"],
      own: { "next run": nextRun },
      empty: "there is no expiry rule",
    }],
  },
  {
    name: "views", title: "Materialized views", key: "v",
    parts: [{
      from: "sqlcached_views ORDER BY view_name LIMIT 500",
      columns: ["view_name", "populated", "stale", "rows", "source", "refresh", "refreshes", "errors", "last_refresh", "last_ms", "next_in", "last_error"],
      empty: "there is no materialized view",
    }],
  },
  {
    name: "sources", title: "Sources", key: "u", about: "Databases behind this cache, whose changes invalidate rows here.",
    parts: [{
      from: "sqlcached_sources ORDER BY source_name LIMIT 500",
      columns: ["source_name", "state", "since", "lag_ms", "lag_bytes", "events", "invalidated", "transactions", "reconnects", "emptied",
        "fills", "fills_failed", "last_error"],
      empty: "no table names a source",
    }],
  },
  {
    name: "forwarded", title: "Forwarded statements", key: "f", about: "What clients send through this cache to a database behind.",
    parts: [{
      from: "sqlcached_forwarded ORDER BY forwarded_ms DESC LIMIT 500", sort: "forwarded_ms", shownTo: "monitors",
      key: ["server_name", "id", "user_name", "state"],
      columns: ["statement", "server_name", "user_name", "state", "forwarded", "forwarded_ms", "hits", "kept", "late", "depends", "reason", "cure"],
      empty: "no statement was forwarded",
    }],
  },
  {
    name: "buses", title: "Buses", key: "b", about: "On which caches tell one another what is invalid.",
    parts: [{
      title: "Buses", from: "sqlcached_buses ORDER BY bus_name LIMIT 500",
      columns: ["bus_name", "state", "since", "lag_ms", "outbox", "published", "invalidated", "rows_heard", "breaks", "unapplied", "emptied",
        "reconnects", "namesakes", "last_break", "last_unapplied", "last_error"],
      empty: "no table names a bus",
    }, {
      title: "Nodes", from: "sqlcached_nodes ORDER BY bus_name, name LIMIT 1000", key: ["bus_name", "node"],
      columns: ["name", "bus_name", "own", "namesake", "applied", "lag_ms", "outbox", "heard_ms"],
      empty: "no cache was heard in the last minute",
    }],
  },
  {
    name: "roles", title: "Roles", key: "r", about: "With their connections and refusals since the start.",
    parts: [{
      from: "sqlcached_roles ORDER BY role_name LIMIT 1000",
      columns: ["role_name", "logins", "failures", "refusals"],
      empty: "no roles are kept, or your role sees none",
    }],
  },
  {
    name: "refusals", title: "Refusals", key: "d", about: "The last 128: of connections, of memcached commands, of statements.",
    parts: [{
      from: "sqlcached_refusals ORDER BY at DESC", shownTo: "monitors",
      columns: ["at", "role_name", "client_addr", "protocol", "request", "reason"],
      empty: "nobody was refused",
    }],
  },
  {
    name: "settings", title: "Settings", key: "g",
    parts: [{
      from: "sqlcached_settings ORDER BY category, name",
      columns: ["name", "setting", "unit", "source", "category", "description"],
      empty: "no setting is known",
    }],
  },
];

const nameOf = ({ from }) => from.split(" ")[0];

// A list of one system table.
export class List {
  constructor(part) {
    Object.assign(this, { part, grid: null });
    this.place = make("div", { className: "list", id: nameOf(part) }, make("p", { className: "empty" }, `waiting for ${nameOf(part)}`));
    this.box = part.title ? section(part.title, this.place) : this.place;
  }

  async ask() {
    const { part } = this;
    try {
      const answer = await look(`SELECT * FROM ${part.from}`);
      const empty = answer.rows.length === 0 ? await this.whyEmpty() : part.empty;
      this.grid ??= this.begin(answer.columns);
      this.grid.fill(named(answer).map((row) => this.cells(row)), empty);
    } catch (error) {
      if (error instanceof Refused) this.fail(error.message); else throw error;
    }
  }

  // No row may mean that there is none, that nothing is noted, or that the role is not shown any.
  async whyEmpty() {
    const { off, shownTo, empty } = this.part;
    if (shownTo === "monitors" && !await monitors()) return NOT_SHOWN;
    if (off && (await look(SETTING, [off[0]])).rows[0]?.[0] === off[1]) return off[2];
    return empty;
  }

  fail(words) {
    this.grid = null;
    this.place.replaceChildren(make("p", { className: "error" }, words));
  }

  begin(types) {
    const { part } = this;
    this.types = types;
    const typeOf = (name) => types.find((column) => column.name === name) ?? { name, type: "text" };
    const columns = part.columns.map((name, index) => ({
      name: heading(name), number: isNumber(typeOf(name).type), show: formOf(typeOf(name)),
      of: index === 0 || name === "table_name" ? this.linked(name, typeOf(name)) : undefined,
    }));
    for (const [name, compute] of Object.entries(part.own ?? {})) columns.push({ name, of: (row) => compute(row.all) ?? "" });
    const key = part.key ?? [part.columns[0]];
    const label = nameOf(part);
    const sort = part.sort ? part.columns.indexOf(part.sort) : undefined;
    const grid = new Grid(columns, { empty: part.empty, sort, label, key: ({ all }) => key.map((name) => String(all[name])).join(" ") });
    grid.filter(this.wanted ?? "");
    this.place.replaceChildren(scroller(label, grid.table));
    return grid;
  }

  cells(row) {
    return Object.assign(this.part.columns.map((name) => row[name]), { all: row });
  }

  // The first column opens the row, and a table's name its page.
  linked(name, column) {
    const show = formOf(column);
    if (name === "table_name") return (row, value) => value === null ? "all tables" : link(value, address("table", [value]));
    return (row, value) => button(value === null ? "NULL" : show(value), () => this.details(row.all), { className: "link" });
  }

  details(row) {
    const pairs = this.types.map((column) => [heading(column.name), row[column.name] === null ? null : formOf(column)(row[column.name])]);
    open(nameOf(this.part), make("p", { className: "empty" }, `as it was at ${clock(now())}; what is NULL is left out`), facts(pairs));
  }

  filter(words) {
    this.wanted = words;
    this.grid?.filter(words);
  }
}

class ListPage {
  constructor(entry) {
    this.lists = entry.parts.map((part) => new List(part));
    const filter = make("input", { id: "filter", type: "search", autocomplete: "off" });
    filter.addEventListener("input", () => this.lists.forEach((list) => list.filter(filter.value)));
    const about = make("p", { className: "choices" }, make("span", {}, entry.about ?? ""), make("label", {}, "Filter ", filter));
    this.box = [about, ...this.lists.map((list) => list.box)];
  }

  async turn(number) {
    if (number % 2 === 0) await Promise.all(this.lists.map((list) => list.ask()));
  }
}

export const lists = ENTRIES.map((entry) => ({ ...entry, open: () => new ListPage(entry) }));
