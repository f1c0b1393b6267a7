//! Roles as tables, views and sequences name them: by their names, for these lie with the definitions and outlive the
//! server.

use sql::SqlError;
use store::definition::access::revoke;
use store::definition::{Access, Grant, Privileges, TableDef};
use store::{Catalog, Store, TableAccess};

/// Something that roles own, or that was granted to them.
struct Object {
    what: What,
    /// Its name in the store.
    name: String,
    access: Access,
    /// What was granted of its columns.
    columns: Vec<(String, Vec<Grant>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Table,
    View,
    Sequence,
    Function,
    Procedure,
    /// A foreign server.
    Server,
    /// The sequence of a table's identity column, which the table's name stands for.
    Numbers,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::View => "view",
            Self::Function => "function",
            Self::Procedure => "procedure",
            Self::Server => "server",
            Self::Sequence | Self::Numbers => "sequence",
        }
    }
}

impl Object {
    fn is_owned(&self, role: &str) -> bool {
        self.what != What::Numbers && self.access.owner.as_deref() == Some(role)
    }

    /// How it depends on a role, in PostgreSQL's words.
    fn dependence(&self, role: &str) -> Vec<String> {
        let (word, name) = (self.what.word(), &self.name);
        if self.is_owned(role) {
            return vec![format!("owner of {word} {name}")];
        }
        let names = |grants: &[Grant]| grants.iter().any(|grant| grant.names(role));
        let whole = names(self.access.grants.as_deref().unwrap_or_default());
        let whole = whole.then(|| format!("privileges for {word} {name}"));
        let columns = self.columns.iter().filter(|(_, grants)| names(grants));
        let columns = columns.map(|(column, _)| format!("privileges for column {column} of table {name}"));
        whole.into_iter().chain(columns).collect()
    }

    fn change(&self, store: &Store, change: &mut store::AccessChange<'_>) -> Result<(), SqlError> {
        Ok(match self.what {
            What::Numbers => store.change_numbers_access(&self.name, change),
            What::Function | What::Procedure => store.change_routine_access(&self.name, change),
            What::Server => store.change_server(&self.name, &mut |known| {
                let mut server = known.cloned();
                if let Some(server) = &mut server {
                    change(&mut TableAccess { whole: &mut server.access, columns: Vec::new() })?;
                }
                Ok(server)
            }),
            _ => store.change_access(&self.name, change),
        }?)
    }
}

/// All that roles can own, or be granted.
fn objects(catalog: &Catalog) -> Vec<Object> {
    let of_columns = |def: &TableDef| {
        let columns = def.visible_columns().filter(|(_, column)| !column.grants.is_empty());
        columns.map(|(_, column)| (column.name.clone(), column.grants.clone())).collect()
    };
    let mut all = Vec::new();
    for table in catalog.tables() {
        let (def, name) = (table.def(), table.name().to_owned());
        let access = def.access.clone();
        all.push(Object { what: What::Table, name: name.clone(), access, columns: of_columns(def) });
        if def.numbers_grants.is_some() {
            let access = def.numbers_access();
            all.push(Object { what: What::Numbers, name, access, columns: Vec::new() });
        }
    }
    for view in catalog.views() {
        let (name, access) = (view.name.clone(), view.access.clone());
        all.push(Object { what: What::View, name, access, columns: Vec::new() });
    }
    for own in catalog.sequences() {
        let (name, access) = (own.def().name.clone(), own.def().access.clone());
        all.push(Object { what: What::Sequence, name, access, columns: Vec::new() });
    }
    for own in catalog.routines() {
        let what = if own.returns.is_some() { What::Function } else { What::Procedure };
        let (name, access) = (own.name.clone(), own.access.clone());
        all.push(Object { what, name, access, columns: Vec::new() });
    }
    for own in catalog.servers() {
        let (name, access) = (own.name.clone(), own.access.clone());
        all.push(Object { what: What::Server, name, access, columns: Vec::new() });
    }
    all
}

/// What depends on a role, in PostgreSQL's words: what it owns, and what was granted to or by it.
pub(crate) fn dependents(catalog: &Catalog, role: &str) -> Vec<String> {
    let of_objects = objects(catalog);
    let mapped = catalog.servers().iter().filter(|own| own.mapping_of(Some(role)).is_some());
    let mapped = mapped.map(|own| format!("owner of user mapping for {role} on server {}", own.name));
    of_objects.iter().flat_map(|object| object.dependence(role)).chain(mapped).collect()
}

/// Has user mappings of a role be of another name of it, or of nobody.
fn remap(store: &Store, role: &str, to: Option<&str>) -> Result<(), SqlError> {
    for server in store.catalog().servers().iter().filter(|own| own.mapping_of(Some(role)).is_some()) {
        store.change_server(&server.name, &mut |known| {
            let mut server = known.cloned();
            let mappings = server.iter_mut().flat_map(|own| &mut own.mappings);
            match to {
                Some(to) => mappings
                    .filter(|own| own.role.as_deref() == Some(role))
                    .for_each(|own| own.role = Some(to.to_owned())),
                None => server
                    .iter_mut()
                    .for_each(|own| own.mappings.retain(|own| own.role.as_deref() != Some(role))),
            }
            Ok(server)
        })?;
    }
    Ok(())
}

/// Calls a role by its new name wherever a table, view or sequence names it.
pub(crate) fn rename(store: &Store, role: &str, to: &str) -> Result<(), SqlError> {
    remap(store, role, Some(to))?;
    // First the numbers of tables: they have the table's owner, who is about to be renamed.
    let mut all = objects(&store.catalog());
    all.sort_by_key(|object| object.what != What::Numbers);
    for object in all
        .iter()
        .filter(|object| object.access.owner.as_deref() == Some(role) || !object.dependence(role).is_empty())
    {
        object.change(store, &mut |access| {
            let renamed = |name: &mut Option<String>| {
                if name.as_deref() == Some(role) {
                    *name = Some(to.to_owned());
                }
            };
            renamed(&mut access.whole.owner);
            let columns = access.columns.iter_mut().flat_map(|(_, grants)| grants.iter_mut());
            for grant in access.whole.grants.iter_mut().flatten().chain(columns) {
                renamed(&mut grant.to);
                renamed(&mut grant.by);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The statements that drop what these roles own.
pub(crate) fn drops(catalog: &Catalog, roles: &[String], cascade: bool) -> Vec<String> {
    let owned = |name: &Option<String>| name.as_ref().is_some_and(|name| roles.contains(name));
    let schema = |namespace: &Option<String>| namespace.clone().unwrap_or_else(|| "public".to_owned());
    let quoted = sql::token::quoted_name;
    let written =
        |namespace: &Option<String>, own: &str| format!("{}.{}", quoted(&schema(namespace)), quoted(own));
    let views = catalog.views().filter(|view| owned(&view.access.owner));
    let views: Vec<_> = views.map(|view| written(&view.namespace, view.own_name())).collect();
    let tables = catalog.tables().map(|table| table.def()).filter(|def| owned(&def.access.owner));
    let tables: Vec<_> = tables.map(|def| written(&def.namespace, def.own_name())).collect();
    // A sequence that goes with a column goes with its table.
    let alone = |own: &&store::definition::SequenceDef| own.owner.is_none() && owned(&own.access.owner);
    let sequences = catalog.sequences().iter().map(|own| own.def()).filter(alone);
    let sequences: Vec<_> = sequences.map(|def| written(&def.namespace, def.own_name())).collect();
    let cascade = if cascade { " CASCADE" } else { "" };
    let routines = catalog.routines().iter().filter(|own| owned(&own.access.owner));
    let routines: Vec<_> = routines.map(|own| written(&own.namespace, own.own_name())).collect();
    let servers = catalog.servers().iter().filter(|own| owned(&own.access.owner));
    let servers: Vec<_> = servers.map(|own| quoted(&own.name)).collect();
    let kinds = [
        ("SERVER", servers),
        ("ROUTINE", routines),
        ("VIEW", views),
        ("TABLE", tables),
        ("SEQUENCE", sequences),
    ];
    let kinds = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    kinds.map(|(kind, names)| format!("DROP {kind} {}{cascade}", names.join(", "))).collect()
}

/// Takes away whatever was granted to a role, and what it handed on.
pub(crate) fn revoke_all(store: &Store, role: &str) -> Result<(), SqlError> {
    remap(store, role, None)?;
    let objects = objects(&store.catalog());
    for object in objects.iter().filter(|object| !object.is_owned(role)) {
        if object.dependence(role).is_empty() {
            continue;
        }
        object.change(store, &mut |access| {
            let columns = access.columns.iter_mut().map(|(_, grants)| &mut **grants);
            for grants in access.whole.grants.iter_mut().chain(columns) {
                take_from(grants, role);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn take_from(grants: &mut Vec<Grant>, role: &str) {
    for grant in grants.clone().into_iter().filter(|grant| grant.to.as_deref() == Some(role)) {
        let whole = Grant { privileges: Privileges::EVERY, ..grant };
        // What was handed on goes along, so nothing is left that depends on it.
        let _none = revoke(grants, &whole, false, true);
    }
    grants.retain(|grant| !grant.names(role));
}

/// Gives what some roles own to another one.
pub(crate) fn reassign(store: &Store, roles: &[String], to: &str) -> Result<(), SqlError> {
    let owned = |object: &Object| roles.iter().any(|role| object.is_owned(role));
    for object in objects(&store.catalog()).iter().filter(|object| owned(object)) {
        let all = match object.what {
            What::Function | What::Procedure => Some(Privileges::EXECUTE),
            What::Server => Some(Privileges::USAGE),
            _ => None,
        };
        if let Some(all) = all {
            object.change(store, &mut |access| {
                access.whole.hand_over(to, all);
                Ok(())
            })?;
        } else {
            sql::hand_over(store, &object.name, to)?;
        }
    }
    Ok(())
}
