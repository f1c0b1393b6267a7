//! Functions and procedures come, change and go.

use std::sync::Arc;

use crate::define::access::{AccessChange, TableAccess};
use crate::define::check_namespace;
use crate::definition::{GRANTS_MAX, RoutineDef};
use crate::error::{DdlError, ddl};
use crate::limits::ROUTINES_MAX;
use crate::schema::open::Open;
use crate::store::Store;
use crate::table::catalog::Catalog;

impl Store {
    /// Makes a function or procedure; `replace` takes the place of the one of its name, and has its number.
    pub fn create_routine(&self, mut own: RoutineDef, replace: bool) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        own.validate()?;
        let mut apart = catalog.apart();
        match catalog.routine(&own.name) {
            Some(known) if replace => {
                own.id = known.id;
                apart.routines.retain(|other| other.id != known.id);
            }
            Some(known) => {
                return Err(ddl("42723", format!("{} \"{}\" already exists", known.word(), known.name)));
            }
            None => {
                check_namespace(&catalog, own.namespace.as_deref())?;
                if apart.routines.len() >= ROUTINES_MAX {
                    let message = format!("there are {ROUTINES_MAX} functions, which is the limit");
                    return Err(ddl("54000", message));
                }
                let taken = |id: u16| catalog.routines().iter().any(|known| known.id == id);
                own.id = self.free_number(own.id, taken, Open::has_routine);
            }
        }
        apart.routines.push(Arc::new(own));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    /// Changes who may call a function or procedure.
    pub fn change_routine_access(&self, name: &str, change: &mut AccessChange<'_>) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let mut own = RoutineDef::clone(known(&catalog, name)?);
        change(&mut TableAccess { whole: &mut own.access, columns: Vec::new() })?;
        if own.access.grants.as_ref().map_or(0, Vec::len) > GRANTS_MAX {
            return Err(ddl("54000", format!("\"{name}\" has more than {GRANTS_MAX} grants")));
        }
        let mut apart = catalog.apart();
        apart.routines.retain(|other| other.id != own.id);
        apart.routines.push(Arc::new(own));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    /// Gives a function or procedure another name in its schema.
    pub fn rename_routine(&self, name: &str, to: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let mut own = RoutineDef::clone(known(&catalog, name)?);
        if let Some(taken) = catalog.routine(to) {
            return Err(ddl("42723", format!("{} \"{}\" already exists", taken.word(), taken.name)));
        }
        to.clone_into(&mut own.name);
        own.validate()?;
        let mut apart = catalog.apart();
        apart.routines.retain(|other| other.id != own.id);
        apart.routines.push(Arc::new(own));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    /// Removes a function or procedure.
    pub fn drop_routine(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let id = known(&catalog, name)?.id;
        let mut apart = catalog.apart();
        apart.routines.retain(|other| other.id != id);
        self.install_all(catalog.tables().cloned().collect(), apart)
    }
}

fn known<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<RoutineDef>, DdlError> {
    catalog.routine(name).ok_or_else(|| ddl("42883", format!("routine \"{name}\" does not exist")))
}
