//! The tree that the source makes of a statement, and those of the views that it reads and of its tables' policies.
//!
//! The statement becomes the body of a temporary function, in a transaction that is rolled back. PostgreSQL keeps
//! such a
//! body as a parse tree (`pg_proc.prosqlbody`) with the parameters in it, and lets two columns have one name, which a
//! view does not. Nothing is planned and nothing is executed.

use std::collections::{BTreeMap, BTreeSet};

use crate::node::{self, Node};
use crate::statement::single;
use crate::uses::Uses;
use crate::verdict::{Catalogue, Failure, Refusal, Stop};

/// Views within each other, and beside each other, that a statement may read.
const VIEWS_MAX: usize = 100;

/// The versions whose trees are known here, as `server_version_num` tells them.
const VERSIONS: std::ops::Range<u32> = 140_000..180_000;

/// SQLSTATE of what a role may not do, and of what a standby cannot do.
const NOT_ALLOWED: &str = "42501";
const READ_ONLY: &str = "25006";

/// The classes of SQLSTATE that say nothing of the statement: connection, resources, intervention, internal.
const PASSING: &[&str] = &["08", "53", "57", "58", "XX", "40"];

/// A statement's tree with those of its views and policies.
#[derive(Debug)]
pub(crate) struct Trees {
    pub(crate) statement: Node,
    /// By the view's OID.
    pub(crate) views: BTreeMap<u32, Node>,
    /// By their table's OID: the conditions of its row security for reading.
    pub(crate) policies: BTreeMap<u32, Vec<Node>>,
    /// Whether texts of this session are UTF-8, in the client as in the database.
    pub(crate) is_utf8: bool,
}

/// Makes the statement the body of a function, with these types of parameters, and reads its tree. From here on the
/// transaction finds the names of PostgreSQL's catalogue alone.
pub(crate) fn of_statement(source: &mut dyn Catalogue, sql: &str, types: &[u32]) -> Result<Trees, Stop> {
    let types = type_names(source, types)?;
    // A number known beforehand stands first: its bytes tell the byte order. The line ends for a comment's sake.
    let body = format!(
        "CREATE FUNCTION pg_temp.sqlcached_inspected({}) RETURNS SETOF pg_catalog.record LANGUAGE sql \
         BEGIN ATOMIC SELECT 1;\n{}\n; END",
        types.join(", "),
        single(sql)
    );
    source.query(&body).map_err(why_not)?;
    source.query("SET LOCAL search_path = pg_catalog")?;
    let rows = source.query(
        "SELECT prosqlbody, current_setting('server_version_num'), current_setting('client_encoding'), \
         getdatabaseencoding(), current_setting('standard_conforming_strings') FROM pg_proc \
         WHERE proname = 'sqlcached_inspected' AND pronamespace = pg_my_temp_schema()",
    )?;
    let Some([Some(text), Some(version), Some(client), Some(database), Some(conforming)]) =
        rows.first().map(Vec::as_slice)
    else {
        return Err(unreadable().into());
    };
    if !version.parse().is_ok_and(|version| VERSIONS.contains(&version)) {
        return Err(Refusal::new("the trees of this version of PostgreSQL are not known here").into());
    }
    if conforming != "on" {
        let cure = "SET standard_conforming_strings = on";
        return Err(Refusal::new("standard_conforming_strings is off").with_cure(cure).into());
    }
    let statement = statement_of(text)?;
    let is_utf8 = client == "UTF8" && database == "UTF8";
    Ok(Trees { statement, views: BTreeMap::new(), policies: BTreeMap::new(), is_utf8 })
}

/// Adds the trees of the views that the statement reads, and of the policies of its tables, also through each other,
/// and all that these use.
pub(crate) fn add_relations(
    source: &mut dyn Catalogue,
    trees: &mut Trees,
    uses: &mut Uses,
) -> Result<(), Stop> {
    let mut seen = BTreeSet::new();
    loop {
        let new: Vec<u32> = uses.relations.difference(&seen).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        add_views(source, &new, trees, uses)?;
        add_policies(source, &new, trees, uses)?;
        if trees.views.len() > VIEWS_MAX {
            return Err(Refusal::new(format!("it reads more than {VIEWS_MAX} views")).into());
        }
        seen.extend(new);
    }
}

fn add_views(
    source: &mut dyn Catalogue,
    relations: &[u32],
    trees: &mut Trees,
    uses: &mut Uses,
) -> Result<(), Stop> {
    let rows = source.query(&format!(
        "SELECT c.oid, r.ev_action FROM pg_class c JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1' \
         WHERE c.relkind = 'v' AND c.oid = ANY ({})",
        oids(relations)
    ))?;
    for row in &rows {
        let (oid, action) = tree_of(row)?;
        let tree = action.items().first().cloned().ok_or_else(unreadable)?;
        uses.add(&tree)?;
        trees.views.insert(oid, tree);
    }
    Ok(())
}

/// Those of every role: to whom one applies may change, and the tables that it reads are the same.
fn add_policies(
    source: &mut dyn Catalogue,
    relations: &[u32],
    trees: &mut Trees,
    uses: &mut Uses,
) -> Result<(), Stop> {
    let rows = source.query(&format!(
        "SELECT polrelid, polqual FROM pg_policy JOIN pg_class c ON c.oid = polrelid \
         WHERE relrowsecurity AND polcmd IN ('r', '*') AND polqual IS NOT NULL AND c.oid = ANY ({})",
        oids(relations)
    ))?;
    for row in &rows {
        let (oid, condition) = tree_of(row)?;
        uses.add(&condition)?;
        trees.policies.entry(oid).or_default().push(condition);
    }
    Ok(())
}

/// A relation's OID and a tree.
fn tree_of(row: &[Option<String>]) -> Result<(u32, Node), Refusal> {
    let [Some(oid), Some(tree)] = row else { return Err(unreadable()) };
    Ok((oid.parse().map_err(|_| unreadable())?, node::read(tree).ok_or_else(unreadable)?))
}

/// OIDs as an array of SQL.
pub(crate) fn oids<'a>(oids: impl IntoIterator<Item = &'a u32>) -> String {
    let all: Vec<String> = oids.into_iter().map(u32::to_string).collect();
    format!("'{{{}}}'::oid[]", all.join(","))
}

/// A tree that is none for us.
pub(crate) fn unreadable() -> Refusal {
    Refusal::new("the source's catalogue says something that is not known here")
}

/// The names of types as they mean the same under every `search_path`.
fn type_names(source: &mut dyn Catalogue, types: &[u32]) -> Result<Vec<String>, Stop> {
    if types.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: Vec<String> = types.iter().map(u32::to_string).collect();
    let rows = source.query(&format!(
        "SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.quote_ident(t.typname) \
         FROM ROWS FROM (pg_catalog.unnest('{{{}}}'::pg_catalog.oid[])) WITH ORDINALITY wanted (oid, place) \
         JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) wanted.oid \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace ORDER BY wanted.place",
        wanted.join(",")
    ))?;
    let names: Option<Vec<String>> = rows
        .iter()
        .map(|row| match row.as_slice() {
            [Some(schema), Some(name)] => Some(format!("{schema}.{name}")),
            _ => None,
        })
        .collect();
    let names = names.filter(|names| names.len() == types.len());
    Ok(names.ok_or_else(|| Refusal::new("a parameter has a type that the source does not know"))?)
}

/// What the source said to the function.
fn why_not(failure: Failure) -> Stop {
    let refusal = match failure.state.as_str() {
        NOT_ALLOWED => {
            Refusal::new(format!("the source does not let this role look at it: {}", failure.message))
                .with_cure("GRANT TEMPORARY ON DATABASE ... TO ...")
        }
        READ_ONLY => {
            Refusal::new("the source is a standby or reads only, and statements are looked at on a primary")
        }
        state if PASSING.iter().any(|class| state.starts_with(class)) => return failure.into(),
        _ => Refusal::new(format!("the source cannot look at it: {}", failure.message)),
    };
    refusal.into()
}

/// The statement's tree in the body of the function, which is a list of one list.
fn statement_of(text: &str) -> Result<Node, Refusal> {
    let body = node::read(text).ok_or_else(unreadable)?;
    let [Node::List(statements)] = body.items() else { return Err(unreadable()) };
    let [known, statement] = statements.as_slice() else {
        return Err(Refusal::new("it is no single SELECT"));
    };
    if !has_low_bytes_first(known) {
        return Err(Refusal::new("the source's machine puts high bytes first, which is not read here"));
    }
    Ok(statement.clone())
}

/// Whether the number 1 begins with its only byte.
fn has_low_bytes_first(known: &Node) -> bool {
    let entry = known.labelled("QUERY").and_then(|query| query.field("targetList").items().first());
    let number = entry.and_then(|entry| entry.labelled("TARGETENTRY")).map(|entry| entry.field("expr"));
    let value = number.and_then(|number| number.labelled("CONST")).map(|number| number.field("constvalue"));
    value == Some(&Node::Datum(vec![1, 0, 0, 0]))
}
