package org.sqlcached.client;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What is logged, under the name {@code org.sqlcached}: one warning of a kind in a minute. */
final class Notices {
    private static final System.Logger LOG = System.getLogger("org.sqlcached");
    private static final Map<String, Long> SAID = new ConcurrentHashMap<>();

    private Notices() {
    }

    static void warn(String what, Throwable why) {
        long now = System.nanoTime();
        Long[] before = new Long[1];
        SAID.compute(what, (key, last) -> {
            before[0] = last;
            return last == null || now - last > Limits.WARN_EVERY ? Long.valueOf(now) : last;
        });
        if (before[0] == null || now - before[0] > Limits.WARN_EVERY) {
            LOG.log(System.Logger.Level.WARNING, what + ": " + why.getMessage());
        }
    }

    static void error(String what, Throwable why) {
        LOG.log(System.Logger.Level.ERROR, what + ": " + why.getMessage());
    }
}
