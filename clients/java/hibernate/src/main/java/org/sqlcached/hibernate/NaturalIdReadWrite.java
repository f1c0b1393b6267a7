package org.sqlcached.hibernate;

import org.hibernate.cache.cfg.spi.NaturalIdDataCachingConfig;
import org.hibernate.cache.spi.CacheKeysFactory;
import org.hibernate.cache.spi.DomainDataRegion;
import org.hibernate.cache.spi.access.AccessType;
import org.hibernate.cache.spi.access.SoftLock;
import org.hibernate.cache.spi.support.AbstractNaturalIdDataAccess;
import org.hibernate.engine.spi.SharedSessionContractImplementor;

/** Which entities natural ids name, if transactions of several JVMs change that: each change locks its row. */
final class NaturalIdReadWrite extends AbstractNaturalIdDataAccess {
    private final Store store;

    NaturalIdReadWrite(DomainDataRegion region, CacheKeysFactory keys, Store store, NaturalIdDataCachingConfig config) {
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

    @Override
    public boolean insert(SharedSessionContractImplementor session, Object key, Object value) {
        return false;
    }

    @Override
    public boolean afterInsert(SharedSessionContractImplementor session, Object key, Object value) {
        return store.add(key, value);
    }

    @Override
    public boolean update(SharedSessionContractImplementor session, Object key, Object value) {
        return false;
    }

    @Override
    public boolean afterUpdate(SharedSessionContractImplementor session, Object key, Object value, SoftLock lock) {
        return store.replace(key, value, (Lock) lock);
    }
}
