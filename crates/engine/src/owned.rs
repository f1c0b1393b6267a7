//! Roles as tables and views name them: by their names, for these lie with the definitions and outlive the server.

use sql::SqlError;
use store::definition::{Access, Grant};
use store::{Catalog, Store};

/// Refuses to drop a role that owns something, or that something was granted to or by.
pub(crate) fn refuse_drop(catalog: &Catalog, role: &str) -> Result<(), SqlError> {
    let Some((relation, owns)) = relations_of(catalog, role).into_iter().next() else { return Ok(()) };
    let message = format!("role \"{role}\" cannot be dropped because some objects depend on it");
    let hint = if owns {
        format!("it owns \"{relation}\": ALTER TABLE ... OWNER TO, or DROP TABLE")
    } else {
        format!("it has privileges of \"{relation}\": REVOKE them")
    };
    Err(SqlError::new("2BP01", message).with_hint(hint))
}

/// Calls a role by its new name wherever a table or view names it.
pub(crate) fn rename(store: &Store, role: &str, to: &str) -> Result<(), SqlError> {
    for (relation, _) in relations_of(&store.catalog(), role) {
        store.change_access(&relation, &mut |access| {
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

/// The tables and views that name a role, and whether it owns them; those that it owns first.
fn relations_of(catalog: &Catalog, role: &str) -> Vec<(String, bool)> {
    let names = |grant: &Grant| [&grant.to, &grant.by].iter().any(|name| name.as_deref() == Some(role));
    let in_all = |access: &Access| access.grants.iter().flatten().any(names);
    let owns = |access: &Access| access.owner.as_deref() == Some(role);
    let mut found: Vec<(String, bool)> = Vec::new();
    for table in catalog.tables() {
        let def = table.def();
        let in_columns = def.columns.iter().any(|column| column.grants.iter().any(names));
        if owns(&def.access) || in_all(&def.access) || in_columns {
            found.push((table.name().to_owned(), owns(&def.access)));
        }
    }
    for view in catalog.views().filter(|view| owns(&view.access) || in_all(&view.access)) {
        found.push((view.name.clone(), owns(&view.access)));
    }
    found.sort_by_key(|(_, owns)| !owns);
    found
}
