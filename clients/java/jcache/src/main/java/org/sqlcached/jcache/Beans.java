package org.sqlcached.jcache;

import java.lang.management.ManagementFactory;
import javax.cache.CacheException;
import javax.cache.configuration.CompleteConfiguration;
import javax.cache.management.CacheMXBean;
import javax.cache.management.CacheStatisticsMXBean;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;

/** The management beans of a cache. */
final class Beans {
    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final ObjectName statistics;
    private final ObjectName configuration;

    Beans(SqlcachedCache<?, ?> cache) {
        statistics = name(cache, "CacheStatistics");
        configuration = name(cache, "CacheConfiguration");
    }

    private static ObjectName name(SqlcachedCache<?, ?> cache, String type) {
        String manager = safe(cache.getCacheManager().getURI().toString());
        try {
            return new ObjectName("javax.cache:type=" + type + ",CacheManager=" + manager + ",Cache=" + safe(cache.getName()));
        } catch (JMException why) {
            throw new CacheException(why);
        }
    }

    /** As the specification's own implementation does it: these characters end a part of a name. */
    private static String safe(String name) {
        return name.replaceAll("[,:=\n\"*?]", ".");
    }

    void setStatistics(boolean on, Statistics bean) {
        set(on, statistics, bean, CacheStatisticsMXBean.class);
    }

    void setConfiguration(boolean on, CompleteConfiguration<?, ?> told) {
        set(on, configuration, new Told(told), CacheMXBean.class);
    }

    private synchronized <T> void set(boolean on, ObjectName name, T bean, Class<T> type) {
        try {
            if (on == server.isRegistered(name)) {
                return;
            }
            if (on) {
                server.registerMBean(new StandardMBean(bean, type, true), name);
            } else {
                server.unregisterMBean(name);
            }
        } catch (JMException why) {
            throw new CacheException(why);
        }
    }

    /** The configuration as a bean. */
    private static final class Told implements CacheMXBean {
        private final CompleteConfiguration<?, ?> told;

        Told(CompleteConfiguration<?, ?> told) {
            this.told = told;
        }

        @Override
        public String getKeyType() {
            return told.getKeyType().getName();
        }

        @Override
        public String getValueType() {
            return told.getValueType().getName();
        }

        @Override
        public boolean isReadThrough() {
            return told.isReadThrough();
        }

        @Override
        public boolean isWriteThrough() {
            return told.isWriteThrough();
        }

        @Override
        public boolean isStoreByValue() {
            return told.isStoreByValue();
        }

        @Override
        public boolean isStatisticsEnabled() {
            return told.isStatisticsEnabled();
        }

        @Override
        public boolean isManagementEnabled() {
            return told.isManagementEnabled();
        }
    }
}
