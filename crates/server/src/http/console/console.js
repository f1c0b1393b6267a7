// The console: reads /metrics each second and draws it; statements go to /sql. What was before the page was opened comes
// from sqlcached_history. No library, and no request elsewhere.
// Whatever the server holds is put into the page as text, never as markup.
"use strict";

// Points of a chart at most, whatever its time is.
const POINTS = 1500;
const PERIOD = 1000;
const COLOURS = 6;
// How long the charts look back, by the seconds of a point.
const SPANS = { 1: 300_000, 60: 86_400_000 };
const at = (id) => document.getElementById(id);

function make(name, text, className) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// --- Numbers as people read them -----------------------------------------------------------------------------------

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit < units.length - 1) { value /= base; unit += 1; }
  const digits = unit === 0 && Number.isInteger(value) ? 0 : Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toFixed(digits) + units[unit];
}
const count = (value) => scaled(value, 1000, ["", " k", " M", " G"]);
const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const percent = (value) => Number.isFinite(value) ? (value * 100).toFixed(1) + " %" : "–";
// PostgreSQL's form of a moment, as the browser's.
const moment = (text) => Date.parse(text.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
const clock = (text) => new Date(moment(text)).toLocaleTimeString();
const ago = (ms) => ms < 1500 ? "just now" : `${duration(ms / 1000)} ago`;
function duration(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${Math.floor(seconds)} s`;
}

// --- /metrics ------------------------------------------------------------------------------------------------------

const UNESCAPED = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };
const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

// Samples by name: a list of { labels, value }.
function parseMetrics(text) {
  const all = new Map();
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : SAMPLE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] || "").matchAll(LABEL)) {
      labels[name] = value.replace(/\\[\\"n]/g, (escaped) => UNESCAPED[escaped]);
    }
    if (!all.has(found[1])) all.set(found[1], []);
    all.get(found[1]).push({ labels, value: Number(found[3]) });
  }
  return all;
}

class Scrape {
  constructor(text, moment) { this.all = parseMetrics(text); this.moment = moment; }
  samples(name) { return this.all.get(name) || []; }
  sum(name, wanted = {}) {
    const is = ({ labels }) => Object.entries(wanted).every(([label, value]) => labels[label] === value);
    return this.samples(name).filter(is).reduce((sum, { value }) => sum + value, 0);
  }
}

// What a counter rose by in a second. After a restart of the server it begins again.
function rate(now, before, name, wanted) {
  if (!before) return NaN;
  const rise = now.sum(name, wanted) - before.sum(name, wanted);
  return rise < 0 ? NaN : rise / Math.max((now.moment - before.moment) / 1000, 0.001);
}

// --- Charts --------------------------------------------------------------------------------------------------------

// The time that all charts show: the seconds of a point.
let resolution = 1;
const span = () => SPANS[resolution];

class Chart {
  constructor(title, show, stacked) {
    Object.assign(this, { title, show, stacked, points: [], names: [], pointer: null });
    const figure = make("figure");
    figure.append(make("figcaption", title));
    this.canvas = make("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", title);
    this.key = make("p", undefined, "key");
    figure.append(this.canvas, this.key);
    at("charts").append(figure);
    this.canvas.addEventListener("pointermove", (event) => { this.pointer = event.offsetX; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
  }

  // Takes the place of all points.
  fill(points) {
    this.points = points;
    this.draw();
  }

  // `values` by name; a name that is missing in a point has none there.
  add(moment, values) {
    this.points.push({ moment, values });
    this.draw();
  }

  draw() {
    const end = Date.now();
    this.points = this.points.filter((point) => point.moment > end - span()).slice(-POINTS);
    this.names = [...new Set(this.points.flatMap((point) => Object.keys(point.values)))].slice(0, COLOURS);
    const { canvas, points, names } = this;
    const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    if (width === 0) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const heights = points.map((point) => names.map((name) => point.values[name]));
    const tops = heights.map((all) => {
      const known = all.filter(Number.isFinite);
      return this.stacked ? known.reduce((sum, value) => sum + value, 0) : Math.max(0, ...known);
    });
    const top = this.show === percent ? 1 : Math.max(1e-9, ...tops) * 1.1;
    const x = (point) => width - (end - points[point].moment) * (width / span());
    // A line ends where the server was away.
    const follows = (point) => point > 0 && points[point].moment - points[point - 1].moment < resolution * 3500;
    const y = (value) => height - 2 - (value / top) * (height - 16);
    pen.font = "11px system-ui, sans-serif";
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.fillStyle = style.getPropertyValue("--soft");
    for (const share of [0.5, 1]) {
      const line = Math.round(y(top * share)) + 0.5;
      pen.beginPath(); pen.moveTo(0, line); pen.lineTo(width, line); pen.stroke();
      pen.fillText(this.show(top * share), 2, line - 2);
    }
    names.forEach((_, series) => {
      pen.strokeStyle = style.getPropertyValue(`--c${series}`);
      pen.lineWidth = 1.5;
      pen.beginPath();
      let drawing = false;
      heights.forEach((all, point) => {
        const below = this.stacked ? all.slice(0, series).filter(Number.isFinite).reduce((sum, value) => sum + value, 0) : 0;
        if (!Number.isFinite(all[series])) { drawing = false; return; }
        const place = [x(point), y(below + all[series])];
        if (drawing && follows(point)) pen.lineTo(...place); else pen.moveTo(...place);
        drawing = true;
      });
      pen.stroke();
    });
    this.label(x, pen, height, style);
  }

  // The values under the pointer, or the last ones.
  label(x, pen, height, style) {
    const { points, names } = this;
    if (points.length === 0) {
      this.key.replaceChildren(make("span", "no figures yet"));
      return;
    }
    let chosen = points.length - 1;
    if (this.pointer !== null) {
      const distance = (point) => Math.abs(x(point) - this.pointer);
      points.forEach((_, point) => { if (distance(point) < distance(chosen)) chosen = point; });
      pen.strokeStyle = style.getPropertyValue("--soft");
      pen.beginPath(); pen.moveTo(x(chosen), 0); pen.lineTo(x(chosen), height); pen.stroke();
    }
    const point = points[chosen];
    const parts = names.map((name, series) => {
      const value = point.values[name];
      const part = make("span", `${name} ${Number.isFinite(value) ? this.show(value) : "–"}`);
      part.style.setProperty("--own", `var(--c${series})`);
      return part;
    });
    if (this.pointer !== null) parts.push(make("em", new Date(point.moment).toLocaleTimeString()));
    this.key.replaceChildren(...parts);
    this.canvas.setAttribute("aria-label", `${this.title}: ${parts.map((part) => part.textContent).join(", ")}`);
  }
}

// --- Tables --------------------------------------------------------------------------------------------------------

class Grid {
  // `columns`: { name, show, number }.
  constructor(table, columns, empty, sort) {
    Object.assign(this, { table, columns, empty, sort, down: true, rows: [], wanted: "" });
    const head = make("tr");
    columns.forEach((column, index) => {
      const cell = make("th", undefined, column.number ? "number" : "");
      cell.scope = "col";
      const button = make("button", column.name);
      button.addEventListener("click", () => {
        this.down = this.sort === index ? !this.down : Boolean(column.number);
        this.sort = index;
        this.draw();
      });
      cell.append(button);
      head.append(cell);
    });
    this.head = head;
    this.body = make("tbody");
    const top = make("thead");
    top.append(head);
    table.replaceChildren(top, this.body);
  }

  fill(rows, empty = this.empty) { this.rows = rows; this.empty = empty; this.draw(); }

  draw() {
    const { sort, down, wanted } = this;
    const order = (a, b) => (a[sort] < b[sort] ? -1 : a[sort] > b[sort] ? 1 : 0) * (down ? -1 : 1);
    // Who reads a row with the keyboard stays there.
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const kept = this.rows.filter((row) => String(row[0]).toLowerCase().includes(wanted));
    if (sort !== undefined) kept.sort(order);
    [...this.head.children].forEach((cell, index) =>
      cell.setAttribute("aria-sort", index === sort ? (down ? "descending" : "ascending") : "none"));
    const rows = kept.map((row) => {
      const line = make("tr");
      this.columns.forEach((column, index) => line.append(this.cell(column, row[index])));
      return line;
    });
    if (rows.length === 0) {
      const cell = make("td", this.empty, "empty");
      cell.colSpan = this.columns.length;
      rows.push(make("tr"));
      rows[0].append(cell);
    }
    this.body.replaceChildren(...rows);
    if (focused !== undefined) [...this.body.querySelectorAll("button")].find((own) => own.dataset.key === focused)?.focus();
  }

  cell(column, value) {
    if (column.opens) { const cell = make("td"); cell.append(opener(value, column.opens)); return cell; }
    if (value instanceof Node) { const cell = make("td"); cell.append(value); return cell; }
    if (value === null || value === undefined) return make("td", "NULL", "null");
    const cell = make("td", column.show ? column.show(value) : shown(value), column.number ? "number" : "");
    cell.title = cell.textContent.length > 60 ? cell.textContent : "";
    return cell;
  }
}

// A button that shows more of what it names.
function opener(value, opens) {
  const button = make("button", String(value), "link");
  button.dataset.key = String(value);
  button.addEventListener("click", () => opens(value));
  return button;
}

// A value of a result: bytes as their base64, everything else as its text.
function shown(value) {
  return typeof value === "object" && value !== null ? value.base64 ?? JSON.stringify(value) : String(value);
}

// --- Requests ------------------------------------------------------------------------------------------------------

// Whole numbers beyond 2^53 keep their digits, where the browser shows the source of a number.
function exact(_, value, context) {
  const long = typeof value === "number" && !Number.isSafeInteger(value) && context && /^-?\d+$/.test(context.source);
  return long ? context.source : value;
}

async function sql(statement, { write = false, parameters = [], signal } = {}) {
  const response = await fetch("/sql", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ statement, parameters, write }),
    signal,
  });
  const text = await response.text();
  let answer;
  try { answer = JSON.parse(text, exact); } catch { answer = { error: { message: text.trim() || response.statusText } }; }
  if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error);
  return answer;
}

// --- The page ------------------------------------------------------------------------------------------------------

const charts = {
  ratio: new Chart("Hit ratio", percent),
  operations: new Chart("Operations a second", count),
  memory: new Chart("Memory by table", bytes, true),
  removals: new Chart("Rows removed a second", count),
};
const NUMBER = { number: true, show: count };
const tables = new Grid(at("tables"), [
  { name: "table", opens: showTable }, { name: "rows", ...NUMBER }, { name: "bytes", number: true, show: bytes },
  { name: "hit ratio", number: true, show: percent }, { name: "hits/s", ...NUMBER }, { name: "misses/s", ...NUMBER },
  { name: "written/s", ...NUMBER }, { name: "expired/s", ...NUMBER }, { name: "evicted/s", ...NUMBER },
  { name: "invalidated/s", ...NUMBER },
], "no table has this name", 2);
const sessions = new Grid(at("sessions"), [
  { name: "pid", number: true }, { name: "user" }, { name: "application" }, { name: "address" }, { name: "state" },
  { name: "statement" }, { name: "action" },
], "no SQL client is connected");
const statements = new Grid(at("statements"), [
  { name: "statement" }, { name: "calls", ...NUMBER }, { name: "errors", ...NUMBER },
  { name: "total ms", ...NUMBER }, { name: "mean ms", number: true, show: (ms) => ms.toFixed(3) },
  { name: "longest ms", number: true, show: (ms) => ms.toFixed(2) },
], "no statement has run yet", 3);

const invalidations = new Grid(at("invalidations"), [
  { name: "at", show: clock }, { name: "what" }, { name: "table" }, { name: "rows", ...NUMBER }, { name: "role" },
  { name: "address" }, { name: "protocol" }, { name: "statement" }, { name: "times", ...NUMBER }, { name: "ms", number: true, show: milliseconds },
], "nothing was invalidated since the start, but single keys");
const slow = new Grid(at("slow"), [
  { name: "at", show: clock }, { name: "ms", number: true, show: milliseconds }, { name: "role" }, { name: "address" }, { name: "protocol" },
  { name: "statement" }, { name: "parameters" }, { name: "rows", ...NUMBER }, { name: "error" },
], "no statement was slow");
const sources = new Grid(at("sources"), [
  { name: "source" }, { name: "state" }, { name: "since", show: clock }, { name: "lag ms", number: true, show: milliseconds },
  { name: "lag bytes", ...NUMBER }, { name: "events", ...NUMBER }, { name: "rows", ...NUMBER }, { name: "transactions", ...NUMBER },
  { name: "reconnects", ...NUMBER }, { name: "emptied", ...NUMBER }, { name: "error" },
], "there is no source");
const forwarded = new Grid(at("forwarded"), [
  { name: "statement" }, { name: "source" }, { name: "user" }, { name: "state" }, { name: "by the database", ...NUMBER },
  { name: "total ms", ...NUMBER }, { name: "from the cache", ...NUMBER }, { name: "saved ms", ...NUMBER },
  { name: "depends on or reason" }, { name: "cure" },
], "no statement was forwarded", 5);
const buses = new Grid(at("buses"), [
  { name: "bus" }, { name: "state" }, { name: "since", show: clock }, { name: "lag ms", number: true, show: milliseconds },
  { name: "outbox", ...NUMBER }, { name: "sent", ...NUMBER }, { name: "rows", ...NUMBER }, { name: "breaks", ...NUMBER },
  { name: "unapplied", ...NUMBER }, { name: "last break" }, { name: "last unapplied" }, { name: "error" },
], "there is no bus");
const nodes = new Grid(at("nodes"), [
  { name: "cache" }, { name: "bus" }, { name: "own" }, { name: "applied", ...NUMBER }, { name: "lag ms", ...NUMBER },
  { name: "outbox", ...NUMBER }, { name: "heard ms ago", ...NUMBER },
], "no cache is heard");
const rules = new Grid(at("rules"), [
  { name: "rule" }, { name: "table" }, { name: "condition" }, { name: "every" }, { name: "runs", ...NUMBER }, { name: "rows", ...NUMBER },
  { name: "last run", show: clock }, { name: "next run" }, { name: "last rows", ...NUMBER }, { name: "last ms", number: true, show: milliseconds }, { name: "error" },
], "there is no expiry rule");
const refusals = new Grid(at("refusals"), [
  { name: "at", show: clock }, { name: "role" }, { name: "address" }, { name: "protocol" }, { name: "request" }, { name: "reason" },
], "nobody was refused");

function milliseconds(ms) { return ms.toFixed(ms < 10 ? 3 : 0); }

// --- Details -------------------------------------------------------------------------------------------------------

function open(title, ...content) {
  at("details-title").textContent = title;
  at("details-body").replaceChildren(...content);
  if (!at("details").open) at("details").showModal();
}

function section(title, columns, rows, empty) {
  const [box, table] = [make("div", undefined, "scroll"), make("table")];
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", title);
  new Grid(table, columns, empty).fill(rows);
  box.append(table);
  return [make("h3", title), box];
}

// Upper bounds of the times to live that are counted together, in seconds, and their names.
const LIVES = [[10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [21600, "6 h"], [86400, "1 day"], [604800, "7 days"]];
// Rows that are looked at for them: some milliseconds, however large the table is.
const LOOKED_AT = 16384;
const identifier = (name) => `"${name.replaceAll('"', '""')}"`;

// How long rows of a table have to live, and how old its rows are.
async function lives(name) {
  const steps = LIVES.map(([end], step) => `WHEN _ttl <= ${end} THEN ${step}`).join(" ");
  const { rows } = await sql(`SELECT CASE WHEN _ttl IS NULL THEN ${LIVES.length + 1} ${steps} ELSE ${LIVES.length} END AS step, count(*) AS rows, max(_age) AS age
    FROM (SELECT _ttl, _age FROM ${identifier(name)} LIMIT ${LOOKED_AT}) AS seen GROUP BY 1 ORDER BY 1`);
  const seen = rows.reduce((sum, [, own]) => sum + Number(own), 0);
  const names = [...LIVES.map(([, words]) => `up to ${words}`), `more than ${LIVES[LIVES.length - 1][1]}`, "without end"];
  const shares = rows.map(([step, own]) => {
    const bar = make("span", undefined, "bar");
    bar.style.width = `${Number(own) / seen * 12}rem`;
    return [names[step], Number(own), percent(Number(own) / seen), bar];
  });
  const oldest = Math.max(...rows.map(([, , age]) => Number(age)));
  const words = seen === 0 ? "no row" : `Oldest row: written ${duration(oldest)} ago${seen < LOOKED_AT ? "" : `, among ${count(seen)} that were looked at`}`;
  const columns = [{ name: "ends in" }, { name: "rows", ...NUMBER }, { name: "share", number: true }, { name: "rows as a bar" }];
  return [make("p", words, "oldest"), ...section("Times to live", columns, shares, "no row")];
}

// Times to live, the hot keys, the top prefixes and the largest rows of a table, from samples.
async function showTable(name) {
  open(name, make("p", "reading a sample"));
  try {
    const parameters = [name];
    // Who may not read the rows sees the rest.
    const times = lives(name).catch((error) => [make("p", `times to live: ${error.message}`, "error")]);
    const [hot, prefixes, largest] = await Promise.all([
      sql("SELECT key, reads, writes, share FROM sqlcached_hot WHERE table_name = $1 ORDER BY reads + writes DESC LIMIT 25", { parameters }),
      sql("SELECT prefix, rows, bytes, mean_bytes FROM sqlcached_prefixes WHERE table_name = $1 ORDER BY bytes DESC LIMIT 25", { parameters }),
      sql("SELECT key, bytes FROM sqlcached_largest WHERE table_name = $1 ORDER BY bytes DESC LIMIT 25", { parameters }),
    ]);
    const size = { number: true, show: bytes };
    open(name,
      ...await times,
      ...section("Hot keys of the last minute, estimated", [{ name: "key" }, { name: "reads", ...NUMBER }, { name: "writes", ...NUMBER }, { name: "share", number: true, show: percent }], hot.rows, "nobody used a key"),
      ...section("Prefixes of keys, estimated", [{ name: "prefix" }, { name: "rows", ...NUMBER }, { name: "bytes", ...size }, { name: "a row", ...size }], prefixes.rows, "the sample found no row"),
      ...section("Largest rows of the sample", [{ name: "key" }, { name: "bytes", ...size }], largest.rows, "the sample found no row"));
  } catch (error) { open(name, make("p", error.message, "error")); }
}

function showInvalidations(rows) {
  open(rows.length === 1 ? "Invalidation" : `${rows.length} invalidations`, ...rows.slice(0, 50).map((row) => {
    const list = make("dl");
    const [when, what, table, removed, role, address, protocol, statement, times, ms, parameters] = row;
    for (const [name, value] of [
      ["when", new Date(moment(when)).toLocaleString()], ["what", what], ["table", table ?? "all that memcached clients reach"],
      ["rows", removed], ["statement", statement], ["parameters", parameters], ["by", who(role, address, protocol)],
      ["runs", times], ["took", ms === null ? null : `${milliseconds(ms)} ms`],
    ]) {
      if (value !== null && value !== undefined) list.append(make("dt", name), make("dd", String(value)));
    }
    return list;
  }));
}

function who(role, address, protocol) {
  return `${role || "somebody"}${address ? ` at ${address}` : ""} by ${protocol}`;
}

// --- The timeline --------------------------------------------------------------------------------------------------

const PLACES = 120;
let happened = [];

// What happened close to one another is one mark.
function drawMarks() {
  const end = Date.now();
  const places = new Map();
  for (const row of happened) {
    const share = (end - moment(row[0])) / span();
    if (share < 0 || share >= 1) continue;
    const place = Math.floor((1 - share) * PLACES);
    if (!places.has(place)) places.set(place, []);
    places.get(place).push(row);
  }
  const focused = at("marks").contains(document.activeElement) ? document.activeElement.dataset.first : undefined;
  const most = Math.max(1, ...[...places.values()].map(sumOfRows));
  const marks = [...places].sort(([one], [other]) => one - other).map(([place, rows]) => mark(place, rows, most));
  marks.forEach((own, index) => { own.tabIndex = index === marks.length - 1 ? 0 : -1; });
  at("marks").replaceChildren(...marks);
  at("marks-none").hidden = marks.length > 0;
  if (focused !== undefined) marks.find((own) => own.dataset.first === focused)?.focus();
}

const sumOfRows = (rows) => rows.reduce((sum, row) => sum + row[3], 0);

function mark(place, rows, most) {
  const own = make("button", undefined, `mark ${rows[0][1]}`);
  const removed = sumOfRows(rows);
  own.style.left = `${place / PLACES * 100}%`;
  own.style.height = `${8 + 26 * Math.sqrt(removed / most)}px`;
  own.title = `${clock(rows[0][0])}: ${rows[0][1]} ${count(removed)} rows of ${rows[0][2] ?? "all tables"}`;
  own.setAttribute("aria-label", own.title);
  own.dataset.first = rows[rows.length - 1][0];
  own.addEventListener("click", () => showInvalidations(rows));
  return own;
}

// The arrows walk along the marks.
at("marks").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const all = [...at("marks").children];
  const next = all[all.indexOf(document.activeElement) + step];
  if (!step || !next) return;
  event.preventDefault();
  next.focus();
});

// --- Figures -------------------------------------------------------------------------------------------------------

// What somebody with an incident asks first, in words.
function drawVerdict(now) {
  const lines = [];
  const memory = now.samples("sqlcached_table_segment_bytes").reduce((most, one) => !most || one.value > most.value ? one : most, null);
  const used = now.sum("sqlcached_segment_bytes");
  if (memory && memory.value > 0) lines.push(["Most memory", `${memory.labels.table}: ${bytes(memory.value)}, ${percent(memory.value / used)} of what is used`]);
  const tables = now.samples("sqlcached_table_misses_total").reduce((most, one) => !most || one.value > most.value ? one : most, null);
  if (tables && tables.value > 0) {
    const hits = now.sum("sqlcached_table_hits_total", tables.labels);
    lines.push(["Most misses", `${tables.labels.table}: ${count(tables.value)}, hit ratio ${percent(hits / (hits + tables.value))} since the start`]);
  }
  const [last] = happened;
  if (last) lines.push(["Last invalidation", `${ago(Date.now() - moment(last[0]))}: ${last[1]} ${count(last[3])} rows of ${last[2] ?? "all tables"}, ${who(last[4], last[5], last[6])}`]);
  at("verdict").replaceChildren(...lines.map(([name, text]) => {
    const line = make("li");
    line.append(make("b", name), " ", text);
    return line;
  }));
}

function strip(now, before) {
  const hits = rate(now, before, "sqlcached_table_hits_total");
  const misses = rate(now, before, "sqlcached_table_misses_total");
  const lifetime = [now.sum("sqlcached_table_hits_total"), now.sum("sqlcached_table_misses_total")];
  const ratio = hits + misses > 0 ? hits / (hits + misses) : lifetime[0] / (lifetime[0] + lifetime[1]);
  const facts = [
    ["uptime", duration(now.sum("sqlcached_uptime_seconds"))],
    ["hit ratio", percent(ratio)],
    ["operations/s", count(rate(now, before, "sqlcached_commands_total") || 0)],
    ["memory", `${bytes(now.sum("sqlcached_segment_bytes"))} of ${bytes(now.sum("sqlcached_memory_limit_bytes"))}`],
    ["rows", count(now.sum("sqlcached_rows"))],
    ["evictions/s", count(rate(now, before, "sqlcached_rows_removed_total", { cause: "evicted" }) || 0)],
    ["connections", `${now.sum("sqlcached_connections")} of ${now.sum("sqlcached_connections_limit")}`],
    ["cpu", percent(rate(now, before, "sqlcached_cpu_seconds_total") || 0)],
  ];
  at("strip").replaceChildren(...facts.map(([name, value]) => {
    const fact = make("div");
    fact.append(make("dt", name), make("dd", value));
    return fact;
  }));
  const version = now.samples("sqlcached_info")[0];
  at("version").textContent = version ? version.labels.version : "";
  return [hits, misses];
}

const CAUSES = ["expired", "evicted", "invalidated", "flushed"];
const ratioOf = (hits, misses) => ({ all: hits + misses > 0 ? hits / (hits + misses) : NaN });

function drawLive(now, before, hits, misses) {
  charts.ratio.add(now.moment, ratioOf(hits, misses));
  const command = (...names) => names.reduce((sum, name) => sum + rate(now, before, "sqlcached_commands_total", { command: name }), 0);
  charts.operations.add(now.moment, {
    get: command("get"), set: command("set", "cas"), delete: command("delete"), sql: command("sql"),
    other: command("incr", "decr", "touch", "flush"),
  });
  const memory = now.samples("sqlcached_table_segment_bytes").sort((a, b) => b.value - a.value);
  const named = memory.slice(0, COLOURS - 1).map(({ labels, value }) => [labels.table, value]);
  const rest = memory.slice(COLOURS - 1).reduce((sum, { value }) => sum + value, 0);
  charts.memory.add(now.moment, Object.fromEntries(rest > 0 ? [...named, ["others", rest]] : named));
  charts.removals.add(now.moment, Object.fromEntries(CAUSES.map((cause) =>
    [cause, rate(now, before, "sqlcached_rows_removed_total", { cause })])));
}

// What was before: the points that the server has kept.
async function loadHistory() {
  const names = ["at", "seconds", "hits", "misses", "gets", "sets", "deletes", "others",
    "postgresql_statements + memcached_statements + http_statements", "segment_bytes", "tables", ...CAUSES];
  const { rows } = await sql(`SELECT ${names.join(", ")} FROM sqlcached_history WHERE resolution = ${resolution} ORDER BY at`);
  const points = { ratio: [], operations: [], memory: [], removals: [] };
  for (const [when, seconds, hits, misses, get, set, del, other, statements, segments, tables, ...removed] of rows) {
    const at = moment(when);
    const add = (chart, values) => points[chart].push({ moment: at, values });
    const each = (named) => Object.fromEntries(Object.entries(named).map(([name, value]) => [name, value / seconds]));
    add("ratio", ratioOf(hits, misses));
    add("operations", each({ get, set, delete: del, sql: statements, other }));
    add("removals", each(Object.fromEntries(CAUSES.map((cause, index) => [cause, removed[index]]))));
    const named = JSON.parse(tables);
    const rest = segments - Object.values(named).reduce((sum, own) => sum + own, 0);
    add("memory", rest > 0 ? { ...named, others: rest } : named);
  }
  for (const [name, chart] of Object.entries(charts)) chart.fill(points[name]);
}

function draw(now, before) {
  const [hits, misses] = strip(now, before);
  if (resolution === 1 && before) drawLive(now, before, hits, misses);
  tables.fill(now.samples("sqlcached_table_rows").map(({ labels, value }) => {
    const own = { table: labels.table };
    const [hit, miss] = ["hits", "misses"].map((name) => now.sum(`sqlcached_table_${name}_total`, own));
    const each = (name) => rate(now, before, `sqlcached_table_${name}_total`, own) || 0;
    const left = (cause) => rate(now, before, "sqlcached_table_rows_removed_total", { ...own, cause }) || 0;
    return [labels.table, value, now.sum("sqlcached_table_bytes", own), hit / (hit + miss), each("hits"), each("misses"),
      each("written"), left("expired"), left("evicted"), left("invalidated")];
  }));
}

function say(state, words) {
  at("state").dataset.state = state;
  at("state").textContent = words;
}

function cancelButton(pid) {
  const button = make("button", "cancel");
  button.setAttribute("aria-label", `cancel the statement of session ${pid}`);
  button.addEventListener("click", () =>
    sql("SELECT pg_cancel_backend($1)", { parameters: [pid] }).catch((error) => tell(error.message, true)));
  return button;
}

async function drawSessions() {
  const [who, what, gone] = await Promise.all([
    sql("SELECT pid, user_name, application_name, client_addr, state, query FROM sqlcached_sessions WHERE pid <> pg_backend_pid() ORDER BY pid LIMIT 100"),
    sql("SELECT query, calls, errors, total_ms, mean_ms, max_ms FROM sqlcached_statements ORDER BY total_ms DESC LIMIT 20"),
    sql("SELECT at, what, table_name, rows, role_name, client_addr, protocol, statement, times, duration_ms, parameters FROM sqlcached_invalidations ORDER BY at DESC LIMIT 1024"),
  ]);
  happened = gone.rows;
  invalidations.fill(happened.slice(0, 50));
  drawMarks();
  sessions.fill(who.rows.map((row) => [...row, row[4] === "active" ? cancelButton(row[0]) : ""]));
  statements.fill(what.rows);
}

async function drawRest() {
  const [late, behind, passed, told, heard, due, refused, setting] = await Promise.all([
    sql("SELECT at, duration_ms, role_name, client_addr, protocol, statement, parameters, rows, sqlstate FROM sqlcached_slow ORDER BY at DESC LIMIT 50"),
    sql("SELECT source_name, state, since, lag_ms, lag_bytes, events, invalidated, transactions, reconnects, emptied, last_error FROM sqlcached_sources ORDER BY source_name LIMIT 100"),
    sql(`SELECT statement, server_name, user_name, state, forwarded, round(forwarded_ms) AS ms, hits,
      round(hits * forwarded_ms / greatest(forwarded, 1)) AS saved, coalesce(reason, array_to_string(depends, ', ')) AS why, cure
      FROM sqlcached_forwarded ORDER BY forwarded_ms DESC LIMIT 50`),
    sql("SELECT bus_name, state, since, lag_ms, outbox, published, invalidated, breaks, unapplied, last_break, last_unapplied, last_error FROM sqlcached_buses ORDER BY bus_name LIMIT 100"),
    sql("SELECT name, bus_name, CASE WHEN own THEN 'this one' WHEN namesake THEN 'same name' END, applied, lag_ms, outbox, heard_ms FROM sqlcached_nodes ORDER BY bus_name, name LIMIT 1000"),
    sql("SELECT rule_name, table_name, condition, every, runs, rows, last_run, last_rows, last_ms, last_error FROM sqlcached_expiry_rules ORDER BY rule_name LIMIT 100"),
    sql("SELECT at, role_name, client_addr, protocol, request, reason FROM sqlcached_refusals ORDER BY at DESC LIMIT 50"),
    sql("SELECT setting FROM sqlcached_settings WHERE name = 'log_min_duration_statement'"),
  ]);
  const off = setting.rows[0]?.[0] === "-1";
  slow.fill(late.rows, off ? "log_min_duration_statement is off (-1): no statement is slow" : "no statement was slow");
  at("behind").hidden = behind.rows.length === 0;
  sources.fill(behind.rows);
  at("before").hidden = passed.rows.length === 0;
  forwarded.fill(passed.rows);
  at("others").hidden = told.rows.length === 0;
  buses.fill(told.rows);
  nodes.fill(heard.rows);
  rules.fill(due.rows.map((row) => [...row.slice(0, 7), nextRun(row[3], row[6]), ...row.slice(7)]));
  refusals.fill(refused.rows);
}

const SECONDS = { ms: 0.001, s: 1, min: 60, h: 3600, d: 86400 };

// A rule runs again so long after the end of its last run.
function nextRun(every, ended) {
  const [, number, unit] = /^([\d.]+) ?([a-z]+)$/.exec(every) || [];
  if (!ended || !SECONDS[unit]) return "soon";
  const left = moment(ended) + number * SECONDS[unit] * 1000 - Date.now();
  return left > 1000 ? `in ${duration(left / 1000)}` : "now";
}

let last = null;
let turns = 0;
// When the figures were read last.
let seen = null;

async function turn() {
  if (document.hidden) return;
  try {
    const response = await fetch("/metrics", { headers: { Accept: "text/plain" } });
    if (!response.ok) throw new Error(`${response.status} ${(await response.text()).trim()}`);
    const now = new Scrape(await response.text(), Date.now());
    // Who has slept does not show one point for an hour.
    const before = last && now.moment - last.moment < 10 * PERIOD ? last : null;
    // After a break, and once a minute where a point is a minute, the server tells what was.
    if (!before || (resolution === 60 && turns % 60 === 0)) await loadHistory();
    draw(now, before);
    last = now;
    seen = now.moment;
    say("live", "live");
    if (turns % 2 === 0) await drawSessions();
    drawVerdict(now);
    if (turns % 10 === 0) await drawRest();
    turns += 1;
  } catch (error) {
    say("lost", `no figures${seen ? ` since ${new Date(seen).toLocaleTimeString()}` : ""}: ${error.message}`);
    last = null;
    turns = 0;
  }
}

async function run() {
  for (;;) {
    await turn();
    await new Promise((resolve) => setTimeout(resolve, PERIOD));
  }
}

// --- The SQL box ---------------------------------------------------------------------------------------------------

const KEPT = "sqlcached statements";
const KEPT_MAX = 50;
let running = null;
let result = null;

function tell(words, failed) {
  at("outcome").textContent = words;
  at("outcome").className = failed ? "error" : "";
}

function remembered() {
  try { return JSON.parse(localStorage.getItem(KEPT)) || []; } catch { return []; }
}

function showHistory() {
  const options = remembered().map((text) => {
    const option = make("option", text.replace(/\s+/g, " ").slice(0, 80));
    option.value = text;
    return option;
  });
  const none = make("option", "–");
  none.value = "";
  at("history").replaceChildren(none, ...options);
}

function remember(text) {
  const all = [text, ...remembered().filter((other) => other !== text)].slice(0, KEPT_MAX);
  try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* the browser keeps nothing */ }
  showHistory();
}

function caret(text, position) {
  const before = [...text].slice(0, position - 1).join("");
  const line = text.slice(before.lastIndexOf("\n") + 1).split("\n")[0];
  return `\n${line}\n${" ".repeat(before.length - before.lastIndexOf("\n") - 1)}^`;
}

function tellError(error, text) {
  if (error.name === "AbortError") return tell("stopped", true);
  const place = error.position ? caret(text, error.position) : "";
  const more = [error.detail, error.hint && `Hint: ${error.hint}`].filter(Boolean).join("\n");
  tell(`${error.sqlstate || "error"}: ${error.message}${place}${more ? `\n${more}` : ""}`, true);
}

async function execute(text) {
  if (running || !text.trim()) return;
  running = new AbortController();
  at("stop").disabled = false;
  tell("running");
  const began = performance.now();
  try {
    const answer = await sql(text, { write: at("write").checked, signal: running.signal });
    result = answer;
    const isNumber = (type) => /^(smallint|integer|bigint|real|double precision|numeric|oid)$/.test(type);
    const columns = answer.columns.map(({ name, type }) => ({ name, number: isNumber(type) }));
    new Grid(at("result"), columns, answer.columns.length ? "no rows" : "").fill(answer.rows);
    const rows = answer.count === null ? "" : ` ${answer.count}`;
    const notices = answer.notices.map(({ severity, message }) => `\n${severity}: ${message}`).join("");
    tell(`${answer.tag}${rows} in ${(performance.now() - began).toFixed(0)} ms${notices}`);
    at("csv").disabled = answer.columns.length === 0;
  } catch (error) {
    tellError(error, text);
  } finally {
    running = null;
    at("stop").disabled = true;
  }
}

function csv({ columns, rows }) {
  const field = (value) => {
    const text = value === null ? "" : shown(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(field).join(",") + "\r\n").join("");
}

function save() {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([csv(result)], { type: "text/csv" }));
  link.download = "sqlcached.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10 * PERIOD);
}

function submit() {
  const text = at("statement").value;
  remember(text);
  history.replaceState(null, "", `#${encodeURIComponent(text)}`);
  execute(text);
}

// --- Completion ----------------------------------------------------------------------------------------------------

const KEYWORDS = ("SELECT FROM WHERE GROUP BY ORDER LIMIT OFFSET AND OR NOT NULL IS IN LIKE BETWEEN AS JOIN LEFT ON USING DISTINCT " +
  "COUNT SUM MIN MAX AVG CASE WHEN THEN ELSE END INSERT INTO VALUES UPDATE SET DELETE TRUNCATE CREATE TABLE INDEX DROP ALTER WITH EXPLAIN").split(" ");
const OFFERED = 8;
let known = null;
let chosenWord = 0;

// The names of tables and columns, read when the first word is completed.
async function names() {
  known ??= sql("SELECT table_name FROM information_schema.tables UNION SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' OR table_name LIKE 'sqlcached%' LIMIT 5000")
    .then(({ rows }) => rows.map(([name]) => name)).catch(() => { known = null; return []; });
  return known;
}

// --- Colours of the statement --------------------------------------------------------------------------------------

const IS_WORD = new Set(KEYWORDS.map((word) => word.toLowerCase()));
const TOKEN = new RegExp([
  "(?<note>--[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$))", "(?<text>'(?:[^']|'')*(?:'|$))", "(?<name>\"(?:[^\"]|\"\")*(?:\"|$))", "(?<value>\\$\\d+)",
  "(?<digits>\\b\\d+(?:\\.\\d+)?\\b)", "(?<word>[A-Za-z_][A-Za-z_0-9]*)",
].join("|"), "g");

// Writes the statement once more behind the box, in colours: the box itself shows the caret alone.
function paint() {
  const [text, parts] = [at("statement").value, []];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [kind] = Object.entries(found.groups).find(([, part]) => part !== undefined);
    if (kind === "word" && !IS_WORD.has(found[0].toLowerCase())) continue;
    parts.push(text.slice(end, found.index), make("span", found[0], kind));
    end = found.index + found[0].length;
  }
  // A last empty line takes its place, too.
  at("paint").replaceChildren(...parts, text.slice(end), "\n");
  follow();
}

function follow() { at("paint").scrollTop = at("statement").scrollTop; }

function write(text) { at("statement").value = text; paint(); }

function wordAt() {
  const box = at("statement");
  const begun = /[A-Za-z_][A-Za-z_0-9]*$/.exec(box.value.slice(0, box.selectionStart));
  return begun ? begun[0] : "";
}

async function offer() {
  const word = wordAt();
  const all = [...await names(), ...KEYWORDS];
  const fits = (name) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word;
  const fitting = word ? [...new Set(all.filter(fits))].slice(0, OFFERED) : [];
  const quoted = (name) => /^[a-z_][a-z_0-9]*$|^[A-Z]+$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
  at("words").replaceChildren(...fitting.map((name, index) => {
    const item = make("li", name);
    item.id = `word-${index}`;
    item.setAttribute("role", "option");
    item.dataset.text = quoted(name);
    item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(item); });
    return item;
  }));
  at("words").hidden = fitting.length === 0;
  choose(0);
}

function choose(index) {
  const all = [...at("words").children];
  chosenWord = all.length ? (index + all.length) % all.length : 0;
  all.forEach((item, own) => item.setAttribute("aria-selected", own === chosenWord));
  if (all.length) at("statement").setAttribute("aria-activedescendant", all[chosenWord].id);
  else at("statement").removeAttribute("aria-activedescendant");
}

function closeWords() { at("words").hidden = true; at("words").replaceChildren(); choose(0); }

function take(item) {
  const box = at("statement");
  const begin = box.selectionStart - wordAt().length;
  box.setRangeText(item.dataset.text, begin, box.selectionStart, "end");
  paint();
  closeWords();
}

const WORD_KEYS = {
  ArrowDown: () => choose(chosenWord + 1), ArrowUp: () => choose(chosenWord - 1), Escape: closeWords,
  Tab: () => take(at("words").children[chosenWord]), Enter: () => take(at("words").children[chosenWord]),
};

at("statement").addEventListener("keydown", (event) => {
  if (event.key === " " && event.ctrlKey) { event.preventDefault(); offer(); return; }
  const act = WORD_KEYS[event.key];
  if (at("words").hidden || !act || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  act();
});
at("statement").addEventListener("scroll", follow);
at("statement").addEventListener("input", () => { paint(); if (!at("words").hidden) offer(); });
at("statement").addEventListener("blur", closeWords);

at("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
at("statement").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); submit(); }
});
at("explain").addEventListener("click", () => execute(`EXPLAIN QUERY PLAN ${at("statement").value}`));
at("stop").addEventListener("click", () => running && running.abort());
at("csv").addEventListener("click", save);
at("filter").addEventListener("input", (event) => { tables.wanted = event.target.value.toLowerCase(); tables.draw(); });
at("history").addEventListener("change", (event) => { if (event.target.value) write(event.target.value); });
at("range").addEventListener("change", (event) => {
  resolution = Number(event.target.value);
  drawMarks();
  loadHistory().catch((error) => say("lost", error.message));
});
addEventListener("resize", () => Object.values(charts).forEach((chart) => chart.draw()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Object.values(charts).forEach((chart) => chart.draw()));
document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });

showHistory();
paint();
// A link brings a statement, and does not run it.
if (location.hash.length > 1) {
  try { write(decodeURIComponent(location.hash.slice(1))); } catch { /* no statement of ours */ }
}
run();
