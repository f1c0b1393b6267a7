import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Microseconds of CPU of one call, of client and server together: get and put of 1 KiB by 1 and 8 threads, 100 values at once,
 * a read of a copy in the JVM, and the removal of 20 values by a tag among 100,000. {@code run.py} starts the servers.
 *
 * <p>The properties {@code sqlcached}, {@code memcached}, {@code redis} and {@code hazelcast} have a server's port and
 * process, such as {@code 11211,4711}; {@code shared} has sqlcached's socket and the C library. A server without one is
 * left out. The peers take turns, and the lowest of the rounds counts: other work on the machine makes calls dearer,
 * never cheaper. The kernel counts CPU in hundredths of a second, so that each turn makes calls until many of them are
 * used.
 */
public final class Bench {
    private static final int KEYS = Integer.getInteger("keys", 10_000);
    private static final int ROUNDS = Integer.getInteger("rounds", 5);

    /** Microseconds of CPU that a turn uses at least. */
    private static final int TURN = Integer.getInteger("turn", 400_000);

    /** Calls of a turn at most. */
    private static final int MOST = 1 << 24;

    /** Values with tags, and how many have the same one. */
    private static final int TAGGED = Integer.getInteger("tagged", 100_000);
    private static final int OF_A_TAG = 20;
    private static final int TAGS = TAGGED / OF_A_TAG;

    /** Made before, because a copy is read faster than its key is written. */
    private static final String[] NEAR_KEYS = names("near:");
    private static final String[] NAMES = names("key:");

    private Bench() {
    }

    private static String[] names(String begin) {
        String[] all = new String[KEYS];
        for (int i = 0; i < KEYS; i++) {
            all[i] = begin + i;
        }
        return all;
    }

    /** What the names of the calls begin with that are measured. */
    private static final String BEGIN = System.getProperty("begin", "");

    /** What is measured, and by how many threads. */
    private enum Call {
        GET("get, 1 thread", 1),
        GET_8("get, 8 threads", 8),
        PUT("put, 1 thread", 1),
        PUT_8("put, 8 threads", 8),
        GET_ALL("getAll(100)", 1),
        NEAR("near get", 1),
        TAG("a tag of 20", 1);

        private final String label;
        private final int threads;

        Call(String label, int threads) {
            this.label = label;
            this.threads = threads;
        }

        static List<Call> all() {
            return Arrays.stream(values()).filter(call -> call.label.startsWith(BEGIN)).toList();
        }
    }

    /**
     * @param arguments none
     * @throws Exception if a server does not answer
     */
    public static void main(String[] arguments) throws Exception {
        List<Peer> peers = peers();
        byte[] value = new byte[1_024];
        new Random(1).nextBytes(value);
        double[][] best = new double[Call.values().length][peers.size()];
        int[][] counts = new int[Call.values().length][peers.size()];
        for (Peer peer : peers) {
            fill(peer, value);
        }
        // The first round is for the compiler.
        for (int round = 0; round < ROUNDS + 1; round++) {
            for (Call call : Call.all()) {
                for (int at = 0; at < peers.size(); at++) {
                    double cost = cost(peers.get(at), call, value, counts[call.ordinal()], at);
                    double[] lowest = best[call.ordinal()];
                    lowest[at] = round < 2 || cost < lowest[at] ? cost : lowest[at];
                }
            }
        }
        print(peers, best);
        System.exit(0);
    }

    private static List<Peer> peers() throws Exception {
        String[] own = System.getProperty("sqlcached").split(",");
        List<Peer> peers = new ArrayList<>(List.of(SqlcachedPeers.sqlcached(own[0], own[1], KEYS)));
        String[] shared = server("shared");
        if (shared != null) {
            peers.add(SqlcachedPeers.shared(shared[0], own[1], shared[1]));
        }
        String[] memcached = server("memcached");
        if (memcached != null) {
            peers.add(MemcachedPeers.spymemcached(memcached[0], memcached[1]));
        }
        String[] redis = server("redis");
        if (redis != null) {
            peers.add(RedisPeers.jedis(redis[0], redis[1]));
            peers.add(RedisPeers.redisson(redis[0], redis[1]));
            peers.add(RedisPeers.mapCache(redis[0], redis[1]));
        }
        String[] hazelcast = server("hazelcast");
        if (hazelcast != null) {
            peers.add(HazelcastPeers.hazelcast(hazelcast[0], hazelcast[1]));
        }
        return peers;
    }

    private static String[] server(String name) {
        String given = System.getProperty(name);
        return given == null ? null : given.split(",");
    }

    /** The figures, and in the last column the first peer's as a multiple of the best of other projects. */
    private static void print(List<Peer> peers, double[][] best) {
        System.out.printf("%-16s", "CPU in µs");
        peers.forEach(peer -> System.out.printf("%18s", peer.name));
        System.out.printf("%10s%n", "ratio");
        for (Call call : Call.all()) {
            System.out.printf("%-16s", call.label);
            double rival = Double.NaN;
            for (int at = 0; at < peers.size(); at++) {
                double cost = best[call.ordinal()][at];
                System.out.printf("%18s", Double.isNaN(cost) ? "-" : String.format(Locale.ROOT, cost < 10 ? "%.3f" : "%.1f", cost));
                boolean isRival = !peers.get(at).name.startsWith("sqlcached") && !Double.isNaN(cost);
                rival = isRival && !(cost > rival) ? cost : rival;
            }
            System.out.println(String.format(Locale.ROOT, "%10.2f", best[call.ordinal()][0] / rival));
        }
    }

    private static void fill(Peer peer, byte[] value) {
        for (int i = 0; i < KEYS; i++) {
            peer.put(NAMES[i], value);
        }
        try {
            for (int i = 0; i < KEYS; i++) {
                peer.putNear(NEAR_KEYS[i], value);
            }
        } catch (UnsupportedOperationException none) {
            // It has no copies.
        }
        try {
            for (int tag = 0; tag < TAGS && Call.all().contains(Call.TAG); tag++) {
                fillTag(peer, value, tag);
            }
        } catch (UnsupportedOperationException none) {
            // It has no tags, and no other way to remove values that belong together.
        }
    }

    private static void fillTag(Peer peer, byte[] value, int tag) {
        for (int i = 0; i < OF_A_TAG; i++) {
            peer.putTagged("tagged:" + tag + ":" + i, value, "t" + tag);
        }
    }

    /** Microseconds of a call; not a number if the peer cannot do it. As many are made as were enough in its last turn. */
    private static double cost(Peer peer, Call call, byte[] value, int[] counts, int at) throws Exception {
        int most = call == Call.TAG ? TAGS : MOST;
        counts[at] = Math.max(counts[at], call.threads);
        while (true) {
            double all = used(peer, call, value, counts[at] / call.threads);
            if (Double.isNaN(all) || all >= TURN || counts[at] >= most) {
                return all / counts[at];
            }
            counts[at] = Math.min(counts[at] * 4, most);
        }
    }

    /** Microseconds that so many calls of each thread take. */
    private static double used(Peer peer, Call call, byte[] value, int each) throws Exception {
        List<Thread> all = new ArrayList<>();
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        int tag = peer.tag;
        double before = used(peer.process);
        for (int i = 0; i < call.threads; i++) {
            Thread thread = new Thread(() -> work(peer, call, value, each));
            thread.setUncaughtExceptionHandler((same, why) -> failures.add(why));
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        double cost = used(peer.process) - before;
        if (failures.stream().anyMatch(UnsupportedOperationException.class::isInstance)) {
            return Double.NaN;
        }
        if (!failures.isEmpty()) {
            throw new IllegalStateException(peer.name, failures.get(0));
        }
        for (int gone = tag; gone < peer.tag; gone++) {
            fillTag(peer, value, gone % TAGS);
        }
        return cost;
    }

    private static void work(Peer peer, Call call, byte[] value, int count) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        for (int n = 0; n < count; n++) {
            switch (call) {
                case GET, GET_8 -> Peer.check(peer.get(NAMES[random.nextInt(KEYS)]) != null);
                case PUT, PUT_8 -> peer.put(NAMES[random.nextInt(KEYS)], value);
                case GET_ALL -> {
                    List<String> keys = new ArrayList<>();
                    for (int i = 0; i < 100; i++) {
                        keys.add(NAMES[(n * 97 + i * 101) % KEYS]);
                    }
                    Peer.check(peer.getAll(keys).size() == 100);
                }
                case NEAR -> Peer.check(peer.near(NEAR_KEYS[n % KEYS]) != null);
                case TAG -> peer.removeTag("t" + peer.tag++ % TAGS, OF_A_TAG);
            }
        }
    }

    /** Microseconds of CPU that this process and the server have used. */
    static double used(String process) throws IOException {
        String text = Files.readString(Path.of("/proc", process, "stat"));
        String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ");
        // The kernel counts in hundredths of a second.
        double server = (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) * 10_000.0;
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return server + system.getProcessCpuTime() / 1_000.0;
    }
}
