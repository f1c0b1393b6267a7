package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.Test;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;

/** Values that are computed once, and those that do not load. */
public class LoadingTest extends PageTest {
    @Test
    public void classesMustBeAllowed() {
        Loading strict = new Loading(table, new Values());
        rows.set("page", new ClientTest.Page("t", 1), 60);
        rows.set("nested", new ArrayList<>(List.of(new ClientTest.Page("t", 1))), 60);
        for (String key : List.of("page", "nested")) {
            assertNull(strict.get(key));
            // It was removed, so that nobody tries again.
            assertNull(rows.get(key));
        }
        assertEquals(2, strict.broken());
        assertThrows(IllegalArgumentException.class, () -> new Values("!*"));
        assertThrows(IllegalArgumentException.class, () -> new Values("a.B;maxdepth=1"));
    }

    @Test
    public void whatDoesNotLoadIsRemovedAndCounted() {
        byte[] page = rows.values().dump(new ClientTest.Page("t", 1)).data();
        for (int length = 1; length < page.length; length++) {
            table.set(Write.of("cut", Arrays.copyOf(page, length), 1, 60));
            assertNull(rows.get("cut"));
            assertNull(table.get("cut"));
            assertEquals(length, rows.broken());
        }
        for (int flags : new int[] {0x4000, 0x4100, 0x4400, 0x7f00, 0x200 + 2, 0xa00}) {
            table.set(Write.of("odd", "no number at all".getBytes(), flags, 60));
            assertNull(rows.get("odd"));
            assertNull(table.get("odd"));
        }
    }

    /** Many who read values that do not load cause one removal of each and one line in the log. */
    @Test
    public void brokenValuesCauseNoStorm() throws Exception {
        AtomicInteger lines = new AtomicInteger();
        Handler counter = new Handler() {
            @Override
            public void publish(LogRecord said) {
                lines.addAndGet(said.getMessage().contains("storm") ? 1 : 0);
            }

            @Override
            public void flush() {
            }

            @Override
            public void close() {
            }
        };
        Logger log = Logger.getLogger("org.sqlcached");
        counter.setLevel(Level.ALL);
        log.addHandler(counter);
        try {
            Table own = new Table(client, new Definition("storm"));
            Loading readers = new Loading(own, new Values());
            List<String> keys = new ArrayList<>();
            for (int n = 0; n < 50; n++) {
                keys.add("k" + n);
                own.set(Write.of("k" + n, new byte[] {1, 2, 3}, 1, 600));
            }
            together(8, () -> {
                for (int round = 0; round < 20; round++) {
                    assertEquals(Map.of(), readers.readAll(keys));
                    keys.forEach(key -> assertNull(readers.get(key)));
                }
                return null;
            });
            assertEquals(0, own.count());
            // Each may have been seen once by each thread, before the first had removed it.
            assertTrue(readers.broken() + " were broken", readers.broken() >= 50 && readers.broken() <= 8 * 50);
            assertEquals(1, lines.get());
            // Whoever computes it takes the place of a broken one.
            own.set(Write.of("k", new byte[] {1, 2, 3}, 1, 600));
            AtomicInteger computed = new AtomicInteger();
            together(8, () -> readers.getOrCompute("k", 600, List.of(), key -> "v" + computed.incrementAndGet()));
            assertEquals(1, computed.get());
        } finally {
            log.removeHandler(counter);
        }
    }

    private <T> List<T> together(int threads, Callable<T> work) throws Exception {
        ExecutorService all = Executors.newFixedThreadPool(threads);
        try {
            CountDownLatch ready = new CountDownLatch(threads);
            List<Future<T>> futures = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                futures.add(all.submit(() -> {
                    ready.countDown();
                    ready.await();
                    return work.call();
                }));
            }
            List<T> found = new ArrayList<>();
            for (Future<T> each : futures) {
                found.add(each.get(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
            }
            return found;
        } finally {
            all.shutdownNow();
        }
    }

    @Test
    public void oneComputes() throws Exception {
        AtomicInteger count = new AtomicInteger();
        List<Object> found = together(10, () -> rows.getOrCompute("k", 60, List.of("t"), key -> "v" + count.incrementAndGet()));
        assertEquals(1, count.get());
        assertEquals(Set.of("v1"), Set.copyOf(found));
        assertEquals(1, table.removeTags("t"));
    }

    @Test
    public void aValueThatIsOutOfDateIsNotStored() {
        Object value = rows.getOrCompute("k", 60, List.of("t"), key -> {
            // Somebody changes the data while it is read.
            table.removeTags("t");
            return "old";
        });
        assertEquals("old", value);
        assertNull(rows.get("k"));
        assertEquals("new", rows.getOrCompute("k", 60, List.of("t"), key -> "new"));
        assertEquals("new", rows.get("k"));
    }

    @Test
    public void whoFailsLeavesThePlace() {
        assertThrows(IllegalStateException.class, () -> rows.getOrCompute("k", 60, List.of(), key -> {
            throw new IllegalStateException();
        }));
        assertNull(rows.getOrCompute("k", 60, List.of(), key -> null));
        assertEquals(0, client.sql("SELECT key FROM page").count());
        assertEquals("v", rows.getOrCompute("k", 60, List.of(), key -> "v"));
    }

    @Test
    public void staleValuesAreUsedWhileOneComputes() {
        rows.set("k", "old", 60, "t");
        assertEquals(1, table.expireTags("t"));
        assertNull(rows.get("k"));
        assertEquals(0, table.count());
        Object value = rows.getOrCompute("k", 60, List.of("t"), key -> {
            assertEquals("old", rows.getOrCompute("k", 60, List.of("t"), other -> "never"));
            return "new";
        });
        assertEquals("new", value);
        assertEquals("new", rows.get("k"));
    }

    @Test
    public void aBigCrowd() throws Exception {
        rows.set("n", 0L, 60);
        together(40, () -> {
            for (int i = 0; i < 50; i++) {
                assertNotNull(table.add("n", 1));
            }
            return null;
        });
        assertEquals(2_000L, rows.get("n"));
    }
}
