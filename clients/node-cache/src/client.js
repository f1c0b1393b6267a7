"use strict";

const { setTimeout: pause } = require("node:timers/promises");
const { Connection, address } = require("./connection.js");
const { UnavailableError } = require("./errors.js");
const limits = require("./limits.js");
const protocol = require("./protocol.js");

/** Statements that do the same when they run twice. */
const TWICE = /^\s*(SELECT|DELETE|REPLACE|TRUNCATE|CREATE (TABLE|INDEX) IF NOT EXISTS)\b/i;

const NAMES = ["location", "user", "password", "tls", "timeout", "connectTimeout"];

/** The options of a connection, with their defaults. Times are milliseconds. */
function connectionOptions(given) {
  const options = { location: "127.0.0.1:11211", timeout: 5_000, connectTimeout: 1_000, ...given };
  for (const name of ["timeout", "connectTimeout"]) {
    if (!(options[name] > 0)) throw new TypeError(`${name} is a number of milliseconds above 0`);
  }
  if (!options.location.startsWith("/")) address(options.location);
  return options;
}

/** Requests to one daemon: memcached's meta commands and statements, over one connection. */
class Client {
  /** `begin` is called with each new connection before anything else. */
  constructor(options = {}, begin = async () => {}) {
    const given = typeof options === "string" ? { location: options } : options;
    const unknown = Object.keys(given).filter((name) => !NAMES.includes(name));
    if (unknown.length > 0) throw new TypeError(`unknown options: ${unknown.join(", ")}`);
    this.options = connectionOptions(given);
    this.begin = begin;
    this.connecting = null;
    this.current = null;
    this.isAway = false;
  }

  /**
   * Runs a statement: its rows, or the number of rows that it changed. Parameters are `?`. What does the same when it runs
   * twice is sent again to a daemon that restarts; of another statement the error is told, as it may have run.
   */
  sql(text, ...parameters) {
    return this.ask(protocol.statement(text, parameters), protocol.rows, TWICE.test(text));
  }

  /**
   * Sends a request; what the function that `reader` makes reads of its answer. A connection that had died is replaced at
   * once, and to a daemon that restarts it is sent again after pauses. With `again` off it is not sent twice.
   */
  ask(request, reader, again = true) {
    return this.attempt((connection) => connection.ask(request, reader()), again);
  }

  /** Does the same with what is asked of a connection in several requests. */
  async attempt(work, again = true) {
    // A daemon that is known to be away costs nobody a pause.
    const pauses = this.isAway ? [] : [0, ...limits.RETRIES];
    for (let isSent = false, isOld = false; ; ) {
      try {
        const connection = this.current?.closed === null ? this.current : await this.connection();
        [isSent, isOld] = [true, connection.answered];
        const answer = await work(connection);
        this.isAway = false;
        return answer;
      } catch (error) {
        if (!(error instanceof UnavailableError && error.isBrief && (again || !isSent))) throw error;
        // The first pause is for a connection that had died while nobody used it.
        if (pauses[0] === 0 && !isOld) pauses.shift();
        if (pauses.length === 0) {
          this.isAway = true;
          throw error;
        }
        await pause(pauses.shift());
      }
    }
  }

  connection() {
    if (this.current !== null && this.current.closed === null) return this.current;
    this.connecting ??= this.opened().finally(() => (this.connecting = null));
    return this.connecting;
  }

  async opened() {
    const connection = await new Connection(this.options).open();
    try {
      if (this.options.user !== undefined) {
        const login = Buffer.from(`${this.options.user} ${this.options.password ?? ""}`);
        const request = Buffer.concat([Buffer.from(`set login 0 0 ${login.length}\r\n`), login, Buffer.from("\r\n")]);
        await connection.ask(request, protocol.exactly("STORED"));
      }
      await this.begin(connection);
    } catch (error) {
      connection.end("it was not begun");
      throw error;
    }
    connection.answered = false;
    this.current = connection;
    return connection;
  }

  /** Closes the connection, which opens again by itself. */
  async disconnect() {
    const connection = this.current ?? (await this.connecting?.catch(() => null));
    connection?.end("it was closed");
    this.current = null;
  }
}

module.exports = { Client };
