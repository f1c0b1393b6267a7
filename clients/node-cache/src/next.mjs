import next from "./next.js";

export const { cacheHandler, cacheHandlers } = next;
