//! One statement and its answer as JSON, for clients whose sessions are one statement long.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::Value as Json;
use sql::{Cancel, ColumnDescription, Notice, RowSink, SqlError, SqlType};
use store::value::{Value, ValueRef};

use super::{
    ClientSink, CopyOptions, Formats, Outcome, ResultColumn, SqlSession, SqlThreadContext, result_too_large,
};
use crate::json::{is_number, write_text, write_value};
use crate::parameters::{from_json, refused};

/// A statement with its values.
#[derive(Debug, PartialEq)]
pub struct JsonStatement {
    text: String,
    values: Vec<Value>,
    writes: bool,
    listed: bool,
}

impl JsonStatement {
    /// Reads `{"statement": "...", "parameters": [...], "write": true, "listed": false}`; all but the statement may be
    /// left out.
    pub fn read(body: &[u8]) -> Result<Self, SqlError> {
        let wrong = |what: &str| refused("08P01", format!("the request is no statement: {what}"));
        let object: serde_json::Map<String, Json> =
            serde_json::from_slice(body).map_err(|error| wrong(&error.to_string()))?;
        let mut statement = Self { text: String::new(), values: Vec::new(), writes: false, listed: true };
        let mut has_text = false;
        for (name, value) in object {
            match (name.as_str(), value) {
                ("statement", Json::String(text)) => (statement.text, has_text) = (text, true),
                ("parameters", Json::Array(values)) => statement.values = from_json(values)?,
                ("write", Json::Bool(writes)) => statement.writes = writes,
                ("listed", Json::Bool(listed)) => statement.listed = listed,
                (name, _) => return Err(wrong(&format!("\"{name}\" is unknown, or of another type"))),
            }
        }
        match (has_text, statement.writes && !statement.listed) {
            (true, false) => Ok(statement),
            (true, true) => Err(wrong("what writes is listed")),
            (false, _) => Err(wrong("\"statement\" is missing")),
        }
    }

    /// The settings of the session that runs it: it may write only where the client says so.
    pub fn settings(&self) -> [(String, String); 2] {
        let read_only = if self.writes { "off" } else { "on" };
        let application = if self.listed { "http" } else { "monitor" };
        [("application_name", application), ("default_transaction_read_only", read_only)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }
}

impl SqlSession {
    /// Runs a statement and writes its answer, of so many bytes at most: columns, rows, tag, count and notices.
    pub fn run_as_json(
        &mut self,
        context: &mut SqlThreadContext,
        statement: &JsonStatement,
        limit: usize,
    ) -> Result<Vec<u8>, SqlError> {
        let mut answer = JsonAnswer { out: Vec::new(), kinds: Vec::new(), limit, rows: 0, copies: false };
        self.listed = statement.listed;
        self.parse(context, "", &statement.text, std::iter::empty())?;
        let prepared = Arc::clone(self.prepared("")?);
        answer.begin(prepared.columns().unwrap_or_default());
        self.bind("", prepared, statement.values.clone(), Formats::Text)?;
        let outcome = self.execute(context, "", 0, false, &mut answer)?;
        self.sync(context)?;
        if answer.copies || outcome == Outcome::CopyIn {
            return Err(refused("0A000", "COPY needs a PostgreSQL client".to_owned()));
        }
        answer.end(outcome, &self.take_notices())
    }
}

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// As `true` and `false`.
    Truth,
    /// As numbers, whose digits are all there.
    Decimal,
    /// As they are.
    Other,
}

impl Kind {
    fn of(ty: SqlType) -> Self {
        match ty {
            SqlType::Bool => Self::Truth,
            SqlType::Numeric => Self::Decimal,
            _ => Self::Other,
        }
    }
}

/// The answer under way.
#[derive(Debug)]
struct JsonAnswer {
    out: Vec<u8>,
    kinds: Vec<Kind>,
    limit: usize,
    rows: usize,
    /// It is the data of a `COPY`.
    copies: bool,
}

impl JsonAnswer {
    fn begin(&mut self, columns: &[ResultColumn]) {
        self.out.extend_from_slice(b"{\"columns\":[");
        for (at, ResultColumn { column, .. }) in columns.iter().enumerate() {
            self.out.extend_from_slice(if at == 0 { b"{\"name\":" } else { b",{\"name\":" });
            write_text(&column.label, &mut self.out);
            self.out.extend_from_slice(b",\"type\":");
            write_text(&column.ty.sql_name(), &mut self.out);
            self.out.push(b'}');
            self.kinds.push(Kind::of(column.ty));
        }
        self.out.extend_from_slice(b"],\"rows\":[");
    }

    fn end(mut self, outcome: Outcome, notices: &[Notice]) -> Result<Vec<u8>, SqlError> {
        let (tag, count) = match outcome {
            Outcome::Complete { tag, count } => (tag, count),
            Outcome::Empty => ("", None),
            Outcome::Suspended | Outcome::CopyIn | Outcome::Waiting => {
                return Err(refused("55P03", "the statement would have to wait for a lock".to_owned()));
            }
        };
        self.out.extend_from_slice(b"\n],\"tag\":");
        write_text(tag, &mut self.out);
        let count = count.map_or_else(|| "null".to_owned(), |count| count.to_string());
        // Writing to a Vec never fails.
        let _written = write!(self.out, ",\"count\":{count},\"notices\":[");
        for (at, notice) in notices.iter().enumerate() {
            self.out.extend_from_slice(if at == 0 { b"" } else { b"," });
            let hint = notice.hint.as_deref();
            let parts = [("severity", Some(notice.severity)), ("sqlstate", Some(notice.state))];
            write_object(&parts, &notice.message, &[("hint", hint)], None, &mut self.out);
        }
        self.out.extend_from_slice(b"]}\n");
        Ok(self.out)
    }

    fn write(&mut self, kind: Kind, value: ValueRef<'_>) {
        match (kind, value) {
            (Kind::Truth, ValueRef::Integer(0)) => self.out.extend_from_slice(b"false"),
            (Kind::Truth, ValueRef::Integer(1)) => self.out.extend_from_slice(b"true"),
            (Kind::Decimal, ValueRef::Text(text)) if is_number(text) => {
                self.out.extend_from_slice(text.as_bytes());
            }
            (_, value) => write_value(value, &mut self.out),
        }
    }
}

impl RowSink for JsonAnswer {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        // What a column turned out to be counts, beside what it was described as.
        for (kind, column) in self.kinds.iter_mut().zip(columns) {
            *kind = Kind::of(column.ty);
        }
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.out.extend_from_slice(if self.rows == 0 { b"\n[" } else { b",\n[" });
        self.rows += 1;
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.write(self.kinds.get(at).copied().unwrap_or(Kind::Other), *value);
        }
        self.out.push(b']');
        if self.out.len() > self.limit { Err(result_too_large(self.limit)) } else { Ok(()) }
    }
}

impl ClientSink for JsonAnswer {
    fn begin_copy(&mut self, _options: &CopyOptions, _cancel: &Cancel) {
        self.copies = true;
    }
}

/// An error as JSON, with the fields that PostgreSQL's clients get.
pub fn error_as_json(error: &SqlError) -> Vec<u8> {
    let mut out = b"{\"error\":".to_vec();
    let more =
        [("detail", error.detail.as_ref().map(|detail| detail.as_str())), ("hint", error.hint.as_deref())];
    write_object(&[("sqlstate", Some(error.state))], &error.message, &more, error.position, &mut out);
    out.extend_from_slice(b"}\n");
    out
}

fn write_object(
    first: &[(&str, Option<&str>)],
    message: &str,
    more: &[(&str, Option<&str>)],
    position: Option<usize>,
    out: &mut Vec<u8>,
) {
    let mut open = b'{';
    let message = [("message", Some(message))];
    for (name, value) in first.iter().chain(&message).chain(more) {
        let Some(value) = value else { continue };
        out.push(std::mem::replace(&mut open, b','));
        write_text(name, out);
        out.push(b':');
        write_text(value, out);
    }
    if let Some(position) = position {
        // Writing to a Vec never fails.
        let _written = write!(out, ",\"position\":{position}");
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let read = |text: &str| JsonStatement::read(text.as_bytes());
        let full =
            read(r#"{"statement": "SELECT $1", "parameters": [1, null, "x"], "write": true}"#).unwrap();
        let values = vec![Value::Integer(1), Value::Null, Value::Text("x".into())];
        assert_eq!(full, JsonStatement { text: "SELECT $1".into(), values, writes: true, listed: true });
        assert_eq!(full.settings()[1].1, "off");
        assert_eq!(read(r#"{"statement": ""}"#).unwrap().settings()[1].1, "on");
        for (wrong, state) in [
            ("", "08P01"),
            ("[]", "08P01"),
            ("{}", "08P01"),
            (r#"{"statement": 1}"#, "08P01"),
            (r#"{"statement": "", "sql": ""}"#, "08P01"),
            (r#"{"statement": "", "write": "true"}"#, "08P01"),
            (r#"{"statement": "", "write": true, "listed": false}"#, "08P01"),
            (r#"{"statement": "", "parameters": [[1]]}"#, "22P02"),
        ] {
            assert_eq!(read(wrong).unwrap_err().state, state, "{wrong}");
        }
    }

    #[test]
    fn errors() {
        let error = SqlError { position: Some(8), ..SqlError::new("42703", "no \"x\"").with_hint("y") };
        let text = String::from_utf8(error_as_json(&error)).unwrap();
        assert_eq!(
            text,
            "{\"error\":{\"sqlstate\":\"42703\",\"message\":\"no \\\"x\\\"\",\"hint\":\"y\",\"position\":8}}\n"
        );
    }
}
