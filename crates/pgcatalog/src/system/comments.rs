//! What `COMMENT ON` said: `pg_description`, `obj_description`, `col_description`.

use store::Catalog;

use super::System;
use super::content::PUBLIC;
use super::oid::{oid_of_table, oid_of_view};
use super::relation::{indexes_of, tables_of};
use super::rows::{Rows, int, text};

/// The number of `pg_class`, in which all objects are that have comments.
pub(super) const CLASSES: u32 = 1259;

/// The number of `pg_namespace`.
const NAMESPACES: u32 = 2615;

/// A comment: the object's number, the column's from 1 or 0, and the text.
type Comment<'c> = (u32, usize, &'c str);

/// All comments of tables, columns, indexes and views.
fn comments(catalog: &Catalog) -> impl Iterator<Item = Comment<'_>> {
    let tables = tables_of(catalog).into_iter().flat_map(|table| {
        let def = table.def();
        let own = def.comment.iter().map(|comment| (oid_of_table(table), 0, comment.as_str()));
        let columns = def.visible_columns().zip(1..).filter_map(|((_, column), number)| {
            column.comment.as_ref().map(|comment| (oid_of_table(table), number, comment.as_str()))
        });
        let indexes = indexes_of(table).into_iter().filter_map(|facts| {
            let index = def.indexes.iter().find(|index| index.name == facts.name)?;
            index.comment.as_ref().map(|comment| (facts.oid, 0, comment.as_str()))
        });
        own.chain(columns).chain(indexes).collect::<Vec<_>>()
    });
    let views = catalog.views().filter_map(|view| Some((oid_of_view(view), 0, view.comment.as_deref()?)));
    tables.chain(views)
}

/// The comment on an object, or on one of its columns.
pub(super) fn comment_on(system: &System, oid: u32, column: usize) -> Option<String> {
    let catalog = system.catalog();
    let found = comments(&catalog).find(|(own, at, _)| (*own, *at) == (oid, column));
    found.map(|(_, _, text)| text.to_owned())
}

/// `pg_description`
pub(super) fn descriptions(system: &System, rows: &mut Rows) {
    for (oid, column, comment) in comments(&system.catalog()) {
        rows.add([
            ("objoid", int(oid)),
            ("classoid", int(CLASSES)),
            ("objsubid", int(u32::try_from(column).unwrap_or(0))),
            ("description", text(comment)),
        ]);
    }
    // A dump says nothing of a schema that has the comment of a new database.
    rows.add([
        ("objoid", int(PUBLIC)),
        ("classoid", int(NAMESPACES)),
        ("objsubid", int(0)),
        ("description", text("standard public schema")),
    ]);
}
