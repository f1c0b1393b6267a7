/** A map in sqlcached. */
package org.sqlcached.map;
