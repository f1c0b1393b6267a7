package org.sqlcached.hibernate;

import org.hibernate.cache.spi.CacheKeysFactory;
import org.hibernate.cache.spi.DomainDataRegion;
import org.hibernate.cache.spi.access.AccessType;
import org.hibernate.cache.spi.access.SoftLock;
import org.hibernate.cache.spi.support.AbstractEntityDataAccess;
import org.hibernate.engine.spi.SharedSessionContractImplementor;

/** Entities that transactions of several JVMs change: each change locks its row. */
final class EntityReadWrite extends AbstractEntityDataAccess {
    private final Store store;

    EntityReadWrite(DomainDataRegion region, CacheKeysFactory keys, Store store) {
        super(region, keys, store);
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
    public boolean insert(SharedSessionContractImplementor session, Object key, Object value, Object version) {
        return false;
    }

    @Override
    public boolean afterInsert(SharedSessionContractImplementor session, Object key, Object value, Object version) {
        return store.add(key, value);
    }

    @Override
    public boolean update(
            SharedSessionContractImplementor session, Object key, Object value, Object version, Object before) {
        return false;
    }

    @Override
    public boolean afterUpdate(
            SharedSessionContractImplementor session,
            Object key,
            Object value,
            Object version,
            Object before,
            SoftLock lock) {
        return store.replace(key, value, (Lock) lock);
    }
}
