const { cacheHandler } = require("../../src/next.js");

module.exports = cacheHandler({ location: process.env.SQLCACHED });
