package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The rows of a table at one daemon, by their keys: reads, removals and what changes a row where it is. */
final class Rows {
    private static final byte[] GET = {'m', 'g', ' '};
    private static final byte[] REMOVE = {'m', 'd', ' '};
    private static final byte[] ADD = {'m', 'a', ' '};
    private static final byte[] ITEM = " v f c\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] QUIET_ITEM = " v f c q O".getBytes(StandardCharsets.US_ASCII);

    /** The same with the deadline, for copies. */
    private static final byte[] TIMED_ITEM = " v f c t\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] QUIET_TIMED_ITEM = " v f c t q O".getBytes(StandardCharsets.US_ASCII);

    private final Client client;
    private final Statements statements;
    private final Definition definition;
    final Removals removals;

    /** Rows that are not asked for by their keys. */
    final Scan scan;

    /** What stores rows. */
    final RowWriter writer;
    private final TimeToLive ttl;

    /** The table in shared memory, or null. */
    private final SharedTable shared;

    /** Whether deadlines are asked for. */
    volatile boolean isTimed;

    Rows(Client client, Definition definition) {
        this.client = client;
        this.statements = new Statements(client, definition);
        this.definition = definition;
        this.removals = new Removals(statements);
        this.scan = new Scan(statements, removals);
        this.ttl = new TimeToLive(definition);
        this.writer = new RowWriter(statements, removals, ttl);
        this.shared = client.shared() == null ? null : new SharedTable(client.shared(), definition);
        if (shared != null) {
            definition.share();
        }
    }

    Subscription listen(RowListener listener) {
        return client.announcements().add(definition, listener);
    }

    Result run(boolean again, String text, Object... parameters) {
        return statements.run(again, text, parameters);
    }

    /** A row, of shared memory if it is there. With {@code refresh} only the daemon says who computes it again. */
    Item item(String key, int refresh) {
        Item item = refresh == 0 ? shared(key) : SharedTable.NOT_HERE;
        if (item != SharedTable.NOT_HERE) {
            return item;
        }
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        return name == null ? row(key) : asked(name, refresh);
    }

    /** Copies need the deadline, which only the daemon says. */
    private Item shared(String key) {
        return shared == null || isTimed ? SharedTable.NOT_HERE : shared.read(key);
    }

    private Item asked(Keys.Wire name, int refresh) {
        return statements.call(true, connection -> {
            name.put(connection, GET);
            if (refresh > 0) {
                connection.put(" R").put(refresh);
            }
            connection.put(isTimed ? TIMED_ITEM : ITEM).flush();
            return Protocol.item(connection);
        });
    }

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
            Item item = shared(key);
            Keys.Wire name = item == SharedTable.NOT_HERE ? Keys.wire(definition.prefix(), key) : null;
            if (name != null) {
                names.add(name);
                asked.add(key);
                continue;
            }
            item = item == SharedTable.NOT_HERE ? row(key) : item;
            if (item != null) {
                into.put(key, item);
            }
        }
        for (int from = 0; from < names.size(); from += Limits.KEYS) {
            batch(names.subList(from, Math.min(names.size(), from + Limits.KEYS)), from, asked, into);
        }
    }

    private void batch(List<Keys.Wire> names, int from, List<String> keys, Map<String, Item> into) {
        statements.call(true, connection -> {
            byte[] item = isTimed ? QUIET_TIMED_ITEM : QUIET_ITEM;
            for (int at = 0; at < names.size(); at++) {
                names.get(at).put(connection, GET).put(item).put(at).end();
            }
            connection.put("mn").end().flush();
            Protocol.items(connection, found -> {
                if (found.place() >= names.size()) {
                    throw connection.strange("a value that was not asked for");
                }
                into.put(keys.get(from + found.place()), found);
            });
            return null;
        });
    }

    /** Runs a statement that changes one row, once; whether it was there. */
    boolean changed(String key, String text, Object... parameters) {
        return removals.written(key, () -> run(false, text, parameters).count() > 0);
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
            return removals.written(key, () -> statements.call(false, work));
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
        return removals.written(key, () -> run(false, text + " AND _cas = CAST(? AS BIGINT)", Keys.text(key), version).count() > 0);
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
    boolean touch(String key, long seconds) {
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        if (name == null) {
            String text = "UPDATE " + definition.quoted() + " SET _ttl = " + TimeToLive.expression(seconds) + " WHERE key = ?";
            return removals.written(key, () -> run(true, text, ttl.parameter(seconds), Keys.text(key)).count() > 0);
        }
        return removals.written(key, () -> statements.call(true, connection -> {
            name.put(connection, GET).put(" T" + ttl.exptime(seconds)).end().flush();
            return Protocol.done(connection);
        }));
    }

    /** Adds to a number without a sign that is there; null if there is none. */
    Long add(String key, long delta) {
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        if (name == null) {
            throw new IllegalArgumentException("the key is too long to be added to");
        }
        return removals.written(key, () -> statements.call(false, connection -> {
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
}
