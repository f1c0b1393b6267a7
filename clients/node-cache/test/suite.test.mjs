/** Keyv's own suite. */
import keyvTestSuite, { keyvIteratorTests } from "@keyv/test-suite";
import Keyv from "keyv";
import * as vitest from "vitest";
import { KeyvSqlcached } from "../src/keyv.mjs";
import { Daemon } from "./daemon.mjs";

const daemon = new Daemon();
vitest.beforeAll(() => daemon.start(), 120_000);
vitest.afterAll(() => daemon.end(), 120_000);
// A deadline of some milliseconds leaves no time for a restart.
vitest.beforeEach(({ task }) => {
  if (daemon.relay) daemon.relay.isPaused = /ttl|expire/i.test(task.name);
});

const store = () => new KeyvSqlcached({ ...daemon.at, table: "keyv_suite" });

keyvTestSuite(vitest, Keyv, store);
keyvIteratorTests(vitest, Keyv, store);
