package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Hibernate while its cache is away. */
public class HibernateFailureTest {
    @Test
    public void nothingOldIsReadAfterTheDaemonWasAway() {
        HibernateShop.psql("UPDATE product SET price = id");
        try (Daemon daemon = new Daemon();
                HibernateShop shop = new HibernateShop(Map.of(
                        "hibernate.cache.region.factory_class", "sqlcached",
                        "hibernate.cache.sqlcached.location", daemon.location()))) {
            assertEquals(3, shop.price(3));
            assertEquals(List.of(10), shop.dearerThan(9));
            daemon.kill();
            assertEquals(3, shop.price(3));
            shop.reprice(3, 30);
            assertEquals(30, shop.price(3));
            assertEquals(List.of(3, 10), shop.dearerThan(9));
            // The rows are kept.
            daemon.start();
            for (int round = 0; round < 20; round++) {
                assertEquals(30, shop.price(3));
                assertEquals(List.of(3, 10), shop.dearerThan(9));
            }
        }
    }
}
