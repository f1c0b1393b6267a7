import sqlcached from "./unstorage.js";

export default sqlcached;
