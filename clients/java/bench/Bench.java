import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import net.spy.memcached.MemcachedClient;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;

/**
 * Microseconds of CPU of one call, of client and server together: get and put of 1 KiB by 1 and 8 threads, and 100 values
 * at once. Arguments: for each of sqlcached, memcached and Redis a port and the server's process. The peers take turns,
 * and the lowest of the rounds counts: other work on the machine makes calls dearer, never cheaper.
 */
public class Bench {
    private static final int KEYS = 10_000;
    private static final int ROUNDS = Integer.getInteger("rounds", 5);
    private static final int CALLS = Integer.getInteger("calls", 30_000);

    /** One cache by its client. */
    interface Peer {
        Object get(String key);

        void put(String key, byte[] value);

        Map<String, ?> getAll(List<String> keys);
    }

    public static void main(String[] arguments) throws Exception {
        String[] names = {"sqlcached", "spymemcached", "Jedis"};
        Peer[] peers = {
            sqlcached(arguments[0]), spymemcached(Integer.parseInt(arguments[2])), jedis(Integer.parseInt(arguments[4]))
        };
        byte[] value = new byte[1_024];
        new Random(1).nextBytes(value);
        for (Peer peer : peers) {
            for (int i = 0; i < KEYS; i++) {
                peer.put("key:" + i, value);
            }
        }
        String[] calls = {"get, 1 thread", "get, 8 threads", "put, 1 thread", "put, 8 threads", "getAll(100)"};
        double[][] best = new double[calls.length][peers.length];
        for (int round = 0; round < ROUNDS + 1; round++) {
            for (int call = 0; call < calls.length; call++) {
                for (int peer = 0; peer < peers.length; peer++) {
                    double cost = cost(peers[peer], arguments[peer * 2 + 1], call, value);
                    // The first round is for the compiler.
                    if (round == 1 || round > 1 && cost < best[call][peer]) {
                        best[call][peer] = cost;
                    }
                }
            }
        }
        System.out.printf("%-16s%12s%14s%8s%n", "CPU in µs", names[0], names[1], names[2]);
        for (int call = 0; call < calls.length; call++) {
            System.out.printf("%-16s%12.1f%14.1f%8.1f%n", calls[call], best[call][0], best[call][1], best[call][2]);
        }
        System.exit(0);
    }

    private static double cost(Peer peer, String process, int call, byte[] value) throws Exception {
        int threads = call == 1 || call == 3 ? 8 : 1;
        int each = (call == 4 ? CALLS / 30 : CALLS) / threads;
        List<Thread> all = new ArrayList<>();
        double before = used(process);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> work(peer, call, value, each));
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        return (used(process) - before) / ((double) each * threads);
    }

    private static void work(Peer peer, int call, byte[] value, int count) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        for (int n = 0; n < count; n++) {
            if (call < 2) {
                check(peer.get("key:" + random.nextInt(KEYS)) != null);
            } else if (call < 4) {
                peer.put("key:" + random.nextInt(KEYS), value);
            } else {
                List<String> keys = new ArrayList<>();
                for (int i = 0; i < 100; i++) {
                    keys.add("key:" + (n * 97 + i * 101) % KEYS);
                }
                check(peer.getAll(keys).size() == 100);
            }
        }
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new IllegalStateException("a value is missing");
        }
    }

    /** Microseconds of CPU that this process and the server have used. */
    private static double used(String process) throws IOException {
        String text = Files.readString(Path.of("/proc", process, "stat"));
        String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ");
        // The kernel counts in hundredths of a second.
        double server = (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) * 10_000.0;
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return server + system.getProcessCpuTime() / 1_000.0;
    }

    private static Peer sqlcached(String port) {
        Loading rows = new Loading(
                new Table(new Client("127.0.0.1:" + port), new Definition("bench")), new Values());
        return new Peer() {
            @Override
            public Object get(String key) {
                return rows.get(key);
            }

            @Override
            public void put(String key, byte[] value) {
                rows.set(key, value, 3_600);
            }

            @Override
            public Map<String, ?> getAll(List<String> keys) {
                return rows.table().getAll(keys);
            }
        };
    }

    private static Peer spymemcached(int port) throws IOException {
        MemcachedClient client = new MemcachedClient(new InetSocketAddress("127.0.0.1", port));
        return new Peer() {
            @Override
            public Object get(String key) {
                return client.get(key);
            }

            @Override
            public void put(String key, byte[] value) {
                try {
                    client.set(key, 3_600, value).get();
                } catch (Exception why) {
                    throw new IllegalStateException(why);
                }
            }

            @Override
            public Map<String, ?> getAll(List<String> keys) {
                return client.getBulk(keys);
            }
        };
    }

    private static Peer jedis(int port) {
        JedisPoolConfig config = new JedisPoolConfig();
        config.setMaxTotal(32);
        config.setMaxIdle(32);
        JedisPool pool = new JedisPool(config, "127.0.0.1", port);
        return new Peer() {
            @Override
            public Object get(String key) {
                try (var jedis = pool.getResource()) {
                    return jedis.get(key.getBytes());
                }
            }

            @Override
            public void put(String key, byte[] value) {
                try (var jedis = pool.getResource()) {
                    jedis.setex(key.getBytes(), 3_600, value);
                }
            }

            @Override
            public Map<String, ?> getAll(List<String> keys) {
                try (var jedis = pool.getResource()) {
                    List<byte[]> found = jedis.mget(keys.stream().map(String::getBytes).toArray(byte[][]::new));
                    Map<String, byte[]> all = new java.util.HashMap<>();
                    for (int i = 0; i < keys.size(); i++) {
                        all.put(keys.get(i), found.get(i));
                    }
                    return all;
                }
            }
        };
    }
}
