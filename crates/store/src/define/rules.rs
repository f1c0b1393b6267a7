//! Expiry rules are made and removed.

use std::sync::Arc;

use crate::definition::{ExpiryRule, check_name};
use crate::error::{DdlError, ddl};
use crate::limits::RULES_MAX;
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::found;

impl Store {
    /// Makes a rule. It runs for the first time at once.
    pub fn create_rule(&self, table: &str, rule: ExpiryRule) -> Result<(), DdlError> {
        let _one = self.definitions.lock();
        let catalog = self.catalog();
        check_name("rule", &rule.name)?;
        let table = found(&catalog, table)?;
        if catalog.rule(&rule.name).is_some() {
            return Err(ddl("42710", format!("expiry rule \"{}\" exists already", rule.name)));
        }
        let mut def = table.def().clone();
        if def.rules.len() >= RULES_MAX {
            return Err(ddl("54000", format!("a table has at most {RULES_MAX} expiry rules")));
        }
        def.rules.push(rule);
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed).map(|_| ())
    }

    /// Removes a rule.
    pub fn drop_rule(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.definitions.lock();
        let catalog = self.catalog();
        let Some((table, _)) = catalog.rule(name) else {
            return Err(ddl("42704", format!("expiry rule \"{name}\" does not exist")));
        };
        let mut def = table.def().clone();
        def.rules.retain(|rule| !rule.name.eq_ignore_ascii_case(name));
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed)?;
        table.state.rules.lock().retain(|kept| !kept.name.eq_ignore_ascii_case(name));
        Ok(())
    }
}
