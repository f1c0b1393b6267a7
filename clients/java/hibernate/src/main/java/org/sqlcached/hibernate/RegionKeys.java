package org.sqlcached.hibernate;

import org.hibernate.cache.internal.DefaultCacheKeysFactory;
import org.hibernate.cache.internal.NaturalIdCacheKey;
import org.hibernate.cache.spi.CacheKeysFactory;
import org.hibernate.engine.spi.SessionFactoryImplementor;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.persister.collection.CollectionPersister;
import org.hibernate.persister.entity.EntityPersister;

/** Makes keys that SQL can show. */
final class RegionKeys implements CacheKeysFactory {
    @Override
    public Object createCollectionKey(
            Object id, CollectionPersister collection, SessionFactoryImplementor factory, String tenant) {
        Object key = DefaultCacheKeysFactory.staticCreateCollectionKey(id, collection, factory, null);
        return RegionKey.of(collection.getRole(), id, DefaultCacheKeysFactory.staticGetCollectionId(key), tenant);
    }

    @Override
    public Object createEntityKey(Object id, EntityPersister entity, SessionFactoryImplementor factory, String tenant) {
        Object key = DefaultCacheKeysFactory.staticCreateEntityKey(id, entity, factory, null);
        return RegionKey.of(entity.getRootEntityName(), id, DefaultCacheKeysFactory.staticGetEntityId(key), tenant);
    }

    @Override
    public Object createNaturalIdKey(Object values, EntityPersister entity, SharedSessionContractImplementor session) {
        NaturalIdCacheKey parts = NaturalIdCacheKey.from(values, entity, session);
        return RegionKey.of(entity.getRootEntityName() + "##NaturalId", values, parts.getNaturalIdValues(), parts.getTenantId());
    }

    @Override
    public Object getEntityId(Object key) {
        return ((RegionKey) key).id();
    }

    @Override
    public Object getCollectionId(Object key) {
        return ((RegionKey) key).id();
    }

    @Override
    public Object getNaturalIdValues(Object key) {
        return ((RegionKey) key).id();
    }
}
