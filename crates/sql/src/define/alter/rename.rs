//! `RENAME`: tables, columns, constraints, indexes, and their names in expressions.

use std::sync::Arc;

use sqltext::definition::RenameIndex;
use store::definition::{ForeignKey, TableDef, ViewDef, qualified};

use super::follow::{self, Relation};
use super::{Change, unknown_constraint};
use crate::compute::mentions;
use crate::core::Core;
use crate::define::drop::{materialized_reader_of, reader_of, references, within};
use crate::define::{Defined, Undo, altered, check_column_name, check_public_name};
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;
use crate::text::token::{Kind, Token, Tokens, quoted_name, unquoted};

/// `ALTER INDEX name RENAME TO name`
pub(in crate::define) fn index(core: &Core, rename: &RenameIndex) -> Result<Defined, SqlError> {
    const TAG: &str = "ALTER INDEX";
    let (name, new) = (&rename.name.text, &rename.to.text);
    let of_key = || {
        core.catalog
            .tables()
            .find(|table| within(table.def(), name).is_some_and(|own| table.def().is_key_name(own)))
    };
    let Some(owner) = core.catalog.index_owner(name).or_else(of_key) else {
        let error = SqlError::new(state::UNKNOWN_OBJECT, format!("index \"{name}\" does not exist"));
        return if rename.if_exists { Ok(Defined::missing(TAG, "relation", name)) } else { Err(error) };
    };
    let name = within(owner.def(), name).unwrap_or(name);
    if core.catalog.index_owner(&owner.def().qualified(new)).is_some() {
        return Err(SqlError::new(state::DUPLICATE_TABLE, format!("index \"{new}\" exists already")));
    }
    let (mut before, key_name) = (None, owner.def().key_name.clone());
    core.store.alter_table(owner.name(), &mut |def| {
        let index = def.indexes.iter_mut().find(|index| index.name.eq_ignore_ascii_case(name));
        if let Some(index) = index {
            before = Some(std::mem::replace(&mut index.name, new.clone()));
        } else {
            def.key_name = Some(new.clone());
        }
        Ok(())
    })?;
    let table = Arc::clone(owner);
    Ok(Defined::undone_by(TAG, Undo::IndexRenamed { table, before, now: new.clone(), key_name }))
}

impl Change<'_> {
    /// `RENAME TO name` and `SET SCHEMA name`
    pub(super) fn rename_table(&mut self, own: &str, namespace: Option<&str>) -> Result<(), SqlError> {
        if namespace.is_none() {
            check_public_name(own)?;
        }
        let views = self.views_of_renamed(own, namespace)?;
        let name = &qualified(namespace, own);
        self.alter(|def| {
            // The constraint keeps its name, as in PostgreSQL: tools rename it themselves.
            let key = def.key_name().into_owned();
            def.key_name.get_or_insert(key);
            let before = def.own_name().to_owned();
            (def.name, def.namespace) = (name.to_owned(), namespace.map(str::to_owned));
            rename_in_expressions(def, &before, own, Meant::Table);
            Ok(())
        })?;
        self.undo.extend(follow::install(self.core, views)?);
        let before = std::mem::replace(&mut self.table, name.to_owned());
        self.rename_in_references(&before, &|key| name.clone_into(&mut key.table))
    }

    /// The views that read the table, as they are when it has another name.
    fn views_of_renamed(&self, own: &str, namespace: Option<&str>) -> Result<Vec<ViewDef>, SqlError> {
        let def = self.def()?;
        if let Some(view) = materialized_reader_of(self.core, &self.table) {
            return Err(self.refused_for("RENAME TO", MATERIALIZED, view.name()));
        }
        let before = Relation { namespace: def.namespace.as_deref(), own: def.own_name() };
        let views = follow::of_relation(self.core, &before, &Relation { namespace, own });
        views.ok_or_else(|| {
            let view = reader_of(self.core, &self.table);
            self.refused_for("RENAME TO", "view", view.as_ref().map_or("", |view| &view.name))
        })
    }

    /// The views that read a column, as they are when it has another name.
    fn views_of_column(&self, from: &str, to: &str) -> Result<Vec<ViewDef>, SqlError> {
        let (views, materialized) = self.readers_of(from);
        if let Some(view) = materialized.first() {
            return Err(self.refused_for("RENAME COLUMN", MATERIALIZED, view.name()));
        }
        let catalog = self.core.store.catalog();
        let changed = |view: &Arc<ViewDef>| {
            follow::of_column(&catalog, view, &self.table, (from, to))
                .ok_or_else(|| self.refused_for("RENAME COLUMN", "view", &view.name))
        };
        let followed = views.iter().map(changed).collect::<Result<Vec<_>, _>>()?;
        // A bare name that was another table's column would mean both.
        let ambiguous = |view: &&Arc<ViewDef>| mentions(&view.sql, &self.table) && mentions(&view.sql, to);
        match catalog.views().find(ambiguous) {
            Some(view) => Err(self.refused_for("RENAME COLUMN", "view", &view.name)),
            None => Ok(followed),
        }
    }

    /// Foreign keys that refer to a table keep referring to it when it, or a column of it, gets another name.
    fn rename_in_references(
        &mut self,
        table: &str,
        change: &dyn Fn(&mut ForeignKey),
    ) -> Result<(), SqlError> {
        let catalog = self.core.store.catalog();
        for other in catalog.tables().filter(|other| references(other.def(), table)) {
            if other.name() != self.table {
                self.undo.push(altered(other));
            }
            self.core.store.alter_table(other.name(), &mut |def| {
                let keys = def.foreign_keys.iter_mut().filter(|key| key.table.eq_ignore_ascii_case(table));
                keys.for_each(change);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// `RENAME [COLUMN] name TO name`
    pub(super) fn rename_column(&mut self, from: &str, to: &str) -> Result<(), SqlError> {
        check_column_name(to)?;
        let def = self.def()?;
        if def.column_index(from).is_none() {
            return Err(SqlError::unknown_column(def.own_name(), from));
        }
        let views = self.views_of_column(from, to)?;
        self.alter(|def| {
            if let Some(at) = def.column_index(from) {
                to.clone_into(&mut def.columns[at].name);
                rename_in_expressions(def, from, to, Meant::Column);
                let columns = def.foreign_keys.iter_mut().flat_map(|key| &mut key.columns);
                columns.filter(|name| name.eq_ignore_ascii_case(from)).for_each(|name| to.clone_into(name));
            }
            Ok(())
        })?;
        self.undo.extend(follow::install(self.core, views)?);
        self.rename_owners(&def, from, to)?;
        let table = self.table.clone();
        self.rename_in_references(&table, &|key| {
            let columns = key.references.iter_mut().filter(|name| name.eq_ignore_ascii_case(from));
            columns.for_each(|name| to.clone_into(name));
        })
    }

    /// Sequences that go with a column keep doing so.
    fn rename_owners(&self, def: &TableDef, from: &str, to: &str) -> Result<(), SqlError> {
        let catalog = self.core.store.catalog();
        let goes = |own: &(u16, String)| own.0 == def.id && own.1.eq_ignore_ascii_case(from);
        for own in catalog.sequences().iter().filter(|own| own.def().owner.as_ref().is_some_and(goes)) {
            self.core.store.alter_sequence(&own.def().name, &mut |sequence| {
                sequence.owner = Some((def.id, to.to_owned()));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn rename_key(&self, to: &str) -> Result<(), SqlError> {
        let mut def = self.def()?;
        if constraint_names(&mut def).any(|name| name.eq_ignore_ascii_case(to)) {
            return Err(taken(to));
        }
        self.alter(|def| {
            def.key_name = Some(to.to_owned());
            Ok(())
        })
    }

    /// `RENAME CONSTRAINT name TO name`
    pub(super) fn rename_constraint(&self, from: &str, to: &str) -> Result<(), SqlError> {
        let mut def = self.def()?;
        if def.primary_key.is_empty() || def.key_dropped {
            // It has no constraint of its own.
        } else if def.is_key_name(from) {
            return self.rename_key(to);
        } else if def.is_key_name(to) {
            return Err(taken(to));
        }
        if constraint_names(&mut def).any(|name| name.eq_ignore_ascii_case(to)) {
            return Err(taken(to));
        }
        if !constraint_names(&mut def).any(|name| name.eq_ignore_ascii_case(from)) {
            return Err(unknown_constraint(&def, from));
        }
        self.alter(|def| {
            if let Some(name) = constraint_names(def).find(|name| name.eq_ignore_ascii_case(from)) {
                to.clone_into(name);
            }
            Ok(())
        })
    }
}

fn taken(name: &str) -> SqlError {
    SqlError::new(state::DUPLICATE_OBJECT, format!("constraint \"{name}\" exists already"))
}

/// The names of a table's constraints but for its key's.
fn constraint_names(def: &mut TableDef) -> impl Iterator<Item = &mut String> {
    let unique = def.indexes.iter_mut().filter(|index| index.constraint).map(|index| &mut index.name);
    let foreign = def.foreign_keys.iter_mut().map(|key| &mut key.name);
    def.checks.iter_mut().map(|check| &mut check.name).chain(unique).chain(foreign)
}

/// What a name in an expression stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meant {
    /// A column: a name that is neither a function's nor a table's.
    Column,
    /// The table: a name before a point.
    Table,
}

fn rename_in_expressions(def: &mut TableDef, from: &str, to: &str, meant: Meant) {
    let generated = def.columns.iter_mut().filter_map(|column| column.generated.as_mut());
    let generated = generated.map(|generated| &mut generated.sql);
    let checks = def.checks.iter_mut().map(|check| &mut check.sql);
    let rules = def.rules.iter_mut().map(|rule| &mut rule.condition);
    for sql in generated.chain(checks).chain(rules) {
        *sql = renamed(sql, from, to, meant);
    }
}

/// An expression over a table's columns as one over those of another table.
pub(in crate::define) fn renamed_table(sql: &str, from: &str, to: &str) -> String {
    renamed(sql, from, to, Meant::Table)
}

fn renamed(sql: &str, from: &str, to: &str, meant: Meant) -> String {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut out = String::with_capacity(sql.len());
    let mut copied = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_name = matches!(token.kind, Kind::Word | Kind::Quoted);
        let next = tokens.get(at + 1);
        let before_point = next.is_some_and(|next| next.is_sign("."));
        let calls = next.is_some_and(|next| next.is_sign("("));
        let fits = if meant == Meant::Table { before_point } else { !before_point && !calls };
        if is_name && fits && unquoted(token.text).eq_ignore_ascii_case(from) {
            out.push_str(&sql[copied..token.start]);
            out.push_str(&quoted_name(to));
            copied = token.end();
        }
    }
    out.push_str(&sql[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_where_they_are_meant() {
        for (sql, expected) in [
            ("a + \"A\"", "\"b\" + \"b\""),
            ("a(a) || 'a'", "a(\"b\") || 'a'"),
            ("t.a > a.x", "t.\"b\" > a.x"),
        ] {
            assert_eq!(renamed(sql, "a", "b", Meant::Column), expected);
        }
        assert_eq!(renamed("t.t + t", "t", "u", Meant::Table), "\"u\".t + t");
    }
}
