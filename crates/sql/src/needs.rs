//! What a statement needs to be allowed: known when it is compiled, compared with what the session holds each time it
//! runs (`Core::run_with`), for one plan serves sessions of all roles. Definitions have their own (`define/rights.rs`).
//!
//! Which tables it reads, the walk says. Which columns, SQLite's authorizer says when it compiles the statement's text,
//! whoever runs it later; that is asked only where somebody was granted single columns. A view is read with the rights
//! of its owner, so the statement needs what the owner needs, too.

use std::sync::Arc;

use dialect::Translated;
use dialect::lateral::LATERAL;
use dialect::lowered::{
    Conflict, Insert, Lowered, Merge, MergeAction, MergeClause, Resolve, Rows, Set, Source, Values, Verb,
    Write,
};
use pgcatalog::session::{Holder, Identity};
use store::definition::{Privileges, TableDef, ViewDef};
use store::{Catalog, Table};

use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::Governed;
use crate::table::{ColumnRead, HIDDEN, Head, column_of_absence};
use crate::text::token::{Kind, Token, Tokens, quoted_name, text_of};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    each: Vec<Need>,
    /// Whose query our grammar does not know, which may read anything: that of an owner of a view, or of who runs the
    /// statement.
    unknown: Vec<Option<Box<str>>>,
    /// The users' functions that it calls, by their names in the store.
    calls: Vec<Box<str>>,
    /// The tables that may refuse it, and whether it writes them: mirrors, which are not always whole and which nobody
    /// but the source writes, and those that nobody reads while their source is not followed.
    refusing: Vec<(Arc<Table>, bool)>,
    /// It asks for rows to be locked, which who only reads may not do.
    locks: bool,
}

/// A privilege that somebody needs on a table, view or sequence.
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
        let calls = translated.calls.iter().map(|name| name.as_str().into()).collect();
        let mut needs = Self { calls, ..Self::default() };
        if translated.lowered == Lowered::Unread {
            needs.unknown.push(None);
        }
        for relation in users(&core.catalog, &translated.reads) {
            needs.add(relation, Privileges::SELECT, None);
        }
        if let Lowered::Write(write) = &translated.lowered {
            needs.add_write(write);
        }
        if core.catalog.grants_columns() {
            needs.narrow(core, translated);
        }
        for relation in users(&core.catalog, &translated.locks) {
            // As in PostgreSQL a column that may be changed is enough.
            needs.add(relation, Privileges::UPDATE, Some(Vec::new()));
        }
        needs.locks = !translated.locks.is_empty();
        if core.catalog.has_refusing() {
            needs.add_refusing(core, translated);
        }
        // Where superusers own all views, these may read everything.
        if core.catalog.views().any(|view| view.access.owner.is_some()) {
            needs.add_views(core);
        }
        needs
    }

    /// Those that it reads or writes, itself or by views. Who reads with a grammar that ours does not know may read
    /// all of them.
    fn add_refusing(&mut self, core: &Core, translated: &Translated) {
        let catalog = &core.catalog;
        let written = match &translated.lowered {
            Lowered::Write(write) => Some(write.table.name.as_str()),
            _ => None,
        };
        let mut names: Vec<Box<str>> = users(catalog, &translated.reads).map(Into::into).collect();
        let mut everything = translated.lowered == Lowered::Unread;
        let mut at = 0;
        while let Some(view) = names.get(at).map(|name| catalog.view(name)) {
            at += 1;
            for text in view.map(|view| with_laterals(vec![view.sql.clone()])).into_iter().flatten() {
                match dialect::reads_of_view(catalog, &text) {
                    Some(reads) => {
                        let new: Vec<Box<str>> = users(catalog, &reads).map(Into::into).collect();
                        names
                            .extend(new.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
                    }
                    None => everything = true,
                }
            }
        }
        let is = |name: &str, table: &Table| catalog.table(name).is_some_and(|own| own.id() == table.id());
        for table in catalog.tables().filter(|table| table.may_refuse()) {
            let writes = written.is_some_and(|name| is(name, table));
            if writes || everything || names.iter().any(|name| is(name, table)) {
                self.refusing.push((Arc::clone(table), writes));
            }
        }
    }

    /// Refuses who would write a mirror, or read one that is not whole: half of the rows must not look like all. And
    /// who would read a table whose source is not followed, where the table says so; he may write it.
    #[cold]
    fn check_refusing(&self) -> Result<(), SqlError> {
        for (table, writes) in &self.refusing {
            let why = match (table.is_mirror(), *writes) {
                (true, true) => return Err(mirror_written(table.name())),
                (true, false) if !table.is_whole() => "does not have all rows of its source",
                (false, false) if table.fails() => "is further behind its source than max_lag",
                _ => continue,
            };
            let message = format!("table \"{}\" {why}", table.name());
            return Err(SqlError::new(state::NOT_IN_STATE, message)
                .with_hint("SELECT state, last_error FROM sqlcached_sources says how far it is"));
        }
        Ok(())
    }

    /// What the owners of the views need that it names, and of those under them.
    fn add_views(&mut self, core: &Core) {
        let mut named: Vec<(Box<str>, Privileges)> =
            self.each.iter().map(|need| (need.relation.clone(), need.privilege)).collect();
        let mut at = 0;
        while let Some((name, privilege)) = named.get(at).cloned() {
            at += 1;
            let Some(view) = core.catalog.view(&name) else { continue };
            for relation in self.add_view(core, view, privilege) {
                let one = (relation, privilege);
                if !named.contains(&one) {
                    named.push(one);
                }
            }
        }
    }

    /// What the owner of a view needs for a privilege on it. Returns what the view reads.
    fn add_view(&mut self, core: &Core, view: &ViewDef, privilege: Privileges) -> Vec<Box<str>> {
        let catalog = &core.catalog;
        let owner = view.access.owner.as_deref();
        let texts = with_laterals(vec![view.sql.clone()]);
        let mut relations: Vec<Box<str>> = Vec::new();
        for text in &texts {
            match dialect::reads_of_view(catalog, text) {
                Some(reads) => relations.extend(users(catalog, &reads).map(Into::into)),
                None => self.unknown.extend(owner.map(|owner| Some(owner.into()))),
            }
        }
        let read = catalog.grants_columns().then(|| Reads::of(core, &texts));
        for relation in &relations {
            let Some(owner) = owner else { continue };
            let columns = read.as_ref().filter(|_| privilege == Privileges::SELECT);
            let columns = columns.and_then(|read| read.columns(catalog, relation));
            let need = Need { relation: relation.clone(), owner: Some(owner.into()), privilege, columns };
            if !self.each.contains(&need) {
                self.each.push(need);
            }
        }
        relations
    }

    /// The tables and views that the statement names itself.
    pub(crate) fn relations(&self) -> Vec<String> {
        let own = self.each.iter().filter(|need| need.owner.is_none());
        let mut names: Vec<String> = own.map(|need| need.relation.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Takes in those of a part of the statement.
    pub(crate) fn join(&mut self, part: &Self) {
        let new = |need: &&Need| !self.each.contains(need);
        let each: Vec<Need> = part.each.iter().filter(new).cloned().collect();
        self.each.extend(each);
        self.unknown.extend(part.unknown.iter().cloned());
        self.refusing.extend(part.refusing.iter().cloned());
        self.calls.extend(part.calls.iter().cloned());
        self.locks |= part.locks;
    }

    /// Whether it locks rows.
    pub(crate) fn locks(&self) -> bool {
        self.locks
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
            Verb::Merge(merge) => merge.clauses.iter().for_each(|clause| match clause.action {
                MergeAction::Nothing => {}
                MergeAction::Delete => changes(Privileges::DELETE),
                MergeAction::Update(_) => changes(Privileges::UPDATE),
                MergeAction::Insert(_) => changes(Privileges::INSERT),
            }),
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
        let read = Reads::of(core, &with_laterals(texts));
        for need in &mut self.each {
            need.columns = match &translated.lowered {
                _ if need.privilege == Privileges::SELECT => read.columns(&core.catalog, &need.relation),
                Lowered::Write(write) => columns_written(&core.catalog, write, need.privilege),
                _ => None,
            };
        }
    }

    /// Whether the session may run it.
    #[inline]
    pub(crate) fn check(&self, core: &Core, identity: &Identity) -> Result<(), SqlError> {
        if !self.refusing.is_empty() && !identity.is_source {
            self.check_refusing()?;
        }
        if identity.rights.superuser {
            return Ok(());
        }
        self.check_each(core, identity)
    }

    #[cold]
    fn check_each(&self, core: &Core, identity: &Identity) -> Result<(), SqlError> {
        let own = identity.holder();
        let of_owner = |owner: &str| core.system.server().holder(owner).unwrap_or_else(Holder::nobody);
        for owner in &self.unknown {
            if !owner.as_deref().map_or(own.rights, |owner| of_owner(owner).rights).reads {
                let message = "permission denied for a query of unknown grammar";
                return Err(SqlError::new(state::FORBIDDEN, message));
            }
        }
        check_calls(&core.catalog, &own, self.calls.iter().map(|name| &**name))?;
        self.each.iter().try_for_each(|need| match &need.owner {
            None => need.check(&core.catalog, &own),
            Some(owner) => need.check(&core.catalog, &of_owner(owner)),
        })
    }
}

/// Refuses who may not call one of these functions of users.
pub(crate) fn check_calls<'n>(
    catalog: &Catalog,
    holder: &Holder,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(), SqlError> {
    for routine in names.into_iter().filter_map(|name| catalog.routine(name)) {
        if !holder.on(&routine.access).0.has(Privileges::EXECUTE) {
            return Err(denied(routine.word(), &routine.name));
        }
    }
    Ok(())
}

impl Need {
    fn check(&self, catalog: &Catalog, holder: &Holder) -> Result<(), SqlError> {
        let Some(relation) = Governed::of(catalog, &self.relation) else { return Ok(()) };
        if holder.on(&relation.access).0.has(self.privilege)
            || relation.def().is_some_and(|def| self.is_met_by_columns(def, holder))
        {
            return Ok(());
        }
        Err(denied(relation.word(), &self.relation))
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

/// The error for who would write what is the source's.
#[cold]
pub(crate) fn mirror_written(name: &str) -> SqlError {
    SqlError::new(state::NOT_A_TABLE, format!("cannot change table \"{name}\": it mirrors its source"))
        .with_hint("write at the source; the change is here a moment later")
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
        Verb::Insert(_) | Verb::Merge(_) => return true,
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

/// Names of users' tables, views and sequences among these: a sequence is read as a table of one row.
fn users<'n>(catalog: &'n Catalog, names: &'n [String]) -> impl Iterator<Item = &'n str> {
    names.iter().map(String::as_str).filter(|name| Governed::of(catalog, name).is_some())
}

/// Queries, and those within them that are given to a table of ours as texts (`LATERAL`).
fn with_laterals(mut texts: Vec<String>) -> Vec<String> {
    let mut at = 0;
    while let Some(text) = texts.get(at) {
        let tokens: Vec<Token<'_>> = Tokens::new(text).collect();
        let calls = tokens.windows(3).filter(|call| call[0].is(LATERAL) && call[1].is_sign("("));
        let inner: Vec<String> = calls.filter_map(|call| text_of(&call[2])).collect();
        texts.extend(inner);
        at += 1;
    }
    texts
}

/// Whether a query reads a column of a table itself, not by a view; `None`: that is not known.
pub(crate) fn reads_column(core: &Core, sql: &str, table: &str, column: &str) -> Option<bool> {
    let reads = Reads::of(core, &with_laterals(vec![sql.to_owned()]));
    let columns = reads.columns(&core.catalog, table)?;
    Some(columns.iter().any(|name| name.eq_ignore_ascii_case(column)))
}

/// Which columns queries read.
struct Reads {
    each: Vec<ColumnRead>,
    /// They are all there.
    complete: bool,
}

impl Reads {
    fn of(core: &Core, texts: &[String]) -> Self {
        let (compiled, mut each) =
            core.sight.reads_of(|| texts.iter().all(|text| core.compile(text).is_ok()));
        let mut words = texts.iter().flat_map(|text| Tokens::new(text));
        // SQLite tells a name of `WITH` as it tells a view. Behind one that is no view, the query itself reads; and one
        // may be called like a view.
        let with = words.any(|word| word.is("WITH"));
        each.retain(|read| with || read.view.as_deref().is_none_or(|view| core.catalog.view(view).is_none()));
        // SQLite does not tell which columns these compare.
        let complete = compiled && !texts.iter().any(|text| joins_by_name(text));
        Self { each, complete }
    }

    /// The columns of a table; `None`: more than single ones.
    fn columns(&self, catalog: &Catalog, relation: &str) -> Option<Vec<Box<str>>> {
        let def = catalog.table(relation).filter(|_| self.complete)?.def();
        let mut columns: Vec<Box<str>> = Vec::new();
        for read in self.each.iter().filter(|read| read.relation.eq_ignore_ascii_case(relation)) {
            for column in told_by(def, &read.column)? {
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
        Some(columns)
    }
}

/// The columns of which a column of this name tells the values; `None`: any of the row's.
fn told_by(def: &TableDef, name: &str) -> Option<Vec<Box<str>>> {
    let names_of =
        |columns: &[usize]| columns.iter().map(|&at| def.columns[at].name.as_str().into()).collect();
    if let Some(at) = def.column_index(name) {
        return Some(names_of(&[at]));
    }
    if let Some(at) = column_of_absence(name).filter(|&at| at < def.columns.len() && !def.columns[at].hidden)
    {
        return Some(names_of(&[at]));
    }
    // What is neither is an index's expression, which may read anything of the row.
    let (_, head, _) = HIDDEN.iter().find(|(hidden, ..)| hidden.eq_ignore_ascii_case(name))?;
    match head {
        Head::Row => Some(names_of(&def.primary_key)),
        // Beside the row's own data: its deadline, its flags, what a statement hands to itself.
        _ => Some(Vec::new()),
    }
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
        Verb::Merge(merge) if privilege == Privileges::UPDATE => {
            let sets = merge.clauses.iter().filter_map(|clause| match &clause.action {
                MergeAction::Update(sets) => Some(sets),
                _ => None,
            });
            sets.flatten().collect()
        }
        Verb::Merge(merge) if privilege == Privileges::INSERT => return columns_merged(def, merge),
        _ => return None,
    };
    let names: Vec<Box<str>> = named(&mut sets.into_iter().flat_map(|set| &set.columns));
    // A row's deadline and flags are of the whole row.
    names.iter().all(|name| def.column_index(name).is_some()).then_some(names)
}

/// The columns that a `MERGE` inserts; `None`: one of its clauses gives all.
fn columns_merged(def: &TableDef, merge: &Merge) -> Option<Vec<Box<str>>> {
    let mut names: Vec<Box<str>> = Vec::new();
    for clause in &merge.clauses {
        let MergeAction::Insert(insert) = &clause.action else { continue };
        names.extend(insert.columns.as_ref()?.iter().map(|name| name.as_str().into()));
    }
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
        Verb::Merge(merge) => {
            texts.push(format!("{with}SELECT 1 FROM {target}, {} WHERE ({})", merge.source, merge.on));
            texts.extend(merge.clauses.iter().map(|clause| witness_of(with, &target, merge, clause)));
        }
    }
    texts.extend(write.returning.as_ref().map(|list| format!("{with}SELECT {list} FROM {target}")));
    texts
}

/// What a clause of a `MERGE` reads.
fn witness_of(with: &str, target: &str, merge: &Merge, clause: &MergeClause) -> String {
    let mut read = match &clause.action {
        MergeAction::Nothing | MergeAction::Delete => vec!["1".to_owned()],
        MergeAction::Update(sets) => values_of(sets),
        MergeAction::Insert(insert) => insert.values.clone(),
    };
    read.extend(clause.condition.iter().map(|condition| format!("({condition})")));
    let table = if clause.matched { format!("{target}, ") } else { String::new() };
    format!("{with}SELECT {} FROM {table}{}", read.join(", "), merge.source)
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
