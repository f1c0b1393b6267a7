//! What the source says of a table's columns: their names, and what their values need beside the types in the log.

use super::cursor::hex;
use super::table::{
    BLOB, DATE, DATETIME2, DECIMAL, DOUBLE, ENUM, FLOAT, INT24, LONG, LONGLONG, NEWDATE, SET, SHORT, STRING,
    TIME2, TIMESTAMP2, TINY, TableMap, Type, VARCHAR, YEAR,
};
use super::value::{Charset, Kind};
use super::wire::Connection;
use crate::error::Error;

/// A column of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// As the source has it.
    pub(super) data_type: String,
    /// How its values are written; `None`: they cannot be told.
    pub(super) kind: Option<Kind>,
}

/// The columns of a table, in its order; none: the user does not see the table.
pub(super) fn columns_of(
    connection: &mut Connection,
    schema: &str,
    table: &str,
) -> Result<Vec<Column>, Error> {
    let rows = connection.query(&format!(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS
         WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        literal(schema),
        literal(table)
    ))?;
    Ok(rows.iter().filter_map(|row| Column::of(row)).collect())
}

/// A text as a statement has it, whatever `sql_mode` makes of a backslash.
pub(super) fn literal(text: &str) -> String {
    format!("CONVERT(X'{}' USING utf8mb4)", hex(text.as_bytes()))
}

impl Column {
    fn of(row: &[Option<String>]) -> Option<Self> {
        let text = |at: usize| row.get(at)?.as_deref();
        let (name, data_type, full) = (text(0)?, text(1)?.to_lowercase(), text(2)?);
        Some(Self { name: name.to_owned(), kind: kind_of(&data_type, full, text(3)), data_type })
    }

    /// Whether the log has its values in this type.
    fn is_of(&self, of: Type) -> bool {
        let codes: &[u8] = match self.data_type.as_str() {
            "tinyint" => &[TINY],
            "smallint" => &[SHORT],
            "mediumint" => &[INT24],
            "int" => &[LONG],
            "bigint" => &[LONGLONG],
            "float" => &[FLOAT],
            "double" => &[DOUBLE],
            "decimal" => &[DECIMAL],
            "char" | "binary" | "uuid" => &[STRING],
            "varchar" | "varbinary" => &[VARCHAR],
            "date" => &[DATE, NEWDATE],
            "datetime" => &[DATETIME2],
            "timestamp" => &[TIMESTAMP2],
            "time" => &[TIME2],
            "year" => &[YEAR],
            "enum" => &[ENUM],
            "set" => &[SET],
            name if name.ends_with("text") || name.ends_with("blob") => &[BLOB],
            // It is never told.
            _ => return true,
        };
        codes.contains(&of.code)
    }
}

/// Whether these columns are those of the table in the log. Behind them it may have some that are hidden.
pub(super) fn describe(columns: &[Column], map: &TableMap) -> bool {
    columns.len() <= map.types.len()
        && columns.iter().zip(&map.types).all(|(column, of)| column.kind.is_none() || column.is_of(*of))
}

fn kind_of(data_type: &str, full: &str, charset: Option<&str>) -> Option<Kind> {
    Some(match data_type {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" if full.contains("unsigned") => {
            Kind::Unsigned
        }
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Kind::Signed,
        "float" | "double" | "decimal" | "date" | "datetime" | "timestamp" | "time" | "year" => Kind::Plain,
        "enum" | "set" => Kind::Labels(labels_of(full)),
        "uuid" => Kind::Uuid,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Binary,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Kind::Text(match charset? {
            "utf8mb4" | "utf8mb3" | "utf8" | "ascii" => Charset::Utf8,
            "latin1" => Charset::Latin1,
            _ => return None,
        }),
        _ => return None,
    })
}

/// The labels in `enum('a','it''s')`.
fn labels_of(full: &str) -> Vec<String> {
    let Some((_, list)) = full.split_once('(') else { return Vec::new() };
    let (mut labels, mut rest) = (Vec::new(), list);
    while let Some((_, begun)) = rest.split_once('\'') {
        let mut label = String::new();
        rest = begun;
        while let Some((part, behind)) = rest.split_once('\'') {
            label.push_str(part);
            rest = behind;
            match rest.strip_prefix('\'') {
                Some(behind) => {
                    label.push('\'');
                    rest = behind;
                }
                None => break,
            }
        }
        labels.push(label);
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read() {
        assert_eq!(labels_of("enum('a','it''s','','b,c')"), ["a", "it's", "", "b,c"]);
        assert_eq!(labels_of("set('''')"), ["'"]);
        assert_eq!(labels_of("enum"), [] as [&str; 0]);
        assert_eq!(labels_of("enum('open"), ["open"].map(|_| String::new()));
    }

    #[test]
    fn what_cannot_be_told_is_known() {
        assert_eq!(kind_of("int", "int(10) unsigned", None), Some(Kind::Unsigned));
        assert_eq!(kind_of("varchar", "varchar(20)", Some("latin1")), Some(Kind::Text(Charset::Latin1)));
        assert_eq!(kind_of("varchar", "varchar(20)", Some("sjis")), None);
        assert_eq!(kind_of("geometry", "geometry", None), None);
    }
}
