package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.OnFailure;
import org.sqlcached.client.Options;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;
import org.sqlcached.map.CachedMap;

/** What happens when the daemon is away, slow, or says half of something. */
public class FailureTest {
    private static Loading rows(Client client) {
        return new Loading(new Table(client, new Definition("page")), new Values());
    }

    static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + Daemon.PATIENCE * 1_000_000;
        while (!condition.getAsBoolean()) {
            assertTrue("it did not come true", System.nanoTime() - end < 0);
            LockSupport.parkNanos(5_000_000);
        }
    }

    /** Answers are cut at each of their bytes. What is read is right, or nothing. */
    @Test
    public void aConnectionThatBreaksWithinAnAnswer() throws IOException {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon); Client client = new Client(Daemon.patient(proxy.location()))) {
            Loading rows = rows(client);
            rows.set("a", "value of a", 600);
            rows.set("b", "value of b", 600);
            for (int cut = 0; cut < 60; cut++) {
                proxy.allowed.set(cut);
                assertEquals("value of a", rows.get("a"));
                assertEquals("value of b", rows.get("b"));
                proxy.allowed.set(cut);
                assertEquals(2, rows.table().getAll(List.of("a", "b", "c")).size());
                proxy.allowed.set(-1);
            }
            // What changes something is not sent twice: whether it was done is not known, and the row is not read.
            int before = proxy.connections.get();
            proxy.allowed.set(1);
            Write row = rows.write("a", "third", 600, List.of());
            assertThrows(UnavailableException.class, () -> rows.table().set(row.mode(Write.Mode.REPLACE)));
            assertNull(rows.get("a"));
            assertEquals("value of b", rows.get("b"));
            assertEquals(before + 1, proxy.connections.get());
        }
    }

    @Test
    public void anotherServer() throws IOException {
        try (java.net.ServerSocket server = new java.net.ServerSocket(0)) {
            Thread thread = new Thread(() -> {
                try {
                    while (true) {
                        try (java.net.Socket socket = server.accept()) {
                            socket.getInputStream().read();
                            socket.getOutputStream().write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes());
                        }
                    }
                } catch (IOException ended) {
                    // The test is over.
                }
            });
            thread.setDaemon(true);
            thread.start();
            try (Client client = new Client("127.0.0.1:" + server.getLocalPort())) {
                assertThrows(UnavailableException.class, () -> rows(client).table().get("a"));
                assertThrows(UnavailableException.class, client::stats);
            }
        }
    }

    @Test
    public void callsEndInTime() throws IOException {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon)) {
            Options options = Options.at(proxy.location()).timeouts(Duration.ofMillis(300), Duration.ofSeconds(60));
            try (Client slow = new Client(options); Client client = new Client(Daemon.patient(proxy.location()))) {
                rows(client).set("a", "hello", 600);
                proxy.hold();
                UnavailableException why = assertThrows(UnavailableException.class, () -> slow.sql("SELECT 1"));
                assertTrue(why.getMessage(), why.getMessage().contains("no answer in time"));
                proxy.letGo();
                assertEquals("hello", rows(client).get("a"));
            }
        }
    }

    @Test
    public void aPoolThatIsExhausted() throws Exception {
        try (Daemon daemon = new Daemon(); Proxy proxy = new Proxy(daemon)) {
            Options options = Daemon.patient(proxy.location()).connections(1);
            try (Client client = new Client(options)) {
                client.sql("SELECT 1");
                proxy.hold();
                AtomicReference<Object> answer = new AtomicReference<>();
                Thread holder = new Thread(() -> answer.set(client.sql("SELECT 7 AS n").rows().get(0).get("n")));
                holder.start();
                assertTrue(proxy.held.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
                // Who waits can be interrupted, and takes nothing away from who comes next.
                AtomicReference<Throwable> seen = new AtomicReference<>();
                Thread waiter = new Thread(() -> seen.set(assertThrows(UnavailableException.class, client::stats)));
                waiter.start();
                await(() -> waiter.getState() == Thread.State.TIMED_WAITING);
                waiter.interrupt();
                waiter.join(Daemon.PATIENCE);
                assertTrue(seen.get().getMessage(), seen.get().getMessage().contains("interrupted"));
                proxy.letGo();
                holder.join(Daemon.PATIENCE);
                assertEquals(7L, answer.get());
                client.sql("SELECT 1");
                assertEquals(1, proxy.connections.get());
            }
            try (Client client = new Client(options)) {
                CachedMap<String, Integer> map = CachedMap.of(client, "m");
                map.put("k", 1);
                UnavailableException why = assertThrows(
                        UnavailableException.class,
                        () -> map.compute("k", (key, value) -> {
                            // No connection is held while a value is computed.
                            assertEquals((Integer) 1, map.get("k"));
                            throw new UnavailableException("mine");
                        }));
                assertEquals("mine", why.getMessage());
            }
        }
    }

    @Test
    public void whatIsClosed() {
        try (Daemon daemon = new Daemon()) {
            Client client = daemon.client();
            Loading rows = rows(client);
            rows.set("a", 1, 60);
            client.close();
            assertThrows(IllegalStateException.class, () -> client.sql("SELECT 1"));
            assertThrows(IllegalStateException.class, () -> rows.get("a"));
            client.close();
        }
    }

    @Test
    public void aDaemonThatIsNotThere() throws IOException {
        String location = "127.0.0.1:" + Daemon.freePort();
        try (Client client = new Client(location)) {
            CachedMap<String, String> map = CachedMap.of(client, "m");
            assertNull(map.get("a"));
            assertEquals(Map.of(), map.getAll(List.of("a", "b")));
            assertEquals("computed", map.computeIfAbsent("a", key -> "computed"));
            assertThrows(UnavailableException.class, () -> map.put("a", "b"));
            assertThrows(UnavailableException.class, map::size);
            assertThrows(UnavailableException.class, () -> map.keySet().iterator().hasNext());
        }
        try (Client client = new Client("no.such.host.invalid:1")) {
            assertThrows(UnavailableException.class, client::stats);
        }
        for (String odd : List.of("nothing", ":1", "a:b", "127.0.0.1:99999")) {
            try (Client client = new Client(odd)) {
                assertThrows(UnavailableException.class, client::stats);
            }
        }
    }

    /** A removal that cannot be sent is kept, and nothing is read until it got through. */
    @Test
    public void anInvalidationIsNotLost() {
        for (OnFailure choice : OnFailure.values()) {
            try (Daemon daemon = new Daemon(); Client client = new Client(Options.at(daemon.location()).onFailure(choice))) {
                Loading rows = rows(client);
                rows.set("a", "old", 600, "t");
                rows.set("b", "other", 600);
                daemon.kill();
                if (choice == OnFailure.RAISE) {
                    assertThrows(UnavailableException.class, () -> rows.table().removeTags("t"));
                } else {
                    assertEquals(-1, rows.table().removeTags("t"));
                }
                daemon.start();
                await(() -> "other".equals(quiet(rows, "b")));
                assertEquals(choice == OnFailure.LOG ? "old" : null, rows.get("a"));
            }
        }
    }

    private static Object quiet(Loading rows, String key) {
        try {
            return rows.get(key);
        } catch (UnavailableException why) {
            return null;
        }
    }

    /** A write that may have been done half is followed by its row's removal. */
    @Test
    public void aWriteThatFailsLeavesNoOldValue() {
        try (Daemon daemon = new Daemon(); Client client = daemon.client()) {
            Loading rows = rows(client);
            rows.set("a", "old", 600);
            rows.set("b", "other", 600);
            daemon.kill();
            assertThrows(UnavailableException.class, () -> rows.set("a", "new", 600));
            assertFalse(rows.table().delete("a"));
            daemon.start();
            await(() -> "other".equals(quiet(rows, "b")));
            assertNull(rows.get("a"));
        }
    }

    /** A daemon that forgot everything has its tables again with the first call. */
    @Test
    public void anotherDaemonAtTheSamePlace() {
        try (Daemon daemon = new Daemon("--arena", "none"); Client client = daemon.client()) {
            Loading rows = rows(client);
            rows.set("a", "old", 600, "t");
            daemon.kill();
            daemon.start();
            assertNull(rows.get("a"));
            rows.set("a", "new", 600, "t");
            assertEquals(1, rows.table().removeTags("t"));
        }
    }

    /** Random calls while the daemon is killed and started: what is read was written last, or is a miss. */
    @Test
    public void restartsInTheMiddle() throws Exception {
        long seed = System.getenv("SEED") == null ? System.nanoTime() : Long.parseLong(System.getenv("SEED"));
        System.out.println("restartsInTheMiddle: SEED=" + seed);
        Random random = new Random(seed);
        try (Daemon daemon = new Daemon(); Client client = daemon.client()) {
            Loading rows = rows(client);
            Map<String, Object> last = new LinkedHashMap<>();
            CompletableFuture<Void> killer = CompletableFuture.runAsync(() -> {
                for (int i = 0; i < 5; i++) {
                    LockSupport.parkNanos(150_000_000);
                    daemon.kill();
                    daemon.start();
                }
            });
            int reads = 0;
            long end = System.nanoTime() + Daemon.PATIENCE * 1_000_000;
            // On a busy machine the daemon is away again before a removal got through, and nothing is read until then.
            for (int step = 0; !killer.isDone() || step < 1_000 || reads == 0 && System.nanoTime() - end < 0; step++) {
                String key = "k" + random.nextInt(20);
                try {
                    if (random.nextInt(3) == 0) {
                        // Until it is known to be stored, nothing is to be found.
                        last.put(key, "nothing");
                        rows.set(key, "v" + step, 600, "t" + random.nextInt(3));
                        last.put(key, "v" + step);
                    } else if (random.nextInt(10) == 0) {
                        String tag = "t" + random.nextInt(3);
                        rows.table().removeTags(tag);
                    } else if (random.nextInt(5) == 0) {
                        last.put(key, "nothing");
                        rows.table().delete(key);
                    } else {
                        Object value = rows.get(key);
                        reads += value == null ? 0 : 1;
                        assertTrue(key + " is " + value, value == null || value.equals(last.get(key)));
                    }
                } catch (UnavailableException away) {
                    LockSupport.parkNanos(1_000_000);
                }
            }
            killer.get(Daemon.PATIENCE, TimeUnit.MILLISECONDS);
            assertTrue("nothing was read", reads > 0);
        }
    }

    static void run(Path folder, String command) throws Exception {
        Process process = new ProcessBuilder("sh", "-ec", command).directory(folder.toFile()).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(said, 0, process.waitFor());
    }

    static SSLContext trusting(Path certificate) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream in = Files.newInputStream(certificate)) {
            store.setCertificateEntry("ours", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    @Test
    public void tlsAndLogin() throws Exception {
        Path folder = Files.createTempDirectory("sqlcached-tls");
        for (String name : List.of("here", "there")) {
            run(folder, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name
                    + " -keyout " + name + ".key -out " + name + ".pem -addext subjectAltName="
                    + (name.equals("here") ? "IP:127.0.0.1" : "DNS:there"));
        }
        Files.writeString(folder.resolve("users"), "app:secret word\n");
        try (Daemon daemon = new Daemon(
                "-Z", "-o", "ssl_chain_cert=" + folder.resolve("here.pem") + ",ssl_key=" + folder.resolve("here.key"),
                "-Y", folder.resolve("users").toString())) {
            Options options = Daemon.patient(daemon.location()).tls(trusting(folder.resolve("here.pem")));
            try (Client client = new Client(options.login("app", "secret word"))) {
                Loading rows = rows(client);
                byte[] large = new byte[500_000];
                new Random(1).nextBytes(large);
                rows.set("a", large, 60);
                org.junit.Assert.assertArrayEquals(large, (byte[]) rows.get("a"));
                assertTrue(rows.table().set(rows.write("b", "x", 60, List.of()).mode(Write.Mode.ADD)));
            }
            List<Options> wrong = new ArrayList<>(List.of(
                    options, options.login("app", "other"), options.login("nobody", "secret word"),
                    options.tls(trusting(folder.resolve("there.pem"))).login("app", "secret word"),
                    options.tls(SSLContext.getDefault()).login("app", "secret word")));
            for (Options each : wrong) {
                try (Client client = new Client(each)) {
                    SqlcachedException why = assertThrows(SqlcachedException.class, () -> rows(client).get("a"));
                    assertFalse(why.getMessage(), why.getMessage().contains("secret"));
                }
            }
            assertFalse(options.login("app", "secret word").toString().contains("secret"));
        }
        try (Daemon daemon = new Daemon(
                "-Z", "-o", "ssl_chain_cert=" + folder.resolve("there.pem") + ",ssl_key=" + folder.resolve("there.key"))) {
            // It is trusted, but has another host's certificate.
            Options options = Daemon.patient(daemon.location()).tls(trusting(folder.resolve("there.pem")));
            try (Client client = new Client(options)) {
                assertThrows(UnavailableException.class, client::stats);
            }
        }
        run(folder, "rm -r " + folder);
    }
}
