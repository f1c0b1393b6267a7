package org.sqlcached.jcache;

import java.util.concurrent.atomic.LongAdder;
import javax.cache.management.CacheStatisticsMXBean;

/** What this process did with a cache, counted while statistics are on. */
final class Statistics implements CacheStatisticsMXBean {
    private static final float MICROS = 1_000f;

    private final LongAdder hits = new LongAdder();
    private final LongAdder misses = new LongAdder();
    private final LongAdder puts = new LongAdder();
    private final LongAdder removals = new LongAdder();
    private final LongAdder getNanos = new LongAdder();
    private final LongAdder putNanos = new LongAdder();
    private final LongAdder removeNanos = new LongAdder();

    /** Whether calls are counted. */
    volatile boolean isOn;

    private static void add(boolean on, LongAdder to, long count) {
        if (on && count > 0) {
            to.add(count);
        }
    }

    void looked(long found, long missed, long since) {
        add(isOn, hits, found);
        add(isOn, misses, missed);
        add(isOn, getNanos, System.nanoTime() - since);
    }

    void looked(boolean found, long since) {
        looked(found ? 1 : 0, found ? 0 : 1, since);
    }

    void put(long count, long since) {
        add(isOn, puts, count);
        add(isOn && count > 0, putNanos, System.nanoTime() - since);
    }

    void removed(long count, long since) {
        add(isOn, removals, count);
        add(isOn && count > 0, removeNanos, System.nanoTime() - since);
    }

    @Override
    public void clear() {
        for (LongAdder each : new LongAdder[] {hits, misses, puts, removals, getNanos, putNanos, removeNanos}) {
            each.reset();
        }
    }

    @Override
    public long getCacheHits() {
        return hits.sum();
    }

    @Override
    public float getCacheHitPercentage() {
        return percentage(getCacheHits());
    }

    @Override
    public long getCacheMisses() {
        return misses.sum();
    }

    @Override
    public float getCacheMissPercentage() {
        return percentage(getCacheMisses());
    }

    private float percentage(long part) {
        long all = getCacheGets();
        return all == 0 ? 0 : 100f * part / all;
    }

    @Override
    public long getCacheGets() {
        return getCacheHits() + getCacheMisses();
    }

    @Override
    public long getCachePuts() {
        return puts.sum();
    }

    @Override
    public long getCacheRemovals() {
        return removals.sum();
    }

    /** The daemon evicts, and tells it in its own statistics. */
    @Override
    public long getCacheEvictions() {
        return 0;
    }

    @Override
    public float getAverageGetTime() {
        return average(getNanos, getCacheGets());
    }

    @Override
    public float getAveragePutTime() {
        return average(putNanos, getCachePuts());
    }

    @Override
    public float getAverageRemoveTime() {
        return average(removeNanos, getCacheRemovals());
    }

    private static float average(LongAdder nanos, long count) {
        return count == 0 ? 0 : nanos.sum() / MICROS / count;
    }
}
