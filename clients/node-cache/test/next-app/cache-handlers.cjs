const { cacheHandlers } = require("../../src/next.js");

module.exports = cacheHandlers({ location: process.env.SQLCACHED });
