package org.sqlcached.client;

import java.util.List;

/** Rows of a table at one daemon that are not asked for by their keys. Stale and reserved ones are left out. */
final class Scan {
    private static final String FRESH = "NOT _stale AND NOT (_flags = 0 AND length(body) = 0)";

    private final Statements statements;
    private final Removals removals;

    Scan(Statements statements, Removals removals) {
        this.statements = statements;
        this.removals = removals;
    }

    /** A table that may not be read is not taken for an empty one. */
    private Result run(String text, Object... parameters) {
        if (!removals.areSent()) {
            String name = statements.definition().name();
            throw new UnavailableException("the table " + name + " is not read until its removals were sent");
        }
        return statements.run(true, text, parameters);
    }

    long count() {
        String text = "SELECT count(*) AS n FROM " + statements.definition().quoted() + " WHERE " + FRESH;
        return ((Number) run(text).rows().get(0).get("n")).longValue();
    }

    /** Rows with a tag. */
    List<Row> tagged(String tag) {
        return rows("tags && ? AND " + FRESH, List.of(Keys.text(tag)));
    }

    /** Rows behind a key, in the order of their keys; null: from the first. */
    List<Row> page(String after) {
        String condition = (after == null ? "" : "key > ? AND ") + FRESH + " ORDER BY key LIMIT " + Limits.PAGE;
        return rows(condition, after == null ? new Object[0] : new Object[] {Keys.text(after)});
    }

    private List<Row> rows(String condition, Object... parameters) {
        String text = "SELECT key, body, _flags, CAST(_cas AS TEXT) AS cas, _stale FROM " + statements.definition().quoted();
        return run(text + " WHERE " + condition, parameters).rows().stream()
                .map(row -> new Row(Keys.of((String) row.get("key")), Row.item(row)))
                .toList();
    }
}
