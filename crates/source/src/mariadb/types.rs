//! Types of columns that a query of MariaDB gives, as PostgreSQL's that hold all their values.

use postgres::oid;

use super::wire::Column;
use crate::error::Error;

/// The collation of bytes.
const BYTES: u64 = 63;

/// Types of ours that MariaDB has as letters: each value is looked at when it is read.
const LETTERS: &[u32] = &[oid::JSON, oid::JSONB, oid::UUID];

/// The OID of a type that reads the column's text. `ours`: that of our column, for MariaDB's truths are small numbers.
pub(super) fn type_of(column: &Column, ours: Option<u32>) -> Result<u32, Error> {
    let wider = |signed, unsigned| if column.is_unsigned { unsigned } else { signed };
    Ok(match column.kind {
        // BOOLEAN is the TINYINT of a single digit.
        1 if column.length == 1 && ours == Some(oid::BOOL) => oid::BOOL,
        // TINYINT, YEAR.
        1 | 13 => oid::INT2,
        2 => wider(oid::INT2, oid::INT4),
        // MEDIUMINT, INT, BIGINT.
        9 => oid::INT4,
        3 => wider(oid::INT4, oid::INT8),
        8 => wider(oid::INT8, oid::NUMERIC),
        4 => oid::FLOAT4,
        5 => oid::FLOAT8,
        // Both kinds of DECIMAL.
        0 | 246 => oid::NUMERIC,
        // DATE, DATETIME, TIMESTAMP, TIME.
        10 | 14 => oid::DATE,
        12 | 18 => oid::TIMESTAMP,
        7 | 17 => oid::TIMESTAMPTZ,
        11 | 19 => oid::TIME,
        // ENUM and SET; JSON; NULL.
        247 | 248 | 245 | 6 => oid::TEXT,
        // VARCHAR, BLOB and TEXT of each size, CHAR.
        15 | 249..=254 => match ours {
            Some(oid::BYTEA) if column.collation == BYTES => oid::BYTEA,
            Some(ours) if LETTERS.contains(&ours) => ours,
            _ => oid::TEXT,
        },
        kind => {
            let message =
                format!("the query gives column {} in a type that is not read ({kind})", column.name);
            return Err(Error::new("0A000", message).with_hint("convert it in the query: CAST(... AS CHAR)"));
        }
    })
}
