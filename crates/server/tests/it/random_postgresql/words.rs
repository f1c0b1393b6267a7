//! Words that are names of columns without quotes: all that PostgreSQL takes so, and all of SQLite's own.

use super::{Answer, Both};

/// PostgreSQL's list of the words that it takes.
const WORDS: &str = "SELECT word FROM pg_get_keywords() WHERE catcode IN ('U', 'C') ORDER BY word";

/// Words of SQLite's grammar that PostgreSQL does not know.
const OF_SQLITE: &[&str] = &[
    "abort",
    "autoincrement",
    "conflict",
    "fail",
    "glob",
    "ignore",
    "indexed",
    "pragma",
    "query",
    "raise",
    "regexp",
    "rowid",
    "virtual",
];

/// Where a column's name stands; `{}` is the word.
const FORMS: &[&str] = &[
    "CREATE TABLE words ({} int PRIMARY KEY, x int)",
    "INSERT INTO words ({}, x) VALUES (1, 1)",
    "SELECT {} FROM words WHERE {} = 1 ORDER BY {}",
    "SELECT x, {} FROM words WHERE x = 1 AND {} > 0 GROUP BY {}, x HAVING {} > 0 ORDER BY x, {} DESC",
    "SELECT words.{}, k.{} FROM words JOIN words AS k ON words.{} = k.{}",
    "SELECT max({}), sum({} + 1), count(DISTINCT {}) FROM words",
    "INSERT INTO words VALUES (1, 5) ON CONFLICT ({}) DO UPDATE SET x = EXCLUDED.{} + words.{}",
    "UPDATE words SET {} = 2 WHERE {} = 1",
    "UPDATE words SET x = 7, {} = {} + 1 WHERE words.{} = 2 RETURNING {}",
    "SELECT {} AS a FROM (SELECT {} FROM words) AS q",
    "WITH q ({}) AS (SELECT 3) SELECT {} FROM q WHERE {} = 3",
    "SELECT CASE {} WHEN 3 THEN {} ELSE 0 END, {} BETWEEN 1 AND 5, -{}, 1 + {} FROM words",
    "CREATE INDEX ON words ({})",
    "ALTER TABLE words ADD UNIQUE ({})",
    "ALTER TABLE words RENAME {} TO other",
    "ALTER TABLE words RENAME other TO {}",
    "ALTER TABLE words ALTER {} SET DEFAULT 5",
    "SELECT 1 AS {}",
    "DELETE FROM words WHERE {} = 3",
    "SELECT count(*) FROM words",
    "DROP TABLE words",
];

#[test]
fn words_are_names_of_columns_where_postgresql_takes_them() {
    let (_servers, mut both) = Both::start();
    let Answer::Rows(_, listed) = both.theirs.ask(WORDS) else { panic!("PostgreSQL knows its words") };
    let listed = listed.into_iter().flatten().flatten();
    let words: Vec<String> = listed.chain(OF_SQLITE.iter().map(|word| (*word).to_owned())).collect();
    assert!(words.len() > 350, "{} words", words.len());
    let mut wrong = Vec::new();
    for word in &words {
        both.set("DROP TABLE IF EXISTS words");
        for form in FORMS {
            let sql = form.replace("{}", word);
            let (expected, found) = both.ask(&sql);
            if expected != found {
                wrong.push(format!("{sql}\n  PostgreSQL: {expected:?}\n  here:       {found:?}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.concat());
}
