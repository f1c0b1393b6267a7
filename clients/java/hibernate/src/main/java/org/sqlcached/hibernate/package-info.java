/** Hibernate's second-level cache in sqlcached: its regions are tables. */
package org.sqlcached.hibernate;
