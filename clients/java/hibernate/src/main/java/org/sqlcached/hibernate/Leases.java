package org.sqlcached.hibernate;

import java.util.LinkedHashMap;
import java.util.Map;
import org.hibernate.cache.spi.RegionFactory;
import org.hibernate.cache.spi.StandardCacheTransactionSynchronization;
import org.hibernate.engine.spi.SharedSessionContractImplementor;

/** The places of values that a session misses, and is going to load. A session is used by one thread at a time. */
final class Leases extends StandardCacheTransactionSynchronization {
    private final Map<String, Long> held = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
            return size() > Limits.LEASES;
        }
    };

    Leases(RegionFactory factory) {
        super(factory);
    }

    /** Those of a session; null if it belongs to another kind of cache. */
    static Leases of(SharedSessionContractImplementor session) {
        return session != null && session.getCacheTransactionSynchronization() instanceof Leases leases ? leases : null;
    }

    void hold(String place, long version) {
        held.put(place, version);
    }

    /** The version of the place; 0 if the session does not hold it. */
    long take(String place) {
        Long version = held.remove(place);
        return version == null ? 0 : version;
    }

    @Override
    public void transactionCompleted(boolean successful) {
        held.clear();
        super.transactionCompleted(successful);
    }
}
