package org.sqlcached.jcache;

import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import javax.cache.expiry.CreatedExpiryPolicy;
import javax.cache.expiry.Duration;
import javax.cache.expiry.EternalExpiryPolicy;
import javax.cache.expiry.ExpiryPolicy;
import javax.cache.expiry.ModifiedExpiryPolicy;
import javax.cache.expiry.TouchedExpiryPolicy;
import org.sqlcached.client.Write;

/**
 * When values expire. The daemon counts in seconds. A value that lives for less than half a minute has its deadline in
 * milliseconds, too: its last 16 bits are the first 16 of the flags. The value itself stays legible.
 */
final class Deadlines {
    /** The flags have such a deadline. */
    private static final int EXACT = 0x8000;

    /** Two moments that are less than 2^15 milliseconds apart can be compared by their last 16 bits. */
    private static final long LONGEST = 30_000;

    private final ExpiryPolicy policy;

    Deadlines(ExpiryPolicy policy) {
        this.policy = policy;
    }

    Duration ofCreation() {
        return asked(policy::getExpiryForCreation, Duration.ETERNAL);
    }

    Duration ofUpdate() {
        return asked(policy::getExpiryForUpdate, null);
    }

    Duration ofAccess() {
        return asked(policy::getExpiryForAccess, null);
    }

    /** A policy that throws changes nothing. */
    private static Duration asked(Supplier<Duration> question, Duration other) {
        try {
            return question.get();
        } catch (RuntimeException why) {
            return other;
        }
    }

    /** Whether a value may be written without a look at the old one. */
    boolean isSameForAll() {
        Class<?> type = policy.getClass();
        return type == EternalExpiryPolicy.class || type == ModifiedExpiryPolicy.class || type == TouchedExpiryPolicy.class;
    }

    /** Whether an access changes nothing, whoever the policy is. */
    boolean isAccessFree() {
        Class<?> type = policy.getClass();
        return type == EternalExpiryPolicy.class
                || type == ModifiedExpiryPolicy.class
                || type == CreatedExpiryPolicy.class;
    }

    static boolean isZero(Duration duration) {
        return duration != null && duration.isZero();
    }

    private static long millis(Duration duration) {
        return duration.getTimeUnit().toMillis(duration.getDurationAmount());
    }

    /** What the daemon is told. */
    static long seconds(Duration duration) {
        if (duration.isEternal()) {
            return Write.FOREVER;
        }
        long millis = millis(duration);
        // The daemon must not be earlier than the exact deadline.
        return isShort(millis) ? millis / 1000 + 2 : (millis + 500) / 1000;
    }

    private static boolean isShort(long millis) {
        return millis <= LONGEST;
    }

    /** The flags of a value with its deadline. */
    static int flags(int flags, Duration duration) {
        int plain = flags & 0x7fff;
        if (duration.isEternal() || !isShort(millis(duration))) {
            return plain;
        }
        long end = System.currentTimeMillis() + Math.max(1, millis(duration));
        return plain | EXACT | (int) (end & 0xffff) << 16;
    }

    static boolean isExact(int flags) {
        return (flags & EXACT) != 0;
    }

    /** Milliseconds that are left; below 1 the value is expired. */
    private static long left(int flags) {
        return (short) ((flags >>> 16) - (int) (System.currentTimeMillis() & 0xffff));
    }

    static boolean isExpired(int flags) {
        return isExact(flags) && left(flags) <= 0;
    }

    /** What is left of an exact deadline. More than the longest says that two clocks disagree. */
    static Duration rest(int flags) {
        return new Duration(TimeUnit.MILLISECONDS, Math.min(LONGEST, Math.max(1, left(flags))));
    }
}
