// The first page: how the cache does now, in words and figures, what was before, and who invalidated what.
import { look, named, NOT_SHOWN } from "./ask.js";
import { Chart } from "./chart.js";
import { address, link, make } from "./dom.js";
import * as figures from "./figures.js";
import { inShort, Timeline } from "./timeline.js";
import { now, setNow } from "./time.js";
import { View } from "./view.js";
import { ago, bytes, count, duration, moment, percent } from "./words.js";

const MINUTE = 60_000;
const MIB = 1_048_576;
const SPANS = [[5 * MINUTE, "the last 5 minutes"], [60 * MINUTE, "the last hour"], [360 * MINUTE, "the last 6 hours"], [1440 * MINUTE, "the last day"]];
// The rates in the line of figures are those of so many seconds.
const LATELY = 10;
// Invalidations that the server keeps.
const EVENTS = 1024;

const STATUS = `SELECT now() AS now, extract(epoch FROM now() - pg_postmaster_start_time())::float8 AS uptime,
  (SELECT CAST(setting AS int8) FROM sqlcached_settings WHERE name = 'memory_mb') AS memory_mb,
  (SELECT setting FROM sqlcached_settings WHERE name = 'max_connections') AS max_connections`;
const MOST = (figure) => `SELECT table_name, ${figure}, hits, misses FROM sqlcached_tables ORDER BY ${figure} DESC LIMIT 1`;
const HAPPENED = "SELECT * FROM sqlcached_invalidations WHERE at >= $1 ORDER BY at DESC";
// Before anything that the server keeps.
const EVER = "2000-01-01";
// What names an event: one that happens again soon has a later end, and the same beginning.
const sameEvent = ({ since, pid, client_addr: where, table_name: table, statement }) => [since, pid, where, table, statement].join(" ");

class Overview {
  constructor({ query }) {
    this.view = new View(Number(query.span) || SPANS[0][0], (whole) => this.changed(whole));
    if (query.from && query.to) this.view.part = [Number(query.from), Number(query.to)];
    this.charts = [
      [new Chart("Hit ratio", this.view, { show: percent }), figures.hitRatio],
      [new Chart("Operations a second", this.view, { show: count, stacked: true }), figures.operations],
      [new Chart("Segment bytes by table", this.view, { show: bytes, stacked: true, base: 1024 }), figures.memory],
      [new Chart("Rows removed a second", this.view, { show: count, stacked: true }), figures.removed],
      [new Chart("Bytes a second on the network", this.view, { show: bytes, base: 1024 }), figures.network],
      [new Chart("Processors in use", this.view, { show: count }), figures.processor],
    ];
    this.timeline = new Timeline(this.view);
    this.verdict = make("ul", { id: "verdict" }, make("li", { className: "empty" }, "waiting for the first figures"));
    this.strip = make("dl", { id: "strip" });
    const charts = make("div", { id: "charts" }, ...this.charts.map(([chart]) => chart.box));
    this.box = [make("div", {}, this.verdict, this.strip), this.choices(), charts, this.timeline.box];
    Object.assign(this, { status: null, most: null, frame: null });
  }

  choices() {
    const spans = SPANS.map(([span, words]) => make("option", { value: span }, words));
    this.range = make("select", { id: "range" }, ...spans, make("option", { value: "part" }, "a part"));
    this.range.addEventListener("change", () => { if (this.range.value !== "part") this.view.follow(Number(this.range.value)); });
    this.part = make("span", { id: "part", role: "status" });
    this.sayRange();
    return make("p", { className: "choices" }, make("label", {}, "Show ", this.range), this.part);
  }

  sayRange() {
    const { part, span } = this.view;
    this.range.value = part ? "part" : String(span);
    this.range.lastChild.hidden = !part;
    const time = (at) => new Date(at).toLocaleString();
    this.part.textContent = part ? `${time(part[0])} to ${time(part[1])}` : "drag over a chart to look closer";
  }

  // Another time is shown (`whole`), or another moment of it. The address has the time, so that a reload shows it.
  changed(whole) {
    if (whole) {
      const { part, span } = this.view;
      const query = part ? { from: part[0], to: part[1], span } : { span: span === SPANS[0][0] ? undefined : span };
      history.replaceState(null, "", address("", [], query));
      this.sayRange();
    }
    if (whole) this.draw(); else this.charts.forEach(([chart]) => chart.draw());
  }

  // The first figures first. What changes slowly is asked for seldom.
  async turn(number) {
    await Promise.all([figures.followSeconds(), number % 10 === 0 && this.askStatus()]);
    this.draw();
    await Promise.all([
      number % 60 === 0 && figures.followMinutes(),
      number % 2 === 0 && this.askEvents(number === 0),
      number % 5 === 0 && this.askMost(),
    ]);
    this.draw();
  }

  async askStatus() {
    [this.status] = named(await look(STATUS));
    setNow(moment(this.status.now));
    this.statusAt = Date.now();
  }

  // What is newer than the newest event that is here; after a break all of them.
  async askEvents(all) {
    const known = all ? [] : this.events ?? [];
    const newer = named(await look(HAPPENED, [known[0]?.at ?? EVER]));
    const again = new Set(newer.map(sameEvent));
    this.events = [...newer, ...known.filter((event) => !again.has(sameEvent(event)))].slice(0, EVENTS);
  }

  async askMost() {
    this.most = (await Promise.all([look(MOST("segment_bytes")), look(MOST("misses"))])).map((answer) => named(answer)[0]);
  }

  // The figures at once. The charts take longer, and are drawn once a frame, however often something came.
  draw() {
    if (this.status) this.drawStrip();
    this.drawVerdict();
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.drawCharts(); });
  }

  drawCharts() {
    const points = figures.between(...this.view.bounds);
    for (const [chart, values] of this.charts) {
      chart.fill(points.map((point) => ({ moment: point.moment, seconds: point.seconds, values: values(point) })));
    }
    if (this.events) this.timeline.fill(this.events, this.events.length < EVENTS); else this.timeline.draw();
  }

  drawStrip() {
    const { status } = this;
    const newest = figures.last();
    const sum = (...names) => figures.sum(figures.lastly(LATELY), ...names);
    // Without a point it is 0 by 0, which is no number.
    const rate = (...names) => sum(...names) / sum("seconds");
    const lookups = sum("hits", "misses");
    const known = (show) => newest ? show(newest) : "–";
    const all = [
      ["uptime", duration(status.uptime + (Date.now() - this.statusAt) / 1000)],
      ["hit ratio", newest && lookups === 0 ? "no lookup" : percent(sum("hits") / lookups)],
      ["operations/s", count(rate("gets", "sets", "deletes", "others", "statements"))],
      ["segment bytes", known(({ segment_bytes: own }) => `${bytes(own)} of ${bytes(status.memory_mb * MIB)}`)],
      ["rows", known(({ rows }) => count(rows))],
      ["evicted/s", count(rate("evicted"))],
      ["connections", known(({ connections }) => `${connections} of ${status.max_connections}`)],
      ["cpu", percent(rate("cpu_ms") / 1000)],
    ];
    this.strip.replaceChildren(...all.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    this.strip.title = `rates and ratios: the last ${LATELY} seconds`;
  }

  // What somebody with an incident asks first, in words.
  drawVerdict() {
    const lines = [];
    const [large, missed] = this.most ?? [];
    const table = (name) => link(name, address("table", [name]));
    if (large?.segment_bytes > 0) lines.push(["Most segment bytes", table(large.table_name), `: ${bytes(large.segment_bytes)}`]);
    if (missed?.misses > 0) {
      const { hits, misses } = missed;
      lines.push(["Most misses", table(missed.table_name), `: ${count(misses)}, hit ratio ${percent(hits / (hits + misses))} since the start`]);
    }
    const [last] = this.events ?? [];
    if (last) lines.push(["Last invalidation", `${ago(now() - moment(last.at))}: ${inShort(last)}`]);
    // Each second has a point; who monitors nothing sees none.
    if (this.status?.uptime > 5 && !figures.last()) lines.push(["No figures", NOT_SHOWN]);
    if (!this.status) return;
    this.verdict.replaceChildren(...lines.map(([name, ...words]) => make("li", {}, make("b", {}, name), " ", ...words)));
  }
}

export const overview = { name: "", title: "Overview", key: "o", open: (place) => new Overview(place) };
