//! Functions and procedures.

use store::definition::ParameterMode;

use super::reader::Reader;
use super::role::role;
use super::{
    AlterRoutine, CreateRoutine, DropRoutine, Name, Parameter, ReturnType, RoutineBody, RoutineChange,
};
use crate::error::{SqlError, state};
use crate::token::{Kind, text_of, unquoted};

/// Words that say something of a function, and so end the type that it returns.
const CLAUSES: &[&str] = &[
    "LANGUAGE",
    "AS",
    "RETURN",
    "BEGIN",
    "STRICT",
    "IMMUTABLE",
    "STABLE",
    "VOLATILE",
    "SECURITY",
    "EXTERNAL",
    "CALLED",
    "RETURNS",
    "COST",
    "ROWS",
    "PARALLEL",
    "LEAKPROOF",
    "NOT",
    "SET",
    "SUPPORT",
    "WINDOW",
    "TRANSFORM",
];

/// Which way the value of a parameter goes.
const MODES: &[&str] = &["IN", "OUT", "INOUT", "VARIADIC"];

/// Second words of types that have several, so the first is no name of a parameter.
const SECOND_WORDS: &[&str] = &["PRECISION", "VARYING", "WITH", "WITHOUT"];

impl Reader<'_, '_> {
    /// What stands behind `CREATE FUNCTION` and `CREATE PROCEDURE`.
    pub(super) fn create_routine(
        &mut self,
        replace: bool,
        function: bool,
    ) -> Result<CreateRoutine, SqlError> {
        let name = self.new_object()?;
        self.expect_sign("(")?;
        let parameters = if self.at_sign(")") { Vec::new() } else { self.list(Self::parameter)? };
        self.expect_sign(")")?;
        let returns = if function && self.word("RETURNS") { Some(self.return_type()?) } else { None };
        if function && returns.is_none() && !parameters.iter().any(|own| own.mode.is_answered()) {
            return Err(bad("function result type must be specified"));
        }
        let (mut strict, mut language, mut body) = (false, false, None);
        let (mut definer, mut path) = (false, None);
        while let Some(token) = self.peek().filter(|token| !token.is_sign(";")) {
            let place = token.start;
            let clause = self.any_word(CLAUSES).ok_or_else(|| self.unexpected())?;
            let refuse = |what: &str| Err(SqlError::not_supported(what).at(self.sql, place));
            match clause {
                "LANGUAGE" => {
                    self.language()?;
                    language = true;
                }
                "STRICT" => strict = true,
                "RETURNS" => {
                    self.expect_words(&["NULL", "ON", "NULL", "INPUT"])?;
                    strict = true;
                }
                "CALLED" => self.expect_words(&["ON", "NULL", "INPUT"])?,
                "IMMUTABLE" | "STABLE" | "VOLATILE" | "LEAKPROOF" | "NOT" => {}
                "COST" | "ROWS" | "PARALLEL" => self.skip(),
                "EXTERNAL" | "SECURITY" => {
                    self.word("SECURITY");
                    definer = self.security()?;
                }
                "SET" => path = Some(self.search_path()?),
                "AS" => body = Some(RoutineBody::Text(self.text()?)),
                "RETURN" => {
                    let tokens = self.expression()?.tokens;
                    body = Some(RoutineBody::Return(self.written(tokens)));
                }
                "BEGIN" => {
                    self.expect_word("ATOMIC")?;
                    body = Some(self.atomic()?);
                }
                what => return refuse(&format!("{what} of a function or procedure")),
            }
        }
        let body = body.ok_or_else(|| bad("no function body specified"))?;
        if !language && matches!(body, RoutineBody::Text(_)) {
            return Err(bad("no language specified"));
        }
        Ok(CreateRoutine { replace, name, parameters, function, returns, strict, definer, path, body })
    }

    /// What stands behind `SECURITY`: whether it is the definer's.
    fn security(&mut self) -> Result<bool, SqlError> {
        let word = self.any_word(&["DEFINER", "INVOKER"]).ok_or_else(|| self.unexpected())?;
        Ok(word == "DEFINER")
    }

    /// What stands behind `SET`: the one setting that a function can have.
    fn search_path(&mut self) -> Result<Vec<String>, SqlError> {
        let place = self.place();
        let name = self.name()?.text;
        if !name.eq_ignore_ascii_case("search_path") {
            let error = SqlError::not_supported(format!("SET {name} of a function or procedure"));
            return Err(error.with_hint("search_path can be set").at(self.sql, place));
        }
        if !self.word("TO") {
            self.expect_sign("=")?;
        }
        let names = self.list(|reader| {
            let Some(token) = reader.peek() else { return Err(reader.unexpected()) };
            let name = match token.kind {
                Kind::Text => text_of(token),
                Kind::Word | Kind::Quoted => Some(unquoted(token.text)),
                _ => None,
            };
            let name = name.ok_or_else(|| reader.unexpected())?;
            if name == "$user" {
                let error = SqlError::not_supported("\"$user\" in the search_path of a function");
                return Err(error.with_hint("name the schema").at(reader.sql, token.start));
            }
            reader.skip();
            Ok(name)
        })?;
        // Temporary tables, of which there are none, and what is built in, which is always found.
        Ok(names.into_iter().filter(|name| name != "pg_temp" && name != "pg_catalog").collect())
    }

    fn expect_words(&mut self, words: &[&str]) -> Result<(), SqlError> {
        if self.words(words) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn language(&mut self) -> Result<(), SqlError> {
        let Some(token) = self.peek() else { return Err(self.unexpected()) };
        let named = if token.kind == Kind::Text { text_of(token) } else { Some(unquoted(token.text)) };
        let named = named.unwrap_or_default();
        if !named.eq_ignore_ascii_case("sql") {
            let error = SqlError::not_supported(format!("LANGUAGE {named}"));
            return Err(error.with_hint("LANGUAGE sql is available").at(self.sql, token.start));
        }
        self.skip();
        Ok(())
    }

    fn parameter(&mut self) -> Result<Parameter, SqlError> {
        let place = self.place();
        let mode = self.mode()?;
        let is_named = self.peek_at(1).is_some_and(|next| {
            matches!(next.kind, Kind::Word | Kind::Quoted)
                && !next.is("DEFAULT")
                && !next.is_any(SECOND_WORDS)
                && !next.text.starts_with('[')
        });
        let mode = match mode {
            // PostgreSQL takes the word behind the name, too.
            None if is_named && self.peek_at(1).is_some_and(|next| next.is_any(MODES)) => {
                let name = self.any_name()?;
                let mode = self.mode()?.unwrap_or_default();
                return self.parameter_named(name, mode, place);
            }
            mode => mode.unwrap_or_default(),
        };
        let name = if is_named { self.any_name()? } else { String::new() };
        self.parameter_named(name, mode, place)
    }

    /// `IN`, `OUT`, `INOUT`, `IN OUT`; `None`: nothing is said.
    fn mode(&mut self) -> Result<Option<ParameterMode>, SqlError> {
        let place = self.place();
        Ok(match self.any_word(MODES) {
            None => None,
            Some("IN") if self.word("OUT") => Some(ParameterMode::InOut),
            Some("IN") => Some(ParameterMode::In),
            Some("OUT") => Some(ParameterMode::Out),
            Some("INOUT") => Some(ParameterMode::InOut),
            Some(mode) => {
                return Err(SqlError::not_supported(format!("{mode} parameters")).at(self.sql, place));
            }
        })
    }

    /// What stands behind the name of a parameter.
    fn parameter_named(
        &mut self,
        name: String,
        mode: ParameterMode,
        place: usize,
    ) -> Result<Parameter, SqlError> {
        let declared = self.declared()?;
        if declared.is_empty() {
            return Err(self.unexpected());
        }
        let default = if self.word("DEFAULT") || self.sign("=") { Some(self.expression()?) } else { None };
        let default = default.map(|part| self.written(part.tokens));
        if default.is_some() && !mode.is_given() {
            return Err(bad("only input parameters can have default values"));
        }
        Ok(Parameter { name, mode, declared, default, place })
    }

    fn return_type(&mut self) -> Result<ReturnType, SqlError> {
        if self.word("TABLE") {
            return self
                .listed(|reader| Ok((reader.name()?.text, reader.declared()?)))
                .map(ReturnType::Table);
        }
        let set = self.word("SETOF");
        let declared = self.declared_before(CLAUSES)?;
        Ok(match declared.as_str() {
            "" => return Err(self.unexpected()),
            void if void.eq_ignore_ascii_case("void") && !set => ReturnType::Void,
            record if record.eq_ignore_ascii_case("record") => ReturnType::Record(set),
            _ if set => ReturnType::Set(declared),
            _ => ReturnType::One(declared),
        })
    }

    /// What stands behind `BEGIN ATOMIC`, with its `END`.
    fn atomic(&mut self) -> Result<RoutineBody, SqlError> {
        let mut statements = Vec::new();
        loop {
            let is_end = |next: Option<&crate::token::Token<'_>>| next.is_none_or(|next| next.is_sign(";"));
            if self.at_word("END") && is_end(self.peek_at(1)) {
                self.skip();
                return Ok(RoutineBody::Atomic(statements));
            }
            let first = self.number();
            while self.peek().is_some_and(|token| !token.is_sign(";")) {
                self.skip();
            }
            let statement = self.written(first..self.number());
            self.expect_sign(";")?;
            statements.push(statement);
        }
    }

    /// What stands behind `DROP FUNCTION`, `DROP PROCEDURE` and `DROP ROUTINE`.
    pub(super) fn drop_routine(&mut self, word: &'static str) -> Result<DropRoutine, SqlError> {
        let if_exists = self.if_exists()?;
        let names = self.list(|reader| {
            let name = reader.routine()?;
            reader.pass_over_parentheses();
            Ok(name)
        })?;
        self.any_word(&["CASCADE", "RESTRICT"]);
        Ok(DropRoutine { word, if_exists, names })
    }

    /// What stands behind `ALTER FUNCTION`, `ALTER PROCEDURE` and `ALTER ROUTINE`.
    pub(super) fn alter_routine(&mut self, word: &'static str) -> Result<AlterRoutine, SqlError> {
        let name = self.routine()?;
        self.pass_over_parentheses();
        let change = if self.words(&["RENAME", "TO"]) {
            RoutineChange::Rename(self.name()?)
        } else if self.words(&["OWNER", "TO"]) {
            RoutineChange::Owner(role(self)?)
        } else if self.word("EXTERNAL") || self.at_word("SECURITY") {
            self.expect_word("SECURITY")?;
            RoutineChange::Definer(self.security()?)
        } else if self.word("SET") {
            RoutineChange::Path(Some(self.search_path()?))
        } else if self.words(&["RESET", "search_path"]) || self.words(&["RESET", "ALL"]) {
            RoutineChange::Path(None)
        } else if self.any_word(&["IMMUTABLE", "STABLE", "VOLATILE", "LEAKPROOF"]).is_some() {
            RoutineChange::Nothing
        } else {
            let place = self.place();
            let what = format!("ALTER {word} other than RENAME TO, OWNER TO, SECURITY and SET search_path");
            let error = SqlError::not_supported(what);
            return Err(error.with_hint("use CREATE OR REPLACE").at(self.sql, place));
        };
        Ok(AlterRoutine { word, name, change })
    }

    /// The name of a function or procedure that is there, or that is to be looked for.
    pub(crate) fn routine(&mut self) -> Result<Name, SqlError> {
        let name = self.name()?;
        if self.sign(".") { self.object_of(&name) } else { Ok(self.found_routine(name)) }
    }

    /// Passes over the types of arguments: there is one routine of a name.
    fn pass_over_parentheses(&mut self) {
        let mut open = 0;
        while let Some(token) = self.peek() {
            open += i32::from(token.is_sign("(")) - i32::from(token.is_sign(")"));
            if open == 0 && !token.is_sign(")") {
                return;
            }
            self.skip();
        }
    }
}

fn bad(message: &str) -> SqlError {
    SqlError::new(state::BAD_ROUTINE, message)
}
