/** Tests of this package beside Keyv's own. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { after, before, test } from "node:test";
import { createRequire } from "node:module";
import Keyv from "keyv";
import { Client, RefusedError, UnavailableError } from "../src/index.mjs";
import { KeyvSqlcached } from "../src/keyv.mjs";
import { Daemon, isLeft } from "./daemon.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.end());

const count = async (table) => (await daemon.sql(`SELECT count(*) AS n FROM ${table}`))[0].n;

test("any key", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "keys" });
  const keys = ["a", " ", "\0", "a\0b", "a\x1b0000b", "\ud800", "ä", "\u{10ffff}", "a\r\nmg b v\r\n", "'", '"', "%", "k".repeat(245),
    "k".repeat(246), "ä".repeat(200), "k".repeat(2_000), "\0".repeat(500)]; // prettier-ignore
  for (const key of keys) {
    for (const value of ["text", Buffer.from([0, 255]), "nul \0", "\u{1f600}", "x".repeat(200_000)]) {
      assert.equal(await store.set(key, value), true, JSON.stringify(key));
      assert.deepEqual(await store.get(key), value);
    }
    assert.deepEqual(await store.getMany([key, "missing"]), ["x".repeat(200_000), undefined]);
    assert.equal(await store.has(key), true);
    assert.equal(await store.delete(key), true);
    assert.equal(await store.delete(key), false);
    assert.equal(await store.get(key), undefined);
    await store.set(key, "value");
  }
  const found = [];
  for await (const [key] of store.iterator()) found.push(key);
  assert.deepEqual(found.sort(), keys.sort());
  await store.clear();
  assert.equal(await count("keys"), 0);
  await store.disconnect();
});

test("an iterator goes over many pages", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "pages" });
  const keyv = new Keyv({ store, namespace: "n" });
  const names = Array.from({ length: 345 }, (_, number) => `k${number}`);
  await Promise.all(names.map((name) => keyv.set(name, name)));
  await new Keyv({ store: new KeyvSqlcached({ ...daemon.at, table: "pages" }), namespace: "n!" }).set("other", 1);
  const found = [];
  for await (const [key, value] of keyv.iterator()) found.push(key === value && key);
  assert.deepEqual(found.sort(), names.sort());
});

test("any tag", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "tags" });
  for (const tag of ["a", "", " ", "a,b", '"', "{}", "\\", "NULL", "\0", "\ud800", "ä", "t".repeat(3_000)]) {
    for (const key of ["k", "k".repeat(400)]) {
      await store.set(key, "value", undefined, [tag, "more"]);
      await store.set("other", "value", undefined, ["other"]);
      assert.equal(await store.invalidateTags([tag]), 1, JSON.stringify(tag));
      assert.deepEqual(await store.getMany([key, "other"]), [undefined, "value"]);
    }
  }
});

test("what Keyv stores within a call has its tags, and nothing is left behind", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "tagged" });
  const keyv = new Keyv({ store });
  await Promise.all(
    Array.from({ length: 10_000 }, (_, number) =>
      store.tagged([`product:${number}`, "all"], () => keyv.set(`k${number}`, number, number % 2 ? 600_000 : undefined)),
    ),
  );
  assert.equal(await count("tagged"), 10_000);
  assert.equal(await store.invalidateTags(["product:17"]), 1);
  assert.deepEqual(await keyv.get(["k17", "k18"]), [undefined, 18]);
  assert.equal(await store.invalidateTags(["all"]), 9_999);
  assert.equal(await count("tagged"), 0);
});

test("a soft invalidation", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "soft" });
  await store.set("a", "old", undefined, ["t"]);
  assert.equal(await store.invalidateTags(["t"], { soft: true }), 1);
  assert.equal(await store.get("a"), undefined);
  await store.set("a", "new", undefined, ["t"]);
  assert.equal(await store.get("a"), "new");
});

test("times to live", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "times" });
  for (const ttl of [undefined, null, 0, 1, 1_000, 2_592_000_000, 2_592_001_000, 4e12, Number.MAX_SAFE_INTEGER]) {
    for (const tags of [[], ["a tag"]]) {
      assert.equal(await store.set("a", "value", ttl, tags), true, String(ttl));
      assert.equal(await store.get("a"), "value", String(ttl));
    }
  }
  await store.set("a", "value", 600_000);
  assert.ok(isLeft((await daemon.sql("SELECT _ttl FROM times"))[0]._ttl, 600));
  await store.set("a", "value", -1);
  assert.equal(await store.get("a"), undefined);
});

test("while the daemon is away a read is a miss and a write is false", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "away" });
  const errors = [];
  store.on("error", (error) => errors.push(error));
  const keyv = new Keyv({ store });
  await keyv.set("a", 1);
  await keyv.set("b", 2);
  await daemon.kill();
  assert.equal(await keyv.get("a"), undefined);
  assert.equal(await keyv.set("a", 3), false);
  assert.equal(await keyv.has("a"), false);
  await keyv.clear();
  assert.equal(errors.length, 1, "one error a minute");
  assert.ok(errors[0] instanceof UnavailableError);
  await daemon.start();
  store.table.removals.tried = 0;
  assert.equal(await keyv.get("a"), undefined, "an old value that could not be replaced");
  assert.equal(await keyv.set("a", 4), true);
  assert.equal(await keyv.get("a"), 4);
});

test("what could not be removed is not read", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "kept" });
  await store.set("a", "old", undefined, ["t"]);
  await store.set("b", "good");
  await daemon.kill();
  await assert.rejects(store.invalidateTags(["t"]), UnavailableError);
  await daemon.start();
  store.table.removals.tried = Date.now();
  assert.equal(await store.get("b"), undefined, "the table was read before the removal got through");
  store.table.removals.tried = 0;
  assert.deepEqual(await store.getMany(["a", "b"]), [undefined, "good"]);
});

test("an invalidation is sent again to a daemon that restarts", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "again" });
  await store.set("a", "old", undefined, ["t"]);
  await daemon.kill();
  const removed = store.invalidateTags(["t"]);
  await daemon.start();
  assert.equal(await removed.catch(() => 1), 1);
  store.table.removals.tried = 0;
  assert.equal(await store.get("a"), undefined);
});

test("a restart between two calls is not seen, and a cold one makes the tables again", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "restart" });
  await store.set("a", "value");
  await daemon.kill();
  await daemon.start();
  assert.equal(await store.get("a"), "value");
  await daemon.kill();
  await daemon.start("--cold");
  assert.equal(await store.set("a", "value", undefined, ["t"]), true);
  assert.equal(await store.invalidateTags(["t"]), 1);
  await daemon.sql("DROP TABLE restart");
  assert.equal(await store.invalidateTags(["t"]), 0);
});

test("a table that is not of this cache", async () => {
  await daemon.sql("CREATE TABLE strange (id INT PRIMARY KEY)");
  const store = new KeyvSqlcached({ ...daemon.at, table: "strange" });
  assert.equal(await store.set("a", "value"), false);
  await assert.rejects(store.invalidateTags(["t"]), RefusedError);
  for (const name of ["", "a b", 'a"', "a\n"]) assert.throws(() => new KeyvSqlcached({ table: name }), TypeError);
  for (const options of [{ host: "x" }, { timeout: 0 }, { location: "x" }]) assert.throws(() => new KeyvSqlcached(options), TypeError);
});

test("values that are too large are refused, and the connection goes on", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "large" });
  const large = "x".repeat(1_000_000);
  const values = await Promise.all([store.set("a", "x".repeat(3 << 20)), store.set("b", large), store.get("c"), store.get("b")]);
  assert.deepEqual(values, [false, true, undefined, large]);
});

test("answers that are none", async () => {
  for (const answer of ["", "\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", '{"n":1\r\nEND\r\n', "+PONG\r\n", "OK x\r\n", "VA 5 f0\r\nhe"]) {
    const server = net.createServer((socket) => socket.on("error", () => {}).once("data", () => socket.end(answer)));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = new Client({ location: `127.0.0.1:${server.address().port}`, timeout: 500 });
    await assert.rejects(client.sql("SELECT 1"), UnavailableError, JSON.stringify(answer));
    server.close();
  }
  const silent = net.createServer(() => {});
  await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const client = new Client({ location: `127.0.0.1:${silent.address().port}`, timeout: 200 });
  await assert.rejects(client.sql("SELECT 1"), /no answer in time/);
  silent.close();
});

/** A program that was busy for a second while it connected took the daemon for away: its timers come before what it received. */
test("a program that is busy", async () => {
  const store = new KeyvSqlcached({ ...daemon.at, table: "busy", connectTimeout: 100 });
  for (let round = 0; round < 3; round++) {
    const stored = store.set("a", "value");
    const end = performance.now() + 250;
    while (performance.now() < end);
    assert.equal(await stored, true);
    if (round === 1) await store.disconnect();
  }
});

/** Who waited for a connection that was never answered waited for ever. */
test("a host that does not answer", async () => {
  const silent = net.createServer((socket) => socket.on("error", () => {}));
  await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
  // TLS needs an answer to begin.
  const client = new Client({ location: `127.0.0.1:${silent.address().port}`, tls: true, connectTimeout: 200 });
  await assert.rejects(Promise.all([client.sql("SELECT 1"), client.sql("SELECT 2")]), /no answer in time/);
  silent.close();
});

test("a daemon that asks for a password, and speaks TLS", async () => {
  const secure = new Daemon();
  const [certificate, key, users] = ["cert.pem", "key.pem", "users"].map((name) => `${secure.folder}/${name}`);
  const named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...named, "-keyout", key, "-out", certificate], { stdio: "ignore" });
  writeFileSync(users, "app:secret\n");
  chmodSync(users, 0o600);
  await secure.start("-Z", "-o", `ssl_chain_cert=${certificate},ssl_key=${key}`, "-Y", users);
  try {
    const tls = { ca: readFileSync(certificate) };
    const store = new KeyvSqlcached({ location: secure.location, tls, user: "app", password: "secret" });
    const large = "x".repeat(500_000);
    assert.equal(await store.set("a", large, undefined, ["t"]), true);
    assert.equal(await store.get("a"), large);
    assert.equal(await store.invalidateTags(["t"]), 1);
    for (const options of [{ tls }, { tls, user: "app", password: "wrong" }, { user: "app", password: "secret" }, { tls: true }]) {
      const client = new Client({ location: secure.location, timeout: 1_000, ...options });
      await assert.rejects(client.sql("SELECT 1"), /./, JSON.stringify(Object.keys(options)));
    }
  } finally {
    await secure.end();
  }
});

test("CommonJS has the same classes", () => {
  const require = createRequire(import.meta.url);
  assert.equal(require("../src/keyv.js").KeyvSqlcached, KeyvSqlcached);
  assert.equal(require("../src/index.js").Client, Client);
});
