//! Types by their names, and conversions to them.

use sqltext::ast::Expr;
use sqltext::token::sql_literal;
use sqltext::token::{Kind, Token};
use store::definition::{SqlType, qualified};
use store::scalar::{self, moment, simple};
use store::value::Value;

use super::out::{Form, Out, call};
use super::{Step, Stop, Translator, moments, numeric, objects, texts, types};
use sqltext::error::{SqlError, state};
use sqltext::token::unquoted;

/// A type as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypeName {
    pub(super) ty: SqlType,
    /// What stood in parentheses.
    modifiers: Vec<i64>,
    /// Whether SQLite's own `CAST` knows it.
    plain: bool,
}

impl TypeName {
    /// A type of which nothing else is said.
    pub(super) fn bare(ty: SqlType) -> Self {
        Self { ty, modifiers: Vec::new(), plain: false }
    }
}

/// Texts that mean another moment each time.
pub fn needs_clock(text: &str) -> bool {
    let text = pgcatalog::function::bare_word(text);
    ["now", "today", "tomorrow", "yesterday"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Names of `CHAR(n)` that mean `CHAR(1)` where no length is said.
const OF_ONE_CHARACTER: &[&str] = &["CHAR", "CHARACTER", "NCHAR"];

/// A literal of fewer digits is no number that a float cannot hold.
const FLOAT_DIGITS: usize = 300;

/// Types whose names mean something to SQLite's `CAST`: it converts what it can and never fails.
const PLAIN: &[&str] = &[
    "INT",
    "INTEGER",
    "BIGINT",
    "SMALLINT",
    "REAL",
    "FLOAT",
    "DOUBLE PRECISION",
    "DOUBLE",
    "TEXT",
    "VARCHAR",
    "CHARACTER VARYING",
    "BLOB",
    "NUMERIC",
    "DECIMAL",
    "INT8",
    "INT4",
    "INT2",
    "FLOAT8",
];

impl<'a> Translator<'a, '_> {
    /// A type's name, with what belongs to it.
    pub(super) fn type_name(&mut self) -> Step<TypeName> {
        if let Some(own) = self.type_in_schema() {
            let (ty, word) = own?;
            let modifiers = self.modifiers();
            return self.with_brackets(ty, modifiers, false, word);
        }
        self.pass_schema();
        let first = self.take();
        let Some(word) = first.filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) else {
            return Err(self.error_at(first, state::SYNTAX, "a type was expected"));
        };
        let mut name = unquoted(word.text).to_ascii_uppercase();
        if word.kind == Kind::Quoted && name == "CHAR" {
            // The one-byte type of the catalogue, which only quotes tell from the other.
            return self.with_brackets(SqlType::Char, Vec::new(), false, word);
        }
        for (behind, then) in [("DOUBLE", "PRECISION"), ("CHARACTER", "VARYING"), ("CHAR", "VARYING")] {
            if name == behind && self.take_word(then) {
                name = format!("{name} {then}");
            }
        }
        let mut modifiers = self.modifiers();
        if let Some(ty) = self.names.enumeration(&name) {
            return self.with_brackets(ty, modifiers, false, word);
        }
        if name == "TIMESTAMP" || name == "TIME" {
            if self.take_words(&["WITH", "TIME", "ZONE"]) {
                name.push_str("TZ");
            } else {
                self.take_words(&["WITHOUT", "TIME", "ZONE"]);
            }
        }
        if modifiers.is_empty() && OF_ONE_CHARACTER.contains(&name.as_str()) {
            modifiers.push(1);
        }
        let ty = SqlType::of_declared(&name).or_else(|| catalogue_type(&name));
        let Some(ty) = ty else {
            let message = format!("type \"{}\" does not exist", name.to_lowercase());
            return Err(self.error_at(Some(word), state::UNKNOWN_OBJECT, message));
        };
        let plain = PLAIN.contains(&name.as_str()) && modifiers.is_empty() && ty != SqlType::Bpchar;
        self.with_brackets(ty, modifiers, plain, word)
    }

    /// An enum type of a schema of users, whose name is next; `None`: what is next has no such schema.
    fn type_in_schema(&mut self) -> Option<Step<(SqlType, Token<'a>)>> {
        let (schema, word) = (self.peek()?, self.peek_at(2)?);
        // What is in `public` has no schema's name before its own, and may not be looked for there.
        if self.next_is_sign(1, ".") && unquoted(schema.text).eq_ignore_ascii_case("public") {
            let ty = self.names.enumeration_named(&unquoted(word.text))?;
            self.at += 3;
            return Some(Ok((ty, word)));
        }
        let namespace = self.names.namespace(&schema).filter(|_| self.next_is_sign(1, "."))?;
        let name = qualified(Some(namespace), &unquoted(word.text));
        self.at += 3;
        let found = self.names.enumeration_named(&name);
        Some(found.map(|ty| (ty, word)).ok_or_else(|| {
            self.error_at(Some(schema), state::UNKNOWN_OBJECT, format!("type \"{name}\" does not exist"))
        }))
    }

    fn with_brackets(
        &mut self,
        ty: SqlType,
        modifiers: Vec<i64>,
        plain: bool,
        word: Token<'a>,
    ) -> Step<TypeName> {
        let mut array = self.take_word("ARRAY");
        while self.take_sign("[") {
            array = true;
            if self.peek().is_some_and(|token| token.kind == Kind::Number) {
                self.at += 1;
            }
            if !self.take_sign("]") {
                return Err(self.error_at(self.peek(), state::SYNTAX, "] was expected"));
            }
        }
        if !array {
            return Ok(TypeName { ty, modifiers, plain });
        }
        self.check_element(Some(ty), Some(word))?;
        match ty.array() {
            Some(ty) => Ok(TypeName { ty, modifiers, plain: false }),
            None => Err(self.error_at(
                Some(word),
                state::UNKNOWN_OBJECT,
                format!("there are no arrays of {}", ty.sql_name()),
            )),
        }
    }

    /// `(10, 2)`
    fn modifiers(&mut self) -> Vec<i64> {
        let mut found = Vec::new();
        let begin = self.at;
        if !self.take_sign("(") {
            return found;
        }
        while let Some(number) = self.take() {
            match number.text.parse() {
                Ok(number) => found.push(number),
                Err(_) => break,
            }
            if !self.take_sign(",") {
                break;
            }
        }
        if !self.take_sign(")") {
            self.at = begin;
            found.clear();
        }
        found
    }

    /// `out::type`
    pub(super) fn cast(&mut self, out: Out<'a>, to: &TypeName) -> Step<Out<'a>> {
        let ty = to.ty;
        let label = out.label.clone().filter(|label| label != "?column?" && !out.named_by_cast);
        let named_by_cast = label.is_none();
        let own = self.names.enum_of(ty).map(|own| own.own_name().to_owned());
        let label = label.or(own).unwrap_or_else(|| ty.name().trim_matches('"').to_owned());
        if ty == SqlType::Numeric {
            return Ok(self.cast_numeric(out, to)?.named(&label, named_by_cast));
        }
        let mut cast = match &*out.form {
            Form::Parameter(number) if declares(ty) && self.parameters.declare(*number, ty) => {
                let number = *number;
                let out = out.typed(ty).formed(Form::Parameter(number));
                return Ok(shortened(out, to).named(&label, named_by_cast));
            }
            Form::Literal(text) => {
                let text = text.clone();
                self.cast_literal(out, &text, ty)?
            }
            // Its error says that it is out of range.
            Form::Number(text)
                if matches!(ty, SqlType::Float4 | SqlType::Float8) && numeric::is_beyond_floats(text) =>
            {
                let text = text.clone();
                self.cast_literal(out, &text, ty)?
            }
            Form::Array(parts) if ty.is_array() => {
                let mut parts = parts.clone();
                for part in &mut parts {
                    self.suggest(part, ty.scalar())?;
                    if part.ty.is_some() {
                        *part = converted(std::mem::take(part), ty.scalar());
                    }
                }
                super::arrays::array_of(parts, out.start())
            }
            _ if ty.enumeration().is_some() && out.ty != Some(ty) => self.of_enum(out, ty),
            _ => converted(out, ty),
        };
        cast.label = None;
        Ok(shortened(cast.typed(ty), to).named(&label, named_by_cast))
    }

    /// A value as one of an enum type, or of arrays of it. In a definition it stays a text, which the column checks:
    /// the type's labels may be others when it is computed.
    fn of_enum(&self, out: Out<'a>, ty: SqlType) -> Out<'a> {
        if self.defines {
            return out.of_type(Some(ty));
        }
        out.wrapped("enum_in(", &format!(", {})", ty.oid())).typed(ty)
    }

    /// The value that a literal of a type stands for.
    pub(super) fn value_of(&self, ty: SqlType, text: &str, from: usize) -> Step<Value> {
        let value = Value::from(text);
        let accepted = match self.names.enum_of(ty) {
            Some(own) if ty.is_array() => own.accept_array(value),
            Some(own) => own.accept(value),
            None if ty == SqlType::Bytea => simple::bytes_of_literal(text),
            None => scalar::accept(ty, value),
        };
        accepted.map_err(|refusal| Stop::Error(SqlError::from(refusal).at(self.sql, self.skip_blank(from))))
    }

    /// `out::numeric(precision, scale)`
    fn cast_numeric(&mut self, out: Out<'a>, to: &TypeName) -> Step<Out<'a>> {
        let mut out = out;
        match &*out.form {
            Form::Parameter(number) => {
                let number = *number;
                self.parameters.declare(number, SqlType::Numeric);
            }
            Form::Literal(text) => {
                self.value_of(SqlType::Numeric, text, out.start())?;
            }
            _ => {}
        }
        out = numeric::exact(super::structures::as_value(out));
        let exact = match to.modifiers[..] {
            [precision] => out.wrapped("numeric_fit(", &format!(", {precision}, 0)")),
            [precision, scale] => out.wrapped("numeric_fit(", &format!(", {precision}, {scale})")),
            _ => call("numeric_of", [out]),
        };
        Ok(numeric::settled(exact))
    }

    fn cast_literal(&self, out: Out<'a>, text: &str, ty: SqlType) -> Step<Out<'a>> {
        if (types::is_moment(Some(ty)) && needs_clock(text)) || !is_stored(ty) {
            return Ok(converted(out, ty));
        }
        let from = out.start();
        let value = self.value_of(ty, text, from)?;
        Ok(Out::made(sql_literal(&value), from))
    }

    /// `CAST(out AS type)`
    pub(super) fn cast_call(&mut self, inner: &Expr) -> Step<Out<'a>> {
        let word = self.keyword("CAST")?;
        self.sign("(")?;
        let mut inner = self.expression(inner)?;
        self.keyword("AS")?;
        self.pass_schema();
        let name = self.at;
        let to = self.type_name()?;
        let end = self.at;
        self.sign(")")?;
        // A value of no type is any value of SQLite's, and its casts take what they can of it.
        let untyped = inner.ty.is_none() && matches!(*inner.form, Form::Computed) && !inner.is_literal();
        // A text of a row that memcached's clients write is any text, and a generated column must not refuse it.
        let of_row = self.of_row && inner.ty.is_some_and(types::is_text);
        let untyped = untyped || of_row;
        let texts = types::is_text(to.ty) || to.ty == SqlType::Bytea;
        // Of a number it is the same float, with an affinity.
        let floats = matches!(to.ty, SqlType::Float4 | SqlType::Float8)
            && super::structures::is_number(inner.ty)
            && !numeric::is_exact(&inner)
            && inner.text().len() < FLOAT_DIGITS;
        if !to.plain || !(texts || floats || (untyped && to.ty != SqlType::Numeric)) {
            if matches!(*inner.form, Form::Computed) {
                // What binds less tightly than a call must not fall apart where the call's parentheses go.
                let (ty, label, by_cast) = (inner.ty, inner.label.take(), inner.named_by_cast);
                inner = inner.wrapped("(", ")").of_type(ty);
                (inner.label, inner.named_by_cast) = (label, by_cast);
            }
            return self.cast(inner, &to);
        }
        self.suggest(&mut inner, to.ty)?;
        // SQLite's integers have 64 bits whatever their type is called.
        let ty = if types::is_integer(to.ty) { SqlType::Int8 } else { to.ty };
        let own = inner.label.clone().filter(|label| label != "?column?" && !inner.named_by_cast);
        let inner = match (types::is_text(to.ty), inner.ty) {
            (true, Some(SqlType::Bytea)) => call("cast_text", [inner]),
            (true, _) => numeric::shown(texts::float(inner)),
            (false, _) => inner,
        };
        let mut out = Out::made("CAST(", word.start);
        out.push(inner);
        out.push_str(" AS");
        for at in name..end {
            out.push(self.copied(self.tokens[at]));
        }
        out.push_str(")");
        let label = own.clone().unwrap_or_else(|| to.ty.name().to_owned());
        Ok(out.typed(ty).named(&label, own.is_none()))
    }
}

/// Types of the catalogue, which no column is declared with.
fn catalogue_type(name: &str) -> Option<SqlType> {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "regprocedure" => return Some(SqlType::Regproc),
        // Nothing has such a name here: what is left of them is a number.
        "regoper" | "regoperator" | "regconfig" | "regdictionary" | "regcollation" => {
            return Some(SqlType::Oid);
        }
        _ => {}
    }
    let own = SqlType::all().find(|ty| ty.name() == lower);
    own.or_else(|| {
        lower.strip_prefix('_').and_then(|name| SqlType::all().find(|ty| ty.name() == name)?.array())
    })
}

/// Types whose values are stored in a form that [`scalar::accept`] knows.
fn is_stored(ty: SqlType) -> bool {
    !matches!(
        ty.scalar(),
        SqlType::Regclass | SqlType::Regtype | SqlType::Regproc | SqlType::Regrole | SqlType::Regnamespace
    )
}

/// Whether a cast of a bare parameter only tells its type.
fn declares(ty: SqlType) -> bool {
    is_stored(ty)
}

/// A value converted by the function of the type.
fn converted(out: Out<'_>, ty: SqlType) -> Out<'_> {
    match ty {
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name
            if matches!(out.ty, Some(SqlType::Bool | SqlType::Jsonb)) || texts::is_written(out.ty) =>
        {
            numeric::shown(out)
        }
        _ if out.ty == SqlType::Timestamptz.array() && types::is_text(ty.scalar()) && ty.is_array() => {
            texts::zoned(out)
        }
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name
            if matches!(out.ty, Some(SqlType::Float4 | SqlType::Float8)) && !numeric::is_exact(&out) =>
        {
            texts::float(out)
        }
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar
            if numeric::is_exact(&out) || numeric::is_literal(&out) =>
        {
            numeric::written(out)
        }
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Oid if numeric::has_fraction(&out) => {
            call(&types::cast_name(ty), [numeric::rounded(out)])
        }
        SqlType::Float4 | SqlType::Float8 if numeric::is_exact(&out) => {
            call(&types::cast_name(ty), [numeric::exact(out)])
        }
        _ if out.ty == Some(ty) => out,
        SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regproc => objects::numbered(out, ty),
        SqlType::Oid | SqlType::Int4 | SqlType::Int8 if out.ty == Some(SqlType::Regproc) => {
            call("regproc_oid", [out])
        }
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name if objects::is_number(out.ty) => {
            objects::named(out)
        }
        _ => moments::converted(out, ty),
    }
}

/// The length of `VARCHAR(n)` is kept by a cast, and the digits of `TIMESTAMP(n)`.
fn shortened<'a>(out: Out<'a>, to: &TypeName) -> Out<'a> {
    let text = matches!(to.ty, SqlType::Varchar | SqlType::Bpchar);
    match to.modifiers[..] {
        [digits] if moment::has_digits(to.ty) => {
            out.wrapped("moment_round(", &format!(", {digits})")).typed(to.ty)
        }
        [length] if text => out.wrapped("substr(", &format!(", 1, {length})")).typed(to.ty),
        _ => out,
    }
}
