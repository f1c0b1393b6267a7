"use strict";

const { Store } = require("express-session");
const { SqlcachedError, UnavailableError } = require("./errors.js");
const limits = require("./limits.js");
const { Notices } = require("./notices.js");
const { Rows, seconds } = require("./rows.js");
const { original, text } = require("./text.js");

/** How long a session lives whose cookie ends with the browser, in milliseconds: a day, as in other stores. */
const TTL = 86_400_000;

const SHAPE = {
  key: "id",
  value: "data",
  columns: "id TEXT PRIMARY KEY, principal TEXT, data TEXT",
  index: { column: "principal", using: "btree" },
  // Other tables cannot evict sessions below this memory, `flush_all` leaves them, and `all` reads them page by page.
  options: { flush: false, min_memory: "8 MB", ordered: true },
  pending: limits.PENDING_SESSIONS,
};

/**
 * Sessions of express-session in a table, whose rows know their user. While the daemon is away a request with a session
 * fails: an empty session in its place would overwrite the stored one later.
 */
class SessionStore extends Store {
  /**
   * @param options a location, or options: those of the connection, `table`, `options` of the table, `ttl`, and
   *   `principal`, which says whose a session is
   */
  constructor(options = {}) {
    super();
    const given = typeof options === "string" ? { location: options } : options;
    const { table = "sessions", options: ofTable = {}, ttl = TTL, principal = null, onError, ...connection } = given;
    if (!(ttl > 0)) throw new TypeError("ttl is a number of milliseconds above 0");
    if (principal !== null && typeof principal !== "function") throw new TypeError("principal is a function of a session");
    this.rows = new Rows(connection, table, ofTable, SHAPE);
    this.ttl = ttl;
    this.principal = principal;
    this.notices = new Notices(onError);
    // Sessions that are stored as far as this process knows.
    this.stored = new WeakSet();
  }

  // What express-session calls. Without a callback each returns a promise.

  get(id, done) {
    return this.answer(done, () => this.read(id));
  }

  set(id, session, done) {
    return this.answer(done, () => this.write(id, session));
  }

  touch(id, session, done) {
    return this.answer(done, async () => {
      const ttl = this.left(session);
      if (ttl > 0) await this.rows.touch(id, ttl);
    });
  }

  destroy(id, done) {
    return this.answer(done, async () => {
      await this.rows.deleteKeys([id]);
    });
  }

  /** All sessions, each with its `id`. */
  all(done) {
    return this.answer(done, async () => {
      await this.readable();
      const found = [];
      for (let last = null, rows; (rows = await this.rows.page("", last)).length > 0; last = rows.at(-1).key) {
        for (const row of rows) {
          const [id, session] = [original(row.key), await this.parsed(row.key, row.data)];
          if (session !== null) found.push({ ...session, id });
        }
      }
      return found;
    });
  }

  /** How many sessions there are. */
  length(done) {
    return this.answer(done, () => this.rows.count());
  }

  clear(done) {
    return this.answer(done, async () => {
      await this.rows.deletePrefix("");
    });
  }

  createSession(request, data) {
    const session = super.createSession(request, data);
    this.stored.add(session);
    return session;
  }

  // Beyond express-session.

  /**
   * Ends all sessions of a user, except the one with the id `keep`; how many. If that cannot be sent, it throws: then it is
   * kept, and this process reads no session until it got through.
   */
  async destroyUser(user, { keep } = {}) {
    if (this.principal === null) throw new TypeError("the option principal must say whose a session is");
    const whose = named(user);
    if (whose === null) throw new TypeError("the user has no name");
    const [more, parameters] = keep === undefined ? ["", []] : [" AND id <> ?", [text(keep)]];
    return this.rows.removals.send(`DELETE FROM "${this.rows.name}" WHERE principal = ?${more}`, [whose, ...parameters]);
  }

  disconnect() {
    return this.rows.client.disconnect();
  }

  // Within.

  async readable() {
    if (!(await this.rows.removals.areSent())) throw new UnavailableError("sessions that were ended are not yet removed");
  }

  async read(id) {
    await this.readable();
    const item = await this.rows.item(id);
    return item === undefined ? null : this.parsed(text(id), item.data);
  }

  /** The session of a text; null if it is none, which then is removed. */
  async parsed(key, data) {
    try {
      const session = JSON.parse(data);
      if (typeof session?.cookie === "object" && session.cookie !== null) return session;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    this.notices.tell(new SqlcachedError(`a session in ${this.rows.name} did not load and was removed`));
    await this.rows.removals.send(`DELETE FROM "${this.rows.name}" WHERE id = ?`, [key]);
    return null;
  }

  /** A session that was ended meanwhile does not come back. */
  async write(id, session) {
    const ttl = this.left(session);
    if (!(ttl > 0)) return void (await this.rows.deleteKeys([id]));
    const values = [this.principal === null ? null : named(this.principal(session)), JSON.stringify(session), seconds(ttl)];
    const { name } = this.rows;
    if (this.stored.has(session)) {
      await this.rows.sql(`UPDATE "${name}" SET principal = ?, data = ?, _ttl = ? WHERE id = ?`, [...values, text(id)]);
      return;
    }
    await this.rows.sql(`REPLACE INTO "${name}" (principal, data, _ttl, id) VALUES (?, ?, ?, ?)`, [...values, text(id)]);
    this.stored.add(session);
  }

  /** Milliseconds that a session has left. */
  left(session) {
    const expires = session?.cookie?.expires;
    return expires ? new Date(expires).getTime() - Date.now() : this.ttl;
  }

  answer(done, work) {
    const promise = work();
    if (typeof done !== "function") return promise;
    // What the callback throws is not the promise's.
    promise.then(
      (found) => process.nextTick(done, null, found),
      (error) => {
        if (error instanceof SqlcachedError) this.notices.tell(error);
        process.nextTick(done, error);
      },
    );
  }
}

/** A user as the table knows it; null: nobody. */
function named(user) {
  if (user === undefined || user === null || user === "") return null;
  if (!["string", "number", "bigint"].includes(typeof user)) throw new TypeError(`a user of the type ${typeof user} has no name`);
  return text(String(user));
}

module.exports = { SessionStore, default: SessionStore };
