//! Each function of the user's page answers its example as the page says, and the page has them all.
//!
//! `WRITE=1 cargo test -p sql --test functions` writes the page anew.

mod common;

use common::Db;

const PAGE: &str = include_str!("../../../docs/functions.md");
const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/functions.md");
/// What stands before the tables, which are made from the code.
const HEAD_END: &str = "<!-- functions -->\n";

#[test]
fn every_example_answers_as_written() {
    let mut db = Db::new();
    let mut wrong = Vec::new();
    for (example, answer) in sql::function_examples() {
        let sql = format!("SELECT {example}");
        let found = match db.execute(&sql, &[]) {
            Ok((_, rows)) => common::shown(&rows.rows),
            Err(error) => error.to_string(),
        };
        if found != answer {
            wrong.push(format!("{example}: {found}, not {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_has_every_function() {
    let (head, tables) = PAGE.split_once(HEAD_END).expect("the page has its mark");
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(PLACE, format!("{head}{HEAD_END}{}", sql::function_page()))
            .expect("the page is writable");
        return;
    }
    assert_eq!(tables, sql::function_page(), "run with WRITE=1");
}
