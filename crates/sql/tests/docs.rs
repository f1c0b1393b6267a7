//! The user's page about SQL says what is true: its statements run, its tables are those of the code.

mod common;

use common::Db;
use store::definition::OPTIONS;

const PAGE: &str = include_str!("../../../docs/sql.md");

#[test]
fn every_statement_of_the_page_runs() {
    let mut db = Db::new();
    let mut count = 0;
    for block in PAGE.split("```sql\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for sql in block.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()) {
            db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn every_option_is_on_the_page() {
    for option in OPTIONS {
        let line = format!("| `{}` | {} |", option.name, option.meaning);
        assert!(PAGE.contains(&line), "{line}");
    }
}
