//! Reads a table row by row, the way a plan says.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;

use pgcatalog::shape::{Column, Head};
use sqlite::{Arguments, Cursor, Output};
use store::definition::{Collation, ColumnKind};
use store::value::{Affinity, Value, ValueRef};
use store::{
    Freshness, Index, IndexScan, KeyBounds, ReadError, RowBuf, TICKS_PER_SECOND, TableScan, View,
    ticks_between,
};

use super::coerce::{Sought, sought};
use super::elements::{Lead, keys_with};
use super::identity::Identity;
use super::keys::{KeyList, is_plain};
use super::plan::{ElementsPlan, Equal, IndexPlan, KeyPlan, Next, Nulls, Plan, ends};
use super::{ListRow, TableModule};
use crate::facts::row_number;

/// A cursor of one statement.
#[derive(Debug)]
pub(crate) struct TableCursor {
    module: Rc<TableModule>,
    source: Source,
    row: RowBuf,
    at_end: bool,
    /// What `INDEXED BY` put behind the arguments. The plan answers for it, but within an OR SQLite checks it again.
    forced: i64,
    /// Tells it from the other cursors of its connection.
    number: u64,
}

/// Where the rows come from.
#[derive(Debug)]
enum Source {
    Empty,
    Scan(Box<TableScan>),
    /// One lookup for each key.
    Keys(KeyList),
    /// One range after the other.
    Ranges {
        index: usize,
        reverse: bool,
        waiting: VecDeque<KeyBounds>,
        current: Option<Box<IndexScan>>,
    },
    /// The rows of an executor's list; this is the next one's number.
    List {
        list: usize,
        next: usize,
    },
}

impl TableCursor {
    pub(super) fn new(module: &Rc<TableModule>) -> Self {
        let number = module.sight.foresight.number();
        let (module, source, row) = (Rc::clone(module), Source::Empty, RowBuf::new());
        Self { module, source, row, at_end: true, forced: 0, number }
    }

    /// `spare` is an empty list, to be used again.
    fn source(&self, plan: &Plan, arguments: &Arguments<'_>, spare: KeyList) -> Result<Source, String> {
        let module = &self.module;
        match plan {
            Plan::Scan => self.scan(),
            Plan::Key(plan) => self.keys(plan, arguments, spare),
            Plan::Index(plan) => self.ranges(plan, arguments),
            Plan::Elements(plan) => self.elements(*plan, arguments.value_ref(0)),
            Plan::List => Ok(match arguments.value(0) {
                Value::Integer(list) => {
                    Source::List { list: usize::try_from(list).unwrap_or(usize::MAX), next: 0 }
                }
                _ => Source::Empty,
            }),
            Plan::Pick => {
                let mut keys = KeyList::default();
                for key in module.sight.picked() {
                    keys.push(&key);
                }
                Ok(Source::Keys(keys))
            }
        }
    }

    fn scan(&self) -> Result<Source, String> {
        let table = &self.module.table;
        self.module.sight.with_view(|view| Ok::<_, ReadError>(Source::Scan(Box::new(view.scan(table)))))
    }

    /// The keys of a plan for a key of one column, where no value needs a conversion: by far the commonest case.
    fn plain_keys(
        &self,
        plan: &KeyPlan,
        arguments: &Arguments<'_>,
        mut keys: KeyList,
    ) -> Result<Option<KeyList>, String> {
        let [equal] = plan.columns.as_slice() else { return Ok(None) };
        let table = &self.module.table;
        let def = table.def();
        let kind = def.primary_key.first().map_or(ColumnKind::Integer, |&column| def.columns[column].kind);
        let mut plain = true;
        let mut take = |value: ValueRef<'_>| {
            plain &= is_plain(kind, value);
            if plain {
                keys.encode(table, &[value]);
            }
        };
        if equal.in_list {
            arguments.each_of_list(equal.argument, &mut take)?;
        } else {
            take(arguments.value_ref(equal.argument));
            self.module.sight.foresight.note_look_up(table, kind);
        }
        keys.sort();
        Ok(plain.then_some(keys))
    }

    /// Every combination of the values.
    fn keys(&self, plan: &KeyPlan, arguments: &Arguments<'_>, spare: KeyList) -> Result<Source, String> {
        let table = &self.module.table;
        if let Some(keys) = self.plain_keys(plan, arguments, spare)? {
            keys.prefetch(self.module.sight.store(), table);
            return Ok(Source::Keys(keys));
        }
        let def = table.def();
        let mut combinations: Vec<Vec<Value>> = vec![Vec::new()];
        for (at, equal) in plan.columns.iter().enumerate() {
            let kind =
                def.primary_key.get(at).map_or(ColumnKind::Integer, |&column| def.columns[column].kind);
            match values(kind, Collation::Binary, *equal, arguments)? {
                Values::These(values) => combinations = extended(&combinations, &values),
                // SQLite checks the condition again, so every row will do.
                Values::Unclear(_) => return self.scan(),
            }
        }
        let mut keys = KeyList::default();
        for values in &combinations {
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            keys.encode(table, &values);
        }
        keys.prefetch(self.module.sight.store(), table);
        Ok(Source::Keys(keys))
    }

    fn ranges(&self, plan: &IndexPlan, arguments: &Arguments<'_>) -> Result<Source, String> {
        let table = &self.module.table;
        let Some(index) = table.indexes().get(plan.index) else { return self.scan() };
        let kind = |at: usize| table.def().columns[index.def().columns[at]].kind;
        let mut prefixes: Vec<Vec<Value>> = vec![Vec::new()];
        for (at, equal) in plan.equal.iter().enumerate() {
            match values(kind(at), index.collation(at), *equal, arguments)? {
                Values::These(values) => prefixes = extended(&prefixes, &values),
                Values::Unclear(_) => return self.gathered(plan, index, arguments),
            }
        }
        let at = |argument: usize| arguments.value(argument);
        let bounds: VecDeque<KeyBounds> = if plan.equal.len() < index.def().columns.len() {
            let at_next = plan.equal.len();
            let next = Next { kind: kind(at_next), descending: index.def().is_descending(at_next) };
            // Within ends there is no NULL.
            let has_null = plan.lower.is_none() && plan.upper.is_none() && plan.like.is_none();
            let parts = |prefix: &Vec<Value>| plan.nulls.parts(index, prefix);
            match prefixes.first().filter(|_| has_null).and_then(parts) {
                Some(parts) => parts.into(),
                None => prefixes.iter().filter_map(|prefix| ends(next, plan, prefix, &at)).collect(),
            }
        } else {
            prefixes.into_iter().map(KeyBounds::equal).collect()
        };
        Ok(Source::Ranges { index: plan.index, reverse: plan.reverse, waiting: bounds, current: None })
    }

    /// The rows whose array has what is asked for, or may have it: SQLite looks at each again.
    fn elements(&self, plan: ElementsPlan, wanted: ValueRef<'_>) -> Result<Source, String> {
        let ElementsPlan { index: position, asked } = plan;
        let (table, sight) = (&self.module.table, &self.module.sight);
        let Some(index) = table.indexes().get(position) else { return self.scan() };
        let Some(wanted) = asked.wanted(wanted) else { return Ok(Source::Empty) };
        let any = match sight.with_view(|view| Ok::<_, ReadError>(asked.lead(view, index, wanted)))? {
            Lead::Nothing => return Ok(Source::Empty),
            Lead::Everything => return self.scan(),
            Lead::Elements { any, .. } => any,
        };
        if let [_] = any.as_slice() {
            let waiting = any.into_iter().map(|element| KeyBounds::equal(vec![element])).collect();
            return Ok(Source::Ranges { index: position, reverse: false, waiting, current: None });
        }
        Ok(Source::Keys(sight.with_view(|view| keys_with(view, table, index, &any))?))
    }

    /// A number beside a TEXT or ANY column of an index: all texts that read as this number may match, and they
    /// do not lie together. Reads the whole index and puts what may match in the order that the plan promised.
    fn gathered(&self, plan: &IndexPlan, index: &Index, arguments: &Arguments<'_>) -> Result<Source, String> {
        let table = &self.module.table;
        let columns = &index.def().columns;
        let mut wanted = Vec::with_capacity(plan.equal.len());
        for (at, equal) in plan.equal.iter().enumerate() {
            let kind = table.def().columns[columns[at]].kind;
            wanted.push(match values(kind, index.collation(at), *equal, arguments)? {
                Values::These(values) | Values::Unclear(values) => values,
            });
        }
        let order = columns[plan.equal.len()..].to_vec();
        let mut found: Vec<(Vec<Value>, Vec<u8>)> = Vec::new();
        let ranges = (plan.index, plan.reverse);
        self.module.sight.with_view(|view| {
            let mut rows = view.range(table, &table.indexes()[ranges.0], &KeyBounds::ALL, false);
            let mut row = RowBuf::new();
            while rows.next(view, &mut row)? {
                let matches = wanted.iter().enumerate().all(|(at, wanted)| {
                    let own = table.column(&row, columns[at]);
                    wanted.iter().any(|value| may_equal(own, value, index.collation(at)))
                });
                if matches {
                    let sort = order.iter().map(|&column| table.column(&row, column).to_owned()).collect();
                    found.push((sort, row.key().to_vec()));
                }
            }
            Ok::<_, ReadError>(())
        })?;
        found.sort_by(|a, b| compare_lists(index, wanted.len(), &a.0, &b.0));
        if ranges.1 {
            found.reverse();
        }
        let is_null = |(sort, _): &(Vec<Value>, Vec<u8>)| sort.first().is_some_and(Value::is_null);
        match plan.nulls {
            Nulls::AsIndexed => {}
            Nulls::First => found.sort_by_key(|row| !is_null(row)),
            Nulls::Last => found.sort_by_key(is_null),
        }
        let mut keys = KeyList::default();
        for (_, key) in &found {
            keys.push(key);
        }
        Ok(Source::Keys(keys))
    }

    /// Goes to the next row, if there is one.
    fn advance(&mut self) -> Result<bool, String> {
        let Self { module, source, row, number, .. } = self;
        let sight = &module.sight;
        if let Source::List { list, next } = source {
            *next += 1;
            return Ok(*next <= sight.list(*list).len());
        }
        sight.with_view(|view| match source {
            Source::Empty | Source::List { .. } => Ok(false),
            Source::Scan(scan) => scan.next(view, row),
            Source::Keys(keys) => {
                while let Some(key) = keys.next() {
                    if view.get(&module.table, key, row)? {
                        return Ok(true);
                    }
                    sight.missing.note(&module.table, key);
                }
                Ok(false)
            }
            Source::Ranges { index, reverse, waiting, current } => {
                let there = next_in_ranges(module, view, *index, *reverse, waiting, current, row)?;
                if let Some(scan) = current {
                    sight.foresight.look_ahead(*number, (sight.store(), &module.table), row, scan);
                }
                Ok(there)
            }
        })
    }

    /// Ticks since a row was written, and for one of a view since the query began that last gave it.
    fn age(&self, written: impl FnOnce() -> u64) -> u64 {
        let as_of = self.module.table.as_of();
        as_of.map_or_else(written, |began| ticks_between(began, self.module.sight.store().now()))
    }

    /// Whether a row has NULL in the table's column at this position.
    fn is_absent(&self, at: usize) -> bool {
        let module = &self.module;
        match &self.source {
            Source::List { list, next } => listed(&module.sight.list(*list), *next, at).is_null(),
            _ => module.table.column(&self.row, at).is_null(),
        }
    }

    fn head(&self, head: Head, output: Output<'_>) {
        let module = &self.module;
        if let Source::List { list, next } = &self.source {
            let rows = module.sight.list(*list);
            let row = next.checked_sub(1).and_then(|at| rows.get(at));
            return output.set(row.map_or(ValueRef::Null, |row| listed_head(module, row, head)));
        }
        let row = &self.row;
        if head == Head::Row {
            let mut blob = Vec::with_capacity(16 + row.key().len());
            Identity::encode_row(row, &mut blob);
            return output.set(ValueRef::Blob(&blob));
        }
        let store = module.sight.store();
        let uncommitted = row.is_uncommitted();
        let age = || if uncommitted { 0 } else { store.age_ticks(row.stamp()) };
        if matches!(head, Head::Ttl | Head::ExpiresAt | Head::Stale | Head::Due | Head::Leased) {
            module.sight.note_times_read();
        }
        output.set(match head {
            // Nobody but the check of a forced index asks for it.
            Head::List => ValueRef::Integer(self.forced),
            Head::Pick | Head::Row => ValueRef::Null,
            // It gets one when it is committed, unless it was returned before.
            Head::Cas if uncommitted && row.cas() == 0 => ValueRef::Null,
            Head::Ttl => seconds_left(module, row.expiry(), age),
            Head::ExpiresAt => expires_at(module, row.expiry(), age),
            Head::Age => ValueRef::Integer((self.age(age) / TICKS_PER_SECOND).cast_signed()),
            Head::Size => ValueRef::Integer(i64::try_from(row.size()).unwrap_or(i64::MAX)),
            Head::Cas => ValueRef::Integer(row.cas().cast_signed()),
            Head::Hits => ValueRef::Integer(i64::from(store.hits(&module.table, row.key()))),
            Head::Flags => ValueRef::Integer(i64::from(row.client_flags())),
            // Its age counts from the commit.
            Head::Stale | Head::Due if uncommitted => truth(row.renewal().stale),
            Head::Stale if module.table.is_stale_view() => truth(true),
            Head::Stale => truth(store.renewal_of(&module.table, row, store.now()).0 == Freshness::Stale),
            Head::Due => truth(store.renewal_of(&module.table, row, store.now()).0 != Freshness::Fresh),
            Head::Leased => truth(store.renewal_of(&module.table, row, store.now()).1),
        });
    }
}

/// A value of the row that is before the next one of a list.
fn listed(rows: &[ListRow], next: usize, at: usize) -> ValueRef<'_> {
    let row = next.checked_sub(1).and_then(|row| rows.get(row));
    row.and_then(|row| row.values.get(at)).map_or(ValueRef::Null, Value::as_ref)
}

fn next_in_ranges(
    module: &TableModule,
    view: &View<'_>,
    index: usize,
    reverse: bool,
    waiting: &mut VecDeque<KeyBounds>,
    current: &mut Option<Box<IndexScan>>,
    row: &mut RowBuf,
) -> Result<bool, ReadError> {
    loop {
        if let Some(scan) = current
            && scan.next(view, row)?
        {
            return Ok(true);
        }
        let Some(bounds) = waiting.pop_front() else { return Ok(false) };
        let table = &module.table;
        *current = Some(Box::new(view.range(table, &table.indexes()[index], &bounds, reverse)));
    }
}

impl Cursor for TableCursor {
    fn filter(&mut self, plan: i32, arguments: &Arguments<'_>) -> Result<(), String> {
        let plan = self.module.plan(plan).ok_or("a plan is not known")?;
        if let Some(ValueRef::Integer(last)) =
            arguments.count().checked_sub(1).map(|last| arguments.value_ref(last))
        {
            self.forced = last;
        }
        let spare = match std::mem::replace(&mut self.source, Source::Empty) {
            Source::Keys(mut keys) => {
                keys.clear();
                keys
            }
            _ => KeyList::default(),
        };
        self.source = self.source(&plan, arguments, spare)?;
        self.at_end = !self.advance()?;
        Ok(())
    }

    fn next(&mut self) -> Result<(), String> {
        self.at_end = !self.advance()?;
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.at_end
    }

    fn column(&self, column: usize, output: Output<'_>) {
        let module = &self.module;
        match module.shape.column(column) {
            Some(Column::Stored(at)) => {
                if let Source::List { list, next } = &self.source {
                    let rows = module.sight.list(*list);
                    output.set(listed(&rows, *next, at));
                } else {
                    if matches!(self.source, Source::Ranges { .. }) {
                        module.sight.foresight.note_read(self.number, at);
                    }
                    output.set(module.table.column(&self.row, at));
                }
            }
            Some(Column::Absent(at)) => output.set(truth(self.is_absent(at))),
            Some(Column::Head(head)) => self.head(head, output),
            None => output.set(ValueRef::Null),
        }
    }

    fn row_number(&self) -> i64 {
        if let Source::List { next, .. } = &self.source {
            return i64::try_from(*next).unwrap_or(i64::MAX);
        }
        let (table, key) = (&self.module.table, self.row.key());
        if let Some(number) = row_number(table, key) {
            return number;
        }
        rapidhash::v3::rapidhash_v3(key).cast_signed()
    }
}

/// What a column may equal.
enum Values {
    /// One of these stored values.
    These(Vec<Value>),
    /// One of these, or something that compares as equal to it.
    Unclear(Vec<Value>),
}

fn values(
    kind: ColumnKind,
    collation: Collation,
    equal: Equal,
    arguments: &Arguments<'_>,
) -> Result<Values, String> {
    let raw =
        if equal.in_list { arguments.list(equal.argument)? } else { vec![arguments.value(equal.argument)] };
    let mut found = Vec::with_capacity(raw.len());
    for value in &raw {
        if value.is_null() && equal.null_matches {
            found.push(Value::Null);
            continue;
        }
        match sought(kind, value.clone(), equal.literal) {
            Sought::Value(value) => found.push(value),
            Sought::Nothing => {}
            Sought::Unclear => return Ok(Values::Unclear(raw)),
        }
    }
    if found.len() > 1 {
        // Different values of a list may be the same one to the column, and a row must come once.
        found.sort_by(|a, b| collation.compare(a.as_ref(), b.as_ref()));
        found.dedup_by(|a, b| collation.compare(a.as_ref(), b.as_ref()) == Ordering::Equal);
    }
    Ok(Values::These(found))
}

fn extended(prefixes: &[Vec<Value>], values: &[Value]) -> Vec<Vec<Value>> {
    let all = prefixes.iter().flat_map(|prefix| {
        values.iter().map(|value| prefix.iter().cloned().chain([value.clone()]).collect())
    });
    all.collect()
}

/// Whether a stored value equals the sought one under some conversion that SQLite may make.
fn may_equal(own: ValueRef<'_>, value: &Value, collation: Collation) -> bool {
    let same = |a: ValueRef<'_>, b: ValueRef<'_>| collation.compare(a, b) == Ordering::Equal;
    let number = |value: ValueRef<'_>| value.to_owned().with_affinity(Affinity::Numeric);
    same(own, value.as_ref()) || same(number(own).as_ref(), number(value.as_ref()).as_ref())
}

/// The order of an index in its columns from `first` on.
fn compare_lists(index: &Index, first: usize, a: &[Value], b: &[Value]) -> Ordering {
    let pairs = a.iter().zip(b).zip(first..).map(|((a, b), at)| {
        let order = index.collation(at).compare(a.as_ref(), b.as_ref());
        if index.def().is_descending(at) { order.reverse() } else { order }
    });
    pairs.fold(Ordering::Equal, Ordering::then)
}

/// Ticks until a row ends, by its own deadline or by the table's `ttl`; less than none for one that is served stale.
fn ticks_left(module: &TableModule, expiry: u32, age: impl FnOnce() -> u64) -> Option<i64> {
    let (left, passed) = match expiry {
        u32::MAX => return None,
        0 => {
            let ttl = module.table.def().options.ttl_ms?;
            ((ttl.saturating_mul(TICKS_PER_SECOND) / 1_000).max(1), age())
        }
        deadline => {
            let now = module.sight.store().now();
            (ticks_between(now, deadline), ticks_between(deadline, now))
        }
    };
    Some(i64::try_from(left).unwrap_or(i64::MAX).saturating_sub_unsigned(passed))
}

fn seconds_left<'a>(module: &TableModule, expiry: u32, age: impl FnOnce() -> u64) -> ValueRef<'a> {
    let left = ticks_left(module, expiry, age).map(|ticks| ticks.max(0));
    // To the nearest second, so that a row given 600 of them has 600, although a deadline is kept rounded down to a
    // tick. A row that is there has time left.
    let seconds = |ticks| seconds(ticks).max(i64::from(ticks > 0));
    left.map_or(ValueRef::Null, |ticks| ValueRef::Integer(seconds(ticks)))
}

fn expires_at<'a>(module: &TableModule, expiry: u32, age: impl FnOnce() -> u64) -> ValueRef<'a> {
    let Some(left) = ticks_left(module, expiry, age) else { return ValueRef::Null };
    let per_second = TICKS_PER_SECOND.cast_signed();
    let now = module.sight.store().clock().unix_ms().cast_signed() * per_second / 1_000;
    ValueRef::Integer(seconds(now.saturating_add(left)))
}

/// Ticks as seconds, to the nearest: a tick is a sixteenth of one.
fn seconds(ticks: i64) -> i64 {
    let per_second = TICKS_PER_SECOND.cast_signed();
    ticks.saturating_add(per_second / 2).div_euclid(per_second)
}

/// The head of a row that is not stored yet.
fn listed_head<'a>(module: &TableModule, row: &ListRow, head: Head) -> ValueRef<'a> {
    match head {
        Head::List | Head::Pick | Head::Row | Head::Size | Head::Hits => ValueRef::Null,
        Head::Ttl => seconds_left(module, row.expiry, || 0),
        Head::ExpiresAt => expires_at(module, row.expiry, || 0),
        Head::Age => ValueRef::Integer(0),
        Head::Cas => row.cas.map_or(ValueRef::Null, |cas| ValueRef::Integer(cas.cast_signed())),
        Head::Flags => ValueRef::Integer(i64::from(row.client_flags)),
        Head::Stale | Head::Due => truth(row.renewal.stale),
        Head::Leased => {
            let now = module.sight.store().now();
            truth(row.renewal.lease.is_some_and(|until| now < until))
        }
    }
}

fn truth(is: bool) -> ValueRef<'static> {
    ValueRef::Integer(i64::from(is))
}
