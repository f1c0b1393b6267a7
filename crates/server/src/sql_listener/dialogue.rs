//! From requests to calls of the session, and from its outcomes to replies.

use std::sync::Arc;

use engine::{
    Formats, Notice, Outcome, Piece, Prepared, SqlError, SqlThreadContext, TransactionStatus, Value,
    split_statements,
};
use postgres::Format;
use postgres::backend::{self, Report, Severity, Status};
use postgres::frontend::{Bind, Malformed, Parse, Request, Target};

use super::connection::Connection;
use super::copy::CopyIn;
use super::rows::{CHANGED, ClientRows, field, format_of, refused};
use crate::fatal::fatal;

/// A whole `Sync`.
const SYNC: &[u8] = b"S\0\0\0\x04";

/// A request whose statement waits: for a lock, for rows, or until other caches hear of it.
#[derive(Debug)]
pub(crate) enum Parked {
    /// It is still in the connection's input, and is handled again.
    Request,
    /// A statement took effect, of which a bus is told.
    Told {
        /// What it ended with.
        outcome: Outcome,
        /// The text of the simple query that it is of, and where in it the next statement begins.
        rest: Option<(String, usize)>,
    },
    /// A simple query.
    Query {
        text: String,
        /// Where in the text its statement begins.
        from: usize,
        alone: bool,
    },
}

/// Goes on with a request that waited. False: it must wait on.
#[cold]
pub(crate) fn resume(context: &mut SqlThreadContext, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
    if connection.session.is_waiting() {
        return false;
    }
    match connection.parked.take().map(|parked| *parked) {
        Some(Parked::Query { text, from, alone }) => {
            run_texts(context, connection, (&text, from), alone, out);
        }
        Some(Parked::Told { outcome, rest }) => answer_told(context, connection, outcome, rest, out),
        Some(Parked::Request) | None => {}
    }
    true
}

/// Answers a statement of which the bus was told.
#[cold]
fn answer_told(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    outcome: Outcome,
    rest: Option<(String, usize)>,
    out: &mut Vec<u8>,
) {
    let heard = connection.session.heard().unwrap_or(Ok(()));
    let failed = heard.is_err();
    match heard {
        Ok(()) => complete(outcome, out),
        Err(error) => {
            connection.session.fail(&error);
            fail(&error, out);
        }
    }
    match rest {
        Some(_) if failed => end_query(context, connection, out),
        Some((text, from)) => run_texts(context, connection, (&text, from), false, out),
        None => connection.skipping = failed,
    }
}

/// Executes one request and appends its replies. `rest` is what has arrived behind it.
#[inline]
pub(crate) fn handle(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    request: &Request<'_>,
    rest: &[u8],
    out: &mut Vec<u8>,
) {
    if connection.skipping {
        match request {
            Request::Sync => connection.skipping = false,
            Request::Terminate => {}
            _ => return,
        }
    }
    if connection.copy.is_some() {
        return copying(context, connection, request, out);
    }
    let result = match request {
        Request::Bind(bind) => self::bind(connection, bind, out),
        Request::Execute { portal, max_rows } => {
            execute(context, connection, portal, *max_rows, !rest.starts_with(SYNC), out)
        }
        Request::Sync => {
            sync(context, connection, out);
            Ok(())
        }
        Request::Query(text) => {
            query(context, connection, text, out);
            Ok(())
        }
        Request::Parse(parse) => self::parse(context, connection, parse, out),
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
        connection.session.fail(&error);
        fail(&error, out);
    }
}

/// What may come while rows come in.
fn copying(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) {
    let Some(mut copy) = connection.copy.take() else { return };
    let session = &mut connection.session;
    let result = match request {
        Request::CopyData(piece) => match copy.feed(context, session, piece) {
            Ok(()) => return connection.copy = Some(copy),
            Err(error) => Err(error),
        },
        Request::CopyDone => copy.finish(context, session),
        Request::CopyFail(why) => {
            let error = SqlError::new("57014", format!("COPY from stdin failed: {why}"));
            Err(copy.failed(error, session))
        }
        // The client sends them without waiting for what its request turns out to be.
        Request::Sync | Request::Flush => return connection.copy = Some(copy),
        Request::Terminate => return connection.closing = true,
        _ => {
            connection.closing = true;
            return fatal("08P01", "unexpected message during COPY from stdin", out);
        }
    };
    end_copy(context, connection, &copy, result, out);
}

fn end_copy(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    copy: &CopyIn,
    result: Result<u64, SqlError>,
    out: &mut Vec<u8>,
) {
    tell(connection, out);
    let failed = result.is_err();
    match result {
        Ok(rows) => backend::command_complete("COPY", Some(rows), out),
        Err(error) => {
            connection.session.fail(&error);
            fail(&error, out);
        }
    }
    if copy.extended {
        connection.skipping = failed;
    } else if failed {
        end_query(context, connection, out);
    } else {
        run_texts(context, connection, (&copy.rest, 0), false, out);
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
            fail(&SqlError::new("08P01", "the client sent a password that was not requested"), out);
            ready(connection, out);
        }
        // Everything is sent at the end of the turn. Pieces of a COPY that has failed or ended are ignored, as the
        // protocol wants it.
        _ => {}
    }
}

#[inline]
fn sync(context: &mut SqlThreadContext, connection: &mut Connection, out: &mut Vec<u8>) {
    let Some(ended) = end_group(context, connection) else {
        return connection.parked = Some(Box::new(Parked::Request));
    };
    if let Err(error) = ended {
        fail(&error, out);
    }
    ready(connection, out);
}

/// Ends a group of requests, or a text of statements. None: what it committed is told to other caches, and not heard
/// yet.
#[inline]
fn end_group(context: &mut SqlThreadContext, connection: &mut Connection) -> Option<Result<(), SqlError>> {
    let ended = connection.session.sync(context);
    match connection.session.heard() {
        None if ended.is_ok() => None,
        heard => Some(ended.and_then(|()| heard.unwrap_or(Ok(())))),
    }
}

#[inline]
fn ready(connection: &mut Connection, out: &mut Vec<u8>) {
    send_notifications(connection, out);
    let status = match connection.session.status() {
        TransactionStatus::Idle => Status::Idle,
        TransactionStatus::InBlock => Status::InBlock,
        TransactionStatus::Failed => Status::Failed,
    };
    backend::ready(status, out);
}

/// Sends of what was announced to the session what goes out at once; true: there may be more. To a client that does not
/// read nothing is sent: it waits where what waits has a limit. One that has not read what it wanted to hear is closed:
/// what it missed cannot be told later.
#[inline]
pub(crate) fn send_notifications(connection: &mut Connection, out: &mut Vec<u8>) -> bool {
    if !connection.socket.keeps_up() && !connection.session.has_lost_notifications() {
        return false;
    }
    let Ok(notifications) = connection.session.take_notifications() else {
        connection.closing = true;
        fatal("53400", "notifications were lost: they came faster than this client read them", out);
        return false;
    };
    let Some(notifications) = notifications else { return false };
    for heard in notifications {
        backend::notification(heard.process, &heard.channel, &heard.payload, out);
    }
    true
}

fn query(context: &mut SqlThreadContext, connection: &mut Connection, text: &str, out: &mut Vec<u8>) {
    let mut pieces = split_statements(text);
    let (first, second) = (pieces.next(), pieces.next());
    if first.is_none() {
        backend::empty_query(out);
    }
    run_texts(context, connection, (text, 0), second.is_none(), out);
}

/// Runs the statements of a text from a place on, one after the other, up to the first that fails or must wait.
fn run_texts(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    (text, from): (&str, usize),
    alone: bool,
    out: &mut Vec<u8>,
) {
    let limit = context.context().engine().options().result_size_max;
    let now = context.context().now();
    for Piece { start, sql } in split_statements(text.get(from..).unwrap_or("")) {
        let start = from + start;
        let Connection { session, socket, listener, .. } = connection;
        let rows = ClientRows::described(out, (socket, &listener.permits), limit, now);
        let mut rows = rows.looking(session.look());
        let result = session.run_text(context, sql, alone, &mut rows);
        if result.is_ok() {
            rows.finish();
        }
        tell(connection, out);
        match result {
            Ok(Outcome::CopyIn) => {
                let rest = text.get(start + sql.len()..).unwrap_or("");
                return begin_copy(connection, false, rest, out);
            }
            Ok(Outcome::Waiting) => {
                let parked = Parked::Query { text: text.to_owned(), from: start, alone };
                return connection.parked = Some(Box::new(parked));
            }
            Ok(outcome) => match connection.session.heard() {
                Some(Ok(())) => complete(outcome, out),
                Some(Err(error)) => {
                    fail(&error, out);
                    return end_query(context, connection, out);
                }
                None => {
                    let rest = Some((text.to_owned(), start + sql.len()));
                    return connection.parked = Some(Box::new(Parked::Told { outcome, rest }));
                }
            },
            Err(error) => {
                connection.session.fail(&error);
                fail(&moved(error, text, start), out);
                return end_query(context, connection, out);
            }
        }
    }
    end_query(context, connection, out);
}

/// The text of a simple query is done, or one of its statements failed.
fn end_query(context: &mut SqlThreadContext, connection: &mut Connection, out: &mut Vec<u8>) {
    let Some(ended) = end_group(context, connection) else {
        let ended = Parked::Query { text: String::new(), from: 0, alone: false };
        return connection.parked = Some(Box::new(ended));
    };
    if let Err(error) = ended {
        fail(&error, out);
    }
    tell(connection, out);
    ready(connection, out);
}

/// Lets the rows of a `COPY FROM STDIN` come.
fn begin_copy(connection: &mut Connection, extended: bool, rest: &str, out: &mut Vec<u8>) {
    if let Some(copy) = CopyIn::begin(&connection.session, extended, rest) {
        let (format, columns) = copy.shape();
        backend::copy_in(format, columns, out);
        connection.copy = Some(Box::new(copy));
    }
}

/// The error with its position in the whole text.
fn moved(mut error: SqlError, text: &str, offset: usize) -> SqlError {
    let before = text.get(..offset).map_or(0, |before| before.chars().count());
    error.position = error.position.map(|position| position + before);
    error
}

fn parse(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    parse: &Parse<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    connection.session.parse(context, parse.name, parse.sql, parse.types())?;
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
pub(crate) fn value(value: postgres::Value) -> Value {
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
    let fields = columns
        .iter()
        .enumerate()
        .map(|(at, column)| field(&column.column, column.column.ty, format_of(formats.is_binary(at))));
    backend::row_description(fields, out);
}

#[inline]
fn execute(
    context: &mut SqlThreadContext,
    connection: &mut Connection,
    name: &str,
    max_rows: u32,
    more: bool,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let portal = connection.session.portal(name)?;
    let (prepared, formats) = (Arc::clone(portal.prepared()), portal.formats().clone());
    let limit = context.context().engine().options().result_size_max;
    let now = context.context().now();
    let columns = prepared.columns().unwrap_or_default();
    let Connection { session, socket, listener, .. } = connection;
    let rows = ClientRows::of_portal(columns, &formats, out, (socket, &listener.permits), limit, now);
    let mut rows = rows.looking(session.look());
    let result = session.execute(context, name, max_rows, more, &mut rows);
    if result.is_ok() {
        rows.finish();
    }
    tell(connection, out);
    match result? {
        Outcome::CopyIn => begin_copy(connection, true, "", out),
        Outcome::Waiting => connection.parked = Some(Box::new(Parked::Request)),
        outcome => match connection.session.heard() {
            Some(heard) => {
                heard?;
                complete(outcome, out);
            }
            None => connection.parked = Some(Box::new(Parked::Told { outcome, rest: None })),
        },
    }
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
        // Their answers are others.
        Outcome::CopyIn | Outcome::Waiting => {}
    }
}

#[cold]
fn fail(error: &SqlError, out: &mut Vec<u8>) {
    let SqlError { state, message, position, detail, hint, context, .. } = error;
    let report = Report {
        severity: Severity::Error,
        state,
        message,
        detail: detail.as_deref().map(String::as_str),
        hint: hint.as_deref(),
        position: *position,
        context: context.as_deref().map(String::as_str),
        table: error.table.as_deref().map(|(schema, table)| (schema.as_str(), table.as_str())),
        column: error.null_column().map(|(column, _)| column),
        constraint: error.constraint(),
        // asyncpg and pgjdbc prepare again when they read this name, and only then.
        routine: (message == CHANGED).then_some("RevalidateCachedQuery"),
    };
    backend::report(&report, out);
}

/// Sends notices, and the settings that changed.
#[inline]
fn tell(connection: &mut Connection, out: &mut Vec<u8>) {
    for notice in connection.session.take_notices() {
        send_notice(&notice, out);
    }
    for (name, value) in connection.session.take_changed_settings() {
        backend::parameter_status(name, &value, out);
    }
}

fn send_notice(notice: &Notice, out: &mut Vec<u8>) {
    let severity = if notice.severity == "WARNING" { Severity::Warning } else { Severity::Notice };
    let Notice { state, message, hint, .. } = notice;
    backend::report(
        &Report {
            severity,
            state,
            message,
            detail: None,
            hint: hint.as_deref(),
            position: None,
            context: None,
            table: None,
            column: None,
            constraint: None,
            routine: None,
        },
        out,
    );
}
