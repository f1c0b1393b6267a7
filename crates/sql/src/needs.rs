//! What a statement needs to be allowed: known when it is compiled, compared with the session's rights each time it
//! runs, for one plan serves sessions of all roles.

use dialect::Translated;
use dialect::lowered::{Lowered, Verb};
use pgcatalog::session::Rights;
use store::Catalog;

use crate::error::{SqlError, state};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// A table or view of a user's that it reads; one speaks for all, for rights are those of every table.
    reads: Option<Box<str>>,
    /// The table that it writes.
    writes: Option<Box<str>>,
}

impl Needs {
    /// Those of a statement. What reads only the system's tables needs nothing.
    pub(crate) fn of(catalog: &Catalog, translated: &Translated) -> Self {
        let is_users = |name: &&String| catalog.table(name).is_some() || catalog.view(name).is_some();
        let mut reads = translated.reads.iter().find(is_users).map(|name| name.as_str().into());
        let mut writes = None;
        if translated.lowered == Lowered::Unread {
            // Our grammar does not know it: it may read anything.
            reads = Some("of an unknown statement".into());
        }
        if let Lowered::Write(write) = &translated.lowered {
            let table: Box<str> = write.table.name.as_str().into();
            // What looks at the rows that are there reads them.
            let looks = !matches!(&write.verb, Verb::Insert(insert) if insert.conflicts.is_empty());
            if looks {
                reads.get_or_insert_with(|| table.clone());
            }
            writes = Some(table);
        }
        Self { reads, writes }
    }

    /// Whether the session may run it.
    #[inline]
    pub(crate) fn check(&self, rights: Rights) -> Result<(), SqlError> {
        if rights.superuser {
            return Ok(());
        }
        self.check_each(rights)
    }

    #[cold]
    fn check_each(&self, rights: Rights) -> Result<(), SqlError> {
        let refused = self.writes.as_deref().filter(|_| !rights.writes);
        let refused = refused.or_else(|| self.reads.as_deref().filter(|_| !rights.reads));
        refused.map_or(Ok(()), |table| {
            Err(SqlError::new(state::FORBIDDEN, format!("permission denied for table {table}")))
        })
    }
}

/// Whether a session may change definitions.
pub(crate) fn check_definition(rights: Rights) -> Result<(), SqlError> {
    if rights.superuser {
        return Ok(());
    }
    Err(SqlError::new(state::FORBIDDEN, "permission denied for schema public")
        .with_hint("definitions are made by superusers"))
}
