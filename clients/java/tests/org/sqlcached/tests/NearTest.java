package org.sqlcached.tests;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotSame;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.sqlcached.tests.FailureTest.await;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.KeyType;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;
import org.sqlcached.client.NearCache;
import org.sqlcached.client.Options;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.map.CachedMap;

/** Copies of values in this process are never older than they may be. */
public class NearTest extends CopyTest {
    @Test
    public void aCopyAnswersUntilTheRowLeaves() {
        Loading rows = rows(client, "answers");
        NearCache near = heard(rows, Near.entries(100));
        rows.set("a", "one", 600);
        assertEquals("one", rows.get("a"));
        assertEquals(0, near.hits());
        for (int n = 1; n <= 5; n++) {
            assertEquals("one", rows.get("a"));
            assertEquals(n, near.hits());
        }
        assertEquals("one", rows.getOrCompute("a", 60, List.of(), key -> "computed"));
        assertEquals(Map.of("a", "one"), CachedMapOf(rows).getAll(List.of("a", "b")));
        assertEquals(7, near.hits());
        rows(other, "answers").set("a", "two", 600);
        await(() -> "two".equals(rows.get("a")));
        rows(other, "answers").table().delete("a");
        await(() -> rows.get("a") == null);
        assertEquals(0, near.size());
        assertThrows(IllegalStateException.class, () -> rows.near(Near.entries(1)));
    }

    private static CachedMap<String, Object> CachedMapOf(Loading rows) {
        return new CachedMap<>(rows, KeyType.strings(), 600);
    }

    @Test
    public void whatThisProcessChangesIsSeenAtOnce() {
        Loading rows = rows(client, "atonce");
        heard(rows, Near.entries(100));
        CachedMap<String, Object> map = CachedMapOf(rows);
        Table table = rows.table();
        for (int round = 0; round < 50; round++) {
            String key = "k" + round % 3;
            map.set(key, round, "tag");
            assertEquals(round, map.get(key));
            assertEquals(round, map.get(key));
            switch (round % 10) {
                case 0 -> table.delete(key);
                case 1 -> map.remove(key);
                case 2 -> map.clear();
                case 3 -> map.removeTags("tag");
                case 4 -> map.removeWhere("key = ?", key);
                case 5 -> table.removePrefix("k");
                case 6 -> table.deleteAll(List.of(key));
                case 7 -> table.touch(key, 0);
                case 8 -> table.delete(key, table.get(key).cas());
                default -> table.drop();
            }
            assertNull("round " + round, map.get(key));
            map.putAll(Map.of(key, -round));
            assertEquals(-round, map.get(key));
            assertEquals((Object) (1 - round), map.merge(key, 1, (old, one) -> (int) old + (int) one));
            assertEquals(1 - round, map.get(key));
            table.set(rows.write(key, 8, 600, List.of()));
            assertEquals(8, map.get(key));
            assertEquals(Long.valueOf(10), table.add(key, 2));
            assertEquals(10, map.get(key));
        }
    }

    @Test
    public void readersCannotSpoilACopy() {
        Loading rows = rows(client, "spoil");
        NearCache near = heard(rows, Near.entries(100));
        byte[] data = {1, 2, 3};
        rows.set("bytes", data, 600);
        rows.set("list", new ArrayList<>(List.of(1)), 600);
        for (int round = 0; round < 3; round++) {
            byte[] found = (byte[]) rows.get("bytes");
            assertArrayEquals(data, found);
            found[0] = 9;
            @SuppressWarnings("unchecked")
            List<Integer> list = (List<Integer>) rows.get("list");
            assertEquals(List.of(1), list);
            list.add(2);
        }
        assertEquals(4, near.hits());
        Loading shared = rows(client, "shared");
        heard(shared, Near.entries(100).shared());
        shared.set("page", new ClientTest.Page("t", 1), 600);
        assertNotSame(null, shared.get("page"));
        assertSame(shared.get("page"), shared.get("page"));
    }

    @Test
    public void thereAreNotTooMany() {
        Loading rows = rows(client, "bound");
        NearCache near = heard(rows, Near.entries(10));
        for (int n = 0; n < 100; n++) {
            rows.set("k" + n, n, 600);
        }
        for (int n = 0; n < 100; n++) {
            assertEquals(n, rows.get("k" + n));
            // One that is used often stays.
            rows.get("k0");
            assertTrue(near.size() <= 10);
        }
        assertEquals(100, near.hits());
        // Copies that were dropped do not count for ever.
        for (int n = 0; n < 100; n++) {
            rows.set("same", n, 600);
            assertEquals(n, rows.get("same"));
        }
        assertTrue(near.size() <= 10);
    }

    @Test
    public void deadlines() throws Exception {
        Loading rows = rows(client, "deadline");
        NearCache near = heard(rows, Near.entries(10));
        rows.set("a", "x", 2);
        assertEquals("x", rows.get("a"));
        await(() -> rows.get("a") == null);
        assertEquals(0, near.size());
    }

    /** An answer that was on its way while the row changed is not kept. */
    @Test
    public void aReadThatIsOvertaken() throws Exception {
        try (Proxy proxy = new Proxy(daemon); Client slow = new Client(Daemon.patient(proxy.location()).sqlLocation("127.0.0.1:" + daemon.sqlPort()))) {
            Loading rows = rows(slow, "overtaken");
            NearCache near = heard(rows, Near.entries(10).staleness(Duration.ofMinutes(1)));
            AnnouncementsTest.Heard heard = new AnnouncementsTest.Heard();
            rows.table().listen(heard);
            heard.begin();
            Loading others = rows(other, "overtaken");
            others.set("a", "old", 600);
            assertNull(rows.get("no such key"));
            proxy.hold();
            AtomicReference<Object> seen = new AtomicReference<>();
            Thread reader = new Thread(() -> seen.set(rows.get("a")));
            reader.start();
            assertTrue(proxy.held.await(Daemon.PATIENCE, TimeUnit.MILLISECONDS));
            others.set("a", "new", 600);
            assertEquals("INVALIDATED a", heard.next());
            proxy.letGo();
            reader.join(Daemon.PATIENCE);
            assertEquals("old", seen.get());
            assertEquals("new", rows.get("a"));
            assertEquals(0, near.hits());
            assertEquals("new", rows.get("a"));
            assertEquals(1, near.hits());
        }
    }

    /** While the daemon is not heard, no copy is believed; and none that was kept before, when it is heard again. */
    @Test
    public void aSilentConnection() throws IOException {
        try (Proxy proxy = new Proxy(daemon.sqlPort());
                Client own = new Client(Daemon.patient(daemon.location()).sqlLocation(proxy.location()))) {
            Loading rows = rows(own, "quiet");
            NearCache near = heard(rows, Near.entries(10).staleness(Duration.ofSeconds(1)));
            Loading others = rows(other, "quiet");
            others.set("a", "old", 600);
            rows.get("a");
            assertEquals("old", rows.get("a"));
            proxy.hold();
            others.set("a", "new", 600);
            long since = System.nanoTime();
            await(() -> "new".equals(rows.get("a")));
            assertTrue(System.nanoTime() - since < 10_000_000_000L);
            assertFalse(near.isHeard());
            long hits = near.hits();
            assertEquals("new", rows.get("a"));
            assertEquals(hits, near.hits());
            proxy.letGo();
            await(near::isHeard);
            proxy.cut();
            others.set("a", "last", 600);
            await(near::isHeard);
            await(() -> "last".equals(rows.get("a")));
        }
    }

    /** A removal that waits for the daemon holds for the copies, too. */
    @Test
    public void aRemovalThatWaits() throws IOException {
        try (Daemon own = new Daemon(); Client away = new Client(Options.at(own.location()))) {
            Loading rows = rows(away, "waits");
            heard(rows, Near.entries(10).staleness(Duration.ofMinutes(1)));
            rows.set("a", "old", 600);
            rows.set("b", "old", 600);
            assertEquals("old", rows.get("a"));
            assertEquals("old", rows.get("b"));
            own.kill();
            assertEquals(-1, rows.table().removeWhere("key = 'b'"));
            assertNull(rows.get("a"));
            assertNull(rows.get("b"));
            own.start();
            await(() -> "old".equals(rows.get("a")));
            assertNull(rows.get("b"));
        }
    }

    @Test
    public void severalDaemons() {
        try (Daemon second = new Daemon(); Client one = daemon.client(); Client two = second.client()) {
            List<Client> both = List.of(one, two);
            Loading rows = new Loading(new Table(both, new Definition("several")), new Values());
            NearCache near = heard(rows, Near.entries(100));
            for (int n = 0; n < 20; n++) {
                rows.set("k" + n, n, 600);
                assertEquals(n, rows.get("k" + n));
                assertEquals(n, rows.get("k" + n));
            }
            assertEquals(20, near.hits());
            second.kill();
            await(() -> !near.isHeard());
            long hits = near.hits();
            for (int n = 0; n < 20; n++) {
                try {
                    rows.get("k" + n);
                } catch (org.sqlcached.client.UnavailableException away) {
                    // It is the second daemon's.
                }
            }
            long more = near.hits() - hits;
            assertTrue(more + " copies of the first are used", more > 0 && more < 20);
        }
    }

    @Test
    public void optionsThatAreWrong() {
        assertThrows(IllegalArgumentException.class, () -> Near.entries(0));
        assertThrows(IllegalArgumentException.class, () -> Near.entries(1).staleness(Duration.ofMillis(10)));
        assertNull(Near.named(name -> null));
        assertEquals(
                new Near(7, Duration.ofSeconds(3), true),
                Near.named(Map.of("near", "7", "near_staleness", "3", "near_shared", "true")::get));
    }
}
