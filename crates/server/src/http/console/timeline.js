// The timeline of invalidations: what happened close to one another is one mark, and a mark opens who did what.
import { facts, make, open } from "./dom.js";
import { clock, count, milliseconds, moment, rows as rowsOf } from "./words.js";

const PLACES = 120;
// Invalidations that one mark opens.
const OPENED = 50;

const sumOfRows = (events) => events.reduce((sum, { rows }) => sum + Number(rows), 0);
const ofTable = ({ table_name: table }) => table ?? "all tables of memcached clients";
export const whoDid = ({ role_name: role, client_addr: where, protocol }) => `${role || "somebody"}${where ? ` at ${where}` : ""} by ${protocol}`;

export function openInvalidations(events) {
  const lists = events.slice(0, OPENED).map((event) => facts([
    ["at", new Date(moment(event.at)).toLocaleString()], ["what", event.what], ["table name", ofTable(event)], ["rows", event.rows],
    ["statement", event.statement], ["parameters", event.parameters], ["by", whoDid(event)], ["times", event.times],
    ["duration ms", event.duration_ms === null ? null : milliseconds(event.duration_ms)],
  ]));
  const more = events.length > OPENED ? [make("p", { className: "empty" }, `and ${events.length - OPENED} more: see Invalidations`)] : [];
  open(events.length === 1 ? "Invalidation" : `${events.length} invalidations`, ...lists, ...more);
}

export class Timeline {
  constructor(view) {
    Object.assign(this, { view, events: null });
    this.marks = make("div", { id: "marks", role: "toolbar", "aria-label": "Invalidations" });
    this.words = make("p", { className: "empty" });
    this.box = make("div", { id: "timeline" }, make("h3", {}, "Invalidations"), this.marks, this.words);
    this.marks.addEventListener("keydown", (event) => this.press(event));
    this.draw();
  }

  // `whole`: the server keeps no older ones than these.
  fill(events, whole) {
    Object.assign(this, { events, whole });
    this.draw();
  }

  draw() {
    const [from, to] = this.view.bounds;
    const places = new Map();
    for (const event of this.events ?? []) {
      const share = (moment(event.at) - from) / (to - from);
      if (share < 0 || share >= 1) continue;
      const place = Math.floor(share * PLACES);
      places.set(place, [...places.get(place) ?? [], event]);
    }
    this.replace(places);
    this.words.textContent = this.tell(places.size, from);
  }

  replace(places) {
    const most = Math.max(1, ...[...places.values()].map(sumOfRows));
    const focused = this.marks.contains(document.activeElement) ? document.activeElement.dataset.first : undefined;
    const marks = [...places].sort(([one], [other]) => one - other).map(([place, events]) => this.mark(place, events, most));
    marks.forEach((own, index) => { own.tabIndex = index === marks.length - 1 ? 0 : -1; });
    this.marks.replaceChildren(...marks);
    if (focused !== undefined) marks.find((own) => own.dataset.first === focused)?.focus();
  }

  tell(marks, from) {
    if (!this.events) return "waiting for sqlcached_invalidations";
    const oldest = this.events.at(-1);
    if (!this.whole && oldest && moment(oldest.at) > from) return `only those since ${clock(oldest.at)} are kept`;
    return marks ? "" : "none in this time";
  }

  mark(place, events, most) {
    const words = `${clock(events[0].at)}: ${events[0].what} ${rowsOf(sumOfRows(events))} of ${ofTable(events[0])}`;
    const own = make("button", {
      type: "button", className: `mark ${events[0].what}`, title: words, "aria-label": words, onclick: () => openInvalidations(events),
    });
    own.style.left = `${place / PLACES * 100}%`;
    own.style.height = `${8 + 26 * Math.sqrt(sumOfRows(events) / most)}px`;
    own.dataset.first = events.at(-1).at;
    return own;
  }

  // The arrows walk along the marks.
  press(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const all = [...this.marks.children];
    const next = step && all[all.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}

export const inShort = (event) => `${event.what} ${count(event.rows)} rows of ${ofTable(event)}, ${whoDid(event)}`;
