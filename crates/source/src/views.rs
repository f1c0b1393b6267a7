//! The queries of materialized views, which their source runs: over connections of their own, a few for each source.

use std::time::{Duration, Instant};

use engine::{SourceColumn, SourceRows, SqlError, Value, ValueRef};
use parking_lot::{Condvar, Mutex};
use store::Catalog;
use store::definition::{MaterializedDef, ServerDef, Wrapper};

use crate::error::Error;
use crate::limits::{ANSWER_LOOK, ANSWER_TIMEOUT, VIEW_CONNECTIONS, VIEW_GRACE, VIEW_IDLE, VIEW_LOOK_ROWS};
use crate::login::{Purpose, cancel, connect};
use crate::mariadb;
use crate::query::{Cells, Described, Rows};
use crate::time::now;
use crate::values::value;
use crate::wire::Connection;

/// The connections of all sources for queries of views.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Wakes who waits for one.
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Idle>,
    /// The numbers of the servers for which one is in use, once for each.
    busy: Vec<u16>,
}

/// A connection that nobody uses.
struct Idle {
    server: ServerDef,
    link: Link,
    since: Instant,
}

/// A connection to one kind of database or the other. It only reads.
enum Link {
    Postgres(Connection),
    MariaDb(mariadb::Runner),
}

impl Link {
    fn to(server: &ServerDef) -> Result<Self, Error> {
        if server.wrapper == Wrapper::MariaDb {
            return mariadb::Runner::connect(server).map(Self::MariaDb);
        }
        let mut connection = connect(server, Purpose::Questions)?;
        connection.query("SET default_transaction_read_only = on")?;
        Ok(Self::Postgres(connection))
    }

    /// Has queries end after so long.
    fn set_timeout(&mut self, timeout: Duration) -> Result<(), Error> {
        match self {
            Self::Postgres(connection) => {
                connection.query(&format!("SET statement_timeout = {}", timeout.as_millis())).map(drop)
            }
            Self::MariaDb(runner) => runner.set_timeout(timeout),
        }
    }

    fn describe(&mut self, sql: &str, until: Instant) -> Result<Described, Error> {
        match self {
            Self::Postgres(connection) => connection.prepare("", sql, until),
            Self::MariaDb(runner) => runner.describe(sql, until),
        }
    }

    /// Runs the query that was described last.
    fn fetch_all(&mut self, sql: &str, until: Instant, rows: &mut dyn Rows) -> Result<(), Error> {
        match self {
            Self::Postgres(connection) => connection.fetch_all("", until, rows),
            Self::MariaDb(runner) => runner.fetch_all(sql, until, rows),
        }
    }

    fn is_broken(&self) -> bool {
        match self {
            Self::Postgres(connection) => connection.is_broken(),
            Self::MariaDb(runner) => runner.is_broken(),
        }
    }

    /// Whether the source has not ended it meanwhile.
    fn is_there(&mut self) -> bool {
        match self {
            Self::Postgres(connection) => {
                matches!(connection.next_within(Duration::from_millis(1)), Ok(None))
            }
            Self::MariaDb(runner) => runner.is_there(),
        }
    }

    /// Has the source end the query that runs on it.
    fn cancel(&self, server: &ServerDef) -> Result<(), Error> {
        match self {
            Self::Postgres(connection) => cancel(server, connection),
            Self::MariaDb(runner) => runner.cancel(server),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Postgres(connection) => connection.end(),
            Self::MariaDb(runner) => runner.end(),
        }
    }
}

/// The right to use one more connection to a server, until this ends.
struct Place<'p> {
    pool: &'p Pool,
    server: u16,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        if let Some(at) = state.busy.iter().position(|own| *own == self.server) {
            state.busy.swap_remove(at);
        }
        drop(state);
        self.pool.freed.notify_all();
    }
}

/// Which columns a query gives. It is not run.
pub(crate) fn describe(server: &ServerDef, sql: &str) -> Result<Vec<SourceColumn>, Error> {
    let mut link = Link::to(server)?;
    let described = link.describe(sql, now() + ANSWER_TIMEOUT);
    link.end();
    Ok(checked(server, described)?.columns)
}

/// What the source says of a query; an error says that it is the source's.
fn checked(server: &ServerDef, described: Result<Described, Error>) -> Result<Described, Error> {
    let described = described.map_err(|error| of_query(server, error))?;
    if described.parameters > 0 {
        let message = "materialized views may not be defined using bound parameters";
        return Err(Error::new("0A000", message));
    }
    Ok(described)
}

fn of_query(server: &ServerDef, error: Error) -> Error {
    let hint = match error.state.as_str() {
        "42501" => Some("GRANT SELECT ON the tables of the query TO the user, on the source"),
        "57014" => Some("raise refresh_timeout of the view, or make the query faster"),
        "25006" => Some("the query of a view only reads"),
        _ => None,
    };
    let message = format!("query at server \"{}\": {}", server.name, error.message);
    let error = Error { message, ..error };
    match hint {
        Some(hint) if error.hint.is_none() => error.with_hint(hint),
        _ => error,
    }
}

impl Pool {
    /// Has the source run a view's query, which may take so long, and takes its rows.
    pub(crate) fn run(
        &self,
        server: &ServerDef,
        view: &MaterializedDef,
        timeout: Duration,
        rows: &mut dyn SourceRows,
    ) -> Result<(), SqlError> {
        let _place = self.place(server, rows)?;
        let until = now() + timeout + VIEW_GRACE;
        let mut link = self.link(server)?;
        let mut taken = Taken { view, rows, count: 0, failed: None };
        let result = ask(&mut link, view, timeout, until, &mut taken);
        let failed = taken.failed;
        if !link.is_broken() {
            self.keep(server, link);
        } else if failed.is_some() {
            // It does not run for nobody. One that does not hear this ends at its own timeout.
            let _unheard = link.cancel(server);
        }
        match failed {
            Some(error) => Err(error),
            None => result.map_err(|error| of_query(server, error).into()),
        }
    }

    /// Waits until a connection may be used.
    fn place(&self, server: &ServerDef, rows: &mut dyn SourceRows) -> Result<Place<'_>, SqlError> {
        let mut state = self.state.lock();
        while state.busy.iter().filter(|own| **own == server.id).count() >= VIEW_CONNECTIONS {
            let _timed_out = self.freed.wait_for(&mut state, ANSWER_LOOK);
            rows.look()?;
        }
        state.busy.push(server.id);
        Ok(Place { pool: self, server: server.id })
    }

    /// One that was used before, if it is still there, or a new one.
    fn link(&self, server: &ServerDef) -> Result<Link, Error> {
        loop {
            let mut state = self.state.lock();
            let Some(at) = state.idle.iter().position(|own| own.server == *server) else { break };
            let mut link = state.idle.swap_remove(at).link;
            drop(state);
            if link.is_there() {
                return Ok(link);
            }
        }
        Link::to(server)
    }

    fn keep(&self, server: &ServerDef, link: Link) {
        let idle = Idle { server: server.clone(), link, since: now() };
        self.state.lock().idle.push(idle);
    }

    /// Ends connections that nobody has used for long, and those of servers that are others now.
    pub(crate) fn tend(&self, catalog: &Catalog) {
        let mut state = self.state.lock();
        if state.idle.is_empty() {
            return;
        }
        let ended = |own: &mut Idle| {
            let known = catalog.server(&own.server.name).is_some_and(|known| **known == own.server);
            !known || own.since.elapsed() >= VIEW_IDLE
        };
        let ended: Vec<Idle> = state.idle.extract_if(.., ended).collect();
        drop(state);
        for mut idle in ended {
            idle.link.end();
        }
    }
}

fn ask(
    link: &mut Link,
    view: &MaterializedDef,
    timeout: Duration,
    until: Instant,
    rows: &mut Taken<'_>,
) -> Result<(), Error> {
    link.set_timeout(timeout)?;
    let described = link.describe(&view.written, until)?;
    check_columns(&view.described, &described.columns)?;
    link.fetch_all(&view.written, until, rows)
}

/// A table of the source may have been altered since the view was made.
fn check_columns(before: &[SourceColumn], columns: &[SourceColumn]) -> Result<(), Error> {
    if before == columns {
        return Ok(());
    }
    let shown = |columns: &[SourceColumn]| {
        let one = |(name, oid): &SourceColumn| format!("{name} {}", postgres::oid::name(*oid));
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let message = format!("it gives ({}) now, and gave ({})", shown(columns), shown(before));
    Err(Error::new("42804", message).with_hint("drop the view and create it again"))
}

/// Gives the rows of a source to a view, with the values that they are here.
struct Taken<'r> {
    view: &'r MaterializedDef,
    rows: &'r mut dyn SourceRows,
    count: u64,
    /// The view did not take a row, or nobody wants them any more.
    failed: Option<SqlError>,
}

impl Taken<'_> {
    /// An error of ours ends the query. The client gets that error.
    fn fail(&mut self, result: Result<(), SqlError>) -> Result<(), Error> {
        result.map_err(|error| {
            self.failed = Some(error);
            Error::connection("the query was given up")
        })
    }
}

impl Rows for Taken<'_> {
    fn row(&mut self, cells: &Cells<'_>) -> Result<(), Error> {
        self.count += 1;
        if self.count.is_multiple_of(VIEW_LOOK_ROWS) {
            self.look()?;
        }
        let read = |((name, oid), cell): (&SourceColumn, Option<&[u8]>)| match cell {
            None => Ok(Value::Null),
            Some(text) => value(*oid, text).map_err(|error| SqlError {
                message: format!("column {name} of the query: {}", error.message),
                ..error
            }),
        };
        let values: Result<Vec<Value>, SqlError> =
            self.view.described.iter().zip(cells.iter().copied()).map(read).collect();
        let taken = values.and_then(|values| {
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            self.rows.row(&values)
        });
        self.fail(taken)
    }

    fn look(&mut self) -> Result<(), Error> {
        let goes_on = self.rows.look();
        self.fail(goes_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_compared() {
        let columns = |names: &[(&str, u32)]| -> Vec<SourceColumn> {
            names.iter().map(|(name, oid)| ((*name).to_owned(), *oid)).collect()
        };
        let before = columns(&[("id", 23), ("name", 25)]);
        assert!(check_columns(&before, &before).is_ok());
        for other in [&[("id", 23)][..], &[("id", 20), ("name", 25)], &[("id", 23), ("title", 25)]] {
            let error = check_columns(&before, &columns(other)).unwrap_err();
            assert!(error.message.ends_with("gave (id integer, name text)"), "{}", error.message);
        }
    }
}
