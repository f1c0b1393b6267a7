//! What becomes of definitions, there and here, which the stream does not tell.

use std::thread;
use std::time::Duration;

use super::{asked, cache, fill, psql, server, shop, stored, until, until_stored, wait};
use crate::drivers::place::SqlDaemon;
use crate::source_modes::barrier;

/// The stream does not tell what becomes of a partition. Rows that came and went with it were served until their `ttl`.
#[test]
fn what_becomes_of_a_partition_is_noticed() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE TABLE measure (id INT, year INT, PRIMARY KEY (id, year)) PARTITION BY LIST (year);
         CREATE TABLE measure_1 PARTITION OF measure FOR VALUES IN (1);
         CREATE TABLE measure_2 PARTITION OF measure FOR VALUES IN (2) PARTITION BY LIST (year);
         CREATE TABLE measure_2a PARTITION OF measure_2 DEFAULT;
         INSERT INTO measure SELECT n, n % 2 + 1 FROM generate_series(1, 10) n;
         ALTER PUBLICATION cache ADD TABLE measure;
         ALTER PUBLICATION cache SET (publish_via_partition_root = true);
         GRANT SELECT ON measure TO cache",
    );
    psql(&daemon.place, &server(&database));
    psql(
        &daemon.place,
        "CREATE TABLE page (id INT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body', source = 'pg', depends = 'measure(id)');
         CREATE TABLE measure (id INT, year INT, PRIMARY KEY (id, year)) WITH (source = 'pg', depends = 'measure(id, year)', mode = 'mirror')",
    );
    let mut client = daemon.daemon.connect();
    let rows = "SELECT coalesce(string_agg(id || '-' || year, ',' ORDER BY id), '') FROM measure";
    let both = || asked(&daemon.place, rows).is_ok_and(|ours| ours == psql(source, rows));
    until("the mirror is whole", both);
    for change in [
        // Gone before anybody looks: what it had was an event, and its end is none.
        "CREATE TABLE rest PARTITION OF measure DEFAULT; INSERT INTO measure VALUES (99, 9); DROP TABLE rest",
        "TRUNCATE measure_1",
        "TRUNCATE measure_2a",
        "ALTER TABLE measure DETACH PARTITION measure_1",
        "INSERT INTO measure_1 VALUES (1, 1); ALTER TABLE measure ATTACH PARTITION measure_1 FOR VALUES IN (1)",
        "DROP TABLE measure_1",
    ] {
        wait(&daemon, "streaming");
        fill(&daemon, &mut client);
        psql(source, change);
        until_stored(&daemon, &mut client, &[]);
        until(&format!("the mirror has what is left behind {change}"), both);
    }
}

/// A partition has a replica identity of its own, and may be one whose changes are not in the log; and a table that
/// inherits has changes of its own. Such rows stayed as they were: now the table is refused, or its source is lost.
#[test]
fn rows_of_which_no_change_is_told_are_refused() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE TABLE measure (id INT, year INT, shop INT, PRIMARY KEY (id, year)) PARTITION BY LIST (year);
         CREATE TABLE measure_1 PARTITION OF measure FOR VALUES IN (1);
         ALTER TABLE measure REPLICA IDENTITY FULL;
         CREATE UNLOGGED TABLE quick (id INT, year INT, shop INT, PRIMARY KEY (id, year));
         CREATE TABLE parent (id INT PRIMARY KEY);
         CREATE TABLE child () INHERITS (parent);
         CREATE DOMAIN code AS CHAR(4);
         CREATE TABLE coded (id code PRIMARY KEY);
         ALTER PUBLICATION cache ADD TABLE measure, coded, ONLY parent;
         ALTER PUBLICATION cache SET (publish_via_partition_root = true)",
    );
    psql(&daemon.place, &server(&database));
    let table = |depends: &str| {
        format!(
            "CREATE TABLE page (id INT PRIMARY KEY, body TEXT) WITH (source = 'pg', depends = '{depends}')"
        )
    };
    let refused = |depends: &str, state: &str, hint: &str| {
        let said = asked(&daemon.place, &table(depends)).unwrap_err();
        assert!(said.contains(state) && said.contains(hint), "{depends}: {said}");
    };
    refused("measure(shop => id)", "55000", "ALTER TABLE public.measure_1 REPLICA IDENTITY FULL");
    refused("parent(id)", "0A000", "NO INHERIT");
    refused("coded(id)", "0A000", "char(n) itself");
    psql(source, "ALTER TABLE measure ATTACH PARTITION quick FOR VALUES IN (2)");
    refused("measure(id)", "55000", "SET LOGGED");
    psql(source, "ALTER TABLE measure DETACH PARTITION quick; ALTER TABLE measure_1 REPLICA IDENTITY FULL");
    psql(&daemon.place, &table("measure(shop => id)"));
    wait(&daemon, "streaming");
    // One that is made later has the default.
    psql(source, "CREATE TABLE measure_3 PARTITION OF measure FOR VALUES IN (3)");
    until("it is lost", || {
        psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("public.measure_3")
    });
    psql(source, "ALTER TABLE measure_3 REPLICA IDENTITY FULL");
    wait(&daemon, "streaming");
}

/// A table may have another name for a moment, or another schema, or its name may be another one's. What changes there
/// meanwhile is told under the name of that moment. Such rows stayed as they were, and nothing told it: by the next
/// look all was as before.
#[test]
fn a_change_under_another_name_is_one_of_the_table() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE SCHEMA aside;
         CREATE TABLE item (id INT PRIMARY KEY, name TEXT);
         CREATE TABLE twin (id INT PRIMARY KEY, name TEXT);
         INSERT INTO item VALUES (1, 'kettle');
         INSERT INTO twin VALUES (1, 'pot');
         ALTER PUBLICATION cache ADD TABLE item, twin;
         GRANT SELECT ON item TO cache",
    );
    psql(&daemon.place, &server(&database));
    psql(
        &daemon.place,
        "CREATE TABLE page (id INT PRIMARY KEY, body TEXT) WITH (source = 'pg', depends = 'item(id)');
         CREATE TABLE updated (id INT PRIMARY KEY, name TEXT) WITH (source = 'pg', depends = 'item(id)', mode = 'update');
         CREATE TABLE mirror (id INT PRIMARY KEY, name TEXT) WITH (source = 'pg', depends = 'item(id)', mode = 'mirror')",
    );
    let old = "SELECT (SELECT count(*) FROM page)
             + (SELECT count(*) FROM updated WHERE name NOT IN (SELECT name FROM mirror))";
    for (number, change) in [
        "ALTER TABLE item RENAME TO moved; UPDATE moved SET name = '{n}'; ALTER TABLE moved RENAME TO item",
        "ALTER TABLE item SET SCHEMA aside; UPDATE aside.item SET name = '{n}'; ALTER TABLE aside.item SET SCHEMA public",
        "ALTER TABLE item RENAME TO moved; ALTER TABLE twin RENAME TO item; UPDATE item SET name = 'twin';
             ALTER TABLE item RENAME TO twin; UPDATE moved SET name = '{n}'; ALTER TABLE moved RENAME TO item",
    ]
    .iter()
    .enumerate()
    {
        wait(&daemon, "streaming");
        until("the mirror is whole", || {
            asked(&daemon.place, "SELECT name FROM mirror") == Ok(psql(source, "SELECT name FROM item"))
        });
        psql(
            &daemon.place,
            "INSERT INTO page VALUES (1, 'made of it');
             INSERT INTO updated SELECT id, name FROM mirror ON CONFLICT (id) DO NOTHING",
        );
        // As one transaction: no look comes in between.
        psql(source, &change.replace("{n}", &number.to_string()));
        until(&format!("what {change} changed is here"), || {
            asked(&daemon.place, "SELECT name FROM mirror") == Ok(number.to_string())
                && asked(&daemon.place, old).as_deref() == Ok("0")
        });
    }
}

/// Rows that change without an event: a rewrite, a column that is another one, columns that exchange their names, a
/// label that has another name. Rows in every mode stayed as they were, also behind their next change.
#[test]
fn rows_that_change_without_an_event_are_not_believed() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE TABLE item (id INT PRIMARY KEY, name TEXT, other TEXT, price INT, mood mood);
         INSERT INTO item VALUES (1, 'kettle', 'pot', 25, 'ok');
         ALTER PUBLICATION cache ADD TABLE item;
         GRANT SELECT ON item TO cache",
    );
    psql(&daemon.place, &server(&database));
    let columns = "(id INT PRIMARY KEY, name TEXT, price INT, mood TEXT)";
    psql(
        &daemon.place,
        &format!(
            "CREATE TABLE copied {columns} WITH (source = 'pg', depends = 'item(id)', mode = 'mirror');
             CREATE TABLE updated {columns} WITH (source = 'pg', depends = 'item(id)', mode = 'update');
             CREATE TABLE fetched {columns} WITH (source = 'pg', depends = 'item(id)',
                 query = 'SELECT id, name, price, mood FROM item WHERE id = ANY($1)')"
        ),
    );
    let row = |table: &str| asked(&daemon.place, &format!("SELECT * FROM {table} WHERE id = 1"));
    for change in [
        "SELECT 1",
        "ALTER TABLE item ALTER price TYPE INT USING price * 100",
        "ALTER TABLE item DROP price; ALTER TABLE item ADD price INT DEFAULT 7",
        "ALTER TABLE item RENAME name TO x; ALTER TABLE item RENAME other TO name; ALTER TABLE item RENAME x TO other",
        "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'",
    ] {
        psql(source, change);
        let theirs = psql(source, "SELECT id, name, price, mood FROM item");
        until(&format!("all have {theirs} behind {change}"), || {
            let updated = row("updated");
            let [copied, fetched] = ["copied", "fetched"].map(row);
            [&copied, &fetched].iter().all(|ours| ours.as_ref() == Ok(&theirs))
                && (updated == Ok(theirs.clone()) || updated == Ok(String::new()))
        });
        let row = theirs.replace('|', "','");
        psql(&daemon.place, &format!("INSERT INTO updated VALUES ('{row}') ON CONFLICT DO NOTHING"));
    }
}

/// A `char(n)` has blanks behind it that mean nothing. A row here was never ended, never filled and not found where its
/// key had none of them.
#[test]
fn keys_of_fixed_length_are_found_without_their_blanks() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE TABLE code (k CHAR(5) PRIMARY KEY, v TEXT);
         INSERT INTO code VALUES ('ab', 'old'), ('cd', 'old');
         ALTER PUBLICATION cache ADD TABLE code;
         GRANT SELECT ON code TO cache",
    );
    psql(&daemon.place, &server(&database));
    psql(
        &daemon.place,
        "CREATE TABLE page (k TEXT PRIMARY KEY, v TEXT) WITH (source = 'pg', depends = 'code(k)');
         CREATE TABLE updated (k CHAR(5) PRIMARY KEY, v TEXT) WITH (source = 'pg', depends = 'code(k)', mode = 'update');
         CREATE TABLE copied (k CHAR(5) PRIMARY KEY, v TEXT) WITH (source = 'pg', depends = 'code(k)', mode = 'mirror');
         CREATE TABLE fetched (k CHAR(5) PRIMARY KEY, v TEXT) WITH (source = 'pg', depends = 'code(k)',
             query = 'SELECT k, v FROM code WHERE k = ANY($1)')",
    );
    let copied = || asked(&daemon.place, "SELECT v FROM copied WHERE k = 'ab'");
    until("it is copied", || copied().as_deref() == Ok("old"));
    barrier(&database, &daemon);
    psql(&daemon.place, "INSERT INTO page VALUES ('ab', 'old'), ('ab   ', 'old'), ('cd', 'old')");
    psql(&daemon.place, "INSERT INTO updated VALUES ('ab   ', 'old'), ('cd', 'old')");
    assert_eq!(psql(&daemon.place, "SELECT v FROM fetched WHERE k = 'ab'"), "old");
    assert_eq!(psql(&daemon.place, "SELECT k FROM fetched"), "ab");
    psql(source, "UPDATE code SET v = 'new' WHERE k = 'ab'");
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, "SELECT k FROM page"), "cd");
    assert_eq!(
        psql(&daemon.place, "SELECT string_agg(trim(k) || v, ',' ORDER BY k) FROM updated"),
        "abnew,cdold"
    );
    assert_eq!(copied().as_deref(), Ok("new"));
    assert_eq!(psql(&daemon.place, "SELECT v FROM fetched WHERE k = 'ab'"), "new");
    psql(source, "DELETE FROM code WHERE k = 'ab'");
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM copied"), "1");
}

/// NaN of a float became NULL without a word. It is NaN in a column of floats, and fits no integer.
#[test]
fn a_float_that_is_no_number_stays_one() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(
        source,
        "CREATE TABLE real (id INT PRIMARY KEY, f FLOAT8, g FLOAT8);
         INSERT INTO real VALUES (1, 1, 1), (2, 'NaN', 'NaN');
         ALTER PUBLICATION cache ADD TABLE real;
         GRANT SELECT ON real TO cache",
    );
    psql(&daemon.place, &server(&database));
    psql(
        &daemon.place,
        "CREATE TABLE updated (id INT PRIMARY KEY, f FLOAT8, g BIGINT) WITH (source = 'pg', depends = 'real(id)', mode = 'update');
         CREATE TABLE fetched (id INT PRIMARY KEY, f FLOAT8) WITH (source = 'pg', depends = 'real(id)', prefix = 'f:', value = 'f',
             query = 'SELECT id, f FROM real WHERE id = ANY($1)')",
    );
    wait(&daemon, "streaming");
    barrier(&database, &daemon);
    psql(&daemon.place, "INSERT INTO updated VALUES (1, 1, 1)");
    assert_eq!(psql(&daemon.place, "SELECT f FROM fetched WHERE id = 2"), "NaN");
    psql(source, "UPDATE real SET f = 'NaN' WHERE id = 1");
    barrier(&database, &daemon);
    let figures = "SELECT (SELECT max(f) FROM updated), misfits FROM sqlcached_sources";
    assert_eq!(psql(&daemon.place, figures), "NaN|0");
    psql(source, "UPDATE real SET f = 2.5, g = 'NaN' WHERE id = 1");
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, figures), "|1");
    psql(
        &daemon.place,
        "CREATE TABLE copied (id INT PRIMARY KEY, f FLOAT8) WITH (source = 'pg', depends = 'real(id)', mode = 'mirror')",
    );
    until("the mirror is copied", || {
        asked(&daemon.place, "SELECT string_agg(f::text, ',' ORDER BY id) FROM copied").as_deref()
            == Ok("2.5,NaN")
    });
}

/// A statement names its table, and that may be gone or have another name when a change arrives. The changes of all
/// other tables were lost with it, and those of the renamed one.
#[test]
fn a_table_that_goes_takes_no_change_of_another_with_it() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let (mut client, source) = (daemon.daemon.connect(), &database.place);
    let (mut own, mut theirs) = (super::slots::Talk::with(&daemon.place), super::slots::Talk::with(source));
    for (id, change) in
        [(1, "DROP TABLE other"), (2, "ALTER TABLE other RENAME TO moved"), (3, "DROP TABLE other")]
    {
        psql(
            &daemon.place,
            "CREATE TABLE IF NOT EXISTS other (id INT PRIMARY KEY, body TEXT) WITH (source = 'pg', depends = 'product(id)')",
        );
        // What is new is emptied once, when it is followed.
        thread::sleep(Duration::from_millis(300));
        fill(&daemon, &mut client);
        psql(&daemon.place, &format!("INSERT INTO other VALUES ({id}, 'old')"));
        own.ask(change);
        theirs.ask(&format!("UPDATE product SET price = -1 WHERE id = {id}"));
        let rest: Vec<u32> = (1..=10).filter(|own| *own != id).collect();
        until_stored(&daemon, &mut client, &rest);
        if change.contains("RENAME") {
            until("the row has gone", || psql(&daemon.place, "SELECT count(*) FROM moved") == "0");
        }
    }
}

/// A table that begins to read through was not known to the gate for a moment: a fetch that was slow stored a row from
/// before a change, for good.
#[test]
fn a_table_that_begins_to_read_through_passes_the_gate_at_once() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let source = &database.place;
    psql(source, "GRANT SELECT ON product TO cache");
    let (mut own, mut theirs) = (super::slots::Talk::with(&daemon.place), super::slots::Talk::with(source));
    psql(&daemon.place, "DROP TABLE page");
    for id in 1..=4 {
        own.ask(&format!(
            "CREATE TABLE t{id} (id INT PRIMARY KEY, name TEXT) WITH (prefix = 't{id}:', value = 'name', source = 'pg', depends = 'product(id)')"
        ));
        thread::sleep(Duration::from_millis(300));
        let mut client = daemon.daemon.connect();
        own.ask(&format!(
            "ALTER TABLE t{id} SET (query = 'SELECT id, name FROM product, pg_sleep(0.4) WHERE id = ANY($1)')"
        ));
        client.send(format!("get t{id}:{id}\r\n").as_bytes());
        // The fetch has its snapshot, and the stream has mostly not looked at the definitions yet.
        thread::sleep(Duration::from_millis(12));
        theirs.ask(&format!("UPDATE product SET name = 'new' WHERE id = {id}"));
        while client.line() != "END" {}
        barrier(&database, &daemon);
        thread::sleep(Duration::from_millis(100));
        let row = psql(&daemon.place, &format!("SELECT name FROM t{id}"));
        assert!(row.is_empty() || row == "new", "{row}");
    }
}

/// A slot waits for what is open at the source when it is made. `connecting` alone did not say so.
#[test]
fn a_stream_that_waits_for_a_transaction_names_it() {
    let database = shop(&["max_prepared_transactions=2"]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(source, "BEGIN; UPDATE product SET price = 0 WHERE id = 1; PREPARE TRANSACTION 'forgotten'");
    psql(&daemon.place, &server(&database));
    psql(&daemon.place, super::TABLE);
    until("it says what it waits for", || {
        psql(&daemon.place, "SELECT state || ': ' || last_error FROM sqlcached_sources")
            == "connecting: a slot waits for transactions that are open at the source: prepared transaction 'forgotten'"
    });
    psql(source, "COMMIT PREPARED 'forgotten'");
    wait(&daemon, "streaming");
    assert_eq!(psql(&daemon.place, "SELECT last_error IS NULL FROM sqlcached_sources"), "t");
    assert_eq!(stored(&mut daemon.daemon.connect()), [] as [u32; 0]);
}
