/** Sessions of express-session: the store alone, and behind a server of Express. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import express from "express";
import expressSession from "express-session";
import { UnavailableError } from "../src/index.mjs";
import { SessionStore } from "../src/session.mjs";
import { Daemon, isLeft } from "./daemon.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.end());

// Many tables share the memory of this daemon.
const small = { min_memory: "64 kB" };
const options = (table, more = {}) => ({ ...daemon.at, table, options: small, principal: ({ user }) => user, ...more });
const made = (more = {}, maxAge = 60_000) => ({
  cookie: { originalMaxAge: maxAge, expires: new Date(Date.now() + maxAge).toISOString(), path: "/" },
  ...more,
});
const life = async (table, id) => (await daemon.sql(`SELECT _ttl AS n FROM ${table} WHERE id = ?`, id))[0]?.n;

test("what is set is got, touched, counted, listed, destroyed, cleared", async () => {
  const store = new SessionStore(options("calls"));
  assert.equal(await store.get("a"), null);
  const one = made({ user: 17, cart: ["ä", "\0", "\ud800", "{}"] });
  await store.set("a", one);
  assert.deepEqual(await store.get("a"), one);
  await store.set("b", made({ user: "18" }));
  assert.equal(await store.length(), 2);
  assert.deepEqual((await store.all()).map(({ id, user }) => [id, user]).sort(), [["a", 17], ["b", "18"]]); // prettier-ignore
  await store.touch("a", made({}, 3_600_000));
  assert.ok((await life("calls", "a")) > 3_500);
  assert.deepEqual(await store.get("a"), one, "touch does not write");
  await store.touch("missing", made());
  assert.equal(await store.get("missing"), null);
  await store.destroy("a");
  assert.equal(await store.get("a"), null);
  await store.clear();
  assert.equal(await store.length(), 0);
  assert.deepEqual(await store.all(), []);
});

test("callbacks are called once, and what they throw is theirs", async () => {
  const store = new SessionStore(options("callbacks"));
  const called = (method, ...given) => new Promise((resolve) => store[method](...given, (...answer) => resolve(answer)));
  assert.deepEqual(await called("set", "a", made()), [null, undefined]);
  assert.equal((await called("get", "a"))[1].cookie.path, "/");
  assert.deepEqual(await called("length"), [null, 1]);
  assert.equal((await called("all"))[1].length, 1);
  assert.deepEqual(await called("destroy", "a"), [null, undefined]);
  assert.deepEqual(await called("get", "a"), [null, null]);
  assert.deepEqual(await called("clear"), [null, undefined]);
  const thrown = new Promise((resolve) => process.setUncaughtExceptionCaptureCallback(resolve));
  store.get("a", () => {
    throw new Error("of the callback");
  });
  assert.match((await thrown).message, /of the callback/);
  process.setUncaughtExceptionCaptureCallback(null);
});

test("all sessions of a user end, but one", async () => {
  const store = new SessionStore(options("users"));
  for (const id of ["phone", "laptop", "kept"]) await store.set(id, made({ user: 2 }));
  await store.set("other", made({ user: 3 }));
  await store.set("nobody", made());
  assert.equal(await store.destroyUser(2, { keep: "kept" }), 2);
  assert.deepEqual((await store.all()).map(({ id }) => id).sort(), ["kept", "nobody", "other"]);
  assert.equal(await store.destroyUser("2"), 1);
  for (const user of ["'", '"', "{a,b}", "\\", "\0", "\ud800", "ä".repeat(1_000)]) {
    await store.set("strange", made({ user }));
    assert.equal(await store.destroyUser(user), 1, JSON.stringify(user));
  }
  for (const nobody of [undefined, null, "", {}, [2], true]) await assert.rejects(store.destroyUser(nobody), TypeError);
  await assert.rejects(new SessionStore(options("users", { principal: null })).destroyUser(2), TypeError);
  assert.equal(await store.length(), 2);
});

test("a session that was ended meanwhile does not come back", async () => {
  const store = new SessionStore(options("ended"));
  const request = { sessionID: "a", sessionStore: store };
  await store.set("a", made({ user: 2 }));
  const loaded = store.createSession(request, await store.get("a"));
  await store.destroyUser(2);
  loaded.visits = 1;
  await store.set("a", loaded);
  assert.equal(await store.get("a"), null);
  // The same of one that was made in this request and stored before it was ended.
  const fresh = made({ user: 2 });
  await store.set("b", fresh);
  await store.destroy("b");
  await store.set("b", fresh);
  assert.equal(await store.length(), 0);
});

test("times to live", async () => {
  const store = new SessionStore(options("lives", { ttl: 90_000 }));
  await store.set("browser", { cookie: { originalMaxAge: null, expires: null } });
  assert.ok(isLeft(await life("lives", "browser"), 90));
  await store.set("huge", made({}, 1e14));
  assert.ok((await life("lives", "huge")) > 1e8);
  await store.set("gone", made());
  await store.set("gone", made({}, -1));
  assert.equal(await store.get("gone"), null);
  await store.set("short", made({}, 400));
  await daemon.until(async () => (await store.get("short")) === null, "a session of 400 ms is gone");
});

test("any id", async () => {
  const store = new SessionStore(options("ids"));
  for (const id of ["a", "\0", "a b", "a\r\nflush_all", "'", "\ud800", "ä".repeat(200), "i".repeat(2_000)]) {
    await store.set(id, made({ id }));
    assert.equal((await store.get(id)).id, id);
    await store.touch(id, made({}, 7_200_000));
    assert.deepEqual((await store.all()).map((each) => each.id), [id]);
    await store.destroy(id);
    assert.equal(await store.length(), 0, JSON.stringify(id));
  }
});

test("many sessions are listed page after page", async () => {
  const store = new SessionStore(options("many"));
  await Promise.all(Array.from({ length: 250 }, (_, number) => store.set(`s${number}`, made())));
  assert.equal((await store.all()).length, 250);
});

test("what is no session is removed and told", async () => {
  const told = [];
  const store = new SessionStore(options("broken", { onError: (error) => told.push(error.message) }));
  for (const data of ["", "{", "null", "17", "[]", '{"cookie":null}', "\u{fffd}", '"text"']) {
    await store.length();
    await daemon.sql("REPLACE INTO broken (id, data) VALUES ('a', ?)", data);
    assert.equal(await store.get("a"), null, data);
    assert.equal(await store.length(), 0, data);
  }
  assert.equal(told.length, 1, "one a minute");
  assert.match(told[0], /did not load/);
});

test("flush_all ends no session", async () => {
  const store = new SessionStore(options("flushed"));
  await store.set("a", made());
  const said = await store.rows.client.ask("flush_all\r\n", () => (connection) => connection.line());
  assert.equal(said, "OK");
  assert.notEqual(await store.get("a"), null);
});

test("options that are none", () => {
  for (const wrong of [{ ttl: 0 }, { principal: "user" }, { table: "a b" }, { host: "x" }]) {
    assert.throws(() => new SessionStore({ ...daemon.at, ...wrong }), TypeError);
  }
});

/** A shop with a login, and what a browser with its cookie sees. */
class Shop {
  constructor(store) {
    const app = express();
    app.use(expressSession({ store, secret: "a secret of the test", resave: false, saveUninitialized: false }));
    app.get("/in/:user", (request, response, next) =>
      request.session.regenerate((error) => {
        if (error) return next(error);
        request.session.user = request.params.user;
        response.send("in");
      }),
    );
    app.get("/out", (request, response, next) => request.session.destroy((error) => (error ? next(error) : response.send("out"))));
    app.get("/", (request, response) => {
      if (!request.session.user) return response.send("nobody");
      request.session.visits = (request.session.visits ?? 0) + 1;
      response.send(`${request.session.user} ${request.session.visits}`);
    });
    app.use((error, _request, response, _next) => response.status(503).send(error.name));
    this.server = app.listen(0, "127.0.0.1");
  }

  async browser() {
    if (!this.server.listening) await once(this.server, "listening");
    const base = `http://127.0.0.1:${this.server.address().port}`;
    let cookie = "";
    return async (path) => {
      const response = await fetch(base + path, { headers: { cookie } });
      cookie = response.headers.get("set-cookie")?.split(";")[0] ?? cookie;
      return response.text();
    };
  }
}

test("a shop of Express", async () => {
  const store = new SessionStore(options("shop"));
  const shop = new Shop(store);
  const [phone, laptop, other] = [await shop.browser(), await shop.browser(), await shop.browser()];
  assert.equal(await phone("/"), "nobody");
  assert.equal(await store.length(), 0, "a session of nobody is not stored");
  for (const [browser, user] of [[phone, "ada"], [laptop, "ada"], [other, "bob"]]) assert.equal(await browser(`/in/${user}`), "in"); // prettier-ignore
  assert.deepEqual([await phone("/"), await phone("/"), await laptop("/")], ["ada 1", "ada 2", "ada 1"]);
  assert.equal(await store.destroyUser("ada"), 2);
  assert.deepEqual([await phone("/"), await laptop("/"), await other("/")], ["nobody", "nobody", "bob 1"]);
  assert.equal(await other("/out"), "out");
  assert.equal(await store.length(), 0);
  shop.server.close();
});

test("while the daemon is away requests with a session fail, and sessions are there again", async () => {
  const told = [];
  const store = new SessionStore(options("away", { onError: (error) => told.push(error) }));
  const shop = new Shop(store);
  const [ada, bob, nobody] = [await shop.browser(), await shop.browser(), await shop.browser()];
  await ada("/in/ada");
  await bob("/in/bob");
  await daemon.kill();
  assert.equal(await ada("/"), "UnavailableError");
  assert.equal(await nobody("/"), "nobody", "who has no session needs no daemon");
  await assert.rejects(store.destroyUser("ada"), UnavailableError);
  await daemon.start();
  const { removals } = store.rows;
  removals.sending = Promise.resolve(false);
  assert.equal(await bob("/"), "UnavailableError", "sessions were read before the removal got through");
  [removals.sending, removals.tried] = [null, 0];
  // A daemon that was away is asked once, and may be restarted just then.
  await daemon.until(async () => (await ada("/")) === "nobody", "the removal got through");
  assert.equal(await bob("/"), "bob 1");
  assert.equal(told.length, 1, "one a minute");
  shop.server.close();
});

test("a dropped table is made again, and one of another kind is refused", async () => {
  const store = new SessionStore(options("dropped"));
  await store.set("a", made({ user: 2 }));
  await daemon.sql("DROP TABLE dropped");
  await store.set("b", made({ user: 2 }));
  assert.equal(await store.destroyUser(2), 1);
  await daemon.sql("CREATE TABLE foreign_rows (id TEXT PRIMARY KEY)");
  await assert.rejects(new SessionStore(options("foreign_rows")).get("a"), /not of this cache/);
  await daemon.sql("ALTER TABLE dropped DROP COLUMN principal");
  await assert.rejects(store.set("c", made({ user: 2 })), /principal/);
});
