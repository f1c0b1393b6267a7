//! What is the same in every daemon: schemas, roles, methods, the database itself.

use store::definition::{EnumDef, ViewDef, Wrapper};
use store::value::Value;
use store::{BUILT_IN, Catalog, Table};

use super::super::System;
use super::super::columns::Schema;
use super::super::comments::CLASSES;
use super::super::oid::{Named, oid_of_name, oid_of_table};
use super::super::relation::{BTREE, GIN, HASH};
use super::super::rows::{Rows, flag, int, text};

/// The role that owns everything: PostgreSQL's first.
pub(crate) use crate::system::server::OWNER;
/// `pg_catalog`
pub(super) const CATALOG: u32 = 11;
/// The schema of users' tables.
pub(crate) const PUBLIC: u32 = 2_200;
/// Its name.
pub(crate) const PUBLIC_NAME: &str = "public";
/// The schema of the built-in table, which tools that compare or empty the schema of users' tables leave alone.
const OWN: u32 = 13_300;
/// Its name. Its table is found without it, as those of `pg_catalog` are.
pub(crate) const OWN_NAME: &str = "sqlcached";
/// `information_schema`
pub(super) const INFORMATION: u32 = 13_207;
/// The one database.
pub(super) const DATABASE: u32 = 5;
/// The table method, which PostgreSQL calls heap: rows in memory that may expire.
pub(super) const CACHE_METHOD: u32 = 2;
/// Text is compared by its bytes.
pub(super) const DEFAULT_COLLATION: u32 = 100;
/// The one place.
pub(super) const TABLESPACE: u32 = 1_663;
/// PostgreSQL's number of UTF-8.
pub(crate) const UTF8: i64 = 6;

/// The numbers of `pg_namespace` and `pg_extension`.
const NAMESPACE_CLASS: u32 = 2_615;
const EXTENSION_CLASS: u32 = 3_079;
/// The same of `pg_foreign_data_wrapper`.
const WRAPPER_CLASS: u32 = 2_328;

/// The number of a foreign-data wrapper: no table and no function has it.
pub(super) fn wrapper_oid(wrapper: Wrapper) -> u32 {
    match wrapper {
        Wrapper::Postgres => 13_400,
        Wrapper::MariaDb => 13_401,
        Wrapper::Nats => 13_402,
    }
}

/// Every schema that is always there, with its number.
const NAMESPACES: &[(u32, &str)] =
    &[(CATALOG, "pg_catalog"), (PUBLIC, PUBLIC_NAME), (INFORMATION, "information_schema"), (OWN, OWN_NAME)];

/// The name of the schema in which clients find a table.
pub(crate) fn schema_of(table: &Table) -> &str {
    if table.name() == BUILT_IN { OWN_NAME } else { named(table.def().namespace.as_ref()) }
}

/// The same of a view.
pub(crate) fn schema_of_view(view: &ViewDef) -> &str {
    named(view.namespace.as_ref())
}

/// The same of an enum type.
pub(super) fn schema_of_enum(own: &EnumDef) -> &str {
    named(own.namespace.as_ref())
}

fn named(namespace: Option<&String>) -> &str {
    namespace.map_or(PUBLIC_NAME, String::as_str)
}

/// The number of the schema in which clients find a table.
pub(super) fn namespace_of_table(table: &Table) -> u32 {
    namespace_named(schema_of(table))
}

/// The number of a schema that is there.
pub(super) fn namespace_named(name: &str) -> u32 {
    let known = NAMESPACES.iter().find(|(_, known)| *known == name);
    known.map_or_else(|| oid_of_name(Named::Schema, 0, name), |(oid, _)| *oid)
}

/// The names of all schemas.
pub(crate) fn namespace_names(catalog: &Catalog) -> impl Iterator<Item = String> {
    let users = catalog.namespaces().iter().map(|own| own.name.clone());
    let all: Vec<String> = NAMESPACES.iter().map(|(_, name)| (*name).to_owned()).chain(users).collect();
    all.into_iter()
}

/// The number of a schema by its name.
pub(crate) fn namespace_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let known = namespace_names(catalog).find(|known| known.eq_ignore_ascii_case(name));
    known.map(|name| namespace_named(&name))
}

/// The name of a schema by its number.
pub(crate) fn namespace_name(catalog: &Catalog, oid: u32) -> Option<String> {
    namespace_names(catalog).find(|name| namespace_named(name) == oid)
}

pub(super) fn namespace_of(schema: Schema) -> u32 {
    match schema {
        Schema::Catalog => CATALOG,
        Schema::Information => INFORMATION,
    }
}

/// PostgreSQL's role that owns `public`. The database's owner is its only member.
pub(crate) const DATABASE_OWNER: u32 = 6_171;
/// Its name.
pub(crate) const DATABASE_OWNER_NAME: &str = "pg_database_owner";

/// `pg_namespace`
pub(super) fn namespaces(system: &System, rows: &mut Rows) {
    for name in namespace_names(&system.catalog()) {
        rows.add([
            ("oid", int(namespace_named(&name))),
            ("nspname", text(&name)),
            ("nspowner", int(if name == PUBLIC_NAME { DATABASE_OWNER } else { OWNER })),
            ("nspacl", super::grants::of_schema(system, &name)),
        ]);
    }
}

/// `pg_database`
pub(super) fn databases(system: &System, rows: &mut Rows) {
    rows.add([
        ("oid", int(DATABASE)),
        ("datname", text(&system.identity().database)),
        ("datdba", int(OWNER)),
        ("encoding", int(UTF8)),
        ("datlocprovider", text("c")),
        ("datallowconn", flag(true)),
        ("datconnlimit", int(-1)),
        ("dattablespace", int(TABLESPACE)),
        ("datcollate", text("C")),
        ("datctype", text("C.UTF-8")),
    ]);
}

/// `pg_am`
pub(super) fn access_methods(_: &System, rows: &mut Rows) {
    for (oid, name, kind) in
        [(CACHE_METHOD, "cache", "t"), (BTREE, "btree", "i"), (HASH, "hash", "i"), (GIN, "gin", "i")]
    {
        rows.add([("oid", int(oid)), ("amname", text(name)), ("amtype", text(kind))]);
    }
}

/// `pg_collation`
pub(super) fn collations(_: &System, rows: &mut Rows) {
    for (oid, name, locale) in [(DEFAULT_COLLATION, "default", None), (950, "C", Some("C"))] {
        rows.add([
            ("oid", int(oid)),
            ("collname", text(name)),
            ("collnamespace", int(CATALOG)),
            ("collowner", int(OWNER)),
            ("collprovider", text(if locale.is_none() { "d" } else { "c" })),
            ("collisdeterministic", flag(true)),
            ("collencoding", int(-1)),
            ("collcollate", locale.map_or(Value::Null, text)),
            ("collctype", locale.map_or(Value::Null, text)),
        ]);
    }
}

/// The number of the extension that the server's own objects are said to be of.
const EXTENSION: u32 = 13_301;

/// `pg_extension`: what belongs to one is left out by tools that dump or compare.
pub(super) fn extensions(_: &System, rows: &mut Rows) {
    rows.add([
        ("oid", int(EXTENSION)),
        ("extname", text(OWN_NAME)),
        ("extowner", int(OWNER)),
        ("extnamespace", int(OWN)),
        ("extversion", text(env!("CARGO_PKG_VERSION"))),
    ]);
}

/// The server's own objects among `pg_depend`.
pub(super) fn extension_members(catalog: &Catalog, rows: &mut Rows) {
    let own = [(NAMESPACE_CLASS, OWN), (CLASSES, oid_of_table(catalog.built_in()))];
    let wrappers = Wrapper::ALL.map(|wrapper| (WRAPPER_CLASS, wrapper_oid(wrapper)));
    for (class, object) in own.into_iter().chain(wrappers) {
        rows.add([
            ("classid", int(class)),
            ("objid", int(object)),
            ("refclassid", int(EXTENSION_CLASS)),
            ("refobjid", int(EXTENSION)),
            ("deptype", text("e")),
        ]);
    }
}

/// `pg_language`
pub(super) fn languages(_: &System, rows: &mut Rows) {
    rows.add([("oid", int(12)), ("lanname", text("internal")), ("lanowner", int(OWNER))]);
    let sql = [("lanname", text("sql")), ("lanowner", int(OWNER)), ("lanpltrusted", flag(true))];
    rows.add([("oid", int(LANGUAGE_SQL))].into_iter().chain(sql));
}

/// PostgreSQL's number of the language SQL.
pub(super) const LANGUAGE_SQL: u32 = 14;

/// `pg_tablespace`
pub(super) fn tablespaces(_: &System, rows: &mut Rows) {
    rows.add([("oid", int(TABLESPACE)), ("spcname", text("pg_default")), ("spcowner", int(OWNER))]);
}

/// `pg_opclass`: one for each index method, for all types compare by their own order.
pub(super) fn operator_classes(_: &System, rows: &mut Rows) {
    for (oid, method) in [(1, BTREE), (2, HASH), (3, GIN)] {
        rows.add([
            ("oid", int(oid)),
            ("opcmethod", int(method)),
            ("opcname", text("any_ops")),
            ("opcnamespace", int(CATALOG)),
            ("opcowner", int(OWNER)),
            ("opcdefault", flag(true)),
        ]);
    }
}
