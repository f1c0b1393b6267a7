//! The tables that a statement reads, by the names that its text has for them.

use std::sync::Arc;

use sqlite3_parser::ast::{
    As, Expr, FromClause, JoinConstraint, JoinOperator, JoinType, JoinedSelectTable, SelectTable,
};
use store::value::{Value, ValueRef};
use store::{RowBuf, Table};

use crate::executor::Core;
use crate::text::token::unquoted;

/// Which of the tables, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

/// A column of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) side: Side,
    pub(super) column: usize,
}

/// One or two tables.
#[derive(Debug)]
pub(super) struct Scope {
    first: Named,
    second: Option<Named>,
    /// Rows of the first table come even where the second has none for them.
    pub(super) left: bool,
}

/// A table by its name, or the one that the text gives it.
#[derive(Debug)]
struct Named {
    name: String,
    table: Arc<Table>,
}

/// A table and one of its rows.
pub(super) type Standing<'g> = (&'g Table, &'g RowBuf);

/// The rows at hand and the statement's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'g> {
    pub(super) first: Option<Standing<'g>>,
    pub(super) second: Option<Standing<'g>>,
    pub(super) parameters: &'g [Value],
}

impl<'g> Given<'g> {
    /// What a column holds; NULL where its table has no row.
    #[inline]
    pub(super) fn column(&self, place: Place) -> ValueRef<'g> {
        let standing = match place.side {
            Side::First => self.first,
            Side::Second => self.second,
        };
        standing.map_or(ValueRef::Null, |(table, row)| table.column(row, place.column))
    }
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

impl Scope {
    /// The tables of a `FROM`, and what joins them; `None` where it is more than two, or anything else than tables.
    pub(super) fn of<'e, 'b>(core: &Core, from: &'e FromClause<'b>) -> Option<(Self, Option<&'e Expr<'b>>)> {
        let first = Named::of(core, from.select?)?;
        match from.joins.as_deref() {
            None | Some([]) => Some((Self { first, second: None, left: false }, None)),
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
                let second = Named::of(core, table)?;
                let alike = first.name.eq_ignore_ascii_case(&second.name);
                (!alike).then_some((Self { first, second: Some(second), left }, on))
            }
            Some(_) => None,
        }
    }

    /// The only table.
    pub(super) fn alone(&self) -> Option<&Arc<Table>> {
        self.second.is_none().then_some(&self.first.table)
    }

    pub(super) fn table(&self, side: Side) -> Option<&Arc<Table>> {
        match side {
            Side::First => Some(&self.first.table),
            Side::Second => self.second.as_ref().map(|named| &named.table),
        }
    }

    /// The tables in the order of the text.
    pub(super) fn sides(&self) -> impl Iterator<Item = (Side, &str, &Arc<Table>)> {
        let first = (Side::First, self.first.name.as_str(), &self.first.table);
        let second = self.second.as_ref().map(|named| (Side::Second, named.name.as_str(), &named.table));
        std::iter::once(first).chain(second)
    }

    /// Whether a column of this name stands in a table.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.sides().any(|(.., table)| table.def().column_index(name).is_some())
    }

    /// A stored column whose values compare by their bytes; names that mean something else, or two things, are
    /// SQLite's.
    pub(super) fn place(&self, expression: &Expr<'_>) -> Option<Place> {
        let (of, name) = match expression {
            Expr::Id(id) => (None, unquoted(id.0)),
            Expr::Name(name) => (None, unquoted(name.0)),
            Expr::Qualified(of, name) => (Some(unquoted(of.0)), unquoted(name.0)),
            _ => return None,
        };
        let mut found = self.sides().filter_map(|(side, own, table)| {
            let meant = of.as_ref().is_none_or(|of| of.eq_ignore_ascii_case(own));
            let column = table.def().column_index(&name).filter(|_| meant)?;
            Some((Place { side, column }, &table.def().columns[column]))
        });
        let (place, _) = found.next().filter(|(_, def)| def.is_visible() && def.collation.is_binary())?;
        found.next().is_none().then_some(place)
    }
}

impl Named {
    /// The built-in table shows more than it stores.
    fn of(core: &Core, table: &SelectTable<'_>) -> Option<Self> {
        let SelectTable::Table(name, alias, None) = table else { return None };
        let table = core.table(name).ok().filter(|table| table.name() != store::BUILT_IN)?;
        let name = match alias {
            Some(As::As(alias) | As::Elided(alias)) => unquoted(alias.0),
            None => table.name().to_owned(),
        };
        Some(Self { name, table })
    }
}
