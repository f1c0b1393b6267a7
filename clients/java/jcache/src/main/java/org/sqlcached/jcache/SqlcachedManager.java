package org.sqlcached.jcache;

import java.lang.ref.WeakReference;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeMap;
import javax.cache.Cache;
import javax.cache.CacheException;
import javax.cache.CacheManager;
import javax.cache.configuration.CompleteConfiguration;
import javax.cache.configuration.Configuration;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.spi.CachingProvider;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** The caches of one class loader at one daemon. Each is a table with the cache's name. */
public final class SqlcachedManager implements CacheManager {
    private final SqlcachedProvider provider;
    private final URI uri;
    private final WeakReference<ClassLoader> loader;
    private final Properties properties;
    private final Settings settings;
    private final Client client;
    private final Map<String, SqlcachedCache<?, ?>> caches = new TreeMap<>();
    private volatile boolean closed;

    SqlcachedManager(SqlcachedProvider provider, URI uri, ClassLoader loader, Properties properties) {
        this.provider = provider;
        this.uri = uri;
        this.loader = new WeakReference<>(loader);
        this.properties = new Properties();
        this.properties.putAll(properties);
        this.settings = new Settings(uri, this.properties);
        this.client = settings.client();
    }

    private void check() {
        if (closed) {
            throw new IllegalStateException("the manager of caches is closed");
        }
    }

    @Override
    public CachingProvider getCachingProvider() {
        return provider;
    }

    @Override
    public URI getURI() {
        return uri;
    }

    @Override
    public ClassLoader getClassLoader() {
        return loader.get();
    }

    @Override
    public Properties getProperties() {
        return properties;
    }

    @Override
    public synchronized <K, V, C extends Configuration<K, V>> Cache<K, V> createCache(String name, C told) {
        check();
        Objects.requireNonNull(name, "the name");
        Objects.requireNonNull(told, "the configuration");
        if (!told.isStoreByValue()) {
            throw new UnsupportedOperationException("values are stored by value");
        }
        if (caches.containsKey(name)) {
            throw new CacheException("the cache " + name + " is there already");
        }
        SqlcachedCache<K, V> cache = new SqlcachedCache<>(this, name, copy(told), rows(name), keys(told));
        Store.asked(() -> {
            cache.hear(settings.near(), settings.hears());
            return null;
        });
        caches.put(name, cache);
        cache.open();
        return cache;
    }

    private static <K, V> MutableConfiguration<K, V> copy(Configuration<K, V> told) {
        if (told instanceof CompleteConfiguration<K, V> complete) {
            return new MutableConfiguration<>(complete);
        }
        return new MutableConfiguration<K, V>().setTypes(told.getKeyType(), told.getValueType());
    }

    private Loading rows(String name) {
        Table table = new Table(client, new Definition(Definition.nameOf(name)));
        return new Loading(table, new Values(settings.classes(), getClassLoader()));
    }

    private <K> KeyType<K> keys(Configuration<K, ?> told) {
        return KeyType.of(told.getKeyType(), new Values(settings.classes(), getClassLoader()));
    }

    private synchronized SqlcachedCache<?, ?> cache(String name) {
        check();
        return caches.get(Objects.requireNonNull(name, "the name"));
    }

    @Override
    @SuppressWarnings("unchecked")
    public <K, V> Cache<K, V> getCache(String name, Class<K> keyType, Class<V> valueType) {
        Objects.requireNonNull(keyType, "the type of keys");
        Objects.requireNonNull(valueType, "the type of values");
        SqlcachedCache<?, ?> cache = cache(name);
        if (cache == null) {
            return null;
        }
        Configuration<?, ?> told = cache.getConfiguration(Configuration.class);
        if (told.getKeyType() != keyType || told.getValueType() != valueType) {
            throw new ClassCastException("the cache " + name + " has keys of " + told.getKeyType().getName()
                    + " and values of " + told.getValueType().getName());
        }
        return (Cache<K, V>) cache;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <K, V> Cache<K, V> getCache(String name) {
        return (Cache<K, V>) cache(name);
    }

    @Override
    public synchronized Iterable<String> getCacheNames() {
        check();
        return Collections.unmodifiableList(new ArrayList<>(caches.keySet()));
    }

    @Override
    public void destroyCache(String name) {
        SqlcachedCache<?, ?> cache = cache(name);
        if (cache == null) {
            return;
        }
        cache.close();
        try {
            cache.rows().table().drop();
        } catch (SqlcachedException why) {
            throw new CacheException("the table of the cache " + name + " could not be dropped", why);
        }
    }

    @Override
    public void enableManagement(String name, boolean enabled) {
        SqlcachedCache<?, ?> cache = cache(name);
        if (cache != null) {
            cache.setManagement(enabled);
        }
    }

    @Override
    public void enableStatistics(String name, boolean enabled) {
        SqlcachedCache<?, ?> cache = cache(name);
        if (cache != null) {
            cache.setStatistics(enabled);
        }
    }

    synchronized void forget(String name) {
        caches.remove(name);
    }

    @Override
    public void close() {
        List<SqlcachedCache<?, ?>> all;
        synchronized (this) {
            if (closed) {
                return;
            }
            all = new ArrayList<>(caches.values());
        }
        provider.forget(this);
        all.forEach(SqlcachedCache::close);
        closed = true;
        client.close();
    }

    @Override
    public boolean isClosed() {
        return closed;
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        if (type.isInstance(this)) {
            return type.cast(this);
        }
        return type.cast(SqlcachedCache.unwrapped(type, client));
    }
}
