//! Foreign servers with user mappings and cached queries: `CREATE SERVER`, `CREATE USER MAPPING`,
//! `CREATE CACHED QUERY`, their changes and their end.

use std::sync::Arc;

use pgcatalog::session::Holder;
use sqltext::definition::{
    CreateServer, MappingOf, Name, OptionChange, QueryOf, ServerAlteration, ServerStatement,
};
use sqltext::grant::{GrantedTo, Privileges};
use sqltext::role::RoleRef;
use store::definition::{Access, CachedQueryDef, MappingDef, ServerDef, ServerOption, TableDef, Wrapper};
use store::{Catalog, DdlError, ServerChange, Table};

use super::grant::named;
use super::rights::no_owner;
use super::{Defined, Note, Undo};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;
use crate::needs::denied;

pub(super) fn run(core: &Core, statement: &ServerStatement) -> Result<Defined, SqlError> {
    match statement {
        ServerStatement::Create(wanted) => create(core, wanted),
        ServerStatement::Alter(name, change) => alter(core, name, change),
        ServerStatement::Drop { if_exists, names, cascade } => drop(core, names, *if_exists, *cascade),
        ServerStatement::CreateMapping { if_not_exists, of, options } => {
            create_mapping(core, of, options, *if_not_exists)
        }
        ServerStatement::AlterMapping(of, options) => alter_mapping(core, of, options),
        ServerStatement::DropMapping { if_exists, of } => drop_mapping(core, of, *if_exists),
        ServerStatement::CreateQuery { if_not_exists, of, options, statement } => {
            let name = of.name.text.clone();
            let made = CachedQueryDef { name, statement: statement.clone(), options: options.clone() };
            create_query(core, of, made, *if_not_exists)
        }
        ServerStatement::DropQuery { if_exists, of } => drop_query(core, of, *if_exists),
    }
}

/// Whether somebody who is no superuser may do it: the owner of the server may. What does not exist is refused later.
pub(super) fn check(catalog: &Catalog, holder: &Holder, statement: &ServerStatement) -> Result<(), SqlError> {
    let owns = |name: &Name| match catalog.server(&name.text) {
        Some(server) if !holder.owns(&server.access) => Err(no_owner("foreign server", &name.text)),
        _ => Ok(()),
    };
    match statement {
        ServerStatement::Create(wanted) => Err(denied("foreign-data wrapper", &wanted.wrapper.text)
            .with_hint("a superuser makes servers, and can give them away: ALTER SERVER ... OWNER TO")),
        ServerStatement::Alter(name, _) => owns(name),
        ServerStatement::Drop { names, .. } => names.iter().try_for_each(owns),
        ServerStatement::CreateMapping { of, .. }
        | ServerStatement::AlterMapping(of, _)
        | ServerStatement::DropMapping { of, .. } => owns(&of.server),
        ServerStatement::CreateQuery { of, .. } | ServerStatement::DropQuery { of, .. } => owns(&of.server),
    }
}

/// Whether this session may have the servers that a table names, and whether they are what it takes them for. Asks the
/// source whether it can tell what the table depends on, and whether this session may have that.
pub(super) fn check_source(core: &Core, def: &TableDef) -> Result<Vec<Note>, SqlError> {
    check_bus(core, def)?;
    let Some(name) = &def.options.source else { return Ok(Vec::new()) };
    let server = usable(core, name)?;
    if server.is_bus() {
        let message = format!("server \"{name}\" is a bus, and no database");
        return Err(SqlError::new(state::BAD_PARAMETER, message).with_hint("name it by bus, not by source"));
    }
    def.validate()?;
    let notes = core.system.server().check_source(server, def)?;
    Ok(notes.into_iter().map(|(message, hint)| Note::hinted(message, hint)).collect())
}

/// Whether this session may have a table heard on the bus that it names.
fn check_bus(core: &Core, def: &TableDef) -> Result<(), SqlError> {
    let Some(name) = &def.options.bus else { return Ok(()) };
    let server = usable(core, name)?;
    if !server.is_bus() {
        let message = format!("server \"{name}\" is a database, and no bus");
        return Err(SqlError::new(state::BAD_PARAMETER, message)
            .with_hint(
                "name a server of FOREIGN DATA WRAPPER nats, or of postgres with the option bus 'on'; a database is \
                 named by source",
            ));
    }
    if def.replicates_rows() && server.wrapper != Wrapper::Nats {
        let message =
            format!("replicated = 'rows' is not supported on server \"{name}\" of wrapper postgres");
        return Err(SqlError::new(state::NOT_SUPPORTED, message)
            .with_hint("use replicated = 'invalidate', or a bus of FOREIGN DATA WRAPPER nats"));
    }
    Ok(())
}

/// A server that this session may ask.
pub(super) fn usable<'c>(core: &'c Core, name: &str) -> Result<&'c ServerDef, SqlError> {
    let server = known(core, name)?;
    let holder = core.system.identity().holder();
    if !holder.rights.superuser && !holder.owns(&server.access) {
        return Err(denied("foreign server", name));
    }
    Ok(server)
}

/// A table whose rows depend on a server.
fn user_of<'c>(core: &'c Core, server: &ServerDef) -> Option<&'c Arc<Table>> {
    let uses = |name: &String| name.eq_ignore_ascii_case(&server.name);
    let names = |table: &&Arc<Table>| {
        let options = &table.def().options;
        options.source.as_ref().is_some_and(uses) || options.bus.as_ref().is_some_and(uses)
    };
    core.catalog.tables().find(names)
}

/// Tables name their server, so it stays, and keeps its name, as long as they do.
fn refuse_used(core: &Core, server: &ServerDef, what: &str) -> Result<(), SqlError> {
    let Some(user) = user_of(core, server) else { return Ok(()) };
    let (name, table) = (&server.name, user.name());
    let (kind, hint) = match user.def().source_of_view() {
        Some(_) => (MATERIALIZED, format!("DROP MATERIALIZED VIEW {table} first")),
        None if user.is_told() => {
            ("table", format!("ALTER TABLE {table} RESET (bus, replicated, acknowledge) first"))
        }
        None => ("table", format!("ALTER TABLE {table} RESET (source, depends) first")),
    };
    let message = format!("cannot {what} server {name} because other objects depend on it");
    Err(SqlError::new(state::DEPENDED_ON, message)
        .with_detail(format!("{kind} {table} depends on server {name}"))
        .with_hint(hint))
}

fn create(core: &Core, wanted: &CreateServer) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE SERVER";
    let name = &wanted.name.text;
    let wrapper = Wrapper::named(&wanted.wrapper.text).ok_or_else(|| {
        let message = format!("foreign-data wrapper \"{}\" does not exist", wanted.wrapper.text);
        SqlError::new(state::UNKNOWN_OBJECT, message)
            .with_hint("FOREIGN DATA WRAPPER postgres, mariadb and nats are available")
    })?;
    if core.catalog.server(name).is_some() && wanted.if_not_exists {
        let message = format!("server \"{name}\" already exists, skipping");
        return Ok(Defined::skipped(TAG, Note { state: state::DUPLICATE_OBJECT, message, hint: None }));
    }
    let identity = core.system.identity();
    let owner = core.system.server().holder(&identity.role).map(|_| identity.role.clone());
    let made = ServerDef {
        id: 0,
        name: name.clone(),
        wrapper,
        kind: wanted.kind.clone(),
        version: wanted.version.clone(),
        options: wanted.options.clone(),
        mappings: Vec::new(),
        access: Access { owner, grants: None },
        queries: Vec::new(),
    };
    change(core, TAG, name, &mut |known| match known {
        Some(_) => Err(taken(name)),
        None => Ok(Some(made.clone())),
    })
}

fn alter(core: &Core, name: &Name, wanted: &ServerAlteration) -> Result<Defined, SqlError> {
    const TAG: &str = "ALTER SERVER";
    let name = &name.text;
    let mut altered = ServerDef::clone(known(core, name)?);
    match wanted {
        ServerAlteration::Rename(to) => {
            refuse_used(core, &altered, "rename")?;
            altered.name.clone_from(&to.text);
        }
        ServerAlteration::Owner(owner) => {
            if core.system.server().owner().is_none() {
                let hint = "start the server with roles_file to keep roles";
                return Ok(Defined::skipped(TAG, Note::hinted("servers have no owners", hint)));
            }
            altered.access.hand_over(&named(core, owner)?, Privileges::USAGE);
        }
        ServerAlteration::Facts { version, options } => {
            if let Some(version) = version {
                altered.version.clone_from(version);
            }
            let was_bus = altered.is_bus();
            options.iter().try_for_each(|change| change.apply(&mut altered.options))?;
            if altered.is_bus() != was_bus {
                refuse_used(core, &altered, "alter")?;
            }
        }
    }
    change(core, TAG, name, &mut |_| Ok(Some(altered.clone())))
}

/// All that are named are looked for before the first goes.
fn drop(core: &Core, names: &[Name], if_exists: bool, cascade: bool) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP SERVER";
    let (mut going, mut notes) = (Vec::new(), Vec::new());
    for name in names {
        match known(core, &name.text) {
            Ok(server) => {
                refuse_used(core, server, "drop")?;
                refuse_needed(server, cascade)?;
                going.push(server);
            }
            Err(_) if if_exists => notes.push(Note::missing("server", &name.text)),
            Err(error) => return Err(error),
        }
    }
    let skipped = going.is_empty();
    let mut defined = Defined { tag: TAG, fill: None, notes, skipped, undo: Vec::new(), invalidated: None };
    for server in going {
        let dropped = change(core, TAG, &server.name, &mut |_| Ok(None))?;
        defined.undo.extend(dropped.undo);
    }
    Ok(defined)
}

fn refuse_needed(server: &ServerDef, cascade: bool) -> Result<(), SqlError> {
    let mapping = server
        .mappings
        .first()
        .map(|mapping| format!("user mapping for {} on server", mapping.role.as_deref().unwrap_or("public")));
    let query = || server.queries.first().map(|query| format!("cached query {} on server", query.name));
    let Some(user) = mapping.or_else(query).filter(|_| !cascade) else { return Ok(()) };
    let name = &server.name;
    let message = format!("cannot drop server {name} because other objects depend on it");
    Err(SqlError::new(state::DEPENDED_ON, message)
        .with_detail(format!("{user} {name} depends on server {name}"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."))
}

fn create_mapping(
    core: &Core,
    of: &MappingOf,
    options: &[ServerOption],
    if_not_exists: bool,
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE USER MAPPING";
    let (server, role) = (known(core, &of.server.text)?, role_of(core, of)?);
    if server.mapping_of(role.as_deref()).is_some() {
        let whose = role.as_deref().unwrap_or("public");
        let message = format!("user mapping for \"{whose}\" already exists for server \"{}\"", server.name);
        if !if_not_exists {
            return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
        }
        let message = format!("{message}, skipping");
        return Ok(Defined::skipped(TAG, Note { state: state::DUPLICATE_OBJECT, message, hint: None }));
    }
    let mut altered = ServerDef::clone(server);
    let id = (1..=u16::MAX).find(|id| altered.mappings.iter().all(|own| own.id != *id)).unwrap_or(u16::MAX);
    altered.mappings.push(MappingDef { id, role, options: options.to_vec() });
    change(core, TAG, &server.name, &mut |_| Ok(Some(altered.clone())))
}

fn alter_mapping(core: &Core, of: &MappingOf, options: &[OptionChange]) -> Result<Defined, SqlError> {
    let (server, role) = (known(core, &of.server.text)?, role_of(core, of)?);
    let mut altered = ServerDef::clone(server);
    let own = altered.mappings.iter_mut().find(|own| own.role == role);
    let own = own.ok_or_else(|| no_mapping(role.as_deref(), server))?;
    options.iter().try_for_each(|change| change.apply(&mut own.options))?;
    change(core, "ALTER USER MAPPING", &server.name, &mut |_| Ok(Some(altered.clone())))
}

fn drop_mapping(core: &Core, of: &MappingOf, if_exists: bool) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP USER MAPPING";
    let server = match known(core, &of.server.text) {
        Err(_) if if_exists => return Ok(Defined::missing(TAG, "server", &of.server.text)),
        known => known?,
    };
    let role = role_of(core, of)?;
    if server.mapping_of(role.as_deref()).is_none() {
        let error = no_mapping(role.as_deref(), server);
        if !if_exists {
            return Err(error);
        }
        return Ok(Defined::skipped(TAG, Note::plain(format!("{}, skipping", error.message))));
    }
    let mut altered = ServerDef::clone(server);
    altered.mappings.retain(|own| own.role != role);
    change(core, TAG, &server.name, &mut |_| Ok(Some(altered.clone())))
}

fn create_query(
    core: &Core,
    of: &QueryOf,
    made: CachedQueryDef,
    if_not_exists: bool,
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE CACHED QUERY";
    let server = known(core, &of.server.text)?;
    if server.wrapper != Wrapper::Postgres || server.is_bus() {
        let message = format!("statements are not forwarded to server \"{}\"", server.name);
        return Err(SqlError::new(state::NOT_A_TABLE, message)
            .with_hint("name a server of FOREIGN DATA WRAPPER postgres"));
    }
    if server.query(&made.name).is_some() {
        let message = format!("cached query \"{}\" already exists for server \"{}\"", made.name, server.name);
        if !if_not_exists {
            return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
        }
        let message = format!("{message}, skipping");
        return Ok(Defined::skipped(TAG, Note { state: state::DUPLICATE_OBJECT, message, hint: None }));
    }
    core.system.server().check_cached_query(&made.statement)?;
    let mut altered = ServerDef::clone(server);
    altered.queries.push(made);
    change(core, TAG, &server.name, &mut |_| Ok(Some(altered.clone())))
}

fn drop_query(core: &Core, of: &QueryOf, if_exists: bool) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP CACHED QUERY";
    let server = match known(core, &of.server.text) {
        Err(_) if if_exists => return Ok(Defined::missing(TAG, "server", &of.server.text)),
        known => known?,
    };
    let name = &of.name.text;
    if server.query(name).is_none() {
        let message = format!("cached query \"{name}\" does not exist for server \"{}\"", server.name);
        if !if_exists {
            return Err(SqlError::new(state::UNKNOWN_OBJECT, message));
        }
        return Ok(Defined::skipped(TAG, Note::plain(format!("{message}, skipping"))));
    }
    let mut altered = ServerDef::clone(server);
    altered.queries.retain(|own| own.name != *name);
    change(core, TAG, &server.name, &mut |_| Ok(Some(altered.clone())))
}

/// Changes a server in one step, and notes what it was.
fn change(
    core: &Core,
    tag: &'static str,
    name: &str,
    wanted: &mut ServerChange<'_>,
) -> Result<Defined, SqlError> {
    let (mut before, mut now) = (None, name.to_owned());
    core.store.change_server(name, &mut |known| {
        let after = wanted(known)?;
        before = known.cloned();
        if let Some(after) = &after {
            now.clone_from(&after.name);
        }
        Ok(after)
    })?;
    Ok(Defined::undone_by(tag, Undo::Server(now, before.map(Box::new))))
}

/// The role of a mapping; none: everybody. Where no roles are kept, any name will do.
fn role_of(core: &Core, of: &MappingOf) -> Result<Option<String>, SqlError> {
    let kept = core.system.server().owner().is_some();
    Ok(match &of.role {
        GrantedTo::Public => None,
        GrantedTo::Role(RoleRef::Named(name)) if !kept => Some(name.text.clone()),
        GrantedTo::Role(_) if !kept => Some(core.system.identity().role.clone()),
        GrantedTo::Role(role) => Some(named(core, role)?),
    })
}

fn known<'c>(core: &'c Core, name: &str) -> Result<&'c ServerDef, SqlError> {
    let unknown = || SqlError::new(state::UNKNOWN_OBJECT, format!("server \"{name}\" does not exist"));
    core.catalog.server(name).map(|server| &**server).ok_or_else(unknown)
}

fn no_mapping(role: Option<&str>, server: &ServerDef) -> SqlError {
    let role = role.unwrap_or("public");
    let message = format!("user mapping for \"{role}\" does not exist for server \"{}\"", server.name);
    SqlError::new(state::UNKNOWN_OBJECT, message)
}

fn taken(name: &str) -> DdlError {
    DdlError { state: state::DUPLICATE_OBJECT, message: format!("server \"{name}\" already exists") }
}
