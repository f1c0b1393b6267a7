package org.sqlcached.spring;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.springframework.session.MapSession;
import org.springframework.session.Session;

/** A session, and what a request changes of it. Requests that run at the same time keep each other's changes. */
public final class SqlcachedSession implements Session {
    private final MapSession state;
    private final Map<String, Object> changes = new HashMap<>();
    private String stored;
    private long version;
    private boolean isChanged;

    /** A new one. */
    SqlcachedSession(MapSession state) {
        this.state = state;
        this.isChanged = true;
    }

    /** One that is stored, with the version of its row. */
    SqlcachedSession(MapSession state, long version) {
        this.state = state;
        this.stored = state.getId();
        this.version = version;
    }

    MapSession state() {
        return state;
    }

    /** The identifier of its row; null if there is none yet. */
    String stored() {
        return stored;
    }

    /** The version of the row that was read; 0 if it was written since. */
    long version() {
        return version;
    }

    boolean isChanged() {
        return isChanged;
    }

    /** Makes the changes of this request on what another one has stored. */
    void apply(MapSession other) {
        changes.forEach(other::setAttribute);
        other.setLastAccessedTime(state.getLastAccessedTime());
        other.setMaxInactiveInterval(state.getMaxInactiveInterval());
    }

    void saved() {
        stored = state.getId();
        version = 0;
        changes.clear();
        isChanged = false;
    }

    @Override
    public String getId() {
        return state.getId();
    }

    @Override
    public String changeSessionId() {
        isChanged = true;
        return state.changeSessionId();
    }

    @Override
    public <T> T getAttribute(String name) {
        return state.getAttribute(name);
    }

    @Override
    public Set<String> getAttributeNames() {
        return state.getAttributeNames();
    }

    @Override
    public void setAttribute(String name, Object value) {
        isChanged = true;
        changes.put(name, value);
        state.setAttribute(name, value);
    }

    @Override
    public void removeAttribute(String name) {
        setAttribute(name, null);
    }

    @Override
    public Instant getCreationTime() {
        return state.getCreationTime();
    }

    @Override
    public void setLastAccessedTime(Instant time) {
        isChanged = true;
        state.setLastAccessedTime(time);
    }

    @Override
    public Instant getLastAccessedTime() {
        return state.getLastAccessedTime();
    }

    @Override
    public void setMaxInactiveInterval(Duration interval) {
        isChanged = true;
        state.setMaxInactiveInterval(interval);
    }

    @Override
    public Duration getMaxInactiveInterval() {
        return state.getMaxInactiveInterval();
    }

    @Override
    public boolean isExpired() {
        return state.isExpired();
    }
}
