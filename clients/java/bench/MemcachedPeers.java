import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import net.spy.memcached.MemcachedClient;

/** memcached by spymemcached. */
final class MemcachedPeers {
    private MemcachedPeers() {
    }

    static Peer spymemcached(String port, String process) throws IOException {
        MemcachedClient client = new MemcachedClient(new InetSocketAddress("127.0.0.1", Integer.parseInt(port)));
        return new Peer("spymemcached", process) {
            @Override
            Object get(String key) {
                return client.get(key);
            }

            @Override
            void put(String key, byte[] value) {
                try {
                    client.set(key, 3_600, value).get();
                } catch (Exception why) {
                    throw new IllegalStateException(why);
                }
            }

            @Override
            Map<String, ?> getAll(List<String> keys) {
                return client.getBulk(keys);
            }
        };
    }
}
