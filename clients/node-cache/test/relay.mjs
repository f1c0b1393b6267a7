import net from "node:net";

/** Restarts of one test file. A daemon without optimizations needs a moment for each. */
const RESTARTS = 12;

/**
 * Stands between clients and a daemon, and restarts it at random requests. Such a request is not handed on. All that was
 * handed on before is answered first, so that no client can tell whether it was done twice.
 */
export class Relay {
  constructor(daemon, seed) {
    this.daemon = daemon;
    this.random = random(seed);
    this.restarts = 0;
    this.left = this.gap();
    this.pairs = new Set();
    // Who comes while it restarts waits.
    this.ready = Promise.resolve();
  }

  gap() {
    return 5 + Math.floor(this.random() * 55);
  }

  async listen() {
    this.server = net.createServer({ pauseOnConnect: true }, (client) => this.serve(client));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.server.unref();
    return this.server.address().port;
  }

  async serve(client) {
    client.on("error", () => {});
    await this.ready;
    const server = net.connect(this.daemon.port, "127.0.0.1");
    const pair = { client, server, closed: new Promise((resolve) => server.once("close", resolve)) };
    this.pairs.add(pair);
    server.on("error", () => {});
    client.setNoDelay(true);
    server.setNoDelay(true);
    server.on("data", (data) => client.write(data));
    server.on("close", () => {
      this.pairs.delete(pair);
      client.end();
    });
    client.on("close", () => server.end());
    client.on("data", (data) => {
      if (pair.isCut) return;
      if (this.isDue()) this.restart();
      else server.write(data);
    });
    client.resume();
  }

  isDue() {
    return !this.isPaused && this.daemon.isRunning && this.restarts < RESTARTS && --this.left <= 0;
  }

  restart() {
    this.left = this.gap();
    this.restarts++;
    const pairs = [...this.pairs];
    for (const pair of pairs) {
      pair.isCut = true;
      pair.server.end();
    }
    this.ready = this.daemon.alone(async () => {
      await Promise.all(pairs.map(({ closed }) => closed));
      if (this.daemon.isRunning) await this.daemon.restartNow(this.random() < 0.5 ? "SIGKILL" : "SIGTERM");
    });
  }
}

/** Numbers from 0 to 1, the same for the same seed. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
