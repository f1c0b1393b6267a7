package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.cache.Cache;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.integration.CacheLoader;
import javax.cache.integration.CacheLoaderException;
import org.junit.Test;

/** What loaders of JCache bring, and when they are closed. */
public class JcacheLoadsTest extends JcacheCase {
    /** A loader that invalidates what it loads: what it read before is not stored. */
    @Test
    public void aLoadThatIsOutOfDate() {
        AtomicInteger count = new AtomicInteger();
        Cache<String, String> cache = manager.createCache("c", new MutableConfiguration<String, String>()
                .setTypes(String.class, String.class)
                .setReadThrough(true)
                .setCacheLoaderFactory(() -> new CacheLoader<String, String>() {
                    @Override
                    public String load(String key) {
                        if (count.incrementAndGet() == 1) {
                            manager.getCache("c", String.class, String.class).remove(key);
                        }
                        if (key.equals("bad")) {
                            throw new IllegalStateException();
                        }
                        return "v" + count.get();
                    }

                    @Override
                    public Map<String, String> loadAll(Iterable<? extends String> keys) {
                        Map<String, String> found = new HashMap<>();
                        keys.forEach(key -> found.put(key, load(key)));
                        return found;
                    }
                }));
        assertEquals("v1", cache.get("k"));
        assertFalse(cache.containsKey("k"));
        assertEquals("v2", cache.get("k"));
        assertEquals("v2", cache.get("k"));
        assertEquals("v2", cache.getAll(Set.of("k", "l")).get("k"));
        assertTrue(cache.containsKey("l"));
        assertThrows(CacheLoaderException.class, () -> cache.get("bad"));
        assertFalse(cache.containsKey("bad"));
    }

    /** A loader that waits until the test lets it go on, and notes if it is closed meanwhile. */
    private static final class Slow implements CacheLoader<String, String>, AutoCloseable {
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        volatile boolean isLoading;
        volatile boolean closedWithin;

        @Override
        public String load(String key) {
            isLoading = true;
            begun.countDown();
            try {
                assertTrue(goOn.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
            } catch (InterruptedException why) {
                throw new CacheLoaderException(why);
            } finally {
                isLoading = false;
            }
            return "v";
        }

        @Override
        public Map<String, String> loadAll(Iterable<? extends String> keys) {
            Map<String, String> found = new HashMap<>();
            keys.forEach(key -> found.put(key, load(key)));
            return found;
        }

        @Override
        public void close() {
            closedWithin |= isLoading;
        }
    }

    @Test
    public void aLoaderIsNotClosedWhileItLoads() throws Exception {
        Slow loader = new Slow();
        Cache<String, String> cache = manager.createCache(
                "c",
                new MutableConfiguration<String, String>()
                        .setTypes(String.class, String.class)
                        .setCacheLoaderFactory(() -> loader));
        cache.loadAll(Set.of("a"), true, null);
        assertTrue(loader.begun.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
        Thread closer = new Thread(cache::close);
        closer.start();
        while (closer.getState() != Thread.State.TIMED_WAITING && closer.isAlive()) {
            Thread.onSpinWait();
        }
        loader.goOn.countDown();
        closer.join(Daemon.PATIENCE);
        assertFalse(closer.isAlive());
        assertFalse(loader.closedWithin);
    }
}
