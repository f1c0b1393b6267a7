package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;
import org.springframework.cache.Cache;
import org.sqlcached.client.Client;
import org.sqlcached.client.Near;
import org.sqlcached.client.Values;
import org.sqlcached.spring.SqlcachedCacheManager;
import org.sqlcached.spring.TaggedCache;

/** What Spring says of a cache, which has no suite for it, and what becomes of one whose daemon is away. */
public class SpringCacheTest {
    private static Daemon daemon;
    private static Client client;
    private TaggedCache cache;

    @BeforeClass
    public static void start() {
        daemon = new Daemon();
        client = daemon.client();
    }

    @AfterClass
    public static void stop() {
        client.close();
        daemon.close();
    }

    @Before
    public void begin() {
        cache = manager(client).getCache("c");
        cache.clear();
    }

    private static SqlcachedCacheManager manager(Client client) {
        return manager(client, null);
    }

    private static SqlcachedCacheManager manager(Client client, Near near) {
        Values values = new Values("org.springframework.cache.support.NullValue");
        return new SqlcachedCacheManager(client, values, name -> Map.of(), (name, key, value) -> List.of("key:" + key), near);
    }

    /** What is closed says so: a miss would let the application compute everything. */
    @Test
    public void aManagerThatIsClosed() {
        Client own = daemon.client();
        Cache other = manager(own).getCache("c");
        other.put("k", "v");
        own.close();
        assertThrows(IllegalStateException.class, () -> other.get("k"));
        assertThrows(IllegalStateException.class, () -> other.put("k", "w"));
        assertThrows(IllegalStateException.class, () -> other.evict("k"));
        assertThrows(IllegalStateException.class, other::clear);
        assertEquals("v", cache.get("k", String.class));
    }

    /** Copies of one JVM follow the changes of another. */
    @Test
    public void copies() {
        try (Client own = daemon.client()) {
            TaggedCache near = manager(own, Near.entries(100)).getCache("c");
            cache.put("a", "old");
            FailureTest.await(() -> {
                long before = gets();
                near.get("a");
                return gets() == before;
            });
            assertEquals("old", near.get("a", () -> "computed"));
            cache.put("a", "new");
            FailureTest.await(() -> near.get("a").get().equals("new"));
            near.put("a", "own");
            assertEquals("own", near.get("a").get());
            cache.evictTags("key:a");
            FailureTest.await(() -> near.get("a") == null);
        }
    }

    private static long gets() {
        return Long.parseLong(client.stats().get("cmd_get"));
    }

    @Test
    public void valuesAreKept() {
        assertNull(cache.get("a"));
        cache.put("a", "b");
        assertEquals("b", cache.get("a").get());
        assertEquals("b", cache.get("a", String.class));
        assertThrows(IllegalStateException.class, () -> cache.get("a", Integer.class));
        cache.put(17, List.of(1, 2));
        assertEquals(List.of(1, 2), cache.get(17).get());
        assertEquals("c", cache.getName());
        assertEquals(2, cache.getNativeCache().table().count());
    }

    @Test
    public void nullIsAValue() {
        cache.put("a", null);
        assertNotNull(cache.get("a"));
        assertNull(cache.get("a").get());
        assertNull(cache.get("a", String.class));
        AtomicInteger calls = new AtomicInteger();
        for (int round = 0; round < 2; round++) {
            assertNull(cache.get("b", () -> {
                calls.incrementAndGet();
                return null;
            }));
        }
        assertEquals(1, calls.get());
    }

    @Test
    public void theFirstValueIsKeptIfAsked() {
        assertNull(cache.putIfAbsent("a", "first"));
        assertEquals("first", cache.putIfAbsent("a", "second").get());
        assertEquals("first", cache.get("a").get());
    }

    @Test
    public void removalsSayWhetherThereWasSomething() {
        assertFalse(cache.evictIfPresent("a"));
        cache.put("a", 1);
        assertTrue(cache.evictIfPresent("a"));
        cache.put("a", 1);
        cache.evict("a");
        assertNull(cache.get("a"));
        assertFalse(cache.invalidate());
        cache.put("a", 1);
        assertTrue(cache.invalidate());
        assertNull(cache.get("a"));
    }

    @Test
    public void tagsAndConditionsRemove() {
        cache.put("a", 1);
        cache.put("b", 2);
        cache.put("c", 3);
        assertEquals(1, cache.evictTags("key:a"));
        assertEquals(1, manager(client).evictWhere("c", "CAST(body AS TEXT)::int > ?", 2));
        assertNull(cache.get("a"));
        assertNotNull(cache.get("b"));
        assertNull(cache.get("c"));
    }

    @Test
    public void aLoaderThatThrowsStoresNothing() {
        IllegalStateException why = new IllegalStateException();
        Cache.ValueRetrievalException told = assertThrows(Cache.ValueRetrievalException.class, () -> cache.get("a", () -> {
            throw why;
        }));
        assertEquals(why, told.getCause());
        assertEquals("now", cache.get("a", () -> "now"));
    }

    @Test
    public void valuesComeLater() {
        assertNull(cache.retrieve("a").join());
        assertEquals("b", cache.retrieve("a", () -> CompletableFuture.completedFuture("b")).join());
        assertEquals("b", ((Cache.ValueWrapper) cache.retrieve("a").join()).get());
    }

    @Test
    public void nothingOldIsReadAfterTheDaemonWasAway() {
        try (Daemon other = new Daemon(); Client away = other.client()) {
            SqlcachedCacheManager caches = manager(away);
            TaggedCache pages = caches.getCache("pages");
            pages.put("a", "old");
            pages.put("b", "old");
            other.kill();
            assertNull(pages.get("a"));
            assertEquals("made", pages.get("a", () -> "made"));
            pages.put("b", "new");
            assertEquals(-1, caches.evictTags("pages", "key:a"));
            other.start();
            for (int round = 0; round < 20; round++) {
                assertNull(pages.get("a"));
                assertNull(pages.get("b"));
            }
        }
    }
}
