package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.sqlcached.tests.FailureTest.await;

import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.cache.Cache;
import javax.cache.CacheManager;
import javax.cache.Caching;
import javax.cache.configuration.MutableCacheEntryListenerConfiguration;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.event.CacheEntryCreatedListener;
import javax.cache.event.CacheEntryEvent;
import javax.cache.event.CacheEntryExpiredListener;
import javax.cache.event.CacheEntryRemovedListener;
import javax.cache.event.CacheEntryUpdatedListener;
import javax.cache.spi.CachingProvider;
import org.junit.After;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.jcache.AllChangedListener;

/** Listeners of JCache hear what other clients of the daemon change, and copies are dropped by it. */
public class JcacheEventsTest {
    private static Daemon daemon;
    private static Psql psql;
    private CachingProvider provider;
    private URLClassLoader elsewhere;
    private CacheManager here;
    private CacheManager there;
    private final Heard heard = new Heard();

    /** What a listener hears, one after another. */
    private static final class Heard
            implements CacheEntryCreatedListener<Long, String>,
                    CacheEntryUpdatedListener<Long, String>,
                    CacheEntryRemovedListener<Long, String>,
                    CacheEntryExpiredListener<Long, String>,
                    AllChangedListener {
        private final transient BlockingQueue<String> events = new LinkedBlockingQueue<>();

        private void add(Iterable<CacheEntryEvent<? extends Long, ? extends String>> all) {
            all.forEach(each -> {
                String old = each.isOldValueAvailable() ? " was " + each.getOldValue() : "";
                events.add(each.getEventType() + " " + each.getKey() + " " + each.getValue() + old);
            });
        }

        @Override
        public void onCreated(Iterable<CacheEntryEvent<? extends Long, ? extends String>> all) {
            add(all);
        }

        @Override
        public void onUpdated(Iterable<CacheEntryEvent<? extends Long, ? extends String>> all) {
            add(all);
        }

        @Override
        public void onRemoved(Iterable<CacheEntryEvent<? extends Long, ? extends String>> all) {
            add(all);
        }

        @Override
        public void onExpired(Iterable<CacheEntryEvent<? extends Long, ? extends String>> all) {
            add(all);
        }

        @Override
        public void onAllMayHaveChanged(Cache<?, ?> cache) {
            events.add("ALL of " + cache.getName());
        }

        String next() throws InterruptedException {
            return String.valueOf(events.poll(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
        }
    }

    @BeforeClass
    public static void start() {
        daemon = new Daemon();
        psql = new Psql(daemon);
    }

    @AfterClass
    public static void stop() {
        psql.close();
        daemon.close();
    }

    @Before
    public void open() {
        provider = Caching.getCachingProvider("org.sqlcached.jcache.SqlcachedProvider");
        elsewhere = new URLClassLoader(new URL[0], getClass().getClassLoader());
        here = manager(getClass().getClassLoader());
        there = manager(elsewhere);
    }

    @After
    public void close() throws Exception {
        provider.close();
        elsewhere.close();
    }

    private CacheManager manager(ClassLoader loader) {
        Properties properties = new Properties();
        properties.putAll(Map.of("sqlcached.events", "true", "sqlcached.near", "1000"));
        return provider.getCacheManager(URI.create("sqlcached://" + daemon.location()), loader, properties);
    }

    private Cache<Long, String> cache(CacheManager manager, String name) {
        return manager.createCache(name, new MutableConfiguration<Long, String>().setTypes(Long.class, String.class));
    }

    private void listen(Cache<Long, String> cache) throws InterruptedException {
        cache.registerCacheEntryListener(
                new MutableCacheEntryListenerConfiguration<>(() -> heard, null, true, true));
        String all = "ALL of " + cache.getName();
        if (!all.equals(heard.events.poll(2, TimeUnit.SECONDS))) {
            // It was heard before there was a listener.
            psql.run("TRUNCATE " + cache.getName());
            assertEquals(all, heard.next());
        }
    }

    @Test
    public void listenersHearOthersAndThemselvesOnce() throws Exception {
        Cache<Long, String> own = cache(here, "heard");
        Cache<Long, String> others = cache(there, "heard");
        listen(own);
        own.put(1L, "a");
        assertEquals("CREATED 1 a", heard.next());
        own.put(1L, "b");
        assertEquals("UPDATED 1 b was a", heard.next());
        own.invoke(1L, (entry, given) -> {
            entry.setValue(entry.getValue() + "c");
            return null;
        });
        assertEquals("UPDATED 1 bc was b", heard.next());
        own.remove(1L);
        assertEquals("REMOVED 1 bc was bc", heard.next());
        // A row that is new is not announced. What this JVM did before is not told a second time.
        others.put(2L, "x");
        others.put(2L, "y");
        assertEquals("UPDATED 2 y", heard.next());
        others.remove(2L);
        assertEquals("REMOVED 2 null", heard.next());
        own.put(3L, "mine");
        assertEquals("CREATED 3 mine", heard.next());
        psql.run("UPDATE heard SET body = 'theirs' WHERE key = '3'");
        assertEquals("UPDATED 3 theirs", heard.next());
        psql.run("UPDATE heard SET _ttl = 0 WHERE key = '3'");
        assertTrue(heard.next().endsWith(" 3 null"));
        psql.run("TRUNCATE heard");
        assertEquals("ALL of heard", heard.next());
        assertEquals(0, heard.events.size());
    }

    /** An announcement's reading that a change of this process overtook told of the row of before, as if it were new. */
    @Test
    public void ownChangesAreToldOnceBesideTheirAnnouncements() throws Exception {
        Cache<Long, String> own = cache(here, "swift");
        listen(own);
        for (int n = 0; n < 2_000; n++) {
            own.put(1L, "a" + n);
            assertEquals("CREATED 1 a" + n, heard.next());
            own.put(1L, "b" + n);
            assertEquals("UPDATED 1 b" + n + " was a" + n, heard.next());
            own.remove(1L);
            assertEquals("REMOVED 1 b" + n + " was b" + n, heard.next());
        }
    }

    @Test
    public void copiesAreDropped() throws Exception {
        Cache<Long, String> own = cache(here, "dropped");
        Cache<Long, String> others = cache(there, "dropped");
        try (Client client = daemon.client()) {
            own.put(1L, "a");
            await(() -> {
                long before = gets(client);
                own.get(1L);
                return gets(client) == before;
            });
            long before = gets(client);
            for (int n = 0; n < 100; n++) {
                assertEquals("a", own.get(1L));
                assertEquals(Map.of(1L, "a"), own.getAll(java.util.Set.of(1L)));
            }
            assertEquals(before, gets(client));
            others.put(1L, "b");
            await(() -> own.get(1L).equals("b"));
            psql.run("DELETE FROM dropped");
            await(() -> own.get(1L) == null);
            own.put(1L, "c");
            assertEquals("c", own.get(1L));
            own.clear();
            assertNull(own.get(1L));
        }
    }

    private static long gets(Client client) {
        return Long.parseLong(client.stats().get("cmd_get"));
    }
}
