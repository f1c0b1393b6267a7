/** The cache without a framework: one makes a value, late values are refused. */
import assert from "node:assert/strict";
import cluster from "node:cluster";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import Keyv from "keyv";
import { Cache, UnavailableError } from "../src/index.mjs";
import { KeyvSqlcached } from "../src/keyv.mjs";
import { Daemon } from "./daemon.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.end());

const open = (table, more = {}) => new Cache({ ...daemon.at, table, ...more });
const count = async (table) => (await daemon.sql(`SELECT count(*) AS n FROM ${table}`))[0].n;
/** A value that is made when the test says so. */
function slow(value) {
  const made = { calls: 0 };
  made.started = new Promise((resolve) => (made.start = resolve));
  made.ended = new Promise((resolve) => (made.end = resolve));
  made.make = async () => {
    made.calls++;
    made.start();
    await made.ended;
    return value;
  };
  return made;
}
/** Keys and tags that go by memcached's commands and by statements. */
const WAYS = [["k", ["t"]], ["k".repeat(2_000), ["t"]], ["k", ["a tag", "t"]], ["\0 ä", ["{\"'}", "t"]], ["k", []]]; // prettier-ignore

test("any value", async () => {
  const cache = open("any");
  for (const value of ["text", "", "nul \0", Buffer.from([0, 255]), Buffer.alloc(0), { a: [1, null] }, 17, false, null]) {
    await cache.set("k", value);
    assert.deepEqual(await cache.get("k"), value);
    await cache.delete("k");
    assert.deepEqual(await cache.getOrSet("k", () => value), value);
    assert.deepEqual(await cache.getOrSet("k", () => assert.fail("it is there")), value);
    await cache.delete("k");
  }
  for (const none of [undefined, () => 1, Symbol("s")]) {
    assert.throws(() => cache.set("k", none), TypeError);
    await assert.rejects(cache.getOrSet("k", () => none), TypeError);
  }
  assert.equal(await count("any"), 0);
  for (const ttl of [0, -1, -1e12]) assert.equal(await cache.set("k", "value", { ttl }), false);
  assert.equal(await cache.get("k"), undefined);
});

test("ten callers in ten clients, one value", async () => {
  for (const [key, tags] of WAYS) {
    const clients = Array.from({ length: 10 }, () => open("callers"));
    const made = slow("made");
    const all = clients.map((cache) => cache.getOrSet(key, made.make, { tags, ttl: 60_000 }));
    await made.started;
    assert.equal(await open("callers").get(key), undefined, "a place is no value");
    assert.equal(await new Keyv({ store: new KeyvSqlcached({ ...daemon.at, table: "callers" }) }).get(key), undefined);
    made.end();
    assert.deepEqual(await Promise.all(all), Array(10).fill("made"));
    assert.equal(made.calls, 1, JSON.stringify(tags));
    await clients[0].delete(key);
    await Promise.all(clients.map((cache) => cache.disconnect()));
  }
});

test("a value that was made before an invalidation is not stored", async () => {
  for (const [key, tags] of WAYS.filter((way) => way[1].length > 0)) {
    const [cache, other] = [open("late"), open("late")];
    const made = slow("old");
    const asked = cache.getOrSet(key, made.make, { tags });
    await made.started;
    assert.equal(await other.invalidateTags(["t"]), 1);
    made.end();
    assert.equal(await asked, "old");
    assert.equal(await other.get(key), undefined, JSON.stringify(tags));
    assert.equal(await other.getOrSet(key, () => "new", { tags }), "new");
    await other.invalidateTags(["t"]);
  }
  assert.equal(await count("late"), 0);
});

test("a soft invalidation: one makes it again, the others get the old one", async () => {
  const [one, two] = [open("soft"), open("soft")];
  await one.set("k", "old", { tags: ["t"] });
  assert.equal(await one.invalidateTags(["t"], { soft: true }), 1);
  const made = slow("new");
  const asked = one.getOrSet("k", made.make, { tags: ["t"] });
  await made.started;
  assert.equal(await two.getOrSet("k", () => assert.fail("another one makes it")), "old");
  made.end();
  assert.equal(await asked, "new");
  assert.equal(await two.get("k"), "new");
});

test("who only reads a stale value, or fails to make it, leaves that to the next", async () => {
  const [one, two] = [open("read"), open("read")];
  await one.set("k", "old", { tags: ["t"] });
  await one.invalidateTags(["t"], { soft: true });
  assert.equal(await one.get("k"), undefined);
  await assert.rejects(one.getOrSet("k", () => Promise.reject(new Error("no database"))), /no database/);
  assert.equal(await two.getOrSet("k", () => "new"), "new");
});

test("one that fails leaves its place to the next", async () => {
  for (const [key, tags] of WAYS) {
    const [one, two] = [open("fails"), open("fails")];
    await assert.rejects(one.getOrSet(key, () => Promise.reject(new Error("no database")), { tags }), /no database/);
    assert.equal(await two.getOrSet(key, () => "made", { tags }), "made");
    await two.delete(key);
  }
});

test("a value that does not load is made again", async () => {
  const cache = open("broken", { onError: () => {} });
  await cache.set("k", {});
  await daemon.sql("UPDATE broken SET body = '{'");
  assert.equal(await cache.get("k"), undefined);
  assert.equal(await cache.getOrSet("k", () => "made"), "made");
});

test("processes of cluster", async () => {
  cluster.setupPrimary({ exec: fileURLToPath(new URL("worker.cjs", import.meta.url)), execArgv: [] });
  const workers = Array.from({ length: 4 }, () => cluster.fork({ LOCATION: daemon.location }));
  await Promise.all(workers.map((worker) => once(worker, "message")));
  const told = workers.map((worker) => once(worker, "message"));
  for (const worker of workers) worker.send("ask");
  const answers = (await Promise.all(told)).map(([answer]) => answer);
  for (const worker of workers) worker.kill();
  assert.equal(answers.reduce((sum, { made }) => sum + made, 0), 1, JSON.stringify(answers));
  assert.equal(new Set(answers.flatMap(({ values }) => values)).size, 1);
});

test("a table that somebody altered or dropped", async () => {
  const cache = open("altered", { onError: () => {} });
  await cache.set("k", "value", { tags: ["t"] });
  await daemon.sql("ALTER TABLE altered ADD COLUMN more INT");
  await daemon.sql("ALTER TABLE altered SET (ttl = '1 h')");
  assert.equal(await cache.get("k"), "value");
  await daemon.sql("DROP TABLE altered");
  assert.equal(await cache.getOrSet("k", () => "made", { tags: ["t"] }), "made");
  await cache.invalidateTags(["t"]);
  assert.equal(await cache.get("k"), undefined);
});

test("while the daemon is away everybody makes the value", async () => {
  const told = [];
  const cache = open("away", { onError: (error) => told.push(error) });
  await cache.set("k", "old", { tags: ["t"] });
  await daemon.kill();
  assert.equal(await cache.getOrSet("k", () => "made"), "made");
  assert.equal(await cache.set("k", "new"), false);
  await assert.rejects(cache.invalidateTags(["t"]), UnavailableError);
  assert.equal(told.length, 1, "one a minute");
  await daemon.start();
  await daemon.until(async () => (await cache.getOrSet("k", () => "new")) === "new" && (await cache.get("k")) === "new", "it is stored again");
});
