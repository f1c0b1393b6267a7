import jakarta.persistence.Cacheable;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.Table;
import java.lang.management.ManagementFactory;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.Cache;
import org.hibernate.annotations.CacheConcurrencyStrategy;
import org.hibernate.boot.MetadataSources;
import org.hibernate.boot.registry.StandardServiceRegistryBuilder;

/**
 * One of two JVMs that load 1,000 entities by Hibernate again and again, and change one in a hundred times. {@code run.py}
 * starts both, with the settings of a second-level cache as properties.
 *
 * <p>After each commit a file that both map has the new version. A load that gives an older one than the file had before
 * it began is stale.
 */
public final class EntityBench {
    private static final int ENTITIES = 1_000;
    private static final int CHANGES = 100;

    private EntityBench() {
    }

    /** An entity, and how often it was changed. */
    @Entity
    @Table(name = "bench_entity")
    @Cacheable
    @Cache(usage = CacheConcurrencyStrategy.READ_WRITE)
    public static class Product {
        @Id
        Integer id;
        String name;
        long version;
    }

    /**
     * @param arguments the file, the seed and the number of loads
     * @throws Exception if the database does not answer
     */
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        System.getProperties().forEach((name, value) -> settings.put(name.toString(), value));
        settings.put("hibernate.cache.use_second_level_cache", true);
        settings.put("hibernate.generate_statistics", true);
        try (FileChannel file = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.READ, StandardOpenOption.WRITE);
                SessionFactory sessions = new MetadataSources(new StandardServiceRegistryBuilder().applySettings(settings).build())
                        .addAnnotatedClass(Product.class)
                        .buildMetadata()
                        .buildSessionFactory()) {
            LongBuffer committed = file.map(FileChannel.MapMode.READ_WRITE, 0, Long.BYTES * ENTITIES).asLongBuffer();
            int loads = Integer.parseInt(arguments[2]);
            EntityBench.Run run = new Run(sessions, committed, new Random(Long.parseLong(arguments[1])));
            run.warm();
            run.loads(loads / 4);
            System.out.println("ready");
            Scanner lines = new Scanner(System.in);
            lines.nextLine();
            sessions.getStatistics().clear();
            double before = cpu();
            long begin = System.nanoTime();
            run.stale = 0;
            run.loads(loads);
            System.out.printf("%d %.0f %d %d%n", run.stale, cpu() - before, System.nanoTime() - begin,
                    sessions.getStatistics().getPrepareStatementCount());
        }
        System.exit(0);
    }

    private static double cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1_000.0;
    }

    private static final class Run {
        private final SessionFactory sessions;
        private final LongBuffer committed;
        private final Random random;
        private int stale;

        Run(SessionFactory sessions, LongBuffer committed, Random random) {
            this.sessions = sessions;
            this.committed = committed;
            this.random = random;
        }

        void warm() {
            for (int id = 0; id < ENTITIES; id++) {
                version(id);
            }
        }

        private long version(int id) {
            return sessions.fromTransaction(session -> session.find(Product.class, id).version);
        }

        void loads(int count) {
            for (int n = 0; n < count; n++) {
                int id = random.nextInt(ENTITIES);
                if (random.nextInt(CHANGES) == 0) {
                    change(id);
                } else {
                    long least = committed.get(id);
                    stale += version(id) < least ? 1 : 0;
                }
            }
        }

        private void change(int id) {
            long now = sessions.fromTransaction(session -> {
                Product product = session.find(Product.class, id, LockModeType.PESSIMISTIC_WRITE);
                session.refresh(product);
                return ++product.version;
            });
            // The other JVM may have committed a later one meanwhile; an older number is a weaker claim, not a wrong one.
            committed.put(id, now);
        }
    }
}
