import Keyv from "keyv";
import { KeyvSqlcached } from "sqlcached/keyv";

const store = new KeyvSqlcached({ location: `127.0.0.1:${process.env.SQLCACHED_PORT ?? 11211}`, table: "pages" });
const keyv = new Keyv({ store, ttl: 600_000 });

await store.tagged(["product:17", "shop"], () => keyv.set("page:17", "hello"));
console.log(await keyv.get("page:17"));

// All that shows the product, whatever its keys are.
await store.invalidateTags(["product:17"]);
if ((await keyv.get("page:17")) !== undefined) throw new Error("it is still there");
