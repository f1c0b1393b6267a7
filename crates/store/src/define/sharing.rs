//! Tables that other processes may read: `WITH (shared_memory = on)`, and the file in which they live.
//!
//! Which file a table's rows are in is a bit of its number, so a table that changes it becomes another one of the same
//! name: its rows do not move, they are forgotten as by TRUNCATE.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Arena, ArenaError, Arenas, AttachBoth, Geometry, Unusable};

use crate::definition::TableDef;
use crate::error::{DdlError, ddl};
use crate::files::hits_path;
use crate::index::Index;
use crate::schema::catalogue::indexes_of;
use crate::store::{Start, Store, StoreError, StoreOptions};
use crate::table::catalog::Catalog;
use crate::table::{Table, TableState};

/// How often a start looks again where another one made the arena just before it: each time that one has ended already.
const OPEN_ATTEMPTS: usize = 64;

/// Opens the arenas of an earlier process, or makes a new private one. The shared one follows when a table needs it.
pub(crate) fn open_arenas(
    options: &StoreOptions,
    shared: Option<&Path>,
) -> Result<(Arenas, Start), ArenaError> {
    let geometry = Geometry { memory_bytes: options.memory_bytes };
    let now_ns = options.clock.now_ns();
    let begin_anew = |path: Option<&Path>| {
        // First: who has its lock is the one start that touches the shared file.
        let arena = Arena::create(path, &geometry, now_ns)?;
        // Readers of the file from before learn that it is none any more, before anything is served from another.
        match shared.map_or(Ok(()), Arenas::discard_shared) {
            // What is in the way is said when a table needs the place.
            Ok(()) | Err(ArenaError::InTheWay { .. }) => Ok(Arenas::new(arena, None)),
            Err(error) => {
                // It holds nothing; that it stays is no further error.
                let _stays = path.map(remove);
                Err(error)
            }
        }
    };
    let Some(path) = &options.path else {
        return Ok((begin_anew(None)?, Start::Cold { reason: "the arena has no file".into() }));
    };
    for _ in 0..OPEN_ATTEMPTS {
        let reason = match Arenas::attach(path, shared, &geometry) {
            Ok(AttachBoth::Warm(arenas)) if options.cold => {
                arenas.retire();
                // While they are open, for their lock goes with them.
                remove(path)?;
                "a cold start was asked for".to_owned()
            }
            Ok(AttachBoth::Warm(arenas)) => {
                let start =
                    Start::Warm { bytes: arenas.usage().segments_bytes, redone: arenas.recovery().redone };
                return Ok((arenas, start));
            }
            // Another start may be granted what was refused: the rows are there for it, unless nobody wants them.
            Ok(AttachBoth::Unusable(Unusable { refused: Some(error), .. })) if !options.cold => {
                return Err(error);
            }
            Ok(AttachBoth::Unusable(unusable)) => {
                let reason = unusable.reason.clone();
                unusable.remove(path)?;
                reason
            }
            Err(ArenaError::NotFound(_)) => "there was no arena".to_owned(),
            Err(error) => return Err(error),
        };
        match begin_anew(Some(path)) {
            // Another start was quicker. Its lock says whether it still runs.
            Err(ArenaError::Exists(_)) => {}
            made => return Ok((made?, Start::Cold { reason })),
        }
    }
    Err(ArenaError::Locked(path.clone()))
}

/// Removes a file of which the caller has the lock.
fn remove(path: &Path) -> Result<(), ArenaError> {
    std::fs::remove_file(path).map_err(|source| ArenaError::Io {
        call: "unlink",
        path: path.to_owned(),
        source,
    })
}

impl Store {
    /// The file of the tables that other processes may read; made when the first of them is.
    pub fn shared_path(&self) -> Option<&Path> {
        self.shared_path.as_deref()
    }

    /// After a start: tables that were declared shared need their file.
    pub(crate) fn find_shared(&self) -> Result<(), StoreError> {
        let catalog = self.catalog();
        let Some(table) = catalog.tables().find(|table| table.id().is_shared()) else { return Ok(()) };
        if self.shared_path.is_none() {
            let message = format!(
                "table \"{}\" is shared_memory = on and there is no file for it: name one \
                 (--shared-memory-file), or start with --cold",
                table.name()
            );
            return Err(StoreError::Catalogue(ddl("55000", message)));
        }
        self.make_shared().map_err(StoreError::Arena)
    }

    fn make_shared(&self) -> Result<(), ArenaError> {
        let Some(path) = self.shared_path.as_deref() else { return Ok(()) };
        if self.arena.shared().is_none() {
            Arenas::discard_shared(path)?;
            self.arena.make_shared(
                path,
                self.clock.now_ns(),
                self.now(),
                self.arena.private().last_stamp() + 1,
            )?;
        }
        // Without it rows that only readers of the file use look unused; that is no reason to refuse.
        let _advice = self.arena.use_hits(&hits_path(path));
        Ok(())
    }

    /// Makes the file that a table needs, if it is to be shared and there is none.
    pub(crate) fn share(&self, def: &TableDef) -> Result<(), DdlError> {
        if !def.options.shared_memory {
            return Ok(());
        }
        if self.shared_path.is_none() {
            let message = "shared_memory needs a file: start the daemon with --arena or --shared-memory-file";
            return Err(ddl("0A000", message.into()));
        }
        self.make_shared().map_err(|error| ddl("58030", error.to_string()))
    }

    /// A table without rows under a number of its own; nobody knows it yet.
    pub(crate) fn empty_table(&self, catalog: &Catalog, mut def: TableDef) -> Result<Arc<Table>, DdlError> {
        self.share(&def)?;
        let id = self.free_table_id(catalog, def.options.shared_memory)?;
        def.id = id.0;
        let state = Arc::new(TableState::new(id));
        let indexes: Vec<Arc<Index>> =
            indexes_of(&def).map(|index| Arc::new(Index::new(index, &def))).collect();
        state.maintained.store(Arc::new(indexes.clone()));
        let first = self.arena.private().next_stamp();
        state.limits.flushed_below.store(first, Ordering::Release);
        state.row_count.begin(first);
        self.arena.of(id).set_dead_below(id, first);
        // Of a table that had the number before.
        self.arena.of(id).set_flush_at(id, 0);
        Ok(Arc::new(Table::new(def, indexes, state)))
    }

    /// Puts an empty table in the place of one whose `shared_memory` changes.
    pub(crate) fn change_file(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        def: TableDef,
    ) -> Result<(), DdlError> {
        let new = self.empty_table(catalog, def)?;
        let (from, to) = (&table.state, &new.state);
        // Numbers that were given out are not given out again, and who knows the schema knows it still.
        to.schema.store(from.schema.load(Ordering::Acquire), Ordering::Release);
        for (from, to) in [
            (&from.next_row_id, &to.next_row_id),
            (&from.next_number, &to.next_number),
            (&from.numbers_below, &to.numbers_below),
        ] {
            to.store(from.load(Ordering::Acquire), Ordering::Release);
        }
        let others = catalog.tables().filter(|other| other.id() != table.id()).cloned();
        // Whoever still has the old table must not read it when others write the new one: it would be a version from
        // before the one that is acknowledged.
        self.install_after(others.chain([new]).collect(), catalog.apart(), || self.end_table(table))?;
        self.bury(table);
        Ok(())
    }
}
