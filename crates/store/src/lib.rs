//! Tables: schema, rows as immutable versions, ordered secondary indexes, expiry, eviction, commits.

#![forbid(unsafe_code)]

pub mod codec;
pub mod definition;
pub mod ghost;
pub mod ordered;
pub mod value;

mod alter;
mod catalog;
mod catalogue;
mod census;
mod clean;
mod clock;
mod commit;
mod compute;
mod define;
mod departure;
mod dump;
mod error;
mod evict;
mod eviction;
mod expire;
mod flush;
mod index;
mod indexes;
mod item;
mod kept;
mod landing;
mod layout;
mod leaving;
mod mutation;
mod number;
mod operations;
mod overlay;
mod queue;
mod read;
mod reader;
mod recover;
mod renew;
mod row;
mod rules;
pub mod scalar;
mod scan;
mod shard;
mod sharing;
mod statement;
mod store;
mod table;
#[cfg(test)]
mod testing;
mod view;
mod write;
mod write_set;

pub use alter::TableChange;
pub use arena::Foreseen;
pub use arena::{ArenaError, HeldRow, Hits, Received, Ticket};
pub use catalog::{BUILT_IN, Catalog};
pub use clean::Pause;
#[cfg(debug_assertions)]
pub use clock::DebugClock;
pub use clock::{Clock, ManualClock, TICK_NS, TICKS_PER_SECOND, Tick};
pub use commit::{COMMIT_ROWS_MAX, Change, NewRow, Removals, Write};
pub use compute::{Compute, Made, MakeCompute, Task};
pub use define::{OptionsChange, TABLES_MAX};
pub use departure::{Cause, Departure};
pub use dump::{Dump, Dumped};
pub use error::{DdlError, ReadError, WriteError};
pub use eviction::Eviction;
pub use index::{Index, KeyBounds};
pub use item::{Edit, Edited, Item, Mark};
pub use landing::{ComingItem, Landing};
pub use leaving::Leaving;
pub use read::{ItemMeta, ItemSink, Prefetched, Use};
pub use reader::{Ahead, Definitions, Found, Reader, Seen, SharedTable};
pub use recover::Recovered;
pub use renew::{Freshness, Renewal};
pub use row::RowBuf;
pub use rules::{Judged, RuleFigures, RuleRun};
pub use scan::{IndexScan, TableScan};
pub use sharing::{hits_path, shared_path_beside};
pub use store::{Opened, Start, Store, StoreError, StoreOptions, StoreUsage};
pub use table::{Table, TableStats};
pub use view::View;
pub use write::{Expect, Expiry, Outcome};
pub use write_set::{Moved, WriteSet};
