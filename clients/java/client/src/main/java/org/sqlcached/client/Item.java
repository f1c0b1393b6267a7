package org.sqlcached.client;

/**
 * A row as the daemon has it.
 *
 * @param data the value's bytes
 * @param flags say what the bytes are
 * @param cas the row's version
 * @param isWon whether the caller is asked to compute the value again
 * @param isStale whether the value was invalidated softly
 * @param place of the key in a request of many
 */
public record Item(byte[] data, int flags, long cas, boolean isWon, boolean isStale, int place) {
    /** @return whether it is nothing but the place of a value that is being computed */
    public boolean isReserved() {
        return data.length == 0 && flags == 0;
    }

    /** @return whether it is a value to be used */
    public boolean isFresh() {
        return !isStale && !isReserved();
    }
}
