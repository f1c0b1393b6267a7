// Runs the checks of a Node suite and prints a line for each.
"use strict";

const { isDeepStrictEqual, inspect } = require("node:util");

const checks = [];

/** Registers a check under a name without a colon and a blank behind it. */
exports.check = (name, body) => checks.push({ name, body });

/** Two values must be equal, with their types. */
exports.same = (found, expected) => {
  if (!isDeepStrictEqual(found, expected)) {
    throw new Error(`found ${inspect(found, { breakLength: Infinity })}, expected ${inspect(expected, { breakLength: Infinity })}`);
  }
};

/** The promise must fail; gives its error back. */
exports.fails = async (promise) => {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
};

/** The SQLSTATE of a driver's error, also where a layer above wrapped it. */
const sqlstate = (error) => {
  for (let e = error; e; e = e.original ?? e.driverError ?? e.cause) {
    if (typeof e.code === "string" && e.code.length === 5) return e.code;
  }
  return undefined;
};
exports.sqlstate = sqlstate;

/** Runs all checks in their order; the process ends with 1 if one failed. */
exports.run = async (end) => {
  let failed = false;
  for (const { name, body } of checks) {
    try {
      await body();
      console.log(`ok - ${name}`);
    } catch (error) {
      failed = true;
      const why = String(error.cause?.message ?? error.message ?? error).replace(/\s+/g, " ");
      console.log(`not ok - ${name}: ${[error.name, sqlstate(error), why].filter(Boolean).join(" ")}`);
      console.error(error);
    }
  }
  await end();
  process.exitCode = failed ? 1 : 0;
};

/** Where the server is, in the words of node-postgres. */
exports.place = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};
