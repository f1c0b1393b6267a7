import keyv from "./keyv.js";

export const { KeyvSqlcached } = keyv;
export default keyv.KeyvSqlcached;
