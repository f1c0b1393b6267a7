//! Rows that a client sends with `COPY FROM STDIN`.

use engine::{CopyLayout, CopyOptions, SqlError, SqlSession, SqlThreadContext, Value};
use postgres::Format;
use postgres::copy::{CopyError, Layout, Options, Reader, Row};

use super::dialogue::value;
use super::rows::refused;
use crate::limits::CONTEXT_BYTES_MAX;

/// A `COPY FROM STDIN` under way.
#[derive(Debug)]
pub(crate) struct CopyIn {
    reader: Reader,
    format: Format,
    types: Vec<u32>,
    /// It came by the extended protocol, where a failure skips to `Sync`.
    pub(crate) extended: bool,
    /// What of the text of a simple query comes behind it, and whether it was the only statement there.
    pub(crate) rest: String,
}

/// Why it failed.
#[derive(Debug)]
struct Failure(SqlError);

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        Self(SqlError::new(error.state, error.message))
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self(error)
    }
}

impl CopyIn {
    /// What the session waits for; none when it waits for no rows.
    pub(crate) fn begin(session: &SqlSession, extended: bool, rest: &str) -> Option<Self> {
        let (types, options) = session.copy_columns()?;
        let types: Vec<u32> = types.iter().map(|ty| ty.oid()).collect();
        let options = wire_options(options);
        let format = if options.layout == Layout::Binary { Format::Binary } else { Format::Text };
        Some(Self {
            reader: Reader::new(options, types.len()),
            format,
            types,
            extended,
            rest: rest.to_owned(),
        })
    }

    /// The format of the data, and how many columns it has.
    pub(crate) fn shape(&self) -> (Format, usize) {
        (self.format, self.types.len())
    }

    /// Takes a piece of the data.
    pub(crate) fn feed(
        &mut self,
        context: &mut SqlThreadContext,
        session: &mut SqlSession,
        piece: &[u8],
    ) -> Result<(), SqlError> {
        let (types, format) = (&self.types, self.format);
        let result = self.reader.feed(piece, &mut |row| take(context, session, types, format, row));
        result.map_err(|Failure(error)| self.failed(error, session))
    }

    /// The end of the data: how many rows there were.
    pub(crate) fn finish(
        &mut self,
        context: &mut SqlThreadContext,
        session: &mut SqlSession,
    ) -> Result<u64, SqlError> {
        let (types, format) = (&self.types, self.format);
        let result = self.reader.finish(&mut |row| take(context, session, types, format, row));
        let result = result.and_then(|()| Ok(session.copy_end(context)?));
        result.map_err(|Failure(error)| self.failed(error, session))
    }

    /// The error with the place in the data, and with what became of the rows before it.
    pub(crate) fn failed(&self, mut error: SqlError, session: &mut SqlSession) -> SqlError {
        error.context = error
            .context
            .or_else(|| session.copy_place(self.reader.line()).map(|place| Box::new(place.into())));
        let stored = session.copy_abort();
        if stored > 0 {
            let hint = format!(
                "the first {stored} rows are stored: outside a transaction COPY stores rows in batches, and BEGIN makes \
                 it all or nothing"
            );
            error.hint = Some(match error.hint {
                Some(before) => format!("{before}; {hint}"),
                None => hint,
            });
        }
        error
    }
}

fn take(
    context: &mut SqlThreadContext,
    session: &mut SqlSession,
    types: &[u32],
    format: Format,
    row: &Row<'_>,
) -> Result<(), Failure> {
    let values = types.iter().enumerate().map(|(at, type_oid)| match row.get(at) {
        None => Ok(Value::Null),
        Some(bytes) => postgres::decode(*type_oid, format, bytes)
            .map(value)
            .map_err(|error| SqlError { context: Some(shown(bytes).into()), ..refused(error) }),
    });
    Ok(session.copy_row(context, row.line(), values)?)
}

/// A value as its error shows it: its beginning.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(CONTEXT_BYTES_MAX)]);
    if bytes.len() > CONTEXT_BYTES_MAX { format!("{text}...") } else { text.into_owned() }
}

/// The options as the protocol's crate knows them.
pub(crate) fn wire_options(options: &CopyOptions) -> Options {
    let CopyOptions { layout, header, delimiter, null, quote, escape } = options;
    let layout = match layout {
        CopyLayout::Text => Layout::Text,
        CopyLayout::Csv => Layout::Csv,
        CopyLayout::Binary => Layout::Binary,
    };
    Options {
        layout,
        header: *header,
        delimiter: *delimiter,
        null: null.clone(),
        quote: *quote,
        escape: *escape,
    }
}
