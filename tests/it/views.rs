//! Materialized views in the running daemon: refreshed by themselves, read by memcached's clients, and whole after a
//! death.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Reply};
use crate::daemon::{Daemon, run};
use crate::drivers::place::SqlDaemon;
use crate::seed;

/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(1);

fn wait_for(client: &mut Client, key: &str, expected: &[u8]) {
    let began = Instant::now();
    while client.get(key).as_deref() != Some(expected) {
        assert!(began.elapsed() < PATIENCE, "{key}: {:?}", client.get(key));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn memcached_clients_read_a_view_and_do_not_write_it() {
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    client.change("CREATE TABLE sale (id INT PRIMARY KEY, product INT, pieces INT)");
    client.change("INSERT INTO sale VALUES (1, 17, 2), (2, 18, 5)");
    client.change(
        "CREATE MATERIALIZED VIEW board WITH (key = 'product', refresh_on = 'sale', prefix = 'board:', value = 'pieces') \
         AS SELECT product, sum(pieces)::text AS pieces FROM sale GROUP BY product",
    );
    assert_eq!(client.get("board:17").as_deref(), Some(&b"2"[..]));
    client.change("INSERT INTO sale VALUES (3, 17, 10)");
    wait_for(&mut client, "board:17", b"12");
    let refused = "SERVER_ERROR cannot change materialized view \"board\"";
    for command in ["set board:17 0 0", "add board:19 0 0", "append board:17 0 0", "set board:17 0 100"] {
        assert_eq!(client.store(command, b"1"), refused, "{command}");
    }
    for command in
        ["delete board:17", "delete board:99", "touch board:17 100", "incr board:17 1", "gat 100 board:17"]
    {
        assert_eq!(client.ask(command), refused, "{command}");
    }
    assert_eq!(client.store("ms board:17", b"1"), refused);
    assert_eq!(client.ask("md board:17 I"), refused);
    assert_eq!(client.ask("md board:17"), refused);
    assert_eq!(client.store("set board:18 0 0", &vec![b'7'; 100_000]), refused);
    assert_eq!(client.ask("flush_all"), "OK");
    assert_eq!(client.get("board:17").as_deref(), Some(&b"12"[..]));
    assert_eq!(client.get("board:18").as_deref(), Some(&b"5"[..]));
}

/// Memory is short, and rows of views stay while others go.
#[test]
fn rows_of_views_are_not_evicted() {
    let daemon = Daemon::start(&["-m", "64"]);
    let mut client = daemon.connect();
    client.change("CREATE TABLE t (id INT PRIMARY KEY, body TEXT)");
    client.change(
        "INSERT INTO t WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000) \
         SELECT x, hex(zeroblob(500)) FROM n",
    );
    client.change("CREATE MATERIALIZED VIEW v WITH (key = 'id', prefix = 'v:', value = 'body') AS SELECT id, body FROM t");
    let value = vec![b'x'; 10_000];
    for at in 0..12_000 {
        assert_eq!(client.set(&format!("k{at}"), &value), "STORED");
    }
    assert!(client.stat("evictions") > 1_000);
    assert_eq!(client.rows("SELECT count(*) AS n FROM v"), [json!({"n": 5000})]);
    assert_eq!(
        client.rows("SELECT sum(evicted) AS n FROM sqlcached_tables WHERE table_name = 'v'"),
        [json!({"n": 0})]
    );
}

/// The daemon is killed at any moment of refreshes whose states differ in every row.
#[test]
fn a_death_leaves_the_old_rows_or_the_new_ones() {
    const ROWS: usize = 5_000;
    const DEATHS: usize = 15;
    let mut random = fastrand::Rng::with_seed(seed());
    let mut daemon = Daemon::start(&["-m", "64"]);
    let mut client = daemon.connect();
    client.change("CREATE TABLE one (n INT)");
    client.change("INSERT INTO one VALUES (0)");
    client.change(&format!(
        "CREATE MATERIALIZED VIEW keyed WITH (key = 'x') AS WITH RECURSIVE s (x) AS \
         (SELECT 1 UNION ALL SELECT x + 1 FROM s WHERE x < {ROWS}) SELECT x, n FROM s, one"
    ));
    client.change("CREATE INDEX keyed_n ON keyed (n)");
    client.change("CREATE MATERIALIZED VIEW loose AS SELECT n, 'text of a row' AS t FROM keyed");
    let mut last = 0;
    for death in 0..DEATHS {
        let after = Duration::from_millis(random.u64(20..400));
        std::thread::scope(|threads| {
            let socket = daemon.socket();
            let refreshing = threads.spawn(move || {
                let mut client = Client::unix(&socket);
                for n in last + 1.. {
                    for sql in [
                        format!("UPDATE one SET n = {n}"),
                        "REFRESH MATERIALIZED VIEW keyed".to_owned(),
                        "REFRESH MATERIALIZED VIEW loose".to_owned(),
                    ] {
                        let request = format!("sql {}\r\n{sql}\r\n", sql.len());
                        if client.try_send(request.as_bytes()).is_err() || client.try_line().is_err() {
                            return n;
                        }
                    }
                }
                0
            });
            std::thread::sleep(after);
            daemon.kill();
            last = refreshing.join().unwrap();
        });
        daemon.restart();
        client = daemon.connect();
        for view in ["keyed", "loose"] {
            let look = format!("SELECT count(*) AS rows, max(n) - min(n) AS differ FROM {view}");
            assert_eq!(client.rows(&look), [json!({"rows": ROWS, "differ": 0})], "{view}, death {death}");
        }
        let by_index = client.rows("SELECT count(*) AS rows FROM keyed WHERE n = (SELECT max(n) FROM keyed)");
        assert_eq!(by_index, [json!({"rows": ROWS})], "death {death}");
        let Reply::Changed(_) = client.sql("REFRESH MATERIALIZED VIEW keyed") else {
            panic!("death {death}")
        };
    }
}

#[test]
fn psql_lists_and_describes_a_view() {
    let server = SqlDaemon::start(&[]);
    let sql = "CREATE TABLE sale (id INT PRIMARY KEY, product INT); \
               CREATE MATERIALIZED VIEW board WITH (key = 'product', refresh = '30 s') AS SELECT product, count(*) AS n FROM sale GROUP BY product; \
               CREATE INDEX board_n ON board (n)";
    let (code, _, error) = run(server.place.program("psql").args(["-X", "-q", "-c", sql]));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (code, out, error) = run(server.place.program("psql").args([
        "-X",
        "-A",
        "-c",
        "\\dm",
        "-c",
        "\\d board",
        "-c",
        "\\d+ board",
    ]));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    for part in [
        "public|board|materialized view|",
        "product|integer|",
        "n|bigint|",
        "\"board_n\" btree (n)",
        "FROM public.sale",
        "refresh=30 s",
        "key=product",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}
