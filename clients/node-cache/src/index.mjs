import all from "./index.js";

export const { Cache, Client, SqlcachedError, UnavailableError, RefusedError, StatementError } = all;
