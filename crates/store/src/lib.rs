//! Tables: definitions, rows as immutable versions, ordered indexes, expiry, eviction, commits.
//!
//! A [`Store`] keeps the rows of its tables in an arena (the crate `arena`), and everything else about them in the
//! process's own memory. All threads share one store.
//!
//! # The parts
//!
//! A store is built of parts. Each owns the part below it, uses its methods, and knows no part above it. `Deref` leads
//! from each to the one below, so whoever has a [`Store`] has the methods of all.
//!
//! | Part | Folder | Owns |
//! |---|---|---|
//! | [`Store`] | `store.rs`, `define/` | changes of definitions, settings, figures |
//! | [`Commits`] | `commit/` | commits of many rows, transactions' lists |
//! | [`Rows`] | `rows/` | reads and writes of one row |
//! | [`Memory`] | `memory/` | places for rows: eviction, compaction, expired segments |
//! | [`Recovery`] | `recovery/` | the rows of an earlier process, indexes that are being filled |
//! | [`Versions`] | `versions/` | which version stands under a key: shards, marks of commits, old versions |
//! | [`Schema`] | `schema/` | the definitions in force |
//! | [`Time`] | `time/` | the clock, and whether a row is live |
//!
//! Below them lie data that know no part: `table/` (a table's state: queues of segments, counters), `index/`, `row/`,
//! `codec/`, `definition/`, `scalar/`, `value`, `clock/`. Above them lie `view/` (what a statement reads),
//! `in_place.rs` (large values, received in place) and `tick.rs` (housekeeping). `reader.rs` reads the tables of
//! another process.
//!
//! # The way of a request
//!
//! - **A read of one row** takes no lock: it hashes the key, copies the row, and asks whether the copy is whole
//!   ([`Rows::get_item`]) and the row live (`Time::is_live`).
//! - **A write of one row** ([`Rows::put_item`]) looks at what is there, has [`Memory`] place the new version in the
//!   arena, and publishes it under the lock of the key's shard: [`Versions`] swaps slot and index entries.
//! - **A commit** is a list of writes that is applied whole or not at all ([`Commits::commit`]).
//! - **A statement** reads through a [`View`]: commits that came after its beginning are invisible to it.
//! - **Housekeeping** runs once in a tick of 1/16 s ([`Store::tick`]): it frees expired rows, evicts ahead of need, and
//!   lets indexes grow.
//!
//! # Example
//!
//! ```
//! use store::definition::{ColumnDef, TableDef};
//! use store::value::{Value, ValueRef};
//! use store::{Change, Clock, Expect, Expiry, NewRow, Renewal, RowBuf, Store, StoreOptions, Write};
//!
//! let options =
//!     StoreOptions { path: None, memory_bytes: 64 << 20, cold: true, clock: Clock::System, row_bytes_max: 1 << 20 };
//! let store = Store::open(&options)?.store;
//! let columns = vec![ColumnDef::new("id", "INT")?, ColumnDef::new("body", "TEXT")?];
//! let table = store.create_table(TableDef::new("page", columns, vec![0]))?;
//!
//! let (mut key, mut payload) = (Vec::new(), Vec::new());
//! table.encode_row(&[ValueRef::Integer(17), ValueRef::Text("<p>")], &mut key, &mut payload)?;
//! let row = NewRow { payload, expiry: Expiry::Table, client_flags: 0, cas: None, renewal: Renewal::default() };
//! store.commit(&[Write { table: table.clone(), key, change: Change::Put(row), expect: Expect::Absent }])?;
//!
//! let (view, mut row) = (store.view(), RowBuf::new());
//! let mut scan = view.scan(&table);
//! assert!(scan.next(&view, &mut row)?);
//! assert_eq!(table.column(&row, 1).to_owned(), Value::from("<p>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod codec;
pub mod definition;
pub mod scalar;
pub mod value;

mod clock;
mod commit;
mod define;
mod error;
mod files;
mod in_place;
mod index;
mod limits;
mod memory;
mod mutation;
pub mod patience;
mod reader;
mod recovery;
mod row;
mod rows;
mod schema;
mod store;
mod table;
#[cfg(test)]
mod testing;
mod tick;
mod time;
mod versions;
mod view;

pub use arena::Foreseen;
#[cfg(feature = "record")]
pub use arena::Image;
pub use arena::begins_as_arena;
#[cfg(debug_assertions)]
pub use arena::failpoint;
pub use arena::{ArenaError, Hits, PinnedRow, Received, TableId, Ticket};
#[cfg(debug_assertions)]
pub use clock::DebugClock;
pub use clock::{Clock, ManualClock, TICK_NS, TICKS_PER_SECOND, Tick, ticks_between};
pub use commit::whole::Counted;
pub use commit::write_set::{Moved, WriteSet};
pub use commit::{COMMIT_ROWS_MAX, Change, Commits, Removals, Write};
pub use define::OptionsChange;
pub use define::access::{AccessChange, TableAccess};
pub use define::alter::TableChange;
pub use define::enums::EnumChange;
pub use define::sequences::SequenceChange;
pub use define::servers::ServerChange;
pub use define::take_back::{Step, Transaction};
pub use definition::TABLES_MAX;
pub use error::{BAD_EXPRESSION, DdlError, ReadError, WriteError};
pub use files::{history_path, hits_path, shared_path_beside};
pub use in_place::{ComingItem, InPlace};
pub use index::elements::{ElementKeys, ElementsOf};
pub use index::{Index, KeyBounds, ordered};
pub use limits::CHOSEN_ROWS_MAX;
pub use memory::eviction::Eviction;
pub use memory::{Memory, Pause};
pub use reader::{Ahead, Definitions, Found, Reader, Seen, SharedTable};
pub use recovery::{Recovered, Recovery};
pub use row::RowBuf;
pub use row::meta::ItemMeta;
pub use row::new::NewRow;
pub use row::renewal::{Freshness, Renewal};
pub use row::request::{Expect, Expiry, Outcome, Touch};
pub use rows::Rows;
pub use rows::dump::{Dump, Dumped};
pub use rows::given::{GiveLimits, GivePlace, NoSuchPlace};
pub use rows::item::{Edit, Edited, Item, Mark};
pub use rows::judged::Judged;
pub use rows::read::{Absence, ItemSink, Prefetched, Use};
pub use rows::replica::{Ends, Replica};
pub use rows::rewrite::Met;
pub use schema::Schema;
pub use schema::compute::{Compute, Made, MakeCompute, Task};
pub use schema::followed::Followed;
pub use store::{Opened, Start, Store, StoreError, StoreOptions, StoreUsage};
pub use table::catalog::{BUILT_IN, Catalog};
pub use table::refresh::{Refresh, RefreshFigures};
pub use table::removal_cause::RemovalCause;
pub use table::removal_event::{Cause, RemovalEvent};
pub use table::rules::{RuleFigures, RuleRun};
pub use table::sequence::Sequence;
pub use table::standing::Standing;
pub use table::{Table, TableStats, ghost};
pub use time::Time;
pub use time::row_tap::{RowTap, Writer, WritesAs, write_as};
pub use versions::Versions;
pub use view::scan::{IndexScan, TableScan};
pub use view::{Moment, View};
