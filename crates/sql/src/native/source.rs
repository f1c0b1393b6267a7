//! Where the rows of a query come from: those of one table, and from each to those of a second one.

use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{KeyBounds, View};

use super::access::{Access, Range, Stop, Walk, Way};
use super::grouping::Grouping;
use super::join::Join;
use super::recognise::Where;
use super::scope::{Given, Place, Scope, Side};
use super::values::with_values;

/// How the rows of the outer table are found, and those of the inner one for each.
#[derive(Debug)]
pub(super) struct Source {
    access: Access,
    side: Side,
    join: Option<Join>,
    /// The inner table may be the smaller one, and something leads from it to the rows of this.
    reversible: bool,
}

impl From<Access> for Source {
    /// The rows of the only table.
    fn from(access: Access) -> Self {
        Self { access, side: Side::First, join: None, reversible: false }
    }
}

/// The table whose rows are all read for aggregates of them, unless SQLite may find an index of use: for the condition,
/// or for a single extreme.
pub(super) fn whole(scope: &Scope, wanted: &Where, grouping: &Grouping) -> Option<Source> {
    let table = scope.alone()?;
    let tests = wanted.as_tests(scope)?;
    let def = table.def();
    let indexes = || table.indexes().iter().map(|index| index.def());
    let first = |index: &IndexDef| index.columns.first().copied();
    let leads = |place: Place| {
        def.primary_key.contains(&place.column) || indexes().any(|index| first(index) == Some(place.column))
    };
    // Of an expression, or of some rows: what it is of use for takes more to tell.
    let is_made = |index: &IndexDef| {
        index.predicate.is_some() || first(index).is_some_and(|column| def.columns[column].hidden)
    };
    let served = grouping.extreme().is_some_and(leads)
        || (!tests.is_empty() && indexes().any(is_made))
        || tests.iter().any(|test| test.reads(&leads));
    (!served).then(|| Access::all(table).into())
}

/// What leads to the rows of a statement with these conditions. `of_join`: those that stand behind `ON`.
pub(super) fn led(scope: &Scope, of_join: &Where, wanted: &Where) -> Option<Source> {
    // Of a left join these conditions are on the second table alone; the others come after it.
    if scope.left && (!of_join.tests.is_empty() || !of_join.of_side(Side::First).is_empty()) {
        return None;
    }
    if scope.left && !(wanted.joined.is_empty() && wanted.of_side(Side::Second).is_empty()) {
        return None;
    }
    let both = [of_join, wanted];
    let serves = |wanted: &&Where| wanted.tests.iter().any(|test| test.reads(&|at| may_lead(scope, at)));
    let lists = |wanted: &&Where| !wanted.listed.is_empty() || !wanted.elements.is_empty();
    if both.iter().any(serves) || both.iter().any(lists) {
        return None;
    }
    let sides = if scope.left { &[Side::First][..] } else { &[Side::First, Side::Second] };
    sides.iter().find_map(|&side| Source::from_side(scope, both, side))
}

/// Whether a condition on a column might find an index of use, which SQLite would.
fn may_lead(scope: &Scope, place: Place) -> bool {
    scope.table(place.side).is_none_or(|table| {
        let is_made = |column: &usize| table.def().columns[*column].hidden;
        let mut indexes = table.indexes().iter().map(|index| index.def());
        table.def().is_key(place.column)
            || indexes.any(|index| {
                index.predicate.is_some()
                    || index.columns.contains(&place.column)
                    || index.columns.iter().any(is_made)
            })
    })
}

impl Source {
    /// The source that begins with the table of this side.
    fn from_side(scope: &Scope, both: [&Where; 2], side: Side) -> Option<Self> {
        let table = scope.table(side)?;
        let of_side =
            |side: Side| both.iter().rev().flat_map(|wanted| wanted.of_side(side)).collect::<Vec<_>>();
        let access = Access::by(table, &of_side(side))?;
        let Some(inner) = scope.table(side.other()) else { return Some(access.into()) };
        let links: Vec<_> = both.iter().rev().flat_map(|wanted| wanted.links(side.other())).collect();
        let join = Join::of(inner, &links, &of_side(side.other()), scope.left)?;
        let leads = |column: usize| {
            let first = |columns: &[usize]| columns.first() == Some(&column);
            first(&table.def().primary_key) || table.indexes().iter().any(|index| first(&index.def().columns))
        };
        let reversible = !scope.left && links.iter().any(|(_, outer)| leads(*outer));
        Some(Self { access, side, join: Some(join), reversible })
    }

    /// How the rows of the only table are found.
    pub(super) fn alone(&self) -> Option<&Access> {
        self.join.is_none().then_some(&self.access)
    }

    /// Whether SQLite has to say which rows are meant.
    pub(super) fn is_plain(&self, parameters: &[Value]) -> bool {
        self.access.is_plain(parameters)
    }

    /// Gives `take` each row.
    #[inline]
    pub(super) fn each(
        &mut self,
        walk: &mut Walk<'_>,
        range: Range,
        take: &mut impl FnMut(Given<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let Self { access, side, join, .. } = self;
        let (side, parameters) = (*side, walk.parameters);
        let Some(join) = join else {
            return access.each(walk, range, &mut |_, row, _| take(Given::pair(side, row, None, parameters)));
        };
        join.begin();
        access.each(walk, range, &mut |walk, row, scan| {
            if let Some(scan) = scan {
                join.look_ahead(walk, row.0, std::iter::once(row.1).chain(scan.ahead()));
            }
            join.each(walk, row, &mut |inner| take(Given::pair(side, row, inner, parameters)))
        })
    }

    /// Whether the rows are better found from the other end: the conditions leave more of them than the inner table
    /// has.
    pub(super) fn is_long_way(&self, view: &View<'_>, parameters: &[Value]) -> bool {
        let Access { table, equals, way, .. } = &self.access;
        let (Way::Index(index), Some(join)) = (*way, &self.join) else { return false };
        let inner = join.table.rows();
        if !self.reversible || inner >= table.rows() || join.table.reads_through() {
            return false;
        }
        with_values(table, equals, parameters, |values| {
            values.is_some_and(|values| {
                let bounds = KeyBounds::equal(values.iter().copied().map(ValueRef::to_owned).collect());
                view.estimate(&table.indexes()[index], &bounds) > inner
            })
        })
    }
}
