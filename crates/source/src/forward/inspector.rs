//! Asks the source what statements depend on, on connections that are in the state of the sessions that send them.

use std::collections::HashMap;
use std::time::Instant;

use forward::Statement;
use inspect::{Catalogue, Failure, inspect};

use super::Asking;
use super::gateway::connect_as;
use crate::check::publication_of;
use crate::error::Error;
use crate::limits::{ANSWER_TIMEOUT, INSPECTIONS_WAIT};
use crate::pgoutput::{literal, quoted};
use crate::running::unshown;
use crate::time::now;
use crate::wire::Connection;

/// Inspects what comes, until it is to stop.
pub(super) fn run(asking: &Asking) {
    let mut connections = HashMap::new();
    while !asking.must_stop() {
        let Some(statement) = asking.hub.next_inspection(INSPECTIONS_WAIT) else { continue };
        let user = statement.state().login().to_owned();
        if let Err(error) = look(asking, &mut connections, &statement) {
            tracing::debug!(source = %asking.server.name, "a statement is not inspected: {error}");
            asking.hub.put_off(&statement);
            connections.remove(&user);
            asking.rest();
        }
    }
}

fn look(
    asking: &Asking,
    connections: &mut HashMap<String, Connection>,
    statement: &Statement,
) -> Result<(), Error> {
    let user = statement.state().login();
    if !connections.contains_key(user) {
        connections.insert(user.to_owned(), connect_as(&asking.server, user)?);
    }
    let Some(connection) = connections.get_mut(user) else { return Ok(()) };
    take_state(connection, statement)?;
    let publication = publication_of(&asking.server)?;
    let mut source = Asker { connection, until: now() + ANSWER_TIMEOUT };
    match inspect(&mut source, statement.sql(), statement.types(), publication) {
        Ok(verdict) => asking.hub.conclude(statement, verdict, || unshown(connection)),
        Err(failure) if connection.is_broken() => Err(Error::new(&failure.state, failure.message)),
        Err(failure) => {
            let reason = format!("the source cannot be asked what it depends on: {}", failure.message);
            asking.hub.refuse(statement, inspect::Refusal { reason, cure: None });
            Ok(())
        }
    }
}

/// Puts a connection into the state of the sessions that send a statement.
fn take_state(connection: &mut Connection, statement: &Statement) -> Result<(), Error> {
    let state = statement.state();
    let mut sql = String::from("RESET ALL; RESET ROLE");
    if state.user() != state.login() {
        sql = format!("{sql}; SET ROLE {}", quoted(state.user()));
    }
    for (name, value) in state.settings() {
        let (name, value) = (literal(name), literal(value));
        // Only where it differs: some settings, such as lc_messages, are a superuser's to set, even to what they are.
        sql = format!(
            "{sql}; SELECT pg_catalog.set_config({name}, {value}, false) \
             WHERE pg_catalog.current_setting({name}, true) IS DISTINCT FROM {value}"
        );
    }
    // What the connection answers is read as UTF-8.
    connection.query(&format!("{sql}; SET client_encoding = 'UTF8'")).map(drop)
}

/// A connection, for one inspection.
struct Asker<'c> {
    connection: &'c mut Connection,
    until: Instant,
}

impl Catalogue for Asker<'_> {
    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.connection.query(sql).map_err(failure)
    }

    fn parameter_types(&mut self, sql: &str, given: &[u32]) -> Result<Vec<u32>, Failure> {
        self.connection.parameter_types(sql, given, self.until).map_err(failure)
    }
}

fn failure(error: Error) -> Failure {
    Failure { state: error.state, message: error.message }
}
