package org.sqlcached.client;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/** Requests to one daemon. Many threads may use it; each call has a connection of the pool for itself. */
public final class Client implements AutoCloseable {
    private final Options options;
    private final Pool pool;
    private final SharedMemory shared;
    private final Announcements announcements = new Announcements(this);

    /** @param options where the daemon is */
    public Client(Options options) {
        this.options = options;
        this.shared = options.sharedMemory() == null ? null : new SharedMemory(options);
        this.pool = new Pool(options);
    }

    /** @param location {@code host:port}, or the path of a Unix socket */
    public Client(String location) {
        this(Options.at(location));
    }

    /** @return where the daemon is */
    public Options options() {
        return options;
    }

    /**
     * Runs a statement. If the connection breaks, it is sent again only if it reads.
     *
     * @param text with {@code ?} for parameters
     * @param parameters texts, numbers, bytes, lists (arrays of SQL)
     * @return the rows, or how many were changed
     */
    public Result sql(String text, Object... parameters) {
        boolean reads = text.stripLeading().regionMatches(true, 0, "SELECT", 0, 6);
        return statement(reads, text, parameters);
    }

    Result statement(boolean again, String text, Object... parameters) {
        return run(again, connection -> {
            Protocol.statement(connection, text, parameters);
            return Protocol.result(connection);
        });
    }

    /** @return memcached's {@code stats} */
    public Map<String, String> stats() {
        return run(true, connection -> {
            connection.put("stats").end().flush();
            Map<String, String> found = new LinkedHashMap<>();
            for (String line; !(line = connection.line()).equals("END"); ) {
                String[] words = line.split(" ", 3);
                if (!words[0].equals("STAT") || words.length < 3) {
                    throw connection.refused(line);
                }
                found.put(words[1], words[2]);
            }
            return found;
        });
    }

    /**
     * Does something with a connection. One that had died is replaced; with {@code again} off only if that was seen
     * before anything was sent, because the command must not be executed twice.
     */
    <T> T run(boolean again, Function<Connection, T> work) {
        Connection connection = pool.take();
        while (connection.used && !again && !connection.isAlive()) {
            pool.end(connection);
            connection = pool.take();
        }
        boolean used = connection.used;
        try {
            return on(connection, work);
        } catch (UnavailableException why) {
            // What answered before was closed by a restart. The others that are idle were, too.
            if (!used || !again || connection.isLate() || Thread.currentThread().isInterrupted()) {
                throw why;
            }
            pool.forget();
        }
        return on(pool.take(), work);
    }

    /** Only a connection whose answers were read to their end is used again. */
    private <T> T on(Connection connection, Function<Connection, T> work) {
        boolean whole = false;
        try {
            connection.begin();
            T result = work.apply(connection);
            whole = true;
            return result;
        } catch (RefusedException | StatementException why) {
            whole = true;
            throw why;
        } finally {
            if (whole) {
                pool.giveBack(connection);
            } else {
                pool.end(connection);
            }
        }
    }

    /** Closes the connections. Calls fail from now on. */
    @Override
    public void close() {
        announcements.close();
        pool.close();
        if (shared != null) {
            shared.close();
        }
    }

    /** @return how many reads were answered in shared memory, without asking the daemon */
    public long sharedReads() {
        return shared == null ? 0 : shared.answers.sum();
    }

    /** The daemon's shared memory; null if it is not read. */
    SharedMemory shared() {
        return shared;
    }

    Announcements announcements() {
        return announcements;
    }
}
