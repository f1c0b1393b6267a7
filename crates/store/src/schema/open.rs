//! What was defined before each definition of a transaction that is still open.
//!
//! A definition takes effect at once, and `ROLLBACK` undoes it. A process that is killed cannot. So what was there
//! before is written with the definitions, in the same step, until the transaction commits; the next process begins
//! with that.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::catalogue::{Definitions, written};
use crate::definition::{
    EnumDef, Grant, NamespaceDef, Place, RoutineDef, SequenceDef, ServerDef, TableDef, ViewDef,
};
use crate::limits::UNDO_PASSES;
use crate::table::catalog::Catalog;

/// What one definition changed, as it was before; what it made is there with nothing before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Before {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tables: Vec<Change<TableDef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    views: Vec<Change<ViewDef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    enums: Vec<Change<EnumDef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<Change<NamespaceDef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sequences: Vec<Change<SequenceDef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    routines: Vec<Change<RoutineDef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    servers: Vec<Change<ServerDef>>,
    /// Tables whose rows the transaction wrote and committed before it, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    written: Vec<u16>,
}

/// A definition before it changed, and after that; with its number, or its name where it has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "D: Deserialize<'de>"))]
struct Change<D> {
    of: String,
    before: Option<D>,
    /// Of interest where there was something before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<D>,
}

/// The definitions of open transactions, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Open {
    steps: Vec<Noted>,
    under_way: Option<UnderWay>,
    /// A transaction is being undone, by definitions that are nobody's.
    pub(crate) undoing: bool,
    last: u64,
}

/// A step with its number, and that of the first step of its transaction.
#[derive(Debug)]
struct Noted {
    step: u64,
    transaction: u64,
    before: Before,
}

/// The step under way.
#[derive(Debug)]
struct UnderWay {
    step: u64,
    transaction: u64,
    /// What was defined when it began.
    before: Arc<Catalog>,
    written: Vec<u16>,
}

impl UnderWay {
    fn changed(&self, now: &Catalog) -> Before {
        Before { written: self.written.clone(), ..between(&self.before, now) }
    }
}

impl Open {
    /// A definition of a transaction begins; with the number of the transaction's first one, if it had any. Returns its
    /// own number.
    pub(crate) fn begin(&mut self, now: Arc<Catalog>, first: Option<u64>) -> u64 {
        self.last += 1;
        let transaction = first.unwrap_or(self.last);
        self.under_way = Some(UnderWay { step: self.last, transaction, before: now, written: Vec::new() });
        self.last
    }

    /// The transaction is about to commit rows of these tables.
    pub(crate) fn will_write(&mut self, tables: impl Iterator<Item = u16>) {
        if let Some(under_way) = &mut self.under_way {
            under_way.written.extend(tables);
        }
    }

    /// It has ended.
    pub(crate) fn end(&mut self, now: &Catalog) {
        let Some(under_way) = self.under_way.take() else { return };
        let changed = under_way.changed(now);
        if changed != Before::default() {
            let UnderWay { step, transaction, .. } = under_way;
            self.steps.push(Noted { step, transaction, before: changed });
        }
    }

    /// These steps are of no open transaction any more; false: there were none.
    pub(crate) fn close(&mut self, steps: &[u64]) -> bool {
        let known = self.steps.len();
        self.steps.retain(|noted| !steps.contains(&noted.step));
        known != self.steps.len()
    }

    /// What is to be written with these definitions.
    pub(crate) fn written(&self, now: &Catalog) -> Vec<Before> {
        let under_way = self.under_way.as_ref().map(|under_way| under_way.changed(now));
        let steps = self.steps.iter().map(|noted| noted.before.clone());
        steps.chain(under_way.filter(|changed| *changed != Before::default())).collect()
    }

    /// The steps of each open transaction but the one that defines something now.
    pub(crate) fn of_others(&self) -> Vec<Vec<Before>> {
        let own = self.under_way.as_ref().map(|under_way| under_way.transaction);
        let mut others: BTreeMap<u64, Vec<Before>> = BTreeMap::new();
        for noted in self.steps.iter().filter(|noted| !self.undoing && Some(noted.transaction) != own) {
            others.entry(noted.transaction).or_default().push(noted.before.clone());
        }
        others.into_values().collect()
    }
}

/// Numbers of things that an open transaction made or changed: the next start, and a `ROLLBACK`, know these by their
/// numbers. What others make meanwhile must have other ones.
impl Open {
    pub(crate) fn has_table(&self, id: u16) -> bool {
        self.steps.iter().any(|noted| has(&noted.before.tables, id))
    }

    pub(crate) fn has_enum(&self, id: u16) -> bool {
        self.steps.iter().any(|noted| has(&noted.before.enums, id))
    }

    pub(crate) fn has_namespace(&self, id: u16) -> bool {
        self.steps.iter().any(|noted| has(&noted.before.namespaces, id))
    }

    pub(crate) fn has_sequence(&self, id: u16) -> bool {
        self.steps.iter().any(|noted| has(&noted.before.sequences, id))
    }

    pub(crate) fn has_server(&self, id: u16) -> bool {
        self.steps.iter().any(|noted| has(&noted.before.servers, id))
    }

    pub(crate) fn has_routine(&self, id: u16) -> bool {
        self.steps.iter().any(|noted| has(&noted.before.routines, id))
    }

    /// The greatest number of a view.
    pub(crate) fn last_view(&self) -> u32 {
        let before = self.steps.iter().flat_map(|noted| &noted.before.views);
        before.filter_map(|change| change.before.as_ref()).map(|before| before.id).max().unwrap_or(0)
    }
}

fn has<D>(changes: &[Change<D>], id: u16) -> bool {
    changes.iter().any(|change| change.of == id.to_string())
}

/// What differs between two catalogues.
fn between(before: &Catalog, after: &Catalog) -> Before {
    let tables = |catalog: &Catalog| catalog.tables().map(|table| written(table)).collect::<Vec<TableDef>>();
    let views = |catalog: &Catalog| catalog.views().map(|view| ViewDef::clone(view)).collect::<Vec<_>>();
    let enums = |catalog: &Catalog| catalog.enums().iter().map(|own| EnumDef::clone(own)).collect::<Vec<_>>();
    let namespaces = |catalog: &Catalog| {
        catalog.namespaces().iter().map(|own| NamespaceDef::clone(own)).collect::<Vec<_>>()
    };
    let sequences =
        |catalog: &Catalog| catalog.sequences().iter().map(|own| own.written()).collect::<Vec<_>>();
    let routines =
        |catalog: &Catalog| catalog.routines().iter().map(|own| RoutineDef::clone(own)).collect::<Vec<_>>();
    let servers =
        |catalog: &Catalog| catalog.servers().iter().map(|own| ServerDef::clone(own)).collect::<Vec<_>>();
    Before {
        tables: changes(tables(before), tables(after), |def| def.id.to_string()),
        views: changes(views(before), views(after), |def| def.name.to_lowercase()),
        enums: changes(enums(before), enums(after), |def| def.id.to_string()),
        namespaces: changes(namespaces(before), namespaces(after), |def| def.id.to_string()),
        sequences: changes(sequences(before), sequences(after), |def| def.id.to_string()),
        routines: changes(routines(before), routines(after), |def| def.id.to_string()),
        servers: changes(servers(before), servers(after), |def| def.id.to_string()),
        written: Vec::new(),
    }
}

fn changes<D: PartialEq>(before: Vec<D>, mut after: Vec<D>, name: impl Fn(&D) -> String) -> Vec<Change<D>> {
    let mut found = Vec::new();
    for before in before {
        let of = name(&before);
        let place = after.iter().position(|now| name(now) == of);
        let now = place.map(|place| after.swap_remove(place));
        if now.as_ref() != Some(&before) {
            found.push(Change { of, before: Some(before), after: now });
        }
    }
    found.extend(after.into_iter().map(|made| Change { of: name(&made), before: None, after: None }));
    found
}

/// Takes back what transactions defined that did not come to their end. Returns the definitions that were there before,
/// and the numbers of the tables whose rows go with it. `fits` judges what this comes to: where something is in the way
/// that others defined meanwhile, what it is in the way of stays as it is, as after a `ROLLBACK`.
pub(crate) fn take_back(found: &Definitions, fits: impl Fn(&Definitions) -> bool) -> (Definitions, Vec<u16>) {
    let mut before = found.clone();
    undo(&mut before, &found.open);
    if fits(&before) {
        return without_rows(before, emptied(found, &found.open));
    }
    let mut parts = apart(&found.open);
    let mut now = found.clone();
    let mut gone: Vec<u16> = found.open.iter().flat_map(|step| step.written.clone()).collect();
    for _ in 0..UNDO_PASSES {
        let left = parts.len();
        parts.retain(|part| {
            let mut tried = now.clone();
            undo(&mut tried, part);
            let fits = fits(&tried);
            if fits {
                gone.extend(emptied(&now, part));
                now = tried;
            }
            !fits
        });
        if parts.len() == left {
            break;
        }
    }
    without_rows(now, gone)
}

/// A view without its rows must be filled first.
fn without_rows(mut before: Definitions, emptied: Vec<u16>) -> (Definitions, Vec<u16>) {
    let gone = before.tables.iter_mut().filter(|def| emptied.contains(&def.id));
    gone.filter_map(|def| def.materialized.as_mut()).for_each(|view| view.populated = false);
    (before, emptied)
}

/// Undoes steps, the newest first.
pub(crate) fn undo(found: &mut Definitions, steps: &[Before]) {
    for step in steps.iter().rev().cloned() {
        for change in step.tables {
            table(&mut found.tables, change);
        }
        restore(&mut found.views, step.views, |def| def.name.to_lowercase(), |_, before, _| before);
        restore(&mut found.enums, step.enums, |def| def.id.to_string(), |_, before, _| before);
        restore(&mut found.namespaces, step.namespaces, |def| def.id.to_string(), |_, before, _| before);
        restore(&mut found.routines, step.routines, |def| def.id.to_string(), |_, before, _| before);
        restore(&mut found.servers, step.servers, |def| def.id.to_string(), |_, before, _| before);
        restore(&mut found.sequences, step.sequences, |def| def.id.to_string(), sequence);
    }
    // A column has the enum type as it is.
    let now = |own: &Arc<EnumDef>| found.enums.iter().find(|now| now.id == own.id).cloned().map(Arc::new);
    for column in found.tables.iter_mut().flat_map(|def| &mut def.columns) {
        if let Some(own) = column.enumeration.as_ref().and_then(now) {
            column.resolve(&own);
        }
    }
}

/// The tables of which it cannot be known that their rows fit the definitions before these steps. The process may have
/// died while it undid them, with any of them undone already. So every definition that rows were written under is
/// compared with the first, and never with one in between, which may be looser or stricter than what was in force.
fn emptied(found: &Definitions, steps: &[Before]) -> Vec<u16> {
    let mut emptied: Vec<u16> = steps.iter().flat_map(|step| step.written.clone()).collect();
    let mut seen = HashSet::new();
    for Change { of, before, .. } in steps.iter().flat_map(|step| &step.tables) {
        if !seen.insert(of) {
            continue;
        }
        // One that was made since goes, with its rows.
        let Some(first) = before else { continue };
        let now = found.tables.iter().find(|def| def.id == first.id);
        let own = steps.iter().flat_map(|step| &step.tables).filter(|change| change.of == *of);
        let mut later = own.filter_map(|change| change.after.as_ref()).chain(now);
        if now.is_none() || later.any(|def| def.allows_more_than(first)) {
            emptied.push(first.id);
        }
    }
    emptied
}

/// The steps of each single thing, that which changed last first: so a rollback undoes them.
fn apart(steps: &[Before]) -> Vec<Vec<Before>> {
    let mut parts: Vec<((u8, String), Vec<Before>)> = Vec::new();
    for (of, step) in steps.iter().rev().flat_map(singles) {
        match parts.iter_mut().find(|(own, _)| *own == of) {
            Some((_, part)) => part.insert(0, step),
            None => parts.push((of, vec![step])),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// A step for each thing that it changed.
fn singles(step: &Before) -> Vec<((u8, String), Before)> {
    fn each<D: Clone>(
        kind: u8,
        changes: &[Change<D>],
        put: impl Fn(&mut Before, Vec<Change<D>>),
    ) -> Vec<((u8, String), Before)> {
        let single = |change: &Change<D>| {
            let mut step = Before::default();
            put(&mut step, vec![change.clone()]);
            ((kind, change.of.clone()), step)
        };
        changes.iter().map(single).collect()
    }
    [
        each(0, &step.views, |step, changes| step.views = changes),
        each(1, &step.routines, |step, changes| step.routines = changes),
        each(2, &step.tables, |step, changes| step.tables = changes),
        each(3, &step.sequences, |step, changes| step.sequences = changes),
        each(4, &step.servers, |step, changes| step.servers = changes),
        each(5, &step.enums, |step, changes| step.enums = changes),
        each(6, &step.namespaces, |step, changes| step.namespaces = changes),
    ]
    .concat()
}

fn restore<D>(
    all: &mut Vec<D>,
    changes: Vec<Change<D>>,
    name: impl Fn(&D) -> String,
    merged: impl Fn(&D, D, Option<&D>) -> D,
) {
    for Change { of, before, after } in changes {
        let place = all.iter().position(|own| name(own) == of);
        match (place, before) {
            (Some(place), Some(before)) => all[place] = merged(&all[place], before, after.as_ref()),
            (Some(place), None) => drop(all.swap_remove(place)),
            (None, before) => all.extend(before),
        }
    }
}

/// No number of a sequence is given out twice: it stands where it came to, unless that is no place of the earlier one.
fn sequence(now: &SequenceDef, before: SequenceDef, _: Option<&SequenceDef>) -> SequenceDef {
    let further = |one: Place, other: Place| {
        let is_behind = if before.increment < 0 { other.last < one.last } else { other.last > one.last };
        if is_behind { other } else { one }
    };
    let place = further(before.place, now.place);
    let fits = (before.min..=before.max).contains(&place.last);
    SequenceDef { place: if fits { place } else { before.place }, ..before }
}

fn table(tables: &mut Vec<TableDef>, Change { before, after, of }: Change<TableDef>) {
    let place = tables.iter().position(|def| def.id.to_string() == of);
    let Some(before) = before else {
        if let Some(place) = place {
            tables.swap_remove(place);
        }
        return;
    };
    let Some(place) = place else {
        tables.push(before);
        return;
    };
    let now = &tables[place];
    let mut again = now.taken_back(&before, before.indexes.clone());
    again.schema = now.schema + 1;
    again.options = before.options.clone();
    // What was granted by others meanwhile, or taken away, stays so.
    let same = |after: &TableDef| after.access == before.access && grants(after) == grants(&before);
    if !after.as_ref().is_some_and(same) {
        again.access = before.access.clone();
        for column in &mut again.columns {
            if let Some(at) = before.column_index(&column.name) {
                column.grants.clone_from(&before.columns[at].grants);
            }
        }
    }
    tables[place] = again;
}

fn grants(def: &TableDef) -> Vec<(&str, &[Grant])> {
    let granted = def.columns.iter().filter(|column| !column.grants.is_empty());
    granted.map(|column| (column.name.as_str(), column.grants.as_slice())).collect()
}
