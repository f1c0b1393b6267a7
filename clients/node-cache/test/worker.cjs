/** A process of `cluster`: it asks for one value, says what it got and how often it made it, and ends when it is told. */
const { Cache } = require("../src/index.js");

const cache = new Cache({ location: process.env.LOCATION, timeout: 60_000, connectTimeout: 60_000, table: "workers" });
let made = 0;
const make = async () => {
  made++;
  await new Promise((resolve) => setTimeout(resolve, 50));
  return `of ${process.pid}`;
};
process.on("message", async () => {
  const values = await Promise.all([1, 2, 3].map(() => cache.getOrSet("k", make, { tags: ["t"], ttl: 60_000 })));
  process.send({ values, made });
});
process.send("ready");
