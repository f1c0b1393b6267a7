//! Types and functions.

use store::definition::SqlType;
use store::value::Value;

use super::super::System;
use super::super::oid::{Named, oid_of_name};
use super::super::rows::{Rows, flag, int, text};
use super::fixed::{CATALOG, DEFAULT_COLLATION, OWNER, namespace_named, schema_of_enum};

/// PostgreSQL's pseudo-type of a row of any columns, which functions return.
pub(in crate::system) const RECORD: u32 = 2_249;

/// What PostgreSQL says of a type beside its name and size.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeFacts {
    pub by_value: bool,
    /// `c`, `s`, `i` or `d`: one, two, four or eight bytes.
    pub align: &'static str,
    /// `p`, `m` or `x`: where long values may be kept.
    pub storage: &'static str,
    pub category: &'static str,
    /// The type that its category prefers.
    pub preferred: bool,
    pub collated: bool,
}

/// What PostgreSQL says of a type.
pub(super) fn facts_of(ty: SqlType) -> TypeFacts {
    use SqlType as T;
    if ty.is_array() {
        return of("i", "x", "A");
    }
    match ty {
        T::Enum(_) => value("i", "E"),
        T::Bool => value("c", "B").preferred(),
        T::Int2 => value("s", "N"),
        T::Int4 | T::Float4 | T::Regclass | T::Regtype | T::Regproc | T::Regrole | T::Regnamespace => {
            value("i", "N")
        }
        T::Int8 => value("d", "N"),
        T::Oid => value("i", "N").preferred(),
        T::Float8 => value("d", "N").preferred(),
        T::Numeric => of("i", "m", "N"),
        T::Text => of("i", "x", "S").preferred().collated(),
        T::Varchar | T::Bpchar => of("i", "x", "S").collated(),
        T::Name => of("c", "p", "S"),
        T::Timestamptz => value("d", "D").preferred(),
        T::Timestamp | T::Time => value("d", "D"),
        T::Date => value("i", "D"),
        T::Timetz => of("d", "p", "D"),
        T::Interval => of("d", "p", "T").preferred(),
        T::Uuid => of("c", "p", "U"),
        T::Char => value("c", "Z"),
        T::Inet => of("i", "m", "I").preferred(),
        T::Cidr => of("i", "m", "I"),
        T::Xid => value("i", "U"),
        T::Int2Vector | T::OidVector => of("i", "p", "A"),
        T::PgNodeTree => of("i", "x", "Z"),
        T::Aclitem => of("i", "p", "U"),
        T::Unknown => of("c", "p", "X"),
        T::Void => value("i", "P"),
        _ => of("i", "x", "U"),
    }
}

fn of(align: &'static str, storage: &'static str, category: &'static str) -> TypeFacts {
    TypeFacts { by_value: false, align, storage, category, preferred: false, collated: false }
}

fn value(align: &'static str, category: &'static str) -> TypeFacts {
    TypeFacts { by_value: true, ..of(align, "p", category) }
}

impl TypeFacts {
    fn preferred(self) -> Self {
        Self { preferred: true, ..self }
    }

    fn collated(self) -> Self {
        Self { collated: true, ..self }
    }
}

/// What a vector of the catalogue consists of.
fn element_of(ty: SqlType) -> Option<SqlType> {
    match ty {
        SqlType::Int2Vector => Some(SqlType::Int2),
        SqlType::OidVector => Some(SqlType::Oid),
        array if array.is_array() => Some(array.scalar()),
        _ => None,
    }
}

/// `pg_type`
pub(super) fn types(system: &System, rows: &mut Rows) {
    for ty in SqlType::all() {
        type_rows(ty, ty.name(), CATALOG, rows);
    }
    for own in system.catalog().enums().iter() {
        type_rows(SqlType::Enum(own.id), own.own_name(), namespace_named(schema_of_enum(own)), rows);
    }
    rows.add([
        ("oid", int(RECORD)),
        ("typname", text("record")),
        ("typnamespace", int(CATALOG)),
        ("typowner", int(OWNER)),
        ("typlen", int(-1)),
        ("typtype", text("p")),
        ("typcategory", text("P")),
        ("typisdefined", flag(true)),
        ("typdelim", text(",")),
        ("typsubscript", text("-")),
        ("typinput", text("record_in")),
        ("typoutput", text("record_out")),
        ("typreceive", text("record_recv")),
        ("typsend", text("record_send")),
        ("typmodin", text("-")),
        ("typmodout", text("-")),
        ("typanalyze", text("-")),
        ("typalign", text("d")),
        ("typstorage", text("x")),
        ("typtypmod", int(-1)),
        ("typdefault", Value::Null),
    ]);
}

/// A type and its array.
fn type_rows(ty: SqlType, name: &str, namespace: u32, rows: &mut Rows) {
    type_row(ty, name, namespace, rows);
    if let Some(array) = ty.array() {
        type_row(array, &format!("_{name}"), namespace, rows);
    }
}

/// `pg_enum`
pub(super) fn labels(system: &System, rows: &mut Rows) {
    for own in system.catalog().enums().iter() {
        let ty = SqlType::Enum(own.id).oid();
        for (at, label) in own.labels.iter().enumerate() {
            rows.add([
                ("oid", int(oid_of_name(Named::Label, ty, label))),
                ("enumtypid", int(ty)),
                ("enumsortorder", Value::Real(at as f64 + 1.0)),
                ("enumlabel", text(label)),
            ]);
        }
    }
}

fn type_row(ty: SqlType, name: &str, namespace: u32, rows: &mut Rows) {
    let facts = facts_of(ty);
    let is_enum = matches!(ty, SqlType::Enum(_));
    let kind = match ty {
        SqlType::Unknown | SqlType::Void => "p",
        _ if is_enum => "e",
        _ => "b",
    };
    // Clients tell arrays by this function, and choose between the text form and the binary one by the others.
    let function = |suffix: &str| match ty {
        array if array.is_array() => text(&format!("array_{suffix}")),
        other => text(&format!("{}{}{suffix}", other.name(), if spaced(other) { "_" } else { "" })),
    };
    rows.add([
        ("oid", int(ty.oid())),
        ("typname", text(name)),
        ("typnamespace", int(namespace)),
        ("typowner", int(OWNER)),
        ("typlen", int(ty.size())),
        ("typbyval", flag(facts.by_value)),
        ("typtype", text(kind)),
        ("typcategory", text(facts.category)),
        ("typispreferred", flag(facts.preferred)),
        ("typisdefined", flag(true)),
        ("typdelim", text(",")),
        ("typsubscript", if element_of(ty).is_some() { text("array_subscript_handler") } else { text("-") }),
        ("typelem", int(element_of(ty).map_or(0, SqlType::oid))),
        ("typarray", int(ty.array().map_or(0, SqlType::oid))),
        ("typinput", function("in")),
        ("typoutput", function("out")),
        ("typreceive", function("recv")),
        ("typsend", function("send")),
        ("typmodin", text("-")),
        ("typmodout", text("-")),
        ("typanalyze", text("-")),
        ("typalign", text(facts.align)),
        ("typstorage", text(facts.storage)),
        ("typtypmod", int(-1)),
        ("typcollation", int(if facts.collated { DEFAULT_COLLATION } else { 0 })),
        ("typdefault", Value::Null),
    ]);
}

/// Types whose functions are called `uuid_in` and not `uuidin`.
fn spaced(ty: SqlType) -> bool {
    use SqlType as T;
    if matches!(ty, T::Enum(_)) {
        return true;
    }
    [
        T::Json,
        T::Jsonb,
        T::Uuid,
        T::Inet,
        T::Cidr,
        T::Xml,
        T::Date,
        T::Time,
        T::Timestamp,
        T::Timestamptz,
        T::Timetz,
        T::Interval,
        T::Numeric,
        T::PgNodeTree,
        T::Void,
    ]
    .contains(&ty)
}
