import session from "./session.js";

export const { SessionStore } = session;
export default session.SessionStore;
