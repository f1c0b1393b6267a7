//! The type names that a column may be declared with.

use super::{ColumnKind, DefinitionError};

/// Every known name with what it stores: SQLite's usual names, PostgreSQL's and MySQL's.
///
/// A name that is not here is refused rather than guessed by substring as SQLite does, where `POINT` is an
/// integer because it contains `INT`. Moments, UUIDs and JSON are text, the form in which SQLite's own date
/// and JSON functions take them.
const TYPES: &[(ColumnKind, &[&str])] = &[
    (
        ColumnKind::Integer,
        &[
            "INT",
            "INTEGER",
            "TINYINT",
            "SMALLINT",
            "MEDIUMINT",
            "BIGINT",
            "INT2",
            "INT4",
            "INT8",
            "BOOL",
            "BOOLEAN",
            "UNSIGNED BIG INT",
        ],
    ),
    (ColumnKind::Real, &["REAL", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "DOUBLE PRECISION"]),
    (
        ColumnKind::Text,
        &[
            "TEXT",
            "CHAR",
            "CHARACTER",
            "VARCHAR",
            "CHARACTER VARYING",
            "VARYING CHARACTER",
            "NCHAR",
            "NATIVE CHARACTER",
            "NVARCHAR",
            "BPCHAR",
            "CLOB",
            "STRING",
            "TINYTEXT",
            "MEDIUMTEXT",
            "LONGTEXT",
            "NAME",
            "CITEXT",
            "UUID",
            "JSON",
            "JSONB",
            "XML",
            "DATE",
            "TIME",
            "DATETIME",
            "TIMESTAMP",
            "TIMESTAMPTZ",
            "TIMETZ",
            "TIMESTAMP WITH TIME ZONE",
            "TIMESTAMP WITHOUT TIME ZONE",
            "TIME WITH TIME ZONE",
            "TIME WITHOUT TIME ZONE",
            "INTERVAL",
            "INET",
            "CIDR",
        ],
    ),
    (ColumnKind::Blob, &["BLOB", "BYTEA", "BINARY", "VARBINARY", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB"]),
    (ColumnKind::Numeric, &["NUMERIC", "DECIMAL", "NUMBER"]),
    (ColumnKind::Any, &["ANY", ""]),
];

pub(super) fn kind_of(declared: &str) -> Result<ColumnKind, DefinitionError> {
    let name = bare_name(declared);
    // MySQL's unsigned integers: the sign is not enforced, the range is 64 bits with sign.
    let name = name.strip_suffix(" UNSIGNED").unwrap_or(&name);
    TYPES
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map(|&(kind, _)| kind)
        .ok_or_else(|| unknown(declared))
}

fn unknown(declared: &str) -> DefinitionError {
    let message = format!(
        "type \"{declared}\" is not known; use INTEGER, REAL, TEXT, BLOB, NUMERIC, ANY or a common name of these"
    );
    DefinitionError::new("42704", message)
}

/// Upper case, single blanks, nothing in parentheses.
fn bare_name(declared: &str) -> String {
    let mut depth = 0_usize;
    let outside: String = declared
        .chars()
        .map(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 => return character.to_ascii_uppercase(),
                _ => {}
            }
            ' '
        })
        .collect();
    outside.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_have_kinds() {
        for (declared, kind) in [
            ("int", ColumnKind::Integer),
            ("INTEGER", ColumnKind::Integer),
            ("bigint unsigned", ColumnKind::Integer),
            ("int(11)", ColumnKind::Integer),
            ("Boolean", ColumnKind::Integer),
            ("double  precision", ColumnKind::Real),
            ("FLOAT8", ColumnKind::Real),
            ("character varying ( 20 )", ColumnKind::Text),
            ("varchar(20)", ColumnKind::Text),
            ("timestamp (3) with time zone", ColumnKind::Text),
            ("uuid", ColumnKind::Text),
            ("bytea", ColumnKind::Blob),
            ("DECIMAL(10, 2)", ColumnKind::Numeric),
            ("any", ColumnKind::Any),
            ("", ColumnKind::Any),
        ] {
            assert_eq!(kind_of(declared), Ok(kind), "{declared}");
        }
        for declared in ["POINT", "int[]", "frob", "UNSIGNED"] {
            assert_eq!(kind_of(declared).unwrap_err().sqlstate, "42704", "{declared}");
        }
    }
}
