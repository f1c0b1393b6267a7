package org.sqlcached.client;

import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/**
 * What a daemon announces about rows that left its tables (LISTEN). One connection and one thread serve all tables of a
 * client, as long as somebody listens.
 *
 * <p>Twice a second the daemon is asked whether each table still announces. So a connection that is silent because it is
 * broken, and a table that was made again without its channel, are found out. Listeners learn it when they hear again.
 */
final class Announcements implements Runnable, Watch.Watched {
    private static final Map<String, RowListener.Cause> CAUSES = Map.of(
            "invalidate", RowListener.Cause.INVALIDATED,
            "expire", RowListener.Cause.EXPIRED,
            "evict", RowListener.Cause.EVICTED);

    private final Client client;
    private final List<Subscription> all = new CopyOnWriteArrayList<>();

    /** Guarded by this object, as are the beginning and the end of the thread. */
    private boolean runs;
    private boolean closed;

    // A question and its answer. Guarded by this object.
    private SqlLink link;
    private boolean isAsked;
    private long moment;
    private List<Subscription> askedFor = List.of();
    private final Set<String> channels = new HashSet<>();

    Announcements(Client client) {
        this.client = client;
    }

    Subscription add(Definition table, RowListener listener) {
        Subscription subscription = new Subscription(this, table, listener);
        try {
            table.announce();
            subscription.channel(client.run(true, table::channel));
        } catch (UnavailableException why) {
            // The thread asks again, as soon as it has a connection.
            warn(why);
        }
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException(client.options() + ": the client is closed");
            }
            all.add(subscription);
            if (!runs) {
                runs = true;
                Thread thread = new Thread(this, "sqlcached-announcements");
                thread.setDaemon(true);
                // The thread outlives who started it, and must not hold the class loader of an application.
                thread.setContextClassLoader(null);
                thread.start();
            } else if (subscription.channel() == null && link != null) {
                link.close();
            }
        }
        return subscription;
    }

    synchronized void remove(Subscription subscription) {
        all.remove(subscription);
        if (all.isEmpty() && link != null) {
            link.close();
        }
    }

    synchronized void close() {
        closed = true;
        all.clear();
        if (link != null) {
            link.close();
        }
    }

    @Override
    public void run() {
        for (long pause = Limits.RECONNECT_MIN; !isOver(); pause = Math.min(2 * pause, Limits.RECONNECT_MAX)) {
            try {
                hear();
            } catch (IOException | RuntimeException why) {
                pause = wasHeard() ? Limits.RECONNECT_MIN : pause;
                lose(why);
            }
            LockSupport.parkNanos(pause * 1_000_000);
        }
    }

    private synchronized boolean isOver() {
        runs = !all.isEmpty();
        return !runs;
    }

    private boolean wasHeard() {
        return all.stream().anyMatch(Subscription::isHeard);
    }

    private void lose(Exception why) {
        Watch.remove(this);
        boolean ends;
        synchronized (this) {
            ends = all.isEmpty();
            link = null;
            askedFor = List.of();
            channels.clear();
        }
        all.forEach(Subscription::lost);
        if (!ends) {
            warn(why);
        }
    }

    private void warn(Exception why) {
        Notices.warn(client.options() + ": its announcements are not heard", why);
    }

    private void hear() throws IOException {
        for (Subscription each : all) {
            prepare(each);
        }
        Options options = client.options();
        Place place = SqlPlace.of(client);
        try (SqlLink opened = new SqlLink(place.reach(options, SqlLink.TLS), place.toString())) {
            begin(opened);
            opened.logIn(Objects.requireNonNullElse(options.user(), System.getProperty("user.name")), options.password());
            answered(0);
            String count = "";
            while (true) {
                SqlLink.Message message = opened.next();
                switch (message.letter()) {
                    case 'A' -> announced(message);
                    case 'D' -> count = message.column();
                    case 'Z' -> answered(Long.parseLong(count));
                    default -> { }
                }
            }
        }
    }

    /** Makes a table announce. One that this role may not change is not heard; the others are. */
    private void prepare(Subscription each) {
        try {
            each.channel(client.run(true, each.table()::channel));
        } catch (RefusedException | StatementException why) {
            each.channel(null);
            warn(why);
        }
    }

    /** A login may last as long as a call. */
    private synchronized void begin(SqlLink opened) {
        link = opened;
        isAsked = true;
        moment = System.nanoTime();
        Watch.add(this);
    }

    /** The answer: how many tables do not announce as they should. */
    private void answered(long silent) throws IOException {
        if (silent != 0) {
            throw new IOException("a table was made again, without its announcements");
        }
        List<Subscription> heard;
        synchronized (this) {
            isAsked = false;
            heard = askedFor;
        }
        heard.forEach(each -> each.heardAt(moment));
    }

    /** Asks again, if it is time, or ends a connection that does not answer. */
    @Override
    public synchronized void look(long now) {
        if (link == null) {
            return;
        }
        if (isAsked) {
            if (now - moment > client.options().timeout().toNanos()) {
                link.close();
            }
            return;
        }
        List<Subscription> wanted = all.stream().filter(each -> each.channel() != null).toList();
        if (wanted.equals(askedFor) && now - moment < Limits.BEAT) {
            return;
        }
        try {
            // One question at a time, which the kernel takes at once: nobody waits here.
            link.ask(question(wanted));
            isAsked = true;
            moment = now;
            askedFor = wanted;
        } catch (IOException why) {
            link.close();
        }
    }

    /** Listens where it did not yet, and counts tables that do not announce, or that this role may not read. */
    private String question(List<Subscription> wanted) {
        StringBuilder text = new StringBuilder();
        for (Subscription each : wanted) {
            if (channels.add(each.channel())) {
                text.append("LISTEN \"").append(each.channel().replace("\"", "\"\"")).append("\"; ");
            }
        }
        String silent = wanted.stream().map(Announcements::silent).distinct().collect(Collectors.joining(" OR "));
        return text + "SELECT count(*) FROM sqlcached_tables WHERE " + (silent.isEmpty() ? "FALSE" : silent);
    }

    private static String silent(Subscription each) {
        String option = Definition.literal("notify=" + each.channel());
        return "(table_name = " + Definition.literal(each.table().name()) + " AND NOT (" + option
                + " = ANY(options) AND has_table_privilege(oid, 'SELECT')))";
    }

    private void announced(SqlLink.Message message) {
        Map<String, Object> said;
        try {
            said = Json.row(message.notification());
        } catch (IllegalArgumentException | IndexOutOfBoundsException why) {
            // Somebody else uses the channel, too.
            return;
        }
        for (Subscription each : all) {
            if (each.table().name().equals(said.get("table"))) {
                tell(each, said);
            }
        }
    }

    private static void tell(Subscription to, Map<String, Object> said) {
        RowListener.Cause cause = CAUSES.get(said.get("event"));
        String prefix = to.table().prefix();
        if (cause == null) {
            to.allMayHaveChanged();
        } else if (said.get("key") instanceof String key && key.startsWith(prefix)) {
            // Bytes that are no text are no key of this client.
            to.left(Keys.of(key.substring(prefix.length())), cause);
        }
    }
}
