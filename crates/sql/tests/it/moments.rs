//! A statement has one moment, in all that it computes.

use sql::{Cancel, Executor, Limits, Session};
use store::Clock;

use crate::common::{Db, Rows, open_store, show};

/// A clock that goes on by itself: the defaults of three rows had three moments.
#[test]
fn all_rows_of_a_statement_have_its_moment() {
    let store = open_store(Clock::System);
    let mut executor = Executor::new(store, Limits::default()).unwrap();
    let mut session = Session::new();
    let mut ask = |sql: &str| {
        let mut rows = Rows::default();
        executor.execute(&mut session, sql, &[], &Cancel::new(), &mut rows).unwrap();
        rows.rows.iter().flatten().map(show).collect::<Vec<_>>().join(",")
    };
    ask(
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMPTZ DEFAULT now(), day TIMESTAMP DEFAULT LOCALTIMESTAMP, \
         span INTERVAL DEFAULT now() - '2020-01-01'::timestamptz, given TIMESTAMPTZ)",
    );
    let moments = "SELECT count(DISTINCT at), count(DISTINCT day), count(DISTINCT span), count(DISTINCT given), \
                   sum((at = coalesce(given, at))::int) FROM t";
    ask("INSERT INTO t (id) SELECT g FROM generate_series(1, 500) g");
    assert_eq!(ask(moments), "1,1,1,0,500");
    ask("INSERT INTO t (id, given) SELECT g, now() FROM generate_series(501, 900) g");
    assert_eq!(ask(moments), "2,2,2,1,900", "what the statement computes and the defaults are one");
    let values: Vec<String> = (901..1_000).map(|id| format!("({id})")).collect();
    ask(&format!("INSERT INTO t (id) VALUES {}", values.join(", ")));
    assert_eq!(ask(moments), "3,3,3,1,999");
    ask("UPDATE t SET at = DEFAULT, day = DEFAULT, given = NULL");
    assert_eq!(ask(moments), "1,1,3,0,999");
    ask("INSERT INTO t (id) SELECT id FROM t ON CONFLICT (id) DO UPDATE SET at = DEFAULT, given = now()");
    assert_eq!(ask(moments), "1,1,3,1,999");
}

#[test]
fn the_next_statement_has_another_moment() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMPTZ DEFAULT now())");
    for id in 1..=3 {
        db.run(&format!("INSERT INTO t (id) VALUES ({id})"));
        db.clock.advance(std::time::Duration::from_secs(1));
    }
    assert_eq!(db.query("SELECT count(DISTINCT at), max(at) - min(at) FROM t"), "3,00:00:02");
}
