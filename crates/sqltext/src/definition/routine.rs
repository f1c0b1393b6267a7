//! Functions and procedures.

use super::reader::Reader;
use super::{CreateRoutine, DropRoutine, Name, Parameter, ReturnType, RoutineBody};
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
        if function && returns.is_none() {
            return Err(bad("function result type must be specified"));
        }
        let (mut strict, mut language, mut body) = (false, false, None);
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
                    if !self.word("INVOKER") {
                        return Err(SqlError::not_supported("SECURITY DEFINER")
                            .with_hint("grant the privileges to the roles that call it"));
                    }
                }
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
        Ok(CreateRoutine { replace, name, parameters, returns, strict, body })
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
        if let Some(mode) = self.any_word(&["OUT", "INOUT", "VARIADIC"]) {
            return Err(SqlError::not_supported(format!("{mode} parameters")).at(self.sql, place));
        }
        self.word("IN");
        let is_named = self.peek_at(1).is_some_and(|next| {
            matches!(next.kind, Kind::Word | Kind::Quoted)
                && !next.is("DEFAULT")
                && !next.is_any(SECOND_WORDS)
                && !next.text.starts_with('[')
        });
        let name = if is_named { self.any_name()? } else { String::new() };
        let place = self.place();
        let declared = self.declared()?;
        if declared.is_empty() {
            return Err(self.unexpected());
        }
        let default = if self.word("DEFAULT") || self.sign("=") { Some(self.expression()?) } else { None };
        let default = default.map(|part| self.written(part.tokens));
        Ok(Parameter { name, declared, default, place })
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
