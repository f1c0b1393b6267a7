//! What users make and grant: a table, a view or a sequence, and who may do what with it.

use std::borrow::Cow;

use pgcatalog::sequence;
use store::Catalog;
use store::definition::{Access, Privileges, TableDef};

/// What errors call a materialized view.
pub(crate) const MATERIALIZED: &str = "materialized view";

/// Such a thing.
#[derive(Debug)]
pub(crate) struct Governed<'c> {
    pub(crate) access: Cow<'c, Access>,
    pub(crate) what: What<'c>,
}

/// What it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What<'c> {
    Table(&'c TableDef),
    View,
    /// Of its own, or of a numbered column.
    Sequence,
}

impl<'c> Governed<'c> {
    /// The one of this name in the store.
    pub(crate) fn of(catalog: &'c Catalog, name: &str) -> Option<Self> {
        if let Some(table) = catalog.table(name) {
            let def = table.def();
            return Some(Self { access: Cow::Borrowed(&def.access), what: What::Table(def) });
        }
        if let Some(view) = catalog.view(name) {
            return Some(Self { access: Cow::Borrowed(&view.access), what: What::View });
        }
        let access = sequence::access_of(catalog, name)?;
        Some(Self { access: Cow::Owned(access), what: What::Sequence })
    }

    /// Its definition, if it is a table.
    pub(crate) fn def(&self) -> Option<&'c TableDef> {
        match self.what {
            What::Table(def) => Some(def),
            What::View | What::Sequence => None,
        }
    }

    /// What errors call it.
    pub(crate) fn word(&self) -> &'static str {
        match self.what {
            What::Table(def) if def.materialized.is_some() => MATERIALIZED,
            What::Table(_) => "table",
            What::View => "view",
            What::Sequence => "sequence",
        }
    }

    /// All that can be granted of it.
    pub(crate) fn all(&self) -> Privileges {
        match self.what {
            What::Table(_) | What::View => Privileges::ALL,
            What::Sequence => Privileges::OF_SEQUENCE,
        }
    }
}
