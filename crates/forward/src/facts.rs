//! What `sqlcached_forwarded` shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::ForwardedFacts;
use inspect::{Dependences, Relation};

use crate::freshness::Freshness;
use crate::hub::Hub;
use crate::text::{Phase, Statement, Text};

/// All statements of a server.
pub(crate) fn of_hub(hub: &Hub) -> Vec<ForwardedFacts> {
    hub.texts().iter().flat_map(|text| of_text(hub, text)).collect()
}

/// A text, in each state that it has come in.
pub(crate) fn of_text(hub: &Hub, text: &Arc<Text>) -> Vec<ForwardedFacts> {
    if let Some(refusal) = &text.refusal {
        return vec![ForwardedFacts {
            server: hub.server().to_owned(),
            statement: text.sql.to_string(),
            state: "refused",
            name: text.name(),
            reason: Some(refusal.reason.clone()),
            cure: refusal.cure.clone(),
            forwarded: load(&text.calls),
            ..ForwardedFacts::default()
        }];
    }
    text.statements().iter().map(|statement| of_statement(hub, statement)).collect()
}

fn of_statement(hub: &Hub, statement: &Statement) -> ForwardedFacts {
    let counts = &statement.counts;
    let mut facts = ForwardedFacts {
        server: hub.server().to_owned(),
        number: statement.number,
        statement: statement.sql().to_owned(),
        name: statement.text.name(),
        user: statement.state().user().to_owned(),
        forwarded: load(&counts.forwarded),
        forwarded_us: load(&counts.forwarded_us),
        hits: load(&counts.hits),
        kept: load(&counts.kept),
        late: load(&counts.late),
        joined: load(&counts.joined),
        ..ForwardedFacts::default()
    };
    match statement.phase() {
        Phase::New => facts.state = "new",
        Phase::Asked => facts.state = "asked",
        Phase::Refused(refusal) => {
            (facts.state, facts.reason, facts.cure) = ("refused", Some(refusal.reason), refusal.cure);
        }
        Phase::Kept(dependences) => {
            facts.state = "kept";
            facts.depends = depends(&dependences);
            facts.cure = dependences.occurrences.iter().find_map(|occurrence| occurrence.note.clone());
        }
    }
    let state = statement.state();
    let refused = state.keeps_from_reading().or_else(|| hub.refuses(&statement.text, state));
    if let (None, Some(reason)) = (&facts.reason, refused) {
        facts.reason = Some(reason.to_owned());
    }
    if facts.reason.is_none()
        && hub.freshness(&statement.text, state) == Freshness::Commit
        && !hub.was_awaited()
    {
        facts.reason = Some("commits at the source do not wait for this cache".to_owned());
        let cure = "set the server's freshness to commit, and name its stream in synchronous_standby_names";
        facts.cure = Some(cure.to_owned());
    }
    facts
}

/// What a statement depends on: tables, with the columns whose values tell which of their rows.
fn depends(dependences: &Dependences) -> Vec<String> {
    let name = |oid: u32| {
        let is = |relation: &&Relation| relation.oid == oid;
        dependences
            .relations
            .iter()
            .find(is)
            .map_or_else(|| oid.to_string(), |relation| relation.name.clone())
    };
    let mut all: Vec<String> = dependences
        .occurrences
        .iter()
        .map(|occurrence| match &occurrence.guard {
            Some(guard) => format!("{}({})", name(occurrence.relation), guard.column),
            None => name(occurrence.relation),
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

fn load(counter: &AtomicU64) -> u64 {
    // Relaxed: a count that nothing depends on.
    counter.load(Ordering::Relaxed)
}
