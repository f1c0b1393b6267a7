export * from "./session.js";
export { SessionStore as default } from "./session.js";
