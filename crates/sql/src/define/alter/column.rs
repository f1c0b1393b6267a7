//! `ALTER TABLE ... ALTER COLUMN`: defaults, NULL, types.

use pgcatalog::sequence::name_of_numbers;
use sqltext::ast::Expr;
use sqltext::definition::{ColumnChange, Expression};
use store::definition::{
    CheckDef, ColumnDef, ColumnKind, Generated, Identity, NAME_BYTES_MAX, Place, SequenceDef, SqlType,
    TableDef,
};

use super::Change;
use super::depend::reader_of;
use crate::compute::check_definition;
use crate::define::table::{collation, set_default, set_identity};
use crate::define::{Undo, typed_column};
use crate::error::{SqlError, state};
use crate::text::token::quoted_name;

impl Change<'_> {
    /// `ALTER [COLUMN] name ...`
    pub(super) fn column(&mut self, name: &str, wanted: &ColumnChange) -> Result<(), SqlError> {
        let def = self.def()?;
        let at = def.column_index(name).ok_or_else(|| SqlError::unknown_column(def.own_name(), name))?;
        match wanted {
            ColumnChange::Type { declared, collation: wanted, using } => {
                if let Some(wanted) = wanted
                    && collation(wanted)? != def.columns[at].collation
                {
                    return Err(SqlError::not_supported("a new collation of a column")
                        .with_hint("an index may have a collation of its own"));
                }
                self.change_type(&def, at, declared, using.as_ref())
            }
            ColumnChange::SetDefault(expression) => self.change_default(&def, at, Some(expression)),
            ColumnChange::DropDefault => self.change_default(&def, at, None),
            ColumnChange::NotNull(set) => self.change_not_null(&def, at, *set),
            ColumnChange::AddIdentity { always, start } => self.add_identity(&def, at, *always, *start),
            ColumnChange::SetIdentity(always) => self.change_identity(&def, at, |_| Some(identity(*always))),
            ColumnChange::DropIdentity(true) if def.columns[at].identity.is_none() => Ok(()),
            ColumnChange::DropIdentity(_) => self.change_identity(&def, at, |_| None),
            ColumnChange::Restart(number) => self.restart(&def, at, *number),
        }
    }

    fn change_default(
        &mut self,
        def: &TableDef,
        at: usize,
        expression: Option<&Expression>,
    ) -> Result<(), SqlError> {
        let mut column = def.columns[at].clone();
        let serial = column.identity == Some(Identity::Serial);
        if serial {
            column.identity = None;
        }
        (column.default, column.default_sql) = (None, None);
        if let Some(expression) = expression {
            set_default(self.words, &mut column, expression)?;
        }
        let mut whole = def.clone();
        whole.columns[at] = column.clone();
        whole.validate()?;
        check_definition(&whole)?;
        self.alter(|def| {
            if let Some(own) = def.columns.get_mut(at) {
                own.identity = column.identity;
                own.default.clone_from(&column.default);
                own.default_sql.clone_from(&column.default_sql);
            }
            Ok(())
        })?;
        if serial { self.keep_sequence(def, at) } else { Ok(()) }
    }

    /// The sequence of a `SERIAL` column that takes no more numbers of it is one of its own, as in PostgreSQL: it goes
    /// with the column, or by `DROP SEQUENCE`.
    fn keep_sequence(&mut self, before: &TableDef, at: usize) -> Result<(), SqlError> {
        let Some(own) = name_of_numbers(before) else { return Ok(()) };
        let catalog = self.core.store.catalog();
        let last = catalog.table(&self.table).and_then(|table| table.last_number());
        let start = before.numbers_from.max(1);
        let place = last.map_or(Place { last: start, called: false }, |last| Place { last, called: true });
        let bits = match before.columns[at].sql_type() {
            SqlType::Int2 => 16,
            SqlType::Int4 => 32,
            _ => 64,
        };
        let name = before.qualified(&own);
        let mut sequence = SequenceDef {
            id: 0,
            name: name.clone(),
            namespace: before.namespace.clone(),
            bits,
            start,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cache: 1,
            cycle: false,
            owner: Some((before.id, before.columns[at].name.clone())),
            access: before.numbers_access(),
            place,
        };
        sequence.max = sequence.bounds().1;
        self.core.store.create_sequence(sequence)?;
        self.undo.push(Undo::Sequence(name));
        Ok(())
    }

    /// `ADD GENERATED ... AS IDENTITY`
    fn add_identity(&self, def: &TableDef, at: usize, always: bool, start: i64) -> Result<(), SqlError> {
        let column = &def.columns[at];
        let refused = |state, message: String| Err(SqlError::new(state, message));
        if !column.not_null {
            let message =
                format!("column \"{}\" must be declared NOT NULL before identity can be added", column.name);
            return refused(state::NOT_IN_STATE, message);
        }
        if column.identity.is_some() || column.has_default() {
            let message = format!("column \"{}\" already has an identity or a default value", column.name);
            return refused(state::NOT_IN_STATE, message);
        }
        if def.identity().is_some() {
            return Err(SqlError::not_supported("a second identity column"));
        }
        let mut numbered = column.clone();
        set_identity(&mut numbered, always)?;
        self.alter(|def| {
            def.columns[at].identity = numbered.identity;
            def.numbers_from = if start > 1 { start } else { 0 };
            Ok(())
        })?;
        self.restart(&self.def()?, at, Some(start))
    }

    fn change_identity(
        &self,
        def: &TableDef,
        at: usize,
        change: impl Fn(Identity) -> Option<Identity>,
    ) -> Result<(), SqlError> {
        let Some(known) = def.columns[at].identity.filter(|known| *known != Identity::Serial) else {
            return Err(not_identity(def, at));
        };
        self.alter(|def| {
            def.columns[at].identity = change(known);
            Ok(())
        })
    }

    /// `RESTART [WITH number]`
    fn restart(&self, def: &TableDef, at: usize, number: Option<i64>) -> Result<(), SqlError> {
        if def.columns[at].identity.is_none() {
            return Err(not_identity(def, at));
        }
        let catalog = self.core.store.catalog();
        let table = catalog.table(&self.table).ok_or_else(|| SqlError::unknown_table(&self.table))?;
        Ok(self.core.store.set_number(table, number.unwrap_or_else(|| def.numbers_from.max(1)))?)
    }

    pub(super) fn change_not_null(&self, def: &TableDef, at: usize, set: bool) -> Result<(), SqlError> {
        let column = &def.columns[at];
        if column.not_null == set {
            return Ok(());
        }
        let added = def.added_key().is_some_and(|key| key.columns.contains(&at));
        if !set && (def.is_key(at) || added || column.identity.is_some()) {
            let message = format!("column \"{}\" is never NULL: it is a key or numbered", column.name);
            return Err(SqlError::new(state::BAD_DEFINITION, message));
        }
        if !set {
            return self.alter(|def| {
                def.columns[at].not_null = false;
                Ok(())
            });
        }
        let check = CheckDef {
            name: format!("{}_not_null", column.name),
            sql: format!("{} IS NOT NULL", quoted_name(&column.name)),
            not_null: Some(column.name.clone()),
        };
        self.core.store.add_check(&self.table, &check)?;
        Ok(())
    }

    /// `TYPE type [USING expression]`: every row gets the converted value, while others read and write.
    fn change_type(
        &mut self,
        def: &TableDef,
        at: usize,
        declared: &str,
        using: Option<&Expression>,
    ) -> Result<(), SqlError> {
        let old = &def.columns[at];
        let plain = typed_column(&self.core.catalog, &old.name, declared)?;
        let using = using.filter(|using| !is_cast_of(&using.node, &old.name, declared));
        if using.is_none() && changes_nothing(old, &plain) {
            return self.alter(|def| {
                def.columns[at] = of_type(def.columns[at].clone(), &plain);
                Ok(())
            });
        }
        let mut finished = ColumnDef { absent: None, ..of_type(old.clone(), &plain) };
        if let Some(default) = finished.default.take() {
            finished.default = Some(finished.accept(default)?);
        }
        refuse_type_change(def, at)?;
        let (sql, from) = match using {
            Some(using) => self.words.typed(&using.node, using.tokens.clone())?,
            None => (quoted_name(&old.name), Some(old.sql_type())),
        };
        let sql = dialect::definition::stored(sql, from, plain.sql_type());
        self.replace(def, plain, finished, sql)
    }

    /// Gives every row the value of an expression in a column of another definition.
    fn replace(
        &mut self,
        def: &TableDef,
        plain: ColumnDef,
        finished: ColumnDef,
        sql: String,
    ) -> Result<(), SqlError> {
        // It never has another name for anybody: it is pending until it takes the column's place.
        let old = finished.name.clone();
        let name: String = format!("{old} #").chars().take(NAME_BYTES_MAX / 4).collect();
        let made = ColumnDef { name, generated: Some(Generated { sql, stored: true }), ..plain };
        let mut whole = def.clone();
        whole.columns.push(made.clone());
        check_definition(&whole)?;
        self.core.store.replace_column(&self.table, &old, made, finished)?;
        self.rewritten = true;
        Ok(())
    }

    /// The column takes no more numbers of the sequence that `SERIAL` gave it.
    pub(super) fn drop_serial(&mut self, column: &str) -> Result<(), SqlError> {
        let def = self.def()?;
        match def.column_index(column) {
            Some(at) => self.change_default(&def, at, None),
            None => Ok(()),
        }
    }

    /// Gives every row another value in a column, which an expression of it makes.
    pub(super) fn convert(&mut self, column: &str, sql: &str) -> Result<(), SqlError> {
        let def = self.def()?;
        let Some(at) = def.column_index(column) else { return Ok(()) };
        let finished = ColumnDef { absent: None, ..def.columns[at].clone() };
        let plain = of_type(ColumnDef::new(column, "TEXT")?, &finished);
        self.replace(&def, plain, finished, sql.to_owned())
    }
}

/// A column with the type of another. The order of an enum type and that of decimal numbers go with it.
fn of_type(column: ColumnDef, other: &ColumnDef) -> ColumnDef {
    let orders = |column: &ColumnDef| column.enumeration.is_some() || column.kind == ColumnKind::Numeric;
    let ordered = orders(&column) || orders(other);
    ColumnDef {
        declared: other.declared.clone(),
        kind: other.kind,
        collation: if ordered { other.collation } else { column.collation },
        enumeration: other.enumeration.clone(),
        ..column
    }
}

/// Whether every value of a column is one of the other type as it is: texts have no longest length here, and a wider
/// integer takes the others.
fn changes_nothing(old: &ColumnDef, new: &ColumnDef) -> bool {
    use SqlType::{Bpchar, Int2, Int4, Int8, Text, Varchar};
    let (from, to) = (old.sql_type(), new.sql_type());
    let either = |types: &[SqlType]| types.contains(&from) && types.contains(&to);
    let rank = |ty| [Int2, Int4, Int8].iter().position(|known| *known == ty);
    let widened = rank(from).zip(rank(to)).is_some_and(|(from, to)| from <= to);
    let same = from == to && from != SqlType::Numeric;
    let of_label = matches!(from, SqlType::Enum(_)) && [Text, Varchar, Bpchar].contains(&to);
    old.kind == new.kind && (either(&[Text, Varchar, Bpchar]) || widened || same || of_label)
}

/// Whether an expression is the column itself, or its cast to this type, as migration tools write it.
fn is_cast_of(expression: &Expr, column: &str, declared: &str) -> bool {
    match expression {
        Expr::Identifier(name) => name.value.eq_ignore_ascii_case(column),
        Expr::Nested(inner) => is_cast_of(inner, column, declared),
        Expr::Cast { expr, data_type, .. } => {
            let letters = |text: &str| -> String {
                text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase()
            };
            letters(&data_type.to_string()) == letters(declared)
                && matches!(&**expr, Expr::Identifier(name) if name.value.eq_ignore_ascii_case(column))
        }
        _ => false,
    }
}

pub(in crate::define) fn refuse_type_change(def: &TableDef, at: usize) -> Result<(), SqlError> {
    let column = &def.columns[at];
    let index = || def.indexes.iter().find(|index| index.reads().any(|read| read == at));
    let why = if def.is_key(at) || def.options.value == Some(at) {
        "which is the key or the value column of memcached clients".to_owned()
    } else if def.options.tags == Some(at) {
        "which is the tags column of memcached clients".to_owned()
    } else if column.generated.is_some() || column.identity.is_some() {
        "which the server computes".to_owned()
    } else if let Some(index) = index() {
        format!("which index \"{}\" has; drop that first", index.name)
    } else if let Some(what) = reader_of(def, at) {
        format!("which {what} reads")
    } else {
        return Ok(());
    };
    let what = format!("a new type for column \"{}\", {why},", column.name);
    Err(SqlError::not_supported(what).with_hint("create a new column or a new table"))
}

fn identity(always: bool) -> Identity {
    if always { Identity::Always } else { Identity::ByDefault }
}

fn not_identity(def: &TableDef, at: usize) -> SqlError {
    let (column, table) = (&def.columns[at].name, def.own_name());
    let message = format!("column \"{column}\" of relation \"{table}\" is not an identity column");
    SqlError::new(state::NOT_IN_STATE, message)
}
