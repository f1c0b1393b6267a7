//! Memory of a row over its key and value, where page, user and expiry are columns and indexed.

use std::fmt::Write as _;

use crate::client::Client;
use crate::failure::Result;
use crate::load;
use crate::paired::Bench;
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::digits;

/// Rows of the experiment.
const ROWS: u64 = 1_000_000;
/// Bytes of each value.
const VALUE_BYTES: usize = 100;
/// Rows that one statement inserts.
const BATCH: u64 = 100;
/// Rows of a page, and of a user.
const OF_A_PAGE: u64 = 3;
const OF_A_USER: u64 = 100;
/// A day, over whose seconds the rows expire.
const DAY: u64 = 86_400;
/// Room for all rows.
const MEMORY_MIB: u64 = 1_024;
/// What a row may cost beyond its key and value.
const REACH: f64 = 95.0;

const DEFINITIONS: [&str; 4] = [
    "CREATE TABLE items (key TEXT PRIMARY KEY, page_id INTEGER NOT NULL, user_id INTEGER NOT NULL, \
     expires INTEGER NOT NULL, value TEXT NOT NULL)",
    "CREATE INDEX items_page ON items (page_id)",
    "CREATE INDEX items_user ON items (user_id)",
    "CREATE INDEX items_expires ON items (expires)",
];

/// Fills each of our servers and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for server in &bench.start_ours(&bench.setup(MEMORY_MIB), report) {
        rows.push(measure(server, report)?);
    }
    report.say("\n## Memory of a row with three indexed columns\n");
    report.say(&format!(
        "{ROWS} rows of {} B + {VALUE_BYTES} B with page, user and expiry, each indexed; blocks of the arena file and \
         private pages after the fill, less those of the empty server.",
        load::KEY_BYTES
    ));
    report.table(&["server", "grown B/row", "reach"], &rows);
    Ok(())
}

fn measure(server: &Server, report: &mut Report) -> Result<Vec<String>> {
    let mut client = Client::connect(server.nearest())?;
    for definition in DEFINITIONS {
        client.execute(definition, "[]")?;
    }
    let before = server.memory()?;
    for first in (0..ROWS).step_by(usize::try_from(BATCH).unwrap_or(1)) {
        client.execute(&insert(first), "[]")?;
    }
    let grown = server.memory()?.total().saturating_sub(before.total());
    let each = grown as f64 / ROWS as f64 - (load::KEY_BYTES + VALUE_BYTES) as f64;
    let label = &server.label;
    let line = "memory of an indexed row";
    report.figure(&Figure { line, server: label, repetition: 0, metric: "grown_bytes", value: each });
    let verdict = if each <= REACH { "holds" } else { "missed" };
    Ok(vec![label.clone(), digits(each), format!("<= {REACH:.0} {verdict}")])
}

/// A statement that inserts the rows from a number on.
fn insert(first: u64) -> String {
    let mut text = String::from("INSERT INTO items VALUES ");
    for number in first..first + BATCH {
        let key = String::from_utf8_lossy(&load::key(9, number)).into_owned();
        let (page, user) = (number / OF_A_PAGE, number % (ROWS / OF_A_USER));
        let comma = if number == first { "" } else { ", " };
        // A write to a string cannot fail.
        let _ = write!(
            text,
            "{comma}('{key}', {page}, {user}, {}, '{number:->VALUE_BYTES$}')",
            number.wrapping_mul(7_919) % DAY
        );
    }
    text
}
