package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.sqlcached.tests.FailureTest.await;

import java.net.URI;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import javax.cache.Cache;
import javax.cache.CacheException;
import javax.cache.CacheManager;
import javax.cache.Caching;
import javax.cache.configuration.MutableConfiguration;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Values;
import org.sqlcached.map.CachedMap;

/** Calls whose threads are interrupted while they wait for an answer. */
public class InterruptTest {
    private static Loading rows(Client client) {
        return new Loading(new Table(client, new Definition("page")), new Values());
    }

    /** Each call of the client, interrupted while it waits for an answer. */
    @Test
    public void interrupts() throws Exception {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon); Client client = new Client(Daemon.patient(proxy.location()))) {
            Loading rows = rows(client);
            Table table = rows.table();
            Map<String, Runnable> calls = new LinkedHashMap<>();
            calls.put("get", () -> table.get("a"));
            calls.put("getAll", () -> table.getAll(List.of("a", "b")));
            calls.put("sql", () -> client.sql("SELECT 1"));
            calls.put("count", table::count);
            calls.put("page", () -> table.page(0, null));
            calls.put("stats", client::stats);
            calls.put("set", () -> rows.set("a", "new", 600));
            calls.put("touch", () -> table.touch("a", 600));
            calls.put("add", () -> table.add("n", 1));
            calls.put("item", () -> table.item("a", 5));
            calls.put("tagged", () -> table.tagged("t"));
            calls.put("long key", () -> table.get("k".repeat(2_000)));
            calls.put("reserve", () -> table.reserve("new", List.of(), 5));
            calls.put("release", () -> table.release("a", 1));
            calls.put("setAll", () -> table.setAll(List.of(
                    rows.write("a", 1, 600, List.of()), rows.write("b", 2, 600, List.of()))));
            calls.put("tags", () -> rows.set("a", "new", 600, "t"));
            calls.put("version", () -> table.set(rows.write("a", 1, 600, List.of()).ifVersion(1)));
            calls.put("keeping", () -> table.replaceKeeping("a", new byte[1], 0, 1));
            calls.put("delete of a version", () -> table.delete("a", 1));
            calls.put("drop", table::drop);
            for (Map.Entry<String, Runnable> each : calls.entrySet()) {
                rows.set("a", "old", 600);
                rows.set("n", 1L, 600);
                proxy.hold();
                AtomicReference<Throwable> seen = new AtomicReference<>();
                AtomicBoolean flag = new AtomicBoolean();
                Thread thread = new Thread(() -> {
                    seen.set(assertThrows(UnavailableException.class, each.getValue()::run));
                    flag.set(Thread.currentThread().isInterrupted());
                });
                thread.start();
                assertTrue(each.getKey(), proxy.held.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
                thread.interrupt();
                thread.join(Daemon.PATIENCE);
                assertTrue(each.getKey() + ": " + seen.get(), seen.get() != null && seen.get().getMessage().contains("interrupted"));
                assertTrue("the thread stays interrupted", flag.get());
                proxy.letGo();
                // Nobody reads the rest of an answer.
                assertEquals(each.getKey(), List.of(Map.of("n", 5L)), client.sql("SELECT 5 AS n").rows());
                // What a write may have left is removed before anything is read.
                await(() -> table.isReadable("a"));
            }
        }
    }

    /** A removal whose thread is interrupted waits for the next call, and nothing is read before. */
    @Test
    public void interruptedRemovals() throws Exception {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon); Client client = new Client(Daemon.patient(proxy.location()))) {
            Loading rows = rows(client);
            Table table = rows.table();
            Map<String, Supplier<Object>> calls = new LinkedHashMap<>();
            calls.put("delete", () -> table.delete("a") ? 1L : -1L);
            calls.put("deleteAll", () -> table.deleteAll(List.of("a")) ? 1L : -1L);
            calls.put("removeTags", () -> table.removeTags("t"));
            calls.put("expireTags", () -> table.expireTags("t"));
            calls.put("removePrefix", () -> table.removePrefix("a"));
            calls.put("removeWhere", () -> table.removeWhere("key = 'a'"));
            calls.put("clear", table::clear);
            for (Map.Entry<String, Supplier<Object>> each : calls.entrySet()) {
                rows.set("a", "old", 600, "t");
                proxy.hold();
                AtomicReference<Object> seen = new AtomicReference<>();
                AtomicBoolean flag = new AtomicBoolean();
                Thread thread = new Thread(() -> {
                    seen.set(each.getValue().get());
                    flag.set(Thread.currentThread().isInterrupted());
                });
                thread.start();
                assertTrue(each.getKey(), proxy.held.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
                thread.interrupt();
                thread.join(Daemon.PATIENCE);
                assertEquals(each.getKey(), -1L, seen.get());
                assertTrue("the thread stays interrupted", flag.get());
                proxy.letGo();
                await(() -> table.isReadable("a"));
                assertNull(each.getKey(), rows.get("a"));
            }
        }
    }

    /** Without an answer the value is computed by whoever is interrupted, too. */
    @Test
    public void anInterruptedComputation() throws Exception {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon); Client client = new Client(Daemon.patient(proxy.location()))) {
            Loading rows = rows(client);
            rows.get("a");
            proxy.hold();
            AtomicReference<Object> seen = new AtomicReference<>();
            Thread thread = new Thread(() -> seen.set(rows.getOrCompute("a", 600, List.of(), key -> "computed")));
            thread.start();
            assertTrue(proxy.held.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
            thread.interrupt();
            thread.join(Daemon.PATIENCE);
            assertEquals("computed", seen.get());
            proxy.letGo();
            assertEquals("again", rows.getOrCompute("a", 600, List.of(), key -> "again"));
        }
    }

    /** Calls of a map and of a cache of JCache, which are made of several requests: each ends, and nothing half done is read. */
    @Test
    public void interruptedMapsAndCaches() throws Exception {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon); Client client = new Client(Daemon.patient(proxy.location()))) {
            CachedMap<String, String> map = CachedMap.of(client, "m");
            Map<String, Runnable> calls = new LinkedHashMap<>();
            calls.put("put", () -> map.put("a", "new"));
            calls.put("putIfAbsent", () -> map.putIfAbsent("a", "new"));
            calls.put("putAll", () -> map.putAll(Map.of("a", "new", "b", "new")));
            calls.put("remove", () -> map.remove("a"));
            calls.put("replace", () -> map.replace("a", "old", "new"));
            calls.put("compute", () -> map.compute("a", (key, value) -> value + "new"));
            calls.put("merge", () -> map.merge("a", "new", String::concat));
            calls.put("iterator", () -> map.keySet().iterator().hasNext());
            calls.put("size", map::size);
            calls.put("get", () -> assertNull(map.get("a")));
            calls.put("getAll", () -> assertEquals(Map.of(), map.getAll(List.of("a", "b"))));
            calls.put("clear", map::clear);
            Properties properties = new Properties();
            properties.setProperty("sqlcached.timeout", "60");
            CacheManager manager = Caching.getCachingProvider("org.sqlcached.jcache.SqlcachedProvider")
                    .getCacheManager(URI.create("sqlcached://" + proxy.location()), getClass().getClassLoader(), properties);
            Cache<String, String> cache = manager.createCache("c", new MutableConfiguration<>());
            calls.put("JCache's put", () -> cache.put("a", "new"));
            calls.put("JCache's getAndPut", () -> cache.getAndPut("a", "new"));
            calls.put("JCache's putIfAbsent", () -> cache.putIfAbsent("a", "new"));
            calls.put("JCache's remove", () -> cache.remove("a"));
            calls.put("JCache's replace", () -> cache.replace("a", "new"));
            calls.put("JCache's invoke", () -> cache.invoke("a", (entry, given) -> {
                entry.setValue("new");
                return null;
            }));
            calls.put("JCache's get", () -> assertNull(cache.get("a")));
            calls.put("JCache's getAll", () -> assertEquals(Map.of(), cache.getAll(Set.of("a", "b"))));
            calls.put("JCache's containsKey", () -> cache.containsKey("a"));
            calls.put("JCache's removeAll", cache::removeAll);
            for (Map.Entry<String, Runnable> each : calls.entrySet()) {
                interrupted(proxy, each, () -> {
                    map.set("a", "old");
                    cache.put("a", "old");
                });
                await(() -> map.rows().table().isReadable("a") && cache.unwrap(Loading.class).table().isReadable("a"));
                for (String value : new String[] {map.get("a"), cache.get("a")}) {
                    assertTrue(each.getKey() + ": " + value, value == null || List.of("old", "new", "oldnew").contains(value));
                }
            }
            manager.close();
        }
    }

    /** Interrupts a call that waits for its answer. It may fail or say that there is nothing, but it ends. */
    private static void interrupted(Proxy proxy, Map.Entry<String, Runnable> call, Runnable before) throws InterruptedException {
        before.run();
        proxy.hold();
        AtomicBoolean flag = new AtomicBoolean();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                call.getValue().run();
            } catch (SqlcachedException | CacheException expected) {
                // A write says that it is not known to be done.
            } catch (Throwable why) {
                failure.set(why);
            }
            flag.set(Thread.currentThread().isInterrupted());
        });
        thread.start();
        assertTrue(call.getKey(), proxy.held.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
        thread.interrupt();
        thread.join(Daemon.PATIENCE);
        assertFalse(call.getKey() + " does not end", thread.isAlive());
        assertNull(call.getKey(), failure.get());
        assertTrue(call.getKey() + ": the thread stays interrupted", flag.get());
        proxy.letGo();
    }
}
