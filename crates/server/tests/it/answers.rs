//! Statements with the answers that PostgreSQL 15 gave, as its clients see them: `SET`, values as text, errors.
//!
//! In the files, `+` is a statement before the questions, `?` a question, `=` a row of the answer of a real server with
//! tabs between the columns, `= !` its SQLSTATE. They were made by `psql -At -F $'\t'` in the time zone UTC.

use server::Config;

use crate::harness::{config, daemon_with};
use crate::pg::Pg;

const FILES: &[(&str, &str)] = &[
    ("accounts.txt", include_str!("answers/accounts.txt")),
    ("arms.txt", include_str!("answers/arms.txt")),
    ("arrays.txt", include_str!("answers/arrays.txt")),
    ("blanks.txt", include_str!("answers/blanks.txt")),
    ("catalogue.txt", include_str!("answers/catalogue.txt")),
    ("comparisons.txt", include_str!("answers/comparisons.txt")),
    ("decimals.txt", include_str!("answers/decimals.txt")),
    ("defined.txt", include_str!("answers/defined.txt")),
    ("distinct.txt", include_str!("answers/distinct.txt")),
    ("forms.txt", include_str!("answers/forms.txt")),
    ("grouped.txt", include_str!("answers/grouped.txt")),
    ("groups.txt", include_str!("answers/groups.txt")),
    ("json.txt", include_str!("answers/json.txt")),
    ("kinds.txt", include_str!("answers/kinds.txt")),
    ("lateral.txt", include_str!("answers/lateral.txt")),
    ("mixed.txt", include_str!("answers/mixed.txt")),
    ("moments.txt", include_str!("answers/moments.txt")),
    ("names.txt", include_str!("answers/names.txt")),
    ("nulls.txt", include_str!("answers/nulls.txt")),
    ("numbers.txt", include_str!("answers/numbers.txt")),
    ("objects.txt", include_str!("answers/objects.txt")),
    ("optional.txt", include_str!("answers/optional.txt")),
    ("parameters.txt", include_str!("answers/parameters.txt")),
    ("patterns.txt", include_str!("answers/patterns.txt")),
    ("rows.txt", include_str!("answers/rows.txt")),
    ("shop.txt", include_str!("answers/shop.txt")),
    ("statements.txt", include_str!("answers/statements.txt")),
    ("stored.txt", include_str!("answers/stored.txt")),
    ("strict.txt", include_str!("answers/strict.txt")),
    ("texts.txt", include_str!("answers/texts.txt")),
    ("types.txt", include_str!("answers/types.txt")),
    ("views.txt", include_str!("answers/views.txt")),
    ("zones.txt", include_str!("answers/zones.txt")),
];

/// A statement's rows, or its SQLSTATE.
fn answer(pg: &mut Pg, question: &str) -> Vec<String> {
    let row = |line: &String| {
        let error = line.strip_prefix("E ERROR ").and_then(|rest| rest.split(' ').next());
        error.map(|state| format!("!{state}")).or_else(|| line.strip_prefix("D ").map(str::to_owned))
    };
    pg.ask(question).iter().filter_map(row).collect()
}

#[test]
fn answers_are_those_of_postgresql() {
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let daemon = daemon_with(&Config { sql_addresses: addresses, ..config() });
    let mut wrong = Vec::new();
    let mut asked = 0;
    for (file, text) in FILES {
        let mut pg = Pg::connect(&daemon);
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(statement) = line.strip_prefix("+ ") {
                let heard = answer(&mut pg, statement);
                assert!(heard.is_empty(), "{file}: {statement}: {heard:?}");
                continue;
            }
            let question = line.strip_prefix("? ").expect("a question");
            let mut expected = Vec::new();
            while let Some(row) = lines.peek().and_then(|line| line.strip_prefix('=')) {
                expected.push(row.strip_prefix(' ').unwrap_or(row).replace('\t', "|"));
                lines.next();
            }
            asked += 1;
            let found = answer(&mut pg, question);
            if found != expected {
                wrong.push(format!("{file}: {question}\n  here: {found:?}\n  PostgreSQL: {expected:?}"));
            }
        }
    }
    assert!(asked > 50, "{asked} questions");
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}
