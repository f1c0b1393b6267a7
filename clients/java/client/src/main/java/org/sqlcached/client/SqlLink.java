package org.sqlcached.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** A connection to the daemon's SQL port, which speaks as much of PostgreSQL's protocol as LISTEN needs. */
final class SqlLink implements AutoCloseable {
    /** Asks for TLS, which PostgreSQL's clients do in the clear. */
    static final byte[] TLS = ByteBuffer.allocate(8).putInt(8).putInt(80_877_103).array();
    private static final int VERSION = 196_608;

    /** What the daemon asks of a login. */
    private static final int GRANTED = 0;
    private static final int PASSWORD = 3;
    private static final int SASL = 10;
    private static final int SASL_MORE = 11;
    private static final int SASL_LAST = 12;

    private final Transport transport;
    private final String place;
    private final ByteBuffer in = ByteBuffer.allocate(Limits.IN).limit(0);

    SqlLink(Transport transport, String place) {
        this.transport = transport;
        this.place = place;
    }

    /** A message: its letter, and what it says. */
    record Message(char letter, ByteBuffer body) {
        /** Text up to its NUL. */
        String text() {
            int end = body.position();
            while (body.get(end) != 0) {
                end++;
            }
            byte[] text = new byte[end - body.position()];
            body.get(text).get();
            return new String(text, StandardCharsets.UTF_8);
        }

        /** The payload of a notification, behind the sender's number and the channel. */
        String notification() {
            body.getInt();
            text();
            return text();
        }

        /** The first column of a row. */
        String column() {
            body.getShort();
            byte[] text = new byte[body.getInt()];
            body.get(text);
            return new String(text, StandardCharsets.UTF_8);
        }

        /** Text up to the end of the message. */
        String rest() {
            return StandardCharsets.UTF_8.decode(body).toString();
        }
    }

    void logIn(String user, String password) throws IOException {
        ByteArrayOutputStream start = new ByteArrayOutputStream();
        start.write(ByteBuffer.allocate(4).putInt(VERSION).array());
        for (String word : new String[] {"user", user, "application_name", "sqlcached-java", ""}) {
            start.write(word.getBytes(StandardCharsets.UTF_8));
            start.write(0);
        }
        send(null, start.toByteArray());
        Scram scram = new Scram(password);
        for (Message message; (message = next()).letter != 'Z'; ) {
            if (message.letter == 'R') {
                prove(message, scram, password);
            }
        }
    }

    private void prove(Message asked, Scram scram, String password) throws IOException {
        int kind = asked.body.getInt();
        switch (kind) {
            case GRANTED -> { }
            case PASSWORD -> send('p', (password + '\0').getBytes(StandardCharsets.UTF_8));
            case SASL -> {
                byte[] first = scram.first().getBytes(StandardCharsets.UTF_8);
                byte[] name = (Scram.MECHANISM + '\0').getBytes(StandardCharsets.US_ASCII);
                send('p', ByteBuffer.allocate(name.length + 4 + first.length).put(name).putInt(first.length).put(first).array());
            }
            case SASL_MORE -> send('p', scram.last(asked.rest()).getBytes(StandardCharsets.UTF_8));
            case SASL_LAST -> {
                if (!scram.isProven(asked.rest())) {
                    throw new RefusedException(place + ": it does not know the password that it asks for");
                }
            }
            default -> throw new RefusedException(place + ": it asks for a login of a kind that is not known here: " + kind);
        }
    }

    /** Sends statements. Their answers end with a message {@code Z}. */
    void ask(String statements) throws IOException {
        send('Q', (statements + '\0').getBytes(StandardCharsets.UTF_8));
    }

    private void send(Character letter, byte[] body) throws IOException {
        ByteBuffer message = ByteBuffer.allocate(5 + body.length);
        if (letter != null) {
            message.put((byte) letter.charValue());
        }
        transport.write(message.putInt(4 + body.length).put(body).flip());
    }

    /** The next message. An error is thrown. */
    Message next() throws IOException {
        need(5);
        char letter = (char) in.get();
        int length = in.getInt() - 4;
        if (length < 0 || length > Limits.MESSAGE) {
            throw new IOException("an answer that is not PostgreSQL's");
        }
        need(length);
        byte[] body = new byte[length];
        in.get(body);
        Message message = new Message(letter, ByteBuffer.wrap(body));
        if (letter == 'E') {
            throw error(message);
        }
        return message;
    }

    private StatementException error(Message message) {
        Map<Character, String> fields = new HashMap<>();
        for (char field; (field = (char) message.body.get()) != 0; ) {
            fields.put(field, message.text());
        }
        return new StatementException(fields.get('C'), place + ": " + fields.get('M'));
    }

    private void need(int count) throws IOException {
        if (in.remaining() >= count) {
            return;
        }
        in.compact();
        while (in.position() < count) {
            if (transport.read(in) < 0) {
                throw new IOException("the connection was closed");
            }
        }
        in.flip();
    }

    /** Ends it, also while another thread reads. */
    @Override
    public void close() {
        transport.close();
    }
}
