package org.sqlcached.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A table of one daemon, or of several that share its keys, as caches use it: rows by key, rows by tag, leases.
 *
 * <p>Rows whose key fits memcached's protocol go by meta commands, longer ones and unusual tags by statements. A removal
 * that cannot be sent is kept, and nothing is read from the table until it got through.
 */
public final class Table {
    private final Definition definition;
    private final Nodes nodes;

    /**
     * @param client a daemon
     * @param definition the table, which is made if it is not there
     */
    public Table(Client client, Definition definition) {
        this(List.of(client), definition);
    }

    /**
     * @param clients daemons, each of which has a part of the keys, as ketama says
     * @param definition the table
     */
    public Table(List<Client> clients, Definition definition) {
        this.definition = definition;
        this.nodes = new Nodes(clients, definition);
    }

    /** @return the table's definition */
    public Definition definition() {
        return definition;
    }

    /** Which daemon has a key. */
    int place(String key) {
        return nodes.place(key);
    }

    // Changes that others make, and copies of rows.

    /**
     * @param listener hears which rows leave the table, from now on. Its first call says that all may have changed: then
     *     the daemon is heard
     * @return one subscription for each daemon
     * @throws RefusedException if this role may not let the table announce
     */
    public List<Subscription> listen(RowListener listener) {
        return nodes.listen(listener);
    }

    /** Keeps copies of rows. A table has one such set of copies. */
    NearCache copies(Near options, Values values) {
        return nodes.copies(options, values);
    }

    /** The copies of rows, or null. */
    NearCache copies() {
        return nodes.copies();
    }

    // Rows by key.

    /**
     * @param key any text
     * @return the row; null if it is missing, stale or reserved, or may not be read
     */
    public Item get(String key) {
        Rows node = nodes.of(key);
        Item item = node.removals.areSent() ? node.item(key, 0) : null;
        return item != null && isUsed(key, item) ? item : null;
    }

    /** Whether it is a value to be used. Whoever only looks gives back the claim to compute it again. */
    private boolean isUsed(String key, Item item) {
        if (item.isStale() && item.isWon()) {
            release(key, item.cas());
        }
        return item.isFresh();
    }

    /**
     * Gives back the claim to compute a stale value again: the next who asks by {@link #item} has it.
     *
     * @param key any text
     * @param cas the version that was claimed
     */
    public void release(String key, long cas) {
        String text = "UPDATE " + definition.quoted() + " SET _leased = FALSE WHERE key = ? AND _cas = CAST(? AS BIGINT)";
        nodes.of(key).run(true, text, Keys.text(key), Long.toUnsignedString(cas));
    }

    /**
     * As {@link #get}, with a new deadline for the row.
     *
     * @param key any text
     * @param ttl seconds, or {@link Write#FOREVER}
     * @return the row, or null
     */
    public Item getAndTouch(String key, long ttl) {
        Item item = get(key);
        return item == null || !touch(key, ttl) ? null : item;
    }

    /**
     * @param keys any texts
     * @return the rows that are there and fresh
     */
    public Map<String, Item> getAll(Collection<String> keys) {
        Map<String, Item> found = mapOf(keys.size());
        List<List<String>> parts = nodes.parts(keys, key -> key);
        for (int at = 0; at < parts.size(); at++) {
            if (!parts.get(at).isEmpty() && nodes.node(at).removals.areSent()) {
                nodes.node(at).items(parts.get(at), found);
            }
        }
        found.entrySet().removeIf(each -> !isUsed(each.getKey(), each.getValue()));
        return found;
    }

    /** A map that need not grow for so many entries. */
    static <V> Map<String, V> mapOf(int count) {
        return new HashMap<>(count + count / 2);
    }

    /**
     * All that the daemon says of a row, also if it is stale or reserved.
     *
     * @param key any text
     * @param refresh seconds before the deadline in which one caller is asked to compute the value again
     * @return the row, or null; null also if the table may not be read
     */
    public Item item(String key, int refresh) {
        Rows node = nodes.of(key);
        return node.removals.areSent() ? node.item(key, refresh) : null;
    }

    /**
     * @param key any text
     * @return whether its row may be read: what could not be removed before is removed now
     */
    public boolean isReadable(String key) {
        return nodes.of(key).removals.areSent();
    }

    /**
     * @param row what to store
     * @return whether it was stored
     */
    public boolean set(Write row) {
        return nodes.changed(row.key(), node -> node.writer.set(row));
    }

    /**
     * Stores rows in few round trips.
     *
     * @param rows what to store, in any case
     */
    public void setAll(Collection<Write> rows) {
        List<List<Write>> parts = nodes.parts(rows, Write::key);
        nodes.changed(rows.stream().map(Write::key).toList(), () -> {
            for (int at = 0; at < parts.size(); at++) {
                nodes.node(at).writer.setAll(parts.get(at));
            }
            return null;
        });
    }

    /**
     * @param key any text
     * @return whether the row was there; false also if the removal waits for the daemon
     */
    public boolean delete(String key) {
        return nodes.changed(key, node -> node.delete(key, 0));
    }

    /**
     * @param key any text
     * @param cas the version that is removed, and no other
     * @return whether it was there
     */
    public boolean delete(String key, long cas) {
        return nodes.changed(key, node -> node.delete(key, cas));
    }

    /**
     * @param keys whose rows are removed
     * @return whether that got through
     */
    public boolean deleteAll(Collection<String> keys) {
        List<List<String>> parts = nodes.parts(keys, key -> key);
        return nodes.changed(keys, () -> {
            boolean done = true;
            for (int at = 0; at < parts.size(); at++) {
                done &= nodes.node(at).deleteAll(parts.get(at));
            }
            return done;
        });
    }

    /**
     * @param key any text
     * @param ttl seconds from now, or {@link Write#FOREVER}
     * @return whether the row exists
     */
    public boolean touch(String key, long ttl) {
        return nodes.changed(key, node -> node.touch(key, ttl));
    }

    /**
     * Replaces a value. The row keeps its deadline and its tags.
     *
     * @param key any text
     * @param data the value's bytes
     * @param flags say what the bytes are
     * @param cas the version that is replaced
     * @return whether it was there
     */
    public boolean replaceKeeping(String key, byte[] data, int flags, long cas) {
        String text = "UPDATE " + definition.quoted() + " SET body = ?, _flags = ? WHERE key = ? AND _cas = CAST(? AS BIGINT)";
        Object[] values = {Row.body(data, flags), flags, Keys.text(key), Long.toUnsignedString(cas)};
        return nodes.changed(key, node -> node.changed(key, text, values));
    }

    /**
     * @param key of a number without a sign
     * @param delta what is added; below 0 it is subtracted, down to 0
     * @return the sum, or null if there is no row
     */
    public Long add(String key, long delta) {
        return nodes.changed(key, node -> node.add(key, delta));
    }

    /**
     * Takes the place of a missing row together with its tags. A value that is stored with the version of the place is
     * refused, if somebody removed the place meanwhile.
     *
     * @param key any text
     * @param tags of the value
     * @param seconds after which the place is given up
     * @return the version of the place; 0 if somebody was there
     */
    public long reserve(String key, Collection<String> tags, int seconds) {
        Write place = Write.of(key, new byte[0], 0, seconds).tagged(tags).mode(Write.Mode.ADD);
        Long version = nodes.of(key).writer.set(place, true);
        if (version == null || version != 0) {
            return version == null ? 0 : version;
        }
        Item item = nodes.of(key).item(key, 0);
        // What was removed since then is no matter: nothing was computed yet. What was stored since then is read.
        return item != null && item.isReserved() ? item.cas() : 0;
    }

    // Rows by tag, by the beginning of their key, by a condition.

    /**
     * Removes all rows with one of these tags.
     *
     * @param tags the tags
     * @return how many; -1 if the removal waits for the daemon
     */
    public long removeTags(String... tags) {
        String text = "DELETE FROM " + definition.quoted() + " WHERE tags && ?";
        return tags.length == 0 ? 0 : nodes.removed(text, Tags.removed(Arrays.asList(tags)));
    }

    /**
     * Makes all rows with one of these tags stale: one caller of {@link Loading} computes the value again, the others
     * get the old one meanwhile.
     *
     * @param tags the tags
     * @return how many; -1 if that waits for the daemon
     */
    public long expireTags(String... tags) {
        String text = "UPDATE " + definition.quoted() + " SET _stale = TRUE WHERE tags && ?";
        return tags.length == 0 ? 0 : nodes.removed(text, Tags.removed(Arrays.asList(tags)));
    }

    /**
     * @param prefix what the keys begin with
     * @return how many rows were removed; -1 if the removal waits for the daemon
     */
    public long removePrefix(String prefix) {
        if (prefix.isEmpty()) {
            return clear();
        }
        String begin = Keys.text(prefix);
        String end = Keys.after(begin);
        String text = "DELETE FROM " + definition.quoted() + " WHERE key >= ?";
        return end == null ? nodes.removed(text, begin) : nodes.removed(text + " AND key < ?", begin, end);
    }

    /**
     * @param condition of SQL, such as {@code key LIKE ? AND _age > 60}
     * @param parameters of the condition
     * @return how many rows were removed; -1 if the removal waits for the daemon
     */
    public long removeWhere(String condition, Object... parameters) {
        return nodes.removed("DELETE FROM " + definition.quoted() + " WHERE " + condition, parameters);
    }

    /**
     * Empties the table, and no other.
     *
     * @return how many rows there were; -1 if the removal waits for the daemon
     */
    public long clear() {
        return nodes.removed("DELETE FROM " + definition.quoted());
    }

    /** Drops the table. */
    public void drop() {
        nodes.changed(null, () -> {
            for (int at = 0; at < nodes.count(); at++) {
                nodes.node(at).run(true, "DROP TABLE IF EXISTS " + definition.quoted());
            }
            return null;
        });
    }

    // All rows.

    /** @return how many rows there are; stale and reserved ones do not count */
    public long count() {
        long count = 0;
        for (int at = 0; at < nodes.count(); at++) {
            count += nodes.node(at).scan.count();
        }
        return count;
    }

    /**
     * @param tag a tag
     * @return all fresh rows that have it. There must not be many
     */
    public List<Row> tagged(String tag) {
        List<Row> found = new ArrayList<>();
        for (int at = 0; at < nodes.count(); at++) {
            found.addAll(nodes.node(at).scan.tagged(tag));
        }
        return found;
    }

    /** @return how many daemons share the table */
    public int daemons() {
        return nodes.count();
    }

    /**
     * @param daemon which one, from 0
     * @param after the key behind which the page begins; null for the first page
     * @return rows in the order of their keys; fewer than {@link #PAGE} at the end
     */
    public List<Row> page(int daemon, String after) {
        return nodes.node(daemon).scan.page(after);
    }

    /** Rows of a page. */
    public static final int PAGE = Limits.PAGE;
}
