// memjs with its defaults. Argument: the port.
"use strict";
const assert = require("assert");
const memjs = require("memjs");

async function main() {
  const client = memjs.Client.create(`127.0.0.1:${process.argv[2]}`);
  assert.strictEqual(await client.set("k", "v", { expires: 100 }), true);
  assert.strictEqual((await client.get("k")).value.toString(), "v");
  assert.strictEqual((await client.get("none")).value, null);
  assert.strictEqual(await client.add("k", "other"), false);
  assert.strictEqual(await client.replace("k", "w"), true);
  assert.strictEqual(await client.replace("none", "w"), false);
  assert.strictEqual(await client.append("k", "x"), true);
  assert.strictEqual((await client.get("k")).value.toString(), "wx");
  assert.strictEqual((await client.increment("n", 3, { initial: 10 })).value, 10);
  assert.strictEqual((await client.increment("n", 3, { initial: 10 })).value, 13);
  assert.strictEqual((await client.decrement("n", 20, { initial: 0 })).value, 0);
  assert.strictEqual(await client.touch("k", 200), true);
  const large = Buffer.alloc(256 << 10, "x");
  assert.strictEqual(await client.set("large", large, {}), true);
  assert.ok((await client.get("large")).value.equals(large));
  assert.strictEqual(await client.delete("k"), true);
  assert.strictEqual(await client.delete("k"), false);
  const stats = await new Promise((resolve) => client.stats((error, server, found) => resolve(found)));
  assert.strictEqual(stats.version, "1.6.45");
  await client.flush();
  assert.strictEqual((await client.get("large")).value, null);
  client.quit();
  console.log("held");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
