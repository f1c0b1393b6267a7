"use strict";

const { UnavailableError, refused } = require("./errors.js");

/** The request of a statement. A list is an array of SQL. */
function statement(text, parameters) {
  const values = parameters.map((value) =>
    Buffer.isBuffer(value) ? { base64: value.toString("base64") } : Array.isArray(value) ? JSON.stringify(value) : value,
  );
  const [body, array] = [Buffer.from(text), Buffer.from(JSON.stringify(values))];
  return Buffer.concat([Buffer.from(`sqlp ${body.length} ${array.length}\r\n`), body, LINE_END, array, LINE_END]);
}

/** The request that stores a value: its line, and the value. Half a surrogate pair is replaced, as UTF-8 has none. */
function storing(line, value) {
  return typeof value === "string" ? `${line}${value}\r\n` : Buffer.concat([Buffer.from(line), value, LINE_END]);
}

const LINE_END = Buffer.from("\r\n");

/** Reads the answer of a statement: rows, or how many were changed. */
function rows() {
  const found = [];
  return (connection) => {
    for (let line; (line = connection.line()) !== undefined; ) {
      if (line.startsWith("{")) found.push(JSON.parse(line, bytes));
      else if (line === "END") return found;
      else if (/^OK \d+$/.test(line)) return Number(line.slice(3));
      else throw refused(line);
    }
    return undefined;
  };
}

/** Bytes of a row are an object with one member. */
function bytes(name, value) {
  const isBytes = name !== "" && value !== null && typeof value === "object" && typeof value.base64 === "string";
  return isBytes ? Buffer.from(value.base64, "base64") : value;
}

/** Reads the answer of `mg` with `v f c`: null for a miss. */
function item() {
  let head = null;
  return (connection) => {
    if (head === null) {
      const line = connection.line();
      if (line === undefined) return undefined;
      if (line === "EN") return null;
      head = line.split(" ");
      if (head[0] !== "VA" || !/^\d+$/.test(head[1])) throw refused(line);
    }
    const data = connection.block(Number(head[1]));
    if (data === undefined) return undefined;
    const said = {};
    for (const word of head.slice(2)) said[word[0]] = word.slice(1);
    return { data, flags: Number(said.f || 0), cas: said.c || "0", stale: "X" in said, won: "W" in said };
  };
}

/** Reads the answer of `ms` with `c`: the version that was stored; null if it was not. */
function version() {
  return (connection) => {
    const line = connection.line();
    if (line === undefined) return undefined;
    if (line.startsWith("HD c")) return line.slice(4);
    if (/^(NS|EX|NF)/.test(line)) return null;
    throw refused(line);
  };
}

/** Reads the answer of a command that is answered with one line: whether it was done. */
function done() {
  return (connection) => {
    const line = connection.line();
    if (line === undefined) return undefined;
    if (line.startsWith("HD")) return true;
    if (/^(NS|EX|NF|EN)/.test(line)) return false;
    throw refused(line);
  };
}

/** Reads an answer that must be this line. */
function exactly(wanted) {
  return (connection) => {
    const line = connection.line();
    if (line === undefined || line === wanted) return line;
    throw line.startsWith("ERROR") || line.startsWith("CLIENT_ERROR") ? refused(line) : new UnavailableError(line);
  };
}

/** A key as meta commands send it, and the flag that says how. The row has its true text. */
function named(key) {
  return /[\x00-\x20\x7f]/.test(key) ? [Buffer.from(key).toString("base64"), " b"] : [key, ""];
}

module.exports = { statement, storing, rows, item, version, done, exactly, named };
