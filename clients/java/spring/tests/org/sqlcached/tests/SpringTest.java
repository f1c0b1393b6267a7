package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;

import java.io.IOException;
import java.net.CookieManager;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.sqlcached.client.Client;

/** One shop with Spring Boot in two JVMs: its pages and its users are the same in both. */
public class SpringTest {
    private static ConfigurableApplicationContext shop;
    private static Peer peer;
    private static String here;
    private static String there;
    private static Client client;

    @BeforeClass
    public static void open() {
        String location = "127.0.0.1:" + System.getenv("SQLCACHED_PORT");
        shop = SpringShop.open(Map.of("sqlcached.location", location, "sqlcached.tables.pages.ttl", "1 h"));
        peer = new Peer(SpringShop.class, Map.of("sqlcached.location", location, "sqlcached.tables.pages.ttl", "1 h"));
        here = SpringShop.port(shop);
        there = peer.ask("port");
        client = new Client(Daemon.patient(location));
    }

    @AfterClass
    public static void end() {
        peer.close();
        shop.close();
        client.close();
    }

    private Browser ann;

    @Before
    public void begin() {
        ann = new Browser();
        ann.get(here, "/hold");
        ann.get(there, "/hold");
        ann.get(here, "/evict?tag=shop");
        ann.get(here, "/out?user=ann");
        ann.get(here, "/out?user=bob");
    }

    /** A browser with cookies of its own, which both JVMs get. */
    private static final class Browser {
        private final HttpClient client = HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

        String get(String port, String path) {
            return start(port, path).join();
        }

        CompletableFuture<String> start(String port, String path) {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build();
            return client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).thenApply(answer -> {
                assertEquals(answer.body(), 200, answer.statusCode());
                return answer.body();
            });
        }

        int number(String port, String path) {
            return Integer.parseInt(get(port, path));
        }
    }

    private static long count(String table) {
        return ((Number) client.sql("SELECT count(*) AS n FROM " + table).rows().get(0).get("n")).longValue();
    }

    private int made() {
        return ann.number(here, "/made") + ann.number(there, "/made");
    }

    @Test
    public void aPageIsMadeOnceForAllJvms() {
        int before = made();
        int entered = ann.number(here, "/entered") + ann.number(there, "/entered");
        List<CompletableFuture<String>> answers = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            answers.add(ann.start(here, "/page/1?held=true"));
            answers.add(ann.start(there, "/page/1?held=true"));
        }
        FailureTest.await(() -> ann.number(here, "/entered") + ann.number(there, "/entered") == entered + 8 && made() > before);
        ann.get(here, "/go");
        ann.get(there, "/go");
        String first = answers.get(0).join();
        answers.forEach(each -> assertEquals(first, each.join()));
        assertEquals(before + 1, made());
    }

    @Test
    public void aTagRemovesPagesOfAllJvms() {
        String old = ann.get(here, "/page/2");
        assertEquals(old, ann.get(there, "/page/2"));
        assertEquals(1, count("pages WHERE key = '2' AND _ttl BETWEEN 3000 AND 3600"));
        String other = ann.get(here, "/page/3");
        assertEquals("1", ann.get(there, "/evict?tag=product:2"));
        int before = made();
        ann.get(here, "/page/2");
        assertEquals(before + 1, made());
        assertEquals(other, ann.get(there, "/page/3"));
    }

    @Test
    public void aPageThatWasMadeBeforeARemovalIsNotKept() {
        int before = made();
        CompletableFuture<String> late = ann.start(here, "/page/4?held=true");
        FailureTest.await(() -> made() == before + 1);
        ann.get(there, "/evict?tag=product:4");
        ann.get(here, "/go");
        late.join();
        ann.get(there, "/page/4");
        assertEquals(before + 2, made());
    }

    @Test
    public void aUserIsKnownToAllJvms() {
        ann.get(here, "/login?user=ann");
        assertEquals("ann", ann.get(there, "/me"));
        assertEquals("ann", ann.get(here, "/me"));
        assertEquals("nobody", new Browser().get(there, "/me"));
        // The identifier from before the login is gone.
        assertEquals(1, count("spring_session"));
    }

    @Test
    public void aUserIsLoggedOutEverywhere() {
        Browser phone = new Browser();
        Browser bob = new Browser();
        ann.get(here, "/login?user=ann");
        phone.get(there, "/login?user=ann");
        bob.get(here, "/login?user=bob");
        assertEquals(2, ann.number(there, "/sessions?user=ann"));
        assertEquals("2", bob.get(there, "/out?user=ann"));
        assertEquals("nobody", ann.get(here, "/me"));
        assertEquals("nobody", phone.get(there, "/me"));
        assertEquals("bob", bob.get(here, "/me"));
    }

    @Test
    public void aRequestDoesNotBringALoggedOutUserBack() {
        ann.get(here, "/login?user=ann");
        int entered = ann.number(here, "/entered");
        CompletableFuture<String> running = ann.start(here, "/note?name=a&held=true");
        FailureTest.await(() -> new Browser().number(here, "/entered") == entered + 1);
        new Browser().get(there, "/out?user=ann");
        new Browser().get(here, "/go");
        running.join();
        assertEquals("nobody", ann.get(there, "/me"));
        assertEquals(0, count("spring_session"));
    }

    @Test
    public void requestsAtTheSameTimeKeepEachOthersChanges() {
        ann.get(here, "/login?user=ann");
        int entered = ann.number(here, "/entered");
        CompletableFuture<String> running = ann.start(here, "/note?name=a&held=true");
        FailureTest.await(() -> new Browser().number(here, "/entered") == entered + 1);
        ann.get(there, "/note?name=b");
        new Browser().get(here, "/go");
        running.join();
        assertEquals("noted noted", ann.get(there, "/notes"));
    }

    @Test
    public void anUnusedSessionEnds() {
        ann.get(here, "/login?user=ann");
        ann.get(here, "/short");
        FailureTest.await(() -> count("spring_session") == 0);
        assertEquals("nobody", ann.get(there, "/me"));
    }

    @Test
    public void sqlEndsSessions() throws IOException {
        ann.get(here, "/login?user=ann");
        client.sql("DELETE FROM spring_session WHERE 'ann' = ANY(tags)");
        assertEquals("nobody", ann.get(there, "/me"));
    }
}
