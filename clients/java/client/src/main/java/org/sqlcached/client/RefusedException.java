package org.sqlcached.client;

/** The daemon refused a command, for example a value above its limit. */
public class RefusedException extends SqlcachedException {
    private static final long serialVersionUID = 1L;

    /** @param text what the daemon said */
    public RefusedException(String text) {
        super(text);
    }

    /**
     * @param text what the daemon said
     * @param cause why
     */
    public RefusedException(String text, Throwable cause) {
        super(text, cause);
    }
}
