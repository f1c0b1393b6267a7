package org.sqlcached.spring;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.springframework.cache.CacheManager;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** The caches of Spring at one daemon. Each is a table with the cache's name, made when it is asked for. */
public final class SqlcachedCacheManager implements CacheManager {
    private final Client client;
    private final Values values;
    private final Function<String, ? extends Map<String, ?>> options;
    private final Tagger tagger;
    private final Near near;
    private final Map<String, TaggedCache> caches = new ConcurrentHashMap<>();

    /**
     * @param client the daemon
     * @param values how values become bytes
     * @param options of each cache's table, such as {@code ttl}
     * @param tagger which tags values get
     * @param near how copies of each cache's values are kept in this JVM; null: none are
     */
    public SqlcachedCacheManager(
            Client client, Values values, Function<String, ? extends Map<String, ?>> options, Tagger tagger, Near near) {
        this.client = client;
        this.values = values;
        this.options = options;
        this.tagger = tagger;
        this.near = near;
    }

    @Override
    public TaggedCache getCache(String name) {
        return caches.computeIfAbsent(name, this::made);
    }

    private TaggedCache made(String name) {
        Table table = new Table(client, new Definition(Definition.nameOf(name), options.apply(name)));
        Loading rows = new Loading(table, values);
        if (near != null) {
            rows.near(near);
        }
        return new TaggedCache(name, rows, tagger);
    }

    @Override
    public Collection<String> getCacheNames() {
        return List.copyOf(caches.keySet());
    }

    /**
     * Removes all entries of a cache with one of these tags, for all JVMs.
     *
     * @param cache its name
     * @param tags the tags
     * @return how many; -1 if the removal waits for the daemon
     */
    public long evictTags(String cache, String... tags) {
        return getCache(cache).evictTags(tags);
    }

    /**
     * Removes entries of a cache by a condition of SQL, for all JVMs.
     *
     * @param cache its name
     * @param condition such as {@code key LIKE ? AND _age > 60}
     * @param parameters of the condition
     * @return how many; -1 if the removal waits for the daemon
     */
    public long evictWhere(String cache, String condition, Object... parameters) {
        return getCache(cache).evictWhere(condition, parameters);
    }
}
