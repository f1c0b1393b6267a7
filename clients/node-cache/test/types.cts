// The same for a CommonJS program.
import cache = require("sqlcached");
import keyv = require("sqlcached/keyv");
import next = require("sqlcached/next");
import session = require("sqlcached/session");
import sqlcached = require("sqlcached/unstorage");

const store = new keyv.KeyvSqlcached(new cache.Client("127.0.0.1:11211") instanceof Object ? {} : "127.0.0.1:11211");
const sessions: session.SessionStore = new session.SessionStore();
const driver = sqlcached();
const handlers = [next.cacheHandler(), next.cacheHandlers()];

export = { store, sessions, driver, handlers };
