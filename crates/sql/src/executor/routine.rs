//! `CREATE FUNCTION` and `CREATE PROCEDURE`: the body is compiled here, so its mistakes are reported here. The names of
//! parameters become numbers.

use sqltext::definition::{CreateRoutine, Name, Parameter, ReturnType, RoutineBody};
use store::definition::{Returns, RoutineDef, RoutineParameter, RoutineStatement, SqlType, ViewColumn};

use super::Executor;
use super::named::{
    Known, all_qualified, greatest_number, number_of, replaced, with_numbers, with_numbers_in_rows,
};
use crate::define::routine::unknown;
use crate::define::typed_column;
use crate::error::{SqlError, state};
use crate::limits::{ROUTINE_PARAMETERS_MAX, ROUTINE_STATEMENTS_MAX};
use crate::prepared::Prepared;
use crate::text::call::Call;
use crate::text::kind::{StatementKind, kind_of};
use crate::text::split::split_statements;
use crate::text::token::{Token, Tokens, quoted_name, unquoted};

/// A statement of a body, with its plan if it is no call.
struct Bound {
    statement: RoutineStatement,
    prepared: Option<Prepared>,
    /// What a call of a function answers with.
    called: Option<Vec<ViewColumn>>,
}

impl Bound {
    /// The types of the rows that it gives; `None`: it gives none.
    fn types(&self) -> Option<Vec<u32>> {
        match (&self.prepared, &self.called) {
            (Some(prepared), _) => {
                let columns = prepared.plan().columns().unwrap_or_default();
                Some(columns.iter().map(|own| own.ty.oid()).collect())
            }
            (None, called) => called.as_ref().map(|columns| columns.iter().map(|own| own.ty).collect()),
        }
    }
}

impl Executor {
    /// What is kept of a function or procedure.
    pub(super) fn routine_of(&self, wanted: &CreateRoutine) -> Result<RoutineDef, SqlError> {
        let name = &wanted.name;
        if is_built_in(&name.text.to_ascii_lowercase()) {
            let message = format!("function \"{}\" is built in", name.text);
            return Err(SqlError::new(state::RESERVED_NAME, message));
        }
        let parameters = self.parameters(&wanted.parameters)?;
        let known = Known {
            function: own_name(name).to_owned(),
            names: inputs(&parameters).map(|own| own.name.clone()).collect(),
            types: inputs(&parameters).map(|own| SqlType::of_oid(own.ty)).collect(),
        };
        let texts = texts_of(&wanted.body);
        if texts.len() > ROUTINE_STATEMENTS_MAX {
            let message = format!("a body has at most {ROUTINE_STATEMENTS_MAX} statements");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        let mut bound = texts.iter().map(|sql| self.bound(sql, &known)).collect::<Result<Vec<_>, _>>()?;
        let returns = if wanted.function {
            Some(self.returns(
                wanted.returns.as_ref(),
                (own_name(name), &parameters),
                bound.last_mut(),
                &known,
            )?)
        } else {
            self.outputs_fit(&parameters, bound.last_mut(), &known)?;
            None
        };
        let needs = match wanted.body {
            RoutineBody::Text(_) => Vec::new(),
            _ => bound.iter().filter_map(|one| one.prepared.as_ref()).flat_map(Prepared::relations).collect(),
        };
        let written = match &wanted.body {
            RoutineBody::Text(text) => text.clone(),
            RoutineBody::Return(expression) => format!("RETURN {expression}"),
            RoutineBody::Atomic(statements) => {
                let lines: Vec<String> = statements.iter().map(|one| format!(" {one};\n")).collect();
                format!("BEGIN ATOMIC\n{}END", lines.concat())
            }
        };
        Ok(RoutineDef {
            id: 0,
            name: name.text.clone(),
            namespace: name.namespace.clone(),
            parameters,
            returns,
            strict: wanted.strict,
            definer: wanted.definer,
            path: wanted.path.clone(),
            body: bound.into_iter().map(|one| one.statement).collect(),
            written,
            text: matches!(wanted.body, RoutineBody::Text(_)),
            needs,
            access: store::definition::Access::default(),
        })
    }

    fn parameters(&self, wanted: &[Parameter]) -> Result<Vec<RoutineParameter>, SqlError> {
        if wanted.len() > ROUTINE_PARAMETERS_MAX {
            let message = format!("a function has at most {ROUTINE_PARAMETERS_MAX} parameters");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        let mut parameters: Vec<RoutineParameter> = Vec::new();
        for Parameter { name, mode, declared, default, .. } in wanted {
            if !name.is_empty() && parameters.iter().any(|own| own.name.eq_ignore_ascii_case(name)) {
                return Err(bad(format!("parameter name \"{name}\" used more than once")));
            }
            let last = inputs(&parameters).last();
            if mode.is_given() && default.is_none() && last.is_some_and(|last| last.default.is_some()) {
                return Err(bad("input parameters after one with a default value must also have defaults"));
            }
            let ty = self.type_of(declared)?.oid();
            if let Some(default) = default {
                self.check_default(default)?;
            }
            let (name, declared, default) = (name.clone(), declared.clone(), default.clone());
            parameters.push(RoutineParameter { name, mode: *mode, declared, ty, default });
        }
        Ok(parameters)
    }

    /// The type that is written so.
    fn type_of(&self, declared: &str) -> Result<SqlType, SqlError> {
        match typed_column(&self.core.catalog, "parameter", declared)?.sql_type() {
            SqlType::Unknown => {
                Err(SqlError::new(state::UNKNOWN_OBJECT, format!("type \"{declared}\" does not exist")))
            }
            ty => Ok(ty),
        }
    }

    /// Refuses a default that is none.
    fn check_default(&self, default: &str) -> Result<(), SqlError> {
        let prepared = self.prepare(StatementKind::Read, &format!("SELECT {default}"), &[], None);
        if prepared.map_err(unplaced)?.plan().head().0 > 0 {
            return Err(bad("a default cannot have parameters"));
        }
        Ok(())
    }

    /// A statement of a body. A name that no column has is that of a parameter.
    fn bound(&self, sql: &str, known: &Known) -> Result<Bound, SqlError> {
        let mut sql = sql.trim().to_owned();
        let kind = kind_of(&sql).map_err(unplaced)?;
        if Tokens::new(&sql).any(|token| unquoted(token.text).to_ascii_lowercase().contains("advisory_")) {
            // A statement that waits for a lock goes to sleep before it begins, which one of a body cannot.
            return Err(SqlError::not_supported("an advisory lock in a function or procedure"));
        }
        if let Some(call) = Call::of(&self.core.catalog, &sql)
            && (call.calls || self.core.catalog.routine(&call.name).is_some())
        {
            let Some(routine) = self.core.catalog.routine(&call.name) else {
                return Err(unknown("procedure", &call.name));
            };
            let called = routine.returns.as_ref().map(|returns| returns.columns.clone());
            let sql = with_numbers(&sql, known);
            let parameters = greatest_number(&sql);
            let statement = RoutineStatement { sql, parameters };
            return Ok(Bound { statement, prepared: None, called });
        }
        if !matches!(kind, StatementKind::Read | StatementKind::Write | StatementKind::Compound) {
            let word =
                Tokens::new(&sql).next().map(|token| token.text.to_ascii_uppercase()).unwrap_or_default();
            return Err(SqlError::not_supported(format!("{word} in a function or procedure")));
        }
        sql = with_numbers_in_rows(&sql, known);
        // Each round puts a number in the place of a name.
        for _ in 0..=Tokens::new(&sql).count() {
            match self.prepare(kind, &sql, &known.types, None) {
                Ok(prepared) => {
                    let parameters = prepared.plan().head().0;
                    if parameters > known.types.len() {
                        let message = format!("there is no parameter ${parameters}");
                        return Err(SqlError::new(state::UNKNOWN_PARAMETER, message));
                    }
                    let statement = RoutineStatement { sql, parameters };
                    return Ok(Bound { statement, prepared: Some(prepared), called: None });
                }
                Err(error) => match self.numbered(kind, &sql, &error, known) {
                    Some(next) => sql = next,
                    None => return Err(unplaced(error)),
                },
            }
        }
        Err(SqlError::new(state::INTERNAL, "the names of a body cannot be told"))
    }

    /// The statement with a number in the place of the name that an error is about, if a parameter has it. Where a
    /// column has it, too, only the place says which of both is meant.
    fn numbered(&self, kind: StatementKind, sql: &str, error: &SqlError, known: &Known) -> Option<String> {
        if error.state == state::UNKNOWN_COLUMN && known.is_meant_by(error) {
            // No column is called so, wherever it stands.
            return Some(all_qualified(sql, known)).filter(|numbered| numbered != sql);
        }
        let names = &known.names;
        let character = error.position.filter(|_| error.state == state::UNKNOWN_COLUMN)?.checked_sub(1)?;
        let start = sql.char_indices().nth(character)?.0;
        let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
        let at = tokens.iter().position(|token| token.start == start)?;
        let number = number_of(&tokens[at], names)?;
        let same = |token: &Token<'_>| number_of(token, names).filter(|own| *own == number);
        if !self.may_have_column(&tokens, &names[number]) {
            return Some(replaced(sql, &tokens, 0..tokens.len(), same));
        }
        (kind == StatementKind::Read).then(|| replaced(sql, &tokens, at..at + 1, same))
    }

    /// Whether a table or view that a statement names has this name or a column of it, or a query in it gives one.
    fn may_have_column(&self, tokens: &[Token<'_>], name: &str) -> bool {
        let catalog = &self.core.catalog;
        let has = |relation: &str| {
            let table = catalog.table(relation).is_some_and(|table| table.def().column_index(name).is_some());
            let view = catalog
                .view(relation)
                .is_some_and(|view| view.shape.iter().any(|column| column.name.eq_ignore_ascii_case(name)));
            table || view
        };
        let found = |token: &Token<'_>| {
            let relation = catalog.found_name(&unquoted(token.text), store::Catalog::has);
            let is_name = unquoted(token.text).eq_ignore_ascii_case(name);
            has(&relation) || is_name && catalog.has(&relation)
        };
        let schema_and_name = |pair: &[Token<'_>]| {
            let schema = catalog.name_in(&unquoted(pair[0].text), &unquoted(pair[2].text));
            pair[1].is_sign(".") && schema.is_some_and(|relation| has(&relation))
        };
        let given =
            |pair: &[Token<'_>]| pair[0].is("AS") && unquoted(pair[1].text).eq_ignore_ascii_case(name);
        tokens.iter().any(found) || tokens.windows(3).any(schema_and_name) || tokens.windows(2).any(given)
    }

    /// What a function returns. Where parameters are its result, what it says of that beside them must be the same.
    fn returns(
        &self,
        wanted: Option<&ReturnType>,
        (name, parameters): (&str, &[RoutineParameter]),
        last: Option<&mut Bound>,
        known: &Known,
    ) -> Result<Returns, SqlError> {
        let outputs = outputs(parameters);
        let (declared, set, columns) = match wanted {
            Some(ReturnType::Void) if outputs.is_empty() => {
                let (declared, ty) = ("void".to_owned(), SqlType::Void.oid());
                return Ok(Returns { declared, ty, set: false, columns: Vec::new() });
            }
            Some(ReturnType::Table(_)) if !outputs.is_empty() => {
                return Err(bad("OUT and INOUT arguments aren't allowed in TABLE functions"));
            }
            Some(wanted) if !outputs.is_empty() => {
                (self.of_outputs(wanted, &outputs)?, is_set(wanted), outputs)
            }
            None => (declared_of(&outputs), false, outputs),
            Some(ReturnType::One(declared)) => (declared.clone(), false, vec![self.column(name, declared)?]),
            Some(ReturnType::Set(declared)) => {
                (format!("SETOF {declared}"), true, vec![self.column(name, declared)?])
            }
            Some(ReturnType::Table(columns)) => {
                let all: Vec<String> =
                    columns.iter().map(|(name, declared)| format!("{} {declared}", quoted(name))).collect();
                let columns = columns.iter().map(|(name, declared)| self.column(name, declared));
                (format!("TABLE({})", all.join(", ")), true, columns.collect::<Result<_, _>>()?)
            }
            Some(ReturnType::Void | ReturnType::Record(_)) => {
                return Err(SqlError::not_supported("RETURNS record without OUT parameters")
                    .with_hint("write RETURNS TABLE (name type, ...)"));
            }
        };
        self.last_fits(&declared, &columns, last, known)?;
        let ty = if let [one] = &columns[..] { one.ty } else { SqlType::Unknown.oid() };
        Ok(Returns { declared, ty, set, columns })
    }

    fn column(&self, name: &str, declared: &str) -> Result<ViewColumn, SqlError> {
        let ty = self.type_of(declared)?.oid();
        Ok(ViewColumn { name: name.to_owned(), ty, declared: declared.to_owned() })
    }

    /// What a function says of its result whose parameters are that.
    fn of_outputs(&self, wanted: &ReturnType, outputs: &[ViewColumn]) -> Result<String, SqlError> {
        let fits = match (wanted, outputs) {
            (ReturnType::One(declared) | ReturnType::Set(declared), [one]) => {
                self.type_of(declared)?.oid() == one.ty
            }
            (ReturnType::Record(_), [_, _, ..]) => true,
            _ => false,
        };
        let declared = declared_of(outputs);
        if !fits {
            let message = format!("function result type must be {declared} because of OUT parameters");
            return Err(bad(message));
        }
        Ok(if is_set(wanted) { format!("SETOF {declared}") } else { declared })
    }

    /// What a procedure answers with must be what its last statement gives.
    fn outputs_fit(
        &self,
        parameters: &[RoutineParameter],
        last: Option<&mut Bound>,
        known: &Known,
    ) -> Result<(), SqlError> {
        let outputs = outputs(parameters);
        if outputs.is_empty() {
            return Ok(());
        }
        self.last_fits(&declared_of(&outputs), &outputs, last, known)
    }

    /// Whether the last statement gives these columns. One whose columns have other types is one that casts them.
    fn last_fits(
        &self,
        declared: &str,
        columns: &[ViewColumn],
        last: Option<&mut Bound>,
        known: &Known,
    ) -> Result<(), SqlError> {
        let mismatch = |detail: &str| {
            Err(bad(format!("return type mismatch in function declared to return {declared}"))
                .with_detail(detail))
        };
        let no_rows = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";
        let Some(last) = last else { return mismatch(no_rows) };
        let Some(own) = last.types() else { return mismatch(no_rows) };
        if own.len() != columns.len() {
            return mismatch(&format!("Final statement returns {} columns.", own.len()));
        }
        let agree = own.iter().zip(columns).all(|(own, column)| *own == column.ty);
        if !agree {
            let cast = cast(&last.statement.sql, columns);
            let reads = kind_of(&last.statement.sql)? == StatementKind::Read;
            let Some(cast) = Some(cast).filter(|_| reads) else {
                let names = |types: &mut dyn Iterator<Item = Option<SqlType>>| {
                    types.flatten().map(SqlType::sql_name).collect::<Vec<_>>().join(", ")
                };
                let given = names(&mut own.iter().map(|own| SqlType::of_oid(*own)));
                let asked = names(&mut columns.iter().map(|column| SqlType::of_oid(column.ty)));
                return mismatch(&format!("Final statement returns {given} instead of {asked}."));
            };
            let parameters = last.statement.parameters;
            let bound = self.bound(&cast, known)?;
            *last = Bound { statement: RoutineStatement { parameters, ..bound.statement }, ..bound };
        }
        Ok(())
    }
}

fn inputs(parameters: &[RoutineParameter]) -> impl Iterator<Item = &RoutineParameter> {
    parameters.iter().filter(|own| own.mode.is_given())
}

/// The columns that parameters make.
fn outputs(parameters: &[RoutineParameter]) -> Vec<ViewColumn> {
    let outputs = parameters.iter().filter(|own| own.mode.is_answered());
    outputs.enumerate().map(|(at, own)| own.column(at)).collect()
}

/// The type of a result with these columns.
fn declared_of(outputs: &[ViewColumn]) -> String {
    if let [one] = outputs { one.declared.clone() } else { "record".to_owned() }
}

fn is_set(wanted: &ReturnType) -> bool {
    matches!(wanted, ReturnType::Set(_) | ReturnType::Record(true))
}

/// Whether our own functions, and tables that are called like functions, have this name.
fn is_built_in(name: &str) -> bool {
    pgcatalog::function::returns(name).is_some()
        || pgcatalog::system::is_function(name)
        || pgcatalog::system::row_function(name).is_some()
}

/// A name in its schema.
fn own_name(name: &Name) -> &str {
    let schema = name.namespace.as_ref().map_or(0, |schema| schema.len() + 1);
    name.text.get(schema..).unwrap_or(&name.text)
}

/// A query whose columns have the types of these.
fn cast(sql: &str, columns: &[ViewColumn]) -> String {
    let list = |of: &dyn Fn(usize) -> String| (0..columns.len()).map(of).collect::<Vec<_>>().join(", ");
    let names = list(&|at| format!("column{}", at + 1));
    let items = list(&|at| {
        format!("CAST(column{} AS {}) AS {}", at + 1, columns[at].declared, quoted(&columns[at].name))
    });
    format!("SELECT {items} FROM ({}) AS sqlcached_result ({names})", sql.trim_end_matches(';'))
}

fn quoted(name: &str) -> String {
    quoted_name(name)
}

fn texts_of(body: &RoutineBody) -> Vec<String> {
    match body {
        RoutineBody::Text(text) => split_statements(text).map(|piece| piece.sql.to_owned()).collect(),
        RoutineBody::Return(expression) => vec![format!("SELECT {expression}")],
        RoutineBody::Atomic(statements) => statements.clone(),
    }
}

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(state::BAD_ROUTINE, message)
}

/// A place in a body is none in the statement.
fn unplaced(error: SqlError) -> SqlError {
    SqlError { position: None, ..error }
}
