//! The users' pages about SQL are true: their statements run, their tables are those of the code.

use crate::common::Db;
use store::definition::OPTIONS;

const TABLES: &str = include_str!("../../../../docs/tables.md");

/// Runs the statements of a page in their order. Returns how many there are.
fn run(page: &str) -> usize {
    let mut db = Db::new();
    let mut count = 0;
    for block in page.split("```sql\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for sql in sql::split_statements(block).map(|piece| piece.sql) {
            db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            count += 1;
        }
    }
    count
}

#[test]
fn every_statement_of_the_pages_runs() {
    for (page, least) in [
        (include_str!("../../../../docs/sql.md"), 30),
        (TABLES, 40),
        (include_str!("../../../../docs/dialect.md"), 10),
        (include_str!("../../../../docs/expiry.md"), 10),
        (include_str!("../../../../docs/views.md"), 10),
    ] {
        let count = run(page);
        assert!(count >= least, "{count} statements on a page of {least}");
    }
}

#[test]
fn every_option_is_on_the_page() {
    for option in OPTIONS {
        let line = format!("| `{}` | {} |", option.name, option.meaning);
        assert!(TABLES.contains(&line), "{line}");
    }
}

const INSIDE: &str = include_str!("../../../../docs/introspection.md");

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
