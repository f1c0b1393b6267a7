import all from "./index.js";

export const { Client, SqlcachedError, UnavailableError, RefusedError, StatementError } = all;
