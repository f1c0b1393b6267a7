"use strict";

const { Cache } = require("./cache.js");
const { Client } = require("./client.js");
const { SqlcachedError, UnavailableError, RefusedError, StatementError } = require("./errors.js");

module.exports = { Cache, Client, SqlcachedError, UnavailableError, RefusedError, StatementError };
