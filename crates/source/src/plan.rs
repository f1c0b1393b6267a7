//! What depends on a source: its tables here, and how a change there says which rows here go.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use engine::Distrust;
use postgres::oid;
use store::definition::{Copied, Dependence, Mode, OnChange, TableDef};
use store::{Catalog, Table};

use crate::batch::{Batch, Keys};
use crate::change::{Field, Key, Row};
use crate::gate::Touched;
use crate::row::{Cell, Cells, Relation};
use crate::values::{encode, value, without_blanks};

/// A table here that depends on a table there.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) table: Arc<Table>,
    pub(crate) on: Dependence,
    /// Which columns its rows have of those there; none: they are made by others.
    pub(crate) copied: Option<Copied>,
    /// The statement that updates the row of a key; its parameters are the columns that are copied.
    pub(crate) updates: Option<String>,
    /// The beginning of the statement that writes a row of a mirror.
    pub(crate) inserts: Option<String>,
    /// The statement that invalidates the rows of a key; none: every change empties the table.
    pub(crate) invalidates: Option<String>,
    /// What is done where its rows may have missed changes.
    pub(crate) distrust: Distrust,
}

/// All of them that name one server.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The definitions that it was made of.
    pub(crate) generation: u64,
    pub(crate) targets: Vec<Target>,
}

impl Plan {
    /// What depends on this server.
    pub(crate) fn of(catalog: &Catalog, server: &str) -> Self {
        let mut targets = Vec::new();
        for table in catalog.tables() {
            let options = &table.def().options;
            if !options.source.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(server)) {
                continue;
            }
            let all = table.def().dependences().into_iter().map(|on| at_home(catalog, server, on));
            targets.extend(all.map(|on| Target::new(table, on)));
            if options.mode == Mode::Answers {
                targets.push(Target::new(table, by_tags()));
            }
        }
        Self { generation: catalog.generation, targets }
    }

    /// The names of its targets, for the next process. `answers`: those of forwarded statements are followed, too.
    pub(crate) fn names(&self, answers: bool) -> Vec<String> {
        self.targets.iter().filter(|target| answers || !target.has_answers()).map(Target::name).collect()
    }

    /// The numbers of the tables that have answers of forwarded statements: one, and those that users made like it.
    pub(crate) fn answers(&self) -> impl Iterator<Item = usize> + '_ {
        self.targets.iter().enumerate().filter(|(_, target)| target.has_answers()).map(|(number, _)| number)
    }

    /// The number here of another plan's target.
    pub(crate) fn number_of(&self, target: &Target) -> Option<usize> {
        self.targets.iter().position(|own| own.is_same(target))
    }
}

/// What answers of forwarded statements depend on: whatever their tags say, and no table by its name.
fn by_tags() -> Dependence {
    let columns = vec![("tag".to_owned(), "tags".to_owned())];
    Dependence { schema: String::new(), table: String::new(), columns }
}

/// What is depended on, with the schema that it has at its server.
fn at_home(catalog: &Catalog, server: &str, on: Dependence) -> Dependence {
    let schema = catalog.server(server).and_then(|server| on.schema_at(server)).map(str::to_owned);
    Dependence { schema: schema.unwrap_or_else(|| on.schema.clone()), ..on }
}

impl Target {
    /// Tells it from every other one: another table of this name has another number, another `depends` other columns.
    pub(crate) fn name(&self) -> String {
        let (id, name, on) = (self.table.id().0, self.table.name(), &self.on);
        format!("{id} {name} {on} {:?}", on.columns)
    }

    fn new(table: &Arc<Table>, on: Dependence) -> Self {
        let def = table.def();
        let name = name_of(def);
        let statement = match def.options.on_change {
            OnChange::Delete => format!("DELETE FROM {name}"),
            // A lease that was taken before ends with it, as with the row.
            OnChange::Stale => format!("UPDATE {name} SET _stale = TRUE"),
        };
        let invalidates = condition(def, &on).map(|condition| format!("{statement} WHERE {condition}"));
        let distrust = Distrust::of(def, &name);
        let copied = def.copied();
        let updates = copied.as_ref().and_then(|copied| update(def, copied));
        let inserts = copied.as_ref().filter(|_| table.is_mirror()).map(|copied| insert(def, copied));
        Self { table: Arc::clone(table), on, copied, updates, inserts, invalidates, distrust }
    }

    /// Whether its rows follow the same changes in another plan. A table with another query does not: its fetches
    /// passed no gate before, or its rows are those of the query that it had.
    fn is_same(&self, other: &Self) -> bool {
        let query = |target: &Self| target.table.def().options.query.clone();
        self.table.is_same(&other.table)
            && self.on == other.on
            && self.copied == other.copied
            && query(self) == query(other)
    }

    /// Whether it is still there under the name that its statements have.
    pub(crate) fn is_here(&self, catalog: &Catalog) -> bool {
        catalog.table(self.table.name()).is_some_and(|own| own.is_same(&self.table))
    }

    /// Whether rows that are here become those of the source.
    pub(crate) fn is_updated(&self) -> bool {
        self.table.def().options.mode == Mode::Update && self.updates.is_some()
    }

    /// Whether the table wants to know that its source is not followed.
    pub(crate) fn looks_at_source(&self) -> bool {
        self.table.def().options.on_lag.looks_at_source()
    }

    /// Whether it is a view that is refreshed when the source's table changes.
    pub(crate) fn is_view(&self) -> bool {
        self.table.def().materialized.is_some()
    }

    /// Whether its rows are answers of forwarded statements.
    pub(crate) fn has_answers(&self) -> bool {
        self.table.def().options.mode == Mode::Answers
    }

    /// Whether it has all rows of the source's table.
    pub(crate) fn is_mirror(&self) -> bool {
        self.inserts.is_some()
    }

    /// The statement that writes a row of a mirror, whether it is here or not.
    pub(crate) fn upserts(&self) -> Option<String> {
        let (copied, inserts) = (self.copied.as_ref()?, self.inserts.as_ref()?);
        let name = |at: usize| quoted(&self.table.def().columns[copied.columns[at].1].name);
        let key: Vec<String> = (0..copied.key_len()).map(name).collect();
        let set = |at: usize| format!("{0} = EXCLUDED.{0}", name(at));
        let values: Vec<String> = (copied.key_len()..copied.columns.len()).map(set).collect();
        let does =
            if values.is_empty() { "NOTHING".into() } else { format!("UPDATE SET {}", values.join(", ")) };
        Some(format!("{inserts} ON CONFLICT ({}) DO {does}", key.join(", ")))
    }

    /// The query for the row of a key, with the columns that are copied.
    pub(crate) fn reads(&self) -> Option<String> {
        let copied = self.copied.as_ref()?;
        let name = |at: usize| quoted(&self.table.def().columns[copied.columns[at].1].name);
        let columns: Vec<String> = (0..copied.columns.len()).map(name).collect();
        let key: Vec<String> =
            (0..copied.key_len()).map(|at| format!("{} = ${}", name(at), at + 1)).collect();
        let table = name_of(self.table.def());
        Some(format!("SELECT {} FROM {table} WHERE {}", columns.join(", "), key.join(" AND ")))
    }
}

fn insert(def: &TableDef, copied: &Copied) -> String {
    let names: Vec<String> = copied.columns.iter().map(|(_, at)| quoted(&def.columns[*at].name)).collect();
    let values: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", name_of(def), names.join(", "), values.join(", "))
}

/// `None`: the key is all that it has.
fn update(def: &TableDef, copied: &Copied) -> Option<String> {
    let term = |at: usize| format!("{} = ${}", quoted(&def.columns[copied.columns[at].1].name), at + 1);
    let key = (0..copied.key_len()).map(term).collect::<Vec<_>>().join(" AND ");
    let values: Vec<String> = (copied.key_len()..copied.columns.len()).map(term).collect();
    (!values.is_empty()).then(|| format!("UPDATE {} SET {} WHERE {key}", name_of(def), values.join(", ")))
}

/// A table as a statement names it.
pub(crate) fn name_of(def: &TableDef) -> String {
    let schema = def.namespace.as_deref().unwrap_or("public");
    format!("{}.{}", quoted(schema), quoted(def.own_name()))
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Which rows have a key. A list of ours has it if it is among its elements. `None`: a column of ours is gone.
fn condition(def: &TableDef, on: &Dependence) -> Option<String> {
    let mut text = String::new();
    for (at, (_, ours)) in on.columns.iter().enumerate() {
        let column = &def.columns[def.column_index(ours)?];
        let name = quoted(&column.name);
        let and = if at == 0 { "" } else { " AND " };
        let number = at + 1;
        let is_list = column.sql_type().is_array();
        let one = if is_list { format!("${number} = ANY({name})") } else { format!("{name} = ${number}") };
        let _infallible = write!(text, "{and}{one}");
    }
    Some(text).filter(|text| !text.is_empty())
}

impl Target {
    /// Where the columns of the primary key stand among those that the changes tell; none: they tell others.
    fn key_places(&self) -> Option<Vec<usize>> {
        let def = self.table.def();
        let place = |own: &usize| {
            let is = |(_, ours): &(String, String)| def.column_index(ours) == Some(*own);
            self.on.columns.iter().position(is)
        };
        let places: Vec<usize> = def.primary_key.iter().map(place).collect::<Option<_>>()?;
        (places.len() == self.on.columns.len()).then_some(places)
    }

    /// The keys of the table that some of the changes' touch.
    fn touched(&self, keys: &Keys) -> Touched {
        let (Keys::Each(keys), Some(places)) = (keys, self.key_places()) else { return Touched::All };
        let def = self.table.def();
        let encoded = |key: &Key| {
            let read =
                |(&column, &at): (&usize, &usize)| value(def.columns[column].sql_type().oid(), &key[at]);
            let values: Result<Vec<_>, _> = def.primary_key.iter().zip(&places).map(read).collect();
            encode(&self.table, values.ok()?.into_iter()).map(Vec::into_boxed_slice)
        };
        keys.iter().map(|(key, _)| encoded(key)).collect::<Option<_>>().map_or(Touched::All, Touched::Keys)
    }
}

impl Plan {
    /// What a batch touches in the tables that read through, by their numbers.
    pub(crate) fn touched(&self, batch: &Batch) -> Vec<(u64, Touched)> {
        let own = |(target, keys): &(usize, Keys)| {
            let target = self.targets.get(*target).filter(|target| target.table.reads_through())?;
            Some((target.table.number(), target.touched(keys)))
        };
        batch.targets().iter().filter_map(own).collect()
    }
}

/// Where the values of a target's key stand in the rows of the table that it depends on.
#[derive(Debug)]
struct Route {
    target: usize,
    /// None: they cannot be told, so every change empties the target.
    cells: Option<Vec<usize>>,
    /// Which of these are `char(n)`.
    padded: Vec<usize>,
    /// It has all rows of the source's table.
    mirror: bool,
    /// Where its rows are copied: the places of all columns that it has, the key's first.
    row: Option<Vec<usize>>,
}

/// The tables of the stream, and which targets each leads to.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: HashMap<u64, Relation>,
    by_number: HashMap<u64, Vec<Route>>,
    named: Named,
}

/// The tables that are followed, by the numbers that the source has for them; none where it has no such numbers. A
/// name may mean another table for a while, and a table may have another name: what is told meanwhile is told under it.
#[derive(Debug, Default)]
pub(crate) struct Named(HashMap<u64, (String, String)>);

impl Named {
    pub(crate) fn new(tables: impl IntoIterator<Item = (u64, (String, String))>) -> Self {
        Self(tables.into_iter().collect())
    }

    /// Whether the changes of a relation are those of a table, by its name and by its number.
    fn is_of(&self, relation: &Relation, on: &Dependence) -> (bool, bool) {
        let by_name = on.schema == relation.schema && on.table == relation.name;
        let known = self.0.get(&relation.id);
        let by_number = known.is_some_and(|(schema, table)| on.schema == *schema && on.table == *table);
        (by_name, if self.0.is_empty() { by_name } else { by_number })
    }
}

impl Routes {
    /// By another plan.
    pub(crate) fn replan(&mut self, plan: &Plan) {
        let own = |relation: &Relation| (relation.id, routes_of(plan, relation, &self.named));
        self.by_number = self.known.values().map(own).collect();
    }

    /// What the numbers of the tables are; [`Self::replan`] follows.
    pub(crate) fn name(&mut self, named: Named) {
        self.named = named;
    }

    /// A table comes for the first time, or is another one now. Returns the targets whose keys cannot be told.
    pub(crate) fn learn<'p>(&mut self, plan: &'p Plan, relation: Relation) -> Vec<&'p Target> {
        let routes = routes_of(plan, &relation, &self.named);
        let blind = routes.iter().filter(|route| route.cells.is_none());
        let blind =
            blind.map(|route| &plan.targets[route.target]).filter(|target| target.invalidates.is_some());
        let blind = blind.collect();
        self.by_number.insert(relation.id, routes);
        self.known.insert(relation.id, relation);
        blind
    }

    /// The places of the columns whose values are needed of a table.
    pub(crate) fn wanted(&self, relation: u64) -> impl Iterator<Item = usize> {
        let routes = self.by_number.get(&relation).map_or(&[][..], Vec::as_slice);
        routes.iter().filter_map(|route| route.cells.as_ref()).flatten().copied()
    }

    /// What is known of a table.
    pub(crate) fn relation(&self, number: u64) -> Option<&Relation> {
        self.known.get(&number)
    }

    /// A table is not known any more.
    pub(crate) fn forget(&mut self, relation: u64) {
        self.known.remove(&relation);
        self.by_number.remove(&relation);
    }

    /// Notes what a change invalidates. Returns whether anything depends on its table.
    pub(crate) fn change<R: Cells>(
        &self,
        batch: &mut Batch,
        relation: u64,
        old: Option<&R>,
        new: Option<&R>,
    ) -> bool {
        let Some(routes) = self.by_number.get(&relation).filter(|routes| !routes.is_empty()) else {
            return false;
        };
        for route in routes {
            let keys = batch.keys(route.target);
            // Rows that others stored may have the blanks of a `char(n)` in their keys, or not.
            if route.padded.is_empty() || !route.mirror {
                route.note(keys, old, new);
            }
            if !route.padded.is_empty() {
                let plain = |row| Plain { row, padded: &route.padded };
                route.note(keys, old.map(plain).as_ref(), new.map(plain).as_ref());
            }
        }
        true
    }

    /// A table was emptied.
    pub(crate) fn truncate(&self, batch: &mut Batch, relation: u64) -> bool {
        let routes = self.by_number.get(&relation).map_or(&[][..], Vec::as_slice);
        // Mirrors are emptied in their turn.
        for route in routes.iter().filter(|route| !route.mirror) {
            *batch.keys(route.target) = Keys::All;
        }
        !routes.is_empty()
    }

    /// The mirrors of a table of the source.
    pub(crate) fn mirrors(&self, relation: u64) -> impl Iterator<Item = usize> + use<'_> {
        let routes = self.by_number.get(&relation).map_or(&[][..], Vec::as_slice);
        routes.iter().filter(|route| route.mirror).map(|route| route.target)
    }

    /// The mirrors of which a column has another type now: its values may be others without a change that says so.
    pub(crate) fn retyped(&self, plan: &Plan, relation: &Relation) -> Vec<usize> {
        let Some(before) = self.known.get(&relation.id) else { return Vec::new() };
        let type_in = |relation: &Relation, name: &str| {
            relation.columns.iter().position(|(own, _)| own == name).map(|at| relation.types.get(at).copied())
        };
        let is_retyped = |target: &usize| {
            let columns = plan.targets.get(*target).and_then(|target| target.copied.as_ref());
            let mut columns = columns.into_iter().flat_map(|copied| &copied.columns);
            columns.any(|(theirs, _)| type_in(before, theirs) != type_in(relation, theirs))
        };
        self.mirrors(relation.id).filter(is_retyped).collect()
    }
}

impl Route {
    /// Notes what a change invalidates of its target.
    fn note<R: Cells>(&self, keys: &mut Keys, old: Option<&R>, new: Option<&R>) {
        match (&self.cells, &self.row) {
            (None, _) => *keys = Keys::All,
            (Some(cells), Some(row)) => copy(keys, cells, row, old, new),
            (Some(cells), None) => {
                add(keys, cells, old, old);
                // A large value that did not change is in the old row.
                add(keys, cells, new, old);
            }
        }
    }
}

/// A row whose keys have no blanks behind a `char(n)`.
struct Plain<'r, R> {
    row: &'r R,
    padded: &'r [usize],
}

impl<R: Cells> Cells for Plain<'_, R> {
    fn cell(&self, at: usize) -> Cell<'_> {
        match self.row.cell(at) {
            Cell::Text(text) if self.padded.contains(&at) => Cell::Text(without_blanks(text)),
            cell => cell,
        }
    }
}

fn routes_of(plan: &Plan, relation: &Relation, named: &Named) -> Vec<Route> {
    let own = |(target, own): (usize, &Target)| match named.is_of(relation, &own.on) {
        (true, true) => Some(route(target, own, relation)),
        (false, false) => None,
        // The table under another name, or another one under its name: whose rows these are is not known.
        _ => Some(Route { target, cells: None, padded: Vec::new(), mirror: own.is_mirror(), row: None }),
    };
    plan.targets.iter().enumerate().filter_map(own).collect()
}

fn route(target: usize, own: &Target, relation: &Relation) -> Route {
    let cells = cells_of(own, relation);
    let Some(copied) = own.copied.as_ref().filter(|_| own.is_updated() || own.is_mirror()) else {
        return Route { target, padded: padded(cells.as_deref(), relation), cells, row: None, mirror: false };
    };
    let place = |(theirs, _): &(String, usize)| relation.columns.iter().position(|(name, _)| name == theirs);
    let row: Option<Vec<usize>> = copied.columns.iter().map(place).collect();
    // A column that is gone there: no row can be told.
    let cells = cells.filter(|_| row.is_some());
    Route { target, padded: padded(cells.as_deref(), relation), cells, row, mirror: own.is_mirror() }
}

/// Which of these columns are `char(n)`.
fn padded(cells: Option<&[usize]>, relation: &Relation) -> Vec<usize> {
    let is_padded = |at: &usize| relation.types.get(*at).is_some_and(|(ty, _)| *ty == oid::BPCHAR);
    cells.into_iter().flatten().copied().filter(is_padded).collect()
}

/// The places of the columns that make a key. All of them must come with old rows: else it is not known which row here
/// a change there belonged to.
fn cells_of(target: &Target, relation: &Relation) -> Option<Vec<usize>> {
    target.invalidates.as_ref()?;
    let place = |theirs: &String| {
        let at = relation.columns.iter().position(|(name, _)| name == theirs)?;
        (relation.full || relation.columns[at].1).then_some(at)
    };
    target.on.columns.iter().map(|(theirs, _)| place(theirs)).collect()
}

/// Notes what became of a row, and of the one that it was if its key is another one now.
fn copy<R: Cells>(keys: &mut Keys, cells: &[usize], places: &[usize], old: Option<&R>, new: Option<&R>) {
    let before = old.and_then(|old| key_of(old, cells, None));
    let Some(new) = new else {
        match (old, before) {
            (Some(_), None) => *keys = Keys::All,
            (_, before) => gone(keys, before),
        }
        return;
    };
    let Some(key) = key_of(new, cells, old) else {
        *keys = Keys::All;
        return;
    };
    let moved = before.filter(|before| *before != key);
    let field = |at: &usize| match (new.cell(*at), old.map(|old| old.cell(*at))) {
        (Cell::Null, _) => Field::Null,
        (Cell::Text(text), _) | (Cell::Unchanged, Some(Cell::Text(text))) => Field::Text(text.into()),
        (Cell::Unchanged, _) => Field::Unchanged,
    };
    let row = Row { fields: places.iter().map(field).collect(), from: moved.clone() };
    keys.change(key, row);
    gone(keys, moved);
}

fn gone(keys: &mut Keys, key: Option<Key>) {
    if let Some(key) = key {
        keys.add(&key.iter().map(|part| &**part).collect::<Vec<_>>());
    }
}

/// The key of a row; none: it is not told, or has a NULL.
fn key_of<R: Cells>(row: &R, cells: &[usize], old: Option<&R>) -> Option<Key> {
    let part = |at: &usize| match (row.cell(*at), old.map(|old| old.cell(*at))) {
        (Cell::Text(text), _) | (Cell::Unchanged, Some(Cell::Text(text))) => Some(Box::from(text)),
        _ => None,
    };
    cells.iter().map(part).collect()
}

/// Adds the key of a row. A key with a NULL is no row's.
fn add<R: Cells>(keys: &mut Keys, cells: &[usize], row: Option<&R>, old: Option<&R>) {
    let Some(row) = row else { return };
    let mut key = Vec::with_capacity(cells.len());
    for &at in cells {
        let cell = match row.cell(at) {
            Cell::Unchanged => old.map_or(Cell::Unchanged, |old| old.cell(at)),
            cell => cell,
        };
        match cell {
            Cell::Null => return,
            Cell::Text(text) => key.push(text),
            // It was changed in a way that does not tell whose it is.
            Cell::Unchanged => {
                *keys = Keys::All;
                return;
            }
        }
    }
    keys.add(&key);
}
