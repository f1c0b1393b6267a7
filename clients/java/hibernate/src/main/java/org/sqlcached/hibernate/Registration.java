package org.sqlcached.hibernate;

import java.util.List;
import org.hibernate.boot.registry.selector.SimpleStrategyRegistrationImpl;
import org.hibernate.boot.registry.selector.StrategyRegistration;
import org.hibernate.boot.registry.selector.StrategyRegistrationProvider;
import org.hibernate.cache.spi.RegionFactory;

/** Lets {@code hibernate.cache.region.factory_class} be {@code sqlcached}. */
public final class Registration implements StrategyRegistrationProvider {
    /** Hibernate makes it. */
    public Registration() {
    }

    @Override
    @SuppressWarnings("rawtypes")
    public Iterable<StrategyRegistration> getStrategyRegistrations() {
        return List.of(new SimpleStrategyRegistrationImpl<>(RegionFactory.class, SqlcachedRegionFactory.class, "sqlcached"));
    }
}
