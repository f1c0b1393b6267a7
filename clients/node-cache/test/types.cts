// The same for a CommonJS program.
import cache = require("@sqlcached/cache");
import keyv = require("@sqlcached/cache/keyv");
import next = require("@sqlcached/cache/next");
import session = require("@sqlcached/cache/session");
import sqlcached = require("@sqlcached/cache/unstorage");

const store = new keyv.KeyvSqlcached(new cache.Client("127.0.0.1:11211") instanceof Object ? {} : "127.0.0.1:11211");
const sessions: session.SessionStore = new session.SessionStore();
const driver = sqlcached();
const handlers = [next.cacheHandler(), next.cacheHandlers()];

export = { store, sessions, driver, handlers };
