//! `ALTER TABLE ... ALTER COLUMN`: defaults, NULL, types.

use sqlite3_parser::ast::{OneSelect, ResultColumn, Stmt};
use store::definition::{CheckDef, ColumnDef, Generated, NAME_BYTES_MAX, TableDef};

use super::depend::reader_of;
use super::{Change, rest_of_change};
use crate::compute::check_definition;
use crate::define::table::set_default;
use crate::error::{SqlError, state};
use crate::text::parse::with_tree;
use crate::text::storage::Reader;
use crate::text::token::{Tokens, quoted_name};

impl Change<'_> {
    /// `ALTER [COLUMN] name ...`
    pub(super) fn column(&self, name: &str, reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
        let def = self.def()?;
        let at = def.column_index(name).ok_or_else(|| SqlError::unknown_column(&def.name, name))?;
        if reader.keyword("TYPE").is_ok() {
            return self.change_type(&def, at, rest_of_change(reader));
        }
        let set = reader.keyword("SET").is_ok();
        if !set {
            reader.keyword("DROP")?;
        }
        if reader.keyword("DEFAULT").is_ok() {
            let text = set.then(|| rest_of_change(reader));
            return self.change_default(&def, at, text);
        }
        if set && reader.keyword("DATA").is_ok() {
            reader.keyword("TYPE")?;
            return self.change_type(&def, at, rest_of_change(reader));
        }
        reader.keyword("NOT")?;
        reader.keyword("NULL")?;
        self.change_not_null(&def, at, set)
    }

    fn change_default(&self, def: &TableDef, at: usize, text: Option<&str>) -> Result<(), SqlError> {
        let mut column = def.columns[at].clone();
        (column.default, column.default_sql) = (None, None);
        if let Some(text) = text {
            parse_default(&mut column, text)?;
        }
        let mut whole = def.clone();
        whole.columns[at] = column.clone();
        whole.validate()?;
        check_definition(&whole)?;
        self.alter(|def| {
            if let Some(own) = def.columns.get_mut(at) {
                own.default.clone_from(&column.default);
                own.default_sql.clone_from(&column.default_sql);
            }
            Ok(())
        })
    }

    fn change_not_null(&self, def: &TableDef, at: usize, set: bool) -> Result<(), SqlError> {
        let column = &def.columns[at];
        if column.not_null == set {
            return Ok(());
        }
        if !set && (def.is_key(at) || column.identity.is_some()) {
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
    fn change_type(&self, def: &TableDef, at: usize, text: &str) -> Result<(), SqlError> {
        let using = Tokens::new(text).find(|token| token.is("USING"));
        let declared = using.map_or(text, |using| &text[..using.start]).trim();
        let old = &def.columns[at];
        let plain = ColumnDef::new(&old.name, declared)?;
        let mut finished =
            ColumnDef { declared: plain.declared.clone(), kind: plain.kind, absent: None, ..old.clone() };
        if let Some(default) = finished.default.take() {
            finished.default = Some(finished.accept(default)?);
        }
        refuse_type_change(def, at)?;
        let own = || quoted_name(&old.name);
        let sql = using.map_or_else(own, |using| text[using.end()..].trim().to_owned());
        // It never has another name for anybody: it is pending until it takes the column's place.
        let name: String = format!("{} #", old.name).chars().take(NAME_BYTES_MAX / 4).collect();
        let made = ColumnDef { name, generated: Some(Generated { sql, stored: true }), ..plain };
        let mut whole = def.clone();
        whole.columns.push(made.clone());
        check_definition(&whole)?;
        self.core.store.replace_column(&self.table, &old.name, made, finished)?;
        Ok(())
    }
}

fn parse_default(column: &mut ColumnDef, text: &str) -> Result<(), SqlError> {
    let expected = || SqlError::new(state::SYNTAX, "an expression was expected");
    with_tree(&format!("SELECT {text}"), |tree| {
        let Stmt::Select(select) = tree else { return Err(expected()) };
        let OneSelect::Select { columns: [ResultColumn::Expr(expression, None)], from: None, .. } =
            &select.body.select
        else {
            return Err(expected());
        };
        set_default(column, expression);
        Ok(())
    })
    .map_err(|error| SqlError { position: None, ..error })
}

fn refuse_type_change(def: &TableDef, at: usize) -> Result<(), SqlError> {
    let column = &def.columns[at];
    let index = || def.indexes.iter().find(|index| index.reads().any(|read| read == at));
    let why = if def.is_key(at) || def.options.value == Some(at) {
        "which is the key or the value column of memcached clients".to_owned()
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
