package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.sqlcached.tests.FailureTest.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLongArray;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;
import org.sqlcached.client.NearCache;

/** Copies of values in this process, under writes by every protocol and connections that break. */
public class NearRandomTest extends CopyTest {
    /**
     * Keys whose values only grow are read from copies, while others write them by every protocol and connections break.
     * No value is older than the bound allows, and in the end all are the last.
     */
    @Test
    public void valuesAreNeverTooOld() throws Exception {
        long seed = Long.parseLong(System.getenv().getOrDefault("SEED", Long.toString(System.nanoTime())));
        System.out.println("valuesAreNeverTooOld: SEED=" + seed);
        new Growing(seed).run();
    }

    private final class Growing {
        private static final int KEYS = 40;
        private static final int ROUNDS = 20;
        private static final int WRITES = 30;
        private static final Duration BOUND = Duration.ofSeconds(1);

        /** Beside the bound: a tick of the daemon, and what a busy machine takes. */
        private static final long SLACK = 2_000_000_000L;

        private final Random random;
        private final AtomicLongArray written = new AtomicLongArray(KEYS);
        private final AtomicBoolean isOver = new AtomicBoolean();
        private final List<Throwable> failures = java.util.Collections.synchronizedList(new ArrayList<>());

        Growing(long seed) {
            random = new Random(seed);
        }

        void run() throws Exception {
            try (Psql psql = new Psql(daemon);
                    Proxy proxy = new Proxy(daemon.sqlPort());
                    Client cut = new Client(Daemon.patient(daemon.location()).sqlLocation(proxy.location()))) {
                List<Loading> readers = List.of(rows(client, "growing"), rows(cut, "growing"));
                List<NearCache> near = readers.stream().map(each -> heard(each, Near.entries(30).staleness(BOUND))).toList();
                List<Thread> threads = new ArrayList<>();
                for (Loading each : readers) {
                    for (int n = 0; n < 2; n++) {
                        Thread thread = new Thread(() -> read(each));
                        thread.start();
                        threads.add(thread);
                    }
                }
                for (int round = 0; round < ROUNDS && failures.isEmpty(); round++) {
                    for (int write = 1; write <= WRITES; write++) {
                        write(round * WRITES + write, psql, readers.get(0));
                        if (random.nextInt(100) == 0) {
                            proxy.cut();
                        }
                    }
                    readers.forEach(this::settle);
                }
                isOver.set(true);
                for (Thread each : threads) {
                    each.join(Daemon.PATIENCE);
                }
                near.forEach(each -> assertTrue("copies are used", each.hits() > 100));
                assertEquals(List.of(), failures);
            }
        }

        /** Soon after the last write every key has its last value, and keeps it. */
        private void settle(Loading rows) {
            for (int again = 0; again < 2; again++) {
                for (int key = 0; key < KEYS; key++) {
                    int place = key;
                    if (again == 0) {
                        await(() -> number(rows.get("k" + place)) == written.get(place));
                    } else {
                        assertEquals(written.get(place), number(rows.get("k" + place)));
                    }
                }
            }
        }

        private void write(int value, Psql psql, Loading own) {
            int key = random.nextInt(KEYS);
            String name = "k" + key;
            Loading foreign = rows(other, "growing");
            switch (random.nextInt(5)) {
                case 0 -> psql.run("REPLACE INTO growing (key, body, _flags) VALUES ('" + name + "', '" + value + "', 16384)");
                case 1 -> {
                    psql.run("DELETE FROM growing WHERE key = '" + name + "'");
                    foreign.set(name, value, 600);
                }
                case 2 -> foreign.set(name, value, 600);
                case 3 -> foreign.table().setAll(List.of(
                        foreign.write(name, value, 600, List.of()), foreign.write("other", 1, 600, List.of())));
                default -> {
                    own.set(name, value, 600);
                    // This process sees what it wrote.
                    assertEquals((Object) value, own.get(name));
                }
            }
            written.set(key, value);
        }

        private static long number(Object value) {
            return value == null ? 0 : (int) value;
        }

        private void read(Loading rows) {
            Random own = new Random();
            // What was written of each key when it was looked at last, and when.
            long[] known = new long[KEYS];
            long[] since = new long[KEYS];
            long[] before = new long[KEYS];
            try {
                while (!isOver.get()) {
                    int key = own.nextInt(KEYS);
                    long now = System.nanoTime();
                    if (now - since[key] > BOUND.toNanos() + SLACK) {
                        // What was known the last time is older than any copy may be.
                        before[key] = known[key];
                        known[key] = written.get(key);
                        since[key] = now;
                    }
                    Object value = rows.get("k" + key);
                    // A row that is removed and not yet written again is none.
                    assertTrue("k" + key + " is " + value + " after " + before[key], value == null || number(value) >= before[key]);
                }
            } catch (Throwable why) {
                failures.add(why);
            }
        }
    }
}
