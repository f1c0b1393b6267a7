//! What consoles ask before they show a table: DBeaver, DataGrip, pgAdmin, Metabase, Grafana.
//!
//! Each file has statements of the shape that one console sends, written by us. Each is asked of a PostgreSQL 15 and
//! of a daemon with the same tables. The columns must have the same names and types, and there must be rows where
//! PostgreSQL has some. A line `-- name` begins a statement; `-- = name`: the rows must be equal, too; `-- ~ name`: it
//! must be answered, and what comes is the server's own.

use crate::random_postgresql::{Answer, Both};

const CONSOLES: &[(&str, &str)] = &[
    ("DBeaver", include_str!("consoles/dbeaver.sql")),
    ("DataGrip", include_str!("consoles/datagrip.sql")),
    ("Grafana", include_str!("consoles/grafana.sql")),
    ("Metabase", include_str!("consoles/metabase.sql")),
    ("pgAdmin", include_str!("consoles/pgadmin.sql")),
];

const TABLES: &[&str] = &[
    "SET client_min_messages = warning",
    "CREATE TABLE shop (id int PRIMARY KEY, title varchar(80) NOT NULL, price numeric(10,2) DEFAULT 0, weight float8, \
     made timestamptz, tags text[], data jsonb, kind text DEFAULT 'x', CONSTRAINT dear CHECK (price < 1000))",
    "CREATE TABLE sale (id serial PRIMARY KEY, shop_id int REFERENCES shop (id), at timestamp, UNIQUE (shop_id, at))",
    "CREATE INDEX shop_title ON shop (title)",
    "CREATE VIEW sold AS SELECT id, title FROM shop WHERE price > 1",
    "CREATE TYPE mood AS ENUM ('well', 'ill')",
    "COMMENT ON TABLE shop IS 'what is sold'",
    "COMMENT ON COLUMN shop.title IS 'as it is shown'",
    "INSERT INTO shop VALUES (1, 'tea', 2.50, 1.5, '2026-02-03 04:05:06+00', '{a,b}', '{\"a\": 1}', 'y'), \
     (2, 'oil', 12.00, 0.5, '2026-03-04 05:06:07.25+00', '{}', NULL, NULL)",
];

/// How much of an answer must be PostgreSQL's.
#[derive(Clone, Copy, PartialEq)]
enum Alike {
    Answered,
    Columns,
    Rows,
}

/// The statements of a file with their names.
fn statements(file: &str) -> impl Iterator<Item = (Alike, &str, &str)> {
    file.split("-- ").filter(|part| !part.is_empty()).map(|part| {
        let (name, sql) = part.split_once('\n').expect("a statement behind its name");
        match name.split_once(' ') {
            Some(("=", name)) => (Alike::Rows, name, sql),
            Some(("~", name)) => (Alike::Answered, name, sql),
            _ => (Alike::Columns, name, sql),
        }
    })
}

/// What is wrong with the answer of the daemon.
fn fault(alike: Alike, theirs: &Answer, ours: &Answer) -> Option<String> {
    let (Answer::Rows(their_columns, their_rows), Answer::Rows(our_columns, our_rows)) = (theirs, ours)
    else {
        return Some(format!("PostgreSQL: {theirs:?}, here: {ours:?}"));
    };
    if alike == Alike::Answered {
        return None;
    }
    if their_columns != our_columns {
        return Some(format!("columns\n  PostgreSQL: {their_columns:?}\n  here:       {our_columns:?}"));
    }
    if alike == Alike::Rows && their_rows != our_rows {
        return Some(format!("rows\n  PostgreSQL: {their_rows:?}\n  here:       {our_rows:?}"));
    }
    (our_rows.is_empty() && !their_rows.is_empty()).then(|| "no rows".to_owned())
}

#[test]
fn consoles_are_answered_as_postgresql_answers_them() {
    let (_servers, mut both) = Both::start();
    for statement in TABLES {
        both.set(statement);
    }
    let (mut asked, mut wrong) = (0, Vec::new());
    for (console, file) in CONSOLES {
        for (alike, name, sql) in statements(file) {
            asked += 1;
            let (theirs, ours) = both.ask(sql);
            if let Some(fault) = fault(alike, &theirs, &ours) {
                wrong.push(format!("{console}, {name}: {fault}"));
            }
        }
    }
    assert!(asked > 90, "{asked} statements");
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}
