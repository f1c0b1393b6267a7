//! The numbers by which PostgreSQL's clients know tables, indexes and constraints: functions of what they name, so
//! that they are the same in every thread, and after every restart that keeps the tables.

use store::definition::{MappingDef, RoutineDef, SequenceDef, ServerDef, ViewDef};
use store::{TABLES_MAX, Table};

/// PostgreSQL's own objects have smaller numbers.
pub const FIRST_USER_OID: u32 = 16_384;
/// The number of the first function that is built in; PostgreSQL's own have smaller ones.
pub(super) const FIRST_FUNCTION: u32 = 14_000;
/// Numbers made of names lie here: above all tables, below all defaults of columns.
const NAMED: u32 = 1 << 30;
/// Numbers of defaults lie here: table and column.
const DEFAULTS: u32 = 1 << 31;
/// More than the columns of a table.
const COLUMN_SPAN: u32 = 2_048;

/// The number of a table.
#[must_use]
pub fn oid_of_table(table: &Table) -> u32 {
    FIRST_USER_OID + u32::from(table.def().id)
}

/// What a name belongs to; an index and its constraint share the name and not the number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Index = 1,
    Constraint = 2,
    View = 3,
    Sequence = 4,
    /// A value of an enum type, which stands for the table.
    Label = 5,
    Schema = 6,
}

/// The number of something that belongs to a table and has a name of its own.
pub(super) fn oid_of_name(what: Named, table: u32, name: &str) -> u32 {
    // FNV-1a over number, table and name. Two of a thousand names meet with a probability of one in two thousand.
    let bytes = [what as u8].into_iter().chain(table.to_le_bytes()).chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    });
    // Short names differ in few of the upper bits before.
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    NAMED | (u32::try_from(mixed >> 34).unwrap_or(0))
}

/// The number of a sequence of its own, behind those of all tables.
pub(super) fn oid_of_sequence(sequence: &SequenceDef) -> u32 {
    FIRST_USER_OID + u32::from(TABLES_MAX) + u32::from(sequence.id)
}

/// The number of a function or procedure, behind those of all sequences.
pub(super) fn oid_of_routine(routine: &RoutineDef) -> u32 {
    FIRST_USER_OID + u32::from(TABLES_MAX) + (1 << 16) + u32::from(routine.id)
}

/// The number of a foreign server, behind those of all functions.
pub(super) fn oid_of_server(server: &ServerDef) -> u32 {
    FIRST_USER_OID + u32::from(TABLES_MAX) + (2 << 16) + u32::from(server.id)
}

/// The number of a user mapping, behind those of all servers. A server has fewer than 256.
pub(super) fn oid_of_mapping(server: &ServerDef, mapping: &MappingDef) -> u32 {
    let own = (u32::from(server.id) << 8) | (u32::from(mapping.id) & 0xff);
    FIRST_USER_OID + u32::from(TABLES_MAX) + (3 << 16) + own
}

/// The number of a view.
pub(super) fn oid_of_view(view: &ViewDef) -> u32 {
    oid_of_name(Named::View, 0, &view.name)
}

/// The number of a column's default.
pub(super) fn oid_of_default(table: u32, column: usize) -> u32 {
    let column = u32::try_from(column).unwrap_or(0);
    DEFAULTS.wrapping_add((table - FIRST_USER_OID).wrapping_mul(COLUMN_SPAN)).wrapping_add(column)
}
