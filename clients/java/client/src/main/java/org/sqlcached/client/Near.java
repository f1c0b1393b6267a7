package org.sqlcached.client;

import java.time.Duration;
import java.util.function.UnaryOperator;

/**
 * How a process keeps copies of values, which it then reads without asking the daemon.
 *
 * <p>A copy is dropped when the daemon announces that its row left, a tenth of a second later at most. If the daemon is
 * not heard, no copy is used that was not confirmed within {@code staleness}.
 *
 * @param entries how many copies there are at most
 * @param staleness for how long copies are used after the daemon was last heard, at least a second
 * @param isShared whether all readers get the same object. Else only values of Java's own types that nobody can change are
 *     shared, and others are made of their bytes at each read
 */
public record Near(int entries, Duration staleness, boolean isShared) {
    /** Checks what was given. */
    public Near {
        if (entries < 1) {
            throw new IllegalArgumentException("a near cache has a number of entries above 0");
        }
        if (staleness.toMillis() < Limits.STALENESS_MIN) {
            throw new IllegalArgumentException("the staleness is at least a second: the daemon is asked twice in one");
        }
    }

    /**
     * @param count how many copies there are at most
     * @return copies that are used for two seconds after the daemon was last heard
     */
    public static Near entries(int count) {
        return new Near(count, Duration.ofSeconds(2), false);
    }

    /**
     * @param bound for how long copies are used after the daemon was last heard
     * @return copies with this bound
     */
    public Near staleness(Duration bound) {
        return new Near(entries, bound, isShared);
    }

    /** @return copies for readers that never change a value: all of them get the same object */
    public Near shared() {
        return new Near(entries, staleness, true);
    }

    /**
     * A near cache of a framework's settings: {@code near} (its entries), {@code near_staleness} in seconds,
     * {@code near_shared} ({@code true}).
     *
     * @param setting the setting of this name, or null
     * @return what was set; null without {@code near}
     */
    public static Near named(UnaryOperator<String> setting) {
        String count = setting.apply("near");
        if (count == null) {
            return null;
        }
        Near near = entries(Integer.parseInt(count));
        String bound = setting.apply("near_staleness");
        if (bound != null) {
            near = near.staleness(Duration.ofMillis((long) (Double.parseDouble(bound) * 1000)));
        }
        return Boolean.parseBoolean(setting.apply("near_shared")) ? near.shared() : near;
    }
}
