package org.sqlcached.tests;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.sqlcached.client.Client;
import org.sqlcached.client.Options;

/** A daemon of a test's own, which can be killed and started again at the same port. */
final class Daemon implements AutoCloseable {
    /** How long a daemon may take on a busy machine. */
    static final long PATIENCE = 60_000;

    private final Path folder;
    private final int port;
    private final int sqlPort;
    private final String[] flags;
    private Process process;

    Daemon(String... flags) {
        this.flags = flags;
        try {
            folder = Files.createTempDirectory("sqlcached-java");
            port = freePort();
            sqlPort = freePort();
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
        start();
    }

    /** Five seconds for a call are much for an application, and little for a debug build beside a compiler. */
    static Options patient(String location) {
        return Options.at(location).timeouts(Duration.ofMillis(PATIENCE), Duration.ofMillis(PATIENCE));
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    void start() {
        List<String> command = new ArrayList<>(List.of(
                System.getenv("SQLCACHED_PROGRAM"), "-p", Integer.toString(port), "-s", socket(),
                "--arena", folder.resolve("arena").toString(), "--sql-port", Integer.toString(sqlPort), "--http-port", "0",
                "--sql-socket-dir", "none"));
        command.addAll(List.of(flags));
        try {
            process = new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(folder.resolve("log").toFile())
                    .start();
            await();
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
    }

    private void await() throws IOException {
        long end = System.nanoTime() + PATIENCE * 1_000_000;
        while (true) {
            try {
                new Socket("127.0.0.1", port).close();
                return;
            } catch (IOException notYet) {
                if (System.nanoTime() - end > 0 || !process.isAlive()) {
                    throw new IOException("the daemon does not start:\n" + Files.readString(folder.resolve("log")), notYet);
                }
                LockSupport.parkNanos(10_000_000);
            }
        }
    }

    String location() {
        return "127.0.0.1:" + port;
    }

    int port() {
        return port;
    }

    /** Where PostgreSQL's clients go. */
    int sqlPort() {
        return sqlPort;
    }

    String socket() {
        return folder.resolve("sock").toString();
    }

    Path folder() {
        return folder;
    }

    Client client() {
        return new Client(patient(location()));
    }

    /** Ends it at once. */
    void kill() {
        process.destroyForcibly();
        try {
            if (!process.waitFor(PATIENCE, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("the daemon does not end");
            }
        } catch (InterruptedException why) {
            throw new IllegalStateException(why);
        }
    }

    @Override
    public void close() {
        kill();
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
    }
}
