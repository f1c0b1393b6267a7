//! `CREATE TABLE`: from the tree to a definition.

use std::collections::HashSet;

use dialect::definition::{assigned, stored as stored_as};
use pgcatalog::KEY_OPTION;
use pgcatalog::function::order;
use sqltext::definition::{
    AlterTable, Body, Change, Column, ColumnRule, ColumnRuleKind, Constraint, ConstraintKind, CreateTable,
    Element, Expression, Reference, Setting, Term,
};
use sqltext::grant::Kind;
use store::Catalog;
use store::definition::{
    CHECKS_MAX, COLUMNS_MAX, CheckDef, Collation, ColumnDef, ColumnKind, FOREIGN_KEYS_MAX, ForeignKey,
    Generated, INDEXES_MAX, Identity, IndexDef, SqlType, TableDef, qualified,
};
use store::value::Value;

use super::constant::value_of;
use super::grant::of_new;
use super::index::index_form;
use super::server;
use super::storage::without_storage;
use super::words::{Words, bare};
use super::{
    Defined, Fill, Note, Undo, check_column_name, check_table_name, free_name, of_query, refuse_temporary,
    typed_column,
};
use crate::compute::{check_definition, mentions};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::token::{Tokens, quoted_name, unquoted};

pub(super) fn create(core: &Core, words: &Words<'_>, wanted: &CreateTable) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE TABLE";
    refuse_temporary(wanted.temporary)?;
    let name = &wanted.name.text;
    if wanted.if_not_exists && core.catalog.table(name).is_some() {
        return Ok(Defined::present(TAG, name));
    }
    check_table_name(&wanted.name)?;
    let mut maker = TableMaker::new(core, words, name);
    maker.def.namespace.clone_from(&wanted.name.namespace);
    let mut fill = None;
    match &wanted.body {
        Body::Elements(elements) => elements.iter().try_for_each(|element| match element {
            Element::Column(column) => maker.column(column),
            Element::Constraint(constraint) => maker.constraint(constraint),
            Element::Like(like) => maker.like(core, like),
        })?,
        Body::Query(query) => {
            let query = words.query(query)?;
            let columns = of_query::columns(core, &query);
            maker.def.columns = columns.map_err(|error| words.relocate(&query, error))?;
            let insert = format!("INSERT INTO {} {}", quoted_name(name), query.sql);
            fill = Some(Fill::Insert { table: name.clone(), insert });
        }
    }
    let (mut notes, start) = (std::mem::take(&mut maker.notes), maker.start);
    maker.def.numbers_from = if start > 1 { start } else { 0 };
    let (settings, storage) = without_storage(&wanted.settings);
    notes.extend(storage);
    let mut def = maker.finish(&settings)?;
    notes.extend(server::check_source(core, &def)?);
    let namespace = wanted.name.namespace.as_deref();
    def.access = of_new(core, Kind::Table, namespace);
    if def.identity().is_some() {
        def.numbers_grants = of_new(core, Kind::Sequence, namespace).grants;
    }
    let namespace = wanted.name.namespace.clone();
    let taken = |name: &str| core.catalog.has_index(&qualified(namespace.as_deref(), name));
    // A table that was renamed kept the name of its key's constraint.
    if def.key_name.is_none() && taken(&def.key_name()) {
        def.key_name = Some(free_name(def.key_name().into_owned(), taken));
    }
    let prefix = def.options.prefix.clone();
    match core.store.create_table_claiming(def) {
        Err(error) if error.state == state::DUPLICATE_TABLE && wanted.if_not_exists => {
            Ok(Defined::present(TAG, name))
        }
        Err(error) => Err(error.into()),
        Ok((table, claimed)) => {
            notes.extend(Note::claimed(claimed, prefix.as_deref()));
            Ok(Defined { fill, notes, ..Defined::undone_by(TAG, Undo::Table(table)) })
        }
    }
}

/// The columns that a table will have, with their types: its expressions compute with them. What is wrong with one is
/// said when it is made.
pub(super) fn columns_made(core: &Core, wanted: &CreateTable) -> Vec<(String, SqlType)> {
    let Body::Elements(elements) = &wanted.body else { return Vec::new() };
    let of_element = |element: &Element| match element {
        Element::Column(column) => typed(core, column).into_iter().collect(),
        Element::Like(like) => {
            let columns = core.catalog.table(&like.table.text).map(|table| &table.def().columns);
            columns.into_iter().flatten().map(|column| (column.name.clone(), column.sql_type())).collect()
        }
        Element::Constraint(_) => Vec::new(),
    };
    elements.iter().flat_map(of_element).collect()
}

/// Those that a table is given more.
pub(super) fn columns_added(core: &Core, alter: &AlterTable) -> Vec<(String, SqlType)> {
    let of_change = |change: &Change| match change {
        Change::AddColumn { column, .. } => typed(core, column),
        _ => None,
    };
    alter.changes.iter().filter_map(of_change).collect()
}

fn typed(core: &Core, column: &Column) -> Option<(String, SqlType)> {
    let made = new_column(&core.catalog, &column.name.text, &column.declared).ok()?;
    Some((made.name.clone(), made.sql_type()))
}

/// Gathers a table's definition.
pub(super) struct TableMaker<'w> {
    core: &'w Core,
    words: &'w Words<'w>,
    pub(super) def: TableDef,
    /// What the client is to know of it.
    pub(super) notes: Vec<Note>,
    /// The first number of its identity column.
    start: i64,
    /// What `UNIQUE` names; their indexes get their names last.
    unique: Vec<IndexDef>,
    /// Indexes of another table, which get names of their own.
    pub(super) copied: Vec<IndexDef>,
    /// The collations that `PRIMARY KEY (a COLLATE ...)` names; empty: the columns' own.
    key_collations: Vec<Option<Collation>>,
}

impl<'w> TableMaker<'w> {
    pub(super) fn new(core: &'w Core, words: &'w Words<'w>, name: &str) -> Self {
        Self::of(core, words, TableDef::new(name, Vec::new(), Vec::new()))
    }

    /// A maker that goes on with a table that is there.
    pub(super) fn of(core: &'w Core, words: &'w Words<'w>, def: TableDef) -> Self {
        let (notes, unique, copied, key_collations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { core, words, def, notes, start: 1, unique, copied, key_collations }
    }

    /// The names of the `UNIQUE`s that were met; an empty one is none.
    pub(super) fn take_unique(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unique).into_iter().map(|index| index.name).collect()
    }

    pub(super) fn column(&mut self, wanted: &Column) -> Result<(), SqlError> {
        let name = &wanted.name.text;
        self.check_room()?;
        check_column_name(name)?;
        if self.def.column_index(name).is_some() {
            let error = SqlError::new(state::DUPLICATE_COLUMN, format!("duplicate column name: {name}"));
            return Err(self.words.at(error, wanted.name.place));
        }
        let mut column = new_column(&self.core.catalog, name, &wanted.declared)?;
        for rule in &wanted.rules {
            self.column_rule(&mut column, rule)?;
        }
        self.def.columns.push(column);
        Ok(())
    }

    fn column_rule(&mut self, column: &mut ColumnDef, rule: &ColumnRule) -> Result<(), SqlError> {
        let at = self.def.columns.len();
        match &rule.kind {
            ColumnRuleKind::PrimaryKey { autoincrement } => {
                if let Some(place) = *autoincrement
                    && !column.declared.eq_ignore_ascii_case("INTEGER")
                {
                    let message = "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY";
                    return Err(self.words.at(SqlError::new(state::BAD_DEFINITION, message), place));
                }
                self.refuse_two_keys()?;
                self.def.primary_key = vec![at];
                self.name_key(rule.name.as_deref());
                column.not_null = true;
            }
            ColumnRuleKind::NotNull => column.not_null = true,
            ColumnRuleKind::Null => {}
            ColumnRuleKind::Unique => {
                self.unique.push(IndexDef::new(rule.name.clone().unwrap_or_default(), vec![at], true));
            }
            ColumnRuleKind::Default(expression) => set_default(self.words, column, expression)?,
            ColumnRuleKind::Check(expression) => {
                let sql = self.words.expression(expression)?;
                let name = rule.name.clone().unwrap_or_else(|| self.check_name(Some(&column.name)));
                self.push_check(CheckDef { name, sql, not_null: None })?;
            }
            ColumnRuleKind::Collate(name) => {
                let wanted = collation(name)?;
                refuse_collation(column)?;
                column.collation = wanted;
            }
            ColumnRuleKind::References(reference) => {
                self.foreign_key(rule.name.as_deref(), vec![column.name.clone()], reference)?;
            }
            ColumnRuleKind::Generated { expression, stored } => {
                let (sql, from) = self.words.typed(&expression.node, expression.tokens.clone())?;
                let sql = stored_as(sql, from, column.sql_type());
                column.generated = Some(Generated { sql, stored: *stored });
            }
            ColumnRuleKind::Identity { always, start } => {
                self.start = *start;
                set_identity(column, *always)?;
            }
            ColumnRuleKind::Deferrable => self.tell_deferrable(),
        }
        Ok(())
    }

    fn name_key(&mut self, name: Option<&str>) {
        self.def.key_name = name.map(ToOwned::to_owned);
    }

    fn refuse_two_keys(&self) -> Result<(), SqlError> {
        if self.def.primary_key.is_empty() {
            return Ok(());
        }
        let message = format!("multiple primary keys for table \"{}\" are not allowed", self.def.own_name());
        Err(SqlError::new(state::BAD_DEFINITION, message))
    }

    pub(super) fn constraint(&mut self, constraint: &Constraint) -> Result<(), SqlError> {
        self.check_room()?;
        let named = constraint.name.as_deref();
        match &constraint.kind {
            ConstraintKind::PrimaryKey(terms) => {
                self.refuse_two_keys()?;
                let key = self.key_columns(terms)?;
                (self.def.primary_key, self.key_collations) = (key.columns, key.collations);
                self.name_key(named);
                for &column in &self.def.primary_key {
                    self.def.columns[column].not_null = true;
                }
            }
            ConstraintKind::Unique(terms) => {
                let index = self.key_columns(terms)?;
                let name = named.unwrap_or_default().to_owned();
                self.unique.push(IndexDef { name, unique: true, ..index });
            }
            ConstraintKind::Check(expression) => {
                let sql = self.words.expression(expression)?;
                let named = named.map(ToOwned::to_owned);
                let name = named.unwrap_or_else(|| self.check_name(self.only_column(&sql).as_deref()));
                self.push_check(CheckDef { name, sql, not_null: None })?;
            }
            ConstraintKind::ForeignKey(columns, reference) => {
                let columns = columns.iter().map(|column| column.text.clone()).collect();
                self.foreign_key(named, columns, reference)?;
            }
        }
        if constraint.deferrable && !matches!(constraint.kind, ConstraintKind::ForeignKey(..)) {
            self.tell_deferrable();
        }
        Ok(())
    }

    /// A foreign key is kept, for tools that ask what they made, and not enforced.
    fn foreign_key(
        &mut self,
        name: Option<&str>,
        columns: Vec<String>,
        reference: &Reference,
    ) -> Result<(), SqlError> {
        let taken = |name: &str| self.def.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name));
        let name = match name {
            Some(name) if taken(name) => {
                let message = format!("constraint \"{name}\" exists already");
                return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
            }
            Some(name) => name.to_owned(),
            None => free_name(format!("{}_{}_fkey", self.def.own_name(), columns.join("_")), taken),
        };
        if self.def.foreign_keys.len() >= FOREIGN_KEYS_MAX {
            let message = format!("table has more than {FOREIGN_KEYS_MAX} foreign keys");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        self.notes.push(Note::hinted(
            format!("foreign key \"{name}\" is not enforced"),
            "rows of a cache expire and are evicted; keep the constraint in the database",
        ));
        self.def.foreign_keys.push(ForeignKey {
            name,
            columns,
            table: reference.table.text.clone(),
            references: reference.columns.iter().map(|column| column.text.clone()).collect(),
            on_delete: reference.on_delete.clone(),
            on_update: reference.on_update.clone(),
        });
        Ok(())
    }

    /// The columns of foreign keys are there.
    fn check_foreign_keys(&self) -> Result<(), SqlError> {
        let columns = self.def.foreign_keys.iter().flat_map(|key| &key.columns);
        match columns.into_iter().find(|column| self.def.column_index(column).is_none()) {
            Some(missing) => Err(SqlError::new(
                state::UNKNOWN_COLUMN,
                format!("column \"{missing}\" referenced in foreign key constraint does not exist"),
            )),
            None => Ok(()),
        }
    }

    /// A `UNIQUE` that was met elsewhere.
    pub(super) fn add_unique(&mut self, index: IndexDef) {
        self.unique.push(index);
    }

    /// A constraint holds at the end of each statement, whenever it was asked for.
    fn tell_deferrable(&mut self) {
        let note = Note::hinted(
            "the constraint is not deferred",
            "it holds at the end of each statement; a transaction's writes are checked again by COMMIT",
        );
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Columns of a key: expressions belong into indexes.
    pub(super) fn key_columns(&self, terms: &[Term]) -> Result<IndexDef, SqlError> {
        let form = index_form(self.words, &self.def, terms)?;
        if form.hidden.is_empty() {
            return Ok(form.index);
        }
        Err(SqlError::not_supported("an expression in a key")
            .with_hint("CREATE UNIQUE INDEX takes expressions"))
    }

    /// The one column that an expression reads, if it is one.
    fn only_column(&self, sql: &str) -> Option<String> {
        let mut read = self.def.columns.iter().filter(|column| mentions(sql, &column.name));
        let first = read.next()?;
        read.next().is_none().then(|| first.name.clone())
    }

    /// `table_column_check`, as PostgreSQL names it, with a number where that name is taken.
    fn check_name(&self, column: Option<&str>) -> String {
        let parts: Vec<&str> =
            [Some(self.def.own_name()), column, Some("check")].into_iter().flatten().collect();
        let name = parts.join("_");
        // Those that stand in its way, by their numbers: a table may have a thousand, each of which gets its name so.
        let taken: HashSet<&str> = self
            .def
            .checks
            .iter()
            .filter_map(|check| check.name.split_at_checked(name.len()))
            .filter_map(|(begin, number)| begin.eq_ignore_ascii_case(&name).then_some(number))
            .collect();
        let mut numbers = std::iter::once(String::new()).chain((1..).map(|number: u32| number.to_string()));
        let free = numbers.find(|number| !taken.contains(number.as_str())).unwrap_or_default();
        name + &free
    }

    fn push_check(&mut self, check: CheckDef) -> Result<(), SqlError> {
        if self.def.checks.len() >= CHECKS_MAX {
            let message = format!("table has more than {CHECKS_MAX} checks");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        self.def.checks.push(check);
        Ok(())
    }

    /// One that has more is refused later; their names are found one by one.
    fn check_room(&self) -> Result<(), SqlError> {
        if self.def.columns.len() > COLUMNS_MAX {
            return Err(SqlError::new("54011", format!("table has more than {COLUMNS_MAX} columns")));
        }
        if self.unique.len() > INDEXES_MAX {
            return Err(SqlError::new(
                state::TOO_LARGE,
                format!("table has more than {INDEXES_MAX} indexes"),
            ));
        }
        Ok(())
    }

    /// The definition, with the indexes that stand for `UNIQUE`.
    pub(super) fn finish(mut self, settings: &[Setting]) -> Result<TableDef, SqlError> {
        for (name, value) in settings {
            if name.eq_ignore_ascii_case(KEY_OPTION) {
                self.set_key(value)?;
            } else {
                self.def.options.set(name, value, &self.def.columns)?;
            }
        }
        self.number_the_key();
        self.unique.splice(..0, self.collated_key());
        for unique in std::mem::take(&mut self.unique) {
            // The primary key is unique already.
            let is_key = unique.columns == self.def.primary_key && self.is_binary(&unique);
            let known = self.def.indexes.iter().any(|index| is_same_constraint(index, &unique));
            if !is_key && !known {
                let name =
                    if unique.name.is_empty() { self.unique_name(&unique.columns) } else { unique.name };
                self.def.indexes.push(IndexDef { name, constraint: true, ..unique });
            }
        }
        self.name_copied();
        self.check_foreign_keys()?;
        check_made_columns(&self.def)?;
        check_unique(&self.def, &self.def.primary_key)?;
        let unique = self.def.indexes.iter().filter(|index| index.unique);
        unique.into_iter().try_for_each(|index| check_unique(&self.def, &index.columns))?;
        self.def.validate()?;
        check_definition(&self.def)?;
        Ok(self.def)
    }

    /// `WITH (key = 'a, b')`: the columns of the key whose constraint comes later, with `ADD PRIMARY KEY`, as `pg_dump`
    /// writes it.
    fn set_key(&mut self, names: &str) -> Result<(), SqlError> {
        self.refuse_two_keys()?;
        let names = Tokens::new(names).filter(|token| !token.is_sign(",")).map(|token| unquoted(token.text));
        let column = |name: String| {
            self.def.column_index(&name).ok_or_else(|| SqlError::unknown_column(self.def.own_name(), &name))
        };
        self.def.primary_key = names.map(column).collect::<Result<_, _>>()?;
        self.def.key_dropped = !self.def.primary_key.is_empty();
        for at in self.def.primary_key.clone() {
            self.def.columns[at].not_null = true;
        }
        Ok(())
    }

    /// The unique index of a key whose texts are not compared by their bytes: rows lie under the bytes of their key, so
    /// two of them may have what is one key.
    fn collated_key(&self) -> Option<IndexDef> {
        let key = IndexDef {
            collations: self.key_collations.clone(),
            ..IndexDef::new(String::new(), self.def.primary_key.clone(), true)
        };
        (!self.is_binary(&key) && !self.def.indexes.iter().any(|index| is_same_constraint(index, &key)))
            .then_some(key)
    }

    /// Whether an index compares texts by their bytes.
    fn is_binary(&self, index: &IndexDef) -> bool {
        (0..index.columns.len()).all(|at| index.collation(at, &self.def.columns).is_binary())
    }

    /// `INTEGER PRIMARY KEY` numbers its rows, as in SQLite.
    fn number_the_key(&mut self) {
        let &[key] = self.def.primary_key.as_slice() else { return };
        let column = &mut self.def.columns[key];
        let plain = column.default.is_none() && column.default_sql.is_none() && column.generated.is_none();
        if plain && column.identity.is_none() && column.declared.eq_ignore_ascii_case("INTEGER") {
            column.identity = Some(Identity::ByDefault);
        }
    }

    /// `table_a_b_key`, as PostgreSQL names it, with a number where that name is taken.
    fn unique_name(&self, columns: &[usize]) -> String {
        self.index_name(columns, "key")
    }

    /// The same for any index.
    fn index_name(&self, columns: &[usize], what: &str) -> String {
        let names: Vec<&str> = columns.iter().map(|&column| self.def.columns[column].name.as_str()).collect();
        free_name(format!("{}_{}_{what}", self.def.own_name(), names.join("_")), |name| {
            self.def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
                || self.core.catalog.index_owner(&self.def.qualified(name)).is_some()
        })
    }

    /// Gives the indexes of another table their names here.
    fn name_copied(&mut self) {
        for index in std::mem::take(&mut self.copied) {
            let name = self.index_name(index.named(), if index.constraint { "key" } else { "idx" });
            self.def.indexes.push(IndexDef { name, ..index });
        }
    }
}

/// Whether a constraint says of the same columns the same as another.
fn is_same_constraint(index: &IndexDef, other: &IndexDef) -> bool {
    index.constraint && index.columns == other.columns && index.collations == other.collations
}

/// A column of a declared type; PostgreSQL's serial types are integers that the server numbers.
fn new_column(catalog: &Catalog, name: &str, declared: &str) -> Result<ColumnDef, SqlError> {
    let serial = match declared.to_ascii_uppercase().as_str() {
        "SERIAL" | "SERIAL4" => Some("INTEGER"),
        "BIGSERIAL" | "SERIAL8" => Some("BIGINT"),
        "SMALLSERIAL" | "SERIAL2" => Some("SMALLINT"),
        _ => None,
    };
    let mut column = typed_column(catalog, name, serial.unwrap_or(declared))?;
    if serial.is_some() {
        column.identity = Some(Identity::Serial);
        column.not_null = true;
    }
    Ok(column)
}

/// A literal is kept as a value; anything else is computed for each row.
pub(super) fn set_default(
    words: &Words<'_>,
    column: &mut ColumnDef,
    expression: &Expression,
) -> Result<(), SqlError> {
    let (inner, tokens) = bare(expression);
    let word = expression.tokens.len() == 1;
    let (sql, ty) = words.typed(inner, tokens)?;
    let sql = assigned(words.with_sequences(&sql)?, ty, column.sql_type());
    (column.default, column.default_sql) = match value_of(&sql) {
        Some(value) => {
            let value = as_number_of(column, value);
            (Some(column.accept(value.clone()).unwrap_or(value)), None)
        }
        None => (None, Some(if word { sql } else { format!("({sql})") })),
    };
    Ok(())
}

/// A literal with a fraction is a decimal number, whose halves go away from zero.
fn as_number_of(column: &ColumnDef, value: Value) -> Value {
    match value {
        Value::Real(real) if column.kind == ColumnKind::Integer && column.sql_type() != SqlType::Bool => {
            Value::Real(real.round())
        }
        other => other,
    }
}

pub(super) fn set_identity(column: &mut ColumnDef, always: bool) -> Result<(), SqlError> {
    if column.kind != ColumnKind::Integer {
        let message = format!("identity column \"{}\" must be of an integer type", column.name);
        return Err(SqlError::new("22023", message));
    }
    column.identity = Some(if always { Identity::Always } else { Identity::ByDefault });
    column.not_null = true;
    Ok(())
}

/// Rows are told apart by what is written in them: of a type whose equal values may be written in several ways a key
/// would let two rows be that are one.
pub(super) fn check_unique(def: &TableDef, columns: &[usize]) -> Result<(), SqlError> {
    let types = columns.iter().filter_map(|&at| Some(def.columns.get(at)?.sql_type()));
    match types.into_iter().find(|ty| order::has_spellings(*ty)) {
        Some(ty) => {
            let error = SqlError::not_supported(format!("a unique key of type {}", ty.sql_name()));
            Err(error.with_hint("equal values may be written in several ways; make the key of another type"))
        }
        None => Ok(()),
    }
}

/// What the server makes of a row can be neither its key nor what memcached clients write; one column is numbered.
fn check_made_columns(def: &TableDef) -> Result<(), SqlError> {
    let bad = |message: String| Err(SqlError::new(state::BAD_DEFINITION, message));
    for (at, column) in def.columns.iter().enumerate() {
        let made = column.generated.is_some();
        if made && (column.default.is_some() || column.default_sql.is_some() || column.identity.is_some()) {
            return bad(format!("generated column \"{}\" cannot have a DEFAULT or an IDENTITY", column.name));
        }
        if made && def.is_key(at) {
            return bad(format!("generated column \"{}\" cannot be part of the primary key", column.name));
        }
        if made && def.options.value == Some(at) {
            return bad(format!(
                "generated column \"{}\" cannot be the value column of memcached clients",
                column.name
            ));
        }
    }
    if def.columns.iter().filter(|column| column.identity.is_some()).count() > 1 {
        return Err(SqlError::not_supported("a second identity column"));
    }
    Ok(())
}

/// Decimal numbers have an order of their own.
pub(super) fn refuse_collation(column: &ColumnDef) -> Result<(), SqlError> {
    if column.collation != Collation::Numeric {
        return Ok(());
    }
    Err(SqlError::new("42804", "collations are not supported by type numeric"))
}

/// A collation by its name.
pub(super) fn collation(name: &str) -> Result<Collation, SqlError> {
    Collation::of_name(name).ok_or_else(|| {
        SqlError::new(state::UNKNOWN_OBJECT, format!("collation \"{name}\" does not exist"))
            .with_hint("there are BINARY, NOCASE and RTRIM")
    })
}
