package org.sqlcached.client;

/** A statement failed. */
public class StatementException extends SqlcachedException {
    private static final long serialVersionUID = 1L;

    /** PostgreSQL's code of the error. */
    private final String sqlState;

    /**
     * @param sqlState PostgreSQL's code of the error
     * @param text what the daemon said
     */
    public StatementException(String sqlState, String text) {
        super(sqlState + ": " + text);
        this.sqlState = sqlState;
    }

    /** @return PostgreSQL's code of the error, for example 42P01 where there is no such table */
    public String sqlState() {
        return sqlState;
    }
}
