package org.sqlcached.spring;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.session.MapSession;
import org.springframework.session.PrincipalNameIndexResolver;
import org.sqlcached.client.Item;
import org.sqlcached.client.Loading;
import org.sqlcached.client.SqlcachedException;
import org.sqlcached.client.Table;
import org.sqlcached.client.UnavailableException;
import org.sqlcached.client.Write;

/**
 * The sessions of Spring Session: rows of a table, whose tag is the user. A session that was removed stays removed, also
 * if a request still holds it.
 */
public final class SqlcachedSessionRepository implements FindByIndexNameSessionRepository<SqlcachedSession> {
    /** Attempts to save a session. Each fails only because another request of the same session succeeded. */
    private static final int ATTEMPTS = 1_000;

    private final PrincipalNameIndexResolver<MapSession> principals =
            new PrincipalNameIndexResolver<>(PRINCIPAL_NAME_INDEX_NAME);
    private final Loading rows;
    private final Table table;
    private final Duration timeout;

    /**
     * @param rows the sessions. The table should have the option {@code flush = off}
     * @param timeout after which a session ends that nobody uses
     */
    public SqlcachedSessionRepository(Loading rows, Duration timeout) {
        this.rows = rows;
        this.table = rows.table();
        this.timeout = timeout;
    }

    @Override
    public SqlcachedSession createSession() {
        MapSession state = new MapSession();
        state.setMaxInactiveInterval(timeout);
        return new SqlcachedSession(state);
    }

    /** A session that cannot be read is not taken for a missing one: its user would have to log in again. */
    @Override
    public SqlcachedSession findById(String id) {
        Item item = table.item(id, 0);
        if (item == null && !table.isReadable(id)) {
            throw new UnavailableException("the sessions are not read until their removals were sent");
        }
        return session(id, item);
    }

    private SqlcachedSession session(String id, Item item) {
        MapSession state = state(id, item);
        return state == null || state.isExpired() ? null : new SqlcachedSession(state, item.cas());
    }

    @Override
    public void save(SqlcachedSession session) {
        if (!session.isChanged()) {
            return;
        }
        if (session.stored() == null) {
            table.set(row(session.state()));
        } else if (!session.stored().equals(session.getId())) {
            move(session);
        } else {
            store(session);
        }
        session.saved();
    }

    /** A session with a new identifier, as after a login. */
    private void move(SqlcachedSession session) {
        if (table.delete(session.stored())) {
            table.set(row(session.state()));
        }
    }

    private void store(SqlcachedSession session) {
        long version = session.version();
        if (version != 0 && table.set(row(session.state()).ifVersion(version))) {
            return;
        }
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            Item item = table.item(session.getId(), 0);
            MapSession now = state(session.getId(), item);
            if (now == null) {
                // Somebody has ended it meanwhile.
                return;
            }
            session.apply(now);
            if (table.set(row(now).ifVersion(item.cas()))) {
                return;
            }
        }
        throw new SqlcachedException("other requests change the session all the time");
    }

    @Override
    public void deleteById(String id) {
        table.delete(id);
    }

    @Override
    public Map<String, SqlcachedSession> findByIndexNameAndIndexValue(String index, String value) {
        Map<String, SqlcachedSession> found = new TreeMap<>();
        if (PRINCIPAL_NAME_INDEX_NAME.equals(index)) {
            table.tagged(value).forEach(row -> {
                SqlcachedSession session = session(row.key(), row.item());
                if (session != null) {
                    found.put(row.key(), session);
                }
            });
        }
        return found;
    }

    /**
     * Ends all sessions of a user, in all JVMs.
     *
     * @param principal the user's name
     * @return how many; -1 if the removal waits for the daemon
     */
    public long logOutEverywhere(String principal) {
        return table.removeTags(principal);
    }

    private Write row(MapSession state) {
        Map<String, Object> attributes = new HashMap<>();
        state.getAttributeNames().forEach(name -> attributes.put(name, state.getAttribute(name)));
        Map<String, Object> all = new HashMap<>();
        all.put("created", state.getCreationTime());
        all.put("accessed", state.getLastAccessedTime());
        all.put("timeout", state.getMaxInactiveInterval());
        all.put("attributes", attributes);
        String principal = principals.resolveIndexValueFor(state);
        long ttl = state.getMaxInactiveInterval().isNegative() ? Write.FOREVER : state.getMaxInactiveInterval().toSeconds();
        return rows.write(state.getId(), all, ttl, principal == null ? List.of() : List.of(principal));
    }

    @SuppressWarnings("unchecked")
    private MapSession state(String id, Item item) {
        if (item == null || !item.isFresh() || !(rows.value(id, item) instanceof Map<?, ?> all)) {
            return null;
        }
        MapSession state = new MapSession(id);
        state.setCreationTime((Instant) all.get("created"));
        state.setLastAccessedTime((Instant) all.get("accessed"));
        state.setMaxInactiveInterval((Duration) all.get("timeout"));
        ((Map<String, Object>) all.get("attributes")).forEach(state::setAttribute);
        return state;
    }
}
