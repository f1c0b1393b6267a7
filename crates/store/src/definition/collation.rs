//! How texts compare: SQLite's three collations, the orders of enum types, and that of decimal numbers.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::scalar::numeric;
use crate::value::ValueRef;

/// How two texts compare; other values compare the same under each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Collation {
    /// By their bytes.
    #[default]
    Binary,
    /// By their bytes, ASCII letters without their case.
    NoCase,
    /// By their bytes, without spaces at the end.
    RTrim,
    /// In the order of the enum type of this number. They are equal where their bytes are.
    Enum(u16),
    /// As the decimal numbers that they spell.
    Numeric,
}

/// The name by which SQLite knows the order of decimal numbers.
pub const NUMERIC: &str = "sqlcached_numeric";
/// What the names begin with by which SQLite knows the orders of enum types.
const ENUM_PREFIX: &str = "sqlcached_enum_";

impl Collation {
    /// Those that a definition can name.
    pub const ALL: [Self; 3] = [Self::Binary, Self::NoCase, Self::RTrim];

    /// SQLite's name for it.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Binary => "BINARY",
            Self::NoCase => "NOCASE",
            Self::RTrim => "RTRIM",
            Self::Numeric => NUMERIC,
            Self::Enum(id) => return Cow::Owned(format!("{ENUM_PREFIX}{id}")),
        })
    }

    /// The collation that SQLite knows by a name.
    pub fn of_sqlite(name: &str) -> Option<Self> {
        let of_enum = || name.strip_prefix(ENUM_PREFIX)?.parse().ok().map(Self::Enum);
        if name == NUMERIC { Some(Self::Numeric) } else { Self::of_name(name).or_else(of_enum) }
    }

    /// How an index orders a column of this collation, if nothing else is said.
    #[must_use]
    pub fn of_index(self) -> Self {
        match self {
            Self::Enum(_) => Self::Binary,
            other => other,
        }
    }

    /// The collation of a name, in any case.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|collation| collation.name().eq_ignore_ascii_case(name))
    }

    /// Whether texts compare by their bytes.
    pub fn is_binary(&self) -> bool {
        *self == Self::Binary
    }

    /// A text such that texts which are equal under this collation have equal bytes, and others compare by theirs.
    pub fn fold(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::NoCase if text.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Cow::Owned(text.to_ascii_lowercase())
            }
            Self::RTrim => Cow::Borrowed(text.trim_end_matches(' ')),
            Self::Numeric => Cow::Owned(numeric::folded(text)),
            _ => Cow::Borrowed(text),
        }
    }

    /// The order of two values whose texts compare by this collation.
    pub fn compare(self, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
        match (a, b) {
            (ValueRef::Text(a), ValueRef::Text(b)) if self == Self::Numeric => numeric::compare(a, b),
            (ValueRef::Text(a), ValueRef::Text(b)) => self.fold(a).as_bytes().cmp(self.fold(b).as_bytes()),
            (a, b) => ValueRef::compare(a, b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_orders() {
        for collation in Collation::ALL {
            assert_eq!(Collation::of_name(&collation.name().to_lowercase()), Some(collation));
            assert_eq!(Collation::of_sqlite(&collation.name()), Some(collation));
        }
        assert_eq!(Collation::of_sqlite(&Collation::Enum(7).name()), Some(Collation::Enum(7)));
        assert_eq!(Collation::of_name(&Collation::Enum(7).name()), None);
        assert_eq!(Collation::of_name("utf8"), None);
        let order = |collation: Collation, a, b| collation.compare(ValueRef::Text(a), ValueRef::Text(b));
        assert_eq!(order(Collation::NoCase, "aB", "Ab"), Ordering::Equal);
        assert_eq!(order(Collation::NoCase, "_", "A"), Ordering::Less);
        assert_eq!(order(Collation::NoCase, "\u{c4}", "\u{e4}"), Ordering::Less);
        assert_eq!(order(Collation::RTrim, "a  ", "a"), Ordering::Equal);
        assert_eq!(order(Collation::RTrim, "a\t", "a"), Ordering::Greater);
        assert_eq!(order(Collation::Binary, "a ", "a"), Ordering::Greater);
    }
}
