/** A client of sqlcached: memcached's meta commands and SQL over one pool of connections, without other libraries. */
package org.sqlcached.client;
