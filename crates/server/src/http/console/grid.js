// A table of rows that can be sorted and filtered, and whose rows come again and again.
import { button, make } from "./dom.js";
import { shown } from "./words.js";

// Rows that are drawn at most, unless somebody asks for all of them.
const DRAWN = 200;

export class Grid {
  // `columns`: { name, show, number, of }, where `of` makes an element of a row. `sort`: the column at first, which is
  // sorted downwards if it is a number. `key`: what names a row.
  constructor(columns, { empty = "no rows", sort, key = (row) => String(row[0]), label } = {}) {
    Object.assign(this, { columns, empty, sort, key, down: Boolean(columns[sort]?.number), rows: null, wanted: "", all: false });
    this.body = make("tbody");
    this.head = make("tr", {}, ...columns.map((column, index) => this.headCell(column, index)));
    this.table = make("table", { "aria-label": label }, make("thead", {}, this.head), this.body);
    this.wait("waiting for the server");
  }

  headCell({ name, number, title }, index) {
    const turn = button(name, () => {
      this.down = this.sort === index ? !this.down : Boolean(number);
      this.sort = index;
      this.draw();
    }, { title });
    return make("th", { scope: "col", className: number ? "number" : "" }, turn);
  }

  // Before the first answer, and where there is none, it says so: no row is no answer.
  wait(words, className = "empty") {
    this.rows = null;
    this.body.replaceChildren(this.line(words, className));
  }

  line(...words) {
    const className = words.pop();
    return make("tr", {}, make("td", { colSpan: this.columns.length || 1, className }, ...words));
  }

  fill(rows, empty = this.empty) {
    Object.assign(this, { rows, empty });
    this.draw();
  }

  filter(words) {
    this.wanted = words.toLowerCase();
    if (this.rows) this.draw();
  }

  kept() {
    const { sort, down, wanted } = this;
    const has = (row) => row.some((value) => value !== null && value !== undefined && shown(value).toLowerCase().includes(wanted));
    const kept = wanted ? this.rows.filter(has) : [...this.rows];
    // What has no value comes last, whatever the direction is.
    const missing = (value) => value === null || value === undefined || Number.isNaN(value);
    const order = (a, b) => missing(a) - missing(b) || (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
    return sort === undefined ? kept : kept.sort((one, other) => order(one[sort], other[sort]));
  }

  draw() {
    const kept = this.kept();
    [...this.head.children].forEach((cell, index) =>
      cell.setAttribute("aria-sort", index === this.sort ? (this.down ? "descending" : "ascending") : "none"));
    const drawn = (this.all ? kept : kept.slice(0, DRAWN)).map((row) => this.row(row));
    if (kept.length === 0) drawn.push(this.line(this.rows.length ? "no row has these words" : this.empty, "empty"));
    if (drawn.length < kept.length) {
      const more = button(`show all ${kept.length}`, () => { this.all = true; this.draw(); });
      drawn.push(this.line(`${drawn.length} of ${kept.length} rows are shown. `, more, "empty"));
    }
    this.replace(drawn);
  }

  // Who reads a row with the keyboard stays there.
  replace(drawn) {
    const own = this.body.contains(document.activeElement) ? document.activeElement : null;
    const [key, place] = [own?.closest("tr").dataset.key, own ? [...own.closest("tr").querySelectorAll("a, button")].indexOf(own) : -1];
    this.body.replaceChildren(...drawn);
    if (own) drawn.find((row) => row.dataset.key === key)?.querySelectorAll("a, button")[place]?.focus();
  }

  row(row) {
    const line = make("tr", { "data-key": this.key(row) });
    line.append(...this.columns.map((column, index) => this.cell(column, row[index], row)));
    return line;
  }

  cell({ of, show = shown, number, className = "" }, value, row) {
    if (of) return make("td", { className }, of(row, value));
    if (value === null || value === undefined) return make("td", { className: "null" }, "NULL");
    const text = show(value);
    return make("td", { className: number ? "number" : "", title: text.length > 60 ? text : "" }, text);
  }
}
