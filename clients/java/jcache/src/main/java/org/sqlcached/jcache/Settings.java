package org.sqlcached.jcache;

import java.net.URI;
import java.util.List;
import java.util.Properties;
import javax.cache.CacheException;
import org.sqlcached.client.Client;
import org.sqlcached.client.Near;
import org.sqlcached.client.Options;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Values;

/** What a manager of caches is told: by its URI, its properties, and the properties of the system. */
final class Settings {
    private static final String PREFIX = "sqlcached.";
    private static final String SCHEME = "sqlcached";

    private final URI uri;
    private final Properties properties;

    Settings(URI uri, Properties properties) {
        this.uri = uri;
        this.properties = properties;
    }

    static URI defaultUri() {
        return URI.create(SCHEME + "://" + System.getProperty(PREFIX + "location", Options.LOCATION));
    }

    private String get(String name) {
        String own = properties.getProperty(PREFIX + name);
        if (own == null && name.equals("location") && SCHEME.equals(uri.getScheme()) && uri.getAuthority() != null) {
            // The default URI has what the system's property says; another one is meant as it is.
            return uri.getAuthority();
        }
        return own == null ? System.getProperty(PREFIX + name) : own;
    }

    Client client() {
        try {
            return new Client(Options.named(this::get));
        } catch (SqlcachedException why) {
            throw new CacheException(why.getMessage(), why);
        }
    }

    /** Patterns of classes whose objects may be made. */
    List<String> classes() {
        return Values.patterns(get("classes"));
    }

    /** How copies of values are kept; null: none are. */
    Near near() {
        return Near.named(this::get);
    }

    /** Whether listeners learn what other clients of the daemon change. */
    boolean hears() {
        return Boolean.parseBoolean(get("events"));
    }
}
