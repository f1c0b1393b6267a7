import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../src/index.mjs";
import { Relay } from "./relay.mjs";

/**
 * A daemon of the tests' own, which is killed and started again with its rows. With `RESTARTS` in the environment the tests
 * talk to it through a relay that restarts it at random requests; `SEED` repeats them.
 */
export class Daemon {
  constructor() {
    this.folder = mkdtempSync("/dev/shm/sqlcached-node-");
    this.turn = Promise.resolve();
  }

  /** Runs what starts or ends the daemon, one after the other. */
  alone(work) {
    const done = this.turn.then(work);
    this.turn = done.catch(() => {});
    return done;
  }

  async start(...flags) {
    this.port ??= await freePort();
    await this.alone(() => this.startNow(...flags));
    if (process.env.RESTARTS && this.relay === undefined) {
      const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
      console.log(`SEED=${seed}`);
      this.relay = new Relay(this, seed);
      this.outside = await this.relay.listen();
    }
  }

  async startNow(...flags) {
    const own = ["-p", this.port, "-s", "none", "--arena", `${this.folder}/arena`, "--sql-port", "0", "--http-port", "0"];
    this.process = spawn(process.env.SQLCACHED_PROGRAM, [...own, ...flags].map(String), { stdio: "ignore" });
    this.flags = flags.filter((flag) => flag !== "--cold");
    await waited(() => this.serves(), "the daemon serves");
    this.isRunning = true;
  }

  serves() {
    return new Promise((resolve) => {
      const socket = net.connect(this.port, "127.0.0.1", () => socket.end(() => resolve(true)));
      socket.on("error", () => resolve(false));
    });
  }

  kill() {
    return this.alone(() => this.endNow("SIGKILL"));
  }

  endNow(signal) {
    this.isRunning = false;
    this.client?.disconnect();
    this.client = undefined;
    return new Promise((resolve) => {
      this.process.once("exit", resolve);
      this.process.kill(signal);
    });
  }

  async restartNow(signal) {
    await this.endNow(signal);
    await this.startNow(...this.flags);
  }

  /** Ends it, and leaves nothing behind. */
  async end() {
    await this.kill();
    rmSync(this.folder, { recursive: true });
    if (this.relay) console.log(`${this.relay.restarts} restarts`);
  }

  /** The rows of a statement, or how many it changed. It restarts before or after that. */
  sql(text, ...parameters) {
    return this.alone(() => {
      this.client ??= new Client({ location: `127.0.0.1:${this.port}`, timeout: 60_000, connectTimeout: 60_000 });
      return this.client.sql(text, ...parameters);
    });
  }

  /** Waits until a condition of the daemon's rows holds. */
  until(holds, what) {
    return waited(holds, what);
  }

  get location() {
    return `127.0.0.1:${this.outside ?? this.port}`;
  }

  /** Options that reach it, also while the machine is busy. */
  get at() {
    return { location: this.location, timeout: 60_000, connectTimeout: 60_000 };
  }
}

async function waited(holds, what) {
  for (const end = performance.now() + 60_000; performance.now() < end; ) {
    if (await holds()) return;
    await pause(10);
  }
  throw new Error(`after a minute it is not so: ${what}`);
}

/** Whether so many seconds are left of a deadline that was set a moment ago. */
export const isLeft = (found, seconds) => found <= seconds && found > seconds - 60;

export function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
