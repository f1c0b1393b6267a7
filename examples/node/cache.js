/** Where the cache is. */
import { Cache } from "sqlcached";
import { SessionStore } from "sqlcached/session";

const location = process.env.SQLCACHED ?? "127.0.0.1:11211";

/** The pieces of pages. */
export const fragments = new Cache({ location, table: "shop_fragments" });

/** Baskets, and who is logged in. A row knows its user. */
export const sessions = new SessionStore({ location, table: "shop_sessions", principal: ({ user }) => user });
