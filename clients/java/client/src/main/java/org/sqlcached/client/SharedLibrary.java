package org.sqlcached.client;

/** The functions of the C library that read shared memory, by their addresses. */
final class SharedLibrary {
    final long open;
    final long close;
    final long openTable;
    final long freeTable;
    final long peek;
    final long newValue;
    final long freeValue;
    final long data;
    final long flags;
    final long version;
    private final long message;

    /** @param name of the library, or its path */
    SharedLibrary(String name) {
        Foreign.Functions functions = new Foreign.Functions(name);
        open = functions.address("sqlcached_open");
        close = functions.address("sqlcached_close");
        openTable = functions.address("sqlcached_table_open");
        freeTable = functions.address("sqlcached_table_free");
        peek = functions.address("sqlcached_table_peek");
        newValue = functions.address("sqlcached_value_new");
        freeValue = functions.address("sqlcached_value_free");
        data = functions.address("sqlcached_value_data");
        flags = functions.address("sqlcached_value_flags");
        version = functions.address("sqlcached_value_cas");
        message = functions.address("sqlcached_message");
    }

    /** What a function made, or the error that its status says. */
    long checked(int status, long made) {
        if (status == SharedMemory.OK) {
            return made;
        }
        try {
            // Of the call before, in this thread.
            long text = (long) Foreign.NEW.invokeExact(message);
            throw new SqlcachedException(Foreign.text(text));
        } catch (Throwable why) {
            throw Foreign.failed(why);
        }
    }

    static void free(long function, long object) {
        try {
            Foreign.FREE.invokeExact(function, object);
        } catch (Throwable why) {
            throw Foreign.failed(why);
        }
    }
}
