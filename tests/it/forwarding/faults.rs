//! What goes wrong between a client, the daemon and its source.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::talk::Talk;
use super::{SETTINGS, Shop};
use crate::daemon::{free_port, run};
use crate::drivers::place::Place;
use crate::sources::{asked, psql, until};

const WARES: &str = "CREATE TABLE ware (id INT PRIMARY KEY, n INT); INSERT INTO ware VALUES (1, 1), (2, 1); CREATE ROLE bob LOGIN";

/// Who cannot be forwarded hears why, as libpq's clients show it.
#[test]
fn a_session_that_cannot_begin_says_why() {
    let shop = Shop::start("", WARES);
    let daemon = &shop.daemon.place;
    let refused = |says: &[&str]| {
        let said = asked(&shop.through, "SELECT 1").unwrap_err();
        assert!(says.iter().all(|part| said.contains(part)), "{said}");
    };
    psql(daemon, &format!("ALTER SERVER shop OPTIONS (SET port '{}')", free_port()));
    refused(&["server \"shop\"", "refused"]);
    psql(
        daemon,
        &format!("ALTER SERVER shop OPTIONS (SET port '{}', SET dbname 'nothing')", shop.direct.port),
    );
    refused(&["database \"nothing\" does not exist"]);
    psql(daemon, "ALTER SERVER shop OPTIONS (SET dbname 'shop')");
    psql(daemon, "ALTER USER MAPPING FOR PUBLIC SERVER shop OPTIONS (SET user 'nobody_here')");
    refused(&["role \"nobody_here\" does not exist"]);
    psql(
        daemon,
        "ALTER USER MAPPING FOR PUBLIC SERVER shop OPTIONS (SET user 'cache', ADD password 'wrong')",
    );
    psql(&shop.direct, "CREATE ROLE cache LOGIN PASSWORD 'hidden'");
    refused(&["password authentication failed"]);
    psql(daemon, "ALTER USER MAPPING FOR PUBLIC SERVER shop OPTIONS (SET password 'hidden')");
    assert_eq!(psql(&shop.through, "SELECT current_user"), "cache");
    psql(daemon, "DROP USER MAPPING FOR PUBLIC SERVER shop");
    refused(&["user mapping not found for user \"postgres\", server \"shop\""]);
    // Another name is the daemon's own database, as before.
    let own = Place { database: "anything", ..shop.through.clone() };
    assert_eq!(psql(&own, "SELECT count(*) FROM sqlcached_forwarded"), "0");
}

/// The source dies in the middle: the client sees the end, and the next sessions work when it is back.
#[test]
fn a_source_that_dies_ends_its_sessions() {
    let mut shop = Shop::cached(WARES);
    let read = "SELECT n FROM ware WHERE id = 1";
    for _ in 0..2 {
        let talk = Talk::with(&shop.through);
        until("it is kept", || {
            talk.must(read);
            shop.count("hits", read) > 0
        });
        let mut sleeping = shop.through.program("psql");
        let sleeping =
            sleeping.args(["-X", "-c", "SELECT pg_sleep(600)"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let sleeping = sleeping.spawn().unwrap();
        until("it sleeps", || {
            psql(&shop.direct, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
        });
        shop.database.stop();
        let said = sleeping.wait_with_output().unwrap();
        assert!(!said.status.success(), "{said:?}");
        until("the session has ended", || talk.simple(read).is_err() && talk.is_closed());
        assert!(asked(&shop.through, "SELECT 1").is_err());
        shop.database.start_again();
        psql(&shop.direct, "UPDATE ware SET n = n + 1");
        until("sessions work", || asked(&shop.through, "SELECT 1").is_ok());
        assert_eq!(psql(&shop.through, read), psql(&shop.direct, read));
        shop.follow();
        shop.settle();
        let talk = Talk::with(&shop.through);
        for _ in 0..8 {
            assert_eq!(talk.must(read), [psql(&shop.direct, read)]);
        }
    }
}

/// After kill -9 nothing old is answered, whether what was kept is believed or not.
#[test]
fn kill_9_brings_no_old_answer_back() {
    for server in ["cache 'auto'", "cache 'auto', slot 'cache'"] {
        let mut shop = Shop::start_with(server, WARES, SETTINGS, &[]);
        shop.follow();
        for round in 0..4 {
            let talk = Talk::with(&shop.through);
            for id in [1, 2] {
                let read = format!("SELECT n FROM ware WHERE id = {id}");
                let before = shop.count("hits", &read);
                until("it is kept", || {
                    talk.must(&read);
                    shop.count("hits", &read) > before + 1
                });
            }
            shop.daemon.daemon.kill();
            psql(&shop.direct, "UPDATE ware SET n = n + 1 WHERE id = 1");
            shop.daemon.daemon.restart();
            for _ in 0..20 {
                let talk = Talk::with(&shop.through);
                for id in [1, 2] {
                    let read = format!("SELECT n FROM ware WHERE id = {id}");
                    for _ in 0..3 {
                        assert_eq!(talk.must(&read), [psql(&shop.direct, &read)], "{server}, round {round}");
                    }
                }
            }
            shop.follow();
        }
    }
}

/// With a slot that stays, answers survive kill -9: those that no change has touched meanwhile. A process that has kept
/// none of them knows by which tags it drops them.
#[test]
fn answers_survive_kill_9_with_a_slot() {
    let mut shop = Shop::start("cache 'auto', slot 'cache'", WARES);
    shop.follow();
    let place = shop.daemon.place.clone();
    psql(&shop.direct, "INSERT INTO ware VALUES (3, 1)");
    let read = |id: u32| format!("SELECT n FROM ware WHERE id = {id}");
    let talk = Talk::with(&shop.through);
    for id in 1..=3 {
        until("it is kept", || {
            talk.must(&read(id));
            shop.count("hits", &read(id)) > 0
        });
    }
    shop.settle();
    // Changes that the source sends a second time drop answers.
    let sent = psql(&shop.direct, "SELECT pg_current_wal_insert_lsn()");
    until("the slot has passed the insertion", || {
        let sql = format!("SELECT bool_and(confirmed_flush_lsn >= '{sent}') FROM pg_replication_slots");
        psql(&shop.direct, &sql) == "t"
    });
    let answers = || psql(&place, "SELECT count(*) FROM shop_answers");
    assert_eq!(answers(), "3");
    shop.daemon.daemon.kill();
    psql(&shop.direct, "UPDATE ware SET n = n + 1 WHERE id = 1");
    shop.daemon.daemon.restart();
    shop.follow();
    shop.settle();
    assert_eq!(answers(), "2", "{}", psql(&place, "SELECT last_break FROM sqlcached_sources"));
    psql(&shop.direct, "UPDATE ware SET n = n + 1 WHERE id = 2");
    shop.settle();
    assert_eq!(answers(), "1", "this process has not kept that answer, and drops it");
    let talk = Talk::with(&shop.through);
    until("what was kept before answers", || {
        assert_eq!(talk.must(&read(3)), [psql(&shop.direct, &read(3))]);
        shop.count("hits", &read(3)) > 0
    });
    assert_eq!(shop.count("kept", &read(3)), 0, "it was not kept again");
}

/// While nothing was kept, the stream went on by its slot, and named no answers: those of before came back with the
/// option, although what they depend on had changed. And a table like that of the answers took all changes for itself,
/// so that answers stayed.
#[test]
fn answers_of_before_the_option_was_off_do_not_come_back() {
    let shop = Shop::start("cache 'auto', slot 'cache'", WARES);
    shop.follow();
    psql(
        &shop.daemon.place,
        "CREATE TABLE aaa (id INT PRIMARY KEY, tags TEXT[]) WITH (source = 'shop', mode = 'answers')",
    );
    shop.follow();
    let (read, change) = ("SELECT n FROM ware WHERE id = 1", "UPDATE ware SET n = n + 1 WHERE id = 1");
    let keep = || {
        let talk = Talk::with(&shop.through);
        let before = shop.count("hits", read);
        until("it is kept", || {
            talk.must(read);
            shop.count("hits", read) > before + 1
        });
        talk
    };
    let talk = keep();
    psql(&shop.direct, change);
    until("the change is seen", || talk.must(read) == [psql(&shop.direct, read)]);
    drop(keep());
    psql(&shop.daemon.place, "ALTER SERVER shop OPTIONS (SET cache 'off')");
    shop.follow();
    psql(&shop.direct, change);
    shop.settle();
    psql(&shop.daemon.place, "ALTER SERVER shop OPTIONS (SET cache 'auto')");
    shop.follow();
    for _ in 0..20 {
        assert_eq!(Talk::with(&shop.through).must(read), [psql(&shop.direct, read)]);
    }
}

/// TLS from the client to the daemon, and from there to the source.
#[test]
fn tls_on_both_sides() {
    let shop = Shop::start("cache 'auto'", WARES);
    let folder = shop.database.folder();
    let made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
                -keyout key.pem -out cert.pem && cp key.pem own.pem && chmod 600 key.pem own.pem && chmod 644 cert.pem \
                && (chown postgres key.pem || true)";
    let (code, _, error) = run(Command::new("sh").current_dir(&folder).args(["-c", made]));
    assert_eq!(code, Some(0), "{error}");
    for set in [
        format!("ALTER SYSTEM SET ssl_cert_file = '{folder}/cert.pem'"),
        format!("ALTER SYSTEM SET ssl_key_file = '{folder}/key.pem'"),
        "ALTER SYSTEM SET ssl = on".to_owned(),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        psql(&shop.direct, &set);
    }
    until("the source has TLS", || psql(&shop.direct, "SHOW ssl") == "on");
    let files = [format!("{folder}/cert.pem"), format!("{folder}/own.pem")];
    let flags = ["--ssl", "--ssl-cert-file", &files[0], "--ssl-key-file", &files[1]];
    let daemon = crate::drivers::place::SqlDaemon::start(&flags);
    psql(
        &daemon.place,
        &format!(
            "CREATE SERVER shop FOREIGN DATA WRAPPER postgres OPTIONS (host 'localhost', port '{}', dbname 'shop',
                 publication 'cache', cache 'auto', sslmode 'verify-full', sslrootcert '{folder}/cert.pem');
             CREATE USER MAPPING FOR PUBLIC SERVER shop OPTIONS (user 'postgres')",
            shop.direct.port
        ),
    );
    let through = Place { user: "postgres", database: "shop", ..daemon.place.clone() };
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    for mode in ["require", "verify-full"] {
        let mut client = through.program("psql");
        client
            .env("PGSSLMODE", mode)
            .env("PGSSLROOTCERT", &files[0])
            .args(["-X", "-A", "-t", "-c", encrypted]);
        for more in ["SELECT n FROM ware WHERE id = 1"; 12] {
            client.args(["-c", more, "-c", "SELECT pg_sleep(0.02)"]);
        }
        client.args([
            "-c",
            "SELECT sum(length(repeat('x', 1000))), max(repeat('y', 100000)) FROM generate_series(1, 1000)",
        ]);
        let (code, out, error) = run(&mut client);
        assert_eq!(code, Some(0), "{mode}: {error}");
        assert!(out.starts_with("t\n1\n"), "{out}");
        assert!(out.contains("1000000|yyyy"));
    }
    // A source that does not show who it is is not believed.
    psql(&daemon.place, "ALTER SERVER shop OPTIONS (SET sslrootcert '/etc/ssl/certs/ca-certificates.crt')");
    assert!(asked(&through, "SELECT 1").is_err());
}

/// A request to cancel goes to the session that it names, and a wrong one to none.
#[test]
fn cancels_reach_their_session() {
    let shop = Shop::start("cache 'auto'", WARES);
    let mut both = Vec::new();
    for _ in 0..2 {
        let mut psql = shop.through.program("psql");
        psql.args(["-X", "-c", "SELECT pg_sleep(600)"]).stdout(Stdio::null()).stderr(Stdio::piped());
        both.push(psql.spawn().unwrap());
    }
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("both sleep", || psql(&shop.direct, sleeping) == "2");
    // psql cancels at SIGINT.
    let first = both.remove(0);
    assert!(Command::new("kill").args(["-s", "INT", &first.id().to_string()]).status().unwrap().success());
    let said = first.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stderr).contains("canceling statement"), "{said:?}");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(psql(&shop.direct, sleeping), "1");
    for mut other in both {
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
