// The stretch of time that charts show: the last minutes up to now, or a part that somebody chose, which stands still.
import { now } from "./time.js";

const SHORTEST = 10_000;

export class View {
  // `span`: how far it looks back while it follows, in milliseconds. `changed` is called when it shows another time.
  constructor(span, changed = () => {}) {
    Object.assign(this, { span, changed, part: null, cursor: null });
  }

  get bounds() {
    const end = now();
    return this.part ?? [end - this.span, end];
  }

  get length() { const [from, to] = this.bounds; return to - from; }

  follow(span = this.span) { this.show(null, span); }

  // Shows this part of the time, not beyond now.
  zoom(from, to) {
    const length = Math.max(to - from, SHORTEST);
    const end = Math.min((from + to + length) / 2, now());
    this.show([Math.round(end - length), Math.round(end)], this.span);
  }

  // Closer by a factor, around the cursor or the middle.
  scale(factor) {
    const [from, to] = this.bounds;
    const middle = this.cursor ?? (from + to) / 2;
    this.zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  // Earlier or later by a part of its length.
  move(share) {
    const [from, to] = this.bounds;
    this.zoom(from + share * (to - from), to + share * (to - from));
  }

  point(cursor) { this.cursor = cursor; this.changed(false); }

  show(part, span) {
    Object.assign(this, { part, span });
    this.changed(true);
  }
}
