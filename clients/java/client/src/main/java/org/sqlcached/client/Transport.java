package org.sqlcached.client;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Bytes to the daemon and back. */
interface Transport {
    /** Reads at least one byte; -1 at the end. */
    int read(ByteBuffer into) throws IOException;

    /** Writes all of it. */
    void write(ByteBuffer from) throws IOException;

    /** Whether the daemon has not closed it. Between two requests there is nothing to read. */
    boolean isAlive();

    /** Ends it, also while another thread reads. */
    void close();
}
