//! Tables of a binary log: of which types their columns are, and where a value ends.

use super::cursor::{Cursor, cut, little};
use crate::error::Error;

/// The type of a column, as the log has it: a number, and what that needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) code: u8,
    pub(super) meta: u16,
}

/// A table whose changes come next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableMap {
    pub(super) id: u64,
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) types: Vec<Type>,
}

pub(super) const TINY: u8 = 1;
pub(super) const SHORT: u8 = 2;
pub(super) const LONG: u8 = 3;
pub(super) const FLOAT: u8 = 4;
pub(super) const DOUBLE: u8 = 5;
pub(super) const LONGLONG: u8 = 8;
pub(super) const INT24: u8 = 9;
pub(super) const DATE: u8 = 10;
/// Times of tables that are older than MariaDB 10.1, without fractions.
const OLD_TIMESTAMP: u8 = 7;
const OLD_TIME: u8 = 11;
const OLD_DATETIME: u8 = 12;
pub(super) const YEAR: u8 = 13;
pub(super) const NEWDATE: u8 = 14;
pub(super) const VARCHAR: u8 = 15;
const BIT: u8 = 16;
pub(super) const TIMESTAMP2: u8 = 17;
pub(super) const DATETIME2: u8 = 18;
pub(super) const TIME2: u8 = 19;
const BLOB_COMPRESSED: u8 = 140;
const VARCHAR_COMPRESSED: u8 = 141;
pub(super) const DECIMAL: u8 = 246;
pub(super) const ENUM: u8 = 247;
pub(super) const SET: u8 = 248;
pub(super) const BLOB: u8 = 252;
pub(super) const STRING: u8 = 254;
const GEOMETRY: u8 = 255;

impl TableMap {
    pub(super) fn read(mut rest: Cursor<'_>) -> Result<Self, Error> {
        let id = rest.number(6)?;
        rest.take(2)?;
        let mut name = || {
            let length = rest.size(1)?;
            let name = String::from_utf8_lossy(rest.take(length)?).into_owned();
            rest.byte()?;
            Ok::<_, Error>(name)
        };
        let (schema, name) = (name()?, name()?);
        let columns = rest.packed_size()?;
        let codes = rest.take(columns)?;
        let length = rest.packed_size()?;
        let mut meta = Cursor(rest.take(length)?);
        let types = codes.iter().map(|code| Type::read(*code, &mut meta)).collect::<Result<_, _>>()?;
        Ok(Self { id, schema, name, types })
    }
}

impl Type {
    fn read(code: u8, rest: &mut Cursor<'_>) -> Result<Self, Error> {
        Ok(match code {
            FLOAT | DOUBLE | BLOB | BLOB_COMPRESSED | GEOMETRY | TIMESTAMP2 | DATETIME2 | TIME2 => {
                Self { code, meta: u16::from(rest.byte()?) }
            }
            VARCHAR | VARCHAR_COMPRESSED | BIT => Self { code, meta: short(rest.take(2)?) },
            DECIMAL => Self { code, meta: u16::from(rest.byte()?) << 8 | u16::from(rest.byte()?) },
            STRING | ENUM | SET => Self::of_string(rest.byte()?, rest.byte()?),
            _ => Self { code, meta: 0 },
        })
    }

    /// One number stands for three types. Two bits of a string's length hide in it, turned around.
    fn of_string(code: u8, length: u8) -> Self {
        let upper = u16::from(code & 0x30 ^ 0x30) << 4;
        Self { code: code | 0x30, meta: upper | u16::from(length) }
    }

    /// The bytes of a value of this type, without those that tell their number.
    pub(super) fn split<'b>(self, rest: &mut Cursor<'b>) -> Result<&'b [u8], Error> {
        let meta = usize::from(self.meta);
        let length = match self.code {
            TINY | YEAR => 1,
            SHORT => 2,
            INT24 | DATE | NEWDATE | OLD_TIME => 3,
            LONG | FLOAT | OLD_TIMESTAMP => 4,
            DOUBLE | LONGLONG | OLD_DATETIME => 8,
            TIMESTAMP2 if meta <= FRACTION_MAX => 4 + meta.div_ceil(2),
            DATETIME2 if meta <= FRACTION_MAX => 5 + meta.div_ceil(2),
            TIME2 if meta <= FRACTION_MAX => 3 + meta.div_ceil(2),
            BIT => (meta >> 8) + usize::from(meta & 0xff > 0),
            DECIMAL => decimal_bytes(meta >> 8, meta & 0xff)?,
            ENUM | SET => meta,
            VARCHAR | VARCHAR_COMPRESSED | STRING => rest.size(if meta > 255 { 2 } else { 1 })?,
            BLOB | BLOB_COMPRESSED | GEOMETRY if (1..=4).contains(&meta) => rest.size(meta)?,
            _ => return Err(self.unknown()),
        };
        rest.take(length)
    }

    fn unknown(self) -> Error {
        Error::new("0A000", format!("the binary log has a column of type {}, which is not known", self.code))
    }
}

/// Digits of a fraction of a second.
const FRACTION_MAX: usize = 6;
/// Digits in the bytes of a decimal number: nine in four, and fewer in as many as they need.
const DIGITS: usize = 9;
pub(super) const BYTES_OF_DIGITS: [usize; DIGITS + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

fn decimal_bytes(precision: usize, scale: usize) -> Result<usize, Error> {
    let whole = precision.checked_sub(scale).ok_or_else(cut)?;
    let bytes = |digits: usize| digits / DIGITS * 4 + BYTES_OF_DIGITS[digits % DIGITS];
    Ok(bytes(whole) + bytes(scale))
}

fn short(bytes: &[u8]) -> u16 {
    u16::try_from(little(bytes)).unwrap_or(u16::MAX)
}
