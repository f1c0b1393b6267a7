"use strict";

const limits = require("./limits.js");

/** Rows of a daemon on this machine, read from shared memory by the package `@sqlcached/shared-memory`. */
class Memory {
  /** @param option what its client takes: `socket`, `arena`; `true`: where a daemon of this user has them by default */
  constructor(option) {
    this.option = option === true ? {} : option;
    this.package = installed();
    this.client = null;
    this.failedAt = -Infinity;
  }

  /**
   * The data and flags of a key; null if it is missing. Undefined if the daemon is to be asked: the table is not in shared
   * memory, the row is to be made again, or the daemon is on another machine or away.
   */
  look(key) {
    const found = this.opened()?.glance(key);
    if (found?.state === "hit") return { data: found.value, flags: found.flags, stale: false };
    return found?.state === "miss" ? null : undefined;
  }

  /** The client; null while it cannot be had. */
  opened() {
    if (this.client !== null || performance.now() - this.failedAt < limits.RETRY) return this.client;
    try {
      this.client = new this.package.Client(this.option);
    } catch {
      // The daemon is asked instead, which says what is wrong if it is away.
      this.failedAt = performance.now();
    }
    return this.client;
  }
}

function installed() {
  try {
    return require("@sqlcached/shared-memory");
  } catch (error) {
    throw new TypeError("the option sharedMemory needs the package @sqlcached/shared-memory beside this one", { cause: error });
  }
}

module.exports = { Memory };
