//! Whether the query of a table gives its rows: asked when the table is defined.

use postgres::oid;
use store::definition::{ColumnDef, TableDef};

use super::answer::{Form, form_of};
use super::ask::with_snapshot;
use crate::error::Error;
use crate::limits::ANSWER_TIMEOUT;
use crate::time::now;
use crate::wire::Connection;

/// Asks the source what the query takes and gives, and compares that with the table. The first fault says what to do.
pub(crate) fn check(connection: &mut Connection, def: &TableDef) -> Result<(), Error> {
    let Some(query) = &def.options.query else { return Ok(()) };
    let until = now() + ANSWER_TIMEOUT;
    let described = connection.prepare("check", query, until).map_err(|error| {
        let message = format!("query of table {}: {}", def.name, error.message);
        Error { message, ..error }
    })?;
    check_parameters(def, described.parameters)?;
    check_columns(def, &described.columns)?;
    // As it is going to be asked, for no keys.
    connection.prepare("check_with_snapshot", &with_snapshot(query), until)?;
    let none = vec![Some(&b"{}"[..]); described.parameters];
    connection.fetch("check_with_snapshot", &none, until, &mut |_| Ok(())).map_err(|error| {
        let denied = error.state == "42501" && error.hint.is_none();
        let hint = "GRANT SELECT ON the tables of the query TO the user, on the source";
        if denied { error.with_hint(hint) } else { error }
    })
}

/// Compares the columns that a query gives, with the OIDs of their types, with those of a table.
pub(crate) fn check_columns(def: &TableDef, given: &[(String, u32)]) -> Result<Form, Error> {
    let form = form_of(def, given).map_err(|error| {
        error.with_hint("give just the table's columns, by their names: SELECT id, name AS title, ...")
    })?;
    for (at, &column) in form.columns.iter().enumerate() {
        let own = &def.columns[column];
        if form.columns[..at].contains(&column) {
            return Err(Error::new("42701", format!("the query gives column {} twice", own.name)));
        }
        if own.generated.is_some() {
            return Err(Error::new("428C9", format!("column {} is generated here", own.name))
                .with_hint("leave it out of the query"));
        }
        check_type(own, given[at].1)?;
    }
    check_missing(def, &form.columns)?;
    Ok(form)
}

fn check_parameters(def: &TableDef, count: usize) -> Result<(), Error> {
    let wanted = def.primary_key.len();
    if count == wanted {
        return Ok(());
    }
    let names: Vec<&str> = def.primary_key.iter().map(|&at| def.columns[at].name.as_str()).collect();
    let hint = if let [name] = names[..] {
        format!("write WHERE {name} = ANY($1)")
    } else {
        let lists: Vec<String> = (1..=wanted).map(|number| format!("${number}")).collect();
        let (names, lists) = (names.join(", "), lists.join(", "));
        format!("write WHERE ({names}) IN (SELECT * FROM unnest({lists})), each with the type of its array")
    };
    let message = format!("the query takes {count} parameters, and the primary key has {wanted} columns");
    Err(Error::new("42P02", message).with_hint(hint))
}

/// Columns that the query does not give get their default, or NULL.
fn check_missing(def: &TableDef, given: &[usize]) -> Result<(), Error> {
    let needed = |(at, own): &(usize, &ColumnDef)| {
        own.not_null && !own.has_default() && own.generated.is_none() && !given.contains(at)
    };
    match def.columns.iter().enumerate().find(needed) {
        None => Ok(()),
        Some((_, own)) => {
            let message = format!("the query does not give column {}, which is NOT NULL", own.name);
            Err(Error::new("42703", message).with_hint("let the query give it, or give it a DEFAULT here"))
        }
    }
}

/// Whether every value of a type there is one of the column's type here.
fn check_type(own: &ColumnDef, theirs: u32) -> Result<(), Error> {
    const INTEGERS: &[u32] = &[oid::INT2, oid::INT4, oid::INT8];
    const TEXTS: &[u32] = &[oid::TEXT, oid::VARCHAR, oid::BPCHAR];
    const JSON: &[u32] = &[oid::JSON, oid::JSONB];
    let ours = own.sql_type().oid();
    let rank = |list: &[u32], oid: u32| list.iter().position(|own| *own == oid);
    let both = |list: &[u32]| list.contains(&ours) && list.contains(&theirs);
    let fits = ours == theirs
        || rank(INTEGERS, ours).zip(rank(INTEGERS, theirs)).is_some_and(|(ours, theirs)| ours >= theirs)
        || ours == oid::NUMERIC && INTEGERS.contains(&theirs)
        || ours == oid::FLOAT8 && theirs == oid::FLOAT4
        // A text takes the text of anything.
        || TEXTS.contains(&ours)
        || both(JSON);
    if fits {
        return Ok(());
    }
    let (name, type_name) = (&own.name, oid::name(ours));
    let message =
        format!("the query gives column {name} as {}, and here it is {type_name}", oid::name(theirs));
    Err(Error::new("42804", message).with_hint(format!("convert it in the query: {name}::{type_name}")))
}
