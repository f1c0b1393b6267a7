package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNotSame;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.cache.Cache;
import javax.cache.CacheException;
import javax.cache.CacheManager;
import javax.cache.configuration.FactoryBuilder;
import javax.cache.configuration.MutableCacheEntryListenerConfiguration;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.event.CacheEntryCreatedListener;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Loading;
import org.sqlcached.jcache.SqlcachedCache;

/** The provider of JCache: what its own suite does not ask. */
public class JcacheTest extends JcacheCase {
    @Test
    public void aCacheIsATable() {
        Cache<Long, String> cache = cache("pages", Long.class, String.class);
        cache.put(17L, "hello");
        try (Client client = sql()) {
            assertEquals(
                    List.of(Map.of("key", "17", "body", "hello")),
                    client.sql("SELECT key, CAST(body AS TEXT) AS body FROM pages").rows());
            client.sql("DELETE FROM pages WHERE key = ?", "17");
        }
        assertNull(cache.get(17L));
        cache.put(1L, "a");
        cache.put(2L, "b");
        assertEquals(1, cache.unwrap(SqlcachedCache.class).removeWhere("key = ?", "1"));
        assertEquals("b", cache.get(2L));
        assertEquals(2, cache.unwrap(Loading.class).table().definition().statements().size());
    }

    @Test
    public void namesThatAreNoTables() {
        for (String name : List.of("a b", "org.example.Page", "x".repeat(200), "\"", "ä", "1")) {
            Cache<String, String> cache = cache(name, String.class, String.class);
            cache.put("k", name);
            assertEquals(name, cache.get("k"));
        }
    }

    @Test
    public void nullsAndTypes() {
        Cache<Long, String> cache = cache("c", Long.class, String.class);
        assertThrows(NullPointerException.class, () -> cache.get(null));
        assertThrows(NullPointerException.class, () -> cache.put(null, "v"));
        assertThrows(NullPointerException.class, () -> cache.put(1L, null));
        assertThrows(NullPointerException.class, () -> cache.getAll(null));
        assertThrows(NullPointerException.class, () -> cache.invoke(1L, null));
        @SuppressWarnings({"unchecked", "rawtypes"})
        Cache<Object, Object> raw = (Cache) cache;
        assertThrows(ClassCastException.class, () -> raw.put("text", "v"));
        assertThrows(ClassCastException.class, () -> raw.put(1L, 2));
        assertThrows(ClassCastException.class, () -> manager.getCache("c", String.class, String.class));
    }

    @Test
    public void whatIsClosed() {
        Cache<String, String> cache = cache("c", String.class, String.class);
        cache.put("a", "b");
        cache.close();
        assertThrows(IllegalStateException.class, () -> cache.get("a"));
        assertThrows(IllegalStateException.class, cache::iterator);
        // Its rows stay, for other processes and the next cache of its name.
        assertEquals("b", cache("c", String.class, String.class).get("a"));
        manager.close();
        assertTrue(manager.isClosed());
        assertThrows(IllegalStateException.class, () -> manager.getCache("c"));
        CacheManager next = manager(getClass().getClassLoader(), "");
        assertNotSame(manager, next);
        manager = next;
        // The table is there until it is destroyed.
        assertEquals("b", cache("c", String.class, String.class).get("a"));
    }

    /** Each loader has its own manager, and gets objects of its own class. */
    @Test
    public void twoClassLoaders() throws Exception {
        URL[] places = {ClientTest.class.getProtectionDomain().getCodeSource().getLocation()};
        List<Object> values = new ArrayList<>();
        try (URLClassLoader one = new URLClassLoader(places, null); URLClassLoader two = new URLClassLoader(places, null)) {
            for (URLClassLoader loader : List.of(one, two)) {
                CacheManager own = manager(loader, "org.sqlcached.tests.**");
                assertSame(own, manager(loader, ""));
                Cache<Object, Object> cache = own.createCache("loaders", new MutableConfiguration<>());
                cache.put("k", new ClientTest.Page("t", 1));
                values.add(cache.get("k"));
                assertEquals(ClientTest.Page.class.getName(), cache.get("k").getClass().getName());
                assertSame(loader, cache.get("k").getClass().getClassLoader());
            }
            assertNotSame(values.get(0).getClass(), values.get(1).getClass());
            // The daemon has the table once. The application's own manager allows no such class.
            Cache<Object, Object> strict = manager.createCache("loaders", new MutableConfiguration<>());
            assertNull(strict.get("k"));
            assertEquals(1, strict.unwrap(Loading.class).broken());
        }
    }

    @Test
    public void keysAndValuesThatAreLong() {
        Cache<String, byte[]> cache = cache("c", String.class, byte[].class);
        String key = "k".repeat(2_000);
        cache.put(key, new byte[] {1});
        assertEquals(1, cache.get(key).length);
        assertTrue(cache.containsKey(key));
        assertTrue(cache.putIfAbsent(key + "x", new byte[2]));
        assertEquals(1, cache.getAndReplace(key, new byte[3]).length);
        assertThrows(CacheException.class, () -> cache.put(key, new byte[4 << 20]));
        assertThrows(CacheException.class, () -> cache.put("short", new byte[1 << 20]));
        assertTrue(cache.remove(key + "x"));
        Cache<Object, Object> any = manager.createCache("any", new MutableConfiguration<>());
        assertThrows(CacheException.class, () -> any.put("k", new Object()));
        assertThrows(CacheException.class, () -> any.put(new Object(), "v"));
    }

    @Test
    public void processorsAreAtomic() throws Exception {
        Cache<String, Integer> cache = cache("c", String.class, Integer.class);
        ExecutorService all = Executors.newFixedThreadPool(4);
        try {
            List<Future<?>> futures = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                futures.add(all.submit(() -> {
                    for (int n = 0; n < 50; n++) {
                        cache.invoke("sum", (entry, arguments) -> {
                            entry.setValue(entry.exists() ? entry.getValue() + 1 : 1);
                            return null;
                        });
                    }
                }));
            }
            for (Future<?> each : futures) {
                each.get(Daemon.PATIENCE, TimeUnit.MILLISECONDS);
            }
        } finally {
            all.shutdownNow();
        }
        assertEquals((Integer) 200, cache.get("sum"));
    }

    /** A listener of this test. */
    public static final class Heard implements CacheEntryCreatedListener<String, String> {
        static final AtomicInteger COUNT = new AtomicInteger();

        @Override
        public void onCreated(Iterable<javax.cache.event.CacheEntryEvent<? extends String, ? extends String>> events) {
            events.forEach(each -> COUNT.incrementAndGet());
        }
    }

    @Test
    public void listenersComeAndGo() {
        Cache<String, String> cache = cache("c", String.class, String.class);
        var told = new MutableCacheEntryListenerConfiguration<String, String>(
                FactoryBuilder.factoryOf(Heard.class), null, false, true);
        cache.registerCacheEntryListener(told);
        assertThrows(IllegalArgumentException.class, () -> cache.registerCacheEntryListener(told));
        int before = Heard.COUNT.get();
        cache.put("a", "b");
        cache.putAll(Map.of("a", "c", "d", "e"));
        assertEquals(before + 2, Heard.COUNT.get());
        cache.deregisterCacheEntryListener(told);
        cache.put("x", "y");
        assertEquals(before + 2, Heard.COUNT.get());
    }

    @Test
    public void aDaemonThatGoesAway() {
        try (Daemon other = new Daemon()) {
            CacheManager away =
                    provider.getCacheManager(URI.create("sqlcached://" + other.location()), null, new Properties());
            Cache<String, String> cache = away.createCache("c", new MutableConfiguration<>());
            cache.put("a", "b");
            other.kill();
            assertNull(cache.get("a"));
            assertEquals(Map.of(), cache.getAll(Set.of("a", "c")));
            CacheException why = assertThrows(CacheException.class, () -> cache.put("a", "c"));
            assertNotNull(why.getMessage());
            assertThrows(CacheException.class, () -> cache.iterator().hasNext());
            other.start();
            FailureTest.await(() -> {
                try {
                    cache.put("x", "y");
                    return "y".equals(cache.get("x"));
                } catch (CacheException still) {
                    return false;
                }
            });
            // The write that failed has left nothing.
            assertNull(cache.get("a"));
            away.close();
        }
    }
}
