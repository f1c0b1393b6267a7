package org.sqlcached.client;

/**
 * A row and its value.
 *
 * @param item the row, or null
 * @param value its value; null if there is none, or if it does not load
 */
public record Loaded(Item item, Object value) {
    /** Nothing. */
    static final Loaded NONE = new Loaded(null, null);
}
