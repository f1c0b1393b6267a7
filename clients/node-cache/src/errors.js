"use strict";

/** Every error of this package. */
class SqlcachedError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The daemon cannot be reached, or did not answer in time. */
class UnavailableError extends SqlcachedError {
  /** `isBrief`: the connection ended, so that a daemon which only restarts answers soon. */
  constructor(message, isBrief = false) {
    super(message);
    this.isBrief = isBrief;
  }
}

/** The daemon refused a command: a value that is too large, a row that a constraint forbids. */
class RefusedError extends SqlcachedError {}

/** A statement failed. `sqlstate` is PostgreSQL's code of five characters. */
class StatementError extends SqlcachedError {
  constructor(sqlstate, message) {
    super(`${message} (${sqlstate})`);
    this.sqlstate = sqlstate;
  }

  /** The table is gone. Then `tags && ?` may be refused before that is seen: the type of a missing column is not known. */
  get saysNoTable() {
    return this.sqlstate === "42P01" || this.sqlstate === "42725";
  }
}

/** The error of an answer. */
function refused(line) {
  const failed = /^ERROR ([0-9A-Z]{5}) (.*)$/s.exec(line);
  if (failed) return new StatementError(failed[1], failed[2]);
  if (/^(ERROR|CLIENT_ERROR|SERVER_ERROR|NOT_STORED)\b/.test(line)) return new RefusedError(line);
  return new UnavailableError(`an answer that is not memcached's: ${line.slice(0, 200)}`);
}

module.exports = { SqlcachedError, UnavailableError, RefusedError, StatementError, refused };
