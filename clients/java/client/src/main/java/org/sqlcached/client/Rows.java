package org.sqlcached.client;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;

/** The rows of a table at one daemon, by their keys. */
final class Rows {
    private static final byte[] GET = {'m', 'g', ' '};
    private static final byte[] STORE = {'m', 's', ' '};
    private static final byte[] REMOVE = {'m', 'd', ' '};
    private static final byte[] ADD = {'m', 'a', ' '};
    private static final byte[] ITEM = " v f c\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] QUIET_ITEM = " v f c q O".getBytes(StandardCharsets.US_ASCII);

    private final Statements statements;
    private final Definition definition;
    final Removals removals;

    Rows(Client client, Definition definition) {
        this.statements = new Statements(client, definition);
        this.definition = definition;
        this.removals = new Removals(statements);
    }

    Result run(boolean again, String text, Object... parameters) {
        return statements.run(again, text, parameters);
    }

    Item item(String key, int reserve, int refresh, long touch) {
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        if (name == null) {
            return row(key);
        }
        return statements.call(true, connection -> {
            name.put(connection, GET);
            if (reserve > 0) {
                connection.put(" N").put(reserve);
            }
            if (refresh > 0) {
                connection.put(" R").put(refresh);
            }
            if (touch != NO_TOUCH) {
                connection.put(" T" + exptime(touch));
            }
            connection.put(ITEM).flush();
            return Protocol.item(connection);
        });
    }

    static final long NO_TOUCH = Long.MIN_VALUE;

    /** A row whose key is too long for memcached's protocol. */
    private Item row(String key) {
        String text = "SELECT body, _flags, CAST(_cas AS TEXT) AS cas, _stale FROM " + definition.quoted() + " WHERE key = ?";
        List<Map<String, Object>> rows = run(true, text, Keys.text(key)).rows();
        return rows.isEmpty() ? null : Row.item(rows.get(0));
    }

    /** Rows that are there and fresh, by key. */
    void items(List<String> keys, Map<String, Item> into) {
        List<Keys.Wire> names = new ArrayList<>(keys.size());
        List<String> asked = new ArrayList<>(keys.size());
        for (String key : keys) {
            Keys.Wire name = Keys.wire(definition.prefix(), key);
            if (name == null) {
                Item item = row(key);
                if (item != null) {
                    into.put(key, item);
                }
            } else {
                names.add(name);
                asked.add(key);
            }
        }
        for (int from = 0; from < names.size(); from += Limits.KEYS) {
            batch(names.subList(from, Math.min(names.size(), from + Limits.KEYS)), from, asked, into);
        }
    }

    private void batch(List<Keys.Wire> names, int from, List<String> keys, Map<String, Item> into) {
        statements.call(true, connection -> {
            for (int at = 0; at < names.size(); at++) {
                names.get(at).put(connection, GET).put(QUIET_ITEM).put(at).end();
            }
            connection.put("mn").end().flush();
            Protocol.items(connection, item -> {
                if (item.place() >= names.size()) {
                    throw connection.strange("a value that was not asked for");
                }
                into.put(keys.get(from + item.place()), item);
            });
            return null;
        });
    }

    boolean set(Write row) {
        return set(row, false) != null;
    }

    /** Stores a row; its version (0 where it is not asked for), or null if it was not stored. */
    Long set(Write row, boolean version) {
        Keys.Wire name = Keys.wire(definition.prefix(), row.key());
        String tail = tail(name, row, version ? " c" : "");
        if (tail == null) {
            return written(row.key(), () -> put(row) ? (Long) 0L : null);
        }
        return written(row.key(), () -> statements.call(row.isPlain(), connection -> {
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
        long exptime = exptime(row.ttl());
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
            Row.body(row.data(), row.flags()), Tags.texts(row.tags()), row.flags(), ttl(row.ttl()), Keys.text(row.key())
        };
        String table = definition.quoted();
        String ttl = row.ttl() == Write.OF_TABLE ? TTL_OF_TABLE : "?";
        String columns = " (body, tags, _flags, _ttl, key) VALUES (?, ?, ?, " + ttl + ", ?)";
        if (row.isPlain()) {
            return run(true, "REPLACE INTO " + table + columns, values).count() > 0;
        }
        if (row.mode() == Write.Mode.ADD) {
            return run(false, "INSERT INTO " + table + columns + " ON CONFLICT DO NOTHING", values).count() > 0;
        }
        String text = "UPDATE " + table + " SET body = ?, tags = ?, _flags = ?, _ttl = " + ttl + ", _stale = FALSE WHERE key = ?";
        if (row.cas() == 0) {
            return run(false, text, values).count() > 0;
        }
        Object[] all = Arrays.copyOf(values, values.length + 1);
        all[values.length] = Long.toUnsignedString(row.cas());
        return run(false, text + " AND _cas = CAST(? AS BIGINT)", all).count() > 0;
    }

    /** Runs a statement that changes one row, once; whether it was there. */
    boolean changed(String key, String text, Object... parameters) {
        return written(key, () -> run(false, text, parameters).count() > 0);
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

    /** A write may have failed after an old row was there, which must not be read any more. */
    private <T> T written(String key, Supplier<T> work) {
        try {
            return work.get();
        } catch (UnavailableException why) {
            removals.keepKeys(why, List.of(key));
            throw why;
        }
    }

    /** Removes a row; whether it was there. With a version only that one. */
    boolean delete(String key, long cas) {
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        if (name == null) {
            return deleteByStatement(key, cas);
        }
        Function<Connection, Boolean> work = connection -> {
            name.put(connection, REMOVE);
            if (cas != 0) {
                connection.put(" C").put(cas);
            }
            connection.end().flush();
            return Protocol.done(connection);
        };
        if (cas != 0) {
            return written(key, () -> statements.call(false, work));
        }
        try {
            return statements.call(true, work);
        } catch (UnavailableException why) {
            return removals.send(removals.ofKeys(List.of(key)), Keys.text(key)) > 0;
        }
    }

    private boolean deleteByStatement(String key, long cas) {
        String text = removals.ofKeys(List.of(key));
        if (cas == 0) {
            return removals.send(text, Keys.text(key)) > 0;
        }
        String version = Long.toUnsignedString(cas);
        return written(key, () -> run(false, text + " AND _cas = CAST(? AS BIGINT)", Keys.text(key), version).count() > 0);
    }

    /** Removes rows; whether that got through. */
    boolean deleteAll(List<String> keys) {
        boolean done = true;
        for (int from = 0; from < keys.size(); from += Limits.BATCH) {
            List<String> part = keys.subList(from, Math.min(keys.size(), from + Limits.BATCH));
            done &= removals.send(removals.ofKeys(part), Removals.parameters(part)) >= 0;
        }
        return done;
    }

    /** Gives a row a new deadline; whether it exists. */
    boolean touch(String key, long ttl) {
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        if (name == null) {
            String text = "UPDATE " + definition.quoted() + " SET _ttl = " + (ttl == Write.OF_TABLE ? TTL_OF_TABLE : "?") + " WHERE key = ?";
            return written(key, () -> run(true, text, ttl(ttl), Keys.text(key)).count() > 0);
        }
        return written(key, () -> statements.call(true, connection -> {
            name.put(connection, GET).put(" T" + exptime(ttl)).end().flush();
            return Protocol.done(connection);
        }));
    }

    /** Adds to a number without a sign that is there; null if there is none. */
    Long add(String key, long delta) {
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        if (name == null) {
            throw new IllegalArgumentException("the key is too long to be added to");
        }
        return written(key, () -> statements.call(false, connection -> {
            name.put(connection, ADD).put(" D").put(Math.abs(delta)).put(delta < 0 ? " MD v" : " v").end().flush();
            String line = connection.line();
            if (line.equals("NF")) {
                return null;
            }
            if (!line.startsWith("VA ")) {
                throw connection.refused(line);
            }
            byte[] number = connection.block(Integer.parseInt(line.substring(3).split(" ")[0]));
            return Long.parseUnsignedLong(new String(number, StandardCharsets.US_ASCII).trim());
        }));
    }

    /** memcached's number for a time to live. */
    private long exptime(long ttl) {
        long never = definition.hasTtl() ? Limits.FOREVER : 0;
        if (ttl == Write.OF_TABLE) {
            return 0;
        }
        if (ttl < 0) {
            return never;
        }
        if (ttl == 0) {
            return -1;
        }
        if (ttl <= Limits.MONTH) {
            return ttl;
        }
        long now = System.currentTimeMillis() / 1000;
        // memcached's clock ends in 2038.
        return ttl >= Limits.FOREVER - now ? never : ttl + now;
    }

    /** The time to live that a table's option says, of the table with this name. */
    private static final String TTL_OF_TABLE = "(SELECT ttl FROM sqlcached_tables WHERE table_name = ?)";

    /** A time to live as the hidden column {@code _ttl} takes it, or the parameter of {@link #TTL_OF_TABLE}. */
    private Object ttl(long ttl) {
        if (ttl == Write.OF_TABLE) {
            return definition.name();
        }
        return ttl < 0 ? null : (Long) Math.min(ttl, 31_557_600_000L);
    }

    static boolean isText(byte[] data) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data));
            return true;
        } catch (CharacterCodingException why) {
            return false;
        }
    }
}
