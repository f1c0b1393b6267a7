import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/** Runs the checks of a Java suite and prints a line for each. */
final class Steps {
    interface Body {
        void run() throws Exception;
    }

    static final String URL = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
    static final String USER = System.getenv("PGUSER");

    private static final Map<String, Body> CHECKS = new LinkedHashMap<>();

    /** Registers a check under a name without a colon and a blank behind it. */
    static void check(String name, Body body) {
        CHECKS.put(name, body);
    }

    /** Two values must be equal. */
    static void same(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError("found " + shown(found) + ", expected " + shown(expected));
        }
    }

    private static String shown(Object value) {
        return value instanceof Object[] ? Arrays.deepToString((Object[]) value) : String.valueOf(value);
    }

    /** It must fail with this SQLSTATE. */
    static void fails(String state, Body body) throws Exception {
        try {
            body.run();
        } catch (Exception error) {
            same(state(error), state);
            return;
        }
        throw new AssertionError("it did not fail with " + state);
    }

    /** The SQLSTATE of an error, also where layers above wrapped it; empty where there is none. */
    static String state(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof SQLException && ((SQLException) each).getSQLState() != null) {
                return ((SQLException) each).getSQLState();
            }
        }
        return "";
    }

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(URL, USER, "");
    }

    /** The first column of the first row. */
    static String query(String sql) throws SQLException {
        try (Connection db = connect(); Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            return rows.next() ? rows.getString(1) : null;
        }
    }

    static void execute(String sql) throws SQLException {
        try (Connection db = connect(); Statement statement = db.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Runs all checks in their order and ends the program, with 1 if one failed. */
    static void run() {
        int code = 0;
        for (Map.Entry<String, Body> each : CHECKS.entrySet()) {
            try {
                each.getValue().run();
                System.out.println("ok - " + each.getKey());
            } catch (Throwable error) {
                code = 1;
                Throwable first = error;
                while (first.getCause() != null) {
                    first = first.getCause();
                }
                String said = (state(error) + " " + first.getMessage()).replaceAll("\\s+", " ");
                System.out.println("not ok - " + each.getKey() + ": " + error.getClass().getSimpleName() + " " + said);
                error.printStackTrace();
            }
        }
        System.out.flush();
        // Threads of pools must not keep the program.
        Runtime.getRuntime().halt(code);
    }
}
