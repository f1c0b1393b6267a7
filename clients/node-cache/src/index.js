"use strict";

const { Client } = require("./client.js");
const { SqlcachedError, UnavailableError, RefusedError, StatementError } = require("./errors.js");

module.exports = { Client, SqlcachedError, UnavailableError, RefusedError, StatementError };
