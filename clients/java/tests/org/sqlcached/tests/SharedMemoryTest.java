package org.sqlcached.tests;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Options;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;

/** Rows that are read in the daemon's shared memory, with a Java that calls C functions. */
public class SharedMemoryTest {
    private static final String LIBRARY = System.getProperty("sqlcached.shared_memory");
    private static final int STEPS = 3_000;

    private Daemon daemon;
    private Client client;
    private Loading rows;

    @Before
    public void open() {
        daemon = new Daemon("-I", "4m");
        client = shared(daemon);
        rows = rows(client);
        untilRead(rows, client);
    }

    @After
    public void close() {
        client.close();
        daemon.close();
    }

    private static Client shared(Daemon daemon) {
        return new Client(Daemon.patient(daemon.socket()).sharedMemory(LIBRARY));
    }

    private static Loading rows(Client client) {
        return new Loading(new Table(client, new Definition("page")), new Values("org.sqlcached.tests.**"));
    }

    /** The file is looked for once in a second, when the table is there. */
    private static void untilRead(Loading rows, Client client) {
        rows.set("first", 1, Write.FOREVER);
        long before = client.sharedReads();
        FailureTest.await(() -> Integer.valueOf(1).equals(rows.get("first")) && client.sharedReads() > before);
    }

    /** Reads, and says how many of the reads shared memory answered. */
    private long answered(Runnable reads) {
        long before = client.sharedReads();
        reads.run();
        return client.sharedReads() - before;
    }

    @Test
    public void keysAndValuesOfEveryKind() {
        try (Client writer = daemon.client()) {
            Loading other = rows(writer);
            List<Object> values = List.of("", "text", "ä😀", 1, -1L, 2.5, true, new byte[0], new byte[] {0, -1}, new ArrayList<>(List.of("a", 1)));
            for (String key : ClientTest.keys()) {
                assertNull(rows.get(key));
                for (Object value : values) {
                    other.set(key, value, 600, "t");
                    Object found = rows.get(key);
                    if (value instanceof byte[] bytes) {
                        assertArrayEquals(key, bytes, (byte[]) found);
                    } else {
                        assertEquals(key, value, found);
                    }
                }
            }
            assertEquals(1, answered(() -> rows.get("a")));
            // Keys that are too long for memcached's protocol go by SQL.
            assertEquals(0, answered(() -> rows.get("k".repeat(2_000))));
            assertEquals(ClientTest.keys().size(), rows.readAll(ClientTest.keys()).size());
            // A row and its version are those that the daemon says.
            assertEquals(other.table().get("a").cas(), rows.table().get("a").cas());
            assertEquals(other.table().get("a").flags(), rows.table().get("a").flags());
        }
    }

    /** A row of more than a mebibyte is the daemon's to send. */
    @Test
    public void largeValues() {
        for (int size : new int[] {100, 65_536, 1_000_000, 2_000_000}) {
            byte[] value = new byte[size];
            new Random(size).nextBytes(value);
            rows.set("large", value, 600);
            assertArrayEquals((byte[]) rows.get("large"), value);
        }
        assertEquals(0, answered(() -> rows.get("large")));
    }

    /** What another client wrote or removed is seen by each read that begins when that was answered. */
    @Test
    public void aReadSeesWhatWasAnswered() {
        long seed = System.getenv("SEED") == null ? System.nanoTime() : Long.parseLong(System.getenv("SEED"));
        System.out.println("aReadSeesWhatWasAnswered: SEED=" + seed);
        Random random = new Random(seed);
        Map<String, String> expected = new HashMap<>();
        Map<String, String> tags = new HashMap<>();
        try (Client writer = daemon.client()) {
            Table table = rows(writer).table();
            long before = client.sharedReads();
            for (int step = 0; step < STEPS; step++) {
                String key = "k" + random.nextInt(20);
                String tag = "t" + random.nextInt(4);
                switch (random.nextInt(12)) {
                    case 0, 1, 2, 3 -> {
                        String value = "v" + step + "x".repeat(random.nextInt(3_000));
                        rows(writer).set(key, value, random.nextBoolean() ? 600 : Write.FOREVER, tag);
                        expected.put(key, value);
                        tags.put(key, tag);
                    }
                    case 4 -> {
                        table.delete(key);
                        expected.remove(key);
                    }
                    case 5 -> {
                        table.touch(key, 0);
                        expected.remove(key);
                    }
                    case 6 -> {
                        table.removeTags(tag);
                        expected.keySet().removeIf(each -> tag.equals(tags.get(each)));
                    }
                    case 7 -> {
                        table.expireTags(tag);
                        expected.keySet().removeIf(each -> tag.equals(tags.get(each)));
                    }
                    default -> {
                    }
                }
                assertEquals(key, expected.get(key), rows.get(key));
                if (step % 50 == 0) {
                    Map<String, Object> found = new HashMap<>();
                    rows.readAll(List.of("k1", "k2", "k3", "k4", "k5")).forEach((each, loaded) -> found.put(each, loaded.value()));
                    Map<String, Object> right = new HashMap<>(expected);
                    right.keySet().retainAll(List.of("k1", "k2", "k3", "k4", "k5"));
                    assertEquals(right, found);
                }
            }
            assertTrue("most are read in shared memory", client.sharedReads() - before > STEPS / 2);
        }
    }

    @Test
    public void oneComputesAndOldValuesAreNotStored() {
        AtomicInteger computed = new AtomicInteger();
        for (int round = 0; round < 3; round++) {
            assertEquals("value", rows.getOrCompute("sum", 600, List.of("t"), key -> {
                computed.incrementAndGet();
                return "value";
            }));
        }
        assertEquals(1, computed.get());
        rows.table().expireTags("t");
        assertNull(rows.get("sum"));
        assertEquals("new", rows.getOrCompute("sum", 600, List.of("t"), key -> "new"));
        rows.table().delete("sum");
        rows.getOrCompute("sum", 600, List.of("t"), key -> {
            rows.table().removeTags("t");
            return "of before";
        });
        assertNull(rows.get("sum"));
    }

    @Test
    public void valuesThatDoNotLoad() {
        try (Client writer = daemon.client()) {
            new Loading(new Table(writer, new Definition("page")), new Values()).set("strange", new java.net.InetSocketAddress(1), 600);
        }
        assertNull(rows.get("strange"));
        assertNull(rows.get("strange"));
        assertEquals(1, rows.broken());
    }

    /** Copies need deadlines, which the daemon says. */
    @Test
    public void copiesAreKeptToo() {
        org.sqlcached.client.NearCache near = rows.near(org.sqlcached.client.Near.entries(10));
        FailureTest.await(near::isHeard);
        rows.set("a", "value", 600);
        FailureTest.await(() -> "value".equals(rows.get("a")) && near.hits() > 0);
    }

    @Test
    public void tablesComeAndGo() {
        rows.set("a", "old", 600);
        client.sql("DROP TABLE page");
        assertEquals(0, rows.table().removeTags("t"));
        rows.set("a", "new", 600);
        assertEquals("new", rows.get("a"));
        FailureTest.await(() -> answered(() -> assertEquals("new", rows.get("a"))) == 1);
        // Another client's table, which is not shared.
        client.sql("ALTER TABLE page SET (shared_memory = off)");
        assertNull(rows.get("a"));
        rows.set("a", "private", 600);
        assertEquals(0, answered(() -> assertEquals("private", rows.get("a"))));
    }

    @Test
    public void theDaemonIsStartedAgain() {
        rows.set("a", "kept", 600);
        daemon.kill();
        // The rows of a daemon that was killed are there.
        assertEquals(1, answered(() -> assertEquals("kept", rows.get("a"))));
        daemon.start();
        assertEquals("kept", rows.get("a"));
        rows.set("a", "new", 600);
        assertEquals("new", rows.get("a"));
    }

    /** What could not be removed is not read, though the file still has it. */
    @Test
    public void aRemovalThatWaits() {
        rows.set("a", "old", 600);
        daemon.kill();
        assertEquals(-1, rows.table().removeTags("t"));
        assertNull(rows.get("a"));
        daemon.start();
        FailureTest.await(() -> "old".equals(rows.get("a")));
    }

    /** A daemon that forgot everything marks the file, and its own is read from then on. */
    @Test
    public void anotherFile() throws Exception {
        rows.set("a", "old", 600);
        daemon.kill();
        for (String each : List.of("arena", "arena.shared", "arena.shared.hits")) {
            java.nio.file.Files.deleteIfExists(daemon.folder().resolve(each));
        }
        daemon.start();
        rows.set("a", "new", 600);
        // Readers look whether the path still leads to their file once the daemon of it was silent for two seconds.
        FailureTest.await(() -> "new".equals(rows.get("a")));
        FailureTest.await(() -> answered(() -> assertEquals("new", rows.get("a"))) == 1);
    }

    @Test
    public void aDaemonThatComesLater() {
        daemon.kill();
        try (Client early = new Client(Options.at(daemon.socket()).sharedMemory(LIBRARY))) {
            Loading later = rows(early);
            assertThrows(SqlcachedException.class, () -> later.get("a"));
            daemon.start();
            untilRead(later, early);
        }
    }

    /** Threads of both kinds read while clients are closed. What the library holds is not freed under a read. */
    @Test
    public void clientsAreClosedWhileTheyAreRead() throws Exception {
        rows.set("a", "value", 600);
        for (int round = 0; round < 30; round++) {
            Client mine = shared(daemon);
            Loading own = rows(mine);
            AtomicLong reads = new AtomicLong();
            ExecutorService threads = round % 2 == 0 ? Executors.newFixedThreadPool(8) : virtual();
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < 8 * (1 + round % 2 * 10); i++) {
                all.add(threads.submit(() -> {
                    try {
                        while (true) {
                            assertEquals("value", own.get("a"));
                            reads.incrementAndGet();
                        }
                    } catch (IllegalStateException closed) {
                        // So it is meant to end.
                    }
                }));
            }
            FailureTest.await(() -> mine.sharedReads() > 500);
            mine.close();
            for (Future<?> each : all) {
                each.get(Daemon.PATIENCE, TimeUnit.MILLISECONDS);
            }
            threads.shutdown();
            mine.close();
        }
    }

    private static ExecutorService virtual() throws ReflectiveOperationException {
        return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    }

    @Test
    public void settingsThatAreWrong() {
        Options options = Options.at(daemon.socket());
        SqlcachedException why = assertThrows(SqlcachedException.class, () -> new Client(options.sharedMemory("libnothing.so.7")));
        assertTrue(why.getMessage(), why.getMessage().contains("libnothing.so.7 is not found"));
        why = assertThrows(SqlcachedException.class, () -> new Client(options.sharedMemory("libc.so.6")));
        assertTrue(why.getMessage(), why.getMessage().contains("no function sqlcached_open"));
        assertThrows(IllegalArgumentException.class, () -> Options.at(daemon.location()).sharedMemory(LIBRARY));
    }
}
