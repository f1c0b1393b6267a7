//! Sessions at sources, for clients that are forwarded.

use std::sync::Arc;

use engine::SqlError;
use forward::{Gateway, Hub, Opened, Start};
use store::definition::ServerDef;

use super::definitions::{IDENTITY, number};
use crate::error::Error;
use crate::login;
use crate::wire::Connection;

/// Connects for forwarded clients.
pub(crate) struct Sessions;

impl Gateway for Sessions {
    fn open(&self, start: &Start, hub: Option<&Arc<Hub>>) -> Result<Opened, SqlError> {
        Ok(open(start, hub.is_some())?)
    }

    fn cancel(&self, server: &ServerDef, secret: &[u8]) {
        // Nobody answers it, whether it arrives or not.
        if let Err(error) = login::cancel_by(server, secret) {
            tracing::debug!(source = %server.name, "a statement is not cancelled: {error}");
        }
    }
}

fn open(start: &Start, identify: bool) -> Result<Opened, Error> {
    let Start { server, mapping, parameters } = start;
    let mut connection = login::begin(server, mapping, parameters)?;
    // Who may not know that only forwards.
    let identity = if identify { number(&mut connection, IDENTITY).unwrap_or(0) } else { 0 };
    let secret = connection.secret.take().unwrap_or_default().to_vec();
    let greeting = connection.take_aside();
    let ((socket, tls), rest) = connection.into_parts()?;
    debug_assert!(rest.is_empty(), "nothing was asked");
    Ok(Opened { socket, tls, greeting: [greeting, rest].concat(), secret, identity })
}

/// As whom a statement is inspected.
pub(super) fn connect_as(server: &ServerDef, user: &str) -> Result<Connection, Error> {
    let is_it = |mapping: &&store::definition::MappingDef| mapping.user().unwrap_or("postgres") == user;
    let mapping = server.mappings.iter().find(is_it).ok_or_else(|| Error::no_mapping(&server.name))?;
    login::begin(server, mapping, &[])
}
