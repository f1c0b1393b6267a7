export * from "./keyv.js";
export { KeyvSqlcached as default } from "./keyv.js";
