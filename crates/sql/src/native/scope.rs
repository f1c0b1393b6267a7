//! The tables that a statement reads, by the names that its text has for them, and the rows that it looks at.

use std::sync::Arc;

use store::definition::ColumnKind;
use store::value::{Value, ValueRef};
use store::{RowBuf, Table};

/// Which of the tables, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    /// The second table of a join, or the row that was to be inserted.
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
    pub(super) first: Named,
    pub(super) second: Option<Named>,
    /// Rows of the first table come even where the second has none for them.
    pub(super) left: bool,
}

/// A table by its name, or the one that the text gives it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) table: Arc<Table>,
}

/// A table and one of its rows.
pub(super) type Row<'g> = (&'g Table, &'g RowBuf);

/// What stands for one side of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing<'g> {
    Nothing,
    Row(Row<'g>),
    /// A row that is not stored.
    Values(&'g [ValueRef<'g>]),
}

/// The rows at hand and the statement's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'g> {
    pub(super) first: Standing<'g>,
    pub(super) second: Standing<'g>,
    pub(super) parameters: &'g [Value],
}

impl<'g> Given<'g> {
    /// A row of the outer table, with the inner one that it leads to.
    pub(super) fn pair(side: Side, outer: Row<'g>, inner: Option<Row<'g>>, parameters: &'g [Value]) -> Self {
        let (outer, inner) = (Standing::Row(outer), inner.map_or(Standing::Nothing, Standing::Row));
        match side {
            Side::First => Self { first: outer, second: inner, parameters },
            Side::Second => Self { first: inner, second: outer, parameters },
        }
    }

    /// What a column holds; NULL where its table has no row.
    #[inline]
    pub(super) fn column(&self, place: Place) -> ValueRef<'g> {
        let standing = match place.side {
            Side::First => self.first,
            Side::Second => self.second,
        };
        match standing {
            Standing::Row((table, row)) => table.column(row, place.column),
            Standing::Values(values) => values.get(place.column).copied().unwrap_or(ValueRef::Null),
            Standing::Nothing => ValueRef::Null,
        }
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
    /// A statement on one table.
    pub(super) fn of(named: Named) -> Self {
        Self { first: named, second: None, left: false }
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

    /// What kind of values a column has.
    pub(super) fn kind(&self, place: Place) -> Option<ColumnKind> {
        self.table(place.side).map(|table| table.def().columns[place.column].kind)
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

    /// The stored column of this name, behind a table's name or not, whose values compare by their bytes. Names that
    /// mean something else, or two things, are SQLite's.
    pub(super) fn column(&self, of: Option<&str>, name: &str) -> Option<Place> {
        let place = self.any_column(of, name)?;
        let def = self.table(place.side)?.def();
        def.columns[place.column].collation.is_binary().then_some(place)
    }

    /// The same, however its values compare.
    pub(super) fn any_column(&self, of: Option<&str>, name: &str) -> Option<Place> {
        let mut found = self.sides().filter_map(|(side, own, table)| {
            let meant = of.is_none_or(|of| of.eq_ignore_ascii_case(own));
            let column = table.def().column_index(name).filter(|_| meant)?;
            Some((Place { side, column }, &table.def().columns[column]))
        });
        let (place, _) = found.next().filter(|(_, def)| def.is_visible())?;
        found.next().is_none().then_some(place)
    }
}
