package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Hibernate with its own regions of JCache, whose provider is ours. */
public class HibernateJcacheTest {
    @Test
    public void anEntityIsLoadedOnceForAllJvms() {
        HibernateShop.psql("UPDATE product SET price = id");
        String location = "127.0.0.1:" + System.getenv("SQLCACHED_PORT");
        Map<String, Object> settings = Map.of(
                "hibernate.cache.region.factory_class", "jcache",
                "hibernate.javax.cache.missing_cache_strategy", "create",
                "hibernate.cache.region_prefix", "jcache",
                "sqlcached.location", location,
                "sqlcached.timeout", "60",
                "sqlcached.classes", "org.hibernate.cache.**");
        settings.forEach((name, value) -> System.setProperty(name, value.toString()));
        try (HibernateShop shop = new HibernateShop(settings); Peer other = new Peer(HibernateShop.class, settings)) {
            assertEquals(3, shop.price(3));
            assertEquals("3", other.ask("price 3"));
            assertEquals("1", other.ask("hits"));
            shop.reprice(3, 30);
            assertEquals("30", other.ask("price 3"));
            assertEquals(List.of(3, 10), shop.dearerThan(9));
            other.ask("reprice 4 40");
            assertEquals(List.of(3, 4, 10), shop.dearerThan(9));
        } finally {
            settings.keySet().forEach(System::clearProperty);
        }
    }
}
