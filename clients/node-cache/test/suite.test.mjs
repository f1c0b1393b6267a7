/** Keyv's own suite. */
import keyvTestSuite, { keyvIteratorTests } from "@keyv/test-suite";
import Keyv from "keyv";
import * as vitest from "vitest";
import { KeyvSqlcached } from "../src/keyv.mjs";

const store = () => new KeyvSqlcached({ location: `127.0.0.1:${process.env.SQLCACHED_PORT}`, table: "keyv_suite" });

keyvTestSuite(vitest, Keyv, store);
keyvIteratorTests(vitest, Keyv, store);
