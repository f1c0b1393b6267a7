//! Expiry rules: which are due, and a note of each run.

use std::sync::Arc;

use crate::clock::moment_after;
use crate::definition::ExpiryRule;
use crate::schema::Schema;
use crate::table::rules::RuleRun;
use crate::table::{Table, ticks};

impl Schema {
    /// Whether a rule's time has come.
    pub fn has_rules_due(&self) -> bool {
        let now = self.now();
        self.catalog()
            .ruled_tables()
            .any(|table| table.def().rules.iter().any(|rule| table.is_due(rule, now)))
    }

    /// The rules whose time has come.
    pub fn due_rules(&self) -> Vec<(Arc<Table>, ExpiryRule)> {
        let now = self.now();
        let catalog = self.catalog();
        let with_table = |table: &Arc<Table>| {
            let due = table.def().rules.iter().filter(|rule| table.is_due(rule, now));
            due.map(|rule| (Arc::clone(table), rule.clone())).collect::<Vec<_>>()
        };
        catalog.ruled_tables().flat_map(with_table).collect()
    }

    /// Takes note of a run, from whose end the time to the next counts.
    pub fn note_rule_run(&self, table: &Table, rule: &ExpiryRule, run: RuleRun) {
        if self.catalog().rule(&rule.name).is_none() {
            return;
        }
        let next = moment_after(self.now(), ticks(Some(rule.every_ms)).into());
        let moment = i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX);
        table.state.rule(&rule.name, |kept| {
            kept.next = next;
            let figures = &mut kept.figures;
            figures.runs += 1;
            figures.rows += run.rows;
            figures.errors += u64::from(run.error.is_some());
            figures.total_ns += run.ns;
            figures.last_run_ms = Some(moment);
            figures.last_rows = run.rows;
            figures.last_ns = run.ns;
            figures.last_error = run.error;
            figures.plan = run.plan;
        });
    }
}
