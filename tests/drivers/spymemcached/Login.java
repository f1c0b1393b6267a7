import net.spy.memcached.AddrUtil;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;

/** Logs in as a role. Arguments: the port, the role, its password. */
public class Login {
    public static void main(String[] arguments) throws Exception {
        AuthDescriptor login =
            new AuthDescriptor(new String[] {"PLAIN"}, new PlainCallbackHandler(arguments[1], arguments[2]));
        MemcachedClient client = new MemcachedClient(
            new ConnectionFactoryBuilder()
                .setProtocol(ConnectionFactoryBuilder.Protocol.BINARY)
                .setAuthDescriptor(login)
                .build(),
            AddrUtil.getAddresses("127.0.0.1:" + arguments[0]));
        boolean stored = client.set("spy", 10, "x").get();
        System.out.println(stored && "x".equals(client.get("spy")) ? "held" : "lost");
        client.shutdown();
    }
}
