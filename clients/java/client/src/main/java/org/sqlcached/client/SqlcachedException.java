package org.sqlcached.client;

/** What went wrong at the daemon, or on the way to it. */
public class SqlcachedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** @param text what happened */
    public SqlcachedException(String text) {
        super(text);
    }

    /**
     * @param text what happened
     * @param cause why
     */
    public SqlcachedException(String text, Throwable cause) {
        super(text, cause);
    }
}
