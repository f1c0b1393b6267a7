package org.sqlcached.client;

import java.nio.charset.StandardCharsets;

/** A table of one daemon, read in shared memory. */
final class SharedTable {
    /** Only the daemon knows the row, or who computes its value again. */
    static final Item NOT_HERE = new Item(new byte[0], 0, 0, false, false, 0, Item.NOT_KNOWN);

    private final SharedMemory memory;
    private final String name;

    /** Bytes of a key that is short enough, without the table's prefix. */
    private final int longest;

    /** The library's table; 0 until it was opened. It lives as long as a reader is used. */
    private volatile long table;

    SharedTable(SharedMemory memory, Definition definition) {
        this.memory = memory;
        this.name = definition.name();
        this.longest = Limits.KEY - definition.prefix().length();
    }

    /**
     * @param key any text
     * @return a value that is fresh; null if there is no row; or {@link #NOT_HERE}
     */
    Item read(String key) {
        byte[] bytes = Keys.text(key).getBytes(StandardCharsets.UTF_8);
        if (bytes.length == 0 || bytes.length > longest) {
            return NOT_HERE;
        }
        long opened = opened();
        SharedReader reader = opened == 0 ? null : memory.take();
        if (reader == null) {
            return NOT_HERE;
        }
        try {
            int status = reader.peek(opened, bytes);
            if (status == SharedMemory.MISS) {
                memory.answers.increment();
                return null;
            }
            Item item = status == SharedMemory.OK ? reader.item() : NOT_HERE;
            if (item.isReserved()) {
                return NOT_HERE;
            }
            memory.answers.increment();
            return item;
        } finally {
            memory.giveBack(reader);
        }
    }

    private long opened() {
        long known = table;
        if (known == 0) {
            known = memory.table(name);
            table = known;
        }
        return known;
    }
}
