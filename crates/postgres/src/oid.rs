//! Object identifiers of the types that values travel as; PostgreSQL's own, which drivers know by heart.

#![allow(missing_docs, reason = "each is the type of its name")]

pub const BOOL: u32 = 16;
pub const BYTEA: u32 = 17;
pub const CHAR: u32 = 18;
pub const NAME: u32 = 19;
pub const INT8: u32 = 20;
pub const INT2: u32 = 21;
pub const INT4: u32 = 23;
pub const TEXT: u32 = 25;
pub const OID: u32 = 26;
pub const JSON: u32 = 114;
pub const CIDR: u32 = 650;
pub const FLOAT4: u32 = 700;
pub const FLOAT8: u32 = 701;
pub const UNKNOWN: u32 = 705;
pub const INET: u32 = 869;
pub const BPCHAR: u32 = 1042;
pub const VARCHAR: u32 = 1043;
pub const DATE: u32 = 1082;
pub const TIME: u32 = 1083;
pub const TIMESTAMP: u32 = 1114;
pub const TIMESTAMPTZ: u32 = 1184;
pub const INTERVAL: u32 = 1186;
pub const TIMETZ: u32 = 1266;
pub const NUMERIC: u32 = 1700;
pub const UUID: u32 = 2950;
pub const JSONB: u32 = 3802;

pub const BOOL_ARRAY: u32 = 1000;
pub const BYTEA_ARRAY: u32 = 1001;
pub const NAME_ARRAY: u32 = 1003;
pub const INT2_ARRAY: u32 = 1005;
pub const INT4_ARRAY: u32 = 1007;
pub const TEXT_ARRAY: u32 = 1009;
pub const BPCHAR_ARRAY: u32 = 1014;
pub const VARCHAR_ARRAY: u32 = 1015;
pub const INT8_ARRAY: u32 = 1016;
pub const FLOAT4_ARRAY: u32 = 1021;
pub const FLOAT8_ARRAY: u32 = 1022;
pub const OID_ARRAY: u32 = 1028;
pub const TIMESTAMP_ARRAY: u32 = 1115;
pub const DATE_ARRAY: u32 = 1182;
pub const TIMESTAMPTZ_ARRAY: u32 = 1185;
pub const NUMERIC_ARRAY: u32 = 1231;
pub const UUID_ARRAY: u32 = 2951;
pub const JSON_ARRAY: u32 = 199;
pub const JSONB_ARRAY: u32 = 3807;

/// Arrays that few have, with their elements: of spans, times of day and addresses, and of the catalogue's `"char"`,
/// `aclitem` and `regtype`.
const RARE: &[(u32, u32)] = &[
    (1187, INTERVAL),
    (1183, TIME),
    (1270, TIMETZ),
    (1041, INET),
    (651, CIDR),
    (1002, 18),
    (1034, 1033),
    (2211, 2206),
];

/// The numbers of enum types and, one more, of their arrays.
pub const ENUMS: std::ops::Range<u32> = 24_576..26_624;

/// The type of an array's elements; none for what is no array.
pub fn element_of(array: u32) -> Option<u32> {
    Some(match array {
        array if ENUMS.contains(&array) && !array.is_multiple_of(2) => array - 1,
        BOOL_ARRAY => BOOL,
        BYTEA_ARRAY => BYTEA,
        NAME_ARRAY => NAME,
        INT2_ARRAY => INT2,
        INT4_ARRAY => INT4,
        TEXT_ARRAY => TEXT,
        BPCHAR_ARRAY => BPCHAR,
        VARCHAR_ARRAY => VARCHAR,
        INT8_ARRAY => INT8,
        FLOAT4_ARRAY => FLOAT4,
        FLOAT8_ARRAY => FLOAT8,
        OID_ARRAY => OID,
        TIMESTAMP_ARRAY => TIMESTAMP,
        DATE_ARRAY => DATE,
        TIMESTAMPTZ_ARRAY => TIMESTAMPTZ,
        NUMERIC_ARRAY => NUMERIC,
        UUID_ARRAY => UUID,
        JSON_ARRAY => JSON,
        JSONB_ARRAY => JSONB,
        _ => return RARE.iter().find(|known| known.0 == array).map(|known| known.1),
    })
}

/// Its name in error messages.
pub fn name(oid: u32) -> &'static str {
    match oid {
        BOOL => "boolean",
        BYTEA => "bytea",
        INT8 => "bigint",
        INT2 => "smallint",
        INT4 => "integer",
        OID => "oid",
        JSON => "json",
        JSONB => "jsonb",
        FLOAT4 => "real",
        FLOAT8 => "double precision",
        DATE => "date",
        TIME => "time",
        TIMESTAMP => "timestamp",
        TIMESTAMPTZ => "timestamp with time zone",
        TIMETZ => "time with time zone",
        INET => "inet",
        CIDR => "cidr",
        INTERVAL => "interval",
        NUMERIC => "numeric",
        UUID => "uuid",
        _ => "text",
    }
}
