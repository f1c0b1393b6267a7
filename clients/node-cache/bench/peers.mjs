/**
 * What a get and a set of 1 KiB cost, client and server together, beside the clients of Redis and memcached: microseconds of
 * CPU for one call, 8 calls at once, the median of rounds in which all take turns.
 *
 *     npm ci --ignore-scripts && node peers.mjs ../../../target/release/sqlcached
 *
 * It needs redis-server and memcached, and starts all servers itself.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import net from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import KeyvRedis from "@keyv/redis";
import Redis from "ioredis";
import Keyv from "keyv";
import memjs from "memjs";
import { Cache } from "../src/index.mjs";
import { KeyvSqlcached } from "../src/keyv.mjs";

const [PROGRAM, CALLS, ROUNDS] = [process.argv[2], Number(process.env.CALLS ?? 20_000), Number(process.env.ROUNDS ?? 5)];
const AT_ONCE = 8;
const KEYS = 1_000;
const VALUE = "v".repeat(1_024);
/** The kernel counts the time of a process in hundredths of a second. */
const TICK = 10_000;

async function server(program, flags) {
  const port = await new Promise((resolve) => {
    const probe = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
  const child = spawn(program, flags(port).map(String), { stdio: "ignore" });
  for (let left = 1_000; left > 0; left--) {
    const isOpen = await new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1", () => socket.end(() => resolve(true)));
      socket.on("error", () => resolve(false));
    });
    if (isOpen) return { child, port };
    await pause(10);
  }
  throw new Error(`${program} does not answer`);
}

function serverTime({ child }) {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK;
}

/** Microseconds of client and server for one call. */
async function measured(at, call) {
  const [server, client] = [serverTime(at), process.cpuUsage()];
  let next = 0;
  const caller = async () => {
    while (next < CALLS) await call(`key:${next++ % KEYS}`);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  const { user, system } = process.cpuUsage(client);
  return [(user + system) / CALLS, (serverTime(at) - server) / CALLS];
}

const ours = await server(PROGRAM, (port) => ["-p", port, "-s", "none", "--arena", "none", "--sql-port", 0, "--http-port", 0]);
const redis = await server("redis-server", (port) => ["--port", port, "--save", "", "--appendonly", "no"]);
const memcached = await server("memcached", (port) => ["-p", port, "-l", "127.0.0.1", "-u", "nobody"]);

const cache = new Cache(`127.0.0.1:${ours.port}`);
const ioredis = new Redis(redis.port);
const memcache = memjs.Client.create(`127.0.0.1:${memcached.port}`);
const keyv = new Keyv({ store: new KeyvSqlcached(`127.0.0.1:${ours.port}`) });
const keyvRedis = new Keyv({ store: new KeyvRedis(`redis://127.0.0.1:${redis.port}`) });
const TAGS = ["product:17", "brand:3", "shop"];

const CASES = [
  ["get", "sqlcached", ours, (key) => cache.get(key)],
  ["get", "ioredis", redis, (key) => ioredis.get(key)],
  ["get", "memjs", memcached, (key) => memcache.get(key)],
  ["set", "sqlcached", ours, (key) => cache.set(key, VALUE, { ttl: 600_000 })],
  ["set", "ioredis", redis, (key) => ioredis.set(key, VALUE, "EX", 600)],
  ["set", "memjs", memcached, (key) => memcache.set(key, VALUE, { expires: 600 })],
  ["set, 3 tags", "sqlcached", ours, (key) => cache.set(key, VALUE, { ttl: 600_000, tags: TAGS })],
  ["Keyv get", "sqlcached", ours, (key) => keyv.get(key)],
  ["Keyv get", "@keyv/redis", redis, (key) => keyvRedis.get(key)],
  ["Keyv set", "sqlcached", ours, (key) => keyv.set(key, VALUE, 600_000)],
  ["Keyv set", "@keyv/redis", redis, (key) => keyvRedis.set(key, VALUE, 600_000)],
];

// All keys are there, and the compiler has seen all code.
for (const [what, , , call] of CASES) if (what.includes("set")) for (let key = 0; key < KEYS; key++) await call(`key:${key}`);
for (const [, , , call] of CASES) if (!(await call("key:0"))) throw new Error("a call found nothing");

const found = CASES.map(() => []);
for (let round = 0; round < ROUNDS; round++) {
  for (const [place, [, , at, call]] of CASES.entries()) found[place].push(await measured(at, call));
}
const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1].toFixed(1).padStart(8);
console.log("call         client                client  server     sum");
for (const [place, [what, name]] of CASES.entries()) {
  const of = (take) => median(found[place].map(take));
  console.log(what.padEnd(12), name.padEnd(18), of(([client]) => client), of(([, server]) => server), of(([a, b]) => a + b));
}
for (const { child } of [ours, redis, memcached]) child.kill();
process.exit();
