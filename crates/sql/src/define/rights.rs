//! Who may make, change and drop what.

use pgcatalog::session::{Holder, Identity};
use pgcatalog::{sequence, system};
use sqltext::definition::{
    Body, Change, Commented, CreateTable, Definition, Element, Like, Name, ObjectKind, SequenceChange,
    Setting, What,
};
use store::definition::{Privileges, SequenceDef, TableDef};

use super::server;
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::Governed;
use crate::needs::denied;

/// The schema of tables whose name says none.
pub(super) const PUBLIC: &str = "public";

/// Options by which a table takes something from everybody else: keys of memcached's, memory, the file that other
/// processes read.
const OF_SUPERUSERS: &[&str] = &["prefix", "shared_memory", "min_memory"];

/// Whether the session may carry a definition out. What does not exist is refused later.
pub(crate) fn check(core: &Core, identity: &Identity, definition: &Definition<'_>) -> Result<(), SqlError> {
    if identity.rights.superuser {
        return Ok(());
    }
    let checked = Checked { core, holder: identity.holder() };
    match &definition.what {
        What::CreateTable(wanted) => checked.new_table(wanted),
        What::CreateView(wanted) => {
            let replaced = core.catalog.view(&wanted.name.text).is_some() && wanted.replace;
            if replaced { checked.owns(&wanted.name.text) } else { checked.creates(&wanted.name) }
        }
        What::CreateMaterialized(wanted) => {
            checked.creates(&wanted.name)?;
            check_settings(&wanted.settings)
        }
        What::Refresh(wanted) => checked.owns(&wanted.name.text),
        What::CreateRoutine(wanted) => match core.catalog.routine(&wanted.name.text) {
            Some(_) if wanted.replace => checked.owns_routine(&wanted.name.text),
            _ => checked.creates(&wanted.name),
        },
        What::DropRoutine(dropped) => {
            dropped.names.iter().try_for_each(|name| checked.owns_routine(&name.text))
        }
        What::AlterRoutine(alter) => checked.owns_routine(&alter.name.text),
        What::CreateIndex(wanted) => checked.owns(&wanted.table.text),
        What::AlterTable(alter) => {
            checked.owns(&alter.table.text)?;
            alter.changes.iter().try_for_each(|change| match change {
                Change::Set(settings) | Change::Reset(settings) => check_settings(settings),
                Change::SetSchema(schema) => {
                    checked.creates_in(schema.as_ref().map(|schema| schema.text.as_str()))
                }
                _ => Ok(()),
            })
        }
        What::RenameIndex(rename) => checked.owns_index(&rename.name.text),
        What::Drop(dropped) => dropped.names.iter().try_for_each(|name| match dropped.kind {
            ObjectKind::Table | ObjectKind::View | ObjectKind::Materialized | ObjectKind::Sequence => {
                checked.owns(&name.text)
            }
            ObjectKind::Index => checked.owns_index(&name.text),
            ObjectKind::Enum => Err(no_owner("type", &name.text)),
            ObjectKind::Schema => Err(no_owner("schema", &name.text)),
        }),
        What::CreateEnum(wanted) => checked.creates(&wanted.name),
        What::CreateSequence(wanted) => checked.creates(&wanted.name),
        What::AlterSequence(alter) => {
            checked.owns(&alter.name.text)?;
            match &alter.change {
                SequenceChange::SetSchema(schema) => {
                    checked.creates_in(schema.as_ref().map(|schema| schema.text.as_str()))
                }
                _ => Ok(()),
            }
        }
        What::CreateSchema(_) => Err(denied("database", &identity.database)),
        What::AlterEnum(alter) => Err(no_owner("type", &alter.name.text)),
        What::Truncate(emptied) => {
            emptied.names.iter().try_for_each(|name| checked.empties(&name.text, emptied.restart))
        }
        What::CreateRule(rule) => checked.owns(&rule.table.text),
        What::DropRule(dropped) => match core.catalog.rule(&dropped.name.text) {
            Some((table, _)) => checked.owns(table.name()),
            None => Ok(()),
        },
        What::Comment(comment) => match &comment.about {
            Commented::Object(ObjectKind::Index, name) => checked.owns_index(&name.text),
            Commented::Object(_, name) => checked.owns(&name.text),
            Commented::Column(table, _) | Commented::Constraint(table, _) => checked.owns(&table.text),
            Commented::Other if checked.holder.rights.superuser => Ok(()),
            Commented::Other => {
                let message = "must be owner of what the comment is about";
                Err(SqlError::new(state::FORBIDDEN, message))
            }
        },
        What::Server(statement) => server::check(&core.catalog, &checked.holder, statement),
        // The first two look at each table by themselves. What the others ask for is so, and stays as it is.
        What::Grant(_) | What::Owner(_) | What::Known(_) | What::Nothing(_) => Ok(()),
        What::Upkeep(_) => {
            Err(SqlError::new(state::FORBIDDEN, "permission denied: the server keeps tables up by itself"))
        }
    }
}

struct Checked<'c> {
    core: &'c Core,
    holder: Holder,
}

impl Checked<'_> {
    fn creates(&self, name: &Name) -> Result<(), SqlError> {
        self.creates_in(name.namespace.as_deref())
    }

    fn creates_in(&self, namespace: Option<&str>) -> Result<(), SqlError> {
        let schema = namespace.unwrap_or(PUBLIC);
        if self.core.system.server().may_create(schema, &self.holder.roles) {
            return Ok(());
        }
        let error = denied("schema", schema);
        Err(error.with_hint("a superuser can give it: GRANT CREATE ON SCHEMA ... TO the role"))
    }

    fn new_table(&self, wanted: &CreateTable) -> Result<(), SqlError> {
        self.creates(&wanted.name)?;
        check_settings(&wanted.settings)?;
        let Body::Elements(elements) = &wanted.body else { return Ok(()) };
        elements.iter().try_for_each(|element| match element {
            Element::Like(like) => self.copies(like),
            _ => Ok(()),
        })
    }

    fn copies(&self, like: &Like) -> Result<(), SqlError> {
        // Defaults and checks may hold data of the other table.
        self.reads(&like.table.text)?;
        let table = self.core.catalog.table(&like.table.text).filter(|_| like.including.storage);
        let Some(options) = table.map(|table| &table.def().options) else { return Ok(()) };
        // Of those for superusers, all are copied but the prefix.
        let copied = [("shared_memory", options.shared_memory), ("min_memory", options.min_memory.is_some())];
        match copied.into_iter().find(|(_, set)| *set) {
            Some((name, _)) => Err(no_setter(name)),
            None => Ok(()),
        }
    }

    fn reads(&self, name: &str) -> Result<(), SqlError> {
        match Governed::of(&self.core.catalog, name) {
            Some(object) if !self.holder.on(&object.access).0.has(Privileges::SELECT) => {
                Err(denied(object.word(), name))
            }
            _ => Ok(()),
        }
    }

    fn empties(&self, name: &str, restarts: bool) -> Result<(), SqlError> {
        let Some(object) = Governed::of(&self.core.catalog, name) else { return Ok(()) };
        if !self.holder.on(&object.access).0.has(Privileges::TRUNCATE) {
            return Err(denied(object.word(), name));
        }
        match object.def() {
            Some(def) if restarts && !self.holder.owns(&object.access) => self.restarts_numbers_of(def),
            _ => Ok(()),
        }
    }

    /// `RESTART IDENTITY` of a table with numbers is for their owner.
    fn restarts_numbers_of(&self, def: &TableDef) -> Result<(), SqlError> {
        let goes = |own: &&SequenceDef| own.owner.as_ref().is_some_and(|of| of.0 == def.id);
        let own = self.core.catalog.sequences().iter().map(|own| own.def()).find(goes);
        match own.map(|own| own.own_name().to_owned()).or_else(|| sequence::name_of_numbers(def)) {
            Some(name) => Err(no_owner("sequence", &name)),
            None => Ok(()),
        }
    }

    fn owns(&self, name: &str) -> Result<(), SqlError> {
        owner(self.core, &self.holder, name)
    }

    fn owns_routine(&self, name: &str) -> Result<(), SqlError> {
        match self.core.catalog.routine(name) {
            Some(routine) if !self.holder.owns(&routine.access) => Err(no_owner(routine.word(), name)),
            _ => Ok(()),
        }
    }

    fn owns_index(&self, index: &str) -> Result<(), SqlError> {
        match self.core.catalog.index_owner(index) {
            Some(table) if !self.holder.owns(&table.def().access) => Err(no_owner("index", index)),
            _ => Ok(()),
        }
    }
}

fn check_settings(settings: &[Setting]) -> Result<(), SqlError> {
    let refused = |(name, _): &&Setting| OF_SUPERUSERS.iter().any(|own| own.eq_ignore_ascii_case(name));
    match settings.iter().find(refused) {
        None => Ok(()),
        Some((name, _)) => Err(no_setter(name)),
    }
}

fn no_setter(option: &str) -> SqlError {
    let message = format!("permission denied to set the option \"{option}\"");
    SqlError::new(state::FORBIDDEN, message).with_hint("superusers may")
}

/// Whether somebody owns a table, view or sequence, if there is one of this name.
pub(super) fn owner(core: &Core, holder: &Holder, name: &str) -> Result<(), SqlError> {
    system::refuse_change(name)?;
    match Governed::of(&core.catalog, name) {
        Some(object) if !holder.owns(&object.access) => Err(no_owner(object.word(), name)),
        _ => Ok(()),
    }
}

pub(super) fn no_owner(what: &str, name: &str) -> SqlError {
    SqlError::new(state::FORBIDDEN, format!("must be owner of {what} {name}"))
}
