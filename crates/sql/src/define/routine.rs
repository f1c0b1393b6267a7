//! `CREATE FUNCTION`, `CREATE PROCEDURE`, and their end. The executor has made what is kept (`executor/routine.rs`).

use sqltext::definition::{AlterRoutine, DropRoutine, RoutineChange};
use sqltext::grant::{Granted, GrantedTo, Grants, Kind, Routine, grant_to, revoke_from};
use store::definition::{Grant, Privileges, RoutineDef, qualified};
use store::{Catalog, TableAccess};

use super::grant::{grantee, named, of_new};
use super::{Defined, Note, Undo};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::token::{Tokens, unquoted};

/// Keeps a function or procedure.
pub(crate) fn create(core: &Core, mut made: RoutineDef, replace: bool) -> Result<Defined, SqlError> {
    let tag = if made.returns.is_some() { "CREATE FUNCTION" } else { "CREATE PROCEDURE" };
    let known = core.catalog.routine(&made.name).filter(|_| replace).cloned();
    if let Some(known) = &known {
        if known.word() != made.word() {
            let message = "cannot change routine kind";
            let detail = format!("\"{}\" is a {}.", known.name, known.word());
            return Err(SqlError::new(state::NOT_A_TABLE, message).with_detail(detail));
        }
        // It keeps its owner and its privileges.
        made.access.clone_from(&known.access);
    } else {
        made.access = of_new(core, Kind::Function, made.namespace.as_deref());
    }
    let undo = known.map_or_else(
        || Undo::Routine(made.name.clone()),
        |known| Undo::RoutineGone(Box::new(RoutineDef::clone(&known))),
    );
    core.store.create_routine(made, replace)?;
    Ok(Defined::undone_by(tag, undo))
}

/// All that are named are looked for before the first goes.
pub(super) fn drop(core: &Core, dropped: &DropRoutine) -> Result<Defined, SqlError> {
    let (tag, word) = match dropped.word {
        "FUNCTION" => ("DROP FUNCTION", "function"),
        "PROCEDURE" => ("DROP PROCEDURE", "procedure"),
        _ => ("DROP ROUTINE", "routine"),
    };
    let (mut going, mut notes) = (Vec::new(), Vec::new());
    for name in &dropped.names {
        match core.catalog.routine(&name.text) {
            Some(known) if word != "routine" && known.word() != word => {
                let message = format!("\"{}\" is a {}", name.text, known.word());
                return Err(SqlError::new(state::NOT_A_TABLE, message));
            }
            Some(known) => going.push(known),
            None if dropped.if_exists => notes.push(Note::missing(word, &name.text)),
            None => return Err(unknown(word, &name.text)),
        }
    }
    let mut defined =
        Defined { tag, fill: None, notes, skipped: going.is_empty(), undo: Vec::new(), invalidated: None };
    for known in going {
        core.store.drop_routine(&known.name)?;
        defined.undo.push(Undo::RoutineGone(Box::new(RoutineDef::clone(known))));
    }
    Ok(defined)
}

/// `ALTER FUNCTION`, `ALTER PROCEDURE`, `ALTER ROUTINE`
pub(super) fn alter(core: &Core, wanted: &AlterRoutine) -> Result<Defined, SqlError> {
    let (tag, word) = match wanted.word {
        "FUNCTION" => ("ALTER FUNCTION", "function"),
        "PROCEDURE" => ("ALTER PROCEDURE", "procedure"),
        _ => ("ALTER ROUTINE", "routine"),
    };
    let name = &wanted.name.text;
    let known = core.catalog.routine(name).ok_or_else(|| unknown(word, name))?;
    if word != "routine" && known.word() != word {
        return Err(SqlError::new(state::NOT_A_TABLE, format!("{name} is not a {word}")));
    }
    let before = Undo::RoutineGone(Box::new(RoutineDef::clone(known)));
    match &wanted.change {
        RoutineChange::Nothing => Ok(Defined {
            tag,
            fill: None,
            notes: Vec::new(),
            skipped: true,
            undo: Vec::new(),
            invalidated: None,
        }),
        RoutineChange::Rename(to) => {
            let to = qualified(known.namespace.as_deref(), &to.text);
            core.store.rename_routine(name, &to)?;
            Ok(Defined::undone_by(tag, Undo::RoutineRenamed(to, known.name.clone())))
        }
        RoutineChange::Definer(_) | RoutineChange::Path(_) => {
            let mut made = RoutineDef::clone(known);
            match &wanted.change {
                RoutineChange::Path(path) => made.path.clone_from(path),
                change => made.definer = matches!(change, RoutineChange::Definer(true)),
            }
            core.store.create_routine(made, true)?;
            Ok(Defined::undone_by(tag, before))
        }
        RoutineChange::Owner(owner) => {
            let holder = core.system.identity().holder();
            if core.system.server().owner().is_none() {
                let note = Note::hinted(
                    "functions have no owners",
                    "start the server with roles_file to keep roles",
                );
                return Ok(Defined::skipped(tag, note));
            }
            let owner = named(core, owner)?;
            if !holder.rights.superuser && !holder.is(&owner) {
                let message = format!("must be able to SET ROLE \"{owner}\"");
                return Err(SqlError::new(state::FORBIDDEN, message));
            }
            core.store.change_routine_access(name, &mut |access| {
                access.whole.hand_over(&owner, Privileges::EXECUTE);
                Ok(())
            })?;
            Ok(Defined::undone_by(tag, before))
        }
    }
}

impl Core {
    /// An error that a user's function is unknown, where it is known and stands in a place that none can stand in.
    #[cold]
    pub(crate) fn about_routine(&self, error: SqlError, sql: &str) -> SqlError {
        let is = |catalog: &Catalog, name: &str| catalog.routine(name).is_some();
        if error.state != state::UNKNOWN_FUNCTION || self.catalog.routines().is_empty() {
            return error;
        }
        let mut tokens = Tokens::new(sql).peekable();
        while let Some(token) = tokens.next() {
            let name = self.catalog.found_name(&unquoted(token.text), is);
            if tokens.peek().is_some_and(|next| next.is_sign("(")) && is(&self.catalog, &name) {
                return SqlError::not_supported(format!("function {name} in this place"))
                    .with_hint("call it as a whole statement, or in a SELECT")
                    .at(sql, token.start);
            }
        }
        error
    }
}

pub(crate) fn unknown(word: &str, name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_FUNCTION, format!("{word} {name} does not exist"))
}

/// `GRANT` and `REVOKE` of calling users' own; none of them is built in.
pub(super) fn grant(
    core: &Core,
    sql: &str,
    grants: &Grants,
    routines: &[Routine],
    to: &[GrantedTo],
) -> Result<Defined, SqlError> {
    let tag = if grants.revokes { "REVOKE" } else { "GRANT" };
    grants.privileges.iter().try_for_each(|granted| check(sql, granted))?;
    let to = to.iter().map(|to| grantee(core, to)).collect::<Result<Vec<_>, _>>()?;
    let mut defined =
        Defined { tag, fill: None, notes: Vec::new(), skipped: false, undo: Vec::new(), invalidated: None };
    for routine in routines {
        let Some(known) = core.catalog.routine(&routine.name) else {
            return Err(unknown("function", &routine.name));
        };
        let holder = core.system.identity().holder();
        if !holder.owns(&known.access) && !holder.on(&known.access).1.has(Privileges::EXECUTE) {
            return Err(crate::needs::denied(known.word(), &known.name));
        }
        let own = holder.owns(&known.access);
        let by = if own { known.access.owner.clone() } else { Some(core.system.identity().role.clone()) };
        let before = RoutineDef::clone(known);
        core.store.change_routine_access(&known.name, &mut |access| {
            change(access, grants, &to, by.as_ref());
            Ok(())
        })?;
        defined.undo.push(Undo::RoutineGone(Box::new(before)));
    }
    Ok(defined)
}

fn check(sql: &str, granted: &Granted) -> Result<(), SqlError> {
    if granted.columns.is_empty() && ["ALL", "EXECUTE"].contains(&granted.word.text.as_str()) {
        return Ok(());
    }
    let message = format!("invalid privilege type {} for function", granted.word.text);
    Err(SqlError::new(state::INVALID_GRANT, message).at(sql, granted.word.place))
}

fn change(access: &mut TableAccess<'_>, grants: &Grants, to: &[Option<String>], by: Option<&String>) {
    let mut whole = access.whole.listed(Privileges::EXECUTE);
    for to in to {
        let privileges = Privileges::EXECUTE;
        let grantable = if grants.option { privileges } else { Privileges::NONE };
        let one = Grant { to: to.clone(), by: by.cloned(), privileges, grantable };
        if grants.revokes {
            // What was handed on goes along.
            let _none = revoke_from(&mut whole, &one, grants.option, true);
        } else {
            grant_to(&mut whole, &one);
        }
    }
    access.whole.grants = Some(whole);
}
