package org.sqlcached.hibernate;

import org.hibernate.cache.cfg.spi.CollectionDataCachingConfig;
import org.hibernate.cache.cfg.spi.DomainDataRegionBuildingContext;
import org.hibernate.cache.cfg.spi.DomainDataRegionConfig;
import org.hibernate.cache.cfg.spi.EntityDataCachingConfig;
import org.hibernate.cache.cfg.spi.NaturalIdDataCachingConfig;
import org.hibernate.cache.spi.CacheKeysFactory;
import org.hibernate.cache.spi.RegionFactory;
import org.hibernate.cache.spi.access.AccessType;
import org.hibernate.cache.spi.access.CollectionDataAccess;
import org.hibernate.cache.spi.access.EntityDataAccess;
import org.hibernate.cache.spi.access.NaturalIdDataAccess;
import org.hibernate.cache.spi.support.DomainDataRegionTemplate;

/** A region of entities, collections and natural ids. Hibernate's own locks of READ_WRITE are those of one JVM. */
final class DomainRegion extends DomainDataRegionTemplate {
    DomainRegion(
            DomainDataRegionConfig config,
            RegionFactory factory,
            Store store,
            CacheKeysFactory keys,
            DomainDataRegionBuildingContext context) {
        super(config, factory, store, keys, context);
    }

    private Store store() {
        return (Store) getCacheStorageAccess();
    }

    @Override
    protected EntityDataAccess generateReadWriteEntityAccess(EntityDataCachingConfig config) {
        return new EntityReadWrite(this, getEffectiveKeysFactory(), store());
    }

    @Override
    protected NaturalIdDataAccess generateReadWriteNaturalIdAccess(NaturalIdDataCachingConfig config) {
        return new NaturalIdReadWrite(this, getEffectiveKeysFactory(), store(), config);
    }

    @Override
    public CollectionDataAccess generateCollectionAccess(CollectionDataCachingConfig config) {
        return config.getAccessType() == AccessType.READ_WRITE
                ? new CollectionReadWrite(this, getEffectiveKeysFactory(), store(), config)
                : super.generateCollectionAccess(config);
    }
}
