//! The definitions in force: one catalogue, changed by one swap, and as bytes in the arena.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use arena::failpoint::{self, Point};
use parking_lot::{Mutex, ReentrantMutex};

use crate::clock::Tick;
use crate::error::DdlError;
use crate::schema::catalogue::catalog_of;
use crate::schema::compute::Maker;
use crate::schema::followed::AllFollowed;
use crate::schema::open::Open;
use crate::table::Table;
use crate::table::catalog::{Apart, Catalog};
use crate::table::due::AT_ONCE;
use crate::time::Time;

pub(crate) mod catalogue;
pub(crate) mod compute;
pub(crate) mod followed;
pub(crate) mod number;
pub(crate) mod open;
pub(crate) mod pending_flush;
pub(crate) mod refresh;
pub(crate) mod rules;
pub(crate) mod sequence;

/// The definitions in force, over [`Time`].
#[derive(Debug)]
pub struct Schema {
    time: Time,
    /// Changed by one swap under `definitions`.
    pub(crate) catalog: ArcSwap<Catalog>,
    /// The catalogue's generation, so that a cached one is checked by one load. Release/Acquire with the swap.
    pub(crate) generation: AtomicU64,
    /// Serialises changes of definitions. One statement may make several, and nobody else one in between.
    pub(crate) definitions: ReentrantMutex<()>,
    /// What open transactions defined. Changed by who holds `definitions`.
    pub(crate) open: Mutex<Open>,
    /// How far sources were followed. Changed by who holds `definitions`.
    pub(crate) followed: Mutex<AllFollowed>,
    /// Tick and tables of a flush that lies in the future; at most one, as in memcached.
    pub(crate) pending_flush: Mutex<Option<Tick>>,
    /// How a thread gets what computes expressions for it.
    compute: OnceLock<Maker>,
    /// Tells this store from others of the process.
    number: u64,
}

/// The next store's number. Relaxed: only that no two are the same.
static STORES: AtomicU64 = AtomicU64::new(1);

impl Deref for Schema {
    type Target = Time;

    #[inline]
    fn deref(&self) -> &Time {
        &self.time
    }
}

impl Schema {
    pub(crate) fn new(time: Time, catalog: Catalog) -> Self {
        Self {
            time,
            generation: AtomicU64::new(catalog.generation),
            catalog: ArcSwap::from_pointee(catalog),
            definitions: ReentrantMutex::new(()),
            open: Mutex::default(),
            followed: Mutex::default(),
            pending_flush: Mutex::default(),
            compute: OnceLock::new(),
            number: STORES.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// All definitions of this moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The number of the current definitions: one load tells whether a cached catalogue is still right.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Acquire: pairs with the Release in `install`.
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn replace(&self, catalog: &Catalog, changed: Table) -> Result<Arc<Table>, DdlError> {
        let id = changed.id();
        let changed = Arc::new(changed);
        let others = catalog.tables().filter(|table| table.id() != id).cloned();
        self.install(others.chain([Arc::clone(&changed)]).collect())?;
        Ok(changed)
    }

    /// Puts these tables in the place of those that are.
    pub(crate) fn install(&self, tables: Vec<Arc<Table>>) -> Result<(), DdlError> {
        self.install_all(tables, self.catalog().apart())
    }

    /// Writes the definitions to the arena, then swaps the catalogue: after a crash in between the new ones hold.
    pub(crate) fn install_all(&self, tables: Vec<Arc<Table>>, apart: Apart) -> Result<(), DdlError> {
        self.install_after(tables, apart, || ())
    }

    /// The same, with a step before others see the new definitions and after they can no longer be refused.
    pub(crate) fn install_after(
        &self,
        tables: Vec<Arc<Table>>,
        apart: Apart,
        step: impl FnOnce(),
    ) -> Result<(), DdlError> {
        let generation = self.generation() + 1;
        let catalog = catalog_of(generation, tables, apart)?;
        self.check_held(&catalog)?;
        self.save(&catalog)?;
        self.spread_flush(&catalog);
        step();
        self.catalog.store(Arc::new(catalog));
        // Tables that came, or whose rules changed.
        self.due.expect(AT_ONCE);
        failpoint::reach(Point::Defined);
        // Release: pairs with the Acquire in `generation`.
        self.generation.store(generation, Ordering::Release);
        Ok(())
    }
}
