//! The columns of `CREATE TABLE ... AS`.

use std::sync::Arc;

use dialect::Item;
use dialect::definition::Piece;
use store::definition::{ColumnDef, NAME_BYTES_MAX};

use super::{check_column_name, column_of_type, typed_column};
use crate::core::Core;
use crate::error::SqlError;
use crate::limits::NESTED_VIEWS_MAX;
use crate::text::token::{Kind, Tokens, unquoted};

/// The columns of a query's result; those that come from a table unchanged keep its type, and those that are computed
/// have the type that is known of them. Where rows of several queries come together, a column may hold what its first
/// query's does not: of these only decimal numbers keep their type.
pub(super) fn columns(core: &Core, query: &Piece) -> Result<Vec<ColumnDef>, SqlError> {
    let sql = &query.sql;
    let statement = core.compile_query(sql)?;
    let mixed = is_mixed(core, sql, NESTED_VIEWS_MAX);
    // Its names are those of the store, wherever the session looks for names.
    let catalog = Arc::new(core.catalog.with_path(Arc::default()));
    let known = dialect::translate_view(&catalog, sql);
    let items = known.and_then(|known| Item::expanded(&known.items));
    let items = items.filter(|items| items.len() == statement.columns());
    let decimal = |at: usize| items.as_ref().is_some_and(|items| items[at].is_decimal());
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(statement.columns());
    for at in 0..statement.columns() {
        let name = free_name(&columns, &statement.column_name(at));
        check_column_name(&name)?;
        let declared = statement.origin(at).filter(|_| !mixed).and_then(|(table, column)| {
            let table = core.catalog.table(&table)?;
            Some(table.def().columns[table.def().column_index(&column)?].declared.clone())
        });
        let computed = query.types.get(at).copied().flatten().filter(|_| !mixed && declared.is_none());
        let computed = computed.and_then(|ty| column_of_type(&core.catalog, &name, ty));
        let declared = declared.or_else(|| decimal(at).then(|| "NUMERIC".to_owned()));
        let plain = || typed_column(&core.catalog, &name, &declared.unwrap_or_default());
        columns.push(computed.map_or_else(plain, Ok)?);
    }
    Ok(columns)
}

/// Whether a text, or a view that it names, brings rows of several queries or lists together.
fn is_mixed(core: &Core, sql: &str, views: usize) -> bool {
    const WORDS: &[&str] = &["UNION", "INTERSECT", "EXCEPT", "VALUES"];
    Tokens::new(sql).filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted)).any(|token| {
        WORDS.iter().any(|word| token.is(word))
            || core
                .catalog
                .view(&unquoted(token.text))
                .is_some_and(|view| views == 0 || is_mixed(core, &view.sql, views - 1))
    })
}

/// A name for a column: an expression is named by its text, cut to what a name may have; of two of one name the second
/// is numbered, as in SQLite.
pub(super) fn free_name(known: &[ColumnDef], name: &str) -> String {
    let taken = |name: &str| known.iter().any(|known| known.name.eq_ignore_ascii_case(name));
    let whole = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    if !taken(whole) {
        return whole.to_owned();
    }
    let numbered = |number: usize| {
        let number = format!(":{number}");
        format!("{}{number}", &name[..name.floor_char_boundary(NAME_BYTES_MAX - number.len())])
    };
    // As many columns as are known cannot hold all of these and the name without a number.
    (1..=known.len()).map(numbered).find(|name| !taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_numbered() {
        let mut known = Vec::new();
        let long = "\u{e9}".repeat(40);
        for (name, expected) in [
            ("a", "a".to_owned()),
            ("A", "A:1".to_owned()),
            ("a", "a:2".to_owned()),
            (&long, "\u{e9}".repeat(31)),
            (&long, format!("{}:1", "\u{e9}".repeat(30))),
        ] {
            let free = free_name(&known, name);
            assert_eq!(free, expected);
            known.push(ColumnDef::new(&free, "").unwrap());
        }
    }
}
