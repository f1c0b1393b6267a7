//! Sequences come, change and go.

use std::sync::Arc;

use crate::define::alter::check_relation_name;
use crate::define::check_namespace;
use crate::definition::{DefinitionError, SequenceDef};
use crate::error::{DdlError, ddl};
use crate::limits::SEQUENCES_MAX;
use crate::schema::open::Open;
use crate::store::Store;
use crate::table::catalog::Catalog;
use crate::table::sequence::Sequence;

/// Edits a sequence; where it stands is part of it.
pub type SequenceChange<'a> = dyn FnMut(&mut SequenceDef) -> Result<(), DefinitionError> + 'a;

impl Store {
    /// Makes a sequence. A number of its own is kept, for one that is taken back; 0 asks for the next.
    pub fn create_sequence(&self, mut own: SequenceDef) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        own.validate()?;
        check_relation_name(&catalog, &own.name)?;
        check_namespace(&catalog, own.namespace.as_deref())?;
        let mut apart = catalog.apart();
        if apart.sequences.len() >= SEQUENCES_MAX {
            return Err(ddl("54000", format!("there are {SEQUENCES_MAX} sequences, which is the limit")));
        }
        let taken = |id: u16| catalog.sequences().iter().any(|known| known.def().id == id);
        own.id = self.free_number(own.id, taken, Open::has_sequence);
        apart.sequences.push(Arc::new(Sequence::new(own)));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    /// Changes a sequence, of which it returns what it was before.
    pub fn alter_sequence(
        &self,
        name: &str,
        change: &mut SequenceChange<'_>,
    ) -> Result<SequenceDef, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let known = known(&catalog, name)?;
        let before = known.current();
        let mut own = before.clone();
        change(&mut own)?;
        own.validate()?;
        if !own.name.eq_ignore_ascii_case(name) {
            check_relation_name(&catalog, &own.name)?;
            check_namespace(&catalog, own.namespace.as_deref())?;
        }
        let mut apart = catalog.apart();
        apart.sequences.retain(|other| !Arc::ptr_eq(other, known));
        let (written, id) = (known.written(), own.id);
        apart.sequences.push(Arc::new(known.redefined(own)));
        let installed = self.install_all(catalog.tables().cloned().collect(), apart);
        if installed.is_err() {
            known.redefined(SequenceDef { id, ..written });
        }
        installed.map(|()| before)
    }

    /// Removes a sequence.
    pub fn drop_sequence(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let known = known(&catalog, name)?;
        let mut apart = catalog.apart();
        apart.sequences.retain(|other| !Arc::ptr_eq(other, known));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }
}

fn known<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Sequence>, DdlError> {
    catalog.sequence(name).ok_or_else(|| ddl("42P01", format!("sequence \"{name}\" does not exist")))
}
