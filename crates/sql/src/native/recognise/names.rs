//! Tables and columns by the names that a statement has for them.

use dialect::lowered::{self, Joined, Node, Tables};
use store::Table;

use super::super::scope::{Named, Place, Scope};
use crate::core::Core;

/// The tables of a `FROM`, and what joins them; `None` where a name is of none, or of both.
pub(super) fn scope_of<'e>(core: &Core, tables: &'e Tables) -> Option<(Scope, Option<&'e Node>)> {
    let first = changed(core, &tables.first)?.first;
    let Some(Joined { table, left, on }) = &tables.second else { return Some((Scope::of(first), None)) };
    let second = changed(core, table)?.first;
    let alike = first.name.eq_ignore_ascii_case(&second.name);
    (!alike).then_some((Scope { first, second: Some(second), left: *left }, on.as_ref()))
}

/// The table that a statement changes, or the first that it reads.
pub(super) fn changed(core: &Core, named: &lowered::Named) -> Option<Scope> {
    let table = core.table(named).ok()?;
    let name = named.alias.clone().unwrap_or_else(|| table.name().to_owned());
    Some(Scope::of(Named { name, table }))
}

/// See [`Scope::column`].
pub(super) fn place(scope: &Scope, expression: &Node) -> Option<Place> {
    let (of, name) = column(expression)?;
    scope.column(of, name)
}

/// See [`Scope::any_column`].
pub(super) fn any_place(scope: &Scope, expression: &Node) -> Option<Place> {
    let (of, name) = column(expression)?;
    scope.any_column(of, name)
}

fn column(expression: &Node) -> Option<(Option<&str>, &str)> {
    match expression.bare() {
        Node::Column { table, name } => Some((table.as_deref(), name)),
        Node::Truth(truth) => Some((None, if *truth { "TRUE" } else { "FALSE" })),
        _ => None,
    }
}

/// Whether the table shows more than it stores.
pub(super) fn is_built_in(table: &Table) -> bool {
    table.name() == store::BUILT_IN
}
