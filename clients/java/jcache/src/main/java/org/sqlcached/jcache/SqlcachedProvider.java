package org.sqlcached.jcache;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.WeakHashMap;
import javax.cache.CacheManager;
import javax.cache.configuration.OptionalFeature;
import javax.cache.spi.CachingProvider;

/** JCache's way to sqlcached: managers by class loader and URI, such as {@code sqlcached://127.0.0.1:11211}. */
public final class SqlcachedProvider implements CachingProvider {
    private final Map<ClassLoader, Map<URI, SqlcachedManager>> managers = new WeakHashMap<>();

    /** For the service loader. */
    public SqlcachedProvider() {
    }

    @Override
    public synchronized CacheManager getCacheManager(URI uri, ClassLoader loader, Properties properties) {
        URI place = uri == null ? getDefaultURI() : uri;
        ClassLoader from = loader == null ? getDefaultClassLoader() : loader;
        Properties told = properties == null ? getDefaultProperties() : properties;
        return managers.computeIfAbsent(from, key -> new HashMap<>())
                .computeIfAbsent(place, key -> new SqlcachedManager(this, place, from, told));
    }

    @Override
    public CacheManager getCacheManager(URI uri, ClassLoader loader) {
        return getCacheManager(uri, loader, null);
    }

    @Override
    public CacheManager getCacheManager() {
        return getCacheManager(null, null, null);
    }

    @Override
    public ClassLoader getDefaultClassLoader() {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        return loader == null ? getClass().getClassLoader() : loader;
    }

    @Override
    public URI getDefaultURI() {
        return Settings.defaultUri();
    }

    @Override
    public Properties getDefaultProperties() {
        return new Properties();
    }

    @Override
    public void close() {
        close(managers());
    }

    @Override
    public void close(ClassLoader loader) {
        close(managers(loader == null ? getDefaultClassLoader() : loader, null));
    }

    @Override
    public void close(URI uri, ClassLoader loader) {
        close(managers(loader == null ? getDefaultClassLoader() : loader, uri == null ? getDefaultURI() : uri));
    }

    private static void close(List<SqlcachedManager> all) {
        all.forEach(SqlcachedManager::close);
    }

    private synchronized List<SqlcachedManager> managers() {
        List<SqlcachedManager> all = new ArrayList<>();
        managers.values().forEach(each -> all.addAll(each.values()));
        return all;
    }

    private synchronized List<SqlcachedManager> managers(ClassLoader loader, URI uri) {
        List<SqlcachedManager> found = new ArrayList<>(managers.getOrDefault(loader, Map.of()).values());
        found.removeIf(each -> uri != null && !each.getURI().equals(uri));
        return found;
    }

    /** A manager is closed; the next one with its URI is new. */
    synchronized void forget(SqlcachedManager manager) {
        Map<URI, SqlcachedManager> same = managers.get(manager.getClassLoader());
        if (same != null) {
            same.remove(manager.getURI(), manager);
        }
    }

    @Override
    public boolean isSupported(OptionalFeature feature) {
        return false;
    }
}
