package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** memcached's protocol as this package needs it: answers as values. */
final class Protocol {
    private Protocol() {
    }

    static void statement(Connection to, String text, Object... parameters) {
        byte[] statement = text.getBytes(StandardCharsets.UTF_8);
        byte[] array = Json.parameters(parameters);
        to.put("sqlp ").put(statement.length).put(" ").put(array.length).end();
        to.put(statement).end().put(array).end().flush();
    }

    /** The answer of a statement. */
    static Result result(Connection from) {
        List<Map<String, Object>> rows = new ArrayList<>();
        while (true) {
            String line = from.line();
            if (line.equals("END")) {
                return new Result(rows, rows.size());
            }
            if (line.startsWith("{")) {
                rows.add(row(from, line));
            } else if (line.matches("OK \\d{1,18}")) {
                return new Result(rows, Long.parseLong(line.substring(3)));
            } else {
                throw from.refused(line);
            }
        }
    }

    private static Map<String, Object> row(Connection from, String line) {
        try {
            return Json.row(line);
        } catch (IllegalArgumentException | IndexOutOfBoundsException why) {
            throw from.strange("a row that is no JSON");
        }
    }

    /** The answer of {@code mg} with {@code v f c}; null for a miss. */
    static Item item(Connection from) {
        int length = from.readLine();
        return length == 2 && isWord(from, length, 'E', 'N') ? null : item(from, length);
    }

    /** The answers of many {@code mg} with {@code v f q} and their place as opaque, behind them {@code mn}. */
    static void items(Connection from, Consumer<Item> found) {
        String failure = null;
        while (true) {
            int length = from.readLine();
            if (isWord(from, length, 'M', 'N')) {
                break;
            }
            if (isWord(from, length, 'V', 'A')) {
                found.accept(item(from, length));
            } else if (failure == null) {
                failure = text(from, length);
            }
        }
        if (failure != null) {
            throw from.refused(failure);
        }
    }

    /** The value that the line in the connection announces, of this length. */
    private static Item item(Connection from, int length) {
        if (length < 4 || !isWord(from, length, 'V', 'A')) {
            throw from.refused(text(from, length));
        }
        byte[] line = from.bytes();
        int at = 3;
        int end = wordEnd(line, at, length);
        byte[] data = from.block((int) Math.min(number(from, at, end), Integer.MAX_VALUE));
        int flags = 0;
        long cas = 0;
        int place = 0;
        long ttl = Item.NOT_KNOWN;
        boolean won = false;
        boolean stale = false;
        for (at = end + 1; at < length; at = end + 1) {
            end = wordEnd(line, at, length);
            switch (line[at]) {
                case 'f' -> flags = (int) number(from, at + 1, end);
                case 'c' -> cas = number(from, at + 1, end);
                case 't' -> ttl = line[at + 1] == '-' ? Item.FOREVER : number(from, at + 1, end);
                case 'O' -> place = (int) number(from, at + 1, end);
                case 'W' -> won = true;
                case 'X' -> stale = true;
                default -> { }
            }
        }
        return new Item(data, flags, cas, won, stale, place, ttl);
    }

    private static int wordEnd(byte[] line, int at, int length) {
        int end = at;
        while (end < length && line[end] != ' ') {
            end++;
        }
        return end;
    }

    /** A number of 64 bits without a sign, in the line of the connection. */
    private static long number(Connection from, int at, int end) {
        byte[] line = from.bytes();
        long found = 0;
        for (int i = at; i < end; i++) {
            if (line[i] < '0' || line[i] > '9') {
                throw from.strange("no number: " + text(from, end));
            }
            found = found * 10 + line[i] - '0';
        }
        return found;
    }

    private static boolean isWord(Connection from, int length, char first, char second) {
        byte[] line = from.bytes();
        return length >= 2 && line[0] == first && line[1] == second && (length == 2 || line[2] == ' ');
    }

    private static String text(Connection from, int length) {
        return new String(from.bytes(), 0, length, StandardCharsets.UTF_8);
    }

    /** Whether a command was done, that is answered with one line. */
    static boolean done(Connection from) {
        return done(from, from.line());
    }

    static boolean done(Connection from, String line) {
        if (line.equals("HD") || line.startsWith("HD ")) {
            return true;
        }
        if (line.matches("(NS|EX|NF|EN)( .*)?")) {
            return false;
        }
        throw from.refused(line);
    }

    /** What quiet commands answered before their {@code mn}; success and missing keys are not among it. */
    static List<String> refusals(Connection from) {
        List<String> found = new ArrayList<>();
        for (String line; !(line = from.line()).equals("MN"); ) {
            if (!line.startsWith("NF")) {
                found.add(line);
            }
        }
        return found;
    }
}
