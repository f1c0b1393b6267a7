//! Users' functions that a statement calls, with their bodies in SQLite's words.

use std::cell::Cell;
use std::sync::Arc;

use store::Catalog;
use store::definition::{RoutineDef, RoutineParameter, SqlType};

use super::limits::{INLINED_BYTES_MAX, INLINED_DEPTH_MAX, INLINED_MAX};
use super::lowered::Lowered;
use super::{Purpose, Translated, refuse_own_names, walked};
use sqltext::error::{SqlError, state};
use sqltext::token::{Kind, Token, tokens, unquoted};

/// Built-in functions that change something, though they stand in a `SELECT`.
const CHANGING: &[&str] = &["nextval", "setval", "set_config", "pg_notify"];

/// How far the bodies of functions stand within one another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within<'w> {
    depth: usize,
    /// How many more may be looked at for the whole statement.
    left: &'w Cell<usize>,
}

impl<'w> Within<'w> {
    /// A statement that stands in no other.
    pub(super) fn new(left: &'w Cell<usize>) -> Self {
        left.set(INLINED_MAX);
        Self { depth: 0, left }
    }
}

/// A user's function or procedure that a statement calls.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) def: Arc<RoutineDef>,
    pub(super) body: Result<Body, SqlError>,
}

/// What a call of it reads.
#[derive(Debug)]
pub(super) struct Body {
    /// In SQLite's words, with numbers for arguments.
    pub(super) sql: String,
    /// Of each column, whether its values are the texts of decimal numbers.
    pub(super) decimals: Vec<bool>,
    /// What stands where a call gives nothing, in SQLite's words.
    pub(super) defaults: Vec<Option<String>>,
    pub(super) reads: Vec<String>,
    /// The functions that it calls, by their names in the store.
    pub(super) calls: Vec<String>,
}

impl Own {
    pub(super) fn of(catalog: &Catalog, def: &Arc<RoutineDef>, within: Within<'_>) -> Self {
        let body = Body::of(catalog, def, within);
        Self { def: Arc::clone(def), body }
    }

    /// Whether a call gives rows.
    pub(super) fn is_set(&self) -> bool {
        self.def.returns.as_ref().is_some_and(|returns| returns.set)
    }
}

impl Body {
    fn of(catalog: &Catalog, def: &RoutineDef, within: Within<'_>) -> Result<Self, SqlError> {
        if !def.is_of_caller() {
            return Err(whole_only(def, "It has SECURITY DEFINER or a search_path of its own."));
        }
        let deep = within.depth >= INLINED_DEPTH_MAX || within.left.get() == 0;
        within.left.set(within.left.get().saturating_sub(1));
        if deep {
            let message = format!("functions call one another more than {INLINED_DEPTH_MAX} deep");
            return Err(SqlError::new(state::TOO_COMPLEX, message)
                .with_hint("a function that calls itself cannot stand within a larger statement"));
        }
        let within = Within { depth: within.depth + 1, ..within };
        let types: Vec<Option<SqlType>> = def.inputs().map(|own| SqlType::of_oid(own.ty)).collect();
        let (mut reads, mut calls) = (Vec::new(), vec![def.name.clone()]);
        let mut last = None;
        for statement in &def.body {
            let types = &types[..statement.parameters.min(types.len())];
            let read = read_of(catalog, def, &statement.sql, types, within)?;
            add_new(&mut reads, &read.reads);
            add_new(&mut calls, &read.calls);
            last = Some(read);
        }
        let default = |own: &RoutineParameter| {
            let Some(default) = &own.default else { return Ok(None) };
            let sql = format!("SELECT CAST({default} AS {})", own.declared);
            read_of(catalog, def, &sql, &[], within).map(Some)
        };
        let mut defaults = Vec::new();
        for own in def.inputs() {
            let read = default(own)?;
            if let Some(read) = &read {
                add_new(&mut reads, &read.reads);
                add_new(&mut calls, &read.calls);
            }
            defaults.push(read.map(|read| format!("({})", read.sql)));
        }
        let decimals = last.as_ref().map(|last| last.items.iter().map(super::Item::is_decimal).collect());
        let sql = shaped(def, last.map(|last| last.sql), types.len());
        if sql.len() > INLINED_BYTES_MAX {
            let message = format!("a function within a statement takes more than {INLINED_BYTES_MAX} bytes");
            return Err(SqlError::new(state::TOO_COMPLEX, message));
        }
        Ok(Self { sql, decimals: decimals.unwrap_or_default(), defaults, reads, calls })
    }
}

pub(super) fn add_new(known: &mut Vec<String>, more: &[String]) {
    for name in more {
        if !known.contains(name) {
            known.push(name.clone());
        }
    }
}

/// The error for a function that can only be called as a whole statement.
fn whole_only(def: &RoutineDef, why: &str) -> SqlError {
    SqlError::not_supported(format!("function {} within a larger statement", def.name))
        .with_detail(why)
        .with_hint("call it as a whole statement")
}

/// A statement of a body in SQLite's words.
fn read_of(
    catalog: &Catalog,
    def: &RoutineDef,
    sql: &str,
    types: &[Option<SqlType>],
    within: Within<'_>,
) -> Result<Translated, SqlError> {
    let unplaced = |error: SqlError| SqlError { position: None, ..error };
    let refused = || whole_only(def, "It does more than read.");
    let tree = sqltext::parse(sql).map_err(|_| refused())?;
    refuse_own_names(sql, &tree.tokens).map_err(unplaced)?;
    let changes = |pair: &[Token<'_>]| {
        pair[1].is_sign("(") && CHANGING.contains(&unquoted(pair[0].text).to_ascii_lowercase().as_str())
    };
    if tokens(sql).windows(2).any(changes) {
        return Err(refused());
    }
    let walked = walked(catalog, (sql, &tree.tokens), &tree, types, Purpose::Body(within));
    match walked.map_err(unplaced)? {
        Some(read) if matches!(read.lowered, Lowered::Read(_)) => Ok(read),
        _ => Err(refused()),
    }
}

/// The query of a call: a function that returns no set gives one row, whatever its body found.
fn shaped(def: &RoutineDef, body: Option<String>, arguments: usize) -> String {
    let Some(returns) = &def.returns else { return String::new() };
    let Some(body) = body.filter(|_| !returns.columns.is_empty()) else { return "SELECT NULL".to_owned() };
    let body = body.trim().trim_end_matches(';').to_owned();
    let given = (1..=arguments).map(|number| format!("?{number} IS NOT NULL")).collect::<Vec<_>>();
    let given = Some(given.join(" AND ")).filter(|given| def.strict && !given.is_empty());
    match (&returns.columns[..], given) {
        (_, None) if returns.set => body,
        (_, Some(given)) if returns.set => format!("SELECT * FROM ({body}) WHERE {given}"),
        ([_], None) => format!("SELECT ({body})"),
        ([_], Some(given)) => format!("SELECT CASE WHEN {given} THEN ({body}) END"),
        (_, given) => {
            let given = given.as_deref().unwrap_or("1");
            format!("SELECT r.* FROM (SELECT 1) LEFT JOIN (SELECT * FROM ({body}) LIMIT 1) AS r ON {given}")
        }
    }
}

/// The user's function or procedure that is called at the first of these tokens, and where its name stands.
pub(super) fn called<'c>(catalog: &'c Catalog, tokens: &[Token<'_>]) -> Option<&'c Arc<RoutineDef>> {
    let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted);
    let is = |catalog: &Catalog, name: &str| catalog.routine(name).is_some();
    match tokens {
        [name, open, ..] if is_name(name) && open.is_sign("(") => {
            let name = unquoted(name.text);
            catalog.routine(&catalog.found_name(&name, is))
        }
        [schema, point, name, open, ..]
            if is_name(schema) && point.is_sign(".") && is_name(name) && open.is_sign("(") =>
        {
            catalog.routine(&catalog.name_in(&unquoted(schema.text), &unquoted(name.text))?)
        }
        _ => None,
    }
}
