package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

/** The daemons that share the keys of a table, and the copies of its rows in this process. */
final class Nodes {
    private final Definition definition;
    private final Rows[] nodes;
    private final Ketama ketama;
    private volatile NearCache copies;

    Nodes(List<Client> clients, Definition definition) {
        if (clients.isEmpty()) {
            throw new IllegalArgumentException("a table needs a daemon");
        }
        this.definition = definition;
        this.nodes = clients.stream().map(client -> new Rows(client, definition)).toArray(Rows[]::new);
        this.ketama = nodes.length == 1 ? null : new Ketama(clients.stream().map(c -> c.options().location()).toList());
    }

    int count() {
        return nodes.length;
    }

    Rows node(int place) {
        return nodes[place];
    }

    Rows of(String key) {
        return nodes[place(key)];
    }

    /** Which daemon has a key. */
    int place(String key) {
        if (ketama == null) {
            return 0;
        }
        Keys.Wire name = Keys.wire(definition.prefix(), key);
        return ketama.place(name == null ? key.getBytes(StandardCharsets.UTF_8) : name.key());
    }

    /** What has a key, in one list for each daemon. */
    <T> List<List<T>> parts(Collection<T> all, Function<T, String> key) {
        List<List<T>> parts = new ArrayList<>();
        for (int at = 0; at < nodes.length; at++) {
            parts.add(new ArrayList<>());
        }
        all.forEach(each -> parts.get(place(key.apply(each))).add(each));
        return parts;
    }

    List<Subscription> listen(RowListener listener) {
        List<Subscription> all = new ArrayList<>();
        try {
            for (Rows node : nodes) {
                all.add(node.listen(listener));
            }
            return all;
        } catch (SqlcachedException why) {
            all.forEach(Subscription::close);
            throw why;
        }
    }

    /** Keeps copies of rows. A table has one such set of copies. */
    synchronized NearCache copies(Near options, Values values) {
        if (copies != null) {
            throw new IllegalStateException("the table " + definition.name() + " has a near cache already");
        }
        NearCache made = new NearCache(options, values);
        made.hear(listen(made).toArray(Subscription[]::new));
        for (Rows node : nodes) {
            node.isTimed = true;
        }
        copies = made;
        return made;
    }

    /** The copies of rows, or null. */
    NearCache copies() {
        return copies;
    }

    /** Changes a row. */
    <T> T changed(String key, Function<Rows, T> work) {
        return changed(List.of(key), () -> work.apply(of(key)));
    }

    /** Changes rows. Whether that worked or not, no copy of them is used any more. Null: any row may change. */
    <T> T changed(Collection<String> keys, Supplier<T> work) {
        try {
            return work.get();
        } finally {
            NearCache all = copies;
            if (all != null && keys == null) {
                all.clear();
            } else if (all != null) {
                keys.forEach(all::drop);
            }
        }
    }

    /** Removes rows at all daemons; how many, or -1 if that waits for one. */
    long removed(String text, Object... parameters) {
        return changed(null, () -> sent(text, parameters));
    }

    private long sent(String text, Object... parameters) {
        long count = 0;
        boolean waits = false;
        for (Rows node : nodes) {
            long each = node.removals.send(text, parameters);
            waits |= each < 0;
            count += Math.max(each, 0);
        }
        return waits ? -1 : count;
    }
}
