import java.util.Objects;
import org.sqlcached.client.Client;
import org.sqlcached.client.Options;
import org.sqlcached.map.CachedMap;

public class Shared {
    public static void main(String[] arguments) {
        String socket = Objects.requireNonNullElse(System.getenv("SQLCACHED_SOCKET"), "/run/sqlcached/sock");
        String library = System.getProperty("sqlcached.shared_memory", Options.LIBRARY);
        try (Client client = new Client(Options.at(socket).sharedMemory(library))) {
            CachedMap<String, String> pages = CachedMap.of(client, "shared_pages");
            pages.set("page/17", "hello");
            System.out.println(pages.get("page/17"));
            if (client.sharedReads() != 1) {
                throw new AssertionError("the daemon was asked");
            }
        }
    }
}
