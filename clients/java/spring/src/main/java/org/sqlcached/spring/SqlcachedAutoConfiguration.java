package org.sqlcached.spring;

import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.cache.CacheAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.cache.CacheManager;
import org.springframework.context.annotation.Bean;
import org.sqlcached.client.Client;
import org.sqlcached.client.Near;
import org.sqlcached.client.Options;
import org.sqlcached.client.Values;

/** What Spring Boot makes of the settings: the daemon's client, and the manager of caches. */
@AutoConfiguration(before = CacheAutoConfiguration.class)
@EnableConfigurationProperties(SqlcachedProperties.class)
public class SqlcachedAutoConfiguration {
    /** Spring makes it. */
    public SqlcachedAutoConfiguration() {
    }

    /**
     * @param properties the settings
     * @return the daemon
     */
    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean
    Client sqlcachedClient(SqlcachedProperties properties) {
        return new Client(Options.named(properties::option));
    }

    /**
     * @param properties the settings
     * @return how values become bytes
     */
    @Bean
    @ConditionalOnMissingBean
    Values sqlcachedValues(SqlcachedProperties properties) {
        List<String> classes = new ArrayList<>(List.of("org.springframework.cache.support.NullValue"));
        if (properties.classes() != null) {
            classes.addAll(properties.classes());
        }
        return new Values(classes, null);
    }

    /**
     * @param client the daemon
     * @param values how values become bytes
     * @param properties the settings
     * @param tagger which tags values get; without one they have none
     * @return the manager
     */
    @Bean
    @ConditionalOnMissingBean(CacheManager.class)
    SqlcachedCacheManager cacheManager(
            Client client, Values values, SqlcachedProperties properties, ObjectProvider<Tagger> tagger) {
        Tagger none = (cache, key, value) -> List.of();
        Near near = Near.named(properties::option);
        return new SqlcachedCacheManager(client, values, properties::table, tagger.getIfAvailable(() -> none), near);
    }
}
