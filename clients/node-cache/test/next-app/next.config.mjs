import { fileURLToPath } from "node:url";

const file = (name) => fileURLToPath(new URL(name, import.meta.url));

export default {
  cacheHandler: file("cache-handler.cjs"),
  cacheHandlers: { default: file("cache-handlers.cjs") },
  // What is in the memory of one server is not seen by the other one.
  cacheMaxMemorySize: 0,
  experimental: { useCache: true },
  // The test has Next's modules elsewhere.
  turbopack: { root: process.env.NEXT_ROOT },
};
