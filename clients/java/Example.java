import java.util.List;
import java.util.Objects;
import org.sqlcached.client.Client;
import org.sqlcached.map.CachedMap;

public class Example {
    public static void main(String[] arguments) {
        String port = Objects.requireNonNullElse(System.getenv("SQLCACHED_PORT"), "11211");
        try (Client client = new Client("127.0.0.1:" + port)) {
            CachedMap<String, String> pages = CachedMap.of(client, "pages");
            pages.set("page/17", "hello", "product:17", "shop");
            System.out.println(pages.get("page/17"));

            // All that shows the product, whatever its keys are.
            pages.removeTags("product:17");
            if (pages.get("page/17") != null) {
                throw new AssertionError("it is still there");
            }

            // Of all threads and processes that miss the value at once, one computes it.
            pages.computeIfAbsent("sum", List.of("shop"), key -> "2");
        }
    }
}
