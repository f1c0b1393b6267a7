//! The suites of PostgreSQL's drivers, at a PostgreSQL: what they expect is what PostgreSQL does.
//! `tests/drivers/README.md` says what a suite is.

mod place;
mod postgresql;
mod suite;
mod tokio_postgres;

use crate::drivers::postgresql::PostgreSql;
use crate::drivers::suite::SUITES;

/// Prints a line for each check; panics when one did not hold.
fn report(name: &str, lines: &[suite::Line]) {
    println!("{name}: {} checks", lines.len());
    for line in lines {
        println!("{}", line.text);
    }
    assert!(!lines.is_empty(), "{name} made no check");
    let failed: Vec<&str> = lines.iter().filter(|line| !line.held).map(|line| line.text.as_str()).collect();
    assert!(failed.is_empty(), "{} of {} checks of {name} failed", failed.len(), lines.len());
}

/// Every check that is not of sqlcached alone holds at a PostgreSQL.
#[test]
fn the_suites_expect_what_postgresql_does() {
    let server = PostgreSql::start();
    for suite in SUITES {
        report(suite.name, &suite.run(&server.place));
    }
    report("tokio-postgres", &tokio_postgres::run(&server.place));
}
