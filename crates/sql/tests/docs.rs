//! The user's page about SQL says what is true: its statements run, its tables are those of the code.

mod common;

use common::Db;
use store::definition::OPTIONS;

const PAGE: &str = include_str!("../../../docs/sql.md");

/// Runs the statements of a page in their order. Returns how many there are.
fn run(page: &str) -> usize {
    let mut db = Db::new();
    let mut count = 0;
    for block in page.split("```sql\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for sql in block.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()) {
            db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            count += 1;
        }
    }
    count
}

#[test]
fn every_statement_of_the_page_runs() {
    let count = run(PAGE);
    assert!(count > 30, "{count}");
}

#[test]
fn every_statement_about_expiry_runs() {
    let count = run(include_str!("../../../docs/expiry.md"));
    assert!(count >= 10, "{count}");
}

#[test]
fn every_option_is_on_the_page() {
    for option in OPTIONS {
        let line = format!("| `{}` | {} |", option.name, option.meaning);
        assert!(PAGE.contains(&line), "{line}");
    }
}

const INSIDE: &str = include_str!("../../../docs/introspection.md");

/// The statements of the page about the server run, and every table of the system and column of its own is on it.
#[test]
fn the_page_about_the_server_is_whole() {
    let mut db = Db::new();
    let mut count = 0;
    for block in INSIDE.split("```sql\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for sql in block.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()) {
            db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            count += 1;
        }
    }
    assert!(count >= 8, "{count}");
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema <> 'public'";
    for table in db.query(tables).split(';').filter(|table| !table.starts_with("sqlcached_")) {
        assert!(INSIDE.contains(&format!("`{table}`")), "{table}");
    }
    let columns = "SELECT table_name, column_name, udt_name FROM information_schema.columns \
                   WHERE table_name LIKE 'sqlcached\\_%' ESCAPE '\\'";
    for line in db.query(columns).split(';') {
        let mut words = line.split(',');
        let (table, column, ty) = (words.next(), words.next(), words.next());
        let (table, column) = (table.unwrap_or_default(), column.unwrap_or_default());
        let ty = ty.map(|ty| ty.strip_prefix('_').map_or_else(|| ty.to_owned(), |ty| format!("{ty}[]")));
        let part = INSIDE.split(&format!("### {table}\n")).nth(1).expect(table);
        let part = part.split("\n##").next().unwrap_or_default();
        assert!(part.contains(&format!("| `{column}` | {} |", ty.unwrap_or_default())), "{table}.{column}");
    }
}
