//! What depends on a source: its tables here, and how a change there says which rows here go.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use store::definition::{Dependence, OnChange, OnLag, TableDef};
use store::{Catalog, Table};

use crate::batch::{Batch, Keys};
use crate::pgoutput::{Cell, Relation, Tuple};

/// A table here that depends on a table there.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) table: Arc<Table>,
    pub(crate) on: Dependence,
    /// The statement that invalidates the rows of a key; none: every change empties the table.
    pub(crate) invalidates: Option<String>,
    /// The statement that empties it.
    pub(crate) empties: String,
    /// The statement that makes all of its rows stale, where these are not to go when they may have missed changes.
    pub(crate) ages: Option<String>,
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
            // What cannot be read was refused when it was written.
            let all = options.depends.as_deref().and_then(|text| Dependence::read_all(text).ok());
            targets.extend(all.unwrap_or_default().into_iter().map(|on| Target::new(table, on)));
        }
        Self { generation: catalog.generation, targets }
    }

    /// The names of its targets, for the next process.
    pub(crate) fn names(&self) -> Vec<String> {
        self.targets.iter().map(Target::name).collect()
    }

    /// The number here of another plan's target.
    pub(crate) fn number_of(&self, target: &Target) -> Option<usize> {
        self.targets.iter().position(|own| own.table.is_same(&target.table) && own.on == target.on)
    }
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
        let ages = (def.options.on_lag == OnLag::Stale).then(|| format!("UPDATE {name} SET _stale = TRUE"));
        let (table, empties) = (Arc::clone(table), format!("TRUNCATE {name}"));
        Self { table, on, invalidates, empties, ages }
    }
}

/// A table as a statement names it.
fn name_of(def: &TableDef) -> String {
    let schema = def.namespace.as_deref().unwrap_or("public");
    format!("{}.{}", quoted(schema), quoted(def.own_name()))
}

fn quoted(name: &str) -> String {
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

/// Where the values of a target's key stand in the rows of the table that it depends on.
#[derive(Debug)]
struct Route {
    target: usize,
    /// None: they cannot be told, so every change empties the target.
    cells: Option<Vec<usize>>,
}

/// The tables of the stream, and which targets each leads to.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: HashMap<u32, Relation>,
    routes: HashMap<u32, Vec<Route>>,
}

impl Routes {
    /// By another plan.
    pub(crate) fn replan(&mut self, plan: &Plan) {
        self.routes = self.known.values().map(|relation| (relation.id, routes_of(plan, relation))).collect();
    }

    /// A table comes for the first time, or is another one now. Returns the targets whose keys cannot be told.
    pub(crate) fn learn<'p>(&mut self, plan: &'p Plan, relation: Relation) -> Vec<&'p Target> {
        let routes = routes_of(plan, &relation);
        let blind = routes.iter().filter(|route| route.cells.is_none());
        let blind =
            blind.map(|route| &plan.targets[route.target]).filter(|target| target.invalidates.is_some());
        let blind = blind.collect();
        self.routes.insert(relation.id, routes);
        self.known.insert(relation.id, relation);
        blind
    }

    /// Notes what a change invalidates. Returns whether anything depends on its table.
    pub(crate) fn change(
        &self,
        batch: &mut Batch,
        relation: u32,
        old: Option<&Tuple>,
        new: Option<&Tuple>,
    ) -> bool {
        let Some(routes) = self.routes.get(&relation).filter(|routes| !routes.is_empty()) else {
            return false;
        };
        for route in routes {
            let keys = batch.keys(route.target);
            match &route.cells {
                None => *keys = Keys::All,
                Some(cells) => {
                    add(keys, cells, old, old);
                    // A large value that did not change is in the old row.
                    add(keys, cells, new, old);
                }
            }
        }
        true
    }

    /// A table was emptied.
    pub(crate) fn truncate(&self, batch: &mut Batch, relation: u32) -> bool {
        let routes = self.routes.get(&relation).map_or(&[][..], Vec::as_slice);
        for route in routes {
            *batch.keys(route.target) = Keys::All;
        }
        !routes.is_empty()
    }
}

fn routes_of(plan: &Plan, relation: &Relation) -> Vec<Route> {
    let is_on = |target: &Target| target.on.schema == relation.schema && target.on.table == relation.name;
    let all = plan.targets.iter().enumerate().filter(|(_, target)| is_on(target));
    all.map(|(target, own)| Route { target, cells: cells_of(own, relation) }).collect()
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

/// Adds the key of a row. A key with a NULL is no row's.
fn add(keys: &mut Keys, cells: &[usize], row: Option<&Tuple>, old: Option<&Tuple>) {
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
