//! The meaning of every command: every protocol calls this crate, so no protocol can forget a check.
//!
//! An [`Engine`] is shared by all. Each thread that serves holds a [`ThreadContext`]: its own counters, its copy of the
//! catalogue, the time of its batch. Each connection is a [`Session`]: who speaks, and what they may do. A protocol
//! turns bytes into calls of `Session`, and the [`Answer`] back into bytes; what a command *means* is decided here,
//! once, whichever protocol it came through.
//!
//! ```
//! use engine::{Answer, Engine, EngineOptions, Session, Verb};
//! use store::{Clock, Store, StoreOptions};
//!
//! let opened = Store::open(&StoreOptions {
//!     path: None,
//!     memory_bytes: 64 << 20,
//!     cold: true,
//!     clock: Clock::System,
//!     row_bytes_max: 2 << 20,
//! })
//! .unwrap();
//! let engine = Engine::new(opened.store, EngineOptions::default());
//! let mut context = engine.context();
//! let session = Session::local();
//! assert_eq!(session.store(&mut context, Verb::Set, b"greeting", 0, 0, b"hello"), Answer::Stored);
//! assert_eq!(session.store(&mut context, Verb::Add, b"greeting", 0, 0, b"again"), Answer::NotStored);
//! assert_eq!(session.delete(&mut context, b"greeting"), Answer::Deleted);
//! ```
#![forbid(unsafe_code)]

mod access;
mod activity;
mod advisory;
mod answer;
mod audit;
mod buses;
mod channels;
mod command;
mod counters;
mod distrust;
mod engine;
mod exptime;
mod facts;
mod fetches;
mod hot;
mod json;
mod latency;
mod limits;
mod meta;
mod metrics;
mod number;
mod observe;
mod on_key;
mod operator;
mod owned;
mod parameters;
mod prefixes;
mod privilege;
mod process;
mod read_through;
mod refusals;
mod renew;
mod resolve;
mod session;
pub mod shared_settings;
mod sources;
mod sql_session;
mod statement;
mod stats;
mod telling;
#[cfg(debug_assertions)]
pub mod testing;
mod thread_context;
mod versioned;
mod watch;

pub use access::{AccessControl, KeepRoles};
pub use answer::Answer;
pub use auth;
pub use buses::{Bus, Buses, KeyChange, Operation, Outbox, Receipt, Said, TableName};
pub use channels::{Notification, Overflown};
pub use command::Verb;
pub use counters::{Counter, Totals};
pub use distrust::{Distrust, Lag, LagVerdict};
pub use engine::{Engine, EngineOptions};
pub use fetches::{FetchBatch, FetchQueue, Fetched, FetchedRow, Waiter, Wake, WantedKey};
pub use latency::Spread;
pub use limits::{FETCH_TIMEOUT_MS, ITEM_SIZE_MAX, RESULT_SIZE_MAX};
pub use meta::{
    Condition, MetaArithmetic, MetaDebug, MetaDelete, MetaDone, MetaGet, MetaGot, MetaItem, MetaSet,
    MetaSink, MetaWritten,
};
pub use metrics::{METRICS, Measured, Metric, MetricKind};
pub use operator::{KeyDump, ListedKey};
pub use privilege::{COMMANDS, Command};
pub use read_through::Arrival;
pub use refusals::{Failure, Refusals};
pub use session::Session;
pub use sources::{Behind, Forwarding, SourceState, Sources};
pub use sql_session::{
    ClientSink, CopyLayout, CopyOptions, Formats, JsonStatement, Outcome, Portal, Prepared, ResultColumn,
    SqlSession, SqlThreadContext, error_as_json, result_too_large,
};
pub use statement::{Asked, Finished};
pub use stats::Subject;
pub use thread_context::ThreadContext;
pub use versioned::Touched;
pub use watch::{Event, Happening, Seen, Watch, WatcherEnd, Watching};

// What a protocol needs of the crates below, so that it depends on this one only.
pub use sql::{
    BusFacts, Cancel, ColumnDescription, EncryptionFacts, Executor, ForwardedFacts, Identity, Look,
    NodeFacts, Notice, Piece, Rights, RowSink, RuleRunner, SettingFacts, SourceColumn, SourceFacts,
    SourceNote, SourceRows, SqlError, SqlType, TransactionStatus, ViewRunner, give_memory_back, note_freed,
    split_statements,
};
pub use store::value::{Value, ValueRef};
pub use store::{
    Clock, Ends, Eviction, Foreseen, InPlace, ItemMeta, ItemSink, PinnedRow, Prefetched, Received, Replica,
    TICK_NS, TICKS_PER_SECOND, Tick, Use, ticks_between,
};
