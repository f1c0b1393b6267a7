//! What operators make of types.

use store::definition::SqlType;

use super::out::{Form, Out};

/// The function that converts to a type.
pub(super) fn cast_name(ty: SqlType) -> String {
    if ty.is_array() { "cast_array".to_owned() } else { format!("cast_{}", ty.name().trim_matches('"')) }
}

pub(super) fn is_integer(ty: SqlType) -> bool {
    matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
}

pub(super) fn is_text(ty: SqlType) -> bool {
    matches!(ty, SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name | SqlType::Xml)
}

pub(super) fn is_moment(ty: Option<SqlType>) -> bool {
    matches!(
        ty,
        Some(
            SqlType::Timestamptz
                | SqlType::Timestamp
                | SqlType::Date
                | SqlType::Time
                | SqlType::Interval
                | SqlType::Timetz
        )
    )
}

/// Whether a value of the first type becomes one of the second before they are compared.
pub(super) fn widens(from: SqlType, to: SqlType) -> bool {
    matches!(
        (from, to),
        (SqlType::Date, SqlType::Timestamp | SqlType::Timestamptz)
            | (SqlType::Timestamp, SqlType::Timestamptz)
    )
}

/// Whether a value of one of two types becomes one of the other before they are compared.
pub(super) fn one_widens(one: Option<SqlType>, other: Option<SqlType>) -> bool {
    one.zip(other).is_some_and(|(one, other)| widens(one, other) || widens(other, one))
}

/// The type that moments of two types have together; of other types the first.
pub(super) fn wider_moment(one: SqlType, other: SqlType) -> SqlType {
    if widens(one, other) { other } else { one }
}

/// Whether PostgreSQL's conversion of a value to a column's type changes it, where the store would take it as it is: a
/// fraction is rounded, a truth becomes a word, a moment one without its zone or time.
pub(super) fn converts_on_assignment(from: Option<SqlType>, to: SqlType) -> bool {
    use SqlType::{
        Bool, Bpchar, Date, Float4, Float8, Int2, Int4, Int8, Name, Numeric, Text, Time, Timestamp,
        Timestamptz, Timetz, Varchar,
    };
    matches!(
        (from, to),
        (Some(Numeric | Float4 | Float8), Int2 | Int4 | Int8)
            | (Some(Bool | Timestamptz | Timetz), Text | Varchar | Bpchar | Name)
            | (Some(Timestamptz), Timestamp | Date | Time)
            | (Some(Timestamp), Timestamptz | Date | Time)
            | (Some(Date), Timestamp | Timestamptz)
    ) || (from.is_some_and(SqlType::is_array) && is_text(to))
}

/// What is known of a value that is one of several results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) ty: Option<SqlType>,
    /// Whether it may be anything.
    unknown: bool,
    /// Whether it is a text literal of no type...
    literal: bool,
    /// ...that is a number.
    number: bool,
}

impl Told {
    pub(super) fn of(out: &Out<'_>) -> Self {
        let text = match &*out.form {
            Form::Literal(text) if out.ty.is_none() => Some(text.trim()),
            Form::List(parts) if parts.len() == 1 && out.ty.is_none() => return Self::of(&parts[0]),
            _ => None,
        };
        let number = text.is_some_and(|text| text.parse::<f64>().is_ok_and(f64::is_finite));
        let says_nothing = matches!(*out.form, Form::Null | Form::Literal(_) | Form::Parameter(_));
        Self { ty: out.ty, unknown: out.ty.is_none() && !says_nothing, literal: text.is_some(), number }
    }

    /// Whether it is a literal, NULL or a parameter whose type nothing says.
    pub(super) fn is_open(self) -> bool {
        self.ty.is_none() && !self.unknown
    }

    /// Whether it is a text, or may be nothing else: where PostgreSQL takes a text or a number, a literal is a text.
    pub(super) fn is_pattern(self) -> bool {
        self.literal || self.ty.is_some_and(is_text)
    }

    /// Whether it is a text that has no type by itself.
    pub(super) fn is_literal(self) -> bool {
        self.literal && self.ty.is_none()
    }

    pub(super) fn is_json(self) -> bool {
        matches!(self.ty, Some(SqlType::Json | SqlType::Jsonb))
    }

    /// What is known of a value that is one or the other.
    pub(super) fn or(self, other: Self) -> Self {
        let ty = common(&[self, other]);
        let literal = ty.is_none() && (self.literal || other.literal);
        let unknown = ty.is_none() && (self.unknown || other.unknown);
        Self {
            ty,
            unknown,
            literal,
            number: literal && [self, other].iter().all(|told| told.number || !told.literal),
        }
    }
}

/// What a column is told as that holds any of these values; what has no type, as NULL, says nothing.
pub(super) fn common(values: &[Told]) -> Option<SqlType> {
    let ty = values.iter().filter_map(|value| value.ty).reduce(shared)?;
    let fits = |value: &Told| {
        // A truth has two values: a number among these would be sent as one of them.
        let may_be_truth = ty != SqlType::Bool || !value.unknown;
        let number = || value.number || arithmetic(Some(ty), Some(ty)).is_none();
        may_be_truth && (!value.literal || (ty != SqlType::Bool && number()))
    };
    Some(if values.iter().all(fits) { ty } else { SqlType::Text })
}

/// What the values of a type are. Those of two kinds have no operator in common, and no type that has both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Truths are numbers here.
    Number,
    Text,
    Bytes,
    Calendar,
    /// A time of the day is a span, too.
    Span,
    Json,
    Uuid,
    Network,
    Enum(SqlType),
}

impl Kind {
    /// That of a type which is no array; `None`: its values may mean anything.
    fn of(ty: SqlType) -> Option<Self> {
        use SqlType::{
            Aclitem, Bool, Bpchar, Bytea, Char, Cidr, Date, Enum, Float4, Float8, Inet, Int2, Int2Vector,
            Int4, Int8, Interval, Json, Jsonb, Name, Numeric, Oid, OidVector, PgNodeTree, Regclass,
            Regnamespace, Regproc, Regrole, Regtype, Text, Time, Timestamp, Timestamptz, Timetz, Unknown,
            Uuid, Varchar, Void, Xid, Xml,
        };
        Some(match ty {
            Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric => Self::Number,
            Text | Varchar | Bpchar | Name | Xml => Self::Text,
            Bytea => Self::Bytes,
            Date | Timestamp | Timestamptz => Self::Calendar,
            Time | Timetz | Interval => Self::Span,
            Json | Jsonb => Self::Json,
            Uuid => Self::Uuid,
            Inet | Cidr => Self::Network,
            Enum(_) => Self::Enum(ty),
            Oid
            | Xid
            | Regclass
            | Regtype
            | Regproc
            | Regrole
            | Regnamespace
            | Char
            | Int2Vector
            | OidVector
            | PgNodeTree
            | Aclitem
            | Unknown
            | Void
            | SqlType::Array(_) => return None,
        })
    }
}

/// Whether the values of two types are of kinds that have nothing in common. A text may stand for a value of any
/// other kind, and JSON for an array, which it is in a view that was stored.
pub(super) fn are_strangers(one: SqlType, other: SqlType) -> bool {
    if one.is_array() != other.is_array() {
        let alone = if one.is_array() { other } else { one };
        return !matches!(Kind::of(alone), None | Some(Kind::Text | Kind::Json));
    }
    if one.is_array() {
        return have_no_type(one.scalar(), other.scalar());
    }
    match (Kind::of(one), Kind::of(other)) {
        // No text has the bytes that it is written with.
        (Some(Kind::Text), Some(Kind::Bytes)) | (Some(Kind::Bytes), Some(Kind::Text)) => true,
        (Some(Kind::Text), _) | (_, Some(Kind::Text)) => false,
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// Whether nothing is computed with values of a type as with numbers. A text may be one.
pub(super) fn is_no_number(ty: SqlType) -> bool {
    are_strangers(ty, SqlType::Int4)
}

/// Whether no column or result may have values of both types: strangers, or a text beside anything else.
pub(super) fn have_no_type(one: SqlType, other: SqlType) -> bool {
    let is_text = |ty: SqlType| !ty.is_array() && Kind::of(ty) == Some(Kind::Text);
    let beside = |text: SqlType, other: SqlType| {
        is_text(text)
            && other != SqlType::Bool
            && (other.is_array() || Kind::of(other).is_some())
            && !is_text(other)
    };
    are_strangers(one, other) || beside(one, other) || beside(other, one)
}

/// Two types among those of several values that no column or result may have together.
pub(super) fn mismatch(types: impl Iterator<Item = Option<SqlType>>) -> Option<(SqlType, SqlType)> {
    let mut common: Option<SqlType> = None;
    for ty in types.flatten() {
        match common {
            Some(other) if have_no_type(other, ty) => return Some((other, ty)),
            Some(other) => common = Some(shared(other, ty)),
            None => common = Some(ty),
        }
    }
    None
}

/// The wider of two numbers or moments; text, as which everything can be told, where they have nothing in common.
pub(super) fn shared(left: SqlType, right: SqlType) -> SqlType {
    let number = |ty| arithmetic(Some(ty), Some(ty)).is_some();
    match (left, right) {
        _ if left == right || left.is_array() || widens(right, left) => left,
        (SqlType::Bool, other) | (other, SqlType::Bool) if number(other) => other,
        _ if widens(left, right) => right,
        _ => arithmetic(Some(left), Some(right)).unwrap_or(SqlType::Text),
    }
}

/// The type of a sum, difference, product or quotient of numbers.
pub(super) fn arithmetic(left: Option<SqlType>, right: Option<SqlType>) -> Option<SqlType> {
    const RANKS: [SqlType; 6] =
        [SqlType::Int2, SqlType::Int4, SqlType::Int8, SqlType::Numeric, SqlType::Float4, SqlType::Float8];
    let rank = |ty: SqlType| RANKS.iter().position(|ranked| *ranked == ty);
    match (left, right) {
        (Some(left), Some(right)) => RANKS.get(rank(left)?.max(rank(right)?)).copied(),
        _ => None,
    }
}

/// What the sides must be, where they are literals or parameters beside a moment.
pub(super) fn moment_sides(
    left: Option<SqlType>,
    right: Option<SqlType>,
    sign: &str,
) -> (Option<SqlType>, Option<SqlType>) {
    let beside = |other: Option<SqlType>| match (other, sign) {
        (Some(SqlType::Interval), "*" | "/") => Some(SqlType::Float8),
        // A number of days beside a date, a span beside the others; between moments, the other moment.
        (Some(SqlType::Date), "+") => Some(SqlType::Int4),
        (Some(ty), "-") => Some(ty),
        (Some(_), _) => Some(SqlType::Interval),
        (None, _) => None,
    };
    let left_meant = if left.is_none() { beside(right) } else { None };
    let right_meant = if right.is_none() { beside(left) } else { None };
    (left_meant, right_meant)
}

/// Whether a computation of these is one of floats; what is not known may be anything.
pub(super) fn is_of_floats(left: Option<SqlType>, right: Option<SqlType>) -> bool {
    let float = |ty| matches!(ty, Some(SqlType::Float4 | SqlType::Float8));
    (float(left) && right.is_some()) || (float(right) && left.is_some())
}

/// Whether PostgreSQL has an operator of a moment or span and this other side. What is not known may be right.
pub(super) fn has_moment_operator(left: Option<SqlType>, sign: &str, right: Option<SqlType>) -> bool {
    use SqlType::{Date, Int2, Int4, Interval, Time, Timestamp, Timestamptz, Timetz};
    let (Some(left), Some(right)) = (left, right) else { return sign != "%" };
    if [left, right].iter().any(|ty| matches!(ty, SqlType::Text | SqlType::Unknown | Timetz)) {
        return true;
    }
    let span = |ty| matches!(ty, Interval | Time);
    let calendar = |ty| matches!(ty, Date | Timestamp | Timestamptz);
    let days = |ty| matches!(ty, Int2 | Int4);
    let number = |ty| arithmetic(Some(ty), Some(ty)).is_some();
    match sign {
        "+" => {
            let (whole, other) = if calendar(right) { (right, left) } else { (left, right) };
            let spans = span(left) && span(right) && (left, right) != (Time, Time);
            spans || (calendar(whole) && span(other)) || (whole == Date && days(other))
        }
        "-" => {
            let spans = span(left) && span(right);
            spans || (calendar(left) && (span(right) || calendar(right))) || (left == Date && days(right))
        }
        "*" => (span(left) && number(right)) || (number(left) && span(right)),
        "/" => span(left) && number(right),
        _ => false,
    }
}

/// What a sum or difference of moments is.
pub(super) fn moment_result(left: Option<SqlType>, right: Option<SqlType>, sign: &str) -> Option<SqlType> {
    use SqlType::{Date, Int4, Interval, Time, Timestamp};
    let moment = |ty: Option<SqlType>| is_moment(ty) && ty != Some(Interval);
    match (left, right, sign) {
        (Some(Date), Some(Date), "-") => Some(Int4),
        (Some(Date), Some(Interval), _) | (Some(Interval), Some(Date), _) | (Some(Date), Some(Time), "+") => {
            Some(Timestamp)
        }
        (_, _, "-") if moment(left) && moment(right) => Some(Interval),
        _ if moment(left) => left,
        _ if moment(right) => right,
        _ => Some(Interval),
    }
}
