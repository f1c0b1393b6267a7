// The types as a program meets them. The compiler checks this file; nothing runs it.
import expressSession from "express-session";
import Keyv from "keyv";
import { createStorage } from "unstorage";
import { Cache, Client, StatementError, UnavailableError } from "sqlcached";
import keyvDefault, { KeyvSqlcached } from "sqlcached/keyv";
import { cacheHandler, cacheHandlers } from "sqlcached/next";
import sessionDefault, { SessionStore } from "sqlcached/session";
import sqlcached from "sqlcached/unstorage";

declare module "express-session" {
  interface SessionData {
    user?: number;
  }
}

const cache = new Cache({ location: "/run/sqlcached/sock", sharedMemory: true, table: "page", options: { ttl: "10 min" }, onError: (error: Error) => {} });
const text: string = await cache.getOrSet("k", async () => "text", { ttl: 1_000, tags: ["t"] });
const removed: number = await cache.invalidateTags(["t"], { soft: true });
const rows = await new Client("127.0.0.1:11211").sql("SELECT ?", 1);
const state: string = new StatementError().sqlstate;
const isError: boolean = new UnavailableError() instanceof Error;

const store = new KeyvSqlcached({ tls: true, user: "app", password: "secret" });
const keyv = new Keyv({ store, namespace: "n" });
const stored: Promise<boolean> = store.tagged(["t"], () => keyv.set("k", 1));

const sessions = new SessionStore({ principal: ({ user }) => user, ttl: 60_000 });
expressSession({ store: sessions, secret: "s" });
const ended: number = await sessions.destroyUser(17, { keep: "id" });
const count: number = await sessions.length();

const driver = sqlcached({ base: "shop", ttl: 600 });
const storage = createStorage({ driver });
await storage.setItem("k", "v", { ttl: 60, tags: ["t"] });
const found: { ttl?: number } = await driver.getMeta("k");

const Handler = cacheHandler("127.0.0.1:11211");
await new Handler().revalidateTag("t", { expire: 60 });
await cacheHandlers({ table: "next" }).updateTags(["t"]);

// @ts-expect-error a driver has no such option
sqlcached({ prefix: "shop" });
// @ts-expect-error tags are a list
await cache.set("k", "v", { tags: "t" });
// @ts-expect-error a user is a name or a number
await sessions.destroyUser({ id: 17 });

export { count, ended, found, isError, keyvDefault, removed, rows, sessionDefault, state, stored, text };
