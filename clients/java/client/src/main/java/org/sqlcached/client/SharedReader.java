package org.sqlcached.client;

import java.nio.ByteBuffer;

/** Room for the key and the value of one read in shared memory at a time. */
final class SharedReader {
    private final SharedLibrary library;
    private final ByteBuffer key = ByteBuffer.allocateDirect(Limits.KEY);
    private final long keyAt = Foreign.address(key);
    private final ByteBuffer length = SharedMemory.numbers(Long.BYTES);
    private final long lengthAt = Foreign.address(length);
    private final long value;

    SharedReader(SharedLibrary library) {
        this.library = library;
        try {
            value = (long) Foreign.NEW.invokeExact(library.newValue);
        } catch (Throwable why) {
            throw Foreign.failed(why);
        }
        if (value == 0) {
            throw new SqlcachedException("there is no memory for a value");
        }
    }

    /** The library's status of a read; of what was read, {@link #item} is the rest. */
    int peek(long table, byte[] name) {
        key.put(0, name);
        try {
            return (int) Foreign.PEEK.invokeExact(library.peek, table, keyAt, (long) name.length, value);
        } catch (Throwable why) {
            throw Foreign.failed(why);
        }
    }

    /** The row that was read last. */
    Item item() {
        try {
            long data = (long) Foreign.DATA.invokeExact(library.data, value, lengthAt);
            byte[] bytes = (byte[]) Foreign.BYTES.invokeExact(data, length.getLong(0));
            int flags = (int) Foreign.INT_OF.invokeExact(library.flags, value);
            long version = (long) Foreign.LONG_OF.invokeExact(library.version, value);
            return new Item(bytes, flags, version, false, false, 0, Item.NOT_KNOWN);
        } catch (Throwable why) {
            throw Foreign.failed(why);
        }
    }

    void free() {
        SharedLibrary.free(library.freeValue, value);
    }
}
