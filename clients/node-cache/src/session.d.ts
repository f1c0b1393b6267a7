/// <reference types="node" />

import { SessionData, Store } from "express-session";
import type { StoreOptions } from "./keyv.js";

export interface SessionOptions extends StoreOptions {
  /** Milliseconds that a session lives whose cookie ends with the browser; a day by default. */
  ttl?: number;
  /** Whose a session is; nobody's if it returns null, undefined or "". */
  principal?: (session: SessionData) => string | number | bigint | null | undefined;
  /** Is called at most once a minute while the daemon is away; by default Node prints a warning. */
  onError?: (error: Error) => void;
}

/** Sessions of express-session in a table, whose rows know their user. */
export class SessionStore extends Store {
  constructor(options?: string | SessionOptions);
  get(id: string, done: (error: any, session?: SessionData | null) => void): void;
  get(id: string): Promise<SessionData | null>;
  set(id: string, session: SessionData, done?: (error?: any) => void): void;
  destroy(id: string, done?: (error?: any) => void): void;
  touch(id: string, session: SessionData, done?: () => void): void;
  all(done: (error: any, sessions?: SessionData[]) => void): void;
  all(): Promise<Array<SessionData & { id: string }>>;
  length(done: (error: any, length?: number) => void): void;
  length(): Promise<number>;
  clear(done?: (error?: any) => void): void;
  /** Ends all sessions of a user, except the one with the id `keep`; how many. */
  destroyUser(user: string | number | bigint, options?: { keep?: string }): Promise<number>;
  disconnect(): Promise<void>;
}

export default SessionStore;
