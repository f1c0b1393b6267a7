//! An enum type: texts of a list, in the order of the list.
//!
//! A value is stored as its label. So it reads the same through every protocol, in shared memory and after a change of
//! the list, and equality is that of texts. Only its order is the list's: statements compare by a collation of the
//! type, and indexes, which order labels by their bytes, serve equality alone.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::namespace::check_qualified;
use super::{DefinitionError, SqlType};
use crate::limits::{ENUM_LABELS_MAX, NAME_BYTES_MAX};
use crate::scalar::{self, Refusal};
use crate::value::{Affinity, Value};

/// An enum type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumDef {
    /// Tells it from every other enum type.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Its schema; none is `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its values in their order.
    pub labels: Vec<String>,
}

impl EnumDef {
    /// An enum type of `public`, to be given its number when it is made.
    pub fn new(name: impl Into<String>, labels: Vec<String>) -> Self {
        Self { id: 0, name: name.into(), namespace: None, labels }
    }

    /// Its name in its schema.
    pub fn own_name(&self) -> &str {
        super::own_name(self.namespace.as_deref(), &self.name)
    }

    /// Whether it is a type that the store can hold.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        check_qualified("type", self.namespace.as_deref(), &self.name)?;
        if self.labels.len() > ENUM_LABELS_MAX {
            let message = format!("enum has {} labels; the limit is {ENUM_LABELS_MAX}", self.labels.len());
            return Err(DefinitionError::new("54000", message));
        }
        for (at, label) in self.labels.iter().enumerate() {
            check_label(label)?;
            if self.labels[..at].contains(label) {
                return Err(DefinitionError::new("42710", format!("enum label \"{label}\" already exists")));
            }
        }
        Ok(())
    }

    /// The place of a label in the order.
    pub fn rank(&self, label: &str) -> Option<usize> {
        self.labels.iter().position(|own| own == label)
    }

    /// The order of two labels. Those that are none stand behind the others, in the order of their bytes.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        let rank = |label| self.rank(label).unwrap_or(usize::MAX);
        rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
    }

    /// A value of the type.
    pub fn accept(&self, value: Value) -> Result<Value, Refusal> {
        let value = value.with_affinity(Affinity::Text);
        match &value {
            Value::Text(label) => self.check(label)?,
            Value::Null => {}
            _ => return Err(self.refusal("")),
        }
        Ok(value)
    }

    /// An array of such values.
    pub fn accept_array(&self, value: Value) -> Result<Value, Refusal> {
        let texts = SqlType::Text.array().unwrap_or(SqlType::Text);
        let value = scalar::accept(texts, value)?;
        let Value::Text(json) = &value else { return Ok(value) };
        let labels: Vec<Option<String>> = serde_json::from_str(json).unwrap_or_default();
        labels.iter().flatten().try_for_each(|label| self.check(label))?;
        Ok(value)
    }

    fn check(&self, label: &str) -> Result<(), Refusal> {
        // A definition that another process reads knows its types by their numbers only.
        let known = self.name.is_empty() || self.labels.iter().any(|own| own == label);
        if known { Ok(()) } else { Err(self.refusal(label)) }
    }

    fn refusal(&self, label: &str) -> Refusal {
        let shown = label.get(..label.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default();
        Refusal::new("22P02", format!("invalid input value for enum {}: \"{shown}\"", self.own_name()))
    }
}

fn check_label(label: &str) -> Result<(), DefinitionError> {
    if label.is_empty() || label.len() > NAME_BYTES_MAX || label.contains('\0') {
        let message = format!("invalid enum label \"{label}\": labels have 1 to {NAME_BYTES_MAX} bytes");
        return Err(DefinitionError::new("42602", message));
    }
    Ok(())
}

/// A column names its type by the number. Whoever puts definitions in force gives it the type itself.
pub(super) mod by_id {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Arc, EnumDef};

    #[expect(clippy::ref_option, reason = "serde passes a field by reference")]
    pub(crate) fn serialize<S: Serializer>(
        own: &Option<Arc<EnumDef>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        own.as_ref().map(|own| own.id).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<EnumDef>>, D::Error> {
        let id = Option::<u16>::deserialize(deserializer)?;
        Ok(id.map(|id| Arc::new(EnumDef { id, ..EnumDef::new("", Vec::new()) })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_checked_and_ordered() {
        let state =
            EnumDef { id: 1, ..EnumDef::new("state", ["open", "paid", "Gone"].map(Into::into).into()) };
        assert_eq!(state.validate(), Ok(()));
        assert_eq!(state.compare("paid", "Gone"), Ordering::Less);
        assert_eq!(state.compare("zzz", "Gone"), Ordering::Greater);
        assert_eq!(state.accept(Value::from("paid")), Ok(Value::from("paid")));
        assert_eq!(state.accept(Value::Null), Ok(Value::Null));
        for bad in [Value::from("PAID"), Value::from(""), Value::Integer(1), Value::Blob(vec![1])] {
            assert_eq!(state.accept(bad.clone()).map_err(|refusal| refusal.state), Err("22P02"), "{bad:?}");
        }
        assert_eq!(state.accept_array(Value::from("{paid,NULL}")), Ok(Value::from("[\"paid\",null]")));
        let refusal = state.accept_array(Value::from("{paid,x}")).unwrap_err();
        assert_eq!(refusal.message, "invalid input value for enum state: \"x\"");
        let long = "l".repeat(NAME_BYTES_MAX + 1);
        for (labels, expected) in
            [(vec!["a", "a"], "42710"), (vec![""], "42602"), (vec![long.as_str()], "42602")]
        {
            let labels = labels.into_iter().map(Into::into).collect();
            let error = EnumDef { labels, ..state.clone() }.validate().unwrap_err();
            assert_eq!(error.sqlstate, expected);
        }
    }
}
