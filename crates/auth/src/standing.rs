//! What roles may do where no table says it: who may make tables in a schema, and what is granted at once of the tables
//! and sequences that somebody makes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sqltext::definition::Name;
use sqltext::error::{SqlError, state};
use sqltext::grant::{Grant, GrantedOn, GrantedTo, Grants, Kind, Privileges};
use sqltext::grant::{grant_to, of_whole, revoke_from};
use sqltext::token::quoted_name;

use crate::limits::STANDING_MAX;

/// A role's name; `None`: everybody.
type Grantee = Option<String>;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Schema and role.
    creators: BTreeSet<(String, Grantee)>,
    /// What is granted of new objects. Who gives is not kept: it is the role that makes them.
    defaults: BTreeMap<New, Vec<Grant>>,
}

/// Objects that are yet to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct New {
    /// By this role.
    pub by: String,
    /// In this schema; `None`: in any.
    pub schema: Option<String>,
    /// What they are.
    pub kind: Kind,
}

impl New {
    /// What is granted of them where nobody said otherwise. What is said of a schema is added to what is said of all.
    fn at_first(&self) -> Vec<Grant> {
        if self.schema.is_none() { self.kind.of_everybody() } else { Vec::new() }
    }
}

/// A statement about these, with its roles found out.
pub(crate) struct Change<'s> {
    pub(crate) grants: &'s Grants,
    /// Who is granted something.
    pub(crate) to: Vec<Grantee>,
    /// Whose tables or sequences it is about.
    pub(crate) by: Vec<String>,
}

impl Standing {
    /// Whether a role, or one of those whose rights it has, may make tables in a schema.
    pub fn may_create(&self, schema: &str, is_one: &dyn Fn(&str) -> bool) -> bool {
        let mut own = self.creators.iter().filter(|(of, _)| of == schema);
        own.any(|(_, role)| role.as_deref().is_none_or(is_one))
    }

    /// What new objects are granted.
    pub fn defaults(&self) -> impl Iterator<Item = (&New, &[Grant])> {
        self.defaults.iter().map(|(new, grants)| (new, grants.as_slice()))
    }

    /// Who may make tables in a schema: everybody, where there is no name.
    pub fn creators<'s>(&'s self, schema: &'s str) -> impl Iterator<Item = Option<&'s str>> {
        self.creators.iter().filter(move |(of, _)| of == schema).map(|(_, role)| role.as_deref())
    }

    pub(crate) fn apply(&mut self, change: &Change<'_>) -> Result<(), SqlError> {
        match &change.grants.on {
            GrantedOn::Schemas(schemas) => self.on_schemas(change, schemas)?,
            GrantedOn::Future { schemas, kind, .. } => self.on_future(change, schemas, *kind)?,
            // Everybody may use the rest.
            _ => {}
        }
        if self.creators.len() + self.defaults.values().map(Vec::len).sum::<usize>() > STANDING_MAX {
            let message = format!("there are {STANDING_MAX} default privileges, the most that there may be");
            return Err(SqlError::new("54000", message));
        }
        Ok(())
    }

    fn on_schemas(&mut self, change: &Change<'_>, schemas: &[Name]) -> Result<(), SqlError> {
        let mut creates = false;
        for granted in &change.grants.privileges {
            match granted.word.text.as_str() {
                "CREATE" | "ALL" => creates = true,
                "USAGE" => {}
                word => {
                    let message = format!("invalid privilege type {word} for schema");
                    return Err(SqlError::new(state::INVALID_GRANT, message));
                }
            }
        }
        for (schema, to) in schemas.iter().flat_map(|schema| change.to.iter().map(move |to| (schema, to))) {
            let entry = (schema.text.clone(), to.clone());
            match change.grants.revokes {
                true if creates => drop(self.creators.remove(&entry)),
                false if creates => drop(self.creators.insert(entry)),
                _ => {}
            }
        }
        Ok(())
    }

    fn on_future(&mut self, change: &Change<'_>, schemas: &[Name], kind: Kind) -> Result<(), SqlError> {
        let privileges = of_whole(kind, "", &change.grants.privileges)
            .map_err(|error| SqlError { position: None, ..error })?;
        let mut places: Vec<Option<String>> =
            schemas.iter().map(|schema| Some(schema.text.clone())).collect();
        if places.is_empty() {
            places.push(None);
        }
        let each = change.by.iter().flat_map(|by| places.iter().map(move |schema| (by, schema)));
        for ((by, schema), to) in each.flat_map(|of| change.to.iter().map(move |to| (of, to))) {
            let new = New { by: by.clone(), schema: schema.clone(), kind };
            let grants = self.defaults.entry(new).or_insert_with_key(New::at_first);
            let grantable = if change.grants.option { privileges } else { Privileges::NONE };
            let one = Grant { to: to.clone(), by: None, privileges, grantable };
            if change.grants.revokes {
                // Nobody has handed on what is not granted yet.
                let _none = revoke_from(grants, &one, change.grants.option, false);
            } else {
                grant_to(grants, &one);
            }
        }
        self.defaults.retain(|new, grants| *grants != new.at_first());
        Ok(())
    }

    /// What of it names a role, as PostgreSQL calls it where the role is to be dropped.
    pub(crate) fn names(&self, role: &str) -> Vec<String> {
        let to = |grantee: &Grantee| grantee.as_deref() == Some(role);
        let creators = self.creators.iter().filter(|(_, grantee)| to(grantee));
        let mut found: Vec<String> =
            creators.map(|(schema, _)| format!("privileges for schema {schema}")).collect();
        for (new, grants) in &self.defaults {
            let what = match new.kind {
                Kind::Table => "relations",
                Kind::Sequence => "sequences",
                Kind::Function => "functions",
            };
            let place = new.schema.as_ref().map(|schema| format!(" in schema {schema}")).unwrap_or_default();
            if new.by == role {
                found.push(format!(
                    "owner of default privileges on new {what} belonging to role {role}{place}"
                ));
            } else if grants.iter().any(|grant| to(&grant.to)) {
                let by = &new.by;
                found.push(format!(
                    "privileges for default privileges on new {what} belonging to role {by}{place}"
                ));
            }
        }
        found
    }

    /// Takes away what is in schemas that are gone. Says whether there was any.
    pub(crate) fn forget_schemas(&mut self, exists: &dyn Fn(&str) -> bool) -> bool {
        let before = self.creators.len() + self.defaults.len();
        self.creators.retain(|(schema, _)| exists(schema));
        self.defaults.retain(|new, _| new.schema.as_deref().is_none_or(exists));
        before != self.creators.len() + self.defaults.len()
    }

    /// Takes away all that names a role.
    pub(crate) fn forget(&mut self, role: &str) {
        self.creators.retain(|(_, grantee)| grantee.as_deref() != Some(role));
        self.defaults.retain(|new, grants| {
            grants.retain(|grant| grant.to.as_deref() != Some(role));
            new.by != role && *grants != new.at_first()
        });
    }

    pub(crate) fn rename(&mut self, role: &str, name: &str) {
        let renamed = |grantee: Grantee| {
            if grantee.as_deref() == Some(role) { Some(name.to_owned()) } else { grantee }
        };
        let creators = std::mem::take(&mut self.creators);
        self.creators = creators.into_iter().map(|(schema, to)| (schema, renamed(to))).collect();
        for grant in self.defaults.values_mut().flatten() {
            grant.to = renamed(grant.to.take());
        }
        let defaults = std::mem::take(&mut self.defaults);
        let renamed = |new: New| if new.by == role { New { by: name.to_owned(), ..new } } else { new };
        self.defaults = defaults.into_iter().map(|(new, grants)| (renamed(new), grants)).collect();
    }
}

impl fmt::Display for Standing {
    /// The statements that make it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |grantee: &Grantee| grantee.as_deref().map_or_else(|| "PUBLIC".to_owned(), quoted_name);
        for (schema, to) in &self.creators {
            writeln!(f, "GRANT CREATE ON SCHEMA {} TO {};", quoted_name(schema), name(to))?;
        }
        for (new, grants) in &self.defaults {
            let by = quoted_name(&new.by);
            let place = new.schema.as_ref().map(|schema| format!(" IN SCHEMA {}", quoted_name(schema)));
            let place = place.unwrap_or_default();
            let kept = |first: &Grant| grants.iter().any(|grant| grant.to == first.to);
            for gone in new.at_first().iter().filter(|first| !kept(first)) {
                let (from, plural) = (name(&gone.to), new.kind.plural());
                writeln!(
                    f,
                    "ALTER DEFAULT PRIVILEGES FOR ROLE {by}{place} REVOKE ALL ON {plural} FROM {from};"
                )?;
            }
            for grant in grants {
                let (to, plural) = (name(&grant.to), new.kind.plural());
                for (privileges, option) in
                    [(grant.privileges.without(grant.grantable), ""), (grant.grantable, " WITH GRANT OPTION")]
                {
                    let words: Vec<_> = privileges.each().map(|(_, _, word)| *word).collect();
                    if !words.is_empty() {
                        let words = words.join(", ");
                        writeln!(
                            f,
                            "ALTER DEFAULT PRIVILEGES FOR ROLE {by}{place} GRANT {words} ON {plural} TO {to}{option};"
                        )?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Everybody, or a role by its name.
pub(crate) fn grantee(to: &GrantedTo, name: impl Fn(&sqltext::role::RoleRef) -> String) -> Grantee {
    match to {
        GrantedTo::Public => None,
        GrantedTo::Role(role) => Some(name(role)),
    }
}
