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
 * @param ttl seconds that it has to live; {@link #FOREVER} without a deadline, {@link #NOT_KNOWN} if that was not asked
 */
public record Item(byte[] data, int flags, long cas, boolean isWon, boolean isStale, int place, long ttl) {
    /** No deadline. */
    public static final long FOREVER = -1;

    /** Nobody asked for the deadline. */
    public static final long NOT_KNOWN = -2;

    /** @return whether it is nothing but the place of a value that is being computed */
    public boolean isReserved() {
        return data.length == 0 && flags == 0;
    }

    /** @return whether it is a value to be used */
    public boolean isFresh() {
        return !isStale && !isReserved();
    }

    /** One with bytes of its own. */
    Item copy() {
        return new Item(data.clone(), flags, cas, isWon, isStale, place, ttl);
    }
}
