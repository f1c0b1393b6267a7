package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.hibernate.Session;
import org.hibernate.cache.spi.access.EntityDataAccess;
import org.hibernate.engine.spi.SessionFactoryImplementor;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.persister.entity.EntityPersister;
import org.junit.After;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;
import org.sqlcached.client.Client;

/** Hibernate with regions of ours, in two JVMs, on a PostgreSQL that tells the daemon its changes. */
public class HibernateTest {
    private static final String PREFIX = "hibernate.cache.sqlcached.";
    private static final String PRODUCTS = "org_sqlcached_tests_Product";
    private static final int ROUNDS = 400;

    private static HibernateShop shop;
    private static Peer other;
    private static Client client;

    @BeforeClass
    public static void open() {
        Map<String, Object> settings = Map.of(
                "hibernate.cache.region.factory_class", "sqlcached",
                PREFIX + "location", location(),
                PREFIX + "table.org.sqlcached.tests.Product.ttl", "1 h",
                PREFIX + "table.org.sqlcached.tests.Product.source", "pg",
                PREFIX + "table.org.sqlcached.tests.Product.depends", "product(id => tags)");
        HibernateShop.psql("UPDATE product SET price = id");
        shop = new HibernateShop(settings);
        other = new Peer(HibernateShop.class, settings);
        client = new Client(Daemon.patient(location()));
        // The first read makes the table, and with it the daemon follows the database.
        assertEquals(1, shop.price(1));
        FailureTest.await(() -> count("SELECT count(*) AS n FROM sqlcached_sources WHERE state = 'streaming'") == 1);
    }

    private static String location() {
        return "127.0.0.1:" + System.getenv("SQLCACHED_PORT");
    }

    @AfterClass
    public static void end() {
        other.close();
        shop.close();
        client.close();
    }

    @Before
    public void begin() {
        HibernateShop.psql("DELETE FROM review");
        HibernateShop.psql("UPDATE product SET price = id");
        forget();
    }

    @After
    public void forget() {
        settle();
        shop.sessions.getCache().evictAllRegions();
    }

    /**
     * Waits until all that was changed in the database is applied here, so that it removes nothing of what comes. A daemon
     * that has not heard of a change yet has nothing unsettled: it must have read the log so far.
     */
    private static void settle() {
        String log = HibernateShop.psql("SELECT pg_current_wal_lsn()");
        FailureTest.await(() -> isApplied(log));
        String text = "SELECT count(*) AS n FROM sqlcached_sources WHERE state <> 'streaming' OR unsettled > 0";
        FailureTest.await(() -> count(text) == 0);
    }

    private static boolean isApplied(String log) {
        return count("SELECT CASE WHEN wait_for_source('pg', '" + log + "', '1 s') THEN 1 ELSE 0 END AS n") == 1;
    }

    private static long count(String text) {
        return ((Number) client.sql(text).rows().get(0).get("n")).longValue();
    }

    private static String table() {
        String text = "SELECT table_name AS n FROM sqlcached_tables WHERE table_name LIKE '%" + PRODUCTS + "\\_________' ESCAPE '\\'";
        return (String) client.sql(text).rows().get(0).get("n");
    }

    private static EntityDataAccess access() {
        return persister().getCacheAccessStrategy();
    }

    private static EntityPersister persister() {
        return ((SessionFactoryImplementor) shop.sessions).getMappingMetamodel().getEntityDescriptor(Product.class);
    }

    private static Object key(int id) {
        return access().generateCacheKey(id, persister(), (SessionFactoryImplementor) shop.sessions, null);
    }

    private static Object get(Session session, int id) {
        return access().get((SharedSessionContractImplementor) session, key(id));
    }

    private static boolean fill(Session session, int id, Object value) {
        return access().putFromLoad((SharedSessionContractImplementor) session, key(id), value, null);
    }

    @Test
    public void anEntityIsLoadedOnceForAllJvms() {
        assertEquals(3, shop.price(3));
        long before = Long.parseLong(other.ask("hits"));
        assertEquals("3", other.ask("price 3"));
        assertEquals(before + 1, Long.parseLong(other.ask("hits")));
        String row = " WHERE key = 'org.sqlcached.tests.Product#3' AND _ttl BETWEEN 3000 AND 3600";
        assertEquals(1, count("SELECT count(*) AS n FROM " + table() + row));
    }

    @Test
    public void anUpdateIsReadByTheOtherJvm() {
        assertEquals("3", other.ask("price 3"));
        shop.reprice(3, 30);
        assertEquals("30", other.ask("price 3"));
        other.ask("reprice 3 31");
        assertEquals(31, shop.price(3));
    }

    @Test
    public void oneOfTwoFills() {
        try (Session first = shop.sessions.openSession(); Session second = shop.sessions.openSession()) {
            assertNull(get(first, 4));
            assertNull(get(second, 4));
            assertFalse(fill(second, 4, "second"));
            assertTrue(fill(first, 4, "first"));
            assertEquals("first", get(second, 4));
        }
    }

    @Test
    public void whatWasNotMissedIsNotFilled() {
        try (Session session = shop.sessions.openSession()) {
            assertFalse(fill(session, 4, "of a query"));
            assertNull(get(session, 4));
        }
    }

    @Test
    public void aLoadBeforeAnUpdateOfTheOtherJvmIsRefused() {
        try (Session session = shop.sessions.openSession()) {
            assertNull(get(session, 5));
            other.ask("reprice 5 50");
            assertFalse(fill(session, 5, "old"));
        }
        assertEquals(50, shop.price(5));
    }

    @Test
    public void aLoadBeforeAnUpdateByPsqlIsRefused() {
        try (Session session = shop.sessions.openSession()) {
            assertNull(get(session, 5));
            HibernateShop.psql("UPDATE product SET price = 51 WHERE id = 5");
            FailureTest.await(() -> count("SELECT count(*) AS n FROM " + table()) == 0);
            assertFalse(fill(session, 5, "old"));
        }
        assertEquals(51, shop.price(5));
    }

    @Test
    public void anUpdateByPsqlEndsTheEntity() {
        assertEquals(6, shop.price(6));
        assertEquals("6", other.ask("price 6"));
        HibernateShop.psql("UPDATE product SET price = 60 WHERE id = 6");
        FailureTest.await(() -> shop.price(6) == 60);
        assertEquals("60", other.ask("price 6"));
    }

    @Test
    public void aLockedRowIsNeitherReadNorFilled() {
        assertEquals(7, shop.price(7));
        try (Session session = shop.sessions.openSession()) {
            session.beginTransaction();
            session.find(Product.class, 7).price = BigDecimal.valueOf(70);
            session.flush();
            assertEquals(1, count("SELECT count(*) AS n FROM " + table() + " WHERE body LIKE 'locked %'"));
            long before = Long.parseLong(other.ask("hits"));
            assertEquals("7", other.ask("price 7"));
            assertEquals("7", other.ask("price 7"));
            assertEquals(before, Long.parseLong(other.ask("hits")));
            session.getTransaction().rollback();
        }
        assertEquals(1, count("SELECT count(*) AS n FROM " + table() + " WHERE body LIKE 'released %'"));
        assertEquals("7", other.ask("price 7"));
        assertEquals(7, shop.price(7));
    }

    @Test
    public void whatBeganBeforeAChangeDoesNotFill() {
        try (Session early = shop.sessions.openSession()) {
            early.beginTransaction();
            try (Session session = shop.sessions.openSession()) {
                session.beginTransaction();
                session.find(Product.class, 8).price = BigDecimal.valueOf(80);
                session.flush();
                session.getTransaction().rollback();
            }
            assertNull(get(early, 8));
            assertFalse(fill(early, 8, "of a snapshot from before"));
            early.getTransaction().rollback();
        }
        try (Session late = shop.sessions.openSession()) {
            assertNull(get(late, 8));
            assertTrue(fill(late, 8, "new"));
        }
    }

    @Test
    public void anAnswerOfAQueryEndsWithItsTables() {
        assertEquals(List.of(10), shop.dearerThan(9));
        assertEquals("[10]", other.ask("dearer 9"));
        long hits = shop.sessions.getStatistics().getQueryCacheHitCount();
        assertEquals(List.of(10), shop.dearerThan(9));
        assertEquals(hits + 1, shop.sessions.getStatistics().getQueryCacheHitCount());
        other.ask("reprice 2 99");
        assertEquals(List.of(2, 10), shop.dearerThan(9));
        String options = "SELECT count(*) AS n FROM sqlcached_tables WHERE table_name LIKE '%timestamps%' AND options::text LIKE '%min_memory=%'";
        assertEquals(1, count(options));
    }

    /** Factories share no connections: one that is closed leaves the other as it is. */
    @Test
    public void anotherFactoryIsClosed() {
        try (HibernateShop second = new HibernateShop(Map.of(
                "hibernate.cache.region.factory_class", "sqlcached", PREFIX + "location", location()))) {
            assertEquals(3, second.price(3));
        }
        assertEquals(3, shop.price(3));
        shop.reprice(3, 33);
        assertEquals("33", other.ask("price 3"));
    }

    @Test
    public void aConditionOfSqlRemovesEntities() {
        assertEquals(1, shop.price(1));
        assertEquals(2, shop.price(2));
        client.sql("DELETE FROM " + table() + " WHERE key LIKE '%Product#1'");
        long hits = shop.hits();
        assertEquals(2, shop.price(2));
        assertEquals(hits + 1, shop.hits());
        assertEquals(1, shop.price(1));
        assertEquals(hits + 1, shop.hits());
    }

    @Test
    public void aStatementOfManyRowsEmptiesTheRegion() {
        assertEquals(1, shop.price(1));
        shop.sessions.inTransaction(session -> session.createMutationQuery("update Product set price = 100").executeUpdate());
        assertEquals("100", other.ask("price 1"));
        assertEquals(100, shop.price(1));
    }

    @Test
    public void collectionsAndNaturalIdsAreKept() {
        assertEquals(0, shop.reviews(9));
        shop.sessions.inTransaction(session -> {
            Review review = new Review();
            review.id = 1;
            review.body = "good";
            session.persist(review);
            session.find(Product.class, 9).reviews.add(review);
        });
        assertEquals(1, shop.reviews(9));
        assertEquals(9, shop.named("product 9"));
        long hits = shop.sessions.getStatistics().getNaturalIdCacheHitCount();
        assertEquals(9, shop.named("product 9"));
        assertEquals(hits + 1, shop.sessions.getStatistics().getNaturalIdCacheHitCount());
    }

    @Test
    public void nothingOldIsReadWhileTwoJvmsChange() {
        String given = System.getenv("SEED");
        int seed = given == null ? (int) (System.nanoTime() & 0xffff) : Integer.parseInt(given);
        System.out.println("SEED=" + seed);
        other.tell("race " + (seed + 1) + " " + ROUNDS + " 3");
        assertEquals(0, shop.race(seed, ROUNDS, 3));
        assertEquals("0", other.answer());
        assertTrue(shop.hits() > 0);
    }
}
