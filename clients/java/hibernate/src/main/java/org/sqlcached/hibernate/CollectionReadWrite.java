package org.sqlcached.hibernate;

import org.hibernate.cache.cfg.spi.CollectionDataCachingConfig;
import org.hibernate.cache.spi.CacheKeysFactory;
import org.hibernate.cache.spi.DomainDataRegion;
import org.hibernate.cache.spi.access.AccessType;
import org.hibernate.cache.spi.access.SoftLock;
import org.hibernate.cache.spi.support.AbstractCollectionDataAccess;
import org.hibernate.engine.spi.SharedSessionContractImplementor;

/** Collections that transactions of several JVMs change: each change locks its row. */
final class CollectionReadWrite extends AbstractCollectionDataAccess {
    private final Store store;

    CollectionReadWrite(DomainDataRegion region, CacheKeysFactory keys, Store store, CollectionDataCachingConfig config) {
        super(region, keys, store, config);
        this.store = store;
    }

    @Override
    public AccessType getAccessType() {
        return AccessType.READ_WRITE;
    }

    @Override
    public boolean putFromLoad(SharedSessionContractImplementor session, Object key, Object value, Object version) {
        return store.fill(key, value, session);
    }

    @Override
    public SoftLock lockItem(SharedSessionContractImplementor session, Object key, Object version) {
        return store.lock(key);
    }

    @Override
    public void unlockItem(SharedSessionContractImplementor session, Object key, SoftLock lock) {
        store.unlock(key, (Lock) lock);
    }

    /** The lock removed it, and stays until the transaction is over. */
    @Override
    public void remove(SharedSessionContractImplementor session, Object key) {
    }
}
