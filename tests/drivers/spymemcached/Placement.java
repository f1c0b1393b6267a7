import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.MemcachedClient;

/** Shares keys among servers by ketama and reads them back. Arguments: the servers as host:port, then how many keys. */
public final class Placement {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        Logger.getLogger("net.spy.memcached").setLevel(Level.SEVERE);
        int count = Integer.parseInt(arguments[arguments.length - 1]);
        List<String> servers = List.of(arguments).subList(0, arguments.length - 1);
        ConnectionFactoryBuilder factory = new ConnectionFactoryBuilder()
                .setProtocol(ConnectionFactoryBuilder.Protocol.TEXT)
                .setLocatorType(ConnectionFactoryBuilder.Locator.CONSISTENT)
                .setHashAlg(DefaultHashAlgorithm.KETAMA_HASH)
                .setOpTimeout(20_000);
        MemcachedClient client = new MemcachedClient(factory.build(), AddrUtil.getAddresses(servers));
        List<String> keys = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            keys.add("key-" + number);
            check(client.set("key-" + number, 0, "value-" + number).get(), "set");
        }
        Map<String, Object> found = client.getBulk(keys);
        for (int number = 0; number < count; number++) {
            check(("value-" + number).equals(found.get("key-" + number)), "getBulk of key-" + number);
        }
        CASValue<Object> seen = client.gets("key-1");
        check(client.cas("key-1", seen.getCas(), "changed") == CASResponse.OK, "cas");
        check(client.cas("key-1", seen.getCas(), "again") == CASResponse.EXISTS, "cas that comes late");
        check(client.delete("key-0").get() && client.get("key-0") == null, "delete");
        check(client.incr("counter", 1, 41) == 41 && client.incr("counter", 1) == 42, "incr");
        client.shutdown();
        System.out.println("shared");
    }

    private static void check(boolean held, String what) {
        if (!held) {
            throw new IllegalStateException(what);
        }
    }
}
