package org.sqlcached.spring;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The settings under {@code sqlcached}.
 *
 * @param location host:port, or the path of a Unix socket
 * @param user the role, if the daemon asks for one
 * @param password its password
 * @param tls true: TLS with the system's context
 * @param timeout seconds of a call
 * @param connectTimeout seconds of a connection's opening
 * @param connections how many connections there are at most
 * @param onFailure what becomes of an invalidation that cannot be sent: suspend, raise, log
 * @param sqlLocation where the daemon listens for PostgreSQL's clients, by whose protocol it announces changes; else on the
 *     port that it says itself, at the same host
 * @param sharedMemory true, or the C library's path: tables are read in the daemon's shared memory
 * @param near how many copies of values of each cache this JVM keeps; none without it
 * @param nearStaleness seconds for which copies are used when the daemon is not heard
 * @param nearShared true: all readers of a copy get the same object, and never change it
 * @param classes patterns of further classes that may be made of what a cache has
 * @param tables options of the caches' tables, by the cache's name
 * @param sessions the table of the sessions
 */
@ConfigurationProperties("sqlcached")
public record SqlcachedProperties(
        String location,
        String user,
        String password,
        String tls,
        String timeout,
        String connectTimeout,
        String connections,
        String onFailure,
        String sqlLocation,
        String sharedMemory,
        String near,
        String nearStaleness,
        String nearShared,
        List<String> classes,
        Map<String, Map<String, String>> tables,
        String sessions) {

    /** Options by their names. */
    String option(String name) {
        Map<String, String> all = new HashMap<>();
        all.put("location", location);
        all.put("user", user);
        all.put("password", password);
        all.put("tls", tls);
        all.put("timeout", timeout);
        all.put("connect_timeout", connectTimeout);
        all.put("connections", connections);
        all.put("on_failure", onFailure);
        all.put("sql_location", sqlLocation);
        all.put("shared_memory", sharedMemory);
        all.put("near", near);
        all.put("near_staleness", nearStaleness);
        all.put("near_shared", nearShared);
        return all.get(name);
    }

    Map<String, String> table(String cache) {
        return tables == null ? Map.of() : tables.getOrDefault(cache, Map.of());
    }
}
