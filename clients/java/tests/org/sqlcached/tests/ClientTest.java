package org.sqlcached.tests;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.Serializable;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Item;
import org.sqlcached.client.KeyText;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Options;
import org.sqlcached.client.RefusedException;
import org.sqlcached.client.Result;
import org.sqlcached.client.Row;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.StatementException;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;

/** The client: rows, tags, leases, values, statements. */
public class ClientTest extends PageTest {
    /** A class of the application. */
    record Page(String title, int number) implements Serializable {
    }

    /** Keys of every kind: with blanks, of control characters, of half a pair of surrogates, long ones. */
    static List<String> keys() {
        return List.of(
                "", "a", "a b", "ä", "😀", "\0", "\u001b", "\u001b0041", "\ud800", "\udc00x", "x\ud83d", "\r\n", "a".repeat(245),
                "a".repeat(246), "k".repeat(2_000), "ä".repeat(1_000), " ", "%", "'", "\"", "\\", ",", "{}", "\u007f");
    }

    @Test
    public void everyKeyIsItsOwn() {
        for (String key : keys()) {
            rows.set(key, "value of " + key.length() + key.hashCode(), 60);
        }
        for (String key : keys()) {
            assertEquals("value of " + key.length() + key.hashCode(), rows.get(key));
        }
        assertEquals(keys().size(), table.count());
        Map<String, Item> all = table.getAll(keys());
        assertEquals(Set.copyOf(keys()), all.keySet());
        Set<String> seen = new LinkedHashSet<>();
        table.page(0, null).forEach(row -> seen.add(row.key()));
        assertEquals(Set.copyOf(keys()), seen);
        for (String key : keys()) {
            assertTrue(key, table.touch(key, 30));
            assertTrue(key, table.delete(key));
            assertFalse(key, table.delete(key));
        }
        assertEquals(0, table.count());
    }

    @Test
    public void valuesComeBackAsTheyWere() throws Exception {
        List<Object> values = List.of(
                "text", "", "ä😀", "\0", "\ud800", 1, -1L, Long.MIN_VALUE, 1.5, Double.NaN, 2.5f, true, (short) 3, (byte) 4, 'c',
                new BigDecimal("1.10"), Instant.EPOCH, new Date(7), List.of(1, "b"), Map.of("a", List.of(1)), new Page("t", 3),
                new ArrayList<>(Arrays.asList(1, null)));
        for (Object value : values) {
            for (String key : List.of("short", "long".repeat(500))) {
                rows.set(key, value, Write.FOREVER);
                assertEquals(value, rows.get(key));
                assertEquals(value.getClass(), rows.get(key).getClass());
                assertEquals(value, rows.value(key, table.page(0, null).stream()
                        .filter(row -> row.key().equals(key)).map(Row::item).findAny().orElseThrow()));
            }
        }
        rows.set("bytes", new byte[] {0, -1, 5}, Write.FOREVER);
        assertArrayEquals(new byte[] {0, -1, 5}, (byte[]) rows.get("bytes"));
        assertEquals(0, rows.broken());
    }

    @Test
    public void textAndNumbersAreLegibleInSql() {
        rows.set("a", "hello", 60);
        rows.set("b", 17L, 60);
        Result found = client.sql("SELECT key, CAST(body AS TEXT) AS body FROM page WHERE key IN (?, ?) ORDER BY key", "a", "b");
        assertEquals(List.of(Map.of("key", "a", "body", "hello"), Map.of("key", "b", "body", "17")), found.rows());
    }

    @Test
    public void tagsLeaveWithTheirRows() {
        rows.set("a", 1, 60, "product:17", "shop");
        rows.set("b", 2, 60, "shop");
        rows.set("c", 3, 60, "with blank", "with,comma", "\0");
        rows.set("d", 4, 60);
        assertEquals(1, table.removeTags("product:17"));
        assertEquals(1, table.removeTags("with,comma"));
        assertEquals(0, table.removeTags("with"));
        assertEquals(1, table.removeTags("shop", "nothing"));
        assertEquals(0, table.removeTags());
        assertEquals(4, rows.get("d"));
    }

    @Test
    public void prefixesAndConditions() {
        for (String key : List.of("a", "aa", "ab", "b", "a\uffff", "a😀")) {
            rows.set(key, key, 60);
        }
        assertEquals(2, table.removeWhere("key IN (?, ?)", "aa", "b"));
        assertEquals(4, table.removePrefix("a"));
        assertEquals(0, table.count());
        assertThrows(StatementException.class, () -> table.removeWhere("nothing = ?", 1));
    }

    @Test
    public void conditionsOfWrites() {
        Write row = rows.write("k", "one", 60, List.of());
        assertFalse(table.set(row.mode(Write.Mode.REPLACE)));
        assertTrue(table.set(row.mode(Write.Mode.ADD)));
        assertFalse(table.set(row.mode(Write.Mode.ADD)));
        long cas = table.get("k").cas();
        Write two = rows.write("k", "two", 60, List.of());
        assertFalse(table.set(two.ifVersion(cas + 1)));
        assertTrue(table.set(two.ifVersion(cas)));
        assertFalse(table.set(two.ifVersion(cas)));
        assertFalse(table.delete("k", cas));
        assertTrue(table.delete("k", table.get("k").cas()));
        // The same by statements.
        String key = "k".repeat(500);
        Write far = rows.write(key, "one", 60, List.of("t"));
        assertTrue(table.set(far.mode(Write.Mode.ADD)));
        assertFalse(table.set(far.mode(Write.Mode.ADD)));
        assertFalse(table.set(far.ifVersion(1)));
        assertTrue(table.set(far.ifVersion(table.get(key).cas())));
        assertTrue(table.set(far.mode(Write.Mode.REPLACE)));
        assertTrue(table.delete(key, table.get(key).cas()));
    }

    @Test
    public void numbers() {
        assertNull(table.add("n", 1));
        rows.set("n", 10L, 60);
        assertEquals((Long) 15L, table.add("n", 5));
        assertEquals((Long) 12L, table.add("n", -3));
        assertEquals((Long) 0L, table.add("n", -100));
        assertEquals(0L, rows.get("n"));
        rows.set("t", "text", 60);
        assertThrows(RefusedException.class, () -> table.add("t", 1));
    }

    @Test
    public void manyAtOnce() {
        List<Write> all = new ArrayList<>();
        Map<String, String> expected = new HashMap<>();
        for (int i = 0; i < 1_234; i++) {
            expected.put("key " + i, "v" + i);
            all.add(rows.write("key " + i, "v" + i, 60, i % 2 == 0 ? List.of("even") : List.of()));
        }
        all.add(rows.write("x".repeat(999), "far", 60, List.of()));
        expected.put("x".repeat(999), "far");
        table.setAll(all);
        Map<String, Object> found = new HashMap<>();
        table.getAll(expected.keySet()).forEach((key, item) -> found.put(key, rows.value(key, item)));
        assertEquals(expected, found);
        int count = 0;
        String after = null;
        for (List<Row> page; !(page = table.page(0, after)).isEmpty(); after = page.get(page.size() - 1).key()) {
            count += page.size();
        }
        assertEquals(expected.size(), count);
        assertEquals(617, table.removeTags("even"));
        assertTrue(table.deleteAll(expected.keySet()));
        assertEquals(0, table.count());
    }

    @Test
    public void valuesAboveTheLimitAreRefused() {
        rows.set("k", "old", 60);
        byte[] large = new byte[1 << 20];
        assertThrows(RefusedException.class, () -> rows.set("k", large, 60));
        // What was there is out of date.
        assertNull(rows.get("k"));
        List<Write> all = List.of(
                rows.write("a", 1, 60, List.of()), rows.write("k", large, 60, List.of()), rows.write("b", 2, 60, List.of()));
        assertThrows(RefusedException.class, () -> table.setAll(all));
        assertEquals(1, rows.get("a"));
        assertEquals(2, rows.get("b"));
        rows.set("k", new byte[900_000], 60);
        assertEquals(900_000, ((byte[]) rows.get("k")).length);
    }

    @Test
    public void nullIsNothing() {
        assertThrows(NullPointerException.class, () -> rows.set(null, "v", 60));
        assertThrows(NullPointerException.class, () -> rows.get(null));
        assertThrows(NullPointerException.class, () -> table.delete(null));
    }

    @Test
    public void statements() {
        assertEquals(
                List.of(Map.of("a", 1L, "b", "x\"\\\u0001ä", "c", 1.5)),
                client.sql("SELECT ? AS a, ? AS b, ? AS c", 1, "x\"\\\u0001ä", 1.5).rows());
        assertNull(client.sql("SELECT NULL AS a").rows().get(0).get("a"));
        assertArrayEquals(
                new byte[] {0, 1}, (byte[]) client.sql("SELECT CAST(? AS BYTEA) AS a", new byte[] {0, 1}).rows().get(0).get("a"));
        StatementException why = assertThrows(StatementException.class, () -> client.sql("SELEKT"));
        assertEquals("42601", why.sqlState());
        assertTrue(client.stats().containsKey("sqlcached_version"));
    }

    @Test
    public void aTableThatWasDroppedIsMadeAgain() {
        rows.set("a", 1, 60, "t");
        client.sql("DROP TABLE page");
        assertEquals(0, table.removeTags("t"));
        rows.set("a", 2, 60, "t");
        assertEquals(1, table.removeTags("t"));
    }

    @Test
    public void aTableOfSomebodyElseIsRefused() {
        client.sql("CREATE TABLE IF NOT EXISTS other (id INT PRIMARY KEY)");
        Table other = new Table(client, new Definition("other"));
        assertThrows(RefusedException.class, () -> other.get("a"));
        assertThrows(IllegalArgumentException.class, () -> new Definition("a b"));
        assertThrows(IllegalArgumentException.class, () -> new Definition("a", Map.of("A)", 1)));
    }

    @Test
    public void keysAsSqlShowsThem() {
        assertEquals("17", KeyText.of(17));
        assertEquals("kettle", KeyText.of("kettle"));
        assertEquals("(17,EUR)", KeyText.of(new Object[] {17, "EUR"}));
        assertNotEquals(KeyText.of(new Object[] {"a,b", "c"}), KeyText.of(new Object[] {"a", "b,c"}));
        assertNotEquals(KeyText.of(new Object[] {"a\\", "b"}), KeyText.of(new Object[] {"a\\,b"}));
        assertEquals(KeyText.of(List.of(1, 2)), KeyText.of(List.of(1, 2)));
        assertNotEquals(KeyText.of(List.of(1, 2)), KeyText.of(List.of(2, 1)));
    }

    @Test
    public void aTablesOwnDeadline() {
        Loading limited = new Loading(new Table(client, new Definition("limited", Map.of("ttl", "1 h"))), new Values());
        // Long keys and unusual tags go by statements.
        for (String key : List.of("k", "k".repeat(300))) {
            limited.set(key, 1, Write.OF_TABLE);
            limited.getOrCompute(key + "c", Write.OF_TABLE, List.of("a,b"), each -> 2);
            limited.set(key + "f", 1, Write.FOREVER);
        }
        String text = "SELECT count(*) AS n FROM limited WHERE _ttl BETWEEN 3000 AND 3600";
        assertEquals(4L, client.sql(text).rows().get(0).get("n"));
        // memcached's protocol ends in 2038.
        String ever = "SELECT count(*) AS n FROM limited WHERE _ttl IS NULL OR _ttl > 300000000";
        assertEquals(2L, client.sql(ever).rows().get(0).get("n"));
    }

    @Test
    public void deadlines() {
        rows.set("past", 1, 0);
        assertNull(rows.get("past"));
        rows.set("far", 1, 100L * 365 * 86_400);
        rows.set("month", 1, 40L * 86_400);
        rows.set("minute", 1, 60);
        rows.set("never", 1, Write.FOREVER);
        Map<Object, Object> left = new HashMap<>();
        client.sql("SELECT key, _ttl FROM page").rows().forEach(row -> left.put(row.get("key"), row.get("_ttl")));
        assertNull(left.get("never"));
        assertNull(left.get("far"));
        assertTrue((Long) left.get("minute") > 0 && (Long) left.get("minute") <= 60);
        assertTrue(Math.abs((Long) left.get("month") - 40L * 86_400) < 60);
    }

    @Test
    public void theUnixSocket() {
        try (Client near = new Client(daemon.socket())) {
            rows.set("k", "hello", 60);
            assertEquals("hello", new Loading(new Table(near, new Definition("page")), new Values()).get("k"));
        }
    }

    /** Shared memory is read by a later Java; this one says so, and so does a location on another machine. */
    @Test
    public void sharedMemoryNeedsALaterJava() {
        Options options = Options.at(daemon.socket());
        if (Runtime.version().feature() < 22) {
            SqlcachedException why =
                    assertThrows(SqlcachedException.class, () -> new Client(options.sharedMemory(Options.LIBRARY)));
            assertTrue(why.getMessage(), why.getMessage().contains("needs Java 22"));
        }
        assertThrows(IllegalArgumentException.class, () -> Options.at(daemon.location()).sharedMemory(Options.LIBRARY));
        Map<String, String> named = Map.of("location", "/run/sock", "shared_memory", "true");
        assertEquals(Options.LIBRARY, Options.named(named::get).sharedMemory());
        assertNull(Options.named(Map.of("shared_memory", "false")::get).sharedMemory());
        assertEquals(0, client.sharedReads());
    }
}
