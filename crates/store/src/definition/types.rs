//! The type names that a column may be declared with.

use super::{ColumnKind, DefinitionError, SqlType};

/// Every known name with what clients are told of it: SQLite's usual names, PostgreSQL's and MySQL's.
///
/// A name that is not here is refused rather than guessed by substring as SQLite does, where `POINT` is an
/// integer because it contains `INT`.
const NAMES: &[(SqlType, &[&str])] = &[
    (SqlType::Bool, &["BOOL", "BOOLEAN"]),
    (SqlType::Int2, &["SMALLINT", "INT2", "TINYINT", "SMALLSERIAL", "SERIAL2"]),
    (SqlType::Int4, &["INT", "INTEGER", "INT4", "MEDIUMINT", "SERIAL", "SERIAL4"]),
    (SqlType::Int8, &["BIGINT", "INT8", "UNSIGNED BIG INT", "BIGSERIAL", "SERIAL8"]),
    (SqlType::Float4, &["FLOAT4"]),
    (SqlType::Float8, &["REAL", "FLOAT", "FLOAT8", "DOUBLE", "DOUBLE PRECISION"]),
    (SqlType::Numeric, &["NUMERIC", "DECIMAL", "DEC", "NUMBER"]),
    (SqlType::Text, &["TEXT", "CLOB", "STRING", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "CITEXT"]),
    (SqlType::Varchar, &["VARCHAR", "CHARACTER VARYING", "VARYING CHARACTER", "NVARCHAR", "CHAR VARYING"]),
    // Blanks are not added to fill the length, so these are texts as the others are.
    (SqlType::Bpchar, &["CHAR", "CHARACTER", "NCHAR", "NATIVE CHARACTER", "BPCHAR"]),
    (SqlType::Bytea, &["BLOB", "BYTEA", "BINARY", "VARBINARY", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB"]),
    (SqlType::Timestamptz, &["TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"]),
    (SqlType::Timestamp, &["TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE", "DATETIME"]),
    (SqlType::Date, &["DATE"]),
    (SqlType::Time, &["TIME", "TIME WITHOUT TIME ZONE"]),
    (SqlType::Timetz, &["TIMETZ", "TIME WITH TIME ZONE"]),
    (SqlType::Interval, &["INTERVAL"]),
    (SqlType::Json, &["JSON"]),
    (SqlType::Jsonb, &["JSONB"]),
    (SqlType::Uuid, &["UUID"]),
    (SqlType::Name, &["NAME"]),
    (SqlType::Inet, &["INET"]),
    (SqlType::Cidr, &["CIDR"]),
    (SqlType::Xml, &["XML"]),
    (SqlType::Oid, &["OID"]),
    // Values of every kind: a client is told that they are text, which all of them can be written as.
    (SqlType::Unknown, &["ANY", ""]),
];

impl SqlType {
    /// The type of a column declared so; names are compared whole, in any case, without what stands in
    /// parentheses. `None` for a name that is not known.
    pub fn of_declared(declared: &str) -> Option<Self> {
        let name = bare_name(declared);
        // MySQL's unsigned integers: the sign is not enforced, the range is 64 bits with sign.
        if let Some(signed) = name.strip_suffix(" UNSIGNED") {
            return find(signed).map(|_| Self::Int8);
        }
        if let Some(element) = name.strip_suffix("[]") {
            return find(element.trim_end())?.array();
        }
        find(&name)
    }

    /// What a column of this type stores.
    pub fn kind(self) -> ColumnKind {
        match self {
            Self::Bool | Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid => ColumnKind::Integer,
            Self::Float4 | Self::Float8 => ColumnKind::Real,
            Self::Numeric => ColumnKind::Numeric,
            Self::Bytea => ColumnKind::Blob,
            Self::Unknown => ColumnKind::Any,
            _ => ColumnKind::Text,
        }
    }
}

fn find(name: &str) -> Option<SqlType> {
    NAMES.iter().find(|(_, names)| names.contains(&name)).map(|&(ty, _)| ty)
}

pub(super) fn kind_of(declared: &str) -> Result<ColumnKind, DefinitionError> {
    SqlType::of_declared(declared).map(SqlType::kind).ok_or_else(|| unknown(declared))
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
            ("int[]", ColumnKind::Text),
            ("any", ColumnKind::Any),
            ("", ColumnKind::Any),
        ] {
            assert_eq!(kind_of(declared), Ok(kind), "{declared}");
        }
        for declared in ["POINT", "frob", "UNSIGNED", "frob[]"] {
            assert_eq!(kind_of(declared).unwrap_err().sqlstate, "42704", "{declared}");
        }
    }
}
