package org.sqlcached.hibernate;

import org.hibernate.cache.spi.access.SoftLock;

/**
 * A transaction's lock on a row.
 *
 * @param name no other lock has it
 */
record Lock(String name) implements SoftLock {
}
