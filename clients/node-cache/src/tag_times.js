"use strict";

const limits = require("./limits.js");
const { Rows } = require("./rows.js");
const { text } = require("./text.js");

const SHAPE = {
  key: "tag",
  value: "note",
  columns: "tag TEXT PRIMARY KEY, note TEXT, expired BIGINT NOT NULL, stale BIGINT NOT NULL, later BIGINT NOT NULL",
  index: { column: "expired", using: "btree" },
  // No entry lives longer than a year, so that a tag's time can go after that. `flush_all` and other tables do not take it.
  options: { flush: false, min_memory: "1 MB", ttl: `${limits.TAG_YEAR} s` },
};

/**
 * When tags were revalidated, in milliseconds. All that was made before `expired` is expired. What was made before `stale`
 * is to be made again, and it is expired from `later` on, if that is not 0.
 */
class TagTimes {
  constructor(connection, name) {
    this.rows = new Rows(connection, name, {}, SHAPE);
    // Of two revalidations none takes back what the other one said. One that has come due is kept as such.
    this.statement =
      `INSERT INTO "${name}" (tag, expired, stale, later) VALUES (?, ?, ?, ?) ON CONFLICT (tag) DO UPDATE SET ` +
      `expired = greatest("${name}".expired, excluded.expired, CASE WHEN "${name}".later BETWEEN 1 AND ? THEN "${name}".stale ELSE 0 END), ` +
      `stale = greatest("${name}".stale, excluded.stale), ` +
      `later = CASE WHEN excluded.later > 0 THEN excluded.later ELSE "${name}".later END`;
  }

  areSent() {
    return this.rows.removals.areSent();
  }

  async set(tags, durations) {
    const now = Date.now();
    const isAtOnce = durations === undefined || durations.expire === 0;
    const later = isAtOnce || durations.expire === undefined ? 0 : now + durations.expire * 1_000;
    const times = isAtOnce ? [now, 0, 0] : [0, now, later];
    const told = tags.map((tag) => this.rows.removals.send(this.statement, [text(tag), ...times, now]));
    const failed = (await Promise.allSettled(told)).find(({ status }) => status === "rejected");
    if (failed) throw failed.reason;
  }

  /** What an entry with these tags is that was made at a time: `fresh`, `stale` or `expired`. */
  async state(tags, made) {
    const names = [...new Set(tags)].map(text);
    if (names.length === 0) return "fresh";
    const places = names.map(() => "?").join(", ");
    const rows = await this.rows.sql(`SELECT expired, stale, later FROM "${this.rows.name}" WHERE tag IN (${places})`, names);
    const now = Date.now();
    const isExpired = ({ expired, stale, later }) => expired >= made || (stale >= made && later > 0 && later <= now);
    if (rows.some(isExpired)) return "expired";
    return rows.some(({ stale }) => stale >= made) ? "stale" : "fresh";
  }
}

module.exports = { TagTimes };
