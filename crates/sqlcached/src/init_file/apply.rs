//! The file against an arena that has tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use engine::Engine;
use store::definition::{ColumnDef, TableOptions};
use tracing::{info, warn};

use super::picture::{Kind, OPTION_IS, Object, Picture, picture};
use super::rehearse::{Rehearsal, Stage, is_present, is_repeatable, rehearse};
use super::split::{Statement, statements};
use super::{Runner, failed, read};

/// Options that cannot change, or not without rows that are lost: the log names them.
const KEPT_OPTIONS: &[&str] = &["prefix", "value", "ordered", "shared_memory", "source", "depends"];

/// Makes what the file says and is not there, and follows it where no row is lost. Gives back how many statements did
/// something. A file that cannot be run is an error, and changes nothing.
pub(crate) fn apply(path: &Path, engine: &Arc<Engine>, row_bytes_max: usize) -> Result<usize, String> {
    let text = read(path)?;
    let statements = statements(&text);
    let access = engine.access.current().as_ref().clone();
    let stage = Stage { store: engine.store(), row_bytes_max, access };
    let rehearsal = rehearse(path, &statements, stage)?;
    let before = picture(&engine.store().catalog());
    let mut file = File { path, engine, statements, rehearsal, runner: Runner::new(engine)?, done: 0 };
    file.make_missing(&before)?;
    file.follow(&before);
    Ok(file.done)
}

struct File<'f> {
    path: &'f Path,
    engine: &'f Arc<Engine>,
    statements: Vec<Statement<'f>>,
    rehearsal: Rehearsal,
    runner: Runner,
    /// Statements that did something.
    done: usize,
}

impl<'f> File<'f> {
    /// Runs the statements that make what was not there.
    fn make_missing(&mut self, before: &Picture) -> Result<(), String> {
        for at in 0..self.statements.len() {
            let (statement, touched) = (self.statements[at], &self.rehearsal.touched[at]);
            let missing = touched.iter().filter(|object| !before.contains_key(&object.holder())).count();
            let (all, some) = (missing == touched.len(), missing > 0);
            let unseen = touched.is_empty();
            if if unseen { !is_repeatable(&statement) } else { !some } {
                continue;
            }
            match self.runner.run(statement.text) {
                Ok(()) => self.done += usize::from(!unseen),
                Err(failure) if is_present(&statement, &failure) => {}
                Err(failure) if all && !unseen => return Err(failed(self.path, &statement, &failure)),
                Err(failure) => warn!("{}", failed(self.path, &statement, &failure)),
            }
        }
        Ok(())
    }

    /// Compares what was there with what the file says.
    fn follow(&mut self, before: &Picture) {
        let now = picture(&self.engine.store().catalog());
        let said: Vec<_> = self.rehearsal.said.clone().into_iter().collect();
        for (object, wanted) in said {
            let there = now.get(&object).filter(|there| **there != wanted);
            let (Some(there), true) = (there, before.contains_key(&object.holder())) else { continue };
            let Some(statement) = self.statement_of(&object) else { continue };
            let followed = match object.kind {
                Kind::Options => self.set_options(&object, there, &wanted),
                Kind::View | Kind::Routine => self.run_instead(statement, None),
                Kind::Rule => self.run_instead(statement, Some(&format!("DROP EXPIRY RULE {}", object.name))),
                Kind::Index => self.run_instead(statement, Some(&format!("DROP INDEX {}", object.name))),
                _ => Err(String::new()),
            };
            let place = format!("init_file {} line {}", self.path.display(), statement.line);
            match followed {
                Ok(true) => {
                    self.done += 1;
                    info!("{place}: {object} was changed as the file says");
                }
                Ok(false) => {}
                Err(why) => warn!(
                    "{place}: {object} is not what the file says and was left as it is{}{why}. {}. Change it by ALTER, \
                     or drop it before the next start, or change the file",
                    if why.is_empty() { "" } else { ": " },
                    difference(there, &wanted)
                ),
            }
        }
    }

    /// The last statement that made or changed something.
    fn statement_of(&self, object: &Object) -> Option<Statement<'f>> {
        let touches =
            |effects: &BTreeSet<Object>| effects.contains(object) || effects.contains(&object.holder());
        self.rehearsal.touched.iter().rposition(touches).map(|at| self.statements[at])
    }

    /// Replaces something that holds no rows.
    fn run_instead(&mut self, statement: Statement<'_>, first: Option<&str>) -> Result<bool, String> {
        let text = match statement.words(2).as_str() {
            "CREATE VIEW" | "CREATE FUNCTION" | "CREATE PROCEDURE" => {
                let behind = statement.text.trim_start().get("CREATE".len()..).unwrap_or_default();
                format!("CREATE OR REPLACE{behind}")
            }
            _ => statement.text.to_owned(),
        };
        for sql in first.into_iter().chain([text.as_str()]) {
            self.runner.run(sql).map_err(|(state, message)| format!("{state} {message}"))?;
        }
        Ok(true)
    }

    /// Gives a table the options of the file, but those by which rows would be lost.
    fn set_options(
        &self,
        object: &Object,
        there: &BTreeSet<String>,
        wanted: &BTreeSet<String>,
    ) -> Result<bool, String> {
        let (there, wanted) = (options_of(there), options_of(wanted));
        let names: BTreeSet<&str> = there.keys().chain(wanted.keys()).copied().collect();
        let differing = names.into_iter().filter(|name| there.get(name) != wanted.get(name));
        let (kept, changed): (Vec<&str>, Vec<&str>) = differing.partition(|name| KEPT_OPTIONS.contains(name));
        if !changed.is_empty() {
            let mut change = |options: &mut TableOptions, columns: &[ColumnDef]| {
                changed.iter().try_for_each(|name| match wanted.get(name) {
                    Some(text) => options.set(name, text, columns),
                    None => options.reset(name),
                })
            };
            let set = self.engine.store().set_options(&object.name, &mut change);
            set.map_err(|error| format!("{} {}", error.state, error.message))?;
        }
        if kept.is_empty() { Ok(true) } else { Err(format!("{} stays", kept.join(", "))) }
    }
}

/// Options by their names.
fn options_of(clauses: &BTreeSet<String>) -> BTreeMap<&str, &str> {
    clauses.iter().filter_map(|clause| clause.split_once(OPTION_IS)).collect()
}

/// What differs, in words.
fn difference(there: &BTreeSet<String>, wanted: &BTreeSet<String>) -> String {
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        let clauses: Vec<&str> = one.difference(other).map(String::as_str).collect();
        if clauses.is_empty() { "nothing more".to_owned() } else { clauses.join(", ") }
    };
    format!("Here: {}; in the file: {}", only(there, wanted), only(wanted, there))
}
