// All tables with their figures, and with the rates between two looks.
import { look, named } from "./ask.js";
import { address, link, make, scroller } from "./dom.js";
import { Grid } from "./grid.js";
import { bytes, count, heading, percent } from "./words.js";

// Figures of this moment, and what is shown as a rate.
const FIGURES = [["rows", count], ["bytes", bytes], ["segment_bytes", bytes], ["index_bytes", bytes]];
const RATES = ["hits", "misses", "written", "expired", "evicted", "invalidated", "flushed"];
const STATEMENT = `SELECT table_name, ${[...FIGURES.map(([name]) => name), ...RATES].join(", ")} FROM sqlcached_tables`;

class Tables {
  constructor() {
    const columns = [
      { name: "table name", of: (row, name) => link(name, address("table", [name])) },
      ...FIGURES.map(([name, show]) => ({ name: heading(name), number: true, show })),
      { name: "hit ratio", number: true, show: percent, title: "since the start" },
      ...RATES.map((name) => ({ name: `${name}/s`, number: true, show: count })),
    ];
    this.grid = new Grid(columns, { empty: "there is no table", sort: 2, label: "Tables" });
    this.grid.wait("waiting for sqlcached_tables");
    this.grid.table.id = "tables";
    const filter = make("input", { id: "filter", type: "search", autocomplete: "off" });
    filter.addEventListener("input", () => this.grid.filter(filter.value));
    const words = "The hit ratio counts from the start; a rate needs two looks, and is – before.";
    const about = make("p", { className: "choices" }, make("span", {}, words), make("label", {}, "Filter ", filter));
    this.box = [about, scroller("Tables", this.grid.table)];
    this.before = null;
  }

  async turn(number) {
    if (number % 2 !== 0) return;
    const rows = named(await look(STATEMENT));
    const now = { at: performance.now(), rows: new Map(rows.map((row) => [row.table_name, row])) };
    this.grid.fill(rows.map((row) => [row.table_name, ...FIGURES.map(([name]) => row[name]),
      row.hits + row.misses > 0 ? row.hits / (row.hits + row.misses) : NaN, ...RATES.map((name) => this.rate(now, row, name))]));
    this.before = now;
  }

  // What a counter rose by in a second. After a restart of the server, and for a new table, there is none yet.
  rate(now, row, name) {
    const before = this.before?.rows.get(row.table_name);
    const rise = before ? row[name] - before[name] : NaN;
    return rise >= 0 ? rise / ((now.at - this.before.at) / 1000) : NaN;
  }
}

export const tables = { name: "tables", title: "Tables", key: "t", open: () => new Tables() };
