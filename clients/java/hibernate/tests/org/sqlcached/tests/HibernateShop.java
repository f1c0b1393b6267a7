package org.sqlcached.tests;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import org.hibernate.SessionFactory;
import org.hibernate.boot.MetadataSources;
import org.hibernate.boot.registry.StandardServiceRegistryBuilder;

/** A shop with Hibernate, in this JVM or, told what to do line by line, in one of its own. */
final class HibernateShop implements AutoCloseable {
    final SessionFactory sessions;

    /** @param settings beside those that each shop has */
    HibernateShop(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("hibernate.connection.url", url());
        all.put("hibernate.connection.username", "postgres");
        all.put("hibernate.cache.use_second_level_cache", true);
        all.put("hibernate.cache.use_query_cache", true);
        all.put("hibernate.generate_statistics", true);
        // A debug build beside a compiler is slow.
        all.put("hibernate.cache.sqlcached.timeout", "60");
        all.put("hibernate.cache.sqlcached.connect_timeout", "60");
        sessions = new MetadataSources(new StandardServiceRegistryBuilder().applySettings(all).build())
                .addAnnotatedClass(Product.class)
                .addAnnotatedClass(Review.class)
                .buildMetadata()
                .buildSessionFactory();
    }

    static String url() {
        return "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/postgres";
    }

    /** A statement in the database, which Hibernate does not know of; the first value that it gives. */
    static String psql(String text) {
        try (Connection connection = DriverManager.getConnection(url(), "postgres", "");
                Statement statement = connection.createStatement()) {
            if (!statement.execute(text)) {
                return null;
            }
            try (ResultSet rows = statement.getResultSet()) {
                return rows.next() ? rows.getString(1) : null;
            }
        } catch (SQLException why) {
            throw new IllegalStateException(text, why);
        }
    }

    int price(int id) {
        return sessions.fromTransaction(session -> session.find(Product.class, id).price.intValue());
    }

    void reprice(int id, int price) {
        sessions.inTransaction(session -> session.find(Product.class, id).price = BigDecimal.valueOf(price));
    }

    int reviews(int id) {
        return sessions.fromTransaction(session -> session.find(Product.class, id).reviews.size());
    }

    /** The identifier of a product by its name. */
    int named(String name) {
        return sessions.fromTransaction(session -> session.bySimpleNaturalId(Product.class).load(name).id);
    }

    List<Integer> dearerThan(int price) {
        return sessions.fromTransaction(session -> session
                .createSelectionQuery("select id from Product where price > ?1 order by id", Integer.class)
                .setParameter(1, BigDecimal.valueOf(price))
                .setCacheable(true)
                .list());
    }

    /** How often an entity was found in the cache. */
    long hits() {
        return sessions.getStatistics().getSecondLevelCacheHitCount();
    }

    /**
     * Reads and raises prices at random. What was committed before a read began is read, or what came after it.
     *
     * @return the reads that gave something older
     */
    int race(long seed, int rounds, int products) {
        Random random = new Random(seed);
        int old = 0;
        for (int round = 0; round < rounds; round++) {
            int id = 1 + random.nextInt(products);
            if (random.nextInt(4) == 0) {
                sessions.inTransaction(session -> {
                    Product product = session.find(Product.class, id, jakarta.persistence.LockModeType.PESSIMISTIC_WRITE);
                    session.refresh(product);
                    product.price = product.price.add(BigDecimal.ONE);
                });
            } else {
                int before = new BigDecimal(psql("SELECT price FROM product WHERE id = " + id)).intValue();
                old += price(id) < before ? 1 : 0;
            }
        }
        return old;
    }

    @Override
    public void close() {
        sessions.close();
    }

    /**
     * @param arguments none: what to do stands in the lines of standard input
     */
    public static void main(String[] arguments) {
        Map<String, Object> settings = new HashMap<>();
        System.getProperties().forEach((name, value) -> settings.put(name.toString(), value));
        try (HibernateShop shop = new HibernateShop(settings); Scanner lines = new Scanner(System.in)) {
            System.out.println("ready");
            while (lines.hasNextLine()) {
                String[] words = lines.nextLine().split(" ");
                System.out.println("= " + shop.answer(words[0], words));
            }
        }
    }

    private Object answer(String verb, String[] words) {
        int first = words.length > 1 ? Integer.parseInt(words[1]) : 0;
        return switch (verb) {
            case "price" -> price(first);
            case "reprice" -> {
                reprice(first, Integer.parseInt(words[2]));
                yield "done";
            }
            case "dearer" -> dearerThan(first);
            case "hits" -> hits();
            case "race" -> race(first, Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            default -> throw new IllegalArgumentException(verb);
        };
    }
}
