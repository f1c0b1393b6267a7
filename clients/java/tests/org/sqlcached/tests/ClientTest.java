package org.sqlcached.tests;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.Serializable;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.MemcachedClient;
import org.junit.After;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Item;
import org.sqlcached.client.KeyText;
import org.sqlcached.client.Loading;
import org.sqlcached.client.RefusedException;
import org.sqlcached.client.Result;
import org.sqlcached.client.Row;
import org.sqlcached.client.StatementException;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;

/** The client: rows, tags, leases, values, statements. */
public class ClientTest {
    private static Daemon daemon;
    private Client client;
    private Table table;
    private Loading rows;

    /** A class of the application. */
    record Page(String title, int number) implements Serializable {
    }

    @BeforeClass
    public static void start() {
        daemon = new Daemon();
    }

    @AfterClass
    public static void stop() {
        daemon.close();
    }

    @Before
    public void open() {
        client = daemon.client();
        table = new Table(client, new Definition("page"));
        rows = new Loading(table, new Values("org.sqlcached.tests.**"));
        table.clear();
    }

    @After
    public void close() {
        client.close();
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
    public void classesMustBeAllowed() {
        Loading strict = new Loading(table, new Values());
        rows.set("page", new Page("t", 1), 60);
        rows.set("nested", new ArrayList<>(List.of(new Page("t", 1))), 60);
        for (String key : List.of("page", "nested")) {
            assertNull(strict.get(key));
            // It was removed, so that nobody tries again.
            assertNull(rows.get(key));
        }
        assertEquals(2, strict.broken());
        assertThrows(IllegalArgumentException.class, () -> new Values("!*"));
        assertThrows(IllegalArgumentException.class, () -> new Values("a.B;maxdepth=1"));
    }

    @Test
    public void whatDoesNotLoadIsRemovedAndCounted() {
        byte[] page = rows.values().dump(new Page("t", 1)).data();
        for (int length = 1; length < page.length; length++) {
            table.set(Write.of("cut", Arrays.copyOf(page, length), 1, 60));
            assertNull(rows.get("cut"));
            assertNull(table.get("cut"));
            assertEquals(length, rows.broken());
        }
        for (int flags : new int[] {0x4000, 0x4100, 0x4400, 0x7f00, 0x200 + 2, 0xa00}) {
            table.set(Write.of("odd", "no number at all".getBytes(), flags, 60));
            assertNull(rows.get("odd"));
            assertNull(table.get("odd"));
        }
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

    private <T> List<T> together(int threads, Callable<T> work) throws Exception {
        ExecutorService all = Executors.newFixedThreadPool(threads);
        try {
            CountDownLatch ready = new CountDownLatch(threads);
            List<Future<T>> futures = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                futures.add(all.submit(() -> {
                    ready.countDown();
                    ready.await();
                    return work.call();
                }));
            }
            List<T> found = new ArrayList<>();
            for (Future<T> each : futures) {
                found.add(each.get(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
            }
            return found;
        } finally {
            all.shutdownNow();
        }
    }

    @Test
    public void oneComputes() throws Exception {
        AtomicInteger count = new AtomicInteger();
        List<Object> found = together(10, () -> rows.getOrCompute("k", 60, List.of("t"), key -> "v" + count.incrementAndGet()));
        assertEquals(1, count.get());
        assertEquals(Set.of("v1"), Set.copyOf(found));
        assertEquals(1, table.removeTags("t"));
    }

    @Test
    public void aValueThatIsOutOfDateIsNotStored() {
        Object value = rows.getOrCompute("k", 60, List.of("t"), key -> {
            // Somebody changes the data while it is read.
            table.removeTags("t");
            return "old";
        });
        assertEquals("old", value);
        assertNull(rows.get("k"));
        assertEquals("new", rows.getOrCompute("k", 60, List.of("t"), key -> "new"));
        assertEquals("new", rows.get("k"));
    }

    @Test
    public void whoFailsLeavesThePlace() {
        assertThrows(IllegalStateException.class, () -> rows.getOrCompute("k", 60, List.of(), key -> {
            throw new IllegalStateException();
        }));
        assertNull(rows.getOrCompute("k", 60, List.of(), key -> null));
        assertEquals(0, client.sql("SELECT key FROM page").count());
        assertEquals("v", rows.getOrCompute("k", 60, List.of(), key -> "v"));
    }

    @Test
    public void staleValuesAreUsedWhileOneComputes() {
        rows.set("k", "old", 60, "t");
        assertEquals(1, table.expireTags("t"));
        assertNull(rows.get("k"));
        assertEquals(0, table.count());
        Object value = rows.getOrCompute("k", 60, List.of("t"), key -> {
            assertEquals("old", rows.getOrCompute("k", 60, List.of("t"), other -> "never"));
            return "new";
        });
        assertEquals("new", value);
        assertEquals("new", rows.get("k"));
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

    private static MemcachedClient spy(String... locations) throws Exception {
        List<InetSocketAddress> all = new ArrayList<>();
        for (String each : locations) {
            all.add(new InetSocketAddress("127.0.0.1", Integer.parseInt(each.split(":")[1])));
        }
        return new MemcachedClient(
                new ConnectionFactoryBuilder()
                        .setLocatorType(ConnectionFactoryBuilder.Locator.CONSISTENT)
                        .setHashAlg(DefaultHashAlgorithm.KETAMA_HASH)
                        .setOpTimeout(Daemon.PATIENCE)
                        .setDaemon(true)
                        .build(),
                all);
    }

    @Test
    public void spymemcachedOnTheSameRows() throws Exception {
        MemcachedClient spy = spy(daemon.location());
        try {
            table.count();
            List<Object> values = List.of(
                    "text", 1, 1L << 40, -5, -6L, true, false, new Date(77), (byte) 9, 1.5f, 2.5, List.of("a", "b"), "long ".repeat(9_000));
            for (Object value : values) {
                assertTrue(spy.set("page:k", 60, value).get());
                assertEquals(value, rows.get("k"));
            }
            for (Object value : List.of("text", "ä", List.of(1, 2), new Date(5))) {
                rows.set("k", value, 60);
                assertEquals(value, spy.get("page:k"));
            }
            rows.set("k", new byte[] {1, 2}, 60);
            assertArrayEquals(new byte[] {1, 2}, (byte[]) spy.get("page:k"));
        } finally {
            spy.shutdown();
        }
    }

    @Test
    public void severalDaemonsShareTheKeysAsSpymemcachedDoes() throws Exception {
        try (Daemon second = new Daemon(); Client other = second.client()) {
            MemcachedClient spy = spy(daemon.location(), second.location());
            try {
                Table both = new Table(List.of(client, other), new Definition("page"));
                Loading values = new Loading(both, new Values());
                both.clear();
                Set<String> keys = new LinkedHashSet<>();
                for (int i = 0; i < 500; i++) {
                    keys.add("key " + i);
                    keys.add("k" + i);
                    values.set("k" + i, "v" + i, 60, "t");
                    values.set("key " + i, "v" + i, 60, "t");
                    assertEquals("v" + i, spy.get("page:k" + i));
                }
                assertEquals(1_000, both.count());
                assertTrue(new Table(other, new Definition("page")).count() > 100);
                assertTrue(table.count() > 100);
                assertEquals(keys, both.getAll(keys).keySet());
                assertEquals(1_000, both.removeTags("t"));
            } finally {
                spy.shutdown();
            }
        }
    }

    @Test
    public void aBigCrowd() throws Exception {
        rows.set("n", 0L, 60);
        together(40, () -> {
            for (int i = 0; i < 50; i++) {
                assertNotNull(table.add("n", 1));
            }
            return null;
        });
        assertEquals(2_000L, rows.get("n"));
    }
}
