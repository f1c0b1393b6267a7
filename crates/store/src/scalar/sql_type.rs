//! PostgreSQL's types by their numbers and names: what clients are told about columns and parameters.

use crate::limits::ENUM_TYPES_MAX;

/// Writes the enum and the one table behind all questions about it.
macro_rules! types {
    ($($(#[$meta:meta])* $variant:ident $oid:literal $array:literal $name:literal $sql:literal $size:literal,)*) => {
        /// A type as PostgreSQL clients know it.
        ///
        /// It tells a client how to read a value, and the store which values a column takes. What is stored is one of
        /// the five kinds of [`Value`](crate::value::Value); `docs/tables.md` has the form for each type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SqlType {
            $($(#[$meta])* $variant,)*
            /// The enum type of this number, stored as its label.
            Enum(u16),
            /// An array of one of these: JSON text in the store, PostgreSQL's array on the wire.
            Array(Element),
        }

        /// What an array consists of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Element(u16);

        const TYPES: &[Facts] = &[
            $(Facts { ty: SqlType::$variant, oid: $oid, array: $array, name: $name, sql: $sql, size: $size },)*
        ];
    };
}

/// From here on an element is an enum type: its number follows.
const ENUM_ELEMENTS: u16 = 256;
/// The OIDs of enum types and of their arrays, in turn: above those of tables.
const ENUM_OIDS: u32 = 24_576;

/// What is known of every enum type. Its name is in the catalogue.
const ENUM: Facts = Facts { ty: SqlType::Enum(0), oid: 0, array: 0, name: "enum", sql: "enum", size: 4 };

/// What is known of a type.
struct Facts {
    ty: SqlType,
    oid: u32,
    /// The OID of the array of it; 0: there is none.
    array: u32,
    /// `pg_type.typname`
    name: &'static str,
    /// As SQL spells it.
    sql: &'static str,
    /// `pg_type.typlen`
    size: i16,
}

types! {
    /// True and false, stored as 1 and 0.
    Bool 16 1000 "bool" "boolean" 1,
    /// 16-bit integers.
    Int2 21 1005 "int2" "smallint" 2,
    /// 32-bit integers.
    Int4 23 1007 "int4" "integer" 4,
    /// 64-bit integers.
    Int8 20 1016 "int8" "bigint" 8,
    /// Floats that PostgreSQL keeps in 32 bits.
    Float4 700 1021 "float4" "real" 4,
    /// 64-bit floats.
    Float8 701 1022 "float8" "double precision" 8,
    /// Decimal numbers, stored as texts of all their digits.
    Numeric 1700 1231 "numeric" "numeric" -1,
    /// Text.
    Text 25 1009 "text" "text" -1,
    /// Text.
    Varchar 1043 1015 "varchar" "character varying" -1,
    /// Text.
    Bpchar 1042 1014 "bpchar" "character" -1,
    /// Bytes.
    Bytea 17 1001 "bytea" "bytea" -1,
    /// A moment, stored as text in UTC.
    Timestamptz 1184 1185 "timestamptz" "timestamp with time zone" 8,
    /// A date and a time of day without a zone.
    Timestamp 1114 1115 "timestamp" "timestamp without time zone" 8,
    /// A date.
    Date 1082 1182 "date" "date" 4,
    /// A time of day.
    Time 1083 1183 "time" "time without time zone" 8,
    /// A time of day with a zone.
    Timetz 1266 1270 "timetz" "time with time zone" 12,
    /// A span of time.
    Interval 1186 1187 "interval" "interval" 16,
    /// JSON text as it was written.
    Json 114 199 "json" "json" -1,
    /// JSON text without insignificant blanks.
    Jsonb 3802 3807 "jsonb" "jsonb" -1,
    /// A UUID, stored as text in lower case.
    Uuid 2950 2951 "uuid" "uuid" 16,
    /// Names in the catalogue.
    Name 19 1003 "name" "name" 64,
    /// Numbers of objects in the catalogue.
    Oid 26 1028 "oid" "oid" 4,
    /// One byte in the catalogue.
    Char 18 1002 "char" "\"char\"" 1,
    /// Network addresses, stored as text.
    Inet 869 1041 "inet" "inet" -1,
    /// Networks, stored as text.
    Cidr 650 651 "cidr" "cidr" -1,
    /// XML, stored as text.
    Xml 142 143 "xml" "xml" -1,
    /// A table's number, written as its name.
    Regclass 2205 2210 "regclass" "regclass" 4,
    /// A type's number, written as its name.
    Regtype 2206 2211 "regtype" "regtype" 4,
    /// A function's number, written as its name.
    Regproc 24 1008 "regproc" "regproc" 4,
    /// A role's number, written as its name.
    Regrole 4096 4097 "regrole" "regrole" 4,
    /// A schema's number, written as its name.
    Regnamespace 4089 4090 "regnamespace" "regnamespace" 4,
    /// Numbers of transactions in the catalogue.
    Xid 28 1011 "xid" "xid" 4,
    /// Lists of columns in the catalogue.
    Int2Vector 22 1006 "int2vector" "int2vector" -1,
    /// Lists of objects in the catalogue.
    OidVector 30 1013 "oidvector" "oidvector" -1,
    /// Expressions in the catalogue.
    PgNodeTree 194 0 "pg_node_tree" "pg_node_tree" -1,
    /// Privileges in the catalogue.
    Aclitem 1033 1034 "aclitem" "aclitem" 12,
    /// Not known: a text whose use decides.
    Unknown 705 0 "unknown" "unknown" -2,
    /// Nothing.
    Void 2278 0 "void" "void" 4,
}

impl SqlType {
    fn facts(self) -> &'static Facts {
        if self.enumeration().is_some() {
            return &ENUM;
        }
        let known = TYPES.iter().find(|facts| facts.ty == self.scalar());
        // Every variant has its line: the macro writes both.
        known.unwrap_or(&TYPES[0])
    }

    /// The number of the enum type that it is, or of which it is an array.
    pub fn enumeration(self) -> Option<u16> {
        match self {
            Self::Enum(id) => Some(id),
            Self::Array(Element(at)) => at.checked_sub(ENUM_ELEMENTS),
            _ => None,
        }
    }

    /// The array of an enum type.
    pub fn array_of_enum(id: u16) -> Self {
        Self::Array(Element(id.saturating_add(ENUM_ELEMENTS)))
    }

    /// The type itself, or an array's element.
    #[must_use]
    pub fn scalar(self) -> Self {
        match self {
            Self::Array(Element(at)) if at >= ENUM_ELEMENTS => Self::Enum(at - ENUM_ELEMENTS),
            Self::Array(Element(at)) => TYPES.get(usize::from(at)).map_or(Self::Text, |facts| facts.ty),
            other => other,
        }
    }

    /// Whether it is one of the types of numbers, of which PostgreSQL compares each with each other.
    pub fn is_number(self) -> bool {
        use SqlType::{Float4, Float8, Int2, Int4, Int8, Numeric};
        matches!(self, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric)
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// The array of this type; `None` where PostgreSQL has none, or where it is one already.
    pub fn array(self) -> Option<Self> {
        if let Self::Enum(id) = self {
            return Some(Self::array_of_enum(id));
        }
        let at = TYPES.iter().position(|facts| facts.ty == self && facts.array != 0)?;
        u16::try_from(at).ok().map(|at| Self::Array(Element(at)))
    }

    /// Its OID (`pg_type.oid`).
    pub fn oid(self) -> u32 {
        if let Some(id) = self.enumeration() {
            return ENUM_OIDS + 2 * u32::from(id) + u32::from(self.is_array());
        }
        if self.is_array() { self.facts().array } else { self.facts().oid }
    }

    /// The type with an OID.
    pub fn of_oid(oid: u32) -> Option<Self> {
        if let Some(id) = oid.checked_sub(ENUM_OIDS).and_then(|at| u16::try_from(at / 2).ok())
            && usize::from(id) <= ENUM_TYPES_MAX
        {
            return Some(if oid.is_multiple_of(2) { Self::Enum(id) } else { Self::array_of_enum(id) });
        }
        let facts = TYPES.iter().find(|facts| oid != 0 && (facts.oid == oid || facts.array == oid))?;
        if facts.oid == oid { Some(facts.ty) } else { facts.ty.array() }
    }

    /// Its name in `pg_type.typname`, without the underscore that begins an array's.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Its name as SQL spells it: `bigint`, `timestamp with time zone`, `text[]`.
    pub fn sql_name(self) -> String {
        let brackets = if self.is_array() { "[]" } else { "" };
        format!("{}{brackets}", self.facts().sql)
    }

    /// The bytes that PostgreSQL gives it (`pg_type.typlen`); -1: any number.
    pub fn size(self) -> i16 {
        if self.is_array() { -1 } else { self.facts().size }
    }

    /// All types that are not arrays, but for enum types.
    pub fn all() -> impl Iterator<Item = Self> {
        TYPES.iter().map(|facts| facts.ty)
    }
}
