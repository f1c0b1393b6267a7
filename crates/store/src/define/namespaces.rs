//! Schemas come and go.

use std::sync::Arc;

use crate::definition::NamespaceDef;
use crate::error::{DdlError, ddl};
use crate::limits::NAMESPACES_MAX;
use crate::schema::open::Open;
use crate::store::Store;
use crate::table::catalog::Apart;

impl Store {
    /// Makes a schema. A number of its own is kept, for one that is taken back; 0 asks for the next.
    pub fn create_namespace(&self, mut own: NamespaceDef) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        own.validate()?;
        if catalog.namespace(&own.name).is_some() {
            return Err(ddl("42P06", format!("schema \"{}\" already exists", own.name)));
        }
        let mut apart = catalog.apart();
        if apart.namespaces.len() >= NAMESPACES_MAX {
            return Err(ddl("54000", format!("there are {NAMESPACES_MAX} schemas, which is the limit")));
        }
        let taken = |id: u16| catalog.namespaces().iter().any(|known| known.id == id);
        own.id = self.free_number(own.id, taken, Open::has_namespace);
        apart.namespaces.push(Arc::new(own));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    /// Removes a schema in which there is nothing.
    pub fn drop_namespace(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let own = catalog.namespace(name).ok_or_else(|| unknown_namespace(name))?;
        if catalog.names_in(&own.name).next().is_some() {
            return Err(ddl(
                "2BP01",
                format!("cannot drop schema {name} because other objects depend on it"),
            ));
        }
        let mut apart: Apart = catalog.apart();
        apart.namespaces.retain(|other| other.id != own.id);
        self.install_all(catalog.tables().cloned().collect(), apart)
    }
}

pub(crate) fn unknown_namespace(name: &str) -> DdlError {
    ddl("3F000", format!("schema \"{name}\" does not exist"))
}
