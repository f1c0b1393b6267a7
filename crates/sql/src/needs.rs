//! What a statement needs to be allowed: known when it is compiled, compared with what the session holds each time it
//! runs (`Core::run_with`), for one plan serves sessions of all roles. Definitions have their own (`define/rights.rs`).
//!
//! Which tables it reads, the walk says. Which columns, SQLite's authorizer says when it compiles the statement's text,
//! whoever runs it later; that is asked only where somebody was granted single columns. A view is read with the rights
//! of its owner, so the statement needs what the owner needs, too.

use dialect::Translated;
use dialect::lowered::{Conflict, Insert, Lowered, Resolve, Rows, Set, Source, Values, Verb, Write};
use pgcatalog::session::{Holder, Identity};
use store::Catalog;
use store::definition::{Access, Privileges, TableDef};

use crate::core::Core;
use crate::error::{SqlError, state};
use crate::table::{ColumnRead, HIDDEN};
use crate::text::token::{Kind, Tokens, quoted_name};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    each: Vec<Need>,
    /// Our grammar does not know the statement: it may read anything.
    unknown: bool,
}

/// A privilege that somebody needs on a table or view.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    relation: Box<str>,
    /// Who needs it: the owner of a view; `None`: who runs the statement.
    owner: Option<Box<str>>,
    privilege: Privileges,
    /// The columns, on each of which it is enough; `None`: on each of the table.
    columns: Option<Vec<Box<str>>>,
}

impl Needs {
    /// Those of a statement. What reads only the system's tables needs nothing.
    pub(crate) fn of(core: &Core, translated: &Translated) -> Self {
        let catalog = &core.catalog;
        let is_users = |name: &&String| catalog.table(name).is_some() || catalog.view(name).is_some();
        let mut needs = Self { each: Vec::new(), unknown: translated.lowered == Lowered::Unread };
        for relation in translated.reads.iter().filter(is_users) {
            needs.add(relation, Privileges::SELECT, None);
        }
        if let Lowered::Write(write) = &translated.lowered {
            needs.add_write(write);
        }
        if catalog.grants_columns() {
            needs.narrow(core, translated);
        }
        let views: Vec<_> =
            needs.each.iter().filter_map(|need| catalog.view(&need.relation)).cloned().collect();
        for view in views.iter().filter(|view| view.access.owner.is_some()) {
            needs.add_view(core, &view.name);
        }
        needs
    }

    fn add(&mut self, relation: &str, privilege: Privileges, columns: Option<Vec<Box<str>>>) {
        let need = Need { relation: relation.into(), owner: None, privilege, columns };
        if !self.each.contains(&need) {
            self.each.push(need);
        }
    }

    fn add_write(&mut self, write: &Write) {
        let table = write.table.name.as_str();
        let mut changes = |verb: Privileges| self.add(table, verb, None);
        match &write.verb {
            Verb::Insert(insert) => {
                changes(Privileges::INSERT);
                if updates(insert) {
                    changes(Privileges::UPDATE);
                }
                // `OR REPLACE` removes the row that is in the way.
                if write.resolve == Some(Resolve::Replace) {
                    changes(Privileges::DELETE);
                }
                // `DO NOTHING` about whatever is in the way looks at nothing that it shows.
                let looks = |conflict: &Conflict| conflict.target.is_some() || conflict.update.is_some();
                if !insert.conflicts.iter().any(looks) && write.returning.is_none() {
                    return;
                }
            }
            Verb::Update(_) => changes(Privileges::UPDATE),
            Verb::Delete(_) => changes(Privileges::DELETE),
        }
        if looks(write) {
            self.add(table, Privileges::SELECT, None);
        }
    }

    /// Says of each need on which columns it is enough, as far as that can be told.
    fn narrow(&mut self, core: &Core, translated: &Translated) {
        let texts = match &translated.lowered {
            Lowered::Write(write) => witnesses(write),
            Lowered::Read(_) => vec![translated.sql.clone()],
            Lowered::Unread => return,
        };
        let (compiled, mut reads) =
            core.sight.reads_of(|| texts.iter().all(|text| core.compile(text).is_ok()));
        // SQLite tells a name of `WITH` as it tells a view. Behind one that is no view, the statement itself reads; and
        // one may be called like a view.
        let with = texts.iter().any(|text| Tokens::new(text).any(|word| word.is("WITH")));
        for read in &mut reads {
            let view = read.view.take();
            read.view = view.filter(|view| !with && core.catalog.view(view).is_some());
        }
        // SQLite does not tell which columns these compare.
        let known = compiled && !texts.iter().any(|text| joins_by_name(text));
        for need in &mut self.each {
            need.columns = match &translated.lowered {
                _ if need.privilege == Privileges::SELECT => {
                    if known {
                        columns_read(&core.catalog, &reads, None, &need.relation)
                    } else {
                        None
                    }
                }
                Lowered::Write(write) => columns_written(&core.catalog, write, need.privilege),
                _ => None,
            };
        }
    }

    /// What the owners of a view, and of those under it, need.
    fn add_view(&mut self, core: &Core, name: &str) {
        let catalog = &core.catalog;
        let text = format!("SELECT * FROM {}", quoted_name(name));
        let (_, reads) = core.sight.reads_of(|| core.compile(&text));
        let written: Vec<Privileges> = self
            .each
            .iter()
            .filter(|need| need.owner.is_none() && need.privilege != Privileges::SELECT)
            .filter(|need| need.relation.eq_ignore_ascii_case(name))
            .map(|need| need.privilege)
            .collect();
        for read in &reads {
            let Some(view) = read.view.as_deref().and_then(|view| catalog.view(view)) else { continue };
            let Some(owner) = view.access.owner.as_deref() else { continue };
            let is_users = catalog.table(&read.relation).is_some() || catalog.view(&read.relation).is_some();
            let mut add = |privilege: Privileges, columns: Option<Vec<Box<str>>>| {
                let (relation, owner) = (read.relation.clone(), Some(owner.into()));
                let need = Need { relation, owner, privilege, columns };
                if is_users && !self.each.contains(&need) {
                    self.each.push(need);
                }
            };
            add(Privileges::SELECT, columns_read(catalog, &reads, Some(&view.name), &read.relation));
            if view.name.eq_ignore_ascii_case(name) {
                for privilege in &written {
                    add(*privilege, None);
                }
            }
        }
    }

    /// Whether the session may run it.
    #[inline]
    pub(crate) fn check(&self, core: &Core, identity: &Identity) -> Result<(), SqlError> {
        if identity.rights.superuser {
            return Ok(());
        }
        self.check_each(core, identity)
    }

    #[cold]
    fn check_each(&self, core: &Core, identity: &Identity) -> Result<(), SqlError> {
        if self.unknown && !identity.rights.reads {
            return Err(SqlError::new(
                state::FORBIDDEN,
                "permission denied for a statement of unknown grammar",
            ));
        }
        let own = identity.holder();
        self.each.iter().try_for_each(|need| match &need.owner {
            None => need.check(&core.catalog, &own),
            Some(owner) => {
                let owner = core.system.server().holder(owner).unwrap_or_else(Holder::nobody);
                need.check(&core.catalog, &owner)
            }
        })
    }
}

impl Need {
    fn check(&self, catalog: &Catalog, holder: &Holder) -> Result<(), SqlError> {
        let Some((access, def)) = access_of(catalog, &self.relation) else { return Ok(()) };
        if holder.on(access).0.has(self.privilege)
            || def.is_some_and(|def| self.is_met_by_columns(def, holder))
        {
            return Ok(());
        }
        let what = if def.is_some() { "table" } else { "view" };
        Err(denied(what, &self.relation))
    }

    fn is_met_by_columns(&self, def: &TableDef, holder: &Holder) -> bool {
        let has = |at: usize| holder.on_column(&def.columns[at].grants).0.has(self.privilege);
        match self.columns.as_deref() {
            None => def.visible_columns().all(|(at, _)| has(at)),
            // Rows alone are counted by who may see something of them.
            Some([]) => def.visible_columns().any(|(at, _)| has(at)),
            Some(columns) => columns.iter().all(|name| def.column_index(name).is_some_and(has)),
        }
    }
}

/// Who may do what with a table or view.
pub(crate) fn access_of<'c>(catalog: &'c Catalog, name: &str) -> Option<(&'c Access, Option<&'c TableDef>)> {
    let of_view = || catalog.view(name).map(|view| (&view.access, None));
    catalog.table(name).map(|table| (&table.def().access, Some(table.def()))).or_else(of_view)
}

/// The error for who may not.
#[cold]
pub(crate) fn denied(what: &str, name: &str) -> SqlError {
    SqlError::new(state::FORBIDDEN, format!("permission denied for {what} {name}"))
}

fn updates(insert: &Insert) -> bool {
    insert.conflicts.iter().any(|conflict| conflict.update.is_some())
}

/// Whether a statement looks at rows of the table that it writes.
fn looks(write: &Write) -> bool {
    let rows = match &write.verb {
        Verb::Insert(_) => return true,
        Verb::Update(update) => &update.rows,
        Verb::Delete(delete) => &delete.rows,
    };
    let computes = match &write.verb {
        // A value that is no literal may be computed from the row.
        Verb::Update(update) => update.sets.iter().any(|set| !is_plain(&set.values)),
        _ => false,
    };
    computes || rows.condition.is_some() || rows.order.is_some() || write.returning.is_some()
}

/// Whether a value is made of literals, parameters and calls, and of nothing of the row.
fn is_plain(values: &Values) -> bool {
    let plain = |sql: &str| {
        let mut tokens = Tokens::new(sql).peekable();
        while let Some(token) = tokens.next() {
            let calls = tokens.peek().is_some_and(|next| next.is_sign("("));
            if token.kind == Kind::Quoted || token.kind == Kind::Word && !calls && !token.is("NULL") {
                return false;
            }
        }
        true
    };
    match values {
        Values::One(piece) => plain(&piece.sql),
        Values::Each(each) => each.iter().all(|sql| plain(sql)),
        Values::Query(_) | Values::Other => false,
    }
}

/// Whether a query joins tables by `NATURAL` or `USING (columns)`.
fn joins_by_name(text: &str) -> bool {
    let mut tokens = Tokens::new(text).peekable();
    while let Some(token) = tokens.next() {
        let listed = tokens.peek().is_some_and(|next| next.is_sign("("));
        if token.is("NATURAL") || token.is("USING") && listed {
            return true;
        }
    }
    false
}

/// The columns of a table that were read, by the statement itself or by a view; `None`: more than single columns.
fn columns_read(
    catalog: &Catalog,
    reads: &[ColumnRead],
    view: Option<&str>,
    relation: &str,
) -> Option<Vec<Box<str>>> {
    let same = |read: &&ColumnRead| {
        let by = match (read.view.as_deref(), view) {
            (Some(by), Some(view)) => by.eq_ignore_ascii_case(view),
            (by, view) => by.is_none() && view.is_none(),
        };
        by && read.relation.eq_ignore_ascii_case(relation)
    };
    let def = catalog.table(relation)?.def();
    let mut columns: Vec<Box<str>> = Vec::new();
    for read in reads.iter().filter(same) {
        match def.column_index(&read.column) {
            Some(_) if columns.contains(&read.column) => {}
            Some(_) => columns.push(read.column.clone()),
            // Beside the row's own data: its deadline, its flags, what a statement hands to itself.
            None if HIDDEN.iter().any(|(hidden, ..)| hidden.eq_ignore_ascii_case(&read.column)) => {}
            // An index's expression, which may read anything of the row.
            None => return None,
        }
    }
    Some(columns)
}

/// The columns that a statement writes.
fn columns_written(catalog: &Catalog, write: &Write, privilege: Privileges) -> Option<Vec<Box<str>>> {
    let def = catalog.table(&write.table.name)?.def();
    let named = |names: &mut dyn Iterator<Item = &String>| names.map(|name| name.as_str().into()).collect();
    let sets = match &write.verb {
        Verb::Insert(insert) if privilege == Privileges::INSERT => {
            return Some(match &insert.columns {
                Some(names) => named(&mut names.iter()),
                None => def.visible_columns().map(|(_, column)| column.name.as_str().into()).collect(),
            });
        }
        Verb::Insert(insert) if privilege == Privileges::UPDATE => {
            let updates = insert.conflicts.iter().filter_map(|conflict| conflict.update.as_ref());
            updates.flat_map(|update| &update.sets).collect::<Vec<_>>()
        }
        Verb::Update(update) if privilege == Privileges::UPDATE => update.sets.iter().collect(),
        _ => return None,
    };
    let names: Vec<Box<str>> = named(&mut sets.into_iter().flat_map(|set| &set.columns));
    // A row's deadline and flags are of the whole row.
    names.iter().all(|name| def.column_index(name).is_some()).then_some(names)
}

/// Queries that read what a statement that writes reads, and no more: those that compute it read all that they keep.
fn witnesses(write: &Write) -> Vec<String> {
    let name = quoted_name(&write.table.name);
    let alias = write.table.alias.as_ref().map_or_else(|| name.clone(), |alias| quoted_name(alias));
    let (with, target) = (&write.with, format!("{name} AS {alias}"));
    let mut texts = Vec::new();
    match &write.verb {
        Verb::Insert(insert) => {
            if let Source::Query { sql, .. } = &insert.source {
                texts.push(format!("{with}{sql}"));
            }
            for conflict in &insert.conflicts {
                if let Some(of) = &conflict.target {
                    let terms: Vec<_> = of.terms.iter().map(|term| term.piece.sql.as_str()).collect();
                    let condition =
                        of.condition.as_ref().map(|sql| format!(" WHERE {sql}")).unwrap_or_default();
                    texts.push(format!("SELECT {} FROM {target}{condition}", terms.join(", ")));
                }
                if let Some(update) = &conflict.update {
                    let mut read = values_of(&update.sets);
                    read.extend(update.condition.clone());
                    let of_old = read.iter().map(|sql| format!("(SELECT {sql} FROM {target})"));
                    let read = of_old.collect::<Vec<_>>().join(", ");
                    texts.push(format!("{with}SELECT {read} FROM {name} AS excluded"));
                }
            }
        }
        Verb::Update(update) => {
            texts.push(rows_of(
                with,
                &values_of(&update.sets),
                &target,
                update.from.as_deref(),
                &update.rows,
            ));
        }
        Verb::Delete(delete) => {
            texts.push(rows_of(with, &[], &target, delete.using.as_deref(), &delete.rows));
        }
    }
    texts.extend(write.returning.as_ref().map(|list| format!("{with}SELECT {list} FROM {target}")));
    texts
}

fn values_of(sets: &[Set]) -> Vec<String> {
    let mut all = Vec::new();
    for set in sets {
        match &set.values {
            Values::One(piece) => all.push(format!("({})", piece.sql)),
            Values::Each(values) => all.extend(values.iter().map(|sql| format!("({sql})"))),
            Values::Query(query) => all.push(format!("EXISTS {query}")),
            Values::Other => {}
        }
    }
    all
}

fn rows_of(with: &str, read: &[String], target: &str, from: Option<&str>, rows: &Rows) -> String {
    let list = if read.is_empty() { "1".to_owned() } else { read.join(", ") };
    let mut text = format!("{with}SELECT {list} FROM {target}");
    text.extend(from.map(|from| format!(", {from}")));
    text.extend(rows.condition.as_ref().map(|condition| format!(" WHERE ({})", condition.sql)));
    text.extend(rows.order.as_ref().map(|order| format!(" ORDER BY {order}")));
    text.extend(rows.limit.as_ref().map(|limit| format!(" {limit}")));
    text
}
