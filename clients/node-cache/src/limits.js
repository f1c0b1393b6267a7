"use strict";

/** The bounds of this package, each with its reason. */
module.exports = {
  /** The longest key of memcached's protocol, with the table's prefix. Longer keys go by SQL to the same rows. */
  KEY: 250,
  /** A command line that the daemon takes has 2,048 bytes. This leaves room for the flags of the longest command. */
  LINE: 1_900,
  /** The longest line of an answer that is believed: the daemon's largest result, 64 MiB, could be one row. */
  ANSWER_LINE: 67_108_864 + 1_024,
  /** The longest value that is believed: what a daemon can be told to store at most (`-I 1g`). */
  VALUE: 1_073_741_824,
  /** Requests that wait for an answer on the connection. More are refused: nobody would wait for the last one. */
  WAITING: 100_000,
  /** memcached's last moment. A row with this deadline outlives the table's `ttl`. */
  FOREVER: 2_147_483_647,
  /** Above this number of seconds memcached takes an exptime for a Unix time. */
  MONTH: 2_592_000,
  /** The longest deadline that a statement is given: a thousand years. */
  TTL: 31_557_600_000,
  /** Removals that wait for a daemon that is away. Beyond them the table is emptied instead. */
  PENDING: 1_000,
  /** The same of sessions, none of which may end without a reason. */
  PENDING_SESSIONS: 100_000,
  /** Pauses in milliseconds before a request is sent again: a daemon that restarts is back within that time. */
  RETRIES: [50, 250, 700, 2_000],
  /** Milliseconds between two attempts to send what waits. */
  RETRY: 1_000,
  /** Milliseconds between two warnings of a daemon that is away, which fails thousands of times a second. */
  WARNING: 60_000,
  /** Seconds for which a missing value is reserved for the one who makes it. */
  LEASE: 30,
  /** Milliseconds that others wait for it. Then each makes the value for itself. */
  LEASE_WAIT: 10_000,
  /** Milliseconds between two looks of one who waits: short at first, as most values are made fast. */
  PAUSE_MIN: 2,
  PAUSE_MAX: 50,
  /** Seconds that an entry of Next lives at most, which are Next's own year. */
  YEAR: 31_536_000,
  /** Seconds that the time of a tag is kept, which no entry outlives. */
  TAG_YEAR: 31_622_400,
  /** Entries of Next that are made at once, as far as their beginning is known. */
  BEGUN: 10_000,
  /** Rows of one page of an iterator: few enough for a result, many enough to cost little each. */
  PAGE: 100,
};
