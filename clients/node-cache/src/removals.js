"use strict";

const { SqlcachedError, UnavailableError } = require("./errors.js");
const limits = require("./limits.js");

/**
 * The removals of a table, none of which may be lost. What cannot be sent is kept, and this process reads nothing from
 * the table until it got through.
 */
class Removals {
  /** `run` runs a statement; `all` removes all rows, where there are too many removals to keep. */
  constructor(run, all, most = limits.PENDING) {
    this.run = run;
    this.all = all;
    this.most = most;
    this.waiting = [];
    this.tried = 0;
    this.sending = null;
  }

  /** Whether rows may be read at once. */
  get isEmpty() {
    return this.waiting.length === 0;
  }

  /** Whether nothing waits. What waits is sent now, at most once in a second. */
  async areSent() {
    if (this.waiting.length === 0) return true;
    if (this.sending === null) {
      const now = Date.now();
      if (now - this.tried < limits.RETRY && now >= this.tried) return false;
      this.tried = now;
      this.sending = this.sent().finally(() => (this.sending = null));
    }
    return this.sending;
  }

  async sent() {
    try {
      while (this.waiting.length > 0) {
        const first = this.waiting[0];
        await this.run(...first);
        // Too many may have been replaced meanwhile.
        if (this.waiting[0] === first) this.waiting.shift();
      }
      return true;
    } catch (error) {
      if (error instanceof SqlcachedError) return false;
      throw error;
    }
  }

  /** Sends a removal; how many rows. What cannot be sent is kept, and the error is the caller's. */
  async send(text, parameters) {
    try {
      return await this.run(text, parameters);
    } catch (error) {
      if (error instanceof UnavailableError) this.keep(text, parameters);
      throw error;
    }
  }

  /** Keeps a removal that cannot be sent. */
  keep(text, parameters) {
    if (this.waiting.length < this.most) this.waiting.push([text, parameters]);
    else this.waiting = [[this.all, []]];
  }
}

module.exports = { Removals };
