import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.config.InMemoryFormat;
import com.hazelcast.config.NearCacheConfig;
import com.hazelcast.map.IMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/** A member of Hazelcast, by its client. */
final class HazelcastPeers {
    private HazelcastPeers() {
    }

    static Peer hazelcast(String port, String process) {
        ClientConfig config = new ClientConfig();
        config.getNetworkConfig().addAddress("127.0.0.1:" + port);
        config.addNearCacheConfig(new NearCacheConfig("near").setInMemoryFormat(InMemoryFormat.OBJECT));
        var client = HazelcastClient.newHazelcastClient(config);
        IMap<String, byte[]> map = client.getMap("bench");
        IMap<String, byte[]> near = client.getMap("near");
        return new Peer("Hazelcast", process) {
            @Override
            Object get(String key) {
                return map.get(key);
            }

            @Override
            void put(String key, byte[] value) {
                map.set(key, value);
            }

            @Override
            Map<String, ?> getAll(List<String> keys) {
                return map.getAll(new HashSet<>(keys));
            }

            @Override
            Object near(String key) {
                return near.get(key);
            }

            @Override
            void putNear(String key, byte[] value) {
                near.set(key, value);
            }
        };
    }
}
