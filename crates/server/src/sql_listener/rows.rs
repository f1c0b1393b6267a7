//! What statements give, as messages: rows of a portal, rows with their description, data of a `COPY`.

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Formats, Look, ResultColumn, RowSink, SqlError,
    SqlType, Tick, ValueRef,
};
use postgres::backend::{Field, copy_data, copy_done, copy_out, data_row, row_description};
use postgres::copy::Writer;
use postgres::{Datum, Format, ValueError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::copy::wire_options;
use crate::limits::{ROOM_LOOK_INTERVAL, ROOM_LOOKS, SEND_AT_BYTES, SHORT_LOOKS};
use crate::run_permits::RunPermits;
use crate::socket::Socket;

/// What PostgreSQL adds to a length in `atttypmod`.
const MODIFIER_HEADER: i32 = 4;

/// Writes what a statement gives.
pub(crate) struct ClientRows<'a> {
    shape: Shape<'a>,
    pub(crate) out: &'a mut Vec<u8>,
    socket: &'a mut Socket,
    /// Where the thread gives its context away while it waits for the client.
    permits: &'a RunPermits,
    /// How values are shown.
    look: Look,
    /// How many letters the texts of a column have at least, where one is of `CHAR(n)`; else nothing.
    widths: Vec<Option<usize>>,
    /// How long `out` may become.
    limit: usize,
    now: Tick,
}

/// How rows are written.
enum Shape<'a> {
    /// As the client was told before.
    Portal {
        columns: &'a [ResultColumn],
        formats: &'a Formats,
        /// They are other than was said.
        changed: bool,
    },
    /// As text, behind a description of the columns.
    Described(Vec<u32>),
    /// As data.
    Copy {
        writer: Writer,
        types: Vec<u32>,
        cancel: Cancel,
        /// What comes before the first row, in the same message: clients that take rows apart expect it there.
        head: Vec<u8>,
    },
}

impl<'a> ClientRows<'a> {
    /// For a portal whose columns the client knows. `limit` is how many bytes its rows may take.
    #[inline]
    pub(crate) fn of_portal(
        columns: &'a [ResultColumn],
        formats: &'a Formats,
        out: &'a mut Vec<u8>,
        (socket, permits): (&'a mut Socket, &'a RunPermits),
        limit: usize,
        now: Tick,
    ) -> Self {
        let limit = out.len().saturating_add(limit);
        let shape = Shape::Portal { columns, formats, changed: false };
        Self { shape, out, socket, permits, look: Look::default(), widths: Vec::new(), limit, now }
    }

    /// For a statement that was sent as text.
    pub(crate) fn described(
        out: &'a mut Vec<u8>,
        (socket, permits): (&'a mut Socket, &'a RunPermits),
        limit: usize,
        now: Tick,
    ) -> Self {
        let limit = out.len().saturating_add(limit);
        let shape = Shape::Described(Vec::new());
        Self { shape, out, socket, permits, look: Look::default(), widths: Vec::new(), limit, now }
    }

    /// The same with values shown as the session wants them.
    #[inline]
    pub(crate) fn looking(mut self, look: Look) -> Self {
        self.look = look;
        self
    }

    /// Values as the session wants them, where that is not as they are kept. In binary all look alike, but for blanks.
    #[cold]
    fn dress(&self, values: &[ValueRef<'_>]) -> Vec<Option<String>> {
        let type_of = |at: usize| match &self.shape {
            Shape::Portal { formats, .. } if formats.is_binary(at) => None,
            Shape::Portal { columns, .. } => columns.get(at).map(|column| column.type_oid),
            Shape::Copy { writer, .. } if writer.format() == Format::Binary => None,
            Shape::Described(types) | Shape::Copy { types, .. } => types.get(at).copied(),
        };
        let shown = |(at, value): (usize, &ValueRef<'_>)| {
            let ValueRef::Text(text) = value else { return None };
            match self.widths.get(at).copied().flatten() {
                Some(width) => Some(format!("{text:<width$}")),
                None => self.look.shown(type_of(at)?, text),
            }
        };
        values.iter().enumerate().map(shown).collect()
    }

    /// Ends the data of a `COPY`.
    pub(crate) fn finish(&mut self) {
        if let Shape::Copy { writer, head, .. } = &mut self.shape {
            writer.end(head);
            if !head.is_empty() {
                copy_data(self.out, |out| out.append(head));
            }
            copy_done(self.out);
        }
    }
}

impl RowSink for ClientRows<'_> {
    #[inline]
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.widths.clear();
        if columns.iter().any(|column| width_of(column).is_some()) {
            self.widths.extend(columns.iter().map(width_of));
        }
        match &mut self.shape {
            Shape::Portal { columns: said, changed, .. } => {
                let same = |(said, is): (&ResultColumn, &ColumnDescription)| said.column.ty == is.ty;
                *changed = said.len() != columns.len() || !said.iter().zip(columns).all(same);
            }
            Shape::Described(types) => {
                types.clear();
                types.extend(columns.iter().map(|column| column.ty.oid()));
                row_description(
                    columns.iter().map(|column| field(column, column.ty, Format::Text)),
                    self.out,
                );
            }
            Shape::Copy { writer, types, head, .. } => {
                types.extend(columns.iter().map(|column| column.ty.oid()));
                copy_out(writer.format(), columns.len(), self.out);
                writer.begin(columns.iter().map(|column| column.name.as_str()), head);
                // A line of names is a message of its own.
                if writer.format() == Format::Text && !head.is_empty() {
                    copy_data(self.out, |out| out.append(head));
                }
            }
        }
    }

    #[inline]
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if self.look.is_plain() && self.widths.is_empty() {
            return self.plain_row(values);
        }
        let dressed = self.dress(values);
        let values: Vec<ValueRef<'_>> = values
            .iter()
            .zip(&dressed)
            .map(|(value, dressed)| dressed.as_deref().map_or(*value, ValueRef::Text))
            .collect();
        self.plain_row(&values)
    }
}

impl ClientRows<'_> {
    #[inline]
    fn plain_row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        match &mut self.shape {
            Shape::Portal { changed: true, .. } => return Err(changed()),
            Shape::Portal { columns, formats, .. } => {
                let values = columns.iter().enumerate().zip(values).map(|((at, column), value)| {
                    let datum = datum(*value);
                    (column.type_oid, format_of(formats.is_binary(at)), datum)
                });
                data_row(columns.len(), values, self.out).map_err(refused)?;
            }
            Shape::Described(types) => {
                let values = types.iter().zip(values);
                let values = values.map(|(type_oid, value)| (*type_oid, Format::Text, datum(*value)));
                data_row(types.len(), values, self.out).map_err(refused)?;
            }
            Shape::Copy { writer, types, cancel, head } => {
                let values = types.iter().zip(values);
                let values = values.map(|(type_oid, value)| (*type_oid, datum(*value)));
                let mut result = Ok(());
                copy_data(self.out, |out| {
                    out.append(head);
                    result = writer.row(values, out);
                });
                result.map_err(refused)?;
                if self.out.len() >= SEND_AT_BYTES {
                    self.socket.deliver(self.out, self.now);
                    if !self.socket.has_room() {
                        let socket = &mut *self.socket;
                        self.permits.without(|is_short| wait_for_room(socket, cancel, is_short))?;
                    }
                }
                return Ok(());
            }
        }
        if self.out.len() <= self.limit { Ok(()) } else { Err(engine::result_too_large(self.limit)) }
    }
}

impl ClientSink for ClientRows<'_> {
    fn begin_copy(&mut self, options: &CopyOptions, cancel: &Cancel) {
        let writer = Writer::new(wire_options(options));
        self.shape = Shape::Copy { writer, types: Vec::new(), cancel: cancel.clone(), head: Vec::new() };
    }
}

/// Waits until the peer has read so much that there is room again: only `COPY TO STDOUT` does, whose data has no limit.
/// A peer that reads nothing for long, and a cancelled statement, end it, and one for which others wait: `is_short`
/// says that so many threads wait for slow peers that none is left to take this one's place.
fn wait_for_room(socket: &mut Socket, cancel: &Cancel, is_short: &dyn Fn() -> bool) -> Result<(), SqlError> {
    let interval = Timespec { tv_sec: 0, tv_nsec: i64::from(ROOM_LOOK_INTERVAL.subsec_nanos()) };
    let mut idle_looks = 0;
    let mut short_looks = 0;
    while !socket.has_room() {
        let mut ready = [PollFd::new(&*socket, PollFlags::OUT)];
        let _ready = poll(&mut ready, Some(&interval));
        idle_looks = if socket.flush() > 0 { 0 } else { idle_looks + 1 };
        short_looks = if is_short() { short_looks + 1 } else { 0 };
        if cancel.is_canceled() {
            return Err(SqlError::new("57014", "canceling statement due to user request"));
        }
        if short_looks > SHORT_LOOKS {
            socket.broken = true;
            return Err(SqlError::new("53300", "too many clients read the data of COPY too slowly"));
        }
        if socket.broken || idle_looks > ROOM_LOOKS {
            socket.broken = true;
            return Err(SqlError::new("08006", "the client does not read the data of COPY"));
        }
    }
    Ok(())
}

/// How many letters a text of `CHAR(n)` has: blanks behind it mean nothing and are not kept; clients are shown them.
fn width_of(column: &ColumnDescription) -> Option<usize> {
    let letters = column.modifier.checked_sub(MODIFIER_HEADER)?;
    usize::try_from(letters).ok().filter(|letters| column.ty == SqlType::Bpchar && *letters > 0)
}

/// A column as it is described to the client.
pub(crate) fn field(column: &ColumnDescription, ty: SqlType, format: Format) -> Field<'_> {
    let (table, number) = column.table.unwrap_or_default();
    let modifier = if ty == column.ty { column.modifier } else { -1 };
    Field {
        name: &column.label,
        table,
        column: number,
        type_oid: ty.oid(),
        size: ty.size(),
        modifier,
        format,
    }
}

#[inline]
pub(crate) fn format_of(binary: bool) -> Format {
    if binary { Format::Binary } else { Format::Text }
}

#[inline]
fn datum(value: ValueRef<'_>) -> Datum<'_> {
    match value {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(number) => Datum::Integer(number),
        ValueRef::Real(number) => Datum::Real(number),
        ValueRef::Text(text) => Datum::Text(text),
        ValueRef::Blob(bytes) => Datum::Bytes(bytes),
    }
}

#[cold]
pub(crate) fn refused(error: ValueError) -> SqlError {
    SqlError::new(error.state, error.message)
}

/// What PostgreSQL says of a prepared statement whose columns are others now.
pub(super) const CHANGED: &str = "cached plan must not change result type";

#[cold]
fn changed() -> SqlError {
    SqlError::new("0A000", CHANGED).with_hint("a definition has changed; prepare the statement again")
}
