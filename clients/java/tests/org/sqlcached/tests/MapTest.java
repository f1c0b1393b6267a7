package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;
import org.sqlcached.map.CachedMap;

/** The map: what Guava's suite does not ask. */
public class MapTest extends DaemonTest {
    private Client client;
    private CachedMap<String, Integer> map;

    @Before
    public void open() {
        client = daemon.client();
        map = CachedMap.of(client, "numbers");
        map.clear();
    }

    @After
    public void close() {
        client.close();
    }

    private <K> CachedMap<K, String> of(String table, KeyType<K> keys) {
        CachedMap<K, String> found =
                new CachedMap<>(new Loading(new Table(client, new Definition(table)), new Values()), keys, Write.FOREVER);
        found.clear();
        return found;
    }

    /** A key of each type comes back from the views as what it was. */
    @Test
    public void keysOfTypes() {
        Values values = new Values();
        CachedMap<Long, String> longs = of("longs", KeyType.of(Long.class, values));
        longs.put(-17L, "a");
        assertEquals("a", longs.get(-17L));
        assertNull(longs.get(-17));
        assertNull(longs.get("-17"));
        assertEquals(List.of(-17L), new ArrayList<>(longs.keySet()));
        client.sql("INSERT INTO longs (key, body) VALUES ('017', 'x'), ('text', 'y')");
        assertEquals(List.of(-17L), new ArrayList<>(longs.keySet()));
        CachedMap<UUID, String> ids = of("ids", KeyType.of(UUID.class, values));
        UUID id = UUID.fromString("00000000-0000-0001-0000-000000000002");
        ids.put(id, "b");
        assertEquals(Map.of(id, "b"), ids);
        CachedMap<Object, String> any = of("any", KeyType.any(Object.class, values));
        Map<Object, String> all = new HashMap<>();
        for (Object key : List.of("17", 17, 17L, (short) 17, 17.0, List.of(17), "\u0001i17", "", 'x', true)) {
            all.put(key, key.getClass().getName());
        }
        any.putAll(all);
        assertEquals(all, any);
        all.forEach((key, value) -> assertEquals(value, any.get(key)));
    }

    @Test
    public void rowsOfAPage() {
        Map<String, Integer> all = new HashMap<>();
        for (int i = 0; i < 950; i++) {
            all.put("k" + i, i);
        }
        map.putAll(all);
        assertEquals(950, map.size());
        assertEquals(all, map);
        assertEquals(all, map.getAll(all.keySet()));
        Iterator<Integer> each = map.values().iterator();
        while (each.hasNext()) {
            if (each.next() % 2 == 0) {
                each.remove();
            }
        }
        assertEquals(475, map.size());
        map.replaceAll((key, value) -> -value);
        assertEquals((Integer) (-7), map.get("k7"));
        map.entrySet().forEach(entry -> entry.setValue(entry.getValue() - 1));
        assertEquals((Integer) (-8), map.get("k7"));
    }

    @Test
    public void conditionsAndTags() {
        for (int i = 0; i < 20; i++) {
            map.set("page/" + i, i, "shop", "product:" + i % 4);
        }
        assertEquals(5, map.removeTags("product:1"));
        assertEquals(15, map.size());
        assertEquals(1, map.removeWhere("key = ?", "page/2"));
        assertEquals(14, map.removeWhere("key LIKE 'page/%' AND _age < ?", 1_000));
        assertTrue(map.isEmpty());
        assertEquals((Integer) 7, map.computeIfAbsent("x", List.of("t"), key -> 7));
        assertEquals(1, map.removeTags("t"));
    }

    @Test
    public void nulls() {
        assertThrows(NullPointerException.class, () -> map.get(null));
        assertThrows(NullPointerException.class, () -> map.put(null, 1));
        assertThrows(NullPointerException.class, () -> map.put("a", null));
        assertThrows(NullPointerException.class, () -> map.set("a", null));
        assertThrows(NullPointerException.class, () -> map.putAll(java.util.Collections.singletonMap("a", null)));
        assertThrows(NullPointerException.class, () -> map.containsKey(null));
        assertThrows(NullPointerException.class, () -> map.containsValue(null));
        assertThrows(NullPointerException.class, () -> map.getAll(java.util.Collections.singleton(null)));
        assertThrows(NullPointerException.class, () -> map.merge("a", null, Integer::sum));
        assertFalse(map.remove("a", null));
        assertTrue(map.isEmpty());
    }

    /** No change of many threads is lost. */
    @Test
    public void changesAreAtomic() throws Exception {
        ExecutorService all = Executors.newFixedThreadPool(6);
        try (Client other = daemon.client()) {
            CachedMap<String, Integer> same = CachedMap.of(other, "numbers");
            List<Future<?>> futures = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                CachedMap<String, Integer> mine = i % 2 == 0 ? map : same;
                futures.add(all.submit(() -> {
                    for (int n = 0; n < 50; n++) {
                        mine.merge("sum", 1, Integer::sum);
                        mine.compute("other", (key, old) -> old == null ? 1 : old + 1);
                    }
                }));
            }
            for (Future<?> each : futures) {
                each.get(Daemon.PATIENCE, TimeUnit.MILLISECONDS);
            }
        } finally {
            all.shutdownNow();
        }
        assertEquals((Integer) 300, map.get("sum"));
        assertEquals((Integer) 300, map.get("other"));
    }

    /** Random calls do to the map what they do to Java's own. */
    @Test
    public void asAMapOfJava() {
        long seed = System.getenv("SEED") == null ? System.nanoTime() : Long.parseLong(System.getenv("SEED"));
        System.out.println("asAMapOfJava: SEED=" + seed);
        Random random = new Random(seed);
        List<String> keys = ClientTest.keys();
        Map<String, Integer> model = new HashMap<>();
        for (int step = 0; step < 3_000; step++) {
            String key = keys.get(random.nextInt(keys.size()));
            int value = random.nextInt(4);
            int other = random.nextInt(4);
            int call = random.nextInt(12);
            Object expected = called(model, call, key, value, other);
            assertEquals("step " + step + ", call " + call, expected, called(map, call, key, value, other));
        }
        assertEquals(model, map);
        assertEquals(map, model);
        assertEquals(model.hashCode(), map.hashCode());
    }

    private static Object called(Map<String, Integer> map, int call, String key, int value, int other) {
        return switch (call) {
            case 0 -> map.put(key, value);
            case 1 -> map.remove(key);
            case 2 -> map.get(key);
            case 3 -> map.putIfAbsent(key, value);
            case 4 -> map.replace(key, value);
            case 5 -> map.replace(key, value, other);
            case 6 -> map.remove(key, value);
            case 7 -> map.compute(key, (same, old) -> old != null && old == value ? null : (Integer) other);
            case 8 -> map.computeIfAbsent(key, same -> value);
            case 9 -> map.computeIfPresent(key, (same, old) -> Objects.equals(old, value) ? null : (Integer) (old + 1));
            case 10 -> map.merge(key, value, (old, next) -> old + next > 4 ? null : (Integer) (old + next));
            default -> map.size();
        };
    }

    /** Keys beyond memcached's limit are rows as others; values beyond the daemon's are refused, and nothing old is read. */
    @Test
    public void keysAndValuesThatAreLong() {
        CachedMap<String, Object> map = CachedMap.of(client, "long");
        map.clear();
        String key = "k".repeat(2_000);
        map.put(key, "a");
        map.set(key + "x", "b", "tag");
        assertEquals(Map.of(key, "a", key + "x", "b"), map);
        assertEquals("ac", map.merge(key, "c", (old, more) -> old + more.toString()));
        assertEquals(1, map.removeTags("tag"));
        assertEquals("computed", map.computeIfAbsent(key + "y", each -> "computed"));
        assertEquals(2, map.size());
        for (String each : List.of(key, "short")) {
            map.set(each, "old");
            assertThrows(SqlcachedException.class, () -> map.set(each, new byte[1 << 26]));
            assertThrows(SqlcachedException.class, () -> map.put(each, new byte[1 << 26]));
            Object left = map.get(each);
            assertTrue(each.length() + ": " + left, left == null || each == key && left.equals("old"));
        }
        assertEquals("ok", map.compute("short", (same, old) -> "ok"));
    }
}
