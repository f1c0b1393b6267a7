//! SQL text to effects: SQLite computes, the store applies.
//!
//! An [`Executor`] owns a private SQLite connection that holds nothing: each table of the store is a read-only
//! virtual table there, with its indexes offered to SQLite's planner. A statement that reads runs as it stands. A
//! statement that writes is parsed and becomes a query that finds its rows and computes their new values; the
//! result is a list of writes that one call of `Store::commit` applies whole or not at all. Nothing is ever
//! written through SQLite, and nothing of a session lives in the connection.
//!
//! ```
//! use std::sync::Arc;
//! use sql::{Cancel, ColumnDescription, Executor, Limits, RowSink, Session, SqlError};
//! use store::value::{Value, ValueRef};
//! use store::{Clock, Store, StoreOptions};
//!
//! struct Print(Vec<String>);
//! impl RowSink for Print {
//!     fn columns(&mut self, _: &[ColumnDescription]) {}
//!     fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
//!         self.0.push(format!("{values:?}"));
//!         Ok(())
//!     }
//! }
//!
//! let options = StoreOptions {
//!     path: None,
//!     memory_bytes: 64 << 20,
//!     cold: true,
//!     clock: Clock::System,
//!     row_bytes_max: 1 << 20,
//! };
//! let store = Store::open(&options).unwrap().store;
//! let mut executor = Executor::new(Arc::clone(&store), Limits::default()).unwrap();
//! let (mut session, cancel, mut out) = (Session::new(), Cancel::new(), Print(Vec::new()));
//! for sql in [
//!     "CREATE TABLE frag (key TEXT PRIMARY KEY, page_id INT, body TEXT) WITH (ttl = '5 min')",
//!     "CREATE INDEX frag_page ON frag (page_id)",
//!     "INSERT INTO frag VALUES ('a', 17, '<p>'), ('b', 17, '<q>')",
//! ] {
//!     executor.execute(&mut session, sql, &[], &cancel, &mut out).unwrap();
//! }
//! let delete = "DELETE FROM frag WHERE page_id = $1";
//! let done = executor.execute(&mut session, delete, &[Value::Integer(17)], &cancel, &mut out).unwrap();
//! assert_eq!(done.affected, 2);
//! ```

#![forbid(unsafe_code)]

mod blind;
mod cache;
mod compute;
mod core;
mod define;
mod describe;
mod done;
mod executor;
mod facts;
mod governed;
mod held;
mod journal;
pub mod limits;
mod native;
mod needs;
mod plan;
mod prepared;
mod query;
mod rule;
mod rule_runner;
mod session;
mod table;
mod tell;
mod text;
mod told;
mod transaction;
mod view_runner;
mod write;

use pgcatalog::function;
use sqlite::meter;
use sqltext::error;

pub use define::hand_over;
pub use describe::{ColumnDescription, Description};
pub use done::{ComputedBy, Done, DoneKind, Invalidated, Invalidation, RowSink};
pub use executor::{Executor, compute_definitions};
pub use held::{Account, Allowance, Held};
pub use limits::Limits;
pub use pgcatalog::Effect;
pub use pgcatalog::advisory::{LockCall, LockFacts, LockKey, LockMode, LockScope};
pub use pgcatalog::function::like::LikeStyle;
pub use pgcatalog::function::{examples as function_examples, page as function_page};
pub use pgcatalog::look::Look;
pub use pgcatalog::session::{Holder, Identity, OwnSettings, Rights};
pub use pgcatalog::system::{
    BUS_STATES, BusFacts, Counts, DefaultGrants, EncryptionFacts, FIRST_USER_OID, FetchFacts, ForwardedFacts,
    HistoryFacts, HotKeyFacts, InvalidationFacts, NodeFacts, OWNER, RefusalFacts, RoleCounts, RoleFacts,
    SOURCE_STATES, Server, SessionFacts, SettingFacts, SlowFacts, SourceColumn, SourceFacts, SourceNote,
    SourceRows, StatementFacts, oid_of_table, out_of_reach, preset_setting, private_setting,
};
pub use pgcatalog::zone;
pub use rule_runner::RuleRunner;
pub use session::{Notice, Session, TransactionStatus};
#[cfg(debug_assertions)]
pub use sqlite::{FaultPoint, arm_fault};
pub use sqlite::{give_memory_back, note_freed, panics_caught};
pub use sqltext::error::SqlError;
pub use sqltext::literals::StatementText;
pub use sqltext::secret::may_tell_secret;
pub use sqltext::token;
pub use store::definition::{Access as TableAccess, Grant, Privileges, SqlType};
pub use table::{Cancel, MissingKey};
pub use text::normal::normalized;
pub use text::split::{Piece, split_statements};
pub use told::{Teller, Told, ToldRows};
pub use view_runner::{ViewNews, ViewRunner};
