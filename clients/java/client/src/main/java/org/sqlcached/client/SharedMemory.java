package org.sqlcached.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The rows of a daemon on this machine, read in its shared memory by the C library.
 *
 * <p>Each read has a {@link SharedReader} for itself. What the library holds is freed by the last one that uses it, so that
 * {@link #close} need not wait for reads.
 */
final class SharedMemory {
    /** Statuses of the library. */
    static final int OK = 0;
    static final int MISS = 1;

    /** Fields of the library's options: their size, two pointers, a number of 32 bits and what fills up to the size. */
    private static final int OPTIONS_SIZE = 32;
    private static final int TIMEOUT_AT = 24;

    private final Options options;
    private final SharedLibrary library;
    private final AtomicReferenceArray<SharedReader> idle = new AtomicReferenceArray<>(Limits.READERS);

    /** The readers that there are, and this object until it is closed. */
    private final AtomicInteger users = new AtomicInteger(1);

    /** Tables that were opened, by name. */
    private final Map<String, Long> tables = new ConcurrentHashMap<>();

    /** Held by the one who opens. Others ask the daemon meanwhile. */
    private final ReentrantLock opening = new ReentrantLock();

    /** The library's client; 0 until the daemon was reached. Guarded by the lock, as what follows. */
    private long client;
    private long tried = System.nanoTime() - Limits.RETRY;
    private volatile boolean closed;

    /** Reads that it answered. */
    final LongAdder answers = new LongAdder();

    SharedMemory(Options options) {
        this.options = options;
        this.library = new SharedLibrary(options.sharedMemory());
    }

    /** A table of the library; 0 if it cannot be read now. It is looked for once in a second. */
    long table(String name) {
        Long known = tables.get(name);
        return known == null ? opened(name) : known;
    }

    private long opened(String name) {
        if (!opening.tryLock()) {
            return 0;
        }
        try {
            return openedAlone(name);
        } finally {
            opening.unlock();
        }
    }

    private long openedAlone(String name) {
        Long known = tables.get(name);
        if (known != null) {
            return known;
        }
        long now = System.nanoTime();
        if (closed || now - tried < Limits.RETRY || tables.size() >= Limits.TABLES) {
            return 0;
        }
        tried = now;
        try {
            if (client == 0) {
                client = open();
            }
            long table = openTable(name);
            tables.put(name, table);
            // The next table need not wait.
            tried = now - Limits.RETRY;
            return table;
        } catch (SqlcachedException why) {
            Notices.warn(options + ": shared memory is not read", why);
            return 0;
        }
    }

    private long open() {
        ByteBuffer path = text(options.location());
        ByteBuffer given = numbers(OPTIONS_SIZE);
        given.putLong(0, OPTIONS_SIZE).putLong(Long.BYTES, Foreign.address(path));
        given.putInt(TIMEOUT_AT, (int) options.timeout().toMillis());
        ByteBuffer place = numbers(Long.BYTES);
        try {
            int status = (int) Foreign.OPEN.invokeExact(library.open, Foreign.address(given), Foreign.address(place));
            return library.checked(status, place.getLong(0));
        } catch (Throwable why) {
            throw Foreign.failed(why);
        } finally {
            java.lang.ref.Reference.reachabilityFence(path);
        }
    }

    private long openTable(String name) {
        ByteBuffer text = text(name);
        ByteBuffer place = numbers(Long.BYTES);
        try {
            int status = (int) Foreign.OPEN_TABLE.invokeExact(
                    library.openTable, client, Foreign.address(text), Foreign.address(place));
            return library.checked(status, place.getLong(0));
        } catch (Throwable why) {
            throw Foreign.failed(why);
        } finally {
            java.lang.ref.Reference.reachabilityFence(text);
        }
    }

    /** A text that ends in 0, as C has it. */
    private static ByteBuffer text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocateDirect(bytes.length + 1).put(0, bytes);
    }

    static ByteBuffer numbers(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    }

    /** A reader of one's own until it is given back; null if this is closed. */
    SharedReader take() {
        int first = first();
        for (int near = 0; near < Limits.READERS_LOOK; near++) {
            SharedReader reader = idle.getAndSet((first + near) % Limits.READERS, null);
            if (reader != null) {
                return reader;
            }
        }
        return isUsed() ? new SharedReader(library) : null;
    }

    /** Threads begin at different places, so that they do not wait for each other's cache lines. */
    private static int first() {
        return (int) (Thread.currentThread().getId() * Limits.READERS_LOOK % Limits.READERS);
    }

    /** Counts one more reader, unless all is freed already. */
    private boolean isUsed() {
        return !closed && users.getAndUpdate(count -> count == 0 ? 0 : count + 1) > 0;
    }

    void giveBack(SharedReader reader) {
        int first = first();
        for (int near = 0; near < Limits.READERS_LOOK; near++) {
            int at = (first + near) % Limits.READERS;
            if (idle.compareAndSet(at, null, reader)) {
                if (closed) {
                    end(idle.getAndSet(at, null));
                }
                return;
            }
        }
        end(reader);
    }

    private void end(SharedReader reader) {
        if (reader != null) {
            reader.free();
            leave();
        }
    }

    private void leave() {
        if (users.decrementAndGet() == 0) {
            free();
        }
    }

    /** Nobody reads or opens any more. */
    private void free() {
        tables.values().forEach(table -> SharedLibrary.free(library.freeTable, table));
        tables.clear();
        if (client != 0) {
            SharedLibrary.free(library.close, client);
            client = 0;
        }
    }

    /** No read begins from now on. Those that are running end as usual. */
    void close() {
        opening.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
        } finally {
            opening.unlock();
        }
        for (int at = 0; at < Limits.READERS; at++) {
            end(idle.getAndSet(at, null));
        }
        leave();
    }
}
