package org.sqlcached.hibernate;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.sqlcached.client.Options;
import org.sqlcached.client.Values;

/** What Hibernate's settings say of the cache, all under one prefix. */
final class Settings {
    private static final String PREFIX = "hibernate.cache.sqlcached.";
    private static final String TABLE = PREFIX + "table.";

    /** What Hibernate itself puts into a cache, and values of JDBC. */
    private static final List<String> CLASSES =
            List.of("java.sql.*", "org.hibernate.cache.spi.entry.*", "org.hibernate.cache.internal.*");

    private final Map<String, Object> all;

    Settings(Map<String, Object> all) {
        this.all = Map.copyOf(known(all));
    }

    private static Map<String, Object> known(Map<String, Object> all) {
        Map<String, Object> found = new HashMap<>();
        all.forEach((name, value) -> {
            if (name.startsWith(PREFIX) && value != null) {
                found.put(name, value);
            }
        });
        return found;
    }

    private String get(String name) {
        Object value = all.get(PREFIX + name);
        return value == null ? System.getProperty("sqlcached." + name) : value.toString();
    }

    Options options() {
        return Options.named(this::get);
    }

    Values values() {
        List<String> classes = new ArrayList<>(CLASSES);
        classes.addAll(Values.patterns(get("classes")));
        return new Values(classes, null);
    }

    /** Options of a region's table: {@code hibernate.cache.sqlcached.table.shop.Product.ttl}. */
    Map<String, Object> table(String region) {
        Map<String, Object> found = new HashMap<>();
        String begin = TABLE + region + ".";
        all.forEach((name, value) -> {
            String option = name.startsWith(begin) ? name.substring(begin.length()) : ".";
            if (option.indexOf('.') < 0) {
                found.put(option, value);
            }
        });
        return found;
    }
}
