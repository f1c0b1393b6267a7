//! What was defined before each definition of a transaction that is still open.
//!
//! A definition takes effect at once, and `ROLLBACK` undoes it. A process that is killed cannot. So what was there
//! before is written with the definitions, in the same step, until the transaction commits; the next process begins
//! with that.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::catalogue::Definitions;
use crate::definition::{
    EnumDef, Grant, NamespaceDef, Place, RoutineDef, SequenceDef, ServerDef, TableDef, ViewDef,
};
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
    /// Each with the number of its step.
    steps: Vec<(u64, Before)>,
    under_way: Option<UnderWay>,
    last: u64,
}

/// The step under way.
#[derive(Debug)]
struct UnderWay {
    step: u64,
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
    /// A definition of a transaction begins.
    pub(crate) fn begin(&mut self, now: Arc<Catalog>) -> u64 {
        self.last += 1;
        self.under_way = Some(UnderWay { step: self.last, before: now, written: Vec::new() });
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
            self.steps.push((under_way.step, changed));
        }
    }

    /// These steps are of no open transaction any more; false: there were none.
    pub(crate) fn close(&mut self, steps: &[u64]) -> bool {
        let known = self.steps.len();
        self.steps.retain(|(step, _)| !steps.contains(step));
        known != self.steps.len()
    }

    /// What is to be written with these definitions.
    pub(crate) fn written(&self, now: &Catalog) -> Vec<Before> {
        let under_way = self.under_way.as_ref().map(|under_way| under_way.changed(now));
        let steps = self.steps.iter().map(|(_, before)| before.clone());
        steps.chain(under_way.filter(|changed| *changed != Before::default())).collect()
    }
}

/// What differs between two catalogues.
fn between(before: &Catalog, after: &Catalog) -> Before {
    let tables =
        |catalog: &Catalog| -> Vec<TableDef> { catalog.tables().map(|table| table.def().clone()).collect() };
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
        routines: changes(routines(before), routines(after), |def| def.name.to_lowercase()),
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

/// Takes back what transactions defined that did not come to their end. Returns the numbers of the tables whose rows go
/// with it.
pub(crate) fn take_back(found: &mut Definitions) -> Vec<u16> {
    let mut emptied = Vec::new();
    for step in std::mem::take(&mut found.open).into_iter().rev() {
        emptied.extend(step.written);
        for change in step.tables {
            table(&mut found.tables, change, &mut emptied);
        }
        restore(&mut found.views, step.views, |def| def.name.to_lowercase(), |_, before, _| before);
        restore(&mut found.enums, step.enums, |def| def.id.to_string(), |_, before, _| before);
        restore(&mut found.namespaces, step.namespaces, |def| def.id.to_string(), |_, before, _| before);
        restore(&mut found.routines, step.routines, |def| def.name.to_lowercase(), |_, before, _| before);
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
    emptied
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

fn table(tables: &mut Vec<TableDef>, Change { before, after, of }: Change<TableDef>, emptied: &mut Vec<u16>) {
    let place = tables.iter().position(|def| def.id.to_string() == of);
    let Some(before) = before else {
        if let Some(place) = place {
            tables.swap_remove(place);
        }
        return;
    };
    let Some(place) = place else {
        emptied.push(before.id);
        tables.push(before);
        return;
    };
    let now = &tables[place];
    if now.allows_more_than(&before) {
        emptied.push(before.id);
    }
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
