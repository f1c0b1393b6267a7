//! How a table can be read for given conditions, and what that costs.

use std::fmt::Write as _;

use dialect::Forced;
use pgcatalog::function::like;
use pgcatalog::shape::{Column, Head, Shape};
use sqlite::{Constraint, Operator, Request};
use store::definition::{Collation, ColumnKind};
use store::value::{Value, ValueRef};
use store::{Index, KeyBounds, Store, Table};

use super::coerce::{Sought, bound, sought};
use super::elements::Asked;
use crate::facts::is_row_number;

/// What SQLite's planner counts in: reading one row of a table scan is about 1.
mod cost {
    /// One row through an index: the entry, then the row.
    pub(super) const INDEXED_ROW: f64 = 2.0;
    /// Finding one key by its hash.
    pub(super) const LOOKUP: f64 = 2.0;
    /// Going down an index once.
    pub(super) const DESCENT: f64 = 4.0;
    /// A walk through the hash index before the first row of a scan.
    pub(super) const SCAN: f64 = 20.0;
}

/// Values in an `IN` list when SQLite does not say: what its own planner assumes for a short one.
const IN_VALUES: u64 = 10;
/// As many rows as a table that reads through is taken to have: a lookup by keys is better than any scan.
const READ_THROUGH_ROWS: u64 = 1_000_000_000;
/// The share of rows that a range with unknown ends takes, as in SQLite's own planner.
const RANGE_SHARE: u64 = 4;
/// The share that `LIKE` with an unknown pattern takes.
const LIKE_SHARE: u64 = 8;
/// SQLite trusts a table with as many conditions at most; the others it checks again, whatever the table says.
const NOT_CHECKED_MAX: usize = 16;
/// What comes behind the equal columns: two ends of a range, a predicate, the argument itself.
const BEHIND_EQUAL: usize = 4;
/// Rows to an element that the statement does not say.
const ROWS_PER_ELEMENT: u64 = 10;
/// What `EXPLAIN QUERY PLAN` says of a scan.
const PLAIN_SCAN: &str = "every row";

/// A way to read a table; holds no values, so that it fits every run of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Every row, by the hash index.
    Scan,
    /// By the whole primary key, or the row's number.
    Key(KeyPlan),
    /// Along an ordered index.
    Index(IndexPlan),
    /// The rows of an array with certain elements.
    Elements(ElementsPlan),
    /// The rows of one of the executor's lists; the argument says which.
    List,
    /// The rows whose keys the executor picked.
    Pick,
}

/// One key, or one for each value of an `IN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlan {
    /// For each key column, the argument it equals.
    pub(crate) columns: Vec<Equal>,
}

/// Rows by the elements of an array; the first argument is what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementsPlan {
    /// Position among the table's indexes.
    pub(crate) index: usize,
    pub(crate) asked: Asked,
}

/// A range of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexPlan {
    /// Position among the table's indexes.
    pub(crate) index: usize,
    /// The leading columns that equal a value.
    pub(crate) equal: Vec<Equal>,
    /// Ends of the range in the next column.
    pub(crate) lower: Option<End>,
    /// See `lower`.
    pub(crate) upper: Option<End>,
    /// The argument that is a `LIKE` pattern for the next column.
    pub(crate) like: Option<usize>,
    /// From the end to the beginning.
    pub(crate) reverse: bool,
    /// Where those come that have NULL in the next column.
    pub(crate) nulls: Nulls,
}

/// Where the rows of a walk come that have NULL in the column behind the equal ones of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// Where the index has them: before all values, where it is not descending.
    #[default]
    AsIndexed,
    First,
    Last,
}

impl Nulls {
    /// The two parts of an index behind these equal columns in the order of the walk; `None`: it is walked as it is.
    pub(crate) fn parts(self, index: &Index, equal: &[Value]) -> Option<[KeyBounds; 2]> {
        let [with_null, others] = match self {
            Self::AsIndexed => return None,
            Self::First | Self::Last => index.by_null_behind(equal.to_vec()),
        };
        Some(if self == Self::First { [with_null, others] } else { [others, with_null] })
    }
}

/// A column that equals an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Equal {
    pub(crate) argument: usize,
    /// `IS`: NULL equals NULL.
    pub(crate) null_matches: bool,
    /// The argument is a literal of the statement, so it has no type of its own.
    pub(crate) literal: bool,
    /// The argument is a list; any of its values will do.
    pub(crate) in_list: bool,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) argument: usize,
    pub(crate) included: bool,
    pub(crate) literal: bool,
}

/// A plan with its price and the conditions it takes.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    plan: Plan,
    words: String,
    rows: u64,
    cost: f64,
    unique: bool,
    ordered: bool,
    /// In the order of the plan's arguments.
    takes: Vec<Constraint>,
    /// Of these, the one that holds by the plan alone.
    holds: Option<Constraint>,
}

impl Choice {
    /// Tells SQLite.
    pub(crate) fn answer(self, request: &mut Request<'_>, number: impl FnOnce(Plan) -> i32) {
        for (argument, constraint) in self.takes.iter().enumerate() {
            // A list is taken whole. Were SQLite to loop over it, it would compare each value as one without a
            // type, and `text IN (SELECT number ...)` would miss rows.
            if constraint.operator == Operator::Equal && request.is_in(*constraint) {
                request.take_in_at_once(*constraint);
            }
            // All others SQLite checks again.
            request.take(*constraint, argument, self.holds == Some(*constraint));
        }
        if self.unique {
            request.set_unique();
        }
        if self.ordered {
            request.set_ordered();
        }
        request.answer(number(self.plan), &self.words, self.cost, self.rows);
    }

    /// The price with the sort that SQLite has to add.
    fn total(&self, sort: bool) -> f64 {
        let rows = self.rows.max(1) as f64;
        if sort && !self.ordered { self.cost + rows * rows.log2().max(1.0) } else { self.cost }
    }
}

/// A condition with what is known of its value while planning.
struct Condition<'a> {
    constraint: Constraint,
    /// How it compares texts; `None`: `LIKE`, which has a way of its own.
    collation: Option<Collation>,
    literal: Option<ValueRef<'a>>,
    is_in: bool,
}

impl Condition<'_> {
    fn equal(&self, argument: usize) -> Equal {
        Equal {
            argument,
            null_matches: self.constraint.operator != Operator::Equal,
            literal: self.literal.is_some(),
            in_list: self.is_in,
        }
    }
}

/// How many combinations of values the equal columns have, as a guess where there are lists.
fn combinations(equal: &[Equal]) -> u64 {
    let lists = equal.iter().filter(|equal| equal.in_list).count();
    IN_VALUES.saturating_pow(u32::try_from(lists).unwrap_or(u32::MAX))
}

struct Planner<'p, 'a> {
    store: &'p Store,
    table: &'p Table,
    shape: &'p Shape,
    conditions: Vec<Condition<'a>>,
    order: Vec<(i32, bool)>,
    rows: u64,
    /// What the statement asks for, and the condition by which it does.
    forced: Option<(Forced, Constraint)>,
}

/// The cheapest way to read the table under the conditions at hand; `None` where the statement asks for an index that
/// does not have all of its rows.
pub(crate) fn choose(
    store: &Store,
    table: &Table,
    shape: &Shape,
    request: &mut Request<'_>,
) -> Option<Choice> {
    let constraints: Vec<Constraint> = request.constraints().collect();
    let forced = forced(shape, &constraints, request);
    if forced.is_none()
        && let Some(special) = special(shape, &constraints)
    {
        return Some(special);
    }
    let conditions = constraints.into_iter().filter(|constraint| constraint.operator != Operator::Other);
    let conditions: Vec<Constraint> = conditions.collect();
    let conditions = conditions.into_iter().filter_map(|constraint| {
        let collation = match constraint.operator {
            Operator::Like | Operator::Function(_) => None,
            _ => Some(request.collation(constraint)?),
        };
        Some(Condition {
            constraint,
            collation,
            literal: request.literal(constraint),
            is_in: constraint.operator == Operator::Equal && request.is_in(constraint),
        })
    });
    let planner = Planner {
        store,
        table,
        shape,
        conditions: conditions.collect(),
        order: request.order_by(),
        // What is not here yet is found by its key alone.
        rows: table.rows().max(if table.reads_through() { READ_THROUGH_ROWS } else { 1 }),
        forced,
    };
    planner.cheapest()
}

/// The condition on one of the executor's own columns.
fn own(shape: &Shape, constraints: &[Constraint], head: Head) -> Option<Constraint> {
    let is_own = |constraint: &&Constraint| {
        constraint.operator == Operator::Equal
            && usize::try_from(constraint.column).ok().and_then(|at| shape.column(at))
                == Some(Column::Head(head))
    };
    constraints.iter().find(is_own).copied()
}

/// `INDEXED BY`, which the table's argument says.
fn forced(
    shape: &Shape,
    constraints: &[Constraint],
    request: &mut Request<'_>,
) -> Option<(Forced, Constraint)> {
    let constraint = own(shape, constraints, Head::List)?;
    let Some(ValueRef::Integer(argument)) = request.literal(constraint) else { return None };
    Some((Forced::of_argument(argument)?, constraint))
}

/// The executor's own ways, which beat all others.
fn special(shape: &Shape, constraints: &[Constraint]) -> Option<Choice> {
    let ways = [(Head::List, Plan::List, "row list"), (Head::Pick, Plan::Pick, "picked rows")];
    ways.into_iter().find_map(|(head, plan, words)| {
        let constraint = own(shape, constraints, head)?;
        Some(Choice {
            plan,
            words: words.to_owned(),
            rows: 1,
            cost: 1.0,
            unique: false,
            ordered: false,
            takes: vec![constraint],
            holds: Some(constraint),
        })
    })
}

impl Planner<'_, '_> {
    fn cheapest(&self) -> Option<Choice> {
        let Some((forced, constraint)) = self.forced else { return Some(self.cheapest_of_all()) };
        let mut choice = match forced {
            Forced::NoIndex => Some(self.by_key().unwrap_or_else(|| self.scan())),
            Forced::Index(at) if at < self.table.indexes().len() => {
                // One that is still being filled has to be waited for: every row will do until then.
                let filling = !self.table.indexes()[at].is_usable();
                self.by_index(at).or_else(|| filling.then(|| self.scan()))
            }
            Forced::Index(_) => self.by_key(),
        }?;
        choice.takes.push(constraint);
        choice.holds = Some(constraint);
        Some(choice)
    }

    fn cheapest_of_all(&self) -> Choice {
        let sort = !self.order.is_empty();
        let indexes = (0..self.table.indexes().len()).filter_map(|index| self.by_index(index));
        let all = self.by_key().into_iter().chain(indexes);
        all.fold(self.scan(), |best, other| if other.total(sort) < best.total(sort) { other } else { best })
    }

    fn scan(&self) -> Choice {
        Choice {
            plan: Plan::Scan,
            words: PLAIN_SCAN.to_owned(),
            rows: self.rows,
            cost: cost::SCAN + self.rows as f64,
            unique: false,
            ordered: false,
            takes: Vec::new(),
            holds: None,
        }
    }

    /// The stored column that a constraint is about; the row's number is the key of a table without one, and of
    /// one with a single INTEGER key.
    fn is_about(&self, constraint: Constraint, stored: Option<usize>) -> bool {
        match usize::try_from(constraint.column) {
            Ok(at) => match (self.shape.column(at), stored) {
                (Some(Column::Stored(own)), Some(stored)) => self.is_same(own, stored),
                _ => false,
            },
            Err(_) => match stored {
                None => true,
                Some(column) => is_row_number(self.table, column),
            },
        }
    }

    /// Whether two columns hold the same: each index has hidden columns of its own for its expressions.
    fn is_same(&self, one: usize, other: usize) -> bool {
        let columns = &self.table.def().columns;
        one == other
            || (columns[one].hidden
                && columns[other].hidden
                && columns[one].declared == columns[other].declared
                && columns[one].generated == columns[other].generated)
    }

    /// A condition on a column that compares texts as the index at hand orders them.
    fn find(
        &self,
        stored: Option<usize>,
        collation: Collation,
        operators: &[Operator],
    ) -> Option<&Condition<'_>> {
        // What is no text compares the same under each collation.
        let textless = stored.is_none_or(|column| {
            let texts = [ColumnKind::Text, ColumnKind::Numeric, ColumnKind::Any];
            !texts.contains(&self.table.def().columns[column].kind)
        });
        // Texts of an enum type are equal where their bytes are; their order no index has.
        let equal = [Operator::Equal, Operator::Is, Operator::IsNull];
        let bytewise = collation.is_binary() && operators.iter().all(|operator| equal.contains(operator));
        let compares = |own: Collation| own == collation || (bytewise && matches!(own, Collation::Enum(_)));
        let fits = |condition: &&Condition<'_>| {
            operators.contains(&condition.constraint.operator)
                && self.is_about(condition.constraint, stored)
                && (textless || condition.collation.is_none_or(compares))
        };
        // One plain value is better than a list of them.
        let mut found = self.conditions.iter().filter(fits);
        let first = found.next()?;
        if first.is_in {
            Some(found.find(|condition| !condition.is_in).unwrap_or(first))
        } else {
            Some(first)
        }
    }

    /// Whether a column's texts may equal one number: '1' and '1.0' are two keys, and both are 1 where SQLite compares
    /// them with a number. Such a key is no promise of one row, on which SQLite would leave out whole joins.
    fn holds_text(&self, column: Option<usize>) -> bool {
        let kind = |column: usize| self.table.def().columns.get(column).map(|column| column.kind);
        matches!(column.and_then(kind), Some(ColumnKind::Text | ColumnKind::Any))
    }

    /// By the whole primary key.
    fn by_key(&self) -> Option<Choice> {
        let key = &self.table.def().primary_key;
        let columns: Vec<Option<usize>> =
            if key.is_empty() { vec![None] } else { key.iter().map(|&column| Some(column)).collect() };
        let mut found = Vec::with_capacity(columns.len());
        for column in &columns {
            found.push(self.find(*column, Collation::Binary, &[Operator::Equal, Operator::Is])?);
        }
        // A key column is never NULL, so `IS NULL` finds nothing and IS is as good as =.
        let equals = found.iter().enumerate().map(|(argument, condition)| condition.equal(argument));
        let equals: Vec<Equal> = equals.map(|equal| Equal { null_matches: false, ..equal }).collect();
        let names: Vec<String> =
            columns.iter().map(|column| format!("{}=?", self.column_name(*column))).collect();
        let values = combinations(&equals);
        let unique = values == 1 && !columns.iter().any(|column| self.holds_text(*column));
        Some(Choice {
            plan: Plan::Key(KeyPlan { columns: equals }),
            words: format!("{} ({})", self.table.def().key_name(), names.join(" AND ")),
            rows: values,
            cost: cost::LOOKUP * values as f64,
            unique,
            ordered: unique,
            takes: found.iter().map(|condition| condition.constraint).collect(),
            holds: None,
        })
    }

    /// By an index over the elements of an array.
    fn by_elements(&self, position: usize, array: usize) -> Option<Choice> {
        let index = &self.table.indexes()[position];
        let predicate = index.def().predicate.map(|predicate| self.predicate_holds(predicate));
        if !index.is_usable() || predicate.is_some_and(|condition| condition.is_none()) {
            return None;
        }
        let known = (0..).zip(Asked::ALL).filter(|(_, (_, of, ..))| *of == index.elements_of());
        let mut ways = known.filter_map(|(number, (asked, .., words))| {
            let asks = |condition: &&Condition<'_>| {
                condition.constraint.operator == Operator::Function(number)
                    && self.is_about(condition.constraint, Some(array))
            };
            Some((self.conditions.iter().find(asks)?, asked, words))
        });
        let (condition, asked, words) = ways.next()?;
        let rows = self.estimate_elements(index, asked, condition.literal);
        Some(Choice {
            plan: Plan::Elements(ElementsPlan { index: position, asked }),
            words: format!("{} ({} {words} ?)", index.name(), self.column_name(Some(array))),
            rows,
            cost: cost::DESCENT + cost::INDEXED_ROW * rows as f64,
            unique: false,
            ordered: false,
            takes: [condition].into_iter().chain(predicate.flatten()).map(|taken| taken.constraint).collect(),
            holds: None,
        })
    }

    fn estimate_elements(&self, index: &Index, asked: Asked, wanted: Option<ValueRef<'_>>) -> u64 {
        let view = self.store.view();
        let of = |value: &Value| view.estimate(index, &KeyBounds::equal(vec![value.clone()]));
        let wanted = wanted.map(|value| asked.wanted(value).unwrap_or_default());
        let rows = match (asked, wanted) {
            (Asked::Has | Asked::Overlaps, Some(any)) => any.iter().map(of).sum(),
            (Asked::Contains | Asked::ContainsJson, Some(all)) => {
                all.iter().map(of).min().unwrap_or(self.rows)
            }
            // As many rows to an element as SQLite assumes of an index.
            (_, None) => ROWS_PER_ELEMENT,
        };
        rows.clamp(1, self.rows)
    }

    /// Along one index: equal leading columns, then a range or a pattern, in its order where that is asked for.
    fn by_index(&self, position: usize) -> Option<Choice> {
        let index = &self.table.indexes()[position];
        if let Some(array) = index.def().elements {
            return self.by_elements(position, array);
        }
        let columns = &index.def().columns;
        let predicate = index.def().predicate.map(|predicate| self.predicate_holds(predicate));
        if !index.is_usable() || predicate.is_some_and(|condition| condition.is_none()) {
            return None;
        }
        let mut plan = IndexPlan { index: position, ..IndexPlan::default() };
        let mut takes: Vec<&Condition<'_>> = Vec::new();
        let mut words = Vec::new();
        // The argument that forces the index comes behind the conditions, and must not be checked again.
        let most = if self.forced.is_some() { NOT_CHECKED_MAX - BEHIND_EQUAL } else { columns.len() };
        for (at, &column) in columns.iter().enumerate().take(most) {
            let operators = [Operator::Equal, Operator::Is, Operator::IsNull];
            let Some(condition) = self.find(Some(column), index.collation(at), &operators) else { break };
            plan.equal.push(condition.equal(takes.len()));
            takes.push(condition);
            words.push(format!("{}=?", self.column_name(Some(column))));
        }
        if let Some(&next) = columns.get(plan.equal.len()) {
            let collation = index.collation(plan.equal.len());
            self.take_range((next, collation), &mut plan, &mut takes, &mut words);
        }
        // It is taken, so that SQLite knows what this way of reading rests on.
        takes.extend(predicate.flatten());
        let values = combinations(&plan.equal);
        // One range after the other has no order as a whole.
        let order = self.order_of(index, plan.equal.len()).filter(|_| values == 1);
        let ordered = order.is_some();
        (plan.reverse, plan.nulls) = order.unwrap_or_default();
        if takes.is_empty() && !ordered && index.def().predicate.is_none() && self.forced.is_none() {
            return None;
        }
        let rows = self.estimate(index, &plan, &takes);
        let mut text = index.name().to_owned();
        if !words.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(text, " ({})", words.join(" AND "));
        }
        let single = index.def().unique
            && plan.equal.len() == columns.len()
            && values == 1
            && plan.equal.iter().all(|equal| !equal.null_matches);
        let unique = single && !columns.iter().any(|column| self.holds_text(Some(*column)));
        Some(Choice {
            plan: Plan::Index(plan),
            words: text,
            rows: if single { 1 } else { rows },
            cost: cost::DESCENT * values as f64 + cost::INDEXED_ROW * rows as f64,
            unique,
            ordered,
            takes: takes.iter().map(|condition| condition.constraint).collect(),
            holds: None,
        })
    }

    fn take_range<'s>(
        &'s self,
        (column, collation): (usize, Collation),
        plan: &mut IndexPlan,
        takes: &mut Vec<&'s Condition<'s>>,
        words: &mut Vec<String>,
    ) {
        let name = self.column_name(Some(column));
        let mut end = |operators: &[Operator], included: Operator, sign: &str| {
            let condition = self.find(Some(column), collation, operators)?;
            let included = condition.constraint.operator == included;
            let argument = takes.len();
            takes.push(condition);
            words.push(format!("{name}{sign}?"));
            Some(End { argument, included, literal: condition.literal.is_some() })
        };
        plan.lower = end(&[Operator::Greater, Operator::GreaterOrEqual], Operator::GreaterOrEqual, ">");
        plan.upper = end(&[Operator::Less, Operator::LessOrEqual], Operator::LessOrEqual, "<");
        if plan.lower.is_some()
            || plan.upper.is_some()
            || self.table.def().columns[column].kind != ColumnKind::Text
        {
            return;
        }
        if let Some(condition) = self.find(Some(column), collation, &[Operator::Like]) {
            let known = condition.literal.map(|pattern| like_range(&pattern.to_owned()).is_some());
            if known != Some(false) {
                plan.like = Some(takes.len());
                takes.push(condition);
                words.push(format!("{name} LIKE ?"));
            }
        }
    }

    /// The condition by which a partial index has every row that is asked for: it says that the predicate is true.
    fn predicate_holds(&self, predicate: usize) -> Option<&Condition<'_>> {
        self.conditions.iter().find(|condition| {
            condition.constraint.operator == Operator::Equal
                && self.is_about(condition.constraint, Some(predicate))
                && condition.literal == Some(ValueRef::Integer(1))
        })
    }

    /// Whether the index, behind so many equal columns, gives the order asked for, and if so whether backwards, and
    /// where NULL of the next column comes.
    fn order_of(&self, index: &Index, equal: usize) -> Option<(bool, Nulls)> {
        let columns = &index.def().columns;
        // An order is by the columns' own collations.
        let own = |at: usize| index.collation(at) == self.table.def().columns[columns[at]].collation;
        let (mut at, mut backwards, mut nulls) = (equal, None, Nulls::AsIndexed);
        let mut absent = None;
        for &(column, descending) in &self.order {
            let column = match self.shape.column(usize::try_from(column).ok()?)? {
                Column::Stored(column) => column,
                Column::Absent(column) => {
                    absent = Some((column, descending));
                    continue;
                }
                Column::Head(_) => return None,
            };
            let absent = absent.take();
            if (0..equal).any(|at| self.is_same(columns[at], column) && own(at)) {
                continue;
            }
            if !columns.get(at).is_some_and(|&next| self.is_same(next, column)) || !own(at) {
                return None;
            }
            let turned = descending != index.def().is_descending(at);
            if *backwards.get_or_insert(turned) != turned {
                return None;
            }
            match absent {
                // Its rows without a value are all together only where nothing stands before it.
                Some(pair) if pair == (column, descending) && at == equal => {
                    nulls = if descending { Nulls::First } else { Nulls::Last };
                }
                Some(_) => return None,
                None => {}
            }
            at += 1;
        }
        (!self.order.is_empty() && absent.is_none()).then_some((backwards.unwrap_or(false), nulls))
    }

    fn estimate(&self, index: &Index, plan: &IndexPlan, takes: &[&Condition<'_>]) -> u64 {
        if let Some(bounds) = self.known_bounds(index, plan, takes) {
            return self.store.view().estimate(index, &bounds);
        }
        let len = index.len().max(1);
        let mut rows = len;
        if !plan.equal.is_empty() {
            // Each further column divides the rest.
            rows = len / distinct(index, plan.equal.len()).max(1);
        }
        rows = rows.saturating_mul(combinations(&plan.equal));
        for _ in [plan.lower, plan.upper].iter().flatten() {
            rows /= RANGE_SHARE;
        }
        if plan.like.is_some() {
            rows /= LIKE_SHARE;
        }
        rows.clamp(1, len)
    }

    /// The range itself, where the statement spells out every value.
    fn known_bounds(&self, index: &Index, plan: &IndexPlan, takes: &[&Condition<'_>]) -> Option<KeyBounds> {
        if takes.is_empty() {
            return Some(KeyBounds::ALL);
        }
        if takes.iter().any(|condition| condition.is_in) {
            return None;
        }
        let literals: Option<Vec<Value>> =
            takes.iter().map(|condition| Some(condition.literal?.to_owned())).collect();
        let literals = literals?;
        let values = |argument: usize| literals.get(argument).cloned().unwrap_or_default();
        range(self.table, index, plan, &values)
    }

    fn column_name(&self, column: Option<usize>) -> &str {
        column.map_or("rowid", |column| &self.table.def().columns[column].name)
    }
}

/// How many different values the leading columns have, as a guess: the store keeps no such count, and a unique
/// index has as many as rows.
fn distinct(index: &Index, leading: usize) -> u64 {
    let columns = index.def().columns.len();
    if index.def().unique && leading == columns {
        return index.len();
    }
    // About ten rows for each full value, as SQLite assumes without statistics, and fewer columns say less.
    let share = (leading as f64) / (columns as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough positive estimate")]
    let distinct = (index.len() as f64 / 10.0).max(1.0).powf(share) as u64;
    distinct
}

/// The bounds of an index range for given arguments; `None` where no row can match, or a value's meaning is
/// unclear. A list's place is left to the caller.
pub(crate) fn range(
    table: &Table,
    index: &Index,
    plan: &IndexPlan,
    values: &dyn Fn(usize) -> Value,
) -> Option<KeyBounds> {
    let columns = &index.def().columns;
    let mut prefix = Vec::with_capacity(plan.equal.len() + 1);
    for (equal, &column) in plan.equal.iter().zip(columns) {
        prefix.push(equal_value(table.def().columns[column].kind, *equal, values(equal.argument))?);
    }
    let Some(&next) = columns.get(prefix.len()) else { return Some(KeyBounds::equal(prefix)) };
    let next =
        Next { kind: table.def().columns[next].kind, descending: index.def().is_descending(prefix.len()) };
    ends(next, plan, &prefix, values)
}

fn equal_value(kind: ColumnKind, equal: Equal, value: Value) -> Option<Value> {
    if value.is_null() && equal.null_matches {
        return Some(Value::Null);
    }
    match sought(kind, value, equal.literal) {
        Sought::Value(value) => Some(value),
        Sought::Nothing | Sought::Unclear => None,
    }
}

/// The column of an index behind a prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) kind: ColumnKind,
    pub(crate) descending: bool,
}

/// The range within a prefix that the plan's ends or pattern describe; `None`: no row.
pub(crate) fn ends(
    next: Next,
    plan: &IndexPlan,
    prefix: &[Value],
    values: &dyn Fn(usize) -> Value,
) -> Option<KeyBounds> {
    let bounds = ascending_ends(next.kind, plan, prefix, values)?;
    Some(if next.descending { KeyBounds { lower: bounds.upper, upper: bounds.lower } } else { bounds })
}

fn ascending_ends(
    kind: ColumnKind,
    plan: &IndexPlan,
    prefix: &[Value],
    values: &dyn Fn(usize) -> Value,
) -> Option<KeyBounds> {
    use std::ops::Bound::{Excluded, Included};
    let with = |value: Value| prefix.iter().cloned().chain([value]).collect::<Vec<Value>>();
    if let Some(argument) = plan.like {
        // A pattern without a fixed beginning, or one that is no text, may match anything.
        let Some((from, to)) = like_range(&values(argument)) else { return Some(whole(prefix)) };
        return Some(KeyBounds { lower: Included(with(from)), upper: Excluded(with(to)) });
    }
    let mut bounds = whole(prefix);
    for (end, lower) in [(plan.lower, true), (plan.upper, false)] {
        let Some(end) = end else { continue };
        let value = values(end.argument);
        if value.is_null() {
            return None;
        }
        let Some(value) = bound(kind, value, end.literal) else { continue };
        // SQLite makes such a bound of `GLOB 'a*'`, which a blob may match as well; where it was written as a
        // comparison, SQLite checks it again.
        let blobs_too = matches!(kind, ColumnKind::Blob | ColumnKind::Any) && matches!(value, Value::Text(_));
        if blobs_too && !lower {
            continue;
        }
        let edge = if end.included { Included(with(value)) } else { Excluded(with(value)) };
        if lower {
            bounds.lower = edge;
        } else {
            bounds.upper = edge;
        }
    }
    if plan.lower.is_none() && plan.upper.is_some() {
        // NULL sorts before every value and is less than none.
        bounds.lower = Excluded(with(Value::Null));
    }
    Some(bounds)
}

fn whole(prefix: &[Value]) -> KeyBounds {
    if prefix.is_empty() { KeyBounds::ALL } else { KeyBounds::equal(prefix.to_vec()) }
}

/// The texts between which everything lies that a pattern can match. `None`: it has no fixed beginning.
fn like_range(pattern: &Value) -> Option<(Value, Value)> {
    let Value::Text(pattern) = pattern else { return None };
    let (from, to) = like::range(pattern)?;
    Some((Value::Text(from), Value::Text(to)))
}
