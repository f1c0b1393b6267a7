import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBuckets;
import org.redisson.api.RLocalCachedMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RedissonClient;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.CompositeCodec;
import org.redisson.config.Config;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;

/**
 * Redis by Jedis, by Redisson's buckets and by its map with deadlines. Each has a database of its own, so that a scan of all
 * keys finds only those of its own peer.
 */
final class RedisPeers {
    private RedisPeers() {
    }

    static Peer jedis(String port, String process) {
        JedisPoolConfig config = new JedisPoolConfig();
        config.setMaxTotal(32);
        config.setMaxIdle(32);
        JedisPool pool = new JedisPool(config, "127.0.0.1", Integer.parseInt(port));
        return new Peer("Jedis", process) {
            @Override
            Object get(String key) {
                try (var jedis = pool.getResource()) {
                    return jedis.get(key.getBytes());
                }
            }

            @Override
            void put(String key, byte[] value) {
                try (var jedis = pool.getResource()) {
                    jedis.setex(key.getBytes(), 3_600, value);
                }
            }

            @Override
            Map<String, ?> getAll(List<String> keys) {
                try (var jedis = pool.getResource()) {
                    List<byte[]> found = jedis.mget(keys.stream().map(String::getBytes).toArray(byte[][]::new));
                    Map<String, byte[]> all = new HashMap<>();
                    for (int i = 0; i < keys.size(); i++) {
                        all.put(keys.get(i), found.get(i));
                    }
                    return all;
                }
            }

            /** A set of keys for each tag, as libraries keep it. */
            @Override
            void putTagged(String key, byte[] value, String tag) {
                try (var jedis = pool.getResource(); var pipeline = jedis.pipelined()) {
                    pipeline.setex(key.getBytes(), 3_600, value);
                    pipeline.sadd("set:" + tag, key);
                }
            }

            @Override
            void removeTag(String tag, int count) {
                try (var jedis = pool.getResource()) {
                    List<String> keys = new ArrayList<>(jedis.smembers("set:" + tag));
                    keys.add("set:" + tag);
                    check(jedis.del(keys.toArray(String[]::new)) == count + 1);
                }
            }
        };
    }

    static Peer redisson(String port, String process) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setDatabase(1);
        RedissonClient client = Redisson.create(config);
        RBuckets buckets = client.getBuckets(ByteArrayCodec.INSTANCE);
        RLocalCachedMap<String, byte[]> near = client.getLocalCachedMap(LocalCachedMapOptions.<String, byte[]>name("near")
                .codec(new CompositeCodec(StringCodec.INSTANCE, ByteArrayCodec.INSTANCE)));
        return new Peer("Redisson", process) {
            @Override
            Object get(String key) {
                return client.getBucket(key, ByteArrayCodec.INSTANCE).get();
            }

            @Override
            void put(String key, byte[] value) {
                client.getBucket(key, ByteArrayCodec.INSTANCE).set(value, java.time.Duration.ofHours(1));
            }

            @Override
            Map<String, ?> getAll(List<String> keys) {
                return buckets.get(keys.toArray(String[]::new));
            }

            @Override
            Object near(String key) {
                return near.get(key);
            }

            @Override
            void putNear(String key, byte[] value) {
                near.fastPut(key, value);
            }

            @Override
            void putTagged(String key, byte[] value, String tag) {
                client.getBucket("of:" + key, ByteArrayCodec.INSTANCE).set(value, java.time.Duration.ofHours(1));
            }

            /** By the beginning of the keys, as Spring's caches on Redis are cleared: a SCAN of all keys. */
            @Override
            void removeTag(String tag, int count) {
                check(client.getKeys().deleteByPattern("of:tagged:" + tag.substring(1) + ":*") == count);
            }
        };
    }

    /** A map whose entries have deadlines. Its values that belong together are found by a scan of its keys. */
    static Peer mapCache(String port, String process) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setDatabase(2);
        RMapCache<String, byte[]> map = Redisson.create(config)
                .getMapCache("map", new CompositeCodec(StringCodec.INSTANCE, ByteArrayCodec.INSTANCE));
        return new Peer("RMapCache", process) {
            @Override
            Object get(String key) {
                return map.get(key);
            }

            @Override
            void put(String key, byte[] value) {
                map.fastPut(key, value, 1, TimeUnit.HOURS);
            }

            @Override
            Map<String, ?> getAll(List<String> keys) {
                return map.getAll(new HashSet<>(keys));
            }

            @Override
            void putTagged(String key, byte[] value, String tag) {
                put(key, value);
            }

            @Override
            void removeTag(String tag, int count) {
                String[] keys = map.keySet("tagged:" + tag.substring(1) + ":*", 1_000).toArray(String[]::new);
                check(map.fastRemove(keys) == count);
            }
        };
    }
}
