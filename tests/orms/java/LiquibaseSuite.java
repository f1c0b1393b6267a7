import java.io.StringWriter;
import java.sql.Connection;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.Scope;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.changelog.FastCheckService;
import liquibase.diff.compare.CompareControl;
import liquibase.exception.LiquibaseException;
import liquibase.resource.ClassLoaderResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.Index;
import liquibase.structure.core.PrimaryKey;
import liquibase.structure.core.Table;
import liquibase.ui.LoggerUIService;

/** Liquibase, unchanged: update, rollback, tags, snapshot. See tests/orms/README.md. */
public final class LiquibaseSuite {
    interface Use<T> {
        T of(Liquibase liquibase) throws Exception;
    }

    static <T> T with(String changes, Use<T> use) throws Exception {
        try (Connection connection = Steps.connect()) {
            var database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            return use.of(new Liquibase(changes, new ClassLoaderResourceAccessor(), database));
        }
    }

    static int left(Liquibase liquibase) throws LiquibaseException {
        return liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size();
    }


    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        Scope.enter(java.util.Map.of(Scope.Attr.ui.name(), new LoggerUIService()));
        String changes = "liquibase/changes.xml";
        Steps.check("lists what is to be done", () -> Steps.same(with(changes, LiquibaseSuite::left), 5));
        Steps.check("update by one change", () -> with(changes, liquibase -> {
            liquibase.update(1, "");
            return null;
        }));
        Steps.check("rows of the first change", () -> Steps.execute("INSERT INTO person (name) VALUES ('ann'), ('bob')"));
        Steps.check("tag", () -> with(changes, liquibase -> {
            liquibase.tag("first");
            return null;
        }));
        Steps.check("update to the last", () -> Steps.same(with(changes, liquibase -> {
            liquibase.update("");
            return left(liquibase);
        }), 0));
        Steps.check("update with nothing left to do, validate", () -> with(changes, liquibase -> {
            liquibase.update("");
            liquibase.validate();
            return null;
        }));
        Steps.check("the altered rows", () -> Steps.same(Steps.query("SELECT count(*) FROM person WHERE town = 'Ulm' AND score = 0"), "2"));
        Steps.check("the inserted rows", () -> Steps.same(Steps.query("SELECT string_agg(code, ',' ORDER BY code) FROM country"), "de,fr"));
        Steps.check("the lock is free", () -> Steps.same(Steps.query("SELECT locked FROM databasechangeloglock"), "f"));
        Steps.check("a snapshot of a table", () -> with(changes, liquibase -> {
            var database = liquibase.getDatabase();
            DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(new CompareControl().getSchemas(CompareControl.DatabaseRole.REFERENCE), database, new SnapshotControl(database, Table.class, Column.class, Index.class, PrimaryKey.class));
            Table person = snapshot.get(new Table().setName("person"));
            Steps.same(person.getColumn("name").getType().toString().toLowerCase(), "varchar(90 byte)");
            Steps.same(person.getColumn("name").isNullable(), false);
            Steps.same(person.getPrimaryKey() != null, true);
            return null;
        }));
        Steps.check("the SQL of an update without running it", () -> with("liquibase/broken.xml", liquibase -> {
            StringWriter out = new StringWriter();
            liquibase.update("", out);
            Steps.same(out.toString().contains("CREATE TABLE"), true);
            return null;
        }));
        Steps.check("a failed change leaves nothing", () -> {
            Steps.fails("23505", () -> with("liquibase/broken.xml", liquibase -> {
                liquibase.update("");
                return null;
            }));
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'half'"), "0");
        });
        Steps.check("rollback to a tag", () -> {
            with(changes, liquibase -> {
                liquibase.rollback("first", "");
                return null;
            });
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.columns WHERE table_name = 'person'"), "2");
        });
        Steps.check("update again", () -> Steps.same(with(changes, liquibase -> {
            // It remembers that nothing was left to do.
            Scope.getCurrentScope().getSingleton(FastCheckService.class).clearCache();
            liquibase.update("");
            return left(liquibase);
        }), 0));
        Steps.check("dropAll", () -> {
            with(changes, liquibase -> {
                liquibase.dropAll();
                return null;
            });
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.tables WHERE table_name IN ('person', 'country', 'address')"), "0");
        });
        Steps.run();
    }
}
