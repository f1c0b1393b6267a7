//! What must hold for every statement, however senseless.
//!
//! An input is a list of decisions: each byte chooses a branch of a small grammar, so most statements are nearly
//! SQL; some branches are loose words, and some bytes go into the text as they are.

use std::sync::Arc;
use std::time::Duration;

use sql::{
    Cancel, ColumnDescription, Done, DoneKind, Executor, Limits, RowSink, Session, SqlError,
    TransactionStatus,
};
use store::definition::{TableDef, ViewDef};
use store::value::{Value, ValueRef};
use store::{Clock, KeyBounds, ManualClock, RowBuf, Store, StoreOptions, Table};

use crate::grammar::Decisions;
use crate::harness::now;

/// The longest that a statement may take: its operations are bounded, so this says that nothing escapes the bound.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(20);

/// Operations of SQLite for one statement: some milliseconds, far more than the few rows need.
const OPERATIONS_MAX: u64 = 300_000;

/// Statements of one input.
const STATEMENTS_MAX: usize = 16;

/// Tables with every kind of column, key and index.
const SPECIMEN: &[&str] = &[
    "CREATE TABLE t (a INT PRIMARY KEY, b TEXT NOT NULL DEFAULT 'd', c REAL)",
    "CREATE INDEX t_b ON t (b, c)",
    "CREATE TABLE u (a TEXT, b INT, c ANY, PRIMARY KEY (a, b)) WITH (prefix = 'u:', value = 'c')",
    "CREATE UNIQUE INDEX u_c ON u (c)",
    "CREATE TABLE v (a INT, b TEXT, c BLOB)",
    "INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', NULL), (3, '', -1), (9223372036854775807, 'z', 1e300)",
    "INSERT INTO u VALUES ('p', 1, 1), ('p', 2, 'two'), ('q', 1, NULL), ('q', 2, NULL), ('', -1, x'00ff')",
    "INSERT INTO v VALUES (1, 'one', x''), (NULL, NULL, NULL), (1, 'one', x'c3')",
    "INSERT INTO memcached VALUES ('k', '17')",
];

/// Runs one input against a store of its own.
pub fn fuzz_sql(data: &[u8]) {
    let mut database = Database::new();
    let mut decisions = Decisions::new(data);
    for _ in 0..STATEMENTS_MAX {
        database.check(&decisions.statement());
        if decisions.is_empty() {
            break;
        }
    }
    database.check_indexes();
}

/// A store and what executes on it, with the checks of every statement.
pub struct Database {
    store: Arc<Store>,
    executor: Executor,
    session: Session,
    cancel: Cancel,
}

/// Everything that can be seen of a store: the views, and each table with its rows by key.
type Picture = (Vec<ViewDef>, Vec<(TableDef, Vec<SeenRow>)>);

/// Key, values, version, deadline and flags of a row.
type SeenRow = (Vec<u8>, String, u64, u32, u32);

impl Database {
    pub fn new() -> Self {
        let options = StoreOptions {
            path: None,
            memory_bytes: 16 << 20,
            cold: true,
            // Time stands still: whatever changes was changed by a statement.
            clock: Clock::Manual(ManualClock::new(1_700_000_000)),
            row_bytes_max: 1 << 20,
        };
        let store = Store::open(&options).expect("a store in memory").store;
        let limits = Limits {
            statement_timeout: Some(Duration::from_secs(1)),
            operations_max: Some(OPERATIONS_MAX),
            heap_bytes_max: 8 << 20,
            cached_statements: 2,
            background: false,
            native: true,
        };
        let executor = Executor::new(Arc::clone(&store), limits).expect("an executor");
        let mut database = Self { store, executor, session: Session::new(), cancel: Cancel::new() };
        for sql in SPECIMEN {
            database.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        database
    }

    fn execute(&mut self, sql: &str) -> Result<Done, SqlError> {
        let parameters = [Value::Integer(1), Value::Text("p".into())];
        let count = (1..=2).rev().find(|number| sql.contains(&format!("${number}"))).unwrap_or(0);
        self.executor.execute(&mut self.session, sql, &parameters[..count], &self.cancel, &mut Ignore)
    }

    /// Executes a statement and judges how it ended.
    pub fn check(&mut self, sql: &str) {
        // A transaction that failed would answer everything with that.
        if self.session.status() == TransactionStatus::Failed {
            self.session.roll_back();
        }
        let before = self.picture();
        let caught = sql::panics_caught();
        let start = now();
        let result = self.execute(sql);
        let took = start.elapsed();
        assert_eq!(sql::panics_caught(), caught, "a callback panicked: {sql}");
        assert!(took < STATEMENT_TIME_MAX, "{took:?}: {sql}");
        match result {
            Ok(done) if reads(&done) => {
                assert!(before == self.picture(), "a read changed something: {sql}");
            }
            Ok(_) => {}
            Err(error) => {
                check_error(sql, &error);
                // OR FAIL keeps the rows before the faulty one, and says so.
                let may_change = error.partial && sql.to_ascii_uppercase().contains("FAIL");
                let changed = before != self.picture();
                assert!(may_change || !changed, "it failed ({error}) and changed something: {sql}");
            }
        }
    }

    fn picture(&self) -> Picture {
        let catalog = self.store.catalog();
        let tables = catalog.tables().map(|table| (seen_definition(table), self.rows(table))).collect();
        (catalog.views().map(|view| ViewDef::clone(view)).collect(), tables)
    }

    fn rows(&self, table: &Arc<Table>) -> Vec<SeenRow> {
        let view = self.store.view();
        let mut scan = view.scan(table);
        let mut row = RowBuf::new();
        let mut rows = Vec::new();
        while scan.next(&view, &mut row).expect("a row is read") {
            rows.push(seen(table, &row));
        }
        rows.sort();
        rows
    }

    /// Every index leads to the very rows that a scan finds.
    pub fn check_indexes(&self) {
        for table in self.store.catalog().tables() {
            let rows = self.rows(table);
            for index in table.indexes() {
                let view = self.store.view();
                let mut range = view.range(table, index, &KeyBounds::ALL, false);
                let mut row = RowBuf::new();
                let mut found = Vec::new();
                while range.next(&view, &mut row).expect("a row is read") {
                    found.push(seen(table, &row));
                }
                found.sort();
                assert!(found == rows, "index {} of {} and its rows differ", index.name(), table.name());
            }
        }
    }
}

fn seen(table: &Table, row: &RowBuf) -> SeenRow {
    let values: Vec<ValueRef<'_>> = (0..table.def().columns.len()).map(|at| table.column(row, at)).collect();
    (row.key().to_vec(), format!("{values:?}"), row.cas(), row.expiry(), row.client_flags())
}

/// A definition without what counts its changes and says where values lie in rows.
fn seen_definition(table: &Table) -> TableDef {
    let mut def = TableDef { schema: 0, slots: None, ..table.def().clone() };
    def.columns.iter_mut().for_each(|column| column.slot = None);
    def.indexes.sort_by(|a, b| a.name.cmp(&b.name));
    def
}

/// Whether the statement was a read. `CREATE TABLE ... AS` has the tag of one, but no rows to give.
fn reads(done: &Done) -> bool {
    let empty = done.tag.is_empty();
    empty || (done.kind == DoneKind::Rows && matches!(done.tag, "SELECT" | "EXPLAIN"))
}

fn check_error(sql: &str, error: &SqlError) {
    let state = error.state;
    let well_formed = state.len() == 5 && state.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    assert!(well_formed, "'{state}' is no SQLSTATE: {sql}");
    assert!(!state.starts_with("XX"), "a mistake of ours ({error}): {sql}");
    assert!(!error.message.is_empty(), "an error without words: {sql}");
    let characters = sql.chars().count();
    assert!(error.position.is_none_or(|at| 0 < at && at <= characters + 1), "place outside: {sql}");
}

/// Takes rows and keeps none.
struct Ignore;

impl RowSink for Ignore {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}
