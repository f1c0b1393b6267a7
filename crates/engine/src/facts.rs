//! What the system tables ask of the daemon, answered.

use std::sync::Arc;
use std::time::Duration;

use auth::New;
use sql::{
    BusFacts, DefaultGrants, ForwardedFacts, Grant, HistoryFacts, Holder, HotKeyFacts, Invalidation,
    InvalidationFacts, LockCall, LockFacts, NodeFacts, RefusalFacts, RoleCounts, RoleFacts, Server,
    SessionFacts, SettingFacts, SlowFacts, SourceColumn, SourceFacts, SourceNote, SourceRows, SqlError,
    StatementFacts,
};

use store::definition::{MaterializedDef, ServerDef, TableDef};

use crate::activity::{Happening, Who};
use crate::engine::Engine;
use crate::sql_session::{check_notification, settings};

impl Server for Engine {
    fn source_applied(&self, name: &str, lsn: u64, wait: Duration) -> Option<bool> {
        self.sources.applied(name, lsn, wait)
    }

    fn sources(&self) -> Vec<SourceFacts> {
        self.sources.all()
    }

    fn buses(&self) -> Vec<BusFacts> {
        self.buses.facts()
    }

    fn nodes(&self) -> Vec<NodeFacts> {
        self.buses.nodes()
    }

    fn forwarded(&self) -> Vec<ForwardedFacts> {
        self.sources.forwarded()
    }

    fn check_cached_query(&self, statement: &str) -> Result<(), SqlError> {
        self.sources.check_cached_query(statement)
    }

    fn bus_applied(&self, name: &str, sequence: u64, wait: Duration) -> Option<bool> {
        self.buses.applied(name, sequence, wait)
    }

    fn check_source(&self, server: &ServerDef, table: &TableDef) -> Result<Vec<SourceNote>, SqlError> {
        self.sources.check(server, table)
    }

    fn describe_query(&self, server: &ServerDef, sql: &str) -> Result<Vec<SourceColumn>, SqlError> {
        self.sources.behind(server)?.describe(server, sql)
    }

    fn run_query(
        &self,
        server: &ServerDef,
        view: &MaterializedDef,
        timeout: Duration,
        rows: &mut dyn SourceRows,
    ) -> Result<(), SqlError> {
        self.sources.behind(server)?.run(server, view, timeout, rows)
    }

    fn sessions(&self) -> Vec<SessionFacts> {
        self.activity.sessions.all()
    }

    fn statements(&self) -> Vec<StatementFacts> {
        self.activity.statements.all()
    }

    fn settings(&self) -> Vec<SettingFacts> {
        self.activity.settings()
    }

    fn started_ms(&self) -> i64 {
        self.started_ms
    }

    fn session_settings(&self) -> Vec<(&'static str, &'static str)> {
        settings::defaults().collect()
    }

    fn session_default(&self, name: &str) -> Option<&'static str> {
        if name.eq_ignore_ascii_case("native_execution") {
            return Some(settings::on_off(self.native_execution()));
        }
        settings::default_of(name)
    }

    fn check_setting(&self, name: &str, value: Option<&str>) -> Result<String, SqlError> {
        settings::after(name, value)
    }

    fn check_notification(&self, channel: &str, payload: &str) -> Result<(), SqlError> {
        check_notification(channel, payload)
    }

    fn advisory(&self, pid: i32, at: usize, call: LockCall) -> Result<bool, SqlError> {
        self.locks.call(pid, at, call)
    }

    fn advisory_locks(&self) -> Vec<LockFacts> {
        self.locks.all()
    }

    fn cancel(&self, pid: i32) -> bool {
        self.activity.sessions.cancel(pid)
    }

    fn terminate(&self, pid: i32) -> bool {
        self.activity.sessions.terminate(pid)
    }

    fn roles(&self) -> Vec<RoleFacts> {
        self.access.facts()
    }

    fn owner(&self) -> Option<String> {
        self.access.owner()
    }

    fn holder(&self, role: &str) -> Option<Holder> {
        self.access.holder(role)
    }

    fn may_create(&self, schema: &str, roles: &[String]) -> bool {
        let is_one = |role: &str| roles.iter().any(|own| own == role);
        self.access.standing().may_create(schema, &is_one)
    }

    fn creators(&self, schema: &str) -> Vec<Option<String>> {
        self.access.standing().creators(schema).map(|role| role.map(ToOwned::to_owned)).collect()
    }

    fn refusals(&self) -> Vec<RefusalFacts> {
        self.access.refusals.last()
    }

    fn role_counts(&self) -> Vec<RoleCounts> {
        self.access.role_counts()
    }

    fn slow_statements(&self) -> Vec<SlowFacts> {
        self.activity.slow.last()
    }

    fn invalidations(&self) -> Vec<InvalidationFacts> {
        self.activity.invalidations.last()
    }

    fn history(&self) -> Vec<HistoryFacts> {
        self.history()
    }

    fn hot_keys(&self, table: Option<&str>) -> Vec<HotKeyFacts> {
        self.hot_keys.list(&self.store.catalog(), table)
    }

    fn note_rule(&self, table: &str, rule: &str, rows: u64, took_ns: u64) {
        let who = Who { protocol: "rule", ..Who::default() };
        self.activity.keep(Happening {
            who: Arc::new(who),
            statement: format!("expiry rule {rule}").into(),
            parameters: None,
            table: Some(table.to_owned()),
            how: Invalidation::Expired,
            rows,
            took_ns: Some(took_ns),
        });
    }

    fn default_grants(&self) -> Vec<DefaultGrants> {
        let standing = self.access.standing();
        let one = |(new, grants): (&New, &[Grant])| {
            let New { by: owner, schema, kind } = new.clone();
            DefaultGrants { owner, schema, kind, grants: grants.to_vec() }
        };
        standing.defaults().map(one).collect()
    }
}
