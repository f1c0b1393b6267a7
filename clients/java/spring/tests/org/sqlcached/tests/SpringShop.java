package org.sqlcached.tests;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.sqlcached.spring.SqlcachedCacheManager;
import org.sqlcached.spring.SqlcachedSessionRepository;
import org.sqlcached.spring.Tagger;

/** A shop with Spring Boot, whose pages are cached and whose users log in, on a port of its own. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@EnableCaching
class SpringShop {
    static ConfigurableApplicationContext open(Map<String, Object> settings) {
        SpringApplication application = new SpringApplication(SpringShop.class);
        Map<String, Object> all = new TreeMap<>(settings);
        all.put("server.port", "0");
        all.put("spring.main.banner-mode", "off");
        all.put("logging.level.root", "warn");
        // A debug build beside a compiler is slow.
        all.put("sqlcached.timeout", "60");
        application.setDefaultProperties(all);
        return application.run();
    }

    static String port(ConfigurableApplicationContext shop) {
        return shop.getEnvironment().getProperty("local.server.port");
    }

    /** @param arguments none; the program ends with its standard input */
    public static void main(String[] arguments) {
        try (ConfigurableApplicationContext shop = open(Map.of()); Scanner lines = new Scanner(System.in)) {
            System.out.println("ready");
            while (lines.hasNextLine()) {
                lines.nextLine();
                System.out.println("= " + port(shop));
            }
        }
    }

    @Bean
    Tagger tagger() {
        return (cache, key, value) -> List.of("product:" + key, "shop");
    }

    @Bean
    Pages pages() {
        return new Pages();
    }

    /** Pages that are made once. A page that is held is made when the test says so. */
    static class Pages {
        final AtomicInteger made = new AtomicInteger();
        final Semaphore goOn = new Semaphore(0);

        @Cacheable(cacheNames = "pages", key = "#p0", sync = true)
        public String product(int id, boolean isHeld) {
            int number = made.incrementAndGet();
            if (isHeld) {
                await(goOn);
            }
            return "page " + id + " number " + number;
        }

        public int made() {
            return made.get();
        }

        public Semaphore goOn() {
            return goOn;
        }
    }

    private static void await(Semaphore permission) {
        try {
            if (!permission.tryAcquire(Daemon.PATIENCE, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("nobody said to go on");
            }
        } catch (InterruptedException why) {
            throw new IllegalStateException(why);
        }
    }

    /** What browsers ask for. */
    @RestController
    static class Doors {
        private final Pages pages;
        private final SqlcachedCacheManager caches;
        private final SqlcachedSessionRepository sessions;
        private final AtomicInteger entered = new AtomicInteger();
        private final Semaphore goOn = new Semaphore(0);

        Doors(Pages pages, SqlcachedCacheManager caches, SqlcachedSessionRepository sessions) {
            this.pages = pages;
            this.caches = caches;
            this.sessions = sessions;
        }

        @GetMapping("/page/{id}")
        String page(@PathVariable("id") int id, @RequestParam(name = "held", defaultValue = "false") boolean isHeld) {
            entered.incrementAndGet();
            return pages.product(id, isHeld);
        }

        @GetMapping("/made")
        int made() {
            return pages.made();
        }

        @GetMapping("/entered")
        int entered() {
            return entered.get();
        }

        @GetMapping("/go")
        String go() {
            pages.goOn().release();
            goOn.release();
            return "";
        }

        /** Takes back what nobody waited for. */
        @GetMapping("/hold")
        String hold() {
            pages.goOn().drainPermits();
            goOn.drainPermits();
            return "";
        }

        @GetMapping("/evict")
        long evict(@RequestParam("tag") String tag) {
            return caches.evictTags("pages", tag);
        }

        @GetMapping("/login")
        String login(@RequestParam("user") String user, HttpServletRequest request) {
            HttpSession session = request.getSession();
            request.changeSessionId();
            session.setAttribute(FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME, user);
            return user;
        }

        @GetMapping("/me")
        String me(HttpServletRequest request) {
            HttpSession session = request.getSession(false);
            Object user = session == null ? null : session.getAttribute(FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME);
            return user == null ? "nobody" : user.toString();
        }

        @GetMapping("/note")
        String note(
                @RequestParam("name") String name,
                @RequestParam(name = "held", defaultValue = "false") boolean isHeld,
                HttpSession session) {
            session.setAttribute(name, "noted");
            entered.incrementAndGet();
            if (isHeld) {
                await(goOn);
            }
            return "";
        }

        @GetMapping("/notes")
        String notes(HttpSession session) {
            return session.getAttribute("a") + " " + session.getAttribute("b");
        }

        @GetMapping("/short")
        String shortly(HttpSession session) {
            session.setMaxInactiveInterval(1);
            return "";
        }

        @GetMapping("/sessions")
        int sessions(@RequestParam("user") String user) {
            return sessions.findByPrincipalName(user).size();
        }

        @GetMapping("/out")
        long out(@RequestParam("user") String user) {
            return sessions.logOutEverywhere(user);
        }
    }
}
