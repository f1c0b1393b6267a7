package org.sqlcached.client;

import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.function.UnaryOperator;
import javax.net.ssl.SSLContext;

/**
 * Where the daemon is, and how to talk to it.
 *
 * @param location {@code host:port}, or the path of a Unix socket
 * @param user the role, or null if the daemon asks for none
 * @param password its password
 * @param tls for TLS, or null
 * @param timeout of a call
 * @param connectTimeout of a connection's opening
 * @param connections how many connections there are at most
 * @param onFailure what becomes of an invalidation that cannot be sent
 * @param sqlLocation where the daemon listens for PostgreSQL's clients, by whose protocol it announces changes; null: on
 *     the port that it says itself, at the same host
 * @param sharedMemory the C library by which tables with {@code shared_memory = on} are read in the daemon's shared memory:
 *     {@link #LIBRARY}, or a path; null: by the connections, as all else
 */
public record Options(
        String location,
        String user,
        String password,
        SSLContext tls,
        Duration timeout,
        Duration connectTimeout,
        int connections,
        OnFailure onFailure,
        String sqlLocation,
        String sharedMemory) {

    /** Where a daemon listens that was told nothing else. */
    public static final String LOCATION = "127.0.0.1:11211";

    /** The C library, as the system's loader finds it. */
    public static final String LIBRARY = "libsqlcached.so.0";

    /** Checks what was given. */
    public Options {
        Objects.requireNonNull(location, "location");
        Objects.requireNonNull(onFailure, "onFailure");
        if (connections < 1) {
            throw new IllegalArgumentException("connections is a number above 0");
        }
        for (Duration each : List.of(timeout, connectTimeout)) {
            if (each.toMillis() < 1 || each.toMillis() > Integer.MAX_VALUE) {
                throw new IllegalArgumentException("a timeout is at least a millisecond, and at most 24 days");
            }
        }
        if (sharedMemory != null && !location.startsWith("/")) {
            throw new IllegalArgumentException(
                    "shared memory is that of a daemon on this machine: give the path of its Unix socket, not " + location);
        }
    }

    /**
     * @param location {@code host:port}, or the path of a Unix socket
     * @return the defaults: calls of 5 seconds, connections within one, 32 of them
     */
    public static Options at(String location) {
        return new Options(
                location, null, "", null, Duration.ofSeconds(5), Duration.ofSeconds(1), 32, OnFailure.SUSPEND, null, null);
    }

    /**
     * Options of a framework's settings: {@code location}, {@code user}, {@code password}, {@code tls} ({@code true}: the
     * system's context), {@code timeout} and {@code connect_timeout} in seconds, {@code connections}, {@code on_failure},
     * {@code sql_location}, {@code shared_memory} ({@code true}, or the C library's path).
     *
     * @param setting the setting of this name, or null for the default
     * @return the options
     */
    public static Options named(UnaryOperator<String> setting) {
        Options options = at(Objects.requireNonNullElse(setting.apply("location"), LOCATION));
        if (setting.apply("user") != null) {
            options = options.login(setting.apply("user"), Objects.requireNonNullElse(setting.apply("password"), ""));
        }
        if (Boolean.parseBoolean(setting.apply("tls"))) {
            options = options.tls(systemContext());
        }
        Duration call = seconds(setting.apply("timeout"), options.timeout);
        options = options.timeouts(call, seconds(setting.apply("connect_timeout"), options.connectTimeout));
        if (setting.apply("connections") != null) {
            options = options.connections(Integer.parseInt(setting.apply("connections")));
        }
        options = options.sqlLocation(setting.apply("sql_location"));
        options = options.sharedMemory(library(setting.apply("shared_memory")));
        String choice = setting.apply("on_failure");
        return choice == null ? options : options.onFailure(OnFailure.valueOf(choice.toUpperCase(Locale.ROOT)));
    }

    private static Duration seconds(String setting, Duration other) {
        return setting == null ? other : Duration.ofMillis((long) (Double.parseDouble(setting) * 1000));
    }

    private static String library(String setting) {
        if (setting == null || setting.equals("false")) {
            return null;
        }
        return setting.equals("true") ? LIBRARY : setting;
    }

    private static SSLContext systemContext() {
        try {
            return SSLContext.getDefault();
        } catch (NoSuchAlgorithmException why) {
            throw new SqlcachedException("this Java has no TLS", why);
        }
    }

    /**
     * @param role the role
     * @param proof its password
     * @return options with a login
     */
    public Options login(String role, String proof) {
        return new Options(location, role, proof, tls, timeout, connectTimeout, connections, onFailure, sqlLocation, sharedMemory);
    }

    /**
     * @param context has the authorities that are trusted, and the client's certificate
     * @return options with TLS
     */
    public Options tls(SSLContext context) {
        return new Options(location, user, password, context, timeout, connectTimeout, connections, onFailure, sqlLocation, sharedMemory);
    }

    /**
     * @param call of a call
     * @param connect of a connection's opening
     * @return options with these timeouts
     */
    public Options timeouts(Duration call, Duration connect) {
        return new Options(location, user, password, tls, call, connect, connections, onFailure, sqlLocation, sharedMemory);
    }

    /**
     * @param count how many connections there are at most
     * @return options with this bound
     */
    public Options connections(int count) {
        return new Options(location, user, password, tls, timeout, connectTimeout, count, onFailure, sqlLocation, sharedMemory);
    }

    /**
     * @param choice what becomes of an invalidation that cannot be sent
     * @return options with this choice
     */
    public Options onFailure(OnFailure choice) {
        return new Options(location, user, password, tls, timeout, connectTimeout, connections, choice, sqlLocation, sharedMemory);
    }

    /**
     * @param place where the daemon listens for PostgreSQL's clients: {@code host:port}, or the path of a Unix socket
     * @return options with this place
     */
    public Options sqlLocation(String place) {
        return new Options(location, user, password, tls, timeout, connectTimeout, connections, onFailure, place, sharedMemory);
    }

    /**
     * @param library the C library, {@link #LIBRARY} or its path; null: shared memory is not read
     * @return options with this library. The location must be the path of the daemon's Unix socket
     */
    public Options sharedMemory(String library) {
        return new Options(location, user, password, tls, timeout, connectTimeout, connections, onFailure, sqlLocation, library);
    }

    /** The location: passwords are not shown. */
    @Override
    public String toString() {
        return location;
    }
}
