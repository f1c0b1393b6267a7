import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.MemcachedClient;

/** spymemcached in the binary protocol, else with its defaults. Argument: the port. */
public final class Binary {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        Logger.getLogger("net.spy.memcached").setLevel(Level.SEVERE);
        MemcachedClient client =
                new MemcachedClient(new BinaryConnectionFactory(), AddrUtil.getAddresses("127.0.0.1:" + arguments[0]));
        List<String> keys = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            keys.add("key-" + number);
            check(client.set("key-" + number, 100, "value-" + number).get(), "set");
        }
        Map<String, Object> found = client.getBulk(keys);
        for (int number = 0; number < 500; number++) {
            check(("value-" + number).equals(found.get("key-" + number)), "getBulk of key-" + number);
        }
        check(client.get("none") == null, "a miss");
        check(!client.add("key-1", 0, "other").get() && client.replace("key-1", 0, "new").get(), "add and replace");
        check(client.append("key-1", ">").get() && client.prepend("key-1", "<").get(), "append and prepend");
        CASValue<Object> seen = client.gets("key-1");
        check("<new>".equals(seen.getValue()), "what was joined");
        check(client.cas("key-1", seen.getCas(), "changed") == CASResponse.OK, "cas");
        check(client.cas("key-1", seen.getCas(), "again") == CASResponse.EXISTS, "a late cas");
        check("changed".equals(client.getAndTouch("key-1", 200).getValue()), "get and touch");
        check(client.touch("key-1", 300).get(), "touch");
        check(client.incr("counter", 1, 41) == 41 && client.incr("counter", 1) == 42, "incr");
        check(client.decr("counter", 50) == 0, "decr stops at 0");
        byte[] large = new byte[256 << 10];
        check(client.set("large", 0, large).get() && ((byte[]) client.get("large")).length == large.length, "a large value");
        check(client.delete("key-0").get() && client.get("key-0") == null, "delete");
        check(client.getVersions().containsValue("1.6.45"), "version");
        check("1.6.45".equals(client.getStats().values().iterator().next().get("version")), "stats");
        check(client.flush().get() && client.get("key-2") == null, "flush");
        client.shutdown();
        System.out.println("held");
    }

    private static void check(boolean held, String what) {
        if (!held) {
            throw new IllegalStateException(what);
        }
    }
}
