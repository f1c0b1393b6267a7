package org.sqlcached.client;

/** The daemon cannot be asked, or did not answer in time. Whether it did what it was asked is not known. */
public class UnavailableException extends SqlcachedException {
    private static final long serialVersionUID = 1L;

    /** @param text what happened */
    public UnavailableException(String text) {
        super(text);
    }

    /**
     * @param text what happened
     * @param cause why
     */
    public UnavailableException(String text, Throwable cause) {
        super(text, cause);
    }
}
