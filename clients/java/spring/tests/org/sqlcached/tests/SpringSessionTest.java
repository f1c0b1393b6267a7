package org.sqlcached.tests;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContext;
import org.springframework.security.core.context.SecurityContextImpl;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Values;
import org.sqlcached.spring.SqlcachedSession;
import org.sqlcached.spring.SqlcachedSessionRepository;

/** The repository of sessions by itself. */
public class SpringSessionTest {
    private Daemon daemon;
    private Client client;
    private SqlcachedSessionRepository sessions;

    @Before
    public void open() {
        daemon = new Daemon();
        client = daemon.client();
        Table table = new Table(client, new Definition("sess", Map.of("flush", false)));
        sessions = new SqlcachedSessionRepository(
                new Loading(table, new Values("org.springframework.security.**")), Duration.ofMinutes(30));
    }

    @After
    public void close() {
        client.close();
        daemon.close();
    }

    private SqlcachedSession saved() {
        SqlcachedSession session = sessions.createSession();
        session.setAttribute("cart", Set.of(1));
        sessions.save(session);
        return session;
    }

    @Test
    public void aSessionIsWhatWasSaved() {
        SqlcachedSession session = saved();
        SqlcachedSession found = sessions.findById(session.getId());
        assertEquals(Set.of(1), found.getAttribute("cart"));
        assertEquals(Duration.ofMinutes(30), found.getMaxInactiveInterval());
        assertEquals(session.getCreationTime(), found.getCreationTime());
        found.removeAttribute("cart");
        found.setAttribute("a", 1);
        sessions.save(found);
        // Once more in the same request.
        found.setAttribute("b", 2);
        sessions.save(found);
        assertEquals(Set.of("a", "b"), sessions.findById(session.getId()).getAttributeNames());
        sessions.deleteById(session.getId());
        assertNull(sessions.findById(session.getId()));
        sessions.save(found);
        found.setAttribute("c", 3);
        sessions.save(found);
        assertNull(sessions.findById(session.getId()));
    }

    @Test
    public void aSessionMoves() {
        SqlcachedSession session = sessions.findById(saved().getId());
        String before = session.getId();
        session.changeSessionId();
        sessions.save(session);
        assertNull(sessions.findById(before));
        assertNotNull(sessions.findById(session.getId()));
    }

    @Test
    public void theUserOfSpringSecurityIsFound() {
        SqlcachedSession session = saved();
        session.setAttribute("SPRING_SECURITY_CONTEXT", new SecurityContextImpl(UsernamePasswordAuthenticationToken
                .authenticated("ann", null, AuthorityUtils.createAuthorityList("ROLE_USER"))));
        sessions.save(session);
        SqlcachedSession found = sessions.findByPrincipalName("ann").get(session.getId());
        SecurityContext context = found.getAttribute("SPRING_SECURITY_CONTEXT");
        assertEquals("ann", context.getAuthentication().getName());
        assertEquals(Map.of(), sessions.findByPrincipalName("bob"));
        assertEquals(Map.of(), sessions.findByIndexNameAndIndexValue("another", "ann"));
        assertEquals(1, sessions.logOutEverywhere("ann"));
        assertNull(sessions.findById(session.getId()));
    }

    @Test
    public void aSessionThatCannotBeReadIsNotMissing() {
        SqlcachedSession session = saved();
        daemon.kill();
        assertThrows(UnavailableException.class, () -> sessions.findById(session.getId()));
        daemon.start();
        assertNotNull(sessions.findById(session.getId()));
        daemon.kill();
        assertEquals(-1, sessions.logOutEverywhere("ann"));
        assertThrows(UnavailableException.class, () -> sessions.findById(session.getId()));
        daemon.start();
        FailureTest.await(() -> isReadable(session.getId()));
    }

    private boolean isReadable(String id) {
        try {
            return sessions.findById(id) != null;
        } catch (UnavailableException why) {
            return false;
        }
    }
}
