package org.sqlcached.client;

import java.util.Collection;
import java.util.List;

/**
 * A row to be stored.
 *
 * @param key any text
 * @param data the value's bytes
 * @param flags say what the bytes are; not 0 where there are no bytes
 * @param ttl seconds; {@link #FOREVER} for none, {@link #OF_TABLE} for the table's own
 * @param tags by which it can be removed
 * @param mode when it is stored
 * @param cas the version that is replaced; 0 for any
 */
public record Write(String key, byte[] data, int flags, long ttl, Collection<String> tags, Mode mode, long cas) {
    /** A row without a deadline, also in a table with the option {@code ttl}. */
    public static final long FOREVER = -1;

    /** A row that lives as long as the table's option {@code ttl} says; without that option, for ever. */
    public static final long OF_TABLE = -2;

    /** When a row is stored. */
    public enum Mode {
        /** In any case. */
        SET(' '),
        /** If there is none. */
        ADD('E'),
        /** If there is one. */
        REPLACE('R');

        final char letter;

        Mode(char letter) {
            this.letter = letter;
        }
    }

    /**
     * @param key any text
     * @param data the value's bytes
     * @param flags say what the bytes are
     * @param ttl seconds; {@link #FOREVER} or {@link #OF_TABLE}
     * @return a row that is stored in any case, without tags
     */
    public static Write of(String key, byte[] data, int flags, long ttl) {
        return new Write(key, data, flags, ttl, List.of(), Mode.SET, 0);
    }

    /**
     * @param names by which the row can be removed
     * @return the row with these tags
     */
    public Write tagged(Collection<String> names) {
        return new Write(key, data, flags, ttl, names, mode, cas);
    }

    /**
     * @param when the row is stored
     * @return the row with this mode
     */
    public Write mode(Mode when) {
        return new Write(key, data, flags, ttl, tags, when, cas);
    }

    /**
     * @param version the version that is replaced
     * @return the row with this condition
     */
    public Write ifVersion(long version) {
        return new Write(key, data, flags, ttl, tags, mode, version);
    }

    /** Whether it can be sent again: it means the same then. */
    boolean isPlain() {
        return mode == Mode.SET && cas == 0;
    }
}
