//! `GRANT` and `REVOKE` on tables, views and sequences, and their owners.

use pgcatalog::system::DefaultGrants;
use pgcatalog::{sequence, system};
use sqltext::definition::{Name, ObjectKind, Owner};
use sqltext::grant::{
    Dependent, Granted, GrantedOn, GrantedTo, Grants, Kind, Routine, grant_to, revoke_from,
};
use sqltext::role::RoleRef;
use store::definition::{Access, Grant, Privileges, RoutineDef, SequenceDef, TableDef};
use store::{Store, TableAccess};

use super::{Defined, Note, Undo};
use super::{rights, routine};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::{Governed, What};
use crate::needs::denied;

/// Carries out `GRANT` or `REVOKE`.
pub(super) fn run(core: &Core, sql: &str, grants: &Grants) -> Result<Defined, SqlError> {
    let tag = if grants.revokes { "REVOKE" } else { "GRANT" };
    let open = |kind: &str| {
        let message = format!("{kind} may be used by everybody");
        let hint = "privileges are those of tables, views, sequences and schemas";
        Ok(Defined::skipped(tag, Note::hinted(message, hint)))
    };
    let texts = |names: &[Name]| names.iter().map(|name| name.text.clone()).collect();
    let names: Vec<String> = match &grants.on {
        GrantedOn::Tables(names) => texts(names),
        GrantedOn::AllTables(schemas) => all_of(core, sql, schemas, Kind::Table)?,
        GrantedOn::Sequences(names) => {
            names.iter().try_for_each(|name| refuse_other(core, sql, name))?;
            texts(names)
        }
        GrantedOn::AllSequences(schemas) => all_of(core, sql, schemas, Kind::Sequence)?,
        GrantedOn::Routines(kind, routines) => {
            let is_own = |own: &Routine| core.catalog.routine(&own.name).is_some();
            if routines.iter().any(is_own) {
                return routine::grant(core, sql, grants, routines, &grants.to);
            }
            routines.iter().try_for_each(|routine| refuse_unknown(kind, routine))?;
            return open("built-in functions");
        }
        GrantedOn::AllRoutines(kind, schemas) => {
            let routines = all_routines(core, sql, kind, schemas)?;
            return routine::grant(core, sql, grants, &routines, &grants.to);
        }
        GrantedOn::Open(kind) => return open(kind),
        // They are kept with the roles (`auth::Standing`), and the session has taken them.
        GrantedOn::Schemas(_) | GrantedOn::Future { .. } => {
            return Err(SqlError::not_supported("this GRANT"));
        }
    };
    let to = grants.to.iter().map(|to| grantee(core, to)).collect::<Result<Vec<_>, _>>()?;
    let mut defined =
        Defined { tag, fill: None, notes: Vec::new(), skipped: false, undo: Vec::new(), invalidated: None };
    for name in &names {
        let change = Changed::of(core, sql, grants, name)?;
        let before = listed(core, name);
        sequence::change_access(&core.store, name, &mut |access| change.apply(access, grants, &to))?;
        let after = listed(core, name);
        defined.undo.push(Undo::Access { relation: name.clone(), before, after });
        if !change.missing.is_none() {
            let message = format!(
                "not all privileges were {} for \"{name}\"",
                if grants.revokes { "revoked" } else { "granted" }
            );
            let state = if grants.revokes { "01006" } else { "01007" };
            defined.notes.push(Note { state, message, hint: None });
        }
        defined.notes.extend(change.note(core));
    }
    Ok(defined)
}

/// Refuses `ON SEQUENCE` with the name of something else.
fn refuse_other(core: &Core, sql: &str, name: &Name) -> Result<(), SqlError> {
    let text = &name.text;
    if sequence::access_of(&core.catalog, text).is_some() || !core.catalog.has(text) {
        return Ok(());
    }
    Err(SqlError::new(state::NOT_A_TABLE, format!("\"{text}\" is not a sequence")).at(sql, name.place))
}

/// There are only functions of our own, and everybody may use these.
fn refuse_unknown(kind: &str, routine: &Routine) -> Result<(), SqlError> {
    let name = &routine.name;
    if kind != "PROCEDURE" && pgcatalog::function::returns(&name.to_ascii_lowercase()).is_some() {
        return Ok(());
    }
    let kind = kind.to_ascii_lowercase();
    let message = match &routine.arguments {
        Some(arguments) => format!("{kind} {name}{arguments} does not exist"),
        None => format!("could not find a {kind} named \"{name}\""),
    };
    Err(SqlError::new(state::UNKNOWN_FUNCTION, message))
}

/// The tables and views of these schemas, or their sequences.
fn all_of(core: &Core, sql: &str, schemas: &[Name], kind: Kind) -> Result<Vec<String>, SqlError> {
    let mut all = Vec::new();
    for schema in schemas {
        let in_schema = within(core, sql, schema)?;
        if kind == Kind::Sequence {
            let own = core.catalog.sequences().iter().filter(|own| in_schema(&own.def().namespace));
            all.extend(own.map(|own| own.def().name.clone()));
            let tables = core.catalog.tables().filter(|table| in_schema(&table.def().namespace));
            all.extend(tables.filter_map(|table| sequence::name_of_column(table)));
            continue;
        }
        let tables = core.catalog.tables().filter(|table| in_schema(&table.def().namespace));
        let tables = tables.map(|table| table.name()).filter(|name| *name != store::BUILT_IN);
        let views = core.catalog.views().filter(|view| in_schema(&view.namespace));
        all.extend(tables.chain(views.map(|view| view.name.as_str())).map(ToOwned::to_owned));
    }
    Ok(all)
}

/// The functions or procedures of these schemas, or both.
fn all_routines(core: &Core, sql: &str, kind: &str, schemas: &[Name]) -> Result<Vec<Routine>, SqlError> {
    let mut all = Vec::new();
    for schema in schemas {
        let in_schema = within(core, sql, schema)?;
        let is_one = |own: &RoutineDef| match kind {
            "FUNCTIONS" => own.returns.is_some(),
            "PROCEDURES" => own.returns.is_none(),
            _ => true,
        };
        let own = core.catalog.routines().iter().filter(|own| in_schema(&own.namespace) && is_one(own));
        all.extend(own.map(|own| Routine { name: own.name.clone(), arguments: None }));
    }
    Ok(all)
}

/// Tells what lies in a schema, which must exist.
fn within<'n>(
    core: &Core,
    sql: &str,
    schema: &'n Name,
) -> Result<impl Fn(&Option<String>) -> bool + 'n, SqlError> {
    let own = Some(schema.text.as_str()).filter(|name| !name.eq_ignore_ascii_case(rights::PUBLIC));
    if own.is_some_and(|name| core.catalog.namespace(name).is_none()) {
        let message = format!("schema \"{}\" does not exist", schema.text);
        return Err(SqlError::new(state::UNKNOWN_SCHEMA, message).at(sql, schema.place));
    }
    Ok(move |namespace: &Option<String>| match (namespace, own) {
        (Some(namespace), Some(own)) => namespace.eq_ignore_ascii_case(own),
        (namespace, own) => namespace.is_none() && own.is_none(),
    })
}

/// A role's name; `None`: everybody.
pub(super) fn grantee(core: &Core, to: &GrantedTo) -> Result<Option<String>, SqlError> {
    match to {
        GrantedTo::Public => Ok(None),
        GrantedTo::Role(role) => named(core, role).map(Some),
    }
}

/// The name of a role that exists.
pub(super) fn named(core: &Core, role: &RoleRef) -> Result<String, SqlError> {
    let identity = core.system.identity();
    let name = match role {
        RoleRef::Named(name) => name.text.clone(),
        RoleRef::Current => identity.role.clone(),
        RoleRef::Session => identity.user.clone(),
    };
    if core.system.server().holder(&name).is_some() {
        return Ok(name);
    }
    Err(SqlError::new(state::UNKNOWN_OBJECT, format!("role \"{name}\" does not exist")))
}

/// What a statement is about.
fn named_object<'c>(core: &'c Core, name: &str) -> Result<Governed<'c>, SqlError> {
    Governed::of(&core.catalog, name).ok_or_else(|| SqlError::unknown_table(name))
}

/// What grants call it.
fn kind_of(object: &Governed<'_>) -> Kind {
    match object.what {
        What::Table(_) | What::View => Kind::Table,
        What::Sequence => Kind::Sequence,
    }
}

/// What a statement changes of one object.
struct Changed {
    kind: Kind,
    /// Of all of it.
    whole: Privileges,
    /// Of single columns.
    columns: Vec<(String, Privileges)>,
    /// Who grants; `None`: the superuser who owns what nobody owns.
    by: Option<String>,
    /// What was asked for and is not theirs to grant.
    missing: Privileges,
    /// Other processes read the table's file, whoever may.
    shared: bool,
    revokes: bool,
}

impl Changed {
    fn of(core: &Core, sql: &str, grants: &Grants, name: &str) -> Result<Self, SqlError> {
        system::refuse_change(name)?;
        let object = named_object(core, name)?;
        let (kind, def) = (kind_of(&object), object.def());
        let shared = def.is_some_and(|def| def.options.shared_memory);
        let mut changed = Self {
            kind,
            whole: Privileges::NONE,
            columns: Vec::new(),
            by: None,
            missing: Privileges::NONE,
            shared,
            revokes: grants.revokes,
        };
        let mut asked = Privileges::NONE;
        for granted in &grants.privileges {
            let privileges = granted.of(kind, sql)?;
            asked = asked.and(privileges);
            changed.add(sql, granted, privileges, def.map(|def| (name, def)))?;
        }
        if shared && !grants.revokes && !changed.columns.is_empty() {
            return Err(SqlError::not_supported("a privilege of a column in a table of shared memory")
                .with_hint("processes that read the file see all columns"));
        }
        let grantable = changed.grantor(core, &object.access, asked);
        changed.missing = asked.without(grantable);
        if asked.among(grantable).is_none() {
            return Err(denied(object.word(), name));
        }
        changed.whole = changed.whole.among(grantable);
        Ok(changed)
    }

    fn add(
        &mut self,
        sql: &str,
        granted: &Granted,
        privileges: Privileges,
        def: Option<(&str, &TableDef)>,
    ) -> Result<(), SqlError> {
        if granted.columns.is_empty() {
            self.whole = self.whole.and(privileges);
            return Ok(());
        }
        for column in &granted.columns {
            let Some((table, def)) = def else {
                return Err(SqlError::not_supported("a privilege of a view's column"));
            };
            let known = def.column_index(&column.text).filter(|at| def.columns[*at].is_visible());
            let at =
                known.ok_or_else(|| SqlError::unknown_column(table, &column.text).at(sql, column.place))?;
            self.columns.push((def.columns[at].name.clone(), privileges));
        }
        Ok(())
    }

    /// Finds out who grants, and returns what that is allowed to: its owner, where the session is that or a superuser.
    fn grantor(&mut self, core: &Core, access: &Access, asked: Privileges) -> Privileges {
        let identity = core.system.identity();
        let holder = identity.holder();
        if holder.owns(access) {
            self.by.clone_from(&access.owner);
            return Privileges::EVERY;
        }
        let of = |role: &String| access.held(&|own| own == role).1.among(asked);
        let best = holder.roles.iter().max_by_key(|role| of(role).each().count());
        self.by = Some(best.unwrap_or(&identity.role).clone());
        best.map_or(Privileges::NONE, of)
    }

    fn apply(
        &self,
        access: &mut TableAccess<'_>,
        grants: &Grants,
        to: &[Option<String>],
    ) -> Result<(), store::DdlError> {
        let mut whole = access.whole.listed(self.kind.all());
        for to in to {
            let one = |privileges: Privileges| Grant {
                to: to.clone(),
                by: self.by.clone(),
                privileges,
                grantable: if grants.option { privileges } else { Privileges::NONE },
            };
            if !self.whole.is_none() {
                change(&mut whole, &one(self.whole), grants)?;
            }
            // What is taken away from all of a table goes from its columns, too.
            let of_columns = self.whole.among(Privileges::OF_COLUMN);
            for (name, own) in &mut access.columns {
                if grants.revokes && !of_columns.is_none() {
                    change(own, &one(of_columns), grants)?;
                }
                for (_, privileges) in self.columns.iter().filter(|(of, _)| of == name) {
                    change(own, &one(*privileges), grants)?;
                }
            }
        }
        access.whole.grants = Some(whole);
        Ok(())
    }

    fn note(&self, core: &Core) -> Option<Note> {
        let reads = self.revokes && self.shared && self.whole.has(Privileges::SELECT);
        let group = core.store.shared_path().map(|path| path.display().to_string()).unwrap_or_default();
        reads.then(|| {
            Note::hinted(
                format!("processes of the group of {group} can still read the table"),
                "ALTER TABLE ... SET (shared_memory = off) ends that",
            )
        })
    }
}

fn change(all: &mut Vec<Grant>, one: &Grant, grants: &Grants) -> Result<(), store::DdlError> {
    if !grants.revokes {
        grant_to(all, one);
        return Ok(());
    }
    revoke_from(all, one, grants.option, grants.cascade).map_err(|Dependent| store::DdlError {
        state: state::DEPENDED_ON,
        message: "dependent privileges exist; REVOKE ... CASCADE revokes them too".to_owned(),
    })
}

/// What was granted of an object: all of it first, then its columns.
fn listed(core: &Core, name: &str) -> Vec<(Option<String>, Vec<Grant>)> {
    let catalog = core.store.catalog();
    let Some(object) = Governed::of(&catalog, name) else { return Vec::new() };
    let columns = object.def().into_iter().flat_map(TableDef::visible_columns);
    let columns = columns.map(|(_, column)| (Some(column.name.clone()), column.grants.clone()));
    std::iter::once((None, object.access.listed(object.all()))).chain(columns).collect()
}

/// `ALTER TABLE ... OWNER TO`
pub(super) fn change_owner(core: &Core, wanted: &Owner) -> Result<Defined, SqlError> {
    let tag = match wanted.kind {
        ObjectKind::View => "ALTER VIEW",
        ObjectKind::Materialized => "ALTER MATERIALIZED VIEW",
        ObjectKind::Sequence => "ALTER SEQUENCE",
        _ => "ALTER TABLE",
    };
    let name = &wanted.name.text;
    let Ok(object) = named_object(core, name) else {
        system::refuse_change(name)?;
        let missing = || Defined::missing(tag, "relation", name);
        return wanted.if_exists.then(missing).ok_or_else(|| SqlError::unknown_table(name));
    };
    if wanted.kind == ObjectKind::Sequence && kind_of(&object) != Kind::Sequence {
        return Err(SqlError::new(state::NOT_A_TABLE, format!("\"{name}\" is not a sequence")));
    }
    if wanted.kind == ObjectKind::Materialized {
        super::materialized::of_name(core, name)?;
    }
    let holder = core.system.identity().holder();
    rights::owner(core, &holder, name)?;
    if core.system.server().owner().is_none() {
        let note = Note::hinted("tables have no owners", "start the server with roles_file to keep roles");
        return Ok(Defined::skipped(tag, note));
    }
    let owner = named(core, &wanted.owner)?;
    if !holder.rights.superuser && !holder.is(&owner) {
        let message = format!("must be able to SET ROLE \"{owner}\"");
        return Err(SqlError::new(state::FORBIDDEN, message));
    }
    let before = object.access.owner.clone();
    if kind_of(&object) == Kind::Sequence && before.as_ref() != Some(&owner) {
        refuse_linked(core, name)?;
    }
    hand_over(&core.store, name, &owner)?;
    Ok(Defined::undone_by(tag, Undo::Owner(name.clone(), before)))
}

/// Refuses another owner to a sequence that goes with a column: it has the table's.
fn refuse_linked(core: &Core, name: &str) -> Result<(), SqlError> {
    let table = match core.catalog.sequence(name) {
        Some(own) => {
            let of = |id: u16| core.catalog.tables().find(|table| table.def().id == id);
            own.def()
                .owner
                .as_ref()
                .and_then(|(id, _)| of(*id))
                .map(|table| table.def().own_name().to_owned())
        }
        None => sequence::column_of(&core.catalog, name).map(|(table, _)| table.def().own_name().to_owned()),
    };
    let Some(table) = table else { return Ok(()) };
    let error = SqlError::not_supported("another owner of a sequence that is linked to a table");
    Err(error.with_detail(format!("Sequence \"{name}\" is linked to table \"{table}\".")))
}

/// Gives a table, view or sequence to another owner, and with a table the sequences that go with its columns.
pub fn hand_over(store: &Store, name: &str, owner: &str) -> Result<(), SqlError> {
    let catalog = store.catalog();
    let give = |name: &str, all: Privileges| {
        store.change_access(name, &mut |access| {
            access.whole.hand_over(owner, all);
            Ok(())
        })
    };
    let Some(table) = catalog.table(name) else {
        let is_view = catalog.view(name).is_some();
        return Ok(give(name, if is_view { Privileges::ALL } else { Privileges::OF_SEQUENCE })?);
    };
    if table.def().numbers_grants.is_some() {
        store.change_numbers_access(name, &mut |access| {
            access.whole.hand_over(owner, Privileges::OF_SEQUENCE);
            Ok(())
        })?;
    }
    give(name, Privileges::ALL)?;
    let goes = |own: &&SequenceDef| own.owner.as_ref().is_some_and(|of| of.0 == table.def().id);
    for own in catalog.sequences().iter().map(|own| own.def()).filter(goes) {
        give(&own.name, Privileges::OF_SEQUENCE)?;
    }
    Ok(())
}

/// Who owns what the session makes in a schema, and what is granted of it at once.
pub(super) fn of_new(core: &Core, kind: Kind, schema: Option<&str>) -> Access {
    let server = core.system.server();
    let identity = core.system.identity();
    if server.holder(&identity.role).is_none() {
        let open = kind.of_everybody();
        return Access { owner: None, grants: (!open.is_empty()).then_some(open) };
    }
    let owner = identity.role.clone();
    let schema = schema.unwrap_or(rights::PUBLIC);
    let here = |defaults: &DefaultGrants| {
        let in_schema = defaults.schema.as_deref().is_none_or(|own| own.eq_ignore_ascii_case(schema));
        defaults.owner == owner && defaults.kind == kind && in_schema
    };
    let said: Vec<DefaultGrants> = server.default_grants().into_iter().filter(here).collect();
    let of_all = said.iter().any(|defaults| defaults.schema.is_none());
    let at_first = if of_all { Vec::new() } else { kind.of_everybody() };
    let defaults: Vec<Grant> =
        at_first.into_iter().chain(said.into_iter().flat_map(|defaults| defaults.grants)).collect();
    // What is not said of a function is that everybody may call it; so what is said must be kept.
    let grants = (!defaults.is_empty() || kind == Kind::Function).then(|| {
        let mut all = vec![Grant::of_owner(&owner, kind.all())];
        for grant in defaults {
            grant_to(&mut all, &Grant { by: Some(owner.clone()), ..grant });
        }
        all
    });
    Access { owner: Some(owner), grants }
}
