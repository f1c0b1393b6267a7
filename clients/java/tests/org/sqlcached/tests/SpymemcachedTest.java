package org.sqlcached.tests;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.MemcachedClient;
import org.junit.Test;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** Rows that spymemcached reads and writes, too, also those of several daemons. */
public class SpymemcachedTest extends PageTest {
    private static MemcachedClient spy(String... locations) throws Exception {
        List<InetSocketAddress> all = new ArrayList<>();
        for (String each : locations) {
            all.add(new InetSocketAddress("127.0.0.1", Integer.parseInt(each.split(":")[1])));
        }
        return new MemcachedClient(
                new ConnectionFactoryBuilder()
                        .setLocatorType(ConnectionFactoryBuilder.Locator.CONSISTENT)
                        .setHashAlg(DefaultHashAlgorithm.KETAMA_HASH)
                        .setOpTimeout(Daemon.PATIENCE)
                        .setDaemon(true)
                        .build(),
                all);
    }

    @Test
    public void spymemcachedOnTheSameRows() throws Exception {
        MemcachedClient spy = spy(daemon.location());
        try {
            table.count();
            List<Object> values = List.of(
                    "text", 1, 1L << 40, -5, -6L, true, false, new Date(77), (byte) 9, 1.5f, 2.5, List.of("a", "b"), "long ".repeat(9_000));
            for (Object value : values) {
                assertTrue(spy.set("page:k", 60, value).get());
                assertEquals(value, rows.get("k"));
            }
            for (Object value : List.of("text", "ä", List.of(1, 2), new Date(5))) {
                rows.set("k", value, 60);
                assertEquals(value, spy.get("page:k"));
            }
            rows.set("k", new byte[] {1, 2}, 60);
            assertArrayEquals(new byte[] {1, 2}, (byte[]) spy.get("page:k"));
        } finally {
            spy.shutdown();
        }
    }

    @Test
    public void severalDaemonsShareTheKeysAsSpymemcachedDoes() throws Exception {
        try (Daemon second = new Daemon(); Client other = second.client()) {
            MemcachedClient spy = spy(daemon.location(), second.location());
            try {
                Table both = new Table(List.of(client, other), new Definition("page"));
                Loading values = new Loading(both, new Values());
                both.clear();
                Set<String> keys = new LinkedHashSet<>();
                for (int i = 0; i < 500; i++) {
                    keys.add("key " + i);
                    keys.add("k" + i);
                    values.set("k" + i, "v" + i, 600, "t");
                    values.set("key " + i, "v" + i, 600, "t");
                    assertEquals("v" + i, spy.get("page:k" + i));
                }
                assertEquals(1_000, both.count());
                assertTrue(new Table(other, new Definition("page")).count() > 100);
                assertTrue(table.count() > 100);
                assertEquals(keys, both.getAll(keys).keySet());
                assertEquals(1_000, both.removeTags("t"));
            } finally {
                spy.shutdown();
            }
        }
    }
}
