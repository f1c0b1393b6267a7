package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.List;
import java.util.Map;
import org.hibernate.cache.CacheException;
import org.junit.Test;

/** Hibernate while its cache is away. */
public class HibernateFailureTest {
    @Test
    public void aTransactionFailsIfItCannotInvalidateAndThatIsAsked() {
        HibernateShop.psql("UPDATE product SET price = id");
        try (Daemon daemon = new Daemon();
                HibernateShop shop = new HibernateShop(Map.of(
                        "hibernate.cache.region.factory_class", "sqlcached",
                        "hibernate.cache.sqlcached.on_failure", "raise",
                        "hibernate.cache.sqlcached.location", daemon.location()))) {
            assertEquals(3, shop.price(3));
            daemon.kill();
            assertThrows(CacheException.class, () -> shop.reprice(3, 30));
            assertEquals("3", HibernateShop.psql("SELECT price FROM product WHERE id = 3"));
            daemon.start();
            assertEquals(3, shop.price(3));
            shop.reprice(3, 31);
            assertEquals(31, shop.price(3));
        }
    }

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
