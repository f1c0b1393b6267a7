package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.sqlcached.tests.FailureTest.await;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Options;
import org.sqlcached.client.RefusedException;
import org.sqlcached.client.RowListener;
import org.sqlcached.client.Subscription;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** Listeners hear which rows leave a table, whoever makes them leave. */
public class AnnouncementsTest {
    private static Daemon daemon;
    private static Psql psql;
    private Client client;
    private Client other;

    /** What a listener hears, one after another. */
    static final class Heard implements RowListener {
        private static final String ALL = "all";
        private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

        @Override
        public void left(String key, Cause cause) {
            events.add(cause + " " + key);
        }

        @Override
        public void allMayHaveChanged() {
            events.add(ALL);
        }

        /** The next event; "null" if none comes. */
        String next() {
            try {
                return String.valueOf(events.poll(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
            } catch (InterruptedException why) {
                throw new IllegalStateException(why);
            }
        }

        /** Waits for the sign that all may have changed, and forgets what came before. */
        void begin() {
            for (String event; !(event = next()).equals(ALL); ) {
                assertFalse("nothing is heard", event.equals("null"));
            }
        }
    }

    @BeforeClass
    public static void start() {
        daemon = new Daemon();
        psql = new Psql(daemon);
    }

    @AfterClass
    public static void stop() {
        psql.close();
        daemon.close();
    }

    @Before
    public void open() {
        client = daemon.client();
        other = daemon.client();
    }

    @After
    public void close() {
        client.close();
        other.close();
    }

    private static Loading rows(Client client, String table) {
        return new Loading(new Table(client, new Definition(table)), new Values());
    }

    @Test
    public void everyWayOfARowToLeave() throws Exception {
        Loading rows = rows(other, "leaving");
        Heard heard = new Heard();
        for (Subscription each : rows(client, "leaving").table().listen(heard)) {
            heard.begin();
            await(each::isHeard);
        }
        for (String key : List.of("replaced", "removed", "counted", "tagged", "a b", "ä", "\0", "k".repeat(2_000))) {
            rows.set(key, 1, 600, "tag");
        }
        rows.set("replaced", 2, 600);
        assertEquals("INVALIDATED replaced", heard.next());
        rows.table().delete("removed");
        assertEquals("INVALIDATED removed", heard.next());
        rows.table().add("counted", 1);
        assertEquals("INVALIDATED counted", heard.next());
        for (String key : List.of("a b", "ä", "\0", "k".repeat(2_000))) {
            rows.table().delete(key);
            assertEquals("INVALIDATED " + key, heard.next());
        }
        rows.set("tagged", 1, 600, "other");
        assertEquals("INVALIDATED tagged", heard.next());
        rows.table().expireTags("other");
        assertEquals("INVALIDATED tagged", heard.next());
        rows.table().removeTags("other");
        assertEquals("INVALIDATED tagged", heard.next());
        psql.run("UPDATE leaving SET body = '7' WHERE key = 'counted'");
        assertEquals("INVALIDATED counted", heard.next());
        psql.run("UPDATE leaving SET _ttl = 500 WHERE key = 'counted'");
        assertEquals("INVALIDATED counted", heard.next());
        psql.run("DELETE FROM leaving WHERE key = 'counted'");
        assertEquals("INVALIDATED counted", heard.next());
        rows.set("short", 1, 1);
        assertEquals("EXPIRED short", heard.next());
        psql.run("TRUNCATE leaving");
        assertEquals(Heard.ALL, heard.next());
    }

    @Test
    public void aConnectionThatIsLost() throws IOException {
        try (Proxy proxy = new Proxy(daemon.sqlPort());
                Client own = new Client(Daemon.patient(daemon.location()).sqlLocation(proxy.location()))) {
            Heard heard = new Heard();
            Subscription subscription = rows(own, "lost").table().listen(heard).get(0);
            heard.begin();
            for (int round = 0; round < 3; round++) {
                await(subscription::isHeard);
                proxy.cut();
                // Nothing is said of what happens meanwhile, so everything may have.
                assertEquals(Heard.ALL, heard.next());
            }
            rows(other, "lost").set("a", 1, 600);
            rows(other, "lost").table().delete("a");
            assertEquals("INVALIDATED a", heard.next());
        }
    }

    /** A connection that is there and says nothing looks like a table that nobody changes. */
    @Test
    public void aConnectionThatIsSilent() throws IOException {
        try (Proxy proxy = new Proxy(daemon.sqlPort())) {
            Options options = Options.at(daemon.location()).timeouts(Duration.ofSeconds(2), Duration.ofSeconds(60));
            try (Client own = new Client(options.sqlLocation(proxy.location()))) {
                Heard heard = new Heard();
                Subscription subscription = rows(own, "silent").table().listen(heard).get(0);
                heard.begin();
                await(subscription::isHeard);
                int before = proxy.connections.get();
                proxy.hold();
                await(() -> !subscription.isHeard());
                proxy.letGo();
                assertEquals(Heard.ALL, heard.next());
                assertTrue(proxy.connections.get() > before);
            }
        }
    }

    @Test
    public void aDaemonThatIsStartedAgain() {
        try (Daemon own = new Daemon(); Client here = own.client(); Client there = own.client()) {
            Heard heard = new Heard();
            rows(here, "again").table().listen(heard);
            heard.begin();
            rows(there, "again").set("a", 1, 600);
            own.kill();
            own.start();
            assertEquals(Heard.ALL, heard.next());
            rows(there, "again").set("a", 2, 600);
            assertEquals("INVALIDATED a", heard.next());
        }
    }

    @Test
    public void aListenerBeforeTheDaemon() {
        try (Daemon own = new Daemon(); Client here = own.client(); Client there = own.client()) {
            own.kill();
            Heard heard = new Heard();
            Subscription subscription = rows(here, "early").table().listen(heard).get(0);
            assertFalse(subscription.isHeard());
            own.start();
            heard.begin();
            rows(there, "early").set("a", 1, 600);
            rows(there, "early").set("a", 2, 600);
            assertEquals("INVALIDATED a", heard.next());
        }
    }

    /** Whoever makes the table again does not know of the listeners. */
    @Test
    public void aTableThatIsMadeAgain() {
        Heard heard = new Heard();
        rows(client, "made").table().listen(heard);
        heard.begin();
        rows(client, "made").set("a", 1, 600);
        psql.run("DROP TABLE made");
        assertEquals(Heard.ALL, heard.next());
        psql.run(String.join("; ", new Definition("made").statements()));
        assertEquals(Heard.ALL, heard.next());
        Loading rows = rows(other, "made");
        rows.set("a", 1, 600);
        rows.table().delete("a");
        assertEquals("INVALIDATED a", heard.next());
    }

    @Test
    public void aChannelOfTheApplication() {
        psql.run(String.join("; ", new Definition("own", Map.of("notify", "Gone 'x'")).statements()));
        Heard heard = new Heard();
        rows(client, "own").table().listen(heard);
        heard.begin();
        // Others may use the channel for what they like.
        psql.run("NOTIFY \"Gone 'x'\", 'hello'");
        psql.run("NOTIFY \"Gone 'x'\", '{\"event\":\"invalidate\",\"table\":\"elsewhere\",\"key\":\"own:a\"}'");
        rows(other, "own").set("a", 1, 600);
        rows(other, "own").table().delete("a");
        assertEquals("INVALIDATED a", heard.next());
    }

    @Test
    public void listenersComeAndGo() {
        Heard first = new Heard();
        Heard second = new Heard();
        Table table = rows(client, "many").table();
        Subscription one = table.listen(first).get(0);
        first.begin();
        Subscription two = table.listen(second).get(0);
        second.begin();
        rows(other, "many").set("a", 1, 600);
        rows(other, "many").set("a", 2, 600);
        assertEquals("INVALIDATED a", first.next());
        assertEquals("INVALIDATED a", second.next());
        one.close();
        rows(other, "many").set("a", 3, 600);
        assertEquals("INVALIDATED a", second.next());
        assertEquals(List.of(), List.copyOf(first.events));
        two.close();
        assertFalse(two.isHeard());
        await(() -> Thread.getAllStackTraces().keySet().stream().noneMatch(each -> each.getName().equals("sqlcached-announcements")));
        table.listen(first);
        first.begin();
        client.close();
        assertThrows(IllegalStateException.class, () -> table.listen(first));
    }

    /** A listener that fails does not take events away from others. */
    @Test
    public void aListenerThatFails() {
        Table table = rows(client, "failing").table();
        table.listen(new RowListener() {
            @Override
            public void left(String key, Cause cause) {
                throw new IllegalStateException("it fails");
            }

            @Override
            public void allMayHaveChanged() {
                throw new IllegalStateException("it fails, too");
            }
        });
        Heard heard = new Heard();
        table.listen(heard);
        heard.begin();
        rows(other, "failing").set("a", 1, 600);
        rows(other, "failing").set("a", 2, 600);
        assertEquals("INVALIDATED a", heard.next());
    }

    /** A role proves its password, within TLS. What it may not read it does not hear. */
    @Test
    public void rolesAndTls() throws Exception {
        Path folder = Files.createTempDirectory("sqlcached-roles");
        FailureTest.run(folder, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=here"
                + " -keyout key.pem -out cert.pem -addext subjectAltName=IP:127.0.0.1");
        String chief = System.getProperty("user.name");
        Files.writeString(folder.resolve("rules"), "host all " + chief + " 127.0.0.1/32 trust\n"
                + "hostssl all all all scram-sha-256 protocol=sql\nhostssl all all all password protocol=memcached\n");
        try (Daemon own = new Daemon(
                        "--hba-file", folder.resolve("rules").toString(), "--roles-file", folder.resolve("roles").toString(),
                        "-Z", "--ssl-cert-file", folder.resolve("cert.pem").toString(),
                        "--ssl-key-file", folder.resolve("key.pem").toString());
                Psql superuser = new Psql(own)) {
            superuser.run("CREATE USER app PASSWORD 'secret word'");
            superuser.run(String.join("; ", new Definition("guarded").statements()));
            superuser.run("GRANT SELECT, INSERT, UPDATE, DELETE ON guarded TO app");
            Options options = Daemon.patient(own.location()).tls(FailureTest.trusting(folder.resolve("cert.pem")));
            try (Client app = new Client(options.login("app", "secret word"))) {
                Loading rows = rows(app, "guarded");
                Heard heard = new Heard();
                RefusedException why = assertThrows(RefusedException.class, () -> rows.table().listen(heard));
                assertTrue(why.getMessage(), why.getMessage().endsWith("ALTER TABLE \"guarded\" SET (notify = 'guarded')"));
                superuser.run("ALTER TABLE guarded SET (notify = 'guarded')");
                Subscription subscription = rows.table().listen(heard).get(0);
                heard.begin();
                rows.set("a", 1, 600);
                rows.set("a", 2, 600);
                assertEquals("INVALIDATED a", heard.next());
                superuser.run("REVOKE SELECT ON guarded FROM app");
                await(() -> !subscription.isHeard());
                superuser.run("GRANT SELECT ON guarded TO app");
                heard.begin();
            }
        }
        FailureTest.run(folder, "rm -r " + folder);
    }
}
