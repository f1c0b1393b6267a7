package org.sqlcached.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

/** One connection to the daemon's memcached port: bytes of requests, lines and blocks of answers. */
final class Connection implements Watch.Watched {
    private static final byte[] END = {'\r', '\n'};

    private final Transport transport;
    private final String place;
    private final long timeout;

    /** What is sent next. An array takes the many small pieces of a command faster than memory outside of the heap. */
    private final byte[] out = new byte[Limits.OUT];
    private int filled;
    private final ByteBuffer in = ByteBuffer.allocateDirect(Limits.IN).limit(0);

    /** The line that was read last. The next one takes its place. */
    private byte[] line = new byte[Limits.SHORT_LINE];
    private final Set<Definition> tables = Collections.newSetFromMap(new IdentityHashMap<>());

    /** When the call must be over, in {@link System#nanoTime}; 0 between calls. */
    private volatile long deadline;
    private volatile boolean late;

    /** It answered before, so that a failure may mean only that the daemon was restarted since. */
    boolean used;

    Connection(Transport transport, String place, long timeoutMillis) {
        this.transport = transport;
        this.place = place;
        this.timeout = timeoutMillis * 1_000_000;
        Watch.add(this);
    }

    /** From now on the call may take its time. */
    void begin() {
        filled = 0;
        long end = System.nanoTime() + timeout;
        deadline = end == 0 ? 1 : end;
    }

    /** The call is over, and its answer was read to the end. */
    void done() {
        deadline = 0;
        used = true;
    }

    /** Ends it if its call lasts too long. */
    @Override
    public void look(long now) {
        long end = deadline;
        if (end != 0 && now - end > 0) {
            late = true;
            transport.close();
        }
    }

    /** Whether its call lasted too long. */
    boolean isLate() {
        return late;
    }

    boolean isAlive() {
        return !in.hasRemaining() && transport.isAlive();
    }

    void close() {
        Watch.remove(this);
        transport.close();
    }

    /** Whether this connection has seen that the table is there. */
    boolean knows(Definition table) {
        return tables.contains(table);
    }

    void learn(Definition table) {
        if (tables.size() >= Limits.TABLES) {
            tables.clear();
        }
        tables.add(table);
    }

    void forget(Definition table) {
        tables.remove(table);
    }

    Connection put(byte[] data) {
        if (data.length > out.length - filled) {
            flush();
        }
        if (data.length <= out.length) {
            System.arraycopy(data, 0, out, filled, data.length);
            filled += data.length;
        } else {
            write(ByteBuffer.wrap(data));
        }
        return this;
    }

    /** Text whose letters are all ASCII. */
    Connection put(String ascii) {
        return put(ascii.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** A number without a sign. */
    Connection put(long number) {
        return put(Long.toUnsignedString(number));
    }

    Connection end() {
        return put(END);
    }

    /** Sends what was put. */
    void flush() {
        int count = filled;
        filled = 0;
        write(ByteBuffer.wrap(out, 0, count));
    }

    private void write(ByteBuffer data) {
        try {
            // What the kernel takes at once is copied once; a whole value would be.
            while (data.hasRemaining()) {
                int all = data.limit();
                data.limit(Math.min(all, data.position() + Limits.IN));
                transport.write(data);
                data.limit(all);
            }
        } catch (IOException why) {
            throw lost(why);
        }
    }

    private void fill() {
        in.clear();
        int count;
        try {
            count = transport.read(in);
        } catch (IOException why) {
            in.limit(0);
            throw lost(why);
        }
        in.flip();
        if (count < 0) {
            throw new UnavailableException(place + ": the connection was closed");
        }
    }

    /** Reads one line, which is then in {@link #bytes}; how long it is without its end. */
    int readLine() {
        int have = 0;
        while (true) {
            if (!in.hasRemaining()) {
                fill();
            }
            int count = Math.min(in.remaining(), Limits.SHORT_LINE);
            makeRoom(have, count);
            in.get(in.position(), line, have, count);
            for (int at = have; at < have + count; at++) {
                if (line[at] == '\n') {
                    in.position(in.position() + at + 1 - have);
                    return at > 0 && line[at - 1] == '\r' ? at - 1 : at;
                }
            }
            in.position(in.position() + count);
            have += count;
            if (have > Limits.ROW) {
                throw strange("a line that does not end");
            }
        }
    }

    /** Whoever had a long row once needs no such room for ever. */
    private void makeRoom(int have, int more) {
        if (have == 0 && line.length > Limits.IN) {
            line = new byte[Limits.SHORT_LINE];
        } else if (have + more > line.length) {
            line = Arrays.copyOf(line, Math.max(have + more, 2 * line.length));
        }
    }

    /** The line that was read last, and behind it anything. */
    byte[] bytes() {
        return line;
    }

    /** One line without its end. */
    String line() {
        int length = readLine();
        return new String(line, 0, length, StandardCharsets.UTF_8);
    }

    /** A data block of this size, and its line end. */
    byte[] block(int size) {
        if (size < 0 || size > Limits.VALUE) {
            throw strange("a value of " + size + " bytes");
        }
        byte[] data = new byte[Math.min(size, Limits.BELIEVED)];
        int have = 0;
        while (have < size) {
            if (!in.hasRemaining()) {
                fill();
            }
            if (have == data.length) {
                data = Arrays.copyOf(data, (int) Math.min(size, 2L * have));
            }
            int count = Math.min(data.length - have, in.remaining());
            in.get(data, have, count);
            have += count;
        }
        if (one() != '\r' || one() != '\n') {
            throw strange("a value that is longer than announced");
        }
        return data;
    }

    private byte one() {
        if (!in.hasRemaining()) {
            fill();
        }
        return in.get();
    }

    /** An answer that is not memcached's: the connection is out of step, or this is another server. */
    UnavailableException strange(String what) {
        return new UnavailableException(place + ": " + what);
    }

    private UnavailableException lost(IOException why) {
        if (late) {
            return new UnavailableException(place + ": no answer in time", why);
        }
        if (why instanceof ClosedByInterruptException) {
            return new UnavailableException(place + ": the thread was interrupted", why);
        }
        return new UnavailableException(place + ": " + (why.getMessage() == null ? why : why.getMessage()), why);
    }

    /** The error of an answer. */
    SqlcachedException refused(String line) {
        if (line.matches("ERROR [0-9A-Z]{5} .*")) {
            return new StatementException(line.substring(6, 11), line.substring(12));
        }
        if (line.matches("(ERROR|CLIENT_ERROR|SERVER_ERROR|NOT_STORED)\\b.*")) {
            return new RefusedException(line);
        }
        return strange("an answer that is not memcached's: " + line.substring(0, Math.min(200, line.length())));
    }
}
