//! From requests to calls of the session, and from its outcomes to replies.

use std::sync::Arc;

use engine::{
    Formats, Notice, Outcome, Piece, Prepared, SqlError, SqlSeat, TransactionStatus, Value, split_statements,
};
use postgres::Format;
use postgres::backend::{self, Report, Severity, Status};
use postgres::frontend::{Bind, Malformed, Parse, Request, Target};

use super::connection::Connection;
use super::rows::{PortalRows, TextRows, field, format_of, refused};

/// Executes one request and appends its replies.
#[inline]
pub(crate) fn handle(
    seat: &mut SqlSeat,
    connection: &mut Connection,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) {
    if connection.skipping {
        match request {
            Request::Sync => connection.skipping = false,
            Request::Terminate => {}
            _ => return,
        }
    }
    let result = match request {
        Request::Bind(bind) => self::bind(connection, bind, out),
        Request::Execute { portal, max_rows } => execute(seat, connection, portal, *max_rows, out),
        Request::Sync => {
            sync(connection, out);
            Ok(())
        }
        Request::Query(text) => {
            query(seat, connection, text, out);
            Ok(())
        }
        Request::Parse(parse) => self::parse(seat, connection, parse, out),
        Request::Describe(target) => describe(connection, *target, out),
        Request::Close(target) => {
            close(connection, *target, out);
            Ok(())
        }
        other => {
            rare(connection, other, out);
            Ok(())
        }
    };
    if let Err(error) = result {
        connection.skipping = true;
        fail(&error, out);
    }
}

/// What is asked for seldom or never.
fn rare(connection: &mut Connection, request: &Request<'_>, out: &mut Vec<u8>) {
    match request {
        Request::Terminate => connection.closing = true,
        Request::Malformed(Malformed { state, message, extended }) => {
            fail(&SqlError::new(state, *message), out);
            connection.skipping = *extended;
            if !extended {
                ready(connection, out);
            }
        }
        Request::FunctionCall => {
            fail(&SqlError::new("0A000", "function calls by number are not supported; use SELECT"), out);
            ready(connection, out);
        }
        Request::Password => {
            fail(&SqlError::new("08P01", "a password was sent, but none was asked for"), out);
            ready(connection, out);
        }
        // Everything is sent at the end of the turn. Pieces of a COPY that has failed or ended are ignored, as the
        // protocol wants it.
        _ => {}
    }
}

fn sync(connection: &mut Connection, out: &mut Vec<u8>) {
    connection.session.sync();
    ready(connection, out);
}

#[inline]
fn ready(connection: &Connection, out: &mut Vec<u8>) {
    let status = match connection.session.status() {
        TransactionStatus::Idle => Status::Idle,
        TransactionStatus::InBlock => Status::InBlock,
        TransactionStatus::Failed => Status::Failed,
    };
    backend::ready(status, out);
}

/// Runs the statements of a text one after the other, up to the first that fails.
fn query(seat: &mut SqlSeat, connection: &mut Connection, text: &str, out: &mut Vec<u8>) {
    let mut any = false;
    for Piece { start, sql } in split_statements(text) {
        any = true;
        let limit = seat.lane().engine().options().result_size_max;
        let result = connection.session.run_text(seat, sql, &mut TextRows::new(out, limit));
        tell_notices(connection, out);
        match result {
            Ok(outcome) => complete(outcome, out),
            Err(error) => {
                fail(&moved(error, text, start), out);
                break;
            }
        }
    }
    if !any {
        backend::empty_query(out);
    }
    connection.session.sync();
    ready(connection, out);
}

/// The error with its position in the whole text.
fn moved(mut error: SqlError, text: &str, offset: usize) -> SqlError {
    let before = text.get(..offset).map_or(0, |before| before.chars().count());
    error.position = error.position.map(|position| position + before);
    error
}

fn parse(
    seat: &mut SqlSeat,
    connection: &mut Connection,
    parse: &Parse<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    connection.session.parse(seat, parse.name, parse.sql, parse.types())?;
    backend::parse_complete(out);
    Ok(())
}

#[inline]
fn bind(connection: &mut Connection, bind: &Bind<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let prepared = Arc::clone(connection.session.prepared(bind.statement)?);
    let mut values = connection.session.recycled_values();
    decode(&prepared, bind, &mut values)?;
    let formats = formats(&prepared, bind)?;
    connection.session.bind(bind.portal, prepared, values, formats)?;
    backend::bind_complete(out);
    Ok(())
}

#[inline]
fn decode(prepared: &Prepared, bind: &Bind<'_>, values: &mut Vec<Value>) -> Result<(), SqlError> {
    let types = prepared.parameter_oids();
    if bind.count() != types.len() {
        let (given, taken) = (bind.count(), types.len());
        let message = format!(
            "bind message supplies {given} parameters, but prepared statement \"{}\" requires {taken}",
            bind.statement
        );
        return Err(SqlError::new("08P01", message));
    }
    for ((format, bytes), type_oid) in bind.parameters().zip(types) {
        values.push(match bytes {
            None => Value::Null,
            Some(bytes) => value(postgres::decode(*type_oid, format, bytes).map_err(refused)?),
        });
    }
    Ok(())
}

#[inline]
fn value(value: postgres::Value) -> Value {
    match value {
        postgres::Value::Null => Value::Null,
        postgres::Value::Integer(number) => Value::Integer(number),
        postgres::Value::Real(number) => Value::Real(number),
        postgres::Value::Text(text) => Value::Text(text),
        postgres::Value::Bytes(bytes) => Value::Blob(bytes),
    }
}

#[inline]
fn formats(prepared: &Prepared, bind: &Bind<'_>) -> Result<Formats, SqlError> {
    let wanted = bind.result_formats();
    let columns = prepared.columns().map_or(0, <[_]>::len);
    match wanted.count() {
        1 if wanted.of(0) == Format::Binary => Ok(Formats::Binary),
        0 | 1 => Ok(Formats::Text),
        count if count == columns => {
            Ok(Formats::Each((0..columns).map(|at| wanted.of(at) == Format::Binary).collect()))
        }
        count => {
            let message = format!("bind message has {count} result formats but query has {columns} columns");
            Err(SqlError::new("08P01", message))
        }
    }
}

fn describe(connection: &Connection, target: Target<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let session = &connection.session;
    match target {
        Target::Statement(name) => {
            let prepared = session.prepared(name)?;
            backend::parameter_description(prepared.parameter_oids(), out);
            describe_columns(prepared, &Formats::Text, out);
        }
        Target::Portal(name) => {
            let portal = session.portal(name)?;
            describe_columns(portal.prepared(), portal.formats(), out);
        }
    }
    Ok(())
}

fn describe_columns(prepared: &Prepared, formats: &Formats, out: &mut Vec<u8>) {
    let Some(columns) = prepared.columns() else { return backend::no_data(out) };
    let fields = columns.iter().enumerate().map(|(at, column)| {
        field(column.column.as_column(), column.column.ty, format_of(formats.is_binary(at)))
    });
    backend::row_description(fields, out);
}

#[inline]
fn execute(
    seat: &mut SqlSeat,
    connection: &mut Connection,
    name: &str,
    max_rows: u32,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let portal = connection.session.portal(name)?;
    let (prepared, formats) = (Arc::clone(portal.prepared()), portal.formats().clone());
    let limit = out.len().saturating_add(seat.lane().engine().options().result_size_max);
    let columns = prepared.columns().unwrap_or_default();
    let mut rows = PortalRows { columns, formats: &formats, out, limit, changed: false };
    let result = connection.session.execute(seat, name, max_rows, &mut rows);
    tell_notices(connection, out);
    complete(result?, out);
    Ok(())
}

fn close(connection: &mut Connection, target: Target<'_>, out: &mut Vec<u8>) {
    match target {
        Target::Statement(name) => connection.session.close_statement(name),
        Target::Portal(name) => connection.session.close_portal(name),
    }
    backend::close_complete(out);
}

#[inline]
fn complete(outcome: Outcome, out: &mut Vec<u8>) {
    match outcome {
        Outcome::Complete { tag, count } => backend::command_complete(tag, count, out),
        Outcome::Suspended => backend::portal_suspended(out),
        Outcome::Empty => backend::empty_query(out),
    }
}

#[cold]
fn fail(error: &SqlError, out: &mut Vec<u8>) {
    let SqlError { state, message, position, hint } = error;
    let report = Report {
        severity: Severity::Error,
        state,
        message,
        hint: hint.as_deref(),
        position: *position,
        context: None,
    };
    backend::report(&report, out);
}

#[inline]
fn tell_notices(connection: &mut Connection, out: &mut Vec<u8>) {
    for notice in connection.session.take_notices() {
        tell_notice(&notice, out);
    }
}

fn tell_notice(notice: &Notice, out: &mut Vec<u8>) {
    let severity = if notice.severity == "WARNING" { Severity::Warning } else { Severity::Notice };
    let Notice { state, message, hint, .. } = notice;
    backend::report(
        &Report { severity, state, message, hint: hint.as_deref(), position: None, context: None },
        out,
    );
}
