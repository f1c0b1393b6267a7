//! What the names of a statement stand for, as far as types go.
//!
//! A column's name is looked up in the `FROM` around its place, innermost first. Where that says nothing, as in a part
//! of a definition, a name has a type when all tables that the statement names agree on it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use pgcatalog::shape::HIDDEN;
use pgcatalog::system;
use sqltext::token::{Kind, Token};
use store::definition::{EnumDef, NamespaceDef, SqlType, ViewColumn, ViewDef, qualified};
use store::{Catalog, Table};

use super::own::{Own, Within, called};
use super::scope::{Column, Relation, Source};
use super::{Item, Translator, schemas, types};
use crate::limits::VIEWS_DEPTH_MAX;
use sqltext::token::unquoted;

/// Types of columns by their names in lower case; `None`: they differ.
#[derive(Debug, Default)]
pub(super) struct Names {
    columns: HashMap<String, Option<SqlType>>,
    tables: HashMap<String, Arc<Table>>,
    views: HashMap<String, Vec<Column>>,
    enums: Arc<[Arc<EnumDef>]>,
    /// The schemas beside `public`.
    namespaces: Vec<Arc<NamespaceDef>>,
    /// Where names without a schema are looked for; empty: in `public`.
    path: Arc<[String]>,
    /// Names of tables that mean others where the session looks for them, in lower case.
    found: HashMap<String, String>,
    /// Names in lower case that tables or views of `public` have, which the session does not look for.
    unseen: HashSet<String>,
    /// Users' functions by where in the text a call of them begins.
    own: HashMap<usize, Rc<Own>>,
}

impl Names {
    /// The columns of all tables that the statement may be about. `depth`: views within which it stands.
    /// `looks`: names without a schema are looked for where the session does; a view's were found before.
    pub(super) fn of(catalog: &Catalog, tokens: &[Token<'_>], depth: usize, looks: bool) -> Self {
        let enums = Arc::clone(catalog.enums());
        let namespaces = catalog.namespaces().to_vec();
        let path = if looks { Arc::clone(catalog.path()) } else { Arc::default() };
        let mut names = Self { enums, namespaces, path, ..Self::default() };
        for (at, token) in tokens.iter().enumerate() {
            if !matches!(token.kind, Kind::Word | Kind::Quoted) {
                continue;
            }
            let registered = schemas::information_table(&tokens[at..]);
            let name = registered.map_or_else(|| unquoted(token.text).to_lowercase(), str::to_owned);
            if let Some(namespace) = names.namespace(token).map(str::to_owned) {
                names.see_in(catalog, &namespace, &tokens[at..], depth);
            }
            if !names.path.is_empty() && registered.is_none() {
                names.look_for(catalog, &name, depth);
            }
            if !names.see(catalog, &name, depth) {
                for (column, ty) in system::columns_of(&name).chain(system::HIDDEN) {
                    names.add_column(column, Some(ty));
                }
            }
        }
        if !names.tables.is_empty() {
            for (name, _, _) in HIDDEN.iter().filter(|(_, _, meaning)| meaning.is_some()) {
                names.columns.insert((*name).to_owned(), Some(SqlType::Int8));
            }
        }
        names
    }

    /// The same of a statement that is no view's, with the functions that it calls.
    pub(super) fn of_statement(catalog: &Catalog, tokens: &[Token<'_>], within: Within<'_>) -> Self {
        let mut names = Self::of(catalog, tokens, 0, true);
        if catalog.routines().is_empty() {
            return names;
        }
        let mut known: HashMap<String, Rc<Own>> = HashMap::new();
        for (at, token) in tokens.iter().enumerate() {
            let Some(def) = called(catalog, &tokens[at..]) else { continue };
            let own = known.entry(def.name.clone());
            let own = Rc::clone(own.or_insert_with(|| Rc::new(Own::of(catalog, def, within))));
            // The name behind a schema is none by itself.
            if !at.checked_sub(1).is_some_and(|before| tokens[before].is_sign(".")) {
                names.own.insert(token.start, own);
            }
        }
        names
    }

    /// Whether a table or view has this name in the store.
    pub(super) fn knows(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.tables.contains_key(&name) || self.views.contains_key(&name)
    }

    /// The user's function that is called at a place of the text.
    pub(super) fn own_function(&self, place: usize) -> Option<&Rc<Own>> {
        if self.own.is_empty() { None } else { self.own.get(&place) }
    }

    /// Takes note of the table or view of this name in the store; whether there is one.
    fn see(&mut self, catalog: &Catalog, name: &str, depth: usize) -> bool {
        if self.tables.contains_key(name) || self.views.contains_key(name) {
            return true;
        }
        if let Some(table) = catalog.table(name) {
            self.add(table);
        } else if let Some(view) = catalog.view(name).filter(|_| depth < VIEWS_DEPTH_MAX) {
            self.views.insert(name.to_owned(), columns_of_view(catalog, view, depth));
        } else {
            return false;
        }
        true
    }

    /// The same of `schema.name`.
    fn see_in(&mut self, catalog: &Catalog, namespace: &str, tokens: &[Token<'_>], depth: usize) {
        if let [_, point, name, ..] = tokens
            && point.is_sign(".")
            && matches!(name.kind, Kind::Word | Kind::Quoted)
        {
            let name = qualified(Some(namespace), &unquoted(name.text)).to_lowercase();
            self.see(catalog, &name, depth);
        }
    }

    /// The same of a name where the session looks for it.
    fn look_for(&mut self, catalog: &Catalog, name: &str, depth: usize) {
        let is =
            |catalog: &Catalog, name: &str| catalog.table(name).is_some() || catalog.view(name).is_some();
        let found = catalog.found_name(name, is);
        if found == name {
            return;
        }
        self.see(catalog, &found.to_lowercase(), depth);
        if is(catalog, name) {
            self.unseen.insert(name.to_owned());
        }
        self.found.insert(name.to_owned(), found);
    }

    /// The name in the store of the table that a name without a schema means.
    pub(super) fn found(&self, name: &str) -> String {
        if self.found.is_empty() {
            return name.to_owned();
        }
        self.found.get(&name.to_lowercase()).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Whether a table of users has this name in `public`, where the session does not look for it.
    pub(super) fn is_users(&self, name: &str) -> bool {
        self.unseen.contains(&name.to_lowercase())
    }

    /// The schema of users that a token names.
    pub(super) fn namespace(&self, token: &Token<'_>) -> Option<&str> {
        if self.namespaces.is_empty() || !matches!(token.kind, Kind::Word | Kind::Quoted) {
            return None;
        }
        let name = unquoted(token.text);
        let own = self.namespaces.iter().find(|own| own.name.eq_ignore_ascii_case(&name))?;
        Some(own.name.as_str())
    }

    /// The enum type of a name where the session looks for it.
    pub(super) fn enumeration(&self, name: &str) -> Option<SqlType> {
        if self.path.is_empty() {
            return self.enumeration_named(name);
        }
        let known = |schema: &String| {
            let own = self.namespaces.iter().find(|own| own.name.eq_ignore_ascii_case(schema));
            own.map(|own| own.name.as_str()).or_else(|| schema.eq_ignore_ascii_case("public").then_some(""))
        };
        let place = |schema: &str| qualified(Some(schema).filter(|schema| !schema.is_empty()), name);
        self.path.iter().filter_map(known).find_map(|schema| self.enumeration_named(&place(schema)))
    }

    /// The enum type of a name.
    pub(super) fn enumeration_named(&self, name: &str) -> Option<SqlType> {
        let named = |name: &str| {
            let own = self.enums.iter().find(|own| own.name.eq_ignore_ascii_case(name))?;
            Some(SqlType::Enum(own.id))
        };
        named(name).or_else(|| named(name.strip_prefix('_')?)?.array())
    }

    /// What an enum type is.
    pub(super) fn enum_of(&self, ty: SqlType) -> Option<&EnumDef> {
        let id = ty.enumeration()?;
        self.enums.iter().find(|own| own.id == id).map(Arc::as_ref)
    }

    /// A table that the statement is about.
    pub(super) fn add(&mut self, table: &Arc<Table>) {
        if self.tables.insert(table.name().to_lowercase(), Arc::clone(table)).is_none() {
            self.add_columns(table);
        }
    }

    fn add_columns(&mut self, table: &Table) {
        for (at, column) in table.def().columns.iter().enumerate() {
            self.add_column(&column.name, known_type(table, at));
        }
    }

    pub(super) fn add_column(&mut self, name: &str, ty: Option<SqlType>) {
        let known = self.columns.entry(name.to_lowercase()).or_insert(ty);
        if *known != ty {
            *known = None;
        }
    }

    /// The type of a column of this name, whatever table it is of.
    fn column(&self, name: &str) -> Option<SqlType> {
        self.columns.get(&name.to_lowercase()).copied().flatten()
    }

    /// Whether a column is called so.
    pub(super) fn is_column(&self, name: &str) -> bool {
        self.columns.contains_key(&name.to_lowercase())
    }

    /// A table of the statement.
    pub(super) fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(&name.to_lowercase())
    }

    /// Whether it is a view.
    pub(super) fn is_view(&self, name: &str) -> bool {
        self.views.contains_key(&name.to_lowercase())
    }

    /// All of them.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// The columns that `*` stands for; `None`: they are not known.
    fn all_of(&self, name: &str) -> Option<Vec<Column>> {
        if let Some(table) = self.tables.get(name) {
            let columns = table.def().visible_columns();
            return Some(columns.map(|(at, column)| (column.name.clone(), known_type(table, at))).collect());
        }
        let view = self.views.get(name).cloned();
        let system = || system::columns_of(name).map(|(name, ty)| (name.to_owned(), Some(ty))).collect();
        Some(view.unwrap_or_else(system)).filter(|columns: &Vec<Column>| !columns.is_empty())
    }

    fn column_of(&self, table: &str, name: &str) -> Found {
        if let Some(of) = self.tables.get(table) {
            let hidden = || HIDDEN.iter().any(|(hidden, _, _)| hidden.eq_ignore_ascii_case(name));
            return match of.def().column_index(name) {
                Some(at) => Found::Is(known_type(of, at)),
                None if hidden() => Found::Is(self.column(name)),
                None => Found::No,
            };
        }
        let Some(columns) = self.all_of(table) else { return Found::Perhaps };
        match among(&columns, name) {
            Found::No if !self.views.contains_key(table) => hidden_in_system(name),
            found => found,
        }
    }
}

/// A column that `*` does not stand for, of a table of the catalogue.
fn hidden_in_system(name: &str) -> Found {
    let hidden = system::HIDDEN.iter().find(|(hidden, _)| hidden.eq_ignore_ascii_case(name));
    hidden.map_or(Found::No, |(_, ty)| Found::Is(Some(*ty)))
}

fn known_type(table: &Table, at: usize) -> Option<SqlType> {
    Some(table.column_type(at)).filter(|ty| *ty != SqlType::Unknown)
}

/// The columns of a view, with the types that they had when it was made: of the words that SQLite has for it not all
/// say theirs. What has no known type is a text to others, and may be anything here.
fn columns_of_view(catalog: &Catalog, view: &ViewDef, depth: usize) -> Vec<Column> {
    let told = |column: &ViewColumn| {
        SqlType::of_oid(column.ty).filter(|ty| !matches!(ty, SqlType::Text | SqlType::Unknown))
    };
    let all_told = !view.shape.is_empty() && view.shape.iter().all(|column| told(column).is_some());
    let columns = if all_told { None } else { super::columns_of_query(catalog, &view.sql, depth + 1) };
    let columns = columns.unwrap_or_default();
    if view.shape.is_empty() {
        return renamed(columns, &view.columns);
    }
    let found = |at: usize| columns.get(at).and_then(|(_, ty)| *ty);
    let shape = view.shape.iter().enumerate();
    shape.map(|(at, column)| (column.name.clone(), told(column).or_else(|| found(at)))).collect()
}

/// Columns under the first of these names.
fn renamed(mut columns: Vec<Column>, names: &[String]) -> Vec<Column> {
    for (column, name) in columns.iter_mut().zip(names) {
        column.0.clone_from(name);
    }
    columns
}

/// Whether a relation has a column of a name.
pub(super) enum Found {
    Is(Option<SqlType>),
    No,
    /// Its columns are not known.
    Perhaps,
}

fn among(columns: &[Column], name: &str) -> Found {
    let column = columns.iter().find(|(column, _)| column.eq_ignore_ascii_case(name));
    column.map_or(Found::No, |(_, ty)| Found::Is(*ty))
}

/// The type of a column that several relations have, as `USING` joins them.
fn merged(one: Option<SqlType>, other: Option<SqlType>) -> Option<SqlType> {
    if one == other { one } else { types::arithmetic(one, other) }
}

impl Translator<'_, '_> {
    /// The type of the column that a name means here; `None`: it is not known.
    pub(super) fn column_type(&self, qualifier: Option<&str>, name: &str) -> Option<SqlType> {
        match self.scoped(qualifier, name) {
            Found::Is(ty) => ty,
            Found::No | Found::Perhaps => {
                self.learned.get(&name.to_lowercase()).copied().or_else(|| self.names.column(name))
            }
        }
    }

    /// The same among what the statement lists around the place.
    fn scoped(&self, qualifier: Option<&str>, name: &str) -> Found {
        for relations in self.scopes.around() {
            let (mut found, mut named) = (Found::No, false);
            for relation in relations {
                if qualifier.is_some_and(|qualifier| !relation.name.eq_ignore_ascii_case(qualifier)) {
                    continue;
                }
                named = true;
                found = match (found, self.column_in(relation, name)) {
                    (Found::Is(one), Found::Is(other)) => Found::Is(merged(one, other)),
                    (Found::Is(ty), _) | (_, Found::Is(ty)) => Found::Is(ty),
                    (Found::No, other) => other,
                    (Found::Perhaps, _) => Found::Perhaps,
                };
            }
            match found {
                // The one that is meant has no such column.
                Found::No if named && qualifier.is_some() => return Found::Is(None),
                Found::No => {}
                found => return found,
            }
        }
        Found::No
    }

    /// Whether a name is one that a list gave and nothing else, in the `WHERE` beside that list.
    pub(super) fn is_given_alone(&self, name: &str) -> bool {
        self.given.contains(&name.to_lowercase())
            && !self.is_kept()
            && matches!(self.scoped(None, name), Found::No)
    }

    /// How many queries are around the one whose tables have the column that a name means. A name of which nothing is
    /// known is one of the innermost.
    pub(super) fn queries_around(&self, qualifier: Option<&str>, name: &str) -> usize {
        let queries = self.scopes.known().queries();
        let meant = |relations: &&[Relation]| match qualifier {
            Some(qualifier) => relations.iter().any(|relation| relation.name.eq_ignore_ascii_case(qualifier)),
            None => relations.iter().any(|relation| !matches!(self.column_in(relation, name), Found::No)),
        };
        let within = self.scopes.around().position(|relations| meant(&relations));
        queries - within.unwrap_or(0) - 1
    }

    /// Whether one of these relations has a column of this name, as far as that is known.
    pub(super) fn has_column(&self, relations: &[Relation], qualifier: Option<&str>, name: &str) -> bool {
        let meant =
            |relation: &&Relation| qualifier.is_none_or(|other| relation.name.eq_ignore_ascii_case(other));
        relations.iter().filter(meant).any(|relation| matches!(self.column_in(relation, name), Found::Is(_)))
    }

    /// The columns of the table that a name means, where no column is called so.
    pub(super) fn columns_of_row(&self, name: &str) -> Option<Vec<Column>> {
        for relations in self.scopes.around() {
            if self.has_column(relations, None, name) {
                return None;
            }
            let found = relations.iter().find(|relation| relation.name.eq_ignore_ascii_case(name));
            if let Some(relation) = found.filter(|relation| relation.row.is_none()) {
                return self.columns_in(relation);
            }
        }
        None
    }

    /// What a column of it is called in SQLite.
    pub(super) fn column_of_row(&self, table: &str, column: &str) -> String {
        let mut relations = self.scopes.around().flatten();
        let relation = relations.find(|relation| relation.name.eq_ignore_ascii_case(table));
        let own = relation.and_then(|relation| relation.renamed.iter().find(|(name, _)| name == column));
        own.map_or_else(|| column.to_owned(), |(_, own)| own.clone())
    }

    /// The type of a relation's column.
    pub(super) fn type_in(&self, relation: &Relation, name: &str) -> Option<SqlType> {
        match self.column_in(relation, name) {
            Found::Is(ty) => ty,
            Found::No | Found::Perhaps => None,
        }
    }

    pub(super) fn column_in(&self, relation: &Relation, name: &str) -> Found {
        match &relation.source {
            Source::Named(table) => self.names.column_of(table, name),
            Source::Query(Some(columns)) => among(columns, name),
            Source::Query(None) => Found::Perhaps,
        }
    }

    /// The columns of a relation; `None`: they are not known.
    pub(super) fn columns_in(&self, relation: &Relation) -> Option<Vec<Column>> {
        match &relation.source {
            Source::Named(table) => self.names.all_of(table),
            Source::Query(columns) => columns.clone(),
        }
    }

    /// What `*` or `qualifier.*` stands for here; `None`: that is not known. Columns that `USING` joins are there
    /// twice.
    pub(super) fn star(&self, qualifier: Option<&str>) -> Option<Vec<Column>> {
        let meant =
            |relation: &&Relation| qualifier.is_none_or(|name| relation.name.eq_ignore_ascii_case(name));
        let mut all = Vec::new();
        for relation in self.scopes.around().next()?.iter().filter(meant) {
            all.extend(self.columns_in(relation)?);
        }
        Some(all).filter(|all| !all.is_empty())
    }

    /// The columns of a query by its list.
    pub(super) fn columns_of_items(&self, items: &[Item]) -> Option<Vec<Column>> {
        let mut columns = Vec::new();
        for item in items {
            match (&item.columns, item.star) {
                (Some(all), true) => columns.extend(all.iter().cloned()),
                (None, true) => return None,
                (_, false) => {
                    let name = item.label.clone().unwrap_or_default();
                    columns.push((name, self.type_of(item)));
                }
            }
        }
        Some(columns)
    }

    /// The same under the first of these names, as a relation.
    pub(super) fn source_of_items(&self, items: &[Item], names: &[String]) -> Source {
        Source::Query(self.columns_of_items(items).map(|columns| renamed(columns, names)))
    }
}
