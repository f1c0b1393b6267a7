// Rows that are read from shared memory, of the daemon at SQLCACHED_SOCKET.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cache, Client } from "../src/index.mjs";
import { KeyvSqlcached } from "../src/keyv.mjs";

const location = process.env.SQLCACHED_SOCKET;
const near = { location, sharedMemory: { socket: location } };
const open = [];

/** A store that counts what it asks of the daemon. */
function counted(store) {
  open.push(store);
  const { client } = store.table;
  const { ask } = client;
  store.asked = 0;
  client.ask = function (...request) {
    store.asked++;
    return ask.apply(this, request);
  };
  return store;
}

/** How often the daemon is asked while something is done. */
async function asks(store, work) {
  const before = store.asked;
  await work();
  return store.asked - before;
}

let cache;
before(async () => {
  cache = counted(new Cache({ ...near, table: "near" }));
  await cache.set("warm", 1);
});
after(() => Promise.all(open.map((store) => store.disconnect())));

test("values of every kind are read without asking the daemon", async () => {
  for (const value of ["text", "\u20ac", "", Buffer.from([0, 255, 10]), { of: ["json", 1] }, 7]) {
    assert.equal(await cache.set("kind", value, { ttl: 60_000, tags: ["t"] }), true);
    assert.equal(await asks(cache, async () => assert.deepEqual(await cache.get("kind"), value)), 0);
  }
});

test("a value that is not there is not asked for", async () => {
  assert.equal(await asks(cache, async () => assert.equal(await cache.get("none"), undefined)), 0);
});

test("what is written and removed is seen at once", async () => {
  await cache.set("one", "old", { tags: ["a"] });
  assert.equal(await cache.get("one"), "old");
  const other = new Client(location);
  await other.sql("UPDATE near SET body = 'new' WHERE key = 'one'");
  assert.equal(String(await cache.get("one")), "new");
  await cache.invalidateTags(["a"]);
  assert.equal(await cache.get("one"), undefined);
  await cache.set("two", "v", { tags: ["b"] });
  await other.sql("UPDATE near SET _stale = TRUE WHERE tags && '{b}'");
  assert.equal(await cache.get("two"), undefined);
  await other.disconnect();
});

test("a value is computed once, and found by the next", async () => {
  let made = 0;
  const make = async () => ++made;
  assert.equal(await cache.getOrSet("made", make), 1);
  assert.equal(await asks(cache, async () => assert.equal(await cache.get("made"), 1)), 0);
  assert.equal(made, 1);
});

test("a key that is too long for memcached is the daemon's to find", async () => {
  const key = "k".repeat(1_000);
  await cache.set(key, "long");
  assert.equal(await asks(cache, async () => assert.equal(await cache.get(key), "long")), 1);
});

test("a table that is not in shared memory is asked for", async () => {
  const plain = counted(new Cache({ location, table: "plain" }));
  await plain.set("k", "v");
  const wished = counted(new Cache({ ...near, table: "plain" }));
  assert.equal(await asks(wished, async () => assert.equal(await wished.get("k"), "v")), 1);
});

test("a daemon whose shared memory cannot be had is asked", async () => {
  const wished = counted(new Cache({ location, sharedMemory: { socket: "/nowhere/sock" }, table: "near" }));
  assert.equal(await asks(wished, async () => assert.equal(await wished.get("warm"), 1)), 1);
});

test("stores of frameworks read so, too", async () => {
  const store = counted(new KeyvSqlcached({ ...near, table: "keyv_near" }));
  await store.set("k", "v", 60_000);
  assert.equal(await asks(store, async () => assert.equal(await store.get("k"), "v")), 0);
});
