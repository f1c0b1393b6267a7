//! Schemas of users: each has its own names of tables, views, enum types and sequences.
//!
//! An object's name is unique in the whole store: in `public` it is the name that clients gave it, in any other schema
//! the schema's name stands before it, with a point. So one catalogue has all, and only who reads or shows a name of a
//! client's takes it apart.

use serde::{Deserialize, Serialize};

use super::{DefinitionError, check_name};

/// A schema that somebody made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceDef {
    /// Tells it from every other one.
    pub id: u16,
    /// Its name.
    pub name: String,
}

impl NamespaceDef {
    /// Whether it is one that the store can hold.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        check_name("schema", &self.name)
    }
}

/// The name of an object in the store. `namespace`: its schema; none is `public`.
pub fn qualified(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}.{name}"),
        None => name.to_owned(),
    }
}

/// The name of an object in its schema.
pub(crate) fn own_name<'n>(namespace: Option<&str>, name: &'n str) -> &'n str {
    namespace.map_or(name, |namespace| name.get(namespace.len() + 1..).unwrap_or(name))
}

/// What is left of a name behind this schema; `None`: it is of another one.
pub(crate) fn within<'n>(namespace: Option<&str>, name: &'n str) -> Option<&'n str> {
    let Some(namespace) = namespace else { return Some(name) };
    let (schema, own) = (name.get(..namespace.len())?, name.get(namespace.len()..)?);
    own.strip_prefix('.').filter(|_| schema.eq_ignore_ascii_case(namespace))
}

/// Whether a name is one in this schema.
pub(super) fn check_qualified(
    what: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<(), DefinitionError> {
    let Some(own) = within(namespace, name) else {
        let message = format!("definition of {what} \"{name}\": it is in another schema");
        return Err(DefinitionError::new("XX001", message));
    };
    namespace.map_or(Ok(()), |namespace| check_name("schema", namespace))?;
    check_name(what, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_together_and_taken_apart() {
        for (namespace, own, name) in
            [(None, "a.b", "a.b"), (Some("s"), "t", "s.t"), (Some("s"), "a.b", "s.a.b")]
        {
            assert_eq!(qualified(namespace, own), name);
            assert_eq!(own_name(namespace, name), own);
            assert_eq!(within(namespace, name), Some(own));
            assert_eq!(check_qualified("table", namespace, name), Ok(()));
        }
        assert_eq!(within(Some("S"), "s.t"), Some("t"));
        assert_eq!(within(Some("s"), "st"), None);
        assert_eq!(within(Some("schema"), "s"), None);
        for (namespace, name, state) in
            [(Some("s"), "t", "XX001"), (Some("s"), "s.", "42602"), (Some(""), ".t", "42602")]
        {
            assert_eq!(check_qualified("table", namespace, name).map_err(|error| error.sqlstate), Err(state));
        }
    }
}
