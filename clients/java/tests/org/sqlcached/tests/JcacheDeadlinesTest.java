package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.cache.Cache;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.expiry.CreatedExpiryPolicy;
import javax.cache.expiry.Duration;
import javax.cache.expiry.TouchedExpiryPolicy;
import org.junit.Test;
import org.sqlcached.client.Client;

/** When values of JCache expire, also where clocks disagree. */
public class JcacheDeadlinesTest extends JcacheCase {
    @Test
    public void deadlinesThatStay() {
        for (Duration duration : List.of(new Duration(TimeUnit.SECONDS, 20), new Duration(TimeUnit.HOURS, 1))) {
            Cache<String, String> cache = manager.createCache("c", new MutableConfiguration<String, String>()
                    .setTypes(String.class, String.class)
                    .setExpiryPolicyFactory(CreatedExpiryPolicy.factoryOf(duration)));
            cache.put("k", "a");
            long before = ttl();
            cache.put("k", "b");
            assertEquals("b", cache.get("k"));
            assertTrue(ttl() <= before && ttl() > 0);
            assertTrue(cache.replace("k", "b", "c"));
            assertEquals("c", cache.get("k"));
            assertTrue(ttl() <= before && ttl() > 0);
            manager.destroyCache("c");
        }
    }

    private long ttl() {
        try (Client client = sql()) {
            return (Long) client.sql("SELECT _ttl FROM c WHERE key = ?", "k").rows().get(0).get("_ttl");
        }
    }

    /**
     * A JVM whose clock is wrong, or jumped, writes deadlines of any kind beside the value. It is read or a miss, never an
     * error. The daemon's own clock ends it half a minute after the last write at the latest.
     */
    @Test
    public void deadlinesOfOtherClocks() {
        Cache<String, String> cache = manager.createCache("c", new MutableConfiguration<String, String>()
                .setTypes(String.class, String.class)
                .setExpiryPolicyFactory(CreatedExpiryPolicy.factoryOf(new Duration(TimeUnit.SECONDS, 20))));
        int read = 0;
        try (Client client = sql()) {
            for (int step = 0; step < 64; step++) {
                cache.put("k", "a");
                long flags = (Long) client.sql("SELECT _flags FROM c WHERE key = 'k'").rows().get(0).get("_flags");
                long jumped = (flags & 0xffff) | (long) (step * 1_024) << 16;
                client.sql("UPDATE c SET _flags = ? WHERE key = 'k'", jumped);
                String value = cache.get("k");
                assertTrue(value, value == null || value.equals("a"));
                read += value == null ? 0 : 1;
                // An update keeps the deadline.
                cache.put("k", "b");
                assertTrue(value, ttl() <= 32);
                // Another value has a deadline of this clock again.
                cache.remove("k");
                cache.put("k", "c");
                assertEquals("c", cache.get("k"));
                cache.remove("k");
            }
        }
        assertTrue(read + " of 64 are read", read > 16 && read < 64);
    }

    @Test
    public void aReadMovesTheDeadline() {
        Cache<String, String> cache = manager.createCache("c", new MutableConfiguration<String, String>()
                .setTypes(String.class, String.class)
                .setExpiryPolicyFactory(TouchedExpiryPolicy.factoryOf(Duration.ONE_HOUR)));
        cache.put("k", "a");
        try (Client client = sql()) {
            client.sql("UPDATE c SET _ttl = 100");
        }
        assertEquals("a", cache.get("k"));
        assertTrue(ttl() > 3_000);
    }
}
