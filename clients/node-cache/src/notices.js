"use strict";

const limits = require("./limits.js");
const { SqlcachedError } = require("./errors.js");

/** Tells of a daemon that is away, at most once a minute, and answers in its place. */
class Notices {
  /** `tell` is called with the error; without one Node prints a warning. */
  constructor(tell = (error) => process.emitWarning(error.message, "SqlcachedWarning")) {
    this.send = tell;
    this.told = -Infinity;
  }

  tell(error) {
    const now = performance.now();
    if (now - this.told < limits.WARNING) return;
    this.told = now;
    this.send(error);
  }

  /** What `work` finds; `answer` if the daemon cannot be asked. */
  async attempt(work, answer) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SqlcachedError)) throw error;
      this.tell(error);
      return answer;
    }
  }
}

module.exports = { Notices };
