//! The file in a store beside the real one: what each of its statements makes, changes and fills.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::auth::Access;
use engine::{Engine, EngineOptions};
use store::{Clock, Store, StoreOptions};

use super::picture::{Kind, Object, Picture, picture, writes};
use super::split::Statement;
use super::{Failure, Runner, failed};

/// SQLSTATE of a role that is there already: roles have a file of their own, which outlives the arena.
const DUPLICATE_OBJECT: &str = "42710";

/// What a file says.
pub(super) struct Rehearsal {
    /// What is defined after it.
    pub(super) said: Picture,
    /// What each statement made, changed or filled.
    pub(super) touched: Vec<BTreeSet<Object>>,
}

/// Where a rehearsal is held: as much memory as the store that it is for, and the roles there.
pub(super) struct Stage<'s> {
    pub(super) store: &'s Store,
    pub(super) row_bytes_max: usize,
    pub(super) access: Access,
}

/// Runs all statements in a store of their own.
pub(super) fn rehearse(
    path: &Path,
    statements: &[Statement<'_>],
    stage: Stage<'_>,
) -> Result<Rehearsal, String> {
    let options = StoreOptions {
        path: None,
        memory_bytes: stage.store.memory_bytes(),
        cold: true,
        clock: Clock::of_process(),
        row_bytes_max: stage.row_bytes_max,
    };
    // Tables of shared memory need a file. Nobody looks for one of this name.
    let shared = stage.store.shared_path().map(|path| path.with_extension("rehearsal"));
    let opened = Store::open_with(&options, shared.clone()).map_err(|error| format!("init_file: {error}"));
    let rehearsed = opened.and_then(|opened| {
        let engine = Engine::new(opened.store, EngineOptions::default());
        engine.access.on_change(Box::new(|_| Ok(())));
        engine.access.set(stage.access);
        perform(path, statements, &engine)
    });
    if let Some(shared) = shared {
        for path in [store::hits_path(&shared), shared] {
            // Only a table of shared memory made them.
            let _absent = fs::remove_file(path);
        }
    }
    rehearsed
}

fn perform(path: &Path, statements: &[Statement<'_>], engine: &Arc<Engine>) -> Result<Rehearsal, String> {
    let mut runner = Runner::new(engine)?;
    let now = || picture(&engine.store().catalog());
    let (mut before, mut touched) = (now(), Vec::with_capacity(statements.len()));
    let first = before.clone();
    for statement in statements {
        let written = writes(engine);
        match runner.run(statement.text) {
            Err((state, _)) if state == DUPLICATE_OBJECT && is_of_role(statement) => {}
            Err(failure) => return Err(failed(path, statement, &failure)),
            Ok(()) => {}
        }
        let after = now();
        let mut effects = differing(&before, &after);
        effects.extend(filled(&written, &writes(engine)));
        touched.push(effects);
        before = after;
    }
    // The built-in table is there without the file; what the file says of it counts.
    let own = |object: &Object| touched.iter().any(|effects| effects.contains(object));
    before.retain(|object, _| !first.contains_key(object) || own(object));
    Ok(Rehearsal { said: before, touched })
}

fn is_of_role(statement: &Statement<'_>) -> bool {
    ["CREATE ROLE", "CREATE USER", "CREATE GROUP"].contains(&statement.words(2).as_str())
}

/// Whether a statement may be run at every start though nothing is seen of it: it says the same each time.
pub(super) fn is_repeatable(statement: &Statement<'_>) -> bool {
    ["GRANT", "REVOKE", "COMMENT", "SET", "CREATE", "ALTER"].contains(&statement.words(1).as_str())
}

/// What a statement that failed in this way leaves as it is.
pub(super) fn is_present(statement: &Statement<'_>, (state, _): &Failure) -> bool {
    state == DUPLICATE_OBJECT && is_of_role(statement)
}

fn differing(before: &Picture, after: &Picture) -> BTreeSet<Object> {
    let objects = before.keys().chain(after.keys());
    objects.filter(|object| before.get(object) != after.get(object)).cloned().collect()
}

type Writes = BTreeMap<String, (u64, u64)>;

fn filled(before: &Writes, after: &Writes) -> BTreeSet<Object> {
    let changed = after.iter().filter(|(name, now)| before.get(*name).unwrap_or(&(0, 0)) != *now);
    changed.map(|(name, _)| Object::new(Kind::Rows, name)).collect()
}
