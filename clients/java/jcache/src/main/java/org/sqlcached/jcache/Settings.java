package org.sqlcached.jcache;

import java.net.URI;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import java.util.Properties;
import javax.cache.CacheException;
import javax.net.ssl.SSLContext;
import org.sqlcached.client.Client;
import org.sqlcached.client.Options;

/** What a manager of caches is told: by its URI, its properties, and the properties of the system. */
final class Settings {
    static final String LOCATION = "sqlcached.location";
    private static final String DEFAULT = "127.0.0.1:11211";
    private static final String SCHEME = "sqlcached";

    private final URI uri;
    private final Properties properties;

    Settings(URI uri, Properties properties) {
        this.uri = uri;
        this.properties = properties;
    }

    static URI defaultUri() {
        return URI.create(SCHEME + "://" + System.getProperty(LOCATION, DEFAULT));
    }

    private String get(String name, String other) {
        String own = properties.getProperty(name);
        return own == null ? System.getProperty(name, other) : own;
    }

    private String location() {
        String own = properties.getProperty(LOCATION);
        if (own != null) {
            return own;
        }
        // The default URI has what the system's property says; another one is meant as it is.
        boolean says = SCHEME.equals(uri.getScheme()) && uri.getAuthority() != null;
        return says ? uri.getAuthority() : System.getProperty(LOCATION, DEFAULT);
    }

    Client client() {
        Options options = Options.at(location());
        String user = get("sqlcached.user", null);
        if (user != null) {
            options = options.login(user, get("sqlcached.password", ""));
        }
        if (Boolean.parseBoolean(get("sqlcached.tls", "false"))) {
            try {
                options = options.tls(SSLContext.getDefault());
            } catch (NoSuchAlgorithmException why) {
                throw new CacheException(why);
            }
        }
        return new Client(options.connections(Integer.parseInt(get("sqlcached.connections", "32"))));
    }

    /** Patterns of classes whose objects may be made. */
    List<String> classes() {
        String all = get("sqlcached.classes", "").trim();
        return all.isEmpty() ? List.of() : List.of(all.split("\\s*,\\s*"));
    }
}
