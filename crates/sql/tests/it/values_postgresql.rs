//! Random expressions of decimal numbers, JSON and arrays, with the answers that PostgreSQL 15 gave.
//!
//! The file was made by a generator from one seed, and each answer by `psql` of a real server: `+` is a statement
//! before the questions, `?` a question, `=` a row of its answer with tabs between the columns, `= !` its SQLSTATE.
//! Left out are `min` and `max` of computed decimals, which lose zeros at their end, and `->> 0` of JSON that is no
//! array.

use crate::common::{Db, Rows};
use serde_json::Value as Json;
use sql::SqlType;
use store::value::Value;

const FILE: &str = include_str!("values/postgresql.txt");

#[test]
fn answers_are_those_of_postgresql() {
    let mut db = Db::new();
    let mut lines = FILE.lines().peekable();
    let (mut asked, mut wrong) = (0, Vec::new());
    while let Some(line) = lines.next() {
        if let Some(statement) = line.strip_prefix("+ ") {
            db.run(statement);
            continue;
        }
        let question = line.strip_prefix("? ").expect("a question");
        let mut expected = Vec::new();
        while let Some(row) = lines.peek().and_then(|line| line.strip_prefix('=')) {
            expected.push(row.strip_prefix(' ').unwrap_or(row));
            lines.next();
        }
        asked += 1;
        if let Err(found) = agrees(&mut db, question, &expected) {
            wrong.push(format!("{question}\n  here: {found}\n  PostgreSQL: {}", expected.join(" | ")));
        }
    }
    assert!(asked > 300, "{asked} questions");
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}

fn agrees(db: &mut Db, question: &str, expected: &[&str]) -> Result<(), String> {
    let rows = match db.execute(question, &[]) {
        Err(error) if expected == [format!("!{}", error.state)] => return Ok(()),
        Err(error) => return Err(error.to_string()),
        Ok((_, rows)) => rows,
    };
    let found: Vec<Vec<String>> = rows.rows.iter().map(|row| shown(&rows, row)).collect();
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| {
            let expected: Vec<&str> = expected.split('\t').collect();
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(ours, theirs)| equal(ours, theirs))
        });
    if same { Ok(()) } else { Err(found.iter().map(|row| row.join("\t")).collect::<Vec<_>>().join(" | ")) }
}

/// JSON is the same whatever blanks stand in it and whatever order its keys have.
fn equal(ours: &str, theirs: &str) -> bool {
    let json = |text: &str| {
        serde_json::from_str::<Json>(text).ok().filter(|json| json.is_object() || json.is_array())
    };
    ours == theirs || (json(ours).is_some() && json(ours) == json(theirs))
}

fn shown(rows: &Rows, row: &[Value]) -> Vec<String> {
    row.iter().zip(&rows.types).map(|(value, ty)| text(value, *ty)).collect()
}

/// As PostgreSQL writes it.
fn text(value: &Value, ty: SqlType) -> String {
    match value {
        Value::Integer(0) if ty == SqlType::Bool => "f".to_owned(),
        Value::Integer(1) if ty == SqlType::Bool => "t".to_owned(),
        Value::Integer(_) | Value::Real(_) if ty == SqlType::Numeric => {
            store::scalar::numeric::of_value(value).expect("a number").text()
        }
        Value::Text(json) if ty.is_array() => {
            let Ok(Json::Array(elements)) = serde_json::from_str(json) else { return json.clone() };
            let element = |element: &Json| match element {
                Json::Null => "NULL".to_owned(),
                Json::Bool(truth) => if *truth { "t" } else { "f" }.to_owned(),
                Json::String(text) if text.contains(' ') || text.is_empty() => format!("\"{text}\""),
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            format!("{{{}}}", elements.iter().map(element).collect::<Vec<_>>().join(","))
        }
        other => crate::common::show(other),
    }
}
