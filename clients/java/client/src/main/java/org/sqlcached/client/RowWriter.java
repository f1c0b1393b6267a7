package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/** Stores rows of a table at one daemon: by meta commands, or by statements what does not fit those. */
final class RowWriter {
    private static final byte[] STORE = {'m', 's', ' '};

    private final Statements statements;
    private final Definition definition;
    private final Removals removals;
    private final TimeToLive ttl;

    RowWriter(Statements statements, Removals removals, TimeToLive ttl) {
        this.statements = statements;
        this.definition = statements.definition();
        this.removals = removals;
        this.ttl = ttl;
    }

    boolean set(Write row) {
        return set(row, false) != null;
    }

    /** Stores a row; its version (0 where it is not asked for), or null if it was not stored. */
    Long set(Write row, boolean version) {
        Keys.Wire name = Keys.wire(definition.prefix(), row.key());
        String tail = tail(name, row, version ? " c" : "");
        if (tail == null) {
            return removals.written(row.key(), () -> put(row) ? (Long) 0L : null);
        }
        return removals.written(row.key(), () -> statements.call(row.isPlain(), connection -> {
            store(connection, name, row, tail);
            connection.flush();
            String line = connection.line();
            if (!Protocol.done(connection, line)) {
                return null;
            }
            return line.startsWith("HD c") ? Long.parseUnsignedLong(line.substring(4)) : (Long) 0L;
        }));
    }

    private static void store(Connection to, Keys.Wire name, Write row, String tail) {
        to.put(STORE).put(name.name()).put(" ").put(row.data().length);
        if (name.isBase64()) {
            to.put(" b");
        }
        to.put(tail.getBytes(StandardCharsets.UTF_8)).put(row.data()).end();
    }

    /** The flags of a command that stores; null if the row goes by a statement only. */
    private String tail(Keys.Wire name, Write row, String more) {
        if (name == null) {
            return null;
        }
        StringBuilder line = new StringBuilder(48);
        if (row.flags() != 0) {
            line.append(" F").append(Integer.toUnsignedString(row.flags()));
        }
        long exptime = ttl.exptime(row.ttl());
        if (exptime != 0) {
            line.append(" T").append(exptime);
        }
        line.append(more);
        if (row.mode() != Write.Mode.SET) {
            line.append(" M").append(row.mode().letter);
        }
        if (row.cas() != 0) {
            line.append(" C").append(Long.toUnsignedString(row.cas()));
        }
        if (!row.tags().isEmpty()) {
            String tags = Tags.words(row.tags());
            if (tags == null) {
                return null;
            }
            line.append(" L").append(tags);
        }
        return name.name().length + 3 * line.length() <= Limits.LINE ? line.append("\r\n").toString() : null;
    }

    /** As {@code set}, by a statement. */
    private boolean put(Write row) {
        Object[] values = {
            Row.body(row.data(), row.flags()), Tags.texts(row.tags()), row.flags(), ttl.parameter(row.ttl()), Keys.text(row.key())
        };
        String table = definition.quoted();
        String expression = TimeToLive.expression(row.ttl());
        String columns = " (body, tags, _flags, _ttl, key) VALUES (?, ?, ?, " + expression + ", ?)";
        if (row.isPlain()) {
            return statements.run(true, "REPLACE INTO " + table + columns, values).count() > 0;
        }
        if (row.mode() == Write.Mode.ADD) {
            return statements.run(false, "INSERT INTO " + table + columns + " ON CONFLICT DO NOTHING", values).count() > 0;
        }
        String text = "UPDATE " + table + " SET body = ?, tags = ?, _flags = ?, _ttl = " + expression + ", _stale = FALSE WHERE key = ?";
        if (row.cas() == 0) {
            return statements.run(false, text, values).count() > 0;
        }
        Object[] all = Arrays.copyOf(values, values.length + 1);
        all[values.length] = Long.toUnsignedString(row.cas());
        return statements.run(false, text + " AND _cas = CAST(? AS BIGINT)", all).count() > 0;
    }

    /** Stores rows in few round trips; throws the first refusal, when the others were stored. */
    void setAll(Collection<Write> rows) {
        List<Write> one = new ArrayList<>();
        List<Write> batch = new ArrayList<>();
        long bytes = 0;
        for (Write row : rows) {
            if (tail(Keys.wire(definition.prefix(), row.key()), row, " q") == null) {
                one.add(row);
                continue;
            }
            batch.add(row);
            bytes += row.data().length;
            if (batch.size() >= Limits.BATCH || bytes >= Limits.BATCH_BYTES) {
                one.addAll(sent(batch));
                batch.clear();
                bytes = 0;
            }
        }
        one.addAll(sent(batch));
        storeEach(one);
    }

    private void storeEach(List<Write> rows) {
        SqlcachedException refused = null;
        for (Write row : rows) {
            try {
                set(row);
            } catch (RefusedException | StatementException why) {
                refused = refused == null ? why : refused;
            }
        }
        if (refused != null) {
            throw refused;
        }
    }

    /** Sends a batch. A refusal does not name its key, so all rows of a batch with one are stored again, one by one. */
    private List<Write> sent(List<Write> rows) {
        if (rows.size() < 2) {
            return List.copyOf(rows);
        }
        try {
            boolean done = statements.call(true, connection -> {
                for (Write row : rows) {
                    Keys.Wire name = Keys.wire(definition.prefix(), row.key());
                    store(connection, name, row, tail(name, row, " q"));
                }
                connection.put("mn").end().flush();
                return Protocol.refusals(connection).isEmpty();
            });
            return done ? List.of() : List.copyOf(rows);
        } catch (UnavailableException why) {
            removals.keepKeys(why, rows.stream().map(Write::key).toList());
            throw why;
        }
    }
}
