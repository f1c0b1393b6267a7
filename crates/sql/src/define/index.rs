//! `CREATE INDEX`: columns, expressions and conditions.

use std::ops::Range;

use pgcatalog::predicate::predicate_column;
use pgcatalog::system;
use sqltext::ast::Expr;
use sqltext::definition::{CreateIndex, Term};
use sqltext::token::{Token, tokens};
use store::definition::{
    Collation, ColumnDef, Generated, IndexDef, KEY_COLUMNS_MAX, NAME_BYTES_MAX, NUMERIC_COLLATION, SqlType,
    TableDef,
};

use super::table::{check_unique, collation};
use super::words::{Words, bare};
use super::{Defined, Note, altered, free_name, method, storage};
use crate::compute::check_definition;
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::table::HIDDEN;

/// An index with the hidden columns that it needs, as if these stood behind the table's own.
pub(super) struct Form {
    pub(super) index: IndexDef,
    pub(super) hidden: Vec<ColumnDef>,
}

pub(super) fn create(core: &Core, words: &Words<'_>, wanted: &CreateIndex) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE INDEX";
    let note = method::note(words, wanted.method.as_ref())?;
    let method = wanted.method.as_ref().map_or("btree", |method| method.text.as_str());
    let of_storage = storage::notes_of_index(&wanted.settings, method)?;
    let table = &wanted.table.text;
    system::refuse_change(table)?;
    let table = core.catalog.table(table).ok_or_else(|| SqlError::unknown_table(table))?;
    let named = wanted.name.as_ref().map(|name| name.text.as_str());
    if let Some(name) = named
        && wanted.if_not_exists
        && core.catalog.index_owner(&table.def().qualified(name)).is_some()
    {
        return Ok(Defined::present(TAG, name));
    }
    let def = table.def();
    if let Some(missing) = wanted.include.iter().find(|name| def.column_index(&name.text).is_none()) {
        return Err(SqlError::unknown_column(def.own_name(), &missing.text));
    }
    if wanted.terms.len() > KEY_COLUMNS_MAX {
        let message = format!("index has {} columns; the limit is {KEY_COLUMNS_MAX}", wanted.terms.len());
        return Err(SqlError::new("54011", message));
    }
    let mut form = index_form(words, def, &wanted.terms)?;
    let name = named.map_or_else(|| own_name(core, def, &form, &wanted.terms), ToOwned::to_owned);
    let of_elements = method::of_elements(wanted.method.as_ref(), def, &mut form);
    let mut notes: Vec<Note> = note.into_iter().filter(|_| !of_elements).chain(of_storage).collect();
    if !wanted.include.is_empty() {
        notes.push(Note::hinted(
            "the columns of INCLUDE are not in the index",
            "an index leads to whole rows, so a query that uses it reads them there",
        ));
    }
    form.index = IndexDef { name: name.clone(), unique: wanted.unique, ..form.index };
    if let Some(condition) = &wanted.condition {
        form.index.predicate = Some(def.columns.len() + form.hidden.len());
        form.hidden
            .push(predicate_column(&hidden_name(def, form.hidden.len()), &words.expression(condition)?)?);
    }
    check_form(def, &form)?;
    let Form { index, hidden } = form;
    let first = def.columns.len();
    // The store gives the hidden columns their places.
    let placed = |positions: &[usize]| {
        let place = |at: usize| if at < first { at } else { positions[at - first] };
        IndexDef {
            columns: index.columns.iter().map(|&at| place(at)).collect(),
            elements: index.elements.map(place),
            predicate: index.predicate.map(place),
            ..index.clone()
        }
    };
    match core.store.create_index_with(table.name(), hidden, &placed) {
        Err(error) if error.state == state::DUPLICATE_TABLE && wanted.if_not_exists => {
            Ok(Defined::present(TAG, &name))
        }
        result => Ok(result.map(|()| Defined { notes, ..Defined::undone_by(TAG, altered(table)) })?),
    }
}

/// `table_a_b_idx`, as PostgreSQL names an index without a name: an expression is called by its function, or `expr`.
fn own_name(core: &Core, def: &TableDef, form: &Form, terms: &[Term]) -> String {
    let part = |(term, &at): (&Term, &usize)| match def.columns.get(at) {
        Some(column) => column.name.clone(),
        None => match bare(&term.expression).0 {
            Expr::Function(function) => function.name.to_string().to_lowercase(),
            _ => "expr".to_owned(),
        },
    };
    let parts: Vec<String> = terms.iter().zip(&form.index.columns).map(part).collect();
    // Room for a number stays.
    let name = format!("{}_{}", def.own_name(), parts.join("_"));
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX - 8)];
    free_name(format!("{name}_idx"), |name| {
        let name = def.qualified(name);
        core.catalog.index_owner(&name).is_some() || core.catalog.table(&name).is_some()
    })
}

/// Proves the expressions in a copy of the definition.
fn check_form(def: &TableDef, form: &Form) -> Result<(), SqlError> {
    let mut copy = def.clone();
    copy.columns.extend(form.hidden.iter().cloned());
    copy.indexes.push(form.index.clone());
    if form.index.unique {
        check_unique(&copy, &form.index.columns)?;
    }
    check_definition(&copy)
}

/// The columns of a key or an index; what is no column becomes a hidden one.
pub(super) fn index_form(words: &Words<'_>, def: &TableDef, terms: &[Term]) -> Result<Form, SqlError> {
    let mut form = Form { index: IndexDef::default(), hidden: Vec::new() };
    for term in terms {
        let (expression, tokens, collation) = collated(words, term)?;
        let column = if let Expr::Identifier(name) = expression {
            def.column_index(&name.value).ok_or_else(|| no_column(def, &name.value))?
        } else {
            let name = hidden_name(def, form.hidden.len());
            form.hidden.push(expression_column(&name, words.typed(expression, tokens)?)?);
            def.columns.len() + form.hidden.len() - 1
        };
        form.index.columns.push(column);
        form.index.descending.push(term.descending);
        form.index.collations.push(collation);
    }
    // Both lists are empty where they say nothing.
    if !form.index.descending.contains(&true) {
        form.index.descending.clear();
    }
    if form.index.collations.iter().all(Option::is_none) {
        form.index.collations.clear();
    }
    Ok(form)
}

/// What a term is made of, and how it compares.
fn collated<'t>(
    words: &Words<'_>,
    term: &'t Term,
) -> Result<(&'t Expr, Range<usize>, Option<Collation>), SqlError> {
    let (mut expression, mut tokens) = bare(&term.expression);
    let mut own = None;
    while let Expr::Collate { expr, collation: name } = expression {
        let name = name.0.last().and_then(|part| part.as_ident()).map_or("", |name| name.value.as_str());
        own = own.or(Some(collation(name)?));
        let end = words.last(&tokens, "COLLATE").unwrap_or(tokens.end);
        (expression, tokens) = (&**expr, tokens.start..end);
        while let Expr::Nested(inner) = expression {
            (expression, tokens) = (&**inner, tokens.start + 1..tokens.end - 1);
        }
    }
    Ok((expression, tokens, own))
}

/// What is said of a name that is no column of the table's rows.
fn no_column(def: &TableDef, name: &str) -> SqlError {
    if HIDDEN.iter().any(|(hidden, ..)| hidden.eq_ignore_ascii_case(name)) {
        return SqlError::not_supported(format!("an index of \"{name}\""))
            .with_hint("it is not stored in the row, and changes by itself");
    }
    SqlError::unknown_column(def.own_name(), name)
}

/// The hidden column of an indexed expression. It has the affinity of the expression, so that comparisons with it are
/// those with the expression: only a cast has one. An array is text in any case, and has elements to be indexed.
fn expression_column(name: &str, (sql, ty): (String, Option<SqlType>)) -> Result<ColumnDef, SqlError> {
    let array = ty.filter(|ty| ty.is_array() && ty.enumeration().is_none()).map(SqlType::sql_name);
    // Decimal numbers have their collation behind the cast.
    let decimal = || sql.ends_with(NUMERIC_COLLATION).then(|| "NUMERIC".to_owned());
    let declared = array.or_else(decimal).or_else(|| cast_type(&sql));
    let column = ColumnDef::new(name, &declared.unwrap_or_default())?;
    Ok(ColumnDef { hidden: true, generated: Some(Generated { sql, stored: true }), ..column })
}

/// The type of an expression of SQLite's that is a cast as a whole.
fn cast_type(sql: &str) -> Option<String> {
    let all = tokens(sql);
    let [cast, open, inner @ .., close] = &all[..] else { return None };
    if !cast.is("CAST") || !open.is_sign("(") || !close.is_sign(")") {
        return None;
    }
    let mut depth = 0_usize;
    let mut named = None;
    for (at, token) in inner.iter().enumerate() {
        if token.is_sign(")") {
            depth = depth.checked_sub(1)?;
        }
        depth += usize::from(token.is_sign("("));
        if depth == 0 && token.is("AS") {
            named = Some(at + 1);
        }
    }
    let words: Vec<&str> = inner.get(named?..)?.iter().map(|token: &Token<'_>| token.text).collect();
    Some(words.join(" "))
}

/// A name for the n-th hidden column to come, which nobody writes by accident.
fn hidden_name(def: &TableDef, ahead: usize) -> String {
    let taken = |name: &String| def.columns.iter().any(|column| column.name == *name);
    (1_usize..).map(|number| format!("#{number}")).filter(|name| !taken(name)).nth(ahead).unwrap_or_default()
}
