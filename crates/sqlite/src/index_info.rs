//! The planner's question to a table: which of these conditions can you use, at what cost?

use std::ffi::{CStr, c_int};
use std::fmt;
use std::ptr;
use std::slice;

use libsqlite3_sys as ffi;
use store::definition::Collation;
use store::value::ValueRef;

use super::value::value_of;

/// How a condition compares its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `>`
    Greater,
    /// `<=`
    LessOrEqual,
    /// `<`
    Less,
    /// `>=`
    GreaterOrEqual,
    /// `LIKE` with the column on its left
    Like,
    /// `GLOB` with the column on its left
    Glob,
    /// `IS`
    Is,
    /// `IS NULL`
    IsNull,
    /// A function that the table serves, with the column as its first argument: its number among these.
    Function(u8),
    /// Anything that no table here can use.
    Other,
}

/// From here on operators are functions that a table serves.
pub(crate) const FUNCTIONS: c_int = ffi::SQLITE_INDEX_CONSTRAINT_FUNCTION;

/// One condition of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Its place in the question, by which it is taken.
    pub place: usize,
    /// The column as declared; negative for the row's number.
    pub column: i32,
    /// How the column is compared.
    pub operator: Operator,
}

/// The question, and the place for the answer.
pub struct Request<'a> {
    raw: &'a mut ffi::sqlite3_index_info,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.constraints()).finish()
    }
}

impl<'a> Request<'a> {
    /// # Safety
    /// `raw` is what SQLite passed to xBestIndex, for the length of that call.
    pub(crate) unsafe fn new(raw: *mut ffi::sqlite3_index_info) -> Self {
        // SAFETY: the caller's promise; nothing else refers to it during the call.
        Self { raw: unsafe { &mut *raw } }
    }

    fn raw_constraints(&self) -> &[ffi::sqlite3_index_constraint] {
        let length = usize::try_from(self.raw.nConstraint).unwrap_or(0);
        if length == 0 {
            return &[];
        }
        // SAFETY: SQLite's array has `nConstraint` elements.
        unsafe { slice::from_raw_parts(self.raw.aConstraint, length) }
    }

    /// The conditions that may be used in this plan.
    pub fn constraints(&self) -> impl Iterator<Item = Constraint> {
        let usable = self.raw_constraints().iter().enumerate().filter(|(_, raw)| raw.usable != 0);
        usable.map(|(place, raw)| Constraint { place, column: raw.iColumn, operator: operator(raw.op) })
    }

    /// Whether some column of these is compared with a value that is not known yet in this plan.
    pub fn waits_for(&self, columns: std::ops::Range<i32>) -> bool {
        self.raw_constraints().iter().any(|raw| raw.usable == 0 && columns.contains(&raw.iColumn))
    }

    /// How the condition compares texts; `None` for a way that is not known here.
    pub fn collation(&mut self, constraint: Constraint) -> Option<Collation> {
        let place = c_int::try_from(constraint.place).ok()?;
        // SAFETY: called within xBestIndex with a place of this question.
        let name = unsafe { ffi::sqlite3_vtab_collation(self.raw, place) };
        if name.is_null() {
            return None;
        }
        // SAFETY: SQLite answers with a C string.
        let name = unsafe { CStr::from_ptr(name) };
        Collation::of_sqlite(name.to_str().ok()?)
    }

    /// The value that the column is compared with, where the statement spells it out.
    pub fn literal(&mut self, constraint: Constraint) -> Option<ValueRef<'a>> {
        let place = c_int::try_from(constraint.place).ok()?;
        let mut value = ptr::null_mut();
        // SAFETY: called within xBestIndex with a place of this question.
        let code = unsafe { ffi::sqlite3_vtab_rhs_value(self.raw, place, &raw mut value) };
        if code != ffi::SQLITE_OK || value.is_null() {
            return None;
        }
        // SAFETY: SQLite keeps the value until xBestIndex returns, which `'a` does not outlive.
        Some(unsafe { value_of(value) })
    }

    /// Whether the condition is `column IN (...)`.
    pub fn is_in(&mut self, constraint: Constraint) -> bool {
        self.in_list(constraint, -1)
    }

    /// Asks for all values of `column IN (...)` in one go.
    pub fn take_in_at_once(&mut self, constraint: Constraint) -> bool {
        self.in_list(constraint, 1)
    }

    fn in_list(&mut self, constraint: Constraint, handle: c_int) -> bool {
        let Ok(place) = c_int::try_from(constraint.place) else { return false };
        // SAFETY: called within xBestIndex with a place of this question.
        unsafe { ffi::sqlite3_vtab_in(self.raw, place, handle) != 0 }
    }

    /// Takes a condition: its value becomes the `argument`-th (from 0) of xFilter. With `omit` SQLite does not
    /// check the condition again.
    pub fn take(&mut self, constraint: Constraint, argument: usize, omit: bool) {
        debug_assert!(constraint.place < self.raw_constraints().len(), "a place of this question");
        // SAFETY: the array of answers is as long as that of the conditions, and the place is one of these.
        let usage = unsafe { self.raw.aConstraintUsage.add(constraint.place) };
        let answer = ffi::sqlite3_index_constraint_usage {
            argvIndex: c_int::try_from(argument + 1).unwrap_or(0),
            omit: u8::from(omit),
        };
        // SAFETY: as above.
        unsafe { usage.write(answer) };
    }

    /// The order asked for: columns, each with whether it descends.
    pub fn order_by(&self) -> Vec<(i32, bool)> {
        let length = usize::try_from(self.raw.nOrderBy).unwrap_or(0);
        if length == 0 {
            return Vec::new();
        }
        // SAFETY: SQLite's array has `nOrderBy` elements.
        let terms = unsafe { slice::from_raw_parts(self.raw.aOrderBy, length) };
        terms.iter().map(|term| (term.iColumn, term.desc != 0)).collect()
    }

    /// The answer: a number for xFilter, words for `EXPLAIN QUERY PLAN`, and what it costs.
    pub fn answer(&mut self, number: i32, words: &str, cost: f64, rows: u64) {
        self.raw.idxNum = number;
        self.raw.estimatedCost = cost;
        self.raw.estimatedRows = i64::try_from(rows).unwrap_or(i64::MAX);
        self.set_words(words);
    }

    /// At most one row matches.
    pub fn set_unique(&mut self) {
        self.raw.idxFlags |= ffi::SQLITE_INDEX_SCAN_UNIQUE;
    }

    /// The rows come in the order asked for.
    pub fn set_ordered(&mut self) {
        self.raw.orderByConsumed = 1;
    }

    fn set_words(&mut self, words: &str) {
        let bytes = words.as_bytes();
        // SAFETY: SQLite's allocator; the block is freed by SQLite.
        let block = unsafe { ffi::sqlite3_malloc64(bytes.len() as u64 + 1) }.cast::<u8>();
        if block.is_null() {
            return;
        }
        // SAFETY: the block has room for the bytes and a zero; the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), block, bytes.len()) };
        // SAFETY: within the block.
        let end = unsafe { block.add(bytes.len()) };
        // SAFETY: the last byte of the block.
        unsafe { end.write(0) };
        self.raw.idxStr = block.cast();
        self.raw.needToFreeIdxStr = 1;
    }
}

fn operator(code: u8) -> Operator {
    match c_int::from(code) {
        ffi::SQLITE_INDEX_CONSTRAINT_EQ => Operator::Equal,
        ffi::SQLITE_INDEX_CONSTRAINT_GT => Operator::Greater,
        ffi::SQLITE_INDEX_CONSTRAINT_LE => Operator::LessOrEqual,
        ffi::SQLITE_INDEX_CONSTRAINT_LT => Operator::Less,
        ffi::SQLITE_INDEX_CONSTRAINT_GE => Operator::GreaterOrEqual,
        ffi::SQLITE_INDEX_CONSTRAINT_LIKE => Operator::Like,
        ffi::SQLITE_INDEX_CONSTRAINT_GLOB => Operator::Glob,
        ffi::SQLITE_INDEX_CONSTRAINT_IS => Operator::Is,
        ffi::SQLITE_INDEX_CONSTRAINT_ISNULL => Operator::IsNull,
        own if own >= FUNCTIONS => u8::try_from(own - FUNCTIONS).map_or(Operator::Other, Operator::Function),
        _ => Operator::Other,
    }
}
