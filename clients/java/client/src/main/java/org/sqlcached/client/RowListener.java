package org.sqlcached.client;

/**
 * Hears which rows of a table left, whoever removed or replaced them: this process, another one, psql, a memcached client,
 * a deadline, the database behind a mirror. A row that is new is not announced.
 *
 * <p>One thread for each {@link Client} calls all listeners. While one of them works, nothing else is heard.
 */
public interface RowListener {
    /** Why a row left. */
    enum Cause {
        /** Somebody removed, replaced or changed it. There may be a newer value. */
        INVALIDATED,
        /** Its time came, perhaps a while ago: that is announced when its memory is freed. */
        EXPIRED,
        /** Its memory was needed. */
        EVICTED
    }

    /**
     * A row left. Whoever reads it now reads what came after it.
     *
     * @param key its key
     * @param cause why
     */
    void left(String key, Cause cause);

    /**
     * All rows may have changed, and nobody says which: the table was emptied, or announcements may have been lost because
     * the daemon could not be heard. Called when it is heard again, and also at the beginning.
     */
    void allMayHaveChanged();
}
