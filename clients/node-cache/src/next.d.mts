export * from "./next.js";
