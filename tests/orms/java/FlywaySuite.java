import java.util.List;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationVersion;

/** Flyway, unchanged: migrate, validate, repair, baseline, clean. See tests/orms/README.md. */
public final class FlywaySuite {
    static Flyway flyway(String folder) {
        return configured(folder).load();
    }

    static org.flywaydb.core.api.configuration.FluentConfiguration configured(String folder) {
        return Flyway.configure().dataSource(Steps.URL, Steps.USER, "").locations("classpath:" + folder).cleanDisabled(false);
    }

    public static void main(String[] arguments) {
        java.util.logging.LogManager.getLogManager().reset();
        Steps.check("info of an empty schema", () -> Steps.same(flyway("flyway").info().pending().length, 4));
        Steps.check("migrate to the first version", () ->
            Steps.same(configured("flyway").target("1").load().migrate().migrationsExecuted, 2));
        Steps.check("rows of the first version", () -> Steps.execute("INSERT INTO person (name) VALUES ('ann'), ('bob')"));
        Steps.check("migrate to the last, which alters", () -> Steps.same(flyway("flyway").migrate().migrationsExecuted, 2));
        Steps.check("migrate with nothing left to do", () -> Steps.same(flyway("flyway").migrate().migrationsExecuted, 0));
        Steps.check("validate", () -> flyway("flyway").validate());
        Steps.check("info knows the current version", () -> Steps.same(flyway("flyway").info().current().getVersion(), MigrationVersion.fromVersion("3")));
        Steps.check("the altered rows", () -> Steps.same(Steps.query("SELECT count(*) FROM person WHERE town = 'Ulm' AND score = 0"), "2"));
        Steps.check("the view of the repeatable migration", () -> Steps.same(Steps.query("SELECT count(*) FROM names"), "2"));
        Steps.check("a failed migration leaves nothing, and repair has nothing to do", () -> {
            try {
                Flyway broken = configured("flyway").locations("classpath:flyway", "classpath:flyway-broken").load();
                broken.migrate();
                throw new AssertionError("it was taken");
            } catch (FlywayException error) {
                Steps.same(Steps.state(error), "23505");
            }
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'half'"), "0");
            flyway("flyway").repair();
            flyway("flyway").validate();
        });
        Steps.check("the index of the last version", () ->
            Steps.same(Steps.query("SELECT count(*) FROM pg_indexes WHERE indexname = 'person_town'"), "1"));
        Steps.check("clean drops all", () -> {
            flyway("flyway").clean();
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.tables WHERE table_name IN ('person', 'flyway_schema_history')"), "0");
        });
        Steps.check("baseline of tables that are there", () -> {
            Steps.execute("CREATE TABLE person (id INT PRIMARY KEY, name TEXT)");
            configured("flyway").baselineVersion("3").load().baseline();
            Steps.same(List.of(flyway("flyway").info().pending()).size(), 1);
        });
        Steps.run();
    }
}
