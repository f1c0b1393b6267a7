//! Each function of the user's page answers its example as the page says, and the page has them all.
//!
//! `UPDATE=1 cargo test -p sql --test it functions` writes the page again.

use crate::common::Db;

const PAGE: &str = include_str!("../../../../docs/functions.md");
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
            Ok((_, rows)) => crate::common::shown(&rows.rows),
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
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PLACE, format!("{head}{HEAD_END}{}", sql::function_page()))
            .expect("the page is writable");
        return;
    }
    assert_eq!(tables, sql::function_page(), "run with UPDATE=1");
}

/// Texts that are compared at every place, or with every character, take hours for each of these.
#[test]
fn searching_takes_time_in_proportion_to_the_texts() {
    let mut db = Db::new();
    let long = "repeat('a', 4000000)";
    let almost = "repeat('a', 2000000) || 'b'";
    let characters =
        "(SELECT group_concat(char(1000 + g.value), '') || 'a' FROM generate_series(1, 50000) AS g(value))";
    for (sql, answer) in [
        (format!("SELECT instr({long}, {almost})"), "0"),
        (format!("SELECT length(replace({long}, {almost}, 'x'))"), "4000000"),
        (format!("SELECT length(trim({long}, {characters}))"), "0"),
        (format!("SELECT length(ltrim({long}, {characters}))"), "0"),
        (format!("SELECT length(rtrim({long}, {characters}))"), "0"),
        (format!("SELECT length(btrim({long}, {characters}))"), "0"),
        (format!("SELECT length(translate({long}, {characters}, 'y'))"), "0"),
    ] {
        let (_, rows) = db.execute(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(crate::common::shown(&rows.rows), answer, "{sql}");
    }
}

#[test]
fn searching_knows_characters_and_bytes() {
    let mut db = Db::new();
    for (expression, answer) in [
        ("instr('\u{e4}\u{f6}\u{fc}', '\u{fc}')", "3"),
        ("instr('\u{e4}\u{f6}\u{fc}', '')", "1"),
        ("instr('', 'a')", "0"),
        ("instr(x'c3a4c3b6', x'b6')", "4"),
        ("instr('\u{e4}\u{f6}', x'b6')", "0"),
        ("instr(12345, 34)", "3"),
        ("replace('aaa', 'aa', 'b')", "ba"),
        ("replace('abc', '', 'x')", "abc"),
        ("replace(121, 1, 3)", "323"),
        ("trim('x\u{e4}yx', 'xy\u{e4}')", ""),
        ("ltrim('\u{e4}\u{e4}x\u{e4}', '\u{e4}')", "x\u{e4}"),
        ("rtrim('\u{e4}\u{e4}x\u{e4}', '\u{e4}')", "\u{e4}\u{e4}x"),
        ("hex(rtrim('\u{e4}', x'a4'))", "C3"),
        ("trim('  a  ', '')", "  a  "),
        ("translate('aabb', 'aba', 'xyz')", "xxyy"),
    ] {
        let (_, rows) = db.execute(&format!("SELECT {expression}"), &[]).expect(expression);
        assert_eq!(crate::common::shown(&rows.rows), answer, "{expression}");
    }
}

#[test]
fn a_call_without_arguments_is_an_error() {
    let mut db = Db::new();
    for sql in ["SELECT unnest()", "SELECT unnest( )", "SELECT generate_subscripts ( ) FROM memcached"] {
        let error = db.execute(sql, &[]).expect_err(sql);
        assert_ne!(error.state, "XX000", "{sql}: {error}");
    }
}
