package org.sqlcached.hibernate;

import java.util.HashMap;
import java.util.Map;
import org.hibernate.boot.spi.SessionFactoryOptions;
import org.hibernate.cache.cfg.spi.DomainDataRegionBuildingContext;
import org.hibernate.cache.cfg.spi.DomainDataRegionConfig;
import org.hibernate.cache.spi.CacheKeysFactory;
import org.hibernate.cache.spi.CacheTransactionSynchronization;
import org.hibernate.cache.spi.DomainDataRegion;
import org.hibernate.cache.spi.support.RegionFactoryTemplate;
import org.hibernate.cache.spi.support.StorageAccess;
import org.hibernate.engine.spi.SessionFactoryImplementor;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.Write;

/**
 * Hibernate's second-level cache in sqlcached, for {@code hibernate.cache.region.factory_class}. Each region is a table.
 *
 * <p>A value is stored only by the session that missed it, and only if nobody changed or removed it since then: not by
 * this JVM, nor by another, nor by a statement in the database.
 */
public final class SqlcachedRegionFactory extends RegionFactoryTemplate {
    private static final long serialVersionUID = 1L;

    /** What says that a table of the database has not changed must not leave: a missing one would say so, too. */
    private static final Map<String, Object> KEPT = Map.of("min_memory", "1 MB", "flush", false);

    private final transient CacheKeysFactory keys = new RegionKeys();
    private transient Settings settings;
    private transient Client client;

    /** Hibernate makes it, and starts it with the settings. */
    public SqlcachedRegionFactory() {
    }

    @Override
    protected void prepareForUse(SessionFactoryOptions options, Map<String, Object> values) {
        settings = new Settings(values);
        client = new Client(settings.options());
    }

    @Override
    protected void releaseFromUse() {
        client.close();
    }

    @Override
    public CacheTransactionSynchronization createTransactionContext(SharedSessionContractImplementor session) {
        return new Leases(this);
    }

    private Loading rows(String region, Map<String, ?> own) {
        String name = qualify(region);
        Map<String, Object> options = new HashMap<>(own);
        options.putAll(settings.table(region));
        return new Loading(new Table(client, new Definition(Definition.nameOf(name), options)), settings.values());
    }

    @Override
    public DomainDataRegion buildDomainDataRegion(
            DomainDataRegionConfig config, DomainDataRegionBuildingContext context) {
        verifyStarted();
        Store store = new Store(rows(config.getRegionName(), Map.of()), this);
        return new DomainRegion(config, this, store, keys, context);
    }

    @Override
    protected StorageAccess createQueryResultsRegionStorageAccess(String region, SessionFactoryImplementor sessions) {
        return new Plain(rows(region, Map.of()), QueryText::of, Write.OF_TABLE, null);
    }

    /** As long as it is not known when a table changed, it is taken for changed. */
    @Override
    protected StorageAccess createTimestampsRegionStorageAccess(String region, SessionFactoryImplementor sessions) {
        return new Plain(rows(region, KEPT), Object::toString, Write.FOREVER, Long.MAX_VALUE);
    }
}
