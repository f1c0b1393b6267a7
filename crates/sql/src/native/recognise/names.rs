//! Tables and columns by the names that a statement has for them.

use sqlite3_parser::ast::{
    As, Expr, FromClause, JoinConstraint, JoinOperator, JoinType, JoinedSelectTable, QualifiedName,
    SelectTable,
};
use store::Table;

use super::super::scope::{Named, Place, Scope};
use crate::core::Core;
use crate::text::token::unquoted;
use crate::write::{self, Operand};

/// The tables of a `FROM`, and what joins them; `None` where it is more than two, or anything else than tables.
pub(super) fn scope_of<'e, 'b>(
    core: &Core,
    from: &'e FromClause<'b>,
) -> Option<(Scope, Option<&'e Expr<'b>>)> {
    let first = selected(core, from.select?)?;
    match from.joins.as_deref() {
        None | Some([]) => Some((Scope::of(first), None)),
        Some([JoinedSelectTable { operator, table, constraint }]) => {
            let left = match operator {
                JoinOperator::Comma | JoinOperator::TypedJoin(None) => false,
                JoinOperator::TypedJoin(Some(join)) => {
                    if join.intersects(JoinType::NATURAL | JoinType::RIGHT) {
                        return None;
                    }
                    join.contains(JoinType::LEFT)
                }
            };
            let on = match constraint {
                None => None,
                Some(JoinConstraint::On(on)) => Some(on),
                Some(JoinConstraint::Using(_)) => return None,
            };
            let second = selected(core, table)?;
            let alike = first.name.eq_ignore_ascii_case(&second.name);
            (!alike).then_some((Scope { first, second: Some(second), left }, on))
        }
        Some(_) => None,
    }
}

fn selected(core: &Core, table: &SelectTable<'_>) -> Option<Named> {
    let SelectTable::Table(name, alias, None) = table else { return None };
    let table = core.table(name).ok()?;
    let name = match alias {
        Some(As::As(alias) | As::Elided(alias)) => unquoted(alias.0),
        None => table.name().to_owned(),
    };
    Some(Named { name, table })
}

/// The table that a statement changes.
pub(super) fn changed(core: &Core, name: &QualifiedName<'_>) -> Option<Scope> {
    let table = core.table(name).ok()?;
    let name = name.alias.as_ref().map_or_else(|| table.name().to_owned(), |alias| unquoted(alias.0));
    Some(Scope::of(Named { name, table }))
}

/// What stands between brackets, however many.
pub(super) fn bare<'e, 'b>(expression: &'e Expr<'b>) -> &'e Expr<'b> {
    match expression {
        Expr::Parenthesized(inner) => match inner.as_slice() {
            [only] => bare(only),
            _ => expression,
        },
        other => other,
    }
}

/// See [`Scope::column`].
pub(super) fn place(scope: &Scope, expression: &Expr<'_>) -> Option<Place> {
    match bare(expression) {
        Expr::Id(id) => scope.column(None, &unquoted(id.0)),
        Expr::Name(name) => scope.column(None, &unquoted(name.0)),
        Expr::Qualified(of, name) => scope.column(Some(&unquoted(of.0)), &unquoted(name.0)),
        _ => None,
    }
}

/// A value that needs no computing.
pub(super) fn operand(expression: &Expr<'_>) -> Option<Operand> {
    write::operand(bare(expression))
}

/// Whether the table shows more than it stores.
pub(super) fn is_built_in(table: &Table) -> bool {
    table.name() == store::BUILT_IN
}
