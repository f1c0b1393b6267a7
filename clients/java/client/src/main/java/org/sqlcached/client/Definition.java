package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.CRC32;

/**
 * The table of a cache: keys, values, tags. {@code SELECT key, body, tags, _ttl FROM cache} in psql shows it.
 *
 * <p>The key's prefix is the table's name and a colon. The table is ordered, so that keys that begin alike are found
 * without a scan, and an iteration goes on where it was.
 */
public final class Definition {
    /** The index of the tags has a name that is five letters longer, and a name has at most 63. */
    private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]{0,57}");
    private static final String FORBIDDEN = "42501";

    /** The option that names the channel on which a table announces which of its rows left. */
    private static final String NOTIFY = "notify";
    private static final Pattern CHANNEL = Pattern.compile("\"notify=((?:[^\"\\\\]|\\\\.)*)\"");

    private final String name;
    private final String prefix;
    private final Map<String, Object> options = new LinkedHashMap<>();
    private volatile boolean isAnnounced;
    private volatile boolean isShared;

    /**
     * @param name letters, digits and _
     * @param options of the table: {@code ttl}, {@code max_memory}, {@code min_memory}, {@code max_rows}, ... They count
     *     when the table is made
     */
    public Definition(String name, Map<String, ?> options) {
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    "'" + name + "' is no name of a table: letters, digits and _, at most 58");
        }
        this.name = name;
        this.prefix = name + ":";
        this.options.put("prefix", prefix);
        this.options.put("value", "body");
        this.options.put("tags", "tags");
        this.options.put("ordered", true);
        options.forEach((option, value) -> {
            if (!option.matches("[a-z_]+")) {
                throw new IllegalArgumentException("'" + option + "' is no option of a table");
            }
            this.options.put(option, value);
        });
    }

    /** @param name letters, digits and _ */
    public Definition(String name) {
        this(name, Map.of());
    }

    /**
     * @param name of a cache, with any letters
     * @return the name, if a table can have it; else as much of it as can be, and a sum of all of it
     */
    public static String nameOf(String name) {
        if (NAME.matcher(name).matches()) {
            return name;
        }
        CRC32 sum = new CRC32();
        sum.update(name.getBytes(StandardCharsets.UTF_8));
        String letters = name.replaceAll("[^A-Za-z0-9_]", "_");
        return "_" + letters.substring(0, Math.min(letters.length(), 48)) + String.format("_%08x", sum.getValue());
    }

    /** @return the table's name */
    public String name() {
        return name;
    }

    /** @return what memcached's keys of the table begin with */
    public String prefix() {
        return prefix;
    }

    /** @return the name as an identifier of SQL */
    public String quoted() {
        return '"' + name + '"';
    }

    /** Whether rows without a deadline of their own get one from the table. */
    boolean hasTtl() {
        return options.containsKey("ttl");
    }

    /** @return the statements that make the table */
    public List<String> statements() {
        Map<String, Object> all = new LinkedHashMap<>(options);
        if (isAnnounced) {
            all.putIfAbsent(NOTIFY, name);
        }
        if (isShared) {
            all.putIfAbsent("shared_memory", true);
        }
        String with = all.entrySet().stream()
                .map(each -> each.getKey() + " = " + literal(each.getValue()))
                .collect(Collectors.joining(", "));
        return List.of(
                "CREATE TABLE IF NOT EXISTS " + quoted() + " (key TEXT PRIMARY KEY, body ANY, tags TEXT[]) WITH (" + with + ")",
                "CREATE INDEX IF NOT EXISTS \"" + name + "_tags\" ON " + quoted() + " USING gin (tags)");
    }

    static String literal(Object value) {
        if (value instanceof Boolean on) {
            return on ? "on" : "off";
        }
        return value instanceof Number ? value.toString() : "'" + value.toString().replace("'", "''") + "'";
    }

    /**
     * Makes sure of the table, once for each connection: the daemon may be another one than before, and the tables of
     * an earlier one may be gone. Without its table memcached's commands would go to the built-in one.
     */
    void ensure(Connection connection) {
        if (connection.knows(this)) {
            return;
        }
        if (!isThere(connection)) {
            make(connection);
        }
        connection.learn(this);
    }

    private void make(Connection connection) {
        try {
            for (String text : statements()) {
                Protocol.statement(connection, text);
                Protocol.result(connection);
            }
        } catch (StatementException why) {
            if (!why.sqlState().equals(FORBIDDEN)) {
                throw why;
            }
            String text = String.join(";\n", statements());
            throw new RefusedException("a superuser must make the table " + name + ":\n" + text, why);
        }
    }

    /** The options of the table that is there; null if none is. */
    private String have(Connection connection) {
        Protocol.statement(connection, "SELECT options FROM sqlcached_tables WHERE table_name = ?", name);
        Result found = Protocol.result(connection);
        return found.rows().isEmpty() ? null : String.valueOf(found.rows().get(0).get("options"));
    }

    private boolean isThere(Connection connection) {
        String have = have(connection);
        if (have == null) {
            return false;
        }
        for (String option : List.of("prefix=" + prefix(), "value=body", "tags=tags")) {
            if (!have.contains('"' + option + '"')) {
                throw new RefusedException("the table " + name + " is not of this cache, it lacks " + option);
            }
        }
        return true;
    }

    /** From now on the table is made with announcements of the rows that leave it. */
    void announce() {
        isAnnounced = true;
    }

    /** From now on the table is made in shared memory, unless its options say something else. */
    void share() {
        isShared = true;
    }

    /**
     * The channel on which the table announces. It is made if it is not there; one that does not announce gets its own name
     * as its channel.
     */
    String channel(Connection connection) {
        if (!isThere(connection)) {
            make(connection);
        }
        Matcher given = CHANNEL.matcher(String.valueOf(have(connection)));
        if (given.find()) {
            if (given.group(1).contains("\\")) {
                throw new RefusedException("the table " + name + " announces on a channel with quotes in its name");
            }
            return given.group(1);
        }
        String text = "ALTER TABLE " + quoted() + " SET (" + NOTIFY + " = " + literal(name) + ")";
        try {
            Protocol.statement(connection, text);
            Protocol.result(connection);
            return name;
        } catch (StatementException why) {
            if (!why.sqlState().equals(FORBIDDEN)) {
                throw why;
            }
            throw new RefusedException("its owner must let the table " + name + " announce: " + text, why);
        }
    }
}
