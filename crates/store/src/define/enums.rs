//! Enum types come, change and go. Rows hold labels, so no row is touched.

use std::sync::Arc;

use crate::define::check_namespace;
use crate::definition::{DefinitionError, EnumDef};
use crate::error::{DdlError, ddl};
use crate::limits::ENUM_TYPES_MAX;
use crate::schema::open::Open;
use crate::store::Store;
use crate::table::catalog::{Apart, Catalog};

/// Edits an enum type.
pub type EnumChange<'a> = dyn FnMut(&mut EnumDef) -> Result<(), DefinitionError> + 'a;

impl Store {
    /// Makes an enum type. A number of its own is kept, for one that is taken back; 0 asks for the next.
    pub fn create_enum(&self, mut own: EnumDef) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let mut apart = catalog.apart();
        own.validate()?;
        check_type_name(&catalog, &own.name)?;
        check_namespace(&catalog, own.namespace.as_deref())?;
        if apart.enums.len() >= ENUM_TYPES_MAX {
            return Err(ddl("54000", format!("there are {ENUM_TYPES_MAX} enum types, which is the limit")));
        }
        let taken = |id: u16| catalog.enum_of(id).is_some();
        own.id = self.free_number(own.id, taken, Open::has_enum);
        apart.enums.push(Arc::new(own));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    /// Changes an enum type, of which it returns what it was before.
    pub fn alter_enum(&self, name: &str, change: &mut EnumChange<'_>) -> Result<Arc<EnumDef>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let before = known(&catalog, name)?;
        let mut own = EnumDef::clone(before);
        change(&mut own)?;
        own.validate()?;
        if !own.name.eq_ignore_ascii_case(name) {
            check_type_name(&catalog, &own.name)?;
            check_namespace(&catalog, own.namespace.as_deref())?;
        }
        let apart = replaced(&catalog, before, Some(own));
        self.install_all(catalog.tables().cloned().collect(), apart)?;
        Ok(Arc::clone(before))
    }

    /// Removes an enum type that no column has.
    pub fn drop_enum(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let own = known(&catalog, name)?;
        if let Some((table, column)) = user_of(&catalog, own) {
            return Err(ddl(
                "2BP01",
                format!("cannot drop type {name}: column {column} of table {table} depends on it"),
            ));
        }
        let apart = replaced(&catalog, own, None);
        self.install_all(catalog.tables().cloned().collect(), apart)
    }
}

/// A column of an enum type, with its table.
fn user_of(catalog: &Catalog, own: &EnumDef) -> Option<(String, String)> {
    catalog.tables().find_map(|table| {
        let mut columns = table.def().columns.iter();
        let column = columns.find(|column| column.enumeration.as_ref().is_some_and(|of| of.id == own.id))?;
        Some((table.name().to_owned(), column.name.clone()))
    })
}

fn replaced(catalog: &Catalog, before: &EnumDef, now: Option<EnumDef>) -> Apart {
    let mut apart = catalog.apart();
    apart.enums.retain(|own| own.id != before.id);
    apart.enums.extend(now.map(Arc::new));
    apart
}

fn known<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<EnumDef>, DdlError> {
    catalog.enumeration(name).ok_or_else(|| ddl("42704", format!("type \"{name}\" does not exist")))
}

fn check_type_name(catalog: &Catalog, name: &str) -> Result<(), DdlError> {
    match catalog.enumeration(name) {
        Some(own) => Err(ddl("42710", format!("type \"{}\" already exists", own.name))),
        None => Ok(()),
    }
}
