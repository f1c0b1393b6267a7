"use strict";

const net = require("node:net");
const tls = require("node:tls");
const limits = require("./limits.js");
const { SqlcachedError, UnavailableError } = require("./errors.js");

/**
 * One stream to the daemon's memcached port. Requests are sent at once; their answers come in the same order.
 *
 * An answer is read by a function that is called whenever there are more bytes. It takes lines and blocks from the
 * connection, and returns `undefined` as long as it needs more.
 */
class Connection {
  constructor(options) {
    this.options = options;
    this.closed = null;
    this.isOpen = false;
    this.answered = false;
    this.waiting = [];
    this.outgoing = [];
    this.chunks = Buffer.alloc(0);
    this.at = 0;
    // What came while a large block is not complete: it is joined once.
    this.later = [];
    this.missing = 0;
  }

  /** Opens the stream. */
  open() {
    return new Promise((resolve, reject) => {
      const { location, tls: secure, connectTimeout } = this.options;
      const place = location.startsWith("/") ? { path: location } : address(location);
      const event = secure ? "secureConnect" : "connect";
      this.socket = secure ? tls.connect({ ...place, ...(secure === true ? {} : secure) }) : net.connect(place);
      this.socket.setNoDelay(true);
      this.socket.setTimeout(connectTimeout, () => this.late());
      this.socket.once(event, () => {
        this.isOpen = true;
        this.socket.setTimeout(this.options.timeout);
        this.socket.unref();
        resolve(this);
      });
      this.socket.on("data", (data) => this.received(data));
      this.socket.on("error", (error) => this.end(error.message || error.code, true));
      this.socket.on("close", () => this.end("the connection was closed", true));
      // Of a stream that is open already nobody hears this any more.
      this.unopened = reject;
    });
  }

  /**
   * Nothing came for a while. A program that was busy itself finds what came only after its timers, so that it looks
   * once more.
   */
  late() {
    const [before, wasOpen] = [this.socket.bytesRead, this.isOpen];
    setImmediate(() => {
      const silent = this.socket.bytesRead === before && this.isOpen === wasOpen;
      if (silent && (this.waiting.length > 0 || !this.isOpen)) this.end("no answer in time");
    });
  }

  /** Ends the connection; all who wait for it or for an answer learn it, and whether the daemon may be back soon. */
  end(why, isBrief = false) {
    if (this.closed) return;
    this.closed = why instanceof SqlcachedError ? why : new UnavailableError(`${this.options.location}: ${why}`, isBrief);
    this.socket.destroy();
    this.unopened(this.closed);
    for (const each of this.waiting.splice(0)) each.reject(this.closed);
  }

  /** Sends a request; what `read` makes of the answer. */
  ask(request, read) {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(this.closed);
      if (this.waiting.length >= limits.WAITING) return reject(new UnavailableError("too many requests wait for an answer"));
      if (this.waiting.length === 0) this.socket.ref();
      this.waiting.push({ read, resolve, reject });
      if (this.outgoing.length === 0) process.nextTick(() => this.flush());
      this.outgoing.push(request);
    });
  }

  /** Sends all that was asked in this turn by one call of the kernel. */
  flush() {
    const requests = this.outgoing.splice(0);
    if (this.closed) return;
    if (requests.every((request) => typeof request === "string")) {
      this.socket.write(requests.join(""));
      return;
    }
    this.socket.cork();
    for (const request of requests) this.socket.write(request);
    this.socket.uncork();
  }

  received(data) {
    this.missing -= data.length;
    if (this.missing > 0) {
      this.later.push(data);
      return;
    }
    const rest = this.chunks.length - this.at;
    this.chunks = rest + this.later.length === 0 ? data : Buffer.concat([this.chunks.subarray(this.at), ...this.later, data]);
    this.later = [];
    this.at = 0;
    while (this.waiting.length > 0 && this.answer(this.waiting[0])) this.waiting.shift();
    if (this.waiting.length === 0) {
      if (this.at < this.chunks.length) this.end("an answer that nobody asked for");
      else this.socket.unref();
    }
  }

  /** Whether the answer was there as a whole. */
  answer(asked) {
    try {
      const found = asked.read(this);
      if (found === undefined) return false;
      asked.resolve(found);
    } catch (error) {
      if (!(error instanceof SqlcachedError) || error instanceof UnavailableError) {
        this.end(error instanceof SqlcachedError ? error : `an answer that is not memcached's: ${error.message}`);
        return false;
      }
      asked.reject(error);
    }
    this.answered = true;
    return true;
  }

  /** One line without its end; undefined if it is not there yet. */
  line() {
    const end = this.chunks.indexOf("\r\n", this.at);
    if (end < 0) {
      if (this.chunks.length - this.at > limits.ANSWER_LINE) throw new UnavailableError("a line without an end");
      return undefined;
    }
    const line = this.chunks.toString("utf8", this.at, end);
    this.at = end + 2;
    return line;
  }

  /** A block of bytes and its line end; undefined if it is not there yet. */
  block(size) {
    if (!Number.isSafeInteger(size) || size < 0 || size > limits.VALUE) throw new UnavailableError(`a value of ${size} bytes`);
    if (this.chunks.length - this.at < size + 2) {
      this.missing = size + 2 - (this.chunks.length - this.at);
      return undefined;
    }
    const data = this.chunks.subarray(this.at, this.at + size);
    this.at += size + 2;
    return data;
  }
}

function address(location) {
  const found = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(location);
  if (!found) throw new TypeError(`'${location}' is no location: host:port, or the path of a Unix socket`);
  return { host: found[1] || found[2], port: Number(found[3]) };
}

module.exports = { Connection, address };
