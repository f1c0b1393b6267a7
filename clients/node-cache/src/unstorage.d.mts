import sqlcached from "./unstorage.js";

export type DriverOptions = sqlcached.DriverOptions;
export type ItemOptions = sqlcached.ItemOptions;
export type SqlcachedDriver = sqlcached.SqlcachedDriver;
export default sqlcached;
