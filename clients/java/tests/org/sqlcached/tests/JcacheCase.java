package org.sqlcached.tests;

import java.net.URI;
import java.util.List;
import java.util.Properties;
import javax.cache.Cache;
import javax.cache.CacheManager;
import javax.cache.Caching;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.spi.CachingProvider;
import org.junit.After;
import org.junit.Before;
import org.sqlcached.client.Client;

/** A daemon, and a manager of JCache that speaks to it, for each test. */
abstract class JcacheCase extends DaemonTest {
    CachingProvider provider;
    CacheManager manager;

    @Before
    public void open() {
        provider = Caching.getCachingProvider("org.sqlcached.jcache.SqlcachedProvider");
        manager = manager(getClass().getClassLoader(), "");
    }

    @After
    public void close() {
        for (String name : manager.isClosed() ? List.<String>of() : manager.getCacheNames()) {
            manager.destroyCache(name);
        }
        provider.close();
    }

    CacheManager manager(ClassLoader loader, String classes) {
        Properties properties = new Properties();
        properties.setProperty("sqlcached.classes", classes);
        return provider.getCacheManager(URI.create("sqlcached://" + daemon.location()), loader, properties);
    }

    <K, V> Cache<K, V> cache(String name, Class<K> keys, Class<V> values) {
        return manager.createCache(name, new MutableConfiguration<K, V>().setTypes(keys, values));
    }

    /** Speaks to the daemon by SQL. */
    Client sql() {
        return daemon.client();
    }
}
