//! Whether rows of the source fit a table here: asked when a table names them (`mode`), and at each connection.

use store::definition::{Copied, Dependence, SqlType, TableDef};

use crate::error::Error;
use crate::pgoutput::literal;
use crate::wire::Connection;

/// A column of the source.
struct Column {
    name: String,
    /// The name of its type, or of its element's, under any domains.
    ty: String,
    is_array: bool,
    is_enum: bool,
    is_generated: bool,
}

/// Checks that the source has each column that the table has, of a type that fits, and one row for each key.
pub(crate) fn check(connection: &mut Connection, def: &TableDef, copied: &Copied) -> Result<(), Error> {
    let columns = columns_of(connection, &copied.on)?;
    for (theirs, at) in &copied.columns {
        let ours = &def.columns[*at];
        let on = &copied.on;
        let Some(column) = columns.iter().find(|column| column.name == *theirs) else {
            let message = format!("table {on} has no column {theirs} on the source");
            return Err(Error::new("42703", message).with_hint(format!(
                "name the column in depends, as in ({theirs}_there => {theirs}), or leave it out here"
            )));
        };
        if column.is_generated {
            let message = format!("column {theirs} of {on} is generated there, and is not in the stream");
            return Err(Error::new("0A000", message).with_hint("generate it here, or leave it out"));
        }
        if !fits(column, ours.sql_type()) {
            let list = if column.is_array { "[]" } else { "" };
            let message = format!(
                "column {theirs} of {on} is of type {}{list}, which does not fit {}",
                column.ty,
                ours.sql_type().sql_name()
            );
            return Err(Error::new("42804", message).with_hint("give the column here this type, or text"));
        }
    }
    check_key(connection, copied)
}

fn columns_of(connection: &mut Connection, on: &Dependence) -> Result<Vec<Column>, Error> {
    let rows = connection.query(&format!(
        "WITH RECURSIVE col AS (
             SELECT a.attnum, a.attname, a.attgenerated <> '' AS made, a.atttypid AS ty
             FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
             JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = {} AND c.relname = {} AND a.attnum > 0 AND NOT a.attisdropped
         ), typed AS (
             SELECT attname, made, ty, false AS list FROM col
             UNION ALL
             SELECT d.attname, d.made, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END,
                    d.list OR t.typtype <> 'd'
             FROM typed d JOIN pg_type t ON t.oid = d.ty
             WHERE t.typtype = 'd' OR t.typcategory = 'A' AND t.typelem <> 0
         )
         SELECT d.attname, t.typname, d.list, t.typtype = 'e', d.made
         FROM typed d JOIN pg_type t ON t.oid = d.ty
         WHERE t.typtype <> 'd' AND NOT (t.typcategory = 'A' AND t.typelem <> 0)",
        literal(&on.schema),
        literal(&on.table)
    ))?;
    let is = |row: &[Option<String>], at: usize| row.get(at).and_then(Option::as_deref) == Some("t");
    let column = |row: Vec<Option<String>>| {
        let flags = [is(&row, 2), is(&row, 3), is(&row, 4)];
        let mut texts = row.into_iter();
        let (name, ty) = (texts.next()??, texts.next()??);
        let [is_array, is_enum, is_generated] = flags;
        Some(Column { name, ty, is_array, is_enum, is_generated })
    };
    Ok(rows.into_iter().filter_map(column).collect())
}

/// Several rows there with one key would be one row here.
fn check_key(connection: &mut Connection, copied: &Copied) -> Result<(), Error> {
    let on = &copied.on;
    let names: Vec<String> = on.columns.iter().map(|(theirs, _)| literal(theirs)).collect();
    let rows = connection.query(&format!(
        "SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = {} AND c.relname = {} AND i.indisunique AND i.indimmediate AND i.indpred IS NULL
         AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text) FROM pg_attribute a
              WHERE a.attrelid = i.indrelid AND a.attnotnull AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))
           = (SELECT array_agg(name ORDER BY name) FROM unnest(ARRAY[{}]::text[]) name)
         AND 0 <> ALL (i.indkey[0:i.indnkeyatts - 1])",
        literal(&on.schema),
        literal(&on.table),
        names.join(", ")
    ))?;
    if !rows.is_empty() {
        return Ok(());
    }
    let columns: Vec<&str> = on.columns.iter().map(|(theirs, _)| theirs.as_str()).collect();
    let message =
        format!("({}) of {on} is no primary key and no unique key of NOT NULL columns", columns.join(", "));
    Err(Error::new("42830", message).with_hint(
        "the primary key here must be one of the source's, so that each row here is one row there",
    ))
}

/// Types whose values are numbers, texts, JSON: a value of one fits another, unless it is too large.
const FAMILIES: &[&[&str]] = &[
    &["int2", "int4", "int8", "float4", "float8", "numeric", "oid"],
    &["text", "varchar", "bpchar", "name", "citext"],
    &["json", "jsonb"],
];

fn fits(column: &Column, ours: SqlType) -> bool {
    let element = ours.scalar();
    let is_text = |ty: &str| FAMILIES[1].contains(&ty);
    // A text has anything, as PostgreSQL prints it.
    if !ours.is_array() && (is_text(ours.name()) || ours == SqlType::Unknown) {
        return true;
    }
    if column.is_array != ours.is_array() {
        return false;
    }
    if column.is_enum {
        return ours.enumeration().is_some() || is_text(element.name());
    }
    if ours.enumeration().is_some() {
        return is_text(&column.ty);
    }
    let both = |family: &&&[&str]| family.contains(&column.ty.as_str()) && family.contains(&element.name());
    column.ty == element.name() || FAMILIES.iter().any(|family| both(&family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_fit() {
        let column = |ty: &str, is_array, is_enum| Column {
            name: "c".to_owned(),
            ty: ty.to_owned(),
            is_array,
            is_enum,
            is_generated: false,
        };
        let list = |ty: SqlType| ty.array().unwrap();
        for (theirs, ours, expected) in [
            (column("int4", false, false), SqlType::Int8, true),
            (column("numeric", false, false), SqlType::Int4, true),
            (column("text", false, false), SqlType::Int4, false),
            (column("jsonb", false, false), SqlType::Json, true),
            (column("inet", false, false), SqlType::Text, true),
            (column("inet", false, false), SqlType::Bytea, false),
            (column("timestamptz", false, false), SqlType::Timestamptz, true),
            (column("timestamp", false, false), SqlType::Timestamptz, false),
            (column("mood", false, true), SqlType::Text, true),
            (column("mood", false, true), SqlType::Int4, false),
            (column("int4", true, false), list(SqlType::Int4), true),
            (column("int4", true, false), SqlType::Int4, false),
            (column("int4", true, false), SqlType::Text, true),
            (column("int4", false, false), list(SqlType::Int4), false),
            (column("mood", true, true), list(SqlType::Text), true),
        ] {
            assert_eq!(fits(&theirs, ours), expected, "{} {}", theirs.ty, ours.sql_name());
        }
    }
}
