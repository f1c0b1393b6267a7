//! Statements and what is found of them: the tags of an answer, or the reason why there are none.

use std::collections::BTreeSet;

use inspect::{Bound, Dependences, Verdict, inspect};

use crate::server::{Connection, PostgreSql};
use crate::stream::PUBLICATION;

/// What the statements read. `told` is the publication of all that is `shop`'s but what is made after it.
const SCHEMA: &str = include_str!("schema.sql");

/// Statements with what is expected of them; the file says how.
const STATEMENTS: &str = include_str!("statements.txt");

#[test]
fn version_15_inspects_statements() {
    statements_are_judged(&PostgreSql::start());
}

#[test]
fn version_17_inspects_statements() {
    if let Some(server) = PostgreSql::start_17() {
        statements_are_judged(&server);
    }
}

fn statements_are_judged(server: &PostgreSql) {
    let mut owner = server.connect("me");
    for statement in SCHEMA.split("\n\n") {
        owner.rows(statement);
    }
    let mut session = server.connect("reader");
    session.rows("SET search_path = shop, public");
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in STATEMENTS.split("\n\n").filter(|case| !case.trim_start().starts_with('#')) {
        let (sql, expected) = case.trim().rsplit_once("\n=> ").unwrap_or_else(|| panic!("{case}"));
        let (sql, parameters) = sql.rsplit_once("\n-- ").unwrap_or((sql, ""));
        let found = judged(&mut session, sql, parameters);
        count += 1;
        let fits = match expected.strip_prefix("no: ") {
            Some(reason) => found.strip_prefix("no: ").is_some_and(|found| found.contains(reason)),
            None => found.trim_end() == expected,
        };
        if !fits {
            wrong.push(format!("{sql}\n   expected {expected}\n   found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 140, "{count}");
    assert_eq!(owner.value("SELECT count(*) FROM pg_proc WHERE proname LIKE 'sqlcached%'"), "0");
}

/// The tags with the names of tables, or the reason.
fn judged(session: &mut Connection, sql: &str, parameters: &str) -> String {
    let bound: Vec<Bound<'_>> = parameters
        .split('|')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| if parameter == "NULL" { Bound::Null } else { Bound::Text(parameter.as_bytes()) })
        .collect();
    match inspect(session, sql, &[], PUBLICATION) {
        Err(failure) => format!("no: {} {}", failure.state, failure.message),
        Ok(Verdict::Refused(refusal)) => {
            format!("no: {} / {}", refusal.reason, refusal.cure.unwrap_or_default())
        }
        Ok(Verdict::Kept(found)) => match found.tags(&bound) {
            Err(refusal) => format!("no: {}", refusal.reason),
            Ok(tags) => named(&found, &tags),
        },
    }
}

fn named(found: &Dependences, tags: &[String]) -> String {
    let name = |tag: &String| {
        let (oid, rest) = tag.split_at(tag.find('.').unwrap_or(tag.len()));
        let of = |relation: &&inspect::Relation| relation.oid.to_string() == oid;
        let relation = found.relations.iter().find(of).unwrap();
        format!("{}{rest}", relation.name.trim_start_matches("shop."))
    };
    // Beside each tag of a column stands the one of all.
    let all: BTreeSet<String> = tags.iter().map(name).collect();
    let shown = all.iter().filter(|tag| {
        let table = tag.strip_suffix(".*");
        table.is_none_or(|table| {
            !all.iter().any(|other| other.starts_with(&format!("{table}.")) && other != *tag)
        })
    });
    let mut shown: Vec<&str> = shown.map(String::as_str).collect();
    let settings: Vec<String> = found.settings.iter().map(|setting| format!("set:{setting}")).collect();
    shown.extend(settings.iter().map(String::as_str));
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(" ") }
}
