//! Which answers are kept, for whom, and until when.

use std::time::{Duration, Instant};

use super::Shop;
use super::talk::Talk;
use crate::console::shows;
use crate::drivers::place::Place;
use crate::sources::{asked, psql, until};

/// How often a statement comes so that its answer is certainly kept, if it ever is.
pub(super) const TIMES: usize = 8;

/// How long a definition may take to be noticed: looks each 2 s, on a machine that does much else.
const NOTICED: Duration = Duration::from_secs(20);

pub(super) const WARES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE ware (id INT PRIMARY KEY, name TEXT, price NUMERIC(10, 2), at TIMESTAMPTZ, day DATE, owner NAME,
        mood mood, body BYTEA, ratio FLOAT8);
    INSERT INTO ware SELECT n, 'ware ' || n, n / 4.0, '2026-02-03 04:05:06+00', '2026-02-03', 'bob', 'ok', 'abc', n / 3.0
        FROM generate_series(1, 100) n;
    CREATE TABLE stock (ware INT, place TEXT, n INT);
    INSERT INTO stock VALUES (1, 'here', 5), (1, 'there', 6), (2, 'here', NULL);
    CREATE UNLOGGED TABLE unlogged (id INT);
    CREATE SEQUENCE counted;
    CREATE VIEW cheap AS SELECT id, name FROM ware WHERE price < 10;
    CREATE VIEW fresh AS SELECT id FROM ware WHERE at > now() - interval '1 day';
    CREATE MATERIALIZED VIEW copied AS SELECT id FROM ware;
    CREATE FUNCTION price_of(INT) RETURNS NUMERIC STABLE LANGUAGE SQL AS 'SELECT price FROM ware WHERE id = $1';
    CREATE FUNCTION lies(INT) RETURNS NUMERIC IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT price FROM ware WHERE id = $1); END';
    CREATE ROLE bob; CREATE ROLE eve; GRANT SELECT ON ware TO bob;
    CREATE TABLE secret (id INT PRIMARY KEY, owner NAME, body TEXT);
    INSERT INTO secret VALUES (1, 'bob', 'of bob'), (2, 'eve', 'of eve');
    ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON secret USING (owner = current_user);
    GRANT SELECT ON secret TO bob, eve;
    CREATE TABLE rented (id INT PRIMARY KEY, tenant INT, body TEXT);
    INSERT INTO rented SELECT n, n % 3, 'of tenant ' || n % 3 FROM generate_series(1, 9) n;
    CREATE TABLE guest (tenant INT, person NAME PRIMARY KEY); INSERT INTO guest VALUES (0, 'bob'), (2, 'eve');
    ALTER TABLE rented ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON rented USING (tenant = nullif(current_setting('app.tenant', true), '')::int);
    CREATE POLICY invited ON rented TO eve USING (tenant IN (SELECT tenant FROM guest WHERE person = current_user));
    CREATE VIEW rentals AS SELECT id, body, current_setting('app.tenant', true) AS tenant FROM rented;
    GRANT SELECT ON rented, guest, rentals TO bob, eve;
    CREATE SCHEMA other; CREATE TABLE other.ware (id INT PRIMARY KEY, name TEXT);
    INSERT INTO other.ware VALUES (1, 'of the other schema')";

/// Runs a text until the source was asked what it depends on, and says what came of it: `kept`, or why not.
fn came_to(shop: &Shop, talk: &Talk, sql: &str) -> String {
    let of = format!(
        "SELECT state, coalesce(reason, '') FROM sqlcached_forwarded WHERE statement = '{}'",
        sql.replace('\'', "''")
    );
    let mut said = String::new();
    until(&format!("{sql} is inspected"), || {
        let _changing = talk.simple(sql);
        said = psql(&shop.daemon.place, &of);
        ["kept", "refused"].iter().any(|state| said.starts_with(state))
    });
    said
}

#[test]
fn what_is_kept_and_what_is_not() {
    let shop = Shop::cached(WARES);
    let talk = Talk::with(&shop.through);
    for kept in [
        "SELECT id, name FROM ware WHERE id = 1",
        "select * from ware where id = 1",
        "/* of an application */ SELECT name FROM ware",
        "SELECT count(*), sum(price), avg(price), max(at) FROM ware",
        "SELECT w.name, s.n FROM ware w LEFT JOIN stock s ON s.ware = w.id WHERE w.id IN (1, 2) ORDER BY 1, 2",
        "SELECT name FROM ware ORDER BY price DESC LIMIT 3 OFFSET 2",
        "SELECT id FROM cheap ORDER BY id",
        "WITH a AS (SELECT id FROM ware) SELECT count(*) FROM a",
        "SELECT lower(name), name || 'x', abs(id), coalesce(price, 0), round(price, 1) FROM ware WHERE id = 2",
        "SELECT to_char(at, 'YYYY'), at::date, json_agg(name) FROM ware GROUP BY at",
        "SELECT id FROM ware WHERE EXISTS (SELECT FROM stock WHERE ware = id) UNION SELECT 0 ORDER BY 1",
        "SELECT mood, day FROM ware WHERE mood = 'ok' AND day = '2026-02-03' AND id = 3",
        "SELECT id FROM ware TABLESAMPLED WHERE id = 1",
        "SELECT current_setting('search_path'), id FROM ware WHERE id = 1",
        "SELECT id, body FROM rented",
        "SELECT * FROM rentals",
    ] {
        assert!(came_to(&shop, &talk, kept).starts_with("kept"), "{kept}: {}", came_to(&shop, &talk, kept));
    }
    for refused in [
        "SELECT id FROM ware WHERE at < now()",
        "SELECT id FROM ware WHERE day = CURRENT_DATE",
        "SELECT age(at) FROM ware WHERE id = 1",
        "SELECT id FROM ware WHERE day < 'today'",
        "SELECT id FROM ware WHERE at < 'now'::timestamptz",
        "SELECT random(), id FROM ware WHERE id = 1",
        "SELECT nextval('counted')",
        "SELECT last_value FROM counted",
        "SELECT id FROM ware WHERE id = 1 FOR UPDATE",
        "SELECT id FROM ware TABLESAMPLE SYSTEM (100)",
        "SELECT ctid, id FROM ware WHERE id = 1",
        "SELECT xmin, id FROM ware WHERE id = 1",
        "SELECT id FROM unlogged",
        "SELECT count(*) FROM pg_class",
        "SELECT tablename FROM pg_tables",
        "SELECT id FROM copied",
        "SELECT id FROM fresh",
        "SELECT id, price_of(id) FROM ware WHERE id = 1",
        "SELECT id, lies(id) FROM ware WHERE id = 1",
        "SELECT current_setting('transaction_read_only'), id FROM ware WHERE id = 1",
        "SELECT current_setting(name) FROM ware WHERE id = 1",
        "SELECT 'ware'::regclass, id FROM ware WHERE id = 1",
        "SELECT pg_backend_pid(), id FROM ware WHERE id = 1",
        "SELECT clock_timestamp(), id FROM ware WHERE id = 1",
        "SELECT id FROM ware WHERE id = 1; SELECT 2",
        "UPDATE ware SET name = name WHERE id = 1 RETURNING id",
        "WITH d AS (UPDATE ware SET name = name WHERE id = 1 RETURNING id) SELECT * FROM d",
        "SHOW search_path",
        "EXPLAIN SELECT id FROM ware",
        "SELECT nothing FROM ware",
        "VALUES (now())",
    ] {
        assert!(came_to(&shop, &talk, refused).starts_with("refused"), "{refused} is not refused");
    }
}

/// Sessions in different states never share an answer, also where the state changes under a prepared statement.
#[test]
fn answers_belong_to_a_state() {
    let shop = Shop::cached(WARES);
    let states = [
        "RESET ALL",
        "SET TimeZone = 'Asia/Tokyo'",
        "SET DateStyle = 'German'",
        "SET DateStyle = 'SQL, DMY'",
        "SET search_path = other, public",
        "SET extra_float_digits = -5",
        "SET bytea_output = 'escape'",
        "SET ROLE bob",
        "RESET ROLE",
        "SET ROLE eve",
        "SET ROLE bob; SET TimeZone = 'America/New_York'",
        "RESET ALL; SET app.tenant = 1",
        "SET app.tenant = 2",
        "SET ROLE eve",
        "SET app.tenant = 1",
        "RESET ALL; RESET ROLE",
        "SET sqlcached.cache = off",
    ];
    let reads = [
        "SELECT id, name FROM ware WHERE id = 1",
        "SELECT at, day FROM ware WHERE id = $1::int",
        "SELECT ratio, body FROM ware WHERE id = 2",
        "SELECT at::date, to_char(at, 'HH24') FROM ware WHERE id = $1::int",
        "SELECT body FROM secret ORDER BY id",
        "SELECT id, body FROM rented ORDER BY id",
        "SELECT id, tenant, body FROM rentals WHERE id = $1::int",
        "SELECT current_setting('app.tenant', true), id FROM ware WHERE id = 3",
        "SELECT id FROM ware WHERE at = '2026-02-03 13:05:06' AND id = $1::int",
        "SELECT id FROM ware WHERE day = '02/03/2026' AND id = $1::int",
    ];
    for _ in 0..4 {
        let (mut through, mut direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
        let mut others: Vec<(Talk, Talk)> = Vec::new();
        for state in states {
            assert_eq!(through.simple(state), direct.simple(state), "{state}");
            for read in reads {
                for _ in 0..4 {
                    let simple = read.replace("$1", "1");
                    assert_eq!(through.simple(&simple), direct.simple(&simple), "{simple} after {state}");
                    assert_eq!(
                        through.unprepared(read, 1),
                        direct.unprepared(read, 1),
                        "{read} after {state}"
                    );
                    assert_eq!(
                        through.prepared(read, 1),
                        direct.prepared(read, 1),
                        "{read}, prepared, after {state}"
                    );
                }
            }
            // One that comes new into this state, so that what the first has stored is its own.
            let pair = (Talk::with(&shop.through), Talk::with(&shop.direct));
            assert_eq!(pair.0.simple(state), pair.1.simple(state));
            others.push(pair);
        }
        for (state, (through, direct)) in states.iter().zip(&mut others) {
            for read in reads {
                for _ in 0..2 {
                    assert_eq!(
                        through.prepared(read, 1),
                        direct.prepared(read, 1),
                        "{read} in a session of {state}"
                    );
                }
            }
        }
    }
    assert!(shop.count("hits", "SELECT") > 0);
}

/// The literal of a prepared statement was read in the state in which it was prepared. Its answer is not for those who
/// prepare it in another one.
#[test]
fn a_statement_prepared_in_another_state_shares_no_answer() {
    let shop = Shop::cached(WARES);
    let read = "SELECT id FROM ware WHERE at = '2026-02-03 13:05:06' AND id = $1::int";
    let (mut old, mut direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    for talk in [&mut old, &mut direct] {
        talk.prepared(read, 1).unwrap();
        talk.must("SET TimeZone = 'Asia/Tokyo'");
    }
    for _ in 0..TIMES {
        assert_eq!(old.prepared(read, 1), direct.prepared(read, 1));
        std::thread::sleep(Duration::from_millis(30));
    }
    let (mut new, mut direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    for talk in [&mut new, &mut direct] {
        talk.must("SET TimeZone = 'Asia/Tokyo'");
    }
    for _ in 0..TIMES {
        assert_eq!(new.prepared(read, 1), direct.prepared(read, 1));
        std::thread::sleep(Duration::from_millis(30));
    }
    // The other way round: the source is to read what it is sent late in the state of then.
    let (mut late, mut direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    for talk in [&mut late, &mut direct] {
        talk.must("SELECT 1");
        talk.must("SET TimeZone = 'Asia/Tokyo'");
    }
    until("it is kept", || {
        late.unprepared(read, 1).unwrap();
        shop.count("hits", read) > 0
    });
    for talk in [&mut late, &mut direct] {
        talk.prepared(read, 2).unwrap();
        talk.must("SET TimeZone = 'UTC'");
    }
    assert_eq!(late.prepared(read, 1), direct.prepared(read, 1));
}

/// A statement that the source was not sent when its client prepared it, and that cannot be prepared any more.
#[test]
fn a_statement_that_is_sent_late_and_fails_stops_nobody() {
    let shop = Shop::cached("CREATE TABLE ware (id INT PRIMARY KEY); INSERT INTO ware VALUES (1)");
    let read = "SELECT id FROM ware WHERE id = $1::int";
    let mut first = Talk::with(&shop.through);
    until("it is kept", || {
        first.unprepared(read, 1).unwrap();
        shop.count("hits", read) > 0
    });
    for naming in ["DEALLOCATE ALL", "DISCARD ALL", "SET TimeZone = 'UTC'"] {
        let mut late = Talk::with(&shop.through);
        (0..3).for_each(|_| drop(late.must("SELECT id FROM ware")));
        late.prepared(read, 1).unwrap();
        psql(&shop.direct, "ALTER TABLE ware RENAME TO gone");
        assert_eq!(late.simple(naming), Ok(Vec::new()), "{naming}");
        assert_eq!(late.must("SELECT count(*) FROM gone"), ["1"]);
        psql(&shop.direct, "ALTER TABLE gone RENAME TO ware");
        until("it is kept again", || {
            let before = shop.count("hits", read);
            first.unprepared(read, 1).unwrap();
            shop.count("hits", read) > before
        });
    }
}

#[test]
fn own_writes_are_seen_at_once() {
    let shop = Shop::cached(WARES);
    let (mut own, mut filler) = (Talk::with(&shop.through), Talk::with(&shop.through));
    let read = "SELECT name FROM ware WHERE id = $1::int";
    for number in 0..300 {
        filler.prepared(read, 1).unwrap();
        own.must(&format!("UPDATE ware SET name = 'n{number}' WHERE id = 1"));
        let expected = format!("{:02x?}", format!("n{number}").as_bytes());
        assert_eq!(own.prepared(read, 1).unwrap(), [expected]);
        filler.prepared(read, 1).unwrap();
    }
    assert!(shop.count("hits", read) > 0);
}

/// Before, each took the other's marks in the log for its own: a session on the second did not see what it had written.
#[test]
fn two_servers_of_one_database_do_not_disturb_each_other() {
    let shop = Shop::cached(WARES);
    psql(
        &shop.daemon.place,
        &format!(
            "CREATE SERVER other FOREIGN DATA WRAPPER postgres OPTIONS (host '127.0.0.1', port '{}', dbname 'shop',
                 publication 'cache', cache 'auto');
             CREATE USER MAPPING FOR PUBLIC SERVER other OPTIONS (user 'postgres')",
            shop.direct.port
        ),
    );
    let other = Place { database: "other", ..shop.through.clone() };
    psql(&other, "SELECT 1");
    until("both streams follow", || {
        psql(&shop.daemon.place, "SELECT count(*) FROM sqlcached_sources WHERE state = 'streaming'") == "2"
    });
    let (first, mut second, mut filler) = (Talk::with(&shop.through), Talk::with(&other), Talk::with(&other));
    (0..200).for_each(|number| drop(first.must(&format!("UPDATE ware SET ratio = {number} WHERE id = 2"))));
    let read = "SELECT name FROM ware WHERE id = $1::int";
    for number in 0..200 {
        filler.prepared(read, 1).unwrap();
        second.must(&format!("UPDATE ware SET name = 'n{number}' WHERE id = 1"));
        let expected = format!("{:02x?}", format!("n{number}").as_bytes());
        assert_eq!(second.prepared(read, 1).unwrap(), [expected]);
        filler.prepared(read, 1).unwrap();
    }
    assert!(shop.count("hits", read) > 0);
}

/// A standby that never confirms: the change was streamed, and the source still answers with the old row. Who keeps
/// that has an old answer when the source shows the new one, for no other event comes.
#[test]
fn an_answer_that_the_source_still_shows_is_not_kept() {
    let shop = Shop::cached(WARES);
    let talk = Talk::with(&shop.through);
    let read = "SELECT name FROM ware WHERE id = 1";
    until("it is kept", || {
        talk.must(read);
        shop.count("hits", read) > 0
    });
    shop.set_standbys("nobody");
    until("the other configuration is noticed", || shop.count("hits", read) == 0);
    until("it is kept again", || {
        talk.must(read);
        shop.count("hits", read) > 0
    });
    let events = || psql(&shop.daemon.place, "SELECT events FROM sqlcached_sources").parse::<u64>().unwrap();
    let before = events();
    let mut update = shop.direct.program("psql");
    let update = update.args(["-X", "-q", "-c", "UPDATE ware SET name = 'new' WHERE id = 1"]).spawn();
    until("the change was streamed", || events() > before);
    (0..TIMES).for_each(|_| assert_eq!(talk.must(read), ["ware 1"]));
    shop.set_standbys("");
    update.unwrap().wait().unwrap();
    shop.settle();
    (0..TIMES).for_each(|_| assert_eq!(talk.must(read), ["new"]));
}

/// Whoever writes at the source, the old answer is gone in a moment.
#[test]
fn writes_at_the_source_are_seen_soon() {
    let shop = Shop::cached(WARES);
    let (through, direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    let read = "SELECT name FROM ware WHERE id = 1";
    until("it is kept", || {
        through.must(read);
        shop.count("hits", read) > 0
    });
    // What is counted of a statement begins again when the source's definitions may have changed.
    let (mut hits, mut counted) = (0, 0);
    let mut took: Vec<Duration> = (0..200)
        .map(|number| {
            if number % 10 == 0 {
                let now = shop.count("hits", read);
                hits += if now < counted { now } else { now - counted };
                counted = now;
            }
            (0..4).for_each(|_| drop(through.must(read)));
            direct.must(&format!("UPDATE ware SET name = 'n{number}' WHERE id = 1"));
            let written = Instant::now();
            while through.must(read) != [format!("n{number}")] {
                assert!(written.elapsed() < Duration::from_secs(30), "it is never seen");
            }
            written.elapsed()
        })
        .collect();
    took.sort();
    println!("seen after {:?} (median), {:?} (longest)", took[100], took[199]);
    assert!(took[100] < Duration::from_millis(100), "{:?}", took[100]);
    assert!(hits > 100, "{hits}");
}

/// Row security by a setting, as applications with many tenants have it: each tenant has answers of its own, and each
/// is dropped by changes of what its policies read.
#[test]
fn tenants_have_answers_of_their_own() {
    let shop = Shop::cached(WARES);
    let talks: Vec<Talk> = (0..3).map(|_| Talk::with(&shop.through)).collect();
    let read = "SELECT id FROM rented ORDER BY id";
    for (tenant, talk) in talks.iter().enumerate() {
        talk.must(&format!("SET ROLE eve; SET app.tenant = {tenant}"));
    }
    let expected = |tenant: usize, invited: usize| -> Vec<String> {
        (1..=9).filter(|id| id % 3 == tenant || id % 3 == invited).map(|id| id.to_string()).collect()
    };
    until("all are kept", || {
        for (tenant, talk) in talks.iter().enumerate() {
            assert_eq!(talk.must(read), expected(tenant, 2), "tenant {tenant}");
        }
        shop.count("hits", read) > 9
    });
    psql(&shop.direct, "UPDATE guest SET tenant = 1 WHERE person = 'eve'");
    shop.settle();
    for (tenant, talk) in talks.iter().enumerate() {
        assert_eq!(
            talk.must(read),
            expected(tenant, 1),
            "tenant {tenant}, after the change of a policy's table"
        );
    }
}

/// With checked answers a session sees every commit that was acknowledged before its read.
#[test]
fn checked_answers_have_what_others_committed() {
    let shop = Shop::cached(WARES);
    let (through, direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    through.must("SET sqlcached.freshness = 'checked'");
    let read = "SELECT name FROM ware WHERE id = 1";
    until("it is kept", || {
        through.must(read);
        shop.count("hits", read) > 0
    });
    sees_each_commit(&through, &direct, read);
}

/// A session reads each commit of another one at once, and every answer is kept again after it.
fn sees_each_commit(reader: &Talk, writer: &Talk, read: &str) {
    for number in 0..50 {
        let expected = [format!("n{number}")];
        writer.must(&format!("UPDATE ware SET name = 'n{number}' WHERE id = 1"));
        until("it is kept again", || {
            assert_eq!(reader.must(read), expected);
            reader.must("SHOW sqlcached.last_answer") == ["cache"]
        });
    }
    for number in 50..250 {
        let expected = [format!("n{number}")];
        writer.must(&format!("UPDATE ware SET name = 'n{number}' WHERE id = 1"));
        (0..4).for_each(|_| assert_eq!(reader.must(read), expected));
    }
}

/// Where commits wait for the cache, every kept answer has all that was acknowledged. Where they do not, nothing kept
/// is read, and it is said why.
#[test]
fn commits_wait_for_the_cache() {
    for slot in ["", ", slot 'cache'"] {
        let options = format!("cache 'auto', freshness 'commit', standby_name 'cache'{slot}");
        let shop = Shop::start(&options, WARES);
        shop.follow();
        let (through, direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
        let read = "SELECT name FROM ware WHERE id = 1";
        until("answers are kept", || {
            through.must(read);
            shop.count("kept", read) > 2
        });
        assert_eq!(shop.count("hits", read), 0, "no commit waits for this cache");
        let reason =
            psql(&shop.daemon.place, "SELECT reason FROM sqlcached_forwarded WHERE reason LIKE 'commits%'");
        assert_eq!(reason.lines().next(), Some("commits at the source do not wait for this cache"));
        shop.set_standbys("ANY 1 (cache)");
        until("commits wait", || {
            through.must(read);
            shop.count("hits", read) > 0
        });
        sees_each_commit(&through, &direct, read);
        shop.set_standbys("");
        until("nothing kept is read any more", || {
            through.must(read);
            through.must("SHOW sqlcached.last_answer") == ["database"]
        });
    }
}

#[test]
fn the_console_shows_forwarded_statements() {
    let port = crate::daemon::free_port();
    let shop = Shop::start_with("cache 'auto'", WARES, super::SETTINGS, &["--http-port", &port.to_string()]);
    shop.follow();
    let talk = Talk::with(&shop.through);
    let (read, refused) = ("SELECT name FROM ware WHERE id = 1", "SELECT now(), name FROM ware WHERE id = 1");
    assert!(came_to(&shop, &talk, refused).starts_with("refused"));
    until("it is kept", || {
        talk.must(read);
        shop.count("hits", read) > 0
    });
    let kept = format!("forwarded/sqlcached_forwarded/{read}/kept/public.ware(id)");
    let refused = "forwarded/sqlcached_forwarded/refused/tells the time/send the time as a parameter";
    shows(port, &[&kept, refused]);
}

/// Sessions of another time zone or style of dates took the source for another one, so nothing was kept for them.
#[test]
fn sessions_of_any_time_zone_have_answers() {
    let shop = Shop::cached(WARES);
    for options in ["-c TimeZone=Asia/Tokyo", "-c DateStyle=German -c extra_float_digits=0"] {
        let talk = Talk::try_with(&shop.through, options).unwrap();
        until("it is kept", || {
            talk.must("SELECT name FROM ware WHERE id = 1");
            talk.must("SHOW sqlcached.last_answer") == ["cache"]
        });
    }
}

/// Each tag of a change removed answers by reading all of them: 5,000 changed rows took ten seconds among 50,000
/// answers, and then the stream was late, so that all of them went.
#[test]
fn changes_find_their_answers_by_an_index() {
    let shop = Shop::cached(WARES);
    let explained = psql(&shop.daemon.place, "EXPLAIN DELETE FROM shop_answers WHERE 'x' = ANY (tags)");
    assert!(explained.contains("Index"), "{explained}");
}

/// `SHOW sqlcached.last_answer` was sent to the source in transactions, and its error ended them.
#[test]
fn who_answered_is_told_in_transactions() {
    let shop = Shop::cached(WARES);
    let talk = Talk::with(&shop.through);
    let told = || talk.must("SHOW sqlcached.last_answer");
    talk.must("BEGIN");
    talk.must("UPDATE ware SET name = 'written' WHERE id = 1");
    assert_eq!(told(), ["database"]);
    talk.must("SAVEPOINT s");
    assert!(talk.simple("SELECT nothing").is_err());
    assert_eq!(told(), ["database"]);
    assert!(talk.simple("SELECT 1").unwrap_err().contains("25P02"), "the transaction has failed");
    talk.must("ROLLBACK TO s");
    talk.must("COMMIT");
    assert_eq!(talk.must("SELECT name FROM ware WHERE id = 1"), ["written"]);
}

/// With `cache 'named'` an unmodified application's statements are kept by name, however it writes its values.
#[test]
fn cached_queries_are_kept_by_name() {
    let mut shop = Shop::start("cache 'named'", WARES);
    shop.follow();
    let place = shop.daemon.place.clone();
    psql(&place, "CREATE CACHED QUERY one SERVER shop AS SELECT name FROM ware WHERE id = $1");
    psql(
        &place,
        "CREATE CACHED QUERY stock SERVER shop OPTIONS (freshness 'stream') AS SELECT n FROM stock WHERE place = $1 AND ware = $2",
    );
    let known = |name: &str| {
        let of = format!(
            "SELECT state, sum(hits) > 0 FROM sqlcached_forwarded WHERE query_name = '{name}' GROUP BY state"
        );
        psql(&place, &of)
    };
    let talk = Talk::with(&shop.through);
    until("it is kept", || {
        assert_eq!(talk.must("select name from ware where id=1 /* one */"), ["ware 1"]);
        talk.must("SELECT name FROM ware WHERE id = 2");
        talk.must("SELECT n FROM stock WHERE place = 'here' AND ware = 1");
        talk.must("SELECT price FROM ware WHERE id = 1");
        known("one") == "kept|t" && known("stock") == "kept|t"
    });
    assert_eq!(shop.count("kept", "SELECT price"), 0, "nobody has named it");
    // Names outlive a restart, and end.
    shop.daemon.daemon.kill();
    shop.daemon.daemon.restart();
    shop.follow();
    assert_eq!(
        psql(&place, "SELECT query_name, options FROM sqlcached_cached_queries ORDER BY 1"),
        "one|\nstock|{freshness=stream}"
    );
    let talk = Talk::with(&shop.through);
    until("it is kept again", || {
        talk.must("SELECT name FROM ware WHERE id = 2");
        known("one") == "kept|t"
    });
    // A session that has prepared the statement before hears of the end of its query, too.
    let mut prepared = Talk::with(&shop.through);
    let answered_by = |prepared: &mut Talk| {
        prepared.prepared("SELECT name FROM ware WHERE id = $1::int", 2).unwrap();
        prepared.must("SHOW sqlcached.last_answer")
    };
    psql(&place, "CREATE CACHED QUERY cast_one SERVER shop AS SELECT name FROM ware WHERE id = $1::int");
    until("it is kept where it is prepared", || answered_by(&mut prepared) == ["cache"]);
    psql(&place, "DROP CACHED QUERY one SERVER shop");
    psql(&place, "DROP CACHED QUERY cast_one SERVER shop");
    until("it is none any more", || {
        talk.must("SELECT name FROM ware WHERE id = 2");
        talk.must("SHOW sqlcached.last_answer") == ["database"]
    });
    until("nor where it is prepared", || answered_by(&mut prepared) == ["database"]);
    let refused = |sql: &str| asked(&place, sql).unwrap_err();
    assert!(
        refused("CREATE CACHED QUERY w SERVER shop AS UPDATE ware SET name = $1").contains("it is no SELECT")
    );
    assert!(refused("CREATE CACHED QUERY stock SERVER shop AS SELECT 1").contains("already exists"));
    assert!(refused("CREATE CACHED QUERY a SERVER none AS SELECT 1").contains("does not exist"));
    assert!(
        refused("CREATE CACHED QUERY a SERVER shop OPTIONS (ttl '5') AS SELECT 1").contains("invalid option")
    );
    assert!(refused("DROP SERVER shop").contains("depend"));
}

/// Text of `docs/forwarding.md` between two lines.
fn from_docs(from: &str, to: &str) -> String {
    let docs = std::fs::read_to_string(crate::drivers::suite::root().join("docs/forwarding.md")).unwrap();
    let (_, behind) = docs.split_once(from).unwrap();
    behind.split_once(to).unwrap().0.to_owned()
}

/// The event trigger that the docs offer: definitions come with the stream, in their order. A session sees its own at
/// once, and materialized views are kept.
#[test]
fn an_event_trigger_tells_definitions_at_once() {
    let shop = Shop::cached(WARES);
    psql(&shop.direct, &from_docs("```sql event-trigger\n", "```"));
    shop.notice();
    let (own, direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    let read = "SELECT id, name FROM cheap WHERE id = 1";
    let kept = |sql: &str| {
        until(&format!("{sql} is kept"), || {
            own.must(sql);
            own.must("SHOW sqlcached.last_answer") == ["cache"]
        });
    };
    for number in 0..12 {
        let table = ["ware", "other.ware"][number % 2];
        own.must(&format!(
            "CREATE OR REPLACE VIEW cheap AS SELECT id, name || '{number}' AS name FROM {table}"
        ));
        assert_eq!(own.must(read), direct.must(read), "after its own definition {number}");
        kept(read);
        // What was known of the statement was that it reads the other table.
        direct.must(&format!("UPDATE {table} SET name = name || 'x' WHERE id = 1"));
        shop.settle();
        assert_eq!(own.must(read), direct.must(read), "after a change of {table}");
    }
    let copied = "SELECT count(*) FROM copied";
    kept(copied);
    direct.must("DELETE FROM ware WHERE id > 90");
    shop.settle();
    assert_eq!(own.must(copied), ["100"]);
    for refresh in [
        "REFRESH MATERIALIZED VIEW copied",
        "DELETE FROM ware WHERE id > 80",
        "REFRESH MATERIALIZED VIEW copied",
    ] {
        direct.must(refresh);
        shop.settle();
        assert_eq!(own.must(copied), direct.must(copied), "{refresh}");
    }
    // Temporary tables, which applications make all the time, are nobody's business. Statements are forgotten once more
    // when the digest of the definitions shows what the stream has told before.
    until("temporary tables leave what is known of statements", || {
        kept(copied);
        direct.must("CREATE TEMP TABLE scratch (id INT)");
        direct.must("DROP TABLE scratch");
        shop.settle();
        shop.count("1", copied) > 0
    });
}

/// Definitions, in a session that keeps its prepared statements: what they depend on is another table afterwards.
#[test]
fn definitions_are_noticed_in_time() {
    let shop = Shop::cached(WARES);
    let (mut through, mut direct) = (Talk::with(&shop.through), Talk::with(&shop.direct));
    psql(
        &shop.direct,
        "CREATE TABLE a (id INT PRIMARY KEY, n INT); CREATE TABLE b (id INT PRIMARY KEY, n INT);
         INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 2); CREATE VIEW v AS SELECT id, n FROM a;
         CREATE TABLE p (id INT, y INT) PARTITION BY LIST (y); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         CREATE TABLE p2 (id INT, y INT); INSERT INTO p2 VALUES (2, 2); INSERT INTO p VALUES (1, 1)",
    );
    let reads = [
        "SELECT n FROM v WHERE id = $1::int",
        "SELECT count(*) FROM p",
        "SELECT n FROM a WHERE id = $1::int",
    ];
    let mut new = Talk::with(&shop.through);
    for change in [
        "SELECT 1",
        "CREATE OR REPLACE VIEW v AS SELECT id, n FROM b",
        "UPDATE b SET n = n + 10",
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2); UPDATE a SET n = 7",
        "INSERT INTO p2 VALUES (3, 2)",
        "DROP TABLE a; CREATE TABLE a (id INT PRIMARY KEY, n INT); INSERT INTO a VALUES (1, 500)",
        "UPDATE a SET n = 501; UPDATE b SET n = 50",
    ] {
        psql(&shop.direct, change);
        shop.settle();
        let end = Instant::now() + NOTICED;
        for read in reads {
            loop {
                let (found, expected) = (through.prepared(read, 1), direct.prepared(read, 1));
                if found == expected && new.unprepared(read, 1) == expected {
                    break;
                }
                assert!(Instant::now() < end, "{read} after {change}: {found:?}, and not {expected:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
            // It is kept again before the next change.
            let hits = shop.count("hits", read);
            until(&format!("{read} is kept after {change}"), || {
                let _by_both = (through.prepared(read, 1), new.unprepared(read, 1));
                shop.count("hits", read) > hits + 1
            });
        }
    }
}
