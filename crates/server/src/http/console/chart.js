// A chart over time: lines, or areas upon one another. Drag or the keys choose a part of the time; the arrows walk along
// the points. All charts of a page share one view, so they show the same time and the same moment.
import { make } from "./dom.js";
import { clock, percent } from "./words.js";

const COLOURS = 6;
const [LEFT, BOTTOM, TOP] = [52, 18, 6];
const SECOND = 1000;
const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((seconds) => seconds * SECOND);
// Pixels between two words of the time axis; that make a drag of a click.
const [WORDS_APART, DRAG] = [76, 5];
const DAY = 86400 * SECOND;

// Round numbers from 0 to the top: about four of them.
function ticks(top, base) {
  const rough = top / 4;
  const unit = base === 1024 ? 1024 ** Math.floor(Math.log(Math.max(rough, 1)) / Math.log(1024)) : 1;
  const power = unit * 10 ** Math.floor(Math.log10(rough / unit));
  const step = [1, 2, 5, 10].map((times) => times * power).find((own) => own >= rough);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, number) => number * step);
}

// Round times between two moments, by this browser's clock.
function times(from, to, width) {
  const step = STEPS.find((own) => (to - from) / own * WORDS_APART <= width) ?? DAY;
  const zone = new Date(from).getTimezoneOffset() * 60 * SECOND;
  const first = Math.ceil((from - zone) / step) * step + zone;
  const options = { hour: "2-digit", minute: "2-digit", second: step < 60 * SECOND ? "2-digit" : undefined };
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, number) => first + number * step)
    .map((moment) => [moment, new Date(moment).toLocaleTimeString([], options)]);
}

const finite = (value) => Number.isFinite(value);

export class Chart {
  // `show`: how a value is written; `stacked`: whether areas add up; `base`: 1024 for bytes.
  constructor(title, view, { show, stacked = false, base = 1000 }) {
    Object.assign(this, { title, view, show, stacked, base, points: [], names: [], anchor: null, pointer: null });
    this.canvas = make("canvas", { role: "img", tabIndex: 0, "aria-label": title, "aria-keyshortcuts": "ArrowLeft ArrowRight + - 0" });
    this.key = make("p", { className: "key" });
    this.box = make("figure", {}, make("figcaption", {}, title), this.canvas, this.key);
    this.listen();
  }

  // `points`: { moment, seconds, values }, the oldest first; a name that is missing in one has no value there.
  fill(points) {
    this.points = points;
    this.names = [...new Set(points.flatMap((point) => Object.keys(point.values)))].slice(0, COLOURS);
    this.box.dataset.points = points.length;
    this.draw();
  }

  get width() { return this.canvas.clientWidth - LEFT; }

  x(moment) {
    const [from, to] = this.view.bounds;
    return LEFT + (moment - from) / (to - from) * this.width;
  }

  momentAt(x) {
    const [from, to] = this.view.bounds;
    return from + (x - LEFT) / this.width * (to - from);
  }

  y(value) { return TOP + (1 - value / this.top) * (this.canvas.clientHeight - BOTTOM - TOP); }

  draw() {
    const { canvas } = this;
    const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    if (width === 0) return;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`);
    this.top = this.show === percent ? 1 : Math.max(...this.points.map((point) => this.heightOf(point)), 0) * 1.05 || 1;
    this.drawScale(pen, width, height);
    pen.save();
    pen.beginPath(); pen.rect(LEFT, 0, this.width, height - BOTTOM); pen.clip();
    this.drawGaps(pen, height);
    this.stretches().forEach((stretch) => this.drawStretch(pen, stretch));
    this.drawChoice(pen, height);
    pen.restore();
    this.tell();
  }

  heightOf({ values }) {
    const all = this.names.map((name) => values[name]).filter(finite);
    return this.stacked ? all.reduce((sum, value) => sum + value, 0) : Math.max(0, ...all);
  }

  drawScale(pen, width, height) {
    [pen.strokeStyle, pen.fillStyle, pen.lineWidth] = [this.colour("line"), this.colour("soft"), 1];
    [pen.textAlign, pen.textBaseline] = ["right", "middle"];
    const line = (...ends) => { pen.beginPath(); pen.moveTo(...ends[0]); pen.lineTo(...ends[1]); pen.stroke(); };
    for (const value of this.points.length ? ticks(this.top, this.base) : []) {
      const y = Math.round(this.y(value)) + 0.5;
      line([LEFT, y], [width, y]);
      pen.fillText(this.show(value), LEFT - 5, Math.max(y, 6));
    }
    [pen.textAlign, pen.textBaseline] = ["center", "bottom"];
    for (const [moment, words] of times(...this.view.bounds, this.width)) {
      const x = Math.round(this.x(moment)) + 0.5;
      line([x, height - BOTTOM], [x, height - BOTTOM + 4]);
      if (x > LEFT + 14 && x < width - 28) pen.fillText(words, x, height);
    }
  }

  // Points that follow one another. Where the server was away, a stretch ends.
  stretches() {
    const all = [];
    this.points.forEach((point, index) => {
      const before = this.points[index - 1];
      const follows = before && point.moment - before.moment < 2500 * Math.max(before.seconds, point.seconds);
      if (follows) all.at(-1).push(point); else all.push([point]);
    });
    return all;
  }

  // What was not measured is grey, not 0.
  drawGaps(pen, height) {
    pen.fillStyle = this.colour("gap");
    const [from, to] = this.view.bounds;
    let end = from;
    for (const stretch of this.stretches()) {
      const begin = stretch[0].moment - stretch[0].seconds * SECOND;
      if (begin > end) pen.fillRect(this.x(end), 0, this.x(begin) - this.x(end), height);
      end = stretch.at(-1).moment;
    }
    // The newest point may be as old as it is long.
    const grace = 2500 * (this.points.at(-1)?.seconds ?? 0);
    if (to - end > grace) pen.fillRect(this.x(end), 0, this.x(to) - this.x(end), height);
  }

  drawStretch(pen, stretch) {
    const floor = stretch.map(() => 0);
    this.names.forEach((name, series) => {
      const below = stretch.map((_, index) => floor[index]);
      const places = [];
      stretch.forEach(({ moment, values }, index) => {
        if (!finite(values[name])) return;
        const value = (this.stacked ? floor[index] : 0) + values[name];
        if (this.stacked) floor[index] = value;
        places.push([this.x(moment), this.y(value), this.y(this.stacked ? below[index] : 0)]);
      });
      this.drawSeries(pen, places, this.colour(`c${series}`));
    });
  }

  drawSeries(pen, places, colour) {
    // A part of a whole that is nothing hides none of the others.
    if (places.length === 0 || this.stacked && places.every(([, y, below]) => y === below)) return;
    if (places.length === 1) places.push([places[0][0] + 2, ...places[0].slice(1)]);
    [pen.strokeStyle, pen.fillStyle, pen.lineWidth] = [colour, colour, 1.5];
    pen.beginPath();
    places.forEach(([x, y]) => pen.lineTo(x, y));
    pen.stroke();
    [...places].reverse().forEach(([x, , below]) => pen.lineTo(x, below));
    pen.globalAlpha = this.stacked ? 0.45 : 0.14;
    pen.fill();
    pen.globalAlpha = 1;
  }

  // What is being dragged over, and the moment that the key tells of.
  drawChoice(pen, height) {
    if (this.anchor !== null && this.pointer !== null) {
      [pen.fillStyle, pen.globalAlpha] = [this.colour("c0"), 0.2];
      pen.fillRect(Math.min(this.anchor, this.pointer), 0, Math.abs(this.pointer - this.anchor), height);
      pen.globalAlpha = 1;
    }
    const chosen = this.chosen();
    if (this.view.cursor === null || !chosen) return;
    pen.strokeStyle = this.colour("soft");
    pen.beginPath(); pen.moveTo(this.x(chosen.moment), 0); pen.lineTo(this.x(chosen.moment), height); pen.stroke();
  }

  // The point of the cursor, or the last one.
  chosen() {
    const { points, view: { cursor } } = this;
    if (cursor === null) return points.at(-1);
    const distance = (point) => Math.abs(point.moment - cursor);
    return points.reduce((best, point) => !best || distance(point) < distance(best) ? point : best, undefined);
  }

  tell() {
    const point = this.chosen();
    if (!point) {
      this.key.replaceChildren(make("span", {}, "no figures of this time"));
      this.canvas.setAttribute("aria-label", `${this.title}: no figures of this time`);
      return;
    }
    const parts = this.names.map((name, series) => {
      const part = make("span", {}, `${name} ${finite(point.values[name]) ? this.show(point.values[name]) : "–"}`);
      part.style.setProperty("--own", `var(--c${series})`);
      return part;
    });
    const when = this.view.cursor === null ? [] : [make("em", {}, clock(point.moment))];
    this.key.replaceChildren(...when, ...parts);
    this.canvas.setAttribute("aria-label", `${this.title}, ${clock(point.moment)}: ${parts.map((part) => part.textContent).join(", ")}`);
  }

  listen() {
    const { canvas, view } = this;
    canvas.addEventListener("pointerdown", ({ offsetX, pointerId, button }) => {
      if (button !== 0) return;
      this.anchor = offsetX;
      canvas.setPointerCapture(pointerId);
    });
    canvas.addEventListener("pointermove", ({ offsetX }) => { this.pointer = offsetX; view.point(this.momentAt(offsetX)); });
    canvas.addEventListener("pointerup", () => this.choose());
    canvas.addEventListener("pointercancel", () => { this.anchor = null; });
    canvas.addEventListener("pointerleave", () => { if (this.anchor === null) { this.pointer = null; view.point(null); } });
    canvas.addEventListener("blur", () => view.point(null));
    canvas.addEventListener("dblclick", () => view.follow());
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  choose() {
    const { anchor, pointer, view } = this;
    this.anchor = null;
    if (anchor === null || pointer === null || Math.abs(pointer - anchor) < DRAG) return;
    view.zoom(...[anchor, pointer].map((x) => this.momentAt(x)).sort((one, other) => one - other));
  }

  press(event) {
    const { view } = this;
    const act = {
      "+": () => view.scale(0.5), "=": () => view.scale(0.5), "-": () => view.scale(2), "0": () => view.follow(), Escape: () => view.follow(),
      ArrowLeft: () => event.shiftKey ? view.move(-0.25) : this.walk(-1), ArrowRight: () => event.shiftKey ? view.move(0.25) : this.walk(1),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  walk(step) {
    const [from, to] = this.view.bounds;
    const seen = this.points.filter(({ moment }) => moment >= from && moment <= to);
    const next = seen[Math.min(Math.max(seen.indexOf(this.chosen()) + step, 0), seen.length - 1)];
    if (next) this.view.point(next.moment);
  }
}
