import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../src/index.mjs";

/** A daemon of the tests' own, which is killed and started again with its rows. */
export class Daemon {
  constructor() {
    this.folder = mkdtempSync("/dev/shm/sqlcached-node-");
  }

  async start(...flags) {
    this.port ??= await freePort();
    const own = ["-p", this.port, "-s", "none", "--arena", `${this.folder}/arena`, "--sql-port", "0", "--http-port", "0"];
    this.process = spawn(process.env.SQLCACHED_PROGRAM, [...own, ...flags].map(String), { stdio: "ignore" });
    for (let left = 6_000; left > 0 && !(await this.serves()); left--) await pause(10);
  }

  serves() {
    return new Promise((resolve) => {
      const socket = net.connect(this.port, "127.0.0.1", () => socket.end(() => resolve(true)));
      socket.on("error", () => resolve(false));
    });
  }

  kill() {
    return new Promise((resolve) => {
      this.process.once("exit", resolve);
      this.process.kill("SIGKILL");
    });
  }

  /** Ends it, and leaves nothing behind. */
  async end() {
    await this.kill();
    rmSync(this.folder, { recursive: true });
  }

  /** The rows of a statement, or how many it changed. */
  async sql(text, ...parameters) {
    this.client ??= new Client(this.location);
    return this.client.sql(text, ...parameters);
  }

  /** Waits until a condition of the daemon's rows holds. */
  async until(holds, what) {
    for (let left = 6_000; left > 0; left--) {
      if (await holds()) return;
      await pause(10);
    }
    throw new Error(`after a minute it is not so: ${what}`);
  }

  get location() {
    return `127.0.0.1:${this.port}`;
  }
}

export function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
