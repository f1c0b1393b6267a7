//! MariaDB as a source: its binary log invalidates rows here.
//!
//! The protocol and the events are read here, and by no library: `mysql_common` knows no events of MariaDB's, needs a
//! compressor in C for its binary log, and makes a value of each column of each row, where two or three are needed.

mod asker;
mod check;
mod columns;
mod compressed;
mod cursor;
mod event;
mod login;
mod place;
mod query;
mod question;
mod row;
mod statement;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod wire;

use store::definition::{Dependence, ServerDef, TableDef};

use crate::error::Error;

pub(crate) use asker::Asker;
pub(crate) use query::Runner;
pub(crate) use stream::run;

/// Asks a source whether it can tell what changes, lets us read its log, and gives the rows of a table that reads
/// through.
pub(crate) fn ask(
    server: &ServerDef,
    depends: &[Dependence],
    fetched: Option<&TableDef>,
) -> Result<(), Error> {
    let mut beside = login::connect(server)?;
    check::check(&mut beside, server, depends)?;
    fetched.map_or(Ok(()), |table| asker::check(&mut beside, table))?;
    let place = stream::shown_place(&mut beside)?;
    let (mut changes, _) = stream::begin(server, &place)?;
    changes.end();
    beside.end();
    Ok(())
}
