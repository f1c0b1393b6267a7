//! Columns: names, types, and what is said of them.

use super::reader::Reader;
use super::{Column, ColumnRule, ColumnRuleKind, Expression, Name, Reference};
use crate::error::{SqlError, state};
use crate::token::{Kind, Token, unquoted};

/// Words that say something of a column, and so end its type and the expression of its `DEFAULT`.
const RULES: &[&str] = &[
    "NOT",
    "NULL",
    "CHECK",
    "UNIQUE",
    "PRIMARY",
    "REFERENCES",
    "COLLATE",
    "GENERATED",
    "CONSTRAINT",
    "DEFAULT",
    "AS",
    "DEFERRABLE",
    "INITIALLY",
];

impl Reader<'_, '_> {
    pub(super) fn column(&mut self) -> Result<Column, SqlError> {
        let name = self.name()?;
        let declared = self.declared()?;
        let mut rules = Vec::new();
        while let Some(rule) = self.column_rule()? {
            rules.push(rule);
        }
        Ok(Column { name, declared, rules })
    }

    /// A type, in one spelling: words with a blank between, `(10, 2)`, `[]`.
    pub(super) fn declared(&mut self) -> Result<String, SqlError> {
        self.declared_before(&[])
    }

    /// The same before one of these words.
    pub(super) fn declared_before(&mut self, ends: &[&str]) -> Result<String, SqlError> {
        let mut parts: Vec<String> = Vec::new();
        while let Some(token) = self.peek().copied().filter(|token| !token.is_any(ends)) {
            if token.is_sign("(") && !parts.is_empty() {
                parts.push(self.modifier()?);
            } else if self.array()? {
                if parts.last().is_none_or(|part| part != "[]") {
                    parts.push("[]".to_owned());
                }
            } else if matches!(token.kind, Kind::Word | Kind::Quoted) && self.names_type(&token) {
                parts.push(self.type_word(&token)?);
            } else {
                break;
            }
        }
        Ok(parts.join(" "))
    }

    /// A word of a type, which may have a schema.
    fn type_word(&mut self, token: &Token<'_>) -> Result<String, SqlError> {
        if self.peek_at(1).is_some_and(|next| next.is_sign(".")) {
            return self.object().map(|name| name.text);
        }
        self.skip();
        let name = Name { text: unquoted(token.text), namespace: None, place: token.start };
        Ok(self.found_type(name).text)
    }

    /// Whether this word belongs to a type. `WITH` and `WITHOUT` do before `TIME ZONE` only.
    fn names_type(&self, token: &Token<'_>) -> bool {
        match token {
            zone if zone.is_any(&["WITH", "WITHOUT"]) => self.peek_at(1).is_some_and(|next| next.is("TIME")),
            using if using.is("USING") => false,
            word => !word.is_any(RULES),
        }
    }

    /// `(10, 2)`
    fn modifier(&mut self) -> Result<String, SqlError> {
        let sizes = self.listed(|reader| {
            let sign = if reader.sign("-") { "-" } else { "" };
            let size = reader.peek().filter(|token| matches!(token.kind, Kind::Number | Kind::Word));
            let size =
                size.map(|token| format!("{sign}{}", token.text)).ok_or_else(|| reader.unexpected())?;
            reader.skip();
            Ok(size)
        })?;
        Ok(format!("({})", sizes.join(", ")))
    }

    /// `[]`, `[3]`, `ARRAY`, `ARRAY[3]`: of every length, as in PostgreSQL.
    fn array(&mut self) -> Result<bool, SqlError> {
        let bounds = |text: &str| {
            let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            inner.is_some_and(|inner| inner.trim().bytes().all(|byte| byte.is_ascii_digit()))
        };
        if self.peek().is_some_and(|token| token.kind == Kind::Quoted && bounds(token.text)) {
            self.skip();
            return Ok(true);
        }
        let named = self.word("ARRAY");
        if !self.sign("[") {
            return Ok(named);
        }
        if self.peek().is_some_and(|token| token.kind == Kind::Number) {
            self.skip();
        }
        self.expect_sign("]")?;
        Ok(true)
    }

    /// The next thing that is said of a column.
    fn column_rule(&mut self) -> Result<Option<ColumnRule>, SqlError> {
        let name = if self.word("CONSTRAINT") { Some(self.name()?.text) } else { None };
        match self.column_rule_kind()? {
            Some(kind) => Ok(Some(ColumnRule { name, kind })),
            None if name.is_some() => Err(self.unexpected()),
            None => Ok(None),
        }
    }

    fn column_rule_kind(&mut self) -> Result<Option<ColumnRuleKind>, SqlError> {
        if self.deferrable()? {
            return Ok(Some(ColumnRuleKind::Deferrable));
        }
        let Some(word) = self.any_word(RULES) else { return Ok(None) };
        Ok(Some(match word {
            "PRIMARY" => {
                self.expect_word("KEY")?;
                self.any_word(&["ASC", "DESC"]);
                self.conflict_clause()?;
                let place = self.place();
                ColumnRuleKind::PrimaryKey { autoincrement: self.word("AUTOINCREMENT").then_some(place) }
            }
            "NOT" => {
                self.expect_word("NULL")?;
                self.conflict_clause()?;
                self.words(&["NO", "INHERIT"]);
                ColumnRuleKind::NotNull
            }
            "NULL" => {
                self.conflict_clause()?;
                ColumnRuleKind::Null
            }
            "UNIQUE" => {
                self.nulls_distinct()?;
                self.conflict_clause()?;
                ColumnRuleKind::Unique
            }
            "DEFAULT" => ColumnRuleKind::Default(self.default_value()?),
            "CHECK" => {
                let check = self.parenthesized()?;
                self.words(&["NO", "INHERIT"]);
                ColumnRuleKind::Check(check)
            }
            "COLLATE" => ColumnRuleKind::Collate(self.collation()?),
            "REFERENCES" => ColumnRuleKind::References(self.reference()?),
            "GENERATED" => self.generated()?,
            "AS" => self.computed()?,
            _ => return Err(self.unexpected()),
        }))
    }

    /// The name of a collation.
    pub(super) fn collation(&mut self) -> Result<String, SqlError> {
        let name = self.name()?;
        if self.sign(".") { self.name().map(|name| name.text) } else { Ok(name.text) }
    }

    /// `ALWAYS` or `BY DEFAULT`
    pub(super) fn generated_always(&mut self) -> Result<bool, SqlError> {
        let always = !self.word("BY");
        self.expect_word(if always { "ALWAYS" } else { "DEFAULT" })?;
        Ok(always)
    }

    fn generated(&mut self) -> Result<ColumnRuleKind, SqlError> {
        let always = self.generated_always()?;
        self.expect_word("AS")?;
        if !self.word("IDENTITY") {
            return if always { self.computed() } else { Err(self.unexpected()) };
        }
        let start = self.identity_options()?;
        Ok(ColumnRuleKind::Identity { always, start })
    }

    /// The options of an identity column, up to the parenthesis. Its numbers rise by one and have no bounds of their
    /// own. Where they start can be said.
    pub(super) fn identity_options(&mut self) -> Result<i64, SqlError> {
        if !self.sign("(") {
            return Ok(1);
        }
        let place = self.place();
        let options = self.sequence_options()?;
        self.expect_sign(")")?;
        let start = options.start.unwrap_or(1);
        let plain = options.increment.is_none_or(|by| by == 1)
            && options.min.flatten().is_none_or(|min| min == 1)
            && options.max.flatten().is_none_or(|max| max > 0)
            && options.cycle != Some(true)
            && start > 0;
        if plain {
            return Ok(start);
        }
        Err(SqlError::not_supported("this option of IDENTITY")
            .with_hint("START WITH is; DEFAULT nextval('s') of a sequence has the others")
            .at(self.sql, place))
    }

    /// `(expression) [STORED | VIRTUAL]`
    fn computed(&mut self) -> Result<ColumnRuleKind, SqlError> {
        let expression = self.parenthesized()?;
        let stored = match self.any_word(&["STORED", "VIRTUAL"]) {
            Some(kind) => kind == "STORED",
            None => match self.peek().filter(|token| token.kind == Kind::Word && !token.is_any(RULES)) {
                Some(token) => {
                    let message = format!(
                        "a generated column is STORED or VIRTUAL, not {}",
                        token.text.to_ascii_uppercase()
                    );
                    return Err(SqlError::new(state::SYNTAX, message).at(self.sql, token.start));
                }
                None => false,
            },
        };
        Ok(ColumnRuleKind::Generated { expression, stored })
    }

    /// The expression of a `DEFAULT`. What is said next of the column is no part of it.
    pub(super) fn default_value(&mut self) -> Result<Expression, SqlError> {
        if self.at_any(RULES) && !self.at_word("NULL") {
            return Err(self.unexpected());
        }
        let end = self.extent(RULES);
        self.expression_to(end)
    }

    /// Where an expression ends that is followed by a comma, the end, or one of these words.
    fn extent(&self, after: &[&str]) -> usize {
        let mut depth = 0_usize;
        let first = self.number();
        let mut end = first;
        while let Some(token) = self.peek_at(end - first) {
            let closes = token.is_sign(")") || token.is_sign("]") || token.is("END");
            let ends = token.is_sign(",") || token.is_sign(";") || closes || token.is_any(after);
            if depth == 0 && ends && (end > first || token.kind == Kind::Sign) {
                break;
            }
            depth += usize::from(token.is_sign("(") || token.is_sign("[") || token.is("CASE"));
            depth -= usize::from(closes && depth > 0);
            end += 1;
        }
        end
    }

    /// Constraints of a table have no clause of their own for what breaks them.
    pub(super) fn conflict_clause(&mut self) -> Result<(), SqlError> {
        let place = self.place();
        if !self.words(&["ON", "CONFLICT"]) || self.word("ABORT") {
            return Ok(());
        }
        match self.any_word(&["ROLLBACK", "FAIL", "IGNORE", "REPLACE"]) {
            Some(_) => Err(SqlError::not_supported("ON CONFLICT in a definition")
                .with_hint("write it in the INSERT")
                .at(self.sql, place)),
            None => Err(self.unexpected()),
        }
    }

    /// `NULLS DISTINCT`, which is so anyway.
    pub(super) fn nulls_distinct(&mut self) -> Result<(), SqlError> {
        let place = self.place();
        if self.words(&["NULLS", "NOT", "DISTINCT"]) {
            return Err(SqlError::not_supported("NULLS NOT DISTINCT").at(self.sql, place));
        }
        self.words(&["NULLS", "DISTINCT"]);
        Ok(())
    }

    /// `table [(columns)] [MATCH word] [ON DELETE action] [ON UPDATE action] [DEFERRABLE]`
    pub(super) fn reference(&mut self) -> Result<Reference, SqlError> {
        let table = self.object()?;
        let columns = self.names()?;
        let mut reference = Reference {
            table,
            columns,
            on_delete: String::new(),
            on_update: String::new(),
            deferrable: false,
        };
        loop {
            if self.word("MATCH") {
                self.name()?;
            } else if self.words(&["ON", "DELETE"]) {
                reference.on_delete = self.action()?;
            } else if self.words(&["ON", "UPDATE"]) {
                reference.on_update = self.action()?;
            } else if self.deferrable()? {
                reference.deferrable = true;
            } else {
                return Ok(reference);
            }
        }
    }

    fn action(&mut self) -> Result<String, SqlError> {
        for (words, action) in [
            (&["NO", "ACTION"][..], "NO ACTION"),
            (&["RESTRICT"], "RESTRICT"),
            (&["CASCADE"], "CASCADE"),
            (&["SET", "NULL"], "SET NULL"),
            (&["SET", "DEFAULT"], "SET DEFAULT"),
        ] {
            if self.words(words) {
                if action.starts_with("SET") {
                    self.names()?;
                }
                return Ok(action.to_owned());
            }
        }
        Err(self.unexpected())
    }

    /// `[NOT] DEFERRABLE`, `INITIALLY DEFERRED`, `INITIALLY IMMEDIATE`
    pub(super) fn deferrable(&mut self) -> Result<bool, SqlError> {
        if self.words(&["NOT", "DEFERRABLE"]) || self.word("DEFERRABLE") {
            return Ok(true);
        }
        if !self.word("INITIALLY") {
            return Ok(false);
        }
        match self.any_word(&["DEFERRED", "IMMEDIATE"]) {
            Some(_) => Ok(true),
            None => Err(self.unexpected()),
        }
    }
}
