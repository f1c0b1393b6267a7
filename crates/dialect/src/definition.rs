//! The expressions and queries of definitions.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use sqltext::ast::{Expr, Query};
use sqltext::definition::{Definition, Part, Read};
use sqltext::error::SqlError;
use sqltext::places::Places;
use store::definition::SqlType;
use store::{Catalog, Table};

use super::names::Names;
use super::out::Out;
use super::own::Within;
use super::{Made, Step, Stop, Translated, Translator};

/// A query in SQLite's words.
#[derive(Debug)]
pub struct Piece {
    /// Its text.
    pub sql: String,
    /// The types of its columns, as far as they are known.
    pub types: Vec<Option<SqlType>>,
    /// The users' functions that it calls, by their names in the store.
    pub calls: Vec<String>,
    places: Places,
}

impl Piece {
    /// Turns a place in the new text, in characters from 1, into one of the user's text.
    pub fn relocate(&self, error: SqlError, user: &str) -> SqlError {
        self.places.relocate(error, &self.sql, user)
    }
}

/// An expression in SQLite's words: these tokens of the definition. `table` is the one whose columns it may name, and
/// `columns` are those that the definition itself makes.
pub fn expression(
    catalog: &Catalog,
    (table, columns): (Option<&Arc<Table>>, &[(String, SqlType)]),
    definition: &Definition<'_>,
    expression: &Expr,
    tokens: Range<usize>,
) -> Result<String, SqlError> {
    Ok(typed_expression(catalog, (table, columns), definition, expression, tokens)?.0)
}

/// The same, with its type where that is known.
pub fn typed_expression(
    catalog: &Catalog,
    (table, columns): (Option<&Arc<Table>>, &[(String, SqlType)]),
    definition: &Definition<'_>,
    expression: &Expr,
    tokens: Range<usize>,
) -> Result<(String, Option<SqlType>), SqlError> {
    let mut names = Names::of(catalog, &definition.tokens[tokens.clone()], 0, true);
    if let Some(table) = table {
        names.add(table);
    }
    for (name, ty) in columns {
        names.add_column(name, Some(*ty).filter(|ty| *ty != SqlType::Unknown));
    }
    let mut walk = walk(definition, &names, &tokens);
    walk.of_row = true;
    let out = walk.expression(expression);
    let ty = out.as_ref().ok().and_then(|out| out.ty);
    Ok((finished(walk, out, definition, tokens)?.sql.trim().to_owned(), ty))
}

/// What the text of a default becomes where it is assigned to a column of another type: a moment with a zone becomes
/// one of the zone that the session has then.
pub fn assigned(sql: String, from: Option<SqlType>, to: SqlType) -> String {
    use SqlType::{Bpchar, Date, Text, Time, Timestamp, Timestamptz, Timetz, Varchar};
    let without_zone = matches!(to, Timestamp | Date | Time | Timetz | Text | Varchar | Bpchar);
    if from == Some(Timestamptz) && without_zone { format!("zoned_as({sql}, '{}')", to.name()) } else { sql }
}

/// What the text of an expression becomes where its values are stored in a column of another type.
pub fn stored(sql: String, from: Option<SqlType>, to: SqlType) -> String {
    match from {
        Some(SqlType::Numeric) if super::types::is_integer(to) => {
            format!("cast_int8(numeric_round({sql}))")
        }
        _ => sql,
    }
}

/// A query in SQLite's words. Statements that read the view compute with its columns.
pub fn query(catalog: &Catalog, definition: &Definition<'_>, query: &Part<Read>) -> Result<Piece, SqlError> {
    let tokens = &definition.tokens[query.tokens.clone()];
    super::refuse_own_names(definition.sql, tokens)?;
    let left = Cell::new(0);
    let names = Names::of_statement(catalog, tokens, Within::new(&left));
    let mut walk = walk(definition, &names, &query.tokens);
    let out = query.node.as_ref().map_or(Err(Stop::Unknown), |query| walk.whole_query(query));
    let Translated { sql, places, columns, calls, .. } =
        finished(walk, out, definition, query.tokens.clone())?;
    let types = columns.unwrap_or_default().into_iter().map(|(_, ty)| ty).collect();
    Ok(Piece { sql, types, calls, places })
}

fn walk<'a, 'n>(
    definition: &'a Definition<'a>,
    names: &'n Names,
    tokens: &Range<usize>,
) -> Translator<'a, 'n> {
    let part = (&definition.tokens[..tokens.end], tokens.start);
    let mut walk = Translator::from(definition.sql, part, names, &[]);
    // Indexes come and go, and the definition stays.
    walk.by_index = false;
    walk.defines = true;
    walk
}

/// What became of it. What the walk does not know stays as it is: SQLite has the last word on it.
fn finished<'a>(
    walk: Translator<'a, '_>,
    out: Step<Out<'a>>,
    definition: &'a Definition<'a>,
    tokens: Range<usize>,
) -> Result<Translated, SqlError> {
    let names = walk.names;
    let text = |out| Made::Text(out, None);
    if let Some(found) = walk.finish(out.map(text))? {
        return Ok(found);
    }
    let mut walk = self::walk(definition, names, &tokens);
    let out = walk.rest();
    let copied = walk.finish(Ok(text(out)))?;
    copied.ok_or_else(|| SqlError::new(sqltext::error::state::INTERNAL, "a part of a definition was lost"))
}

impl<'a> Translator<'a, '_> {
    fn whole_query(&mut self, query: &Query) -> Step<Out<'a>> {
        match &*query.body {
            sqltext::ast::SetExpr::Insert(_)
            | sqltext::ast::SetExpr::Update(_)
            | sqltext::ast::SetExpr::Delete(_) => Err(Stop::Unknown),
            _ => self.query(query, None).map(|(out, _)| out),
        }
    }
}
