import java.util.List;
import java.util.Map;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;
import org.sqlcached.client.NearCache;
import org.sqlcached.client.Options;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import org.sqlcached.client.Write;

/** This project's client. */
final class SqlcachedPeers {
    private static final long HOUR = 3_600;

    private SqlcachedPeers() {
    }

    /** By its connections, with copies in this JVM in a table of their own. */
    static Peer sqlcached(String port, String process, int copies) throws InterruptedException {
        Client client = new Client("127.0.0.1:" + port);
        Loading rows = new Loading(new Table(client, new Definition("bench")), new Values());
        Loading copied = new Loading(new Table(client, new Definition("bench_near")), new Values());
        // As the others here: all readers get the same bytes.
        NearCache near = copied.near(Near.entries(2 * copies).shared());
        while (!near.isHeard()) {
            Thread.sleep(10);
        }
        return new Own("sqlcached", process, rows) {
            @Override
            Object near(String key) {
                return copied.get(key);
            }

            @Override
            void putNear(String key, byte[] value) {
                copied.set(key, value, Write.FOREVER);
            }
        };
    }

    /** Read in shared memory, with the C library. */
    static Peer shared(String socket, String process, String library) throws InterruptedException {
        Client client = new Client(Options.at(socket).sharedMemory(library));
        Loading rows = new Loading(new Table(client, new Definition("bench_shared")), new Values());
        rows.set("first", 1, HOUR);
        while (rows.get("first") != null && client.sharedReads() == 0) {
            Thread.sleep(10);
        }
        return new Own("sqlcached shared", process, rows);
    }

    private static class Own extends Peer {
        private final Loading rows;

        Own(String name, String process, Loading rows) {
            super(name, process);
            this.rows = rows;
        }

        @Override
        Object get(String key) {
            return rows.get(key);
        }

        @Override
        void put(String key, byte[] value) {
            rows.set(key, value, HOUR);
        }

        @Override
        Map<String, ?> getAll(List<String> keys) {
            return rows.readAll(keys);
        }

        @Override
        void putTagged(String key, byte[] value, String tag) {
            rows.set(key, value, HOUR, tag);
        }

        @Override
        void removeTag(String tag, int count) {
            check(rows.table().removeTags(tag) == count);
        }
    }
}
