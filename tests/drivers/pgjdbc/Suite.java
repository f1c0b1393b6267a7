import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeSet;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.util.PGobject;

/** pgjdbc, unchanged: what Java programs do with a server. See tests/drivers/README.md. */
public final class Suite {
    private static final String HOST = System.getenv("PGHOST");
    private static final int PORT = Integer.parseInt(System.getenv("PGPORT"));
    private static final String URL = "jdbc:postgresql://" + HOST + ":" + PORT + "/" + System.getenv("PGDATABASE");
    private static final boolean OURS = System.getenv("MEMCACHED_PORT") != null;
    private static final String ENDLESS =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n";

    /** A check; it throws when it does not hold. */
    private interface Check {
        void run() throws Exception;
    }

    private static Connection connect(String... settings) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        for (int at = 0; at < settings.length; at += 2) {
            properties.setProperty(settings[at], settings[at + 1]);
        }
        return DriverManager.getConnection(URL, properties);
    }

    private static void run(Connection db, String... statements) throws SQLException {
        try (Statement statement = db.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    /** The first column of all rows. */
    private static List<Object> ask(Connection db, String query) throws SQLException {
        try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery(query)) {
            return column(rows, 1);
        }
    }

    private static List<Object> column(ResultSet rows, int column) throws SQLException {
        List<Object> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getObject(column));
        }
        return found;
    }

    private static void same(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    private static void failsWith(String state, Check action) throws Exception {
        try {
            action.run();
        } catch (SQLException error) {
            if (!state.equals(error.getSQLState())) {
                throw new AssertionError("expected " + state + ", found " + error.getSQLState() + " " + error.getMessage());
            }
            return;
        }
        throw new AssertionError("no error " + state);
    }

    private static void connects() throws Exception {
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            try (Connection db = connect("preferQueryMode", mode, "ApplicationName", "suite")) {
                same(db.isValid(5), true);
                same(ask(db, "SELECT 1"), List.of(1));
                same(ask(db, "SHOW application_name"), List.of("suite"));
            }
        }
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setURL(URL);
        source.setUser(System.getenv("PGUSER"));
        try (Connection db = source.getConnection()) {
            same(db.getMetaData().getDatabaseProductName(), "PostgreSQL");
            same(db.getMetaData().getDatabaseMajorVersion() >= 15, true);
        }
    }

    private static void prepared() throws Exception {
        try (Connection db = connect()) {
            // Not INTEGER PRIMARY KEY, which numbers itself at sqlcached: this driver calls the type of such a column serial.
            run(db, "DROP TABLE IF EXISTS java_plain", "CREATE TABLE java_plain (id INT PRIMARY KEY, name TEXT)");
            // From the fifth run on the driver names the statement and takes results in binary.
            try (PreparedStatement put = db.prepareStatement("INSERT INTO java_plain VALUES (?, ?)");
                    PreparedStatement get = db.prepareStatement("SELECT id, name FROM java_plain WHERE id = ?")) {
                for (int id = 0; id < 20; id++) {
                    put.setInt(1, id);
                    put.setString(2, "it's " + id);
                    same(put.executeUpdate(), 1);
                    get.setInt(1, id);
                    try (ResultSet rows = get.executeQuery()) {
                        same(rows.next(), true);
                        same(rows.getInt("id"), id);
                        same(rows.getString(2), "it's " + id);
                        same(rows.next(), false);
                    }
                }
                ResultSetMetaData meta = get.getMetaData();
                same(meta.getColumnTypeName(1), "int4");
                same(meta.getColumnType(2), Types.VARCHAR);
                same(put.getParameterMetaData().getParameterCount(), 2);
                same(put.getParameterMetaData().getParameterType(1), Types.INTEGER);
            }
        }
    }

    private static void types() throws Exception {
        try (Connection db = connect("prepareThreshold", "-1")) {
            types(db);
        }
        try (Connection db = connect()) {
            types(db);
        }
    }

    private static void types(Connection db) throws Exception {
        run(db, "DROP TABLE IF EXISTS java_types", "CREATE TABLE java_types (id INTEGER PRIMARY KEY, flag BOOLEAN,"
                + " small SMALLINT, big BIGINT, real4 FLOAT4, real8 DOUBLE PRECISION, price NUMERIC(12, 2), name TEXT,"
                + " raw BYTEA, at TIMESTAMPTZ, local TIMESTAMP, day DATE, doc JSON, uid UUID)");
        byte[] raw = {0, 1, -1, 92};
        OffsetDateTime at = OffsetDateTime.parse("2026-02-03T04:05:06.789Z");
        LocalDateTime local = LocalDateTime.parse("2026-02-03T04:05:06.789");
        UUID uid = UUID.fromString("12345678-1234-5678-1234-567812345678");
        PGobject doc = new PGobject();
        doc.setType("json");
        doc.setValue("{\"a\":[1,null]}");
        Object[] row = {1, true, (short) -7, Long.MAX_VALUE, 1.5f, 0.1, new BigDecimal("12.25"), "Gr\u00fc\u00dfe", raw, at,
            local, LocalDate.parse("2026-02-28"), doc, uid};
        try (PreparedStatement put =
                db.prepareStatement("INSERT INTO java_types VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int column = 0; column < row.length; column++) {
                put.setObject(column + 1, row[column]);
            }
            put.executeUpdate();
            int[] kinds = {Types.INTEGER, Types.BIT, Types.SMALLINT, Types.BIGINT, Types.REAL, Types.DOUBLE, Types.NUMERIC,
                Types.VARCHAR, Types.BINARY, Types.TIMESTAMP_WITH_TIMEZONE, Types.TIMESTAMP, Types.DATE, Types.OTHER,
                Types.OTHER};
            put.setInt(1, 2);
            for (int column = 1; column < row.length; column++) {
                put.setNull(column + 1, kinds[column]);
            }
            put.executeUpdate();
        }
        try (PreparedStatement get = db.prepareStatement("SELECT * FROM java_types ORDER BY id")) {
            for (int round = 0; round < 7; round++) {
                try (ResultSet rows = get.executeQuery()) {
                    same(rows.next(), true);
                    same(rows.getInt(1), 1);
                    same(rows.getBoolean(2), true);
                    same(rows.getShort(3), (short) -7);
                    same(rows.getLong(4), Long.MAX_VALUE);
                    same(rows.getFloat(5), 1.5f);
                    same(rows.getDouble(6), 0.1);
                    same(rows.getBigDecimal(7).compareTo(new BigDecimal("12.25")), 0);
                    same(rows.getString(8), "Gr\u00fc\u00dfe");
                    same(rows.getBytes(9), raw);
                    same(rows.getObject(10, OffsetDateTime.class).toInstant(), at.toInstant());
                    same(rows.getObject(11, LocalDateTime.class), local);
                    same(rows.getObject(12, LocalDate.class), LocalDate.parse("2026-02-28"));
                    same(rows.getString(13), "{\"a\":[1,null]}");
                    same(rows.getObject(14), uid);
                    same(rows.next(), true);
                    for (int column = 2; column <= row.length; column++) {
                        same(rows.getObject(column), null);
                        same(rows.wasNull(), true);
                    }
                }
            }
        }
    }

    private static void arrays() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_plain", "CREATE TABLE java_plain (id INTEGER PRIMARY KEY, name TEXT)",
                    "INSERT INTO java_plain VALUES (1, 'a'), (2, 'b'), (3, 'c,\"d')");
            try (PreparedStatement get =
                    db.prepareStatement("SELECT id FROM java_plain WHERE id = ANY(?) ORDER BY id")) {
                for (int round = 0; round < 7; round++) {
                    Array ids = db.createArrayOf("int4", new Object[] {1, 3, 9});
                    get.setArray(1, ids);
                    try (ResultSet rows = get.executeQuery()) {
                        same(column(rows, 1), List.of(1, 3));
                    }
                }
            }
            try (PreparedStatement get = db.prepareStatement("SELECT id FROM java_plain WHERE name = ANY(?)")) {
                get.setArray(1, db.createArrayOf("text", new Object[] {"c,\"d", "zz"}));
                try (ResultSet rows = get.executeQuery()) {
                    same(column(rows, 1), List.of(3));
                }
            }
        }
    }

    private static void errors() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_plain", "CREATE TABLE java_plain (id INTEGER PRIMARY KEY, name TEXT)",
                    "INSERT INTO java_plain VALUES (1, 'a')");
            failsWith("42601", () -> run(db, "SELEC 1"));
            failsWith("42P01", () -> run(db, "SELECT * FROM java_none"));
            failsWith("23505", () -> run(db, "INSERT INTO java_plain VALUES (1, 'b')"));
            failsWith("22P02", () -> run(db, "INSERT INTO java_plain VALUES ('x', 'b')"));
            same(ask(db, "SELECT name FROM java_plain"), List.of("a"));
        }
    }

    private static void transactions() throws Exception {
        try (Connection one = connect(); Connection two = connect()) {
            run(two, "DROP TABLE IF EXISTS java_plain", "CREATE TABLE java_plain (id INTEGER PRIMARY KEY, n INTEGER)");
            one.setAutoCommit(false);
            run(one, "INSERT INTO java_plain VALUES (1, 0)");
            Savepoint savepoint = one.setSavepoint("a");
            failsWith("23505", () -> run(one, "INSERT INTO java_plain VALUES (1, 0)"));
            failsWith("25P02", () -> ask(one, "SELECT 1"));
            one.rollback(savepoint);
            same(ask(two, "SELECT count(*) FROM java_plain"), List.of(0L));
            one.commit();
            same(ask(two, "SELECT count(*) FROM java_plain"), List.of(1L));
            one.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            same(ask(one, "SELECT n FROM java_plain"), List.of(0));
            String change = "UPDATE java_plain SET n = n + 1";
            if (OURS) {
                // No write waits for another here; the one who commits late is refused.
                run(one, change);
            }
            run(two, "UPDATE java_plain SET n = 10");
            failsWith("40001", OURS ? one::commit : () -> run(one, change));
            one.rollback();
            same(ask(two, "SELECT n FROM java_plain"), List.of(10));
        }
    }

    private static void batches() throws Exception {
        try (Connection db = connect("reWriteBatchedInserts", "true"); Connection plain = connect()) {
            run(db, "DROP TABLE IF EXISTS java_plain", "CREATE TABLE java_plain (id INTEGER PRIMARY KEY, name TEXT)");
            for (Connection each : List.of(db, plain)) {
                try (PreparedStatement put = each.prepareStatement("INSERT INTO java_plain VALUES (?, ?)")) {
                    for (int id = 0; id < 300; id++) {
                        put.setInt(1, each == db ? id : 1000 + id);
                        put.setString(2, "x");
                        put.addBatch();
                    }
                    same(put.executeBatch().length, 300);
                }
            }
            same(ask(db, "SELECT count(*) FROM java_plain"), List.of(600L));
            try (Statement batch = plain.createStatement()) {
                batch.addBatch("INSERT INTO java_plain VALUES (5000, 'y')");
                batch.addBatch("INSERT INTO java_plain VALUES (0, 'taken')");
                failsWith("23505", () -> {
                    try {
                        batch.executeBatch();
                    } catch (BatchUpdateException error) {
                        throw error.getNextException() == null ? error : error.getNextException();
                    }
                });
            }
        }
    }

    private static void generatedKeys() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_ids", "CREATE TABLE java_ids (id SERIAL PRIMARY KEY, name TEXT)");
            String insert = "INSERT INTO java_ids (name) VALUES (?)";
            try (PreparedStatement put = db.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
                TreeSet<Object> keys = new TreeSet<>();
                for (int round = 0; round < 3; round++) {
                    put.setString(1, "x");
                    put.executeUpdate();
                    try (ResultSet made = put.getGeneratedKeys()) {
                        same(made.next(), true);
                        keys.add(made.getInt("id"));
                    }
                }
                same(keys.size(), 3);
            }
        }
    }

    private static void fetchSize() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_plain", "CREATE TABLE java_plain (id INTEGER PRIMARY KEY, name TEXT)",
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
                            + " INSERT INTO java_plain SELECT i, 'x' FROM n");
            db.setAutoCommit(false);
            try (Statement statement = db.createStatement()) {
                statement.setFetchSize(64);
                try (ResultSet rows = statement.executeQuery("SELECT id FROM java_plain ORDER BY id")) {
                    same(column(rows, 1).size(), 1000);
                }
                statement.setMaxRows(10);
                try (ResultSet rows = statement.executeQuery("SELECT id FROM java_plain ORDER BY id")) {
                    same(column(rows, 1).size(), 10);
                }
            }
            db.commit();
            try (Statement statement =
                            db.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                    ResultSet rows = statement.executeQuery("SELECT id, name FROM java_plain WHERE id <= 3 ORDER BY id")) {
                same(rows.last(), true);
                same(rows.getInt(1), 3);
                rows.updateString("name", "changed");
                rows.updateRow();
                same(rows.first(), true);
                rows.deleteRow();
            }
            db.commit();
            same(ask(db, "SELECT name FROM java_plain WHERE id <= 3 ORDER BY id"), List.of("x", "changed"));
        }
    }

    private static void cancels() throws Exception {
        try (Connection db = connect(); Statement statement = db.createStatement()) {
            statement.setQueryTimeout(1);
            failsWith("57014", () -> statement.executeQuery(ENDLESS));
            statement.setQueryTimeout(0);
            Thread later = new Thread(() -> {
                try {
                    Thread.sleep(200);
                    statement.cancel();
                } catch (InterruptedException | SQLException error) {
                    throw new IllegalStateException(error);
                }
            });
            later.start();
            failsWith("57014", () -> statement.executeQuery(ENDLESS));
            later.join();
            run(db, "SET statement_timeout = '100ms'");
            failsWith("57014", () -> statement.executeQuery(ENDLESS));
            same(ask(db, "SELECT 1"), List.of(1));
        }
    }

    private static void copies() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_copy", "CREATE TABLE java_copy (id INTEGER PRIMARY KEY, name TEXT)");
            var manager = db.unwrap(PGConnection.class).getCopyAPI();
            same(manager.copyIn("COPY java_copy FROM STDIN WITH (FORMAT csv, HEADER)",
                    new StringReader("id,name\n1,\"a,b\"\n2,\n")), 2L);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            same(manager.copyOut("COPY (SELECT * FROM java_copy ORDER BY id) TO STDOUT", out), 2L);
            same(out.toString(StandardCharsets.UTF_8), "1\ta,b\n2\t\\N\n");
        }
    }

    private static void notifications() throws Exception {
        try (Connection one = connect(); Connection two = connect()) {
            run(one, "LISTEN java_channel");
            run(two, "NOTIFY java_channel, 'hello'");
            PGNotification[] found = one.unwrap(PGConnection.class).getNotifications(10_000);
            same(found.length, 1);
            same(List.of(found[0].getName(), found[0].getParameter()), List.of("java_channel", "hello"));
        }
    }

    private static void metadata() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_meta",
                    "CREATE TABLE java_meta (page INTEGER, part VARCHAR(20), hits BIGINT NOT NULL DEFAULT 0, raw BYTEA,"
                            + " PRIMARY KEY (page, part))",
                    "CREATE INDEX java_meta_hits ON java_meta (hits, page)");
            DatabaseMetaData meta = db.getMetaData();
            try (ResultSet rows = meta.getTables(null, "public", "java_meta", new String[] {"TABLE"})) {
                same(rows.next(), true);
                same(rows.getString("TABLE_NAME"), "java_meta");
                same(rows.getString("TABLE_TYPE"), "TABLE");
                same(rows.next(), false);
            }
            List<String> columns = new ArrayList<>();
            try (ResultSet rows = meta.getColumns(null, null, "java_meta", null)) {
                while (rows.next()) {
                    columns.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME") + " "
                            + rows.getString("IS_NULLABLE") + " " + rows.getInt("ORDINAL_POSITION"));
                    if (rows.getString("COLUMN_NAME").equals("part")) {
                        same(rows.getInt("COLUMN_SIZE"), 20);
                    }
                }
            }
            same(columns, List.of("page int4 NO 1", "part varchar NO 2", "hits int8 NO 3", "raw bytea YES 4"));
            try (ResultSet rows = meta.getPrimaryKeys(null, null, "java_meta")) {
                List<String> keys = new ArrayList<>();
                while (rows.next()) {
                    keys.add(rows.getInt("KEY_SEQ") + " " + rows.getString("COLUMN_NAME") + " " + rows.getString("PK_NAME"));
                }
                keys.sort(null);
                same(keys, List.of("1 page java_meta_pkey", "2 part java_meta_pkey"));
            }
            try (ResultSet rows = meta.getIndexInfo(null, null, "java_meta", false, true)) {
                List<String> found = new ArrayList<>();
                while (rows.next()) {
                    found.add(rows.getString("INDEX_NAME") + " " + rows.getInt("ORDINAL_POSITION") + " "
                            + rows.getString("COLUMN_NAME") + " " + rows.getBoolean("NON_UNIQUE"));
                }
                found.sort(null);
                same(found, List.of("java_meta_hits 1 hits true", "java_meta_hits 2 page true",
                        "java_meta_pkey 1 page false", "java_meta_pkey 2 part false"));
            }
            try (ResultSet rows = meta.getSchemas()) {
                same(column(rows, 1).containsAll(List.of("public", "pg_catalog", "information_schema")), true);
            }
            try (ResultSet rows = meta.getImportedKeys(null, null, "java_meta")) {
                same(rows.next(), false);
            }
            try (ResultSet rows = meta.getTypeInfo()) {
                same(column(rows, 1).containsAll(List.of("int4", "text", "bytea", "timestamptz")), true);
            }
            try (ResultSet rows = meta.getCatalogs()) {
                same(rows.next(), true);
            }
            try (Statement statement = db.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT part AS p, hits FROM java_meta")) {
                ResultSetMetaData shape = rows.getMetaData();
                same(shape.getColumnLabel(1), "p");
                same(shape.getTableName(1), "java_meta");
                same(shape.isNullable(2), ResultSetMetaData.columnNoNulls);
            }
        }
    }

    private static void memcachedSees() throws Exception {
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS java_frag",
                    "CREATE TABLE java_frag (key TEXT PRIMARY KEY, page INT, body BYTEA) WITH (prefix = 'java:', value = 'body')");
            try (PreparedStatement put = db.prepareStatement("INSERT INTO java_frag VALUES (?, ?, ?)")) {
                put.setString(1, "a");
                put.setInt(2, 17);
                put.setBytes(3, "hello".getBytes(StandardCharsets.UTF_8));
                put.executeUpdate();
            }
            same(memcached("get java:a\r\nset java:b 0 0 2\r\nhi\r\n"), "VALUE java:a 0 5\r\nhello\r\nEND\r\nSTORED\r\n");
            same(ask(db, "SELECT page FROM java_frag WHERE key = 'b' AND body = '\\x6869'"), Arrays.asList((Object) null));
        }
    }

    private static String memcached(String request) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", Integer.parseInt(System.getenv("MEMCACHED_PORT")))) {
            socket.getOutputStream().write((request + "quit\r\n").getBytes(StandardCharsets.UTF_8));
            InputStream in = socket.getInputStream();
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** Makes a check and prints its line. */
    private static boolean holds(String name, Check check) {
        try {
            check.run();
            System.out.println("ok - " + name);
            return true;
        } catch (Exception | AssertionError error) {
            System.out.println("not ok - " + name + ": " + String.valueOf(error.getMessage()).replaceAll("\\s+", " "));
            error.printStackTrace();
            return false;
        }
    }

    private static final String[] ROUTINES = {
        "DROP TABLE IF EXISTS java_account CASCADE",
        "CREATE TABLE java_account (id INTEGER PRIMARY KEY, units INTEGER NOT NULL)",
        "INSERT INTO java_account VALUES (1, 100), (2, 0)",
        "DROP PROCEDURE IF EXISTS java_pay",
        "CREATE PROCEDURE java_pay(payer INTEGER, payee INTEGER, INOUT amount INTEGER) LANGUAGE sql AS $$"
                + " UPDATE java_account SET units = units - amount WHERE id = payer;"
                + " UPDATE java_account SET units = units + amount WHERE id = payee;"
                + " SELECT units FROM java_account WHERE id = payee $$",
        "DROP FUNCTION IF EXISTS java_units",
        "CREATE FUNCTION java_units(which INTEGER) RETURNS INTEGER LANGUAGE sql AS"
                + " $$ SELECT units FROM java_account WHERE id = which $$",
        "DROP FUNCTION IF EXISTS java_both",
        "CREATE FUNCTION java_both(a INTEGER, OUT twice INTEGER, OUT label TEXT) LANGUAGE sql AS"
                + " $$ SELECT a * 2, 'n' || a $$",
    };

    private static void calls() throws Exception {
        try (Connection db = connect()) {
            run(db, ROUTINES);
            // By default the driver sends SELECT * FROM f(...), whose answer it takes apart.
            for (int round = 0; round < 7; round++) {
                try (CallableStatement call = db.prepareCall("{? = call java_units(?)}")) {
                    call.registerOutParameter(1, java.sql.Types.INTEGER);
                    call.setInt(2, 1);
                    call.execute();
                    same(call.getInt(1), 100);
                }
                try (CallableStatement call = db.prepareCall("{call java_both(?, ?, ?)}")) {
                    call.setInt(1, 21);
                    call.registerOutParameter(2, java.sql.Types.INTEGER);
                    call.registerOutParameter(3, java.sql.Types.VARCHAR);
                    call.execute();
                    same(call.getInt(2), 42);
                    same(call.getString(3), "n21");
                }
            }
            failsWith("42809", () -> {
                try (CallableStatement call = db.prepareCall("{call java_pay(1, 2, 3)}")) {
                    call.execute();
                }
            });
        }
        for (String mode : List.of("call", "callIfNoReturn")) {
            try (Connection db = connect("escapeSyntaxCallMode", mode)) {
                run(db, ROUTINES);
                for (int round = 1; round <= 7; round++) {
                    try (CallableStatement call = db.prepareCall("{call java_pay(?, ?, ?)}")) {
                        call.setInt(1, 1);
                        call.setInt(2, 2);
                        call.setInt(3, 5);
                        call.registerOutParameter(3, java.sql.Types.INTEGER);
                        call.execute();
                        same(call.getInt(3), 5 * round);
                    }
                }
                same(ask(db, "SELECT java_units(id) FROM java_account ORDER BY id"), List.of(65, 35));
            }
        }
        try (Connection db = connect()) {
            DatabaseMetaData meta = db.getMetaData();
            try (ResultSet rows = meta.getProcedures(null, "public", "java_%")) {
                same(column(rows, 3), List.of("java_pay"));
            }
            try (ResultSet rows = meta.getFunctions(null, "public", "java_%")) {
                same(column(rows, 3), List.of("java_both", "java_units"));
            }
            List<String> columns = new ArrayList<>();
            try (ResultSet rows = meta.getProcedureColumns(null, "public", "java_pay", null)) {
                while (rows.next()) {
                    columns.add(rows.getString("COLUMN_NAME") + " " + rows.getShort("COLUMN_TYPE") + " "
                            + rows.getString("TYPE_NAME"));
                }
            }
            try (ResultSet rows = meta.getFunctionColumns(null, "public", "java_both", null)) {
                while (rows.next()) {
                    columns.add(rows.getString("COLUMN_NAME") + " " + rows.getShort("COLUMN_TYPE") + " "
                            + rows.getString("TYPE_NAME"));
                }
            }
            same(columns, List.of("payer 1 int4", "payee 1 int4", "amount 2 int4", "a 1 int4", "twice 3 int4", "label 3 text"));
        }
    }

    public static void main(String[] arguments) {
        boolean good = holds("connects in each query mode and through a DataSource", Suite::connects);
        good &= holds("prepared statements become named and binary", Suite::prepared);
        good &= holds("types go in and come out as text and as binary, and NULLs", Suite::types);
        good &= holds("= ANY(?) takes an array", Suite::arrays);
        good &= holds("errors have a SQLSTATE, and leave the connection usable", Suite::errors);
        good &= holds("transactions, savepoints, and a lost race", Suite::transactions);
        good &= holds("batches, rewritten and not", Suite::batches);
        good &= holds("generated keys", Suite::generatedKeys);
        good &= holds("fetch size, scrolling and updatable results", Suite::fetchSize);
        good &= holds("query timeout, cancel and statement_timeout end a statement", Suite::cancels);
        good &= holds("COPY through the driver's CopyManager", Suite::copies);
        good &= holds("LISTEN gets what NOTIFY sends", Suite::notifications);
        good &= holds("DatabaseMetaData tells tables, columns, keys, indexes, schemas, types", Suite::metadata);
        good &= holds("CallableStatement calls functions and procedures, and DatabaseMetaData tells them", Suite::calls);
        if (OURS) {
            good &= holds("a row written by SQL is read by memcached's get, and the other way round", Suite::memcachedSees);
        }
        System.exit(good ? 0 : 1);
    }
}
