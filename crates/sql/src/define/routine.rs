//! `CREATE FUNCTION`, `CREATE PROCEDURE`, and their end. The executor has made what is kept (`executor/routine.rs`).

use sqltext::definition::DropRoutine;
use sqltext::grant::{Granted, GrantedTo, Grants, Routine, grant_to, revoke_from};
use store::TableAccess;
use store::definition::{Access, Grant, Privileges, RoutineDef};

use super::grant::grantee;
use super::{Defined, Note, Undo};
use crate::core::Core;
use crate::error::{SqlError, state};

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
        made.access = of_new(core);
    }
    let undo = known.map_or_else(
        || Undo::Routine(made.name.clone()),
        |known| Undo::RoutineGone(Box::new(RoutineDef::clone(&known))),
    );
    core.store.create_routine(made, replace)?;
    Ok(Defined::undone_by(tag, undo))
}

/// Who makes it owns it, and everybody may call it, as in PostgreSQL.
fn of_new(core: &Core) -> Access {
    let identity = core.system.identity();
    let owner = core.system.server().holder(&identity.role).map(|_| identity.role.clone());
    let own = owner.as_deref().map(|owner| Grant::of_owner(owner, Privileges::EXECUTE));
    let all =
        Grant { to: None, by: owner.clone(), privileges: Privileges::EXECUTE, grantable: Privileges::NONE };
    Access { owner, grants: Some(own.into_iter().chain([all]).collect()) }
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
    let mut defined = Defined { tag, fill: None, notes, skipped: going.is_empty(), undo: Vec::new() };
    for known in going {
        core.store.drop_routine(&known.name)?;
        defined.undo.push(Undo::RoutineGone(Box::new(RoutineDef::clone(known))));
    }
    Ok(defined)
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
    let mut defined = Defined { tag, fill: None, notes: Vec::new(), skipped: false, undo: Vec::new() };
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
