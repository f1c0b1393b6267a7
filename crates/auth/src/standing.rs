//! What roles may do where no table says it: who may make tables in a schema, and what the tables that somebody makes
//! are granted at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sqltext::definition::Name;
use sqltext::error::{SqlError, state};
use sqltext::grant::{Grant, GrantedOn, GrantedTo, Grants, Privileges, of_whole_tables};
use sqltext::grant::{grant_to, revoke_from};
use sqltext::token::quoted_name;

use crate::limits::STANDING_MAX;

/// A role's name; `None`: everybody.
type Grantee = Option<String>;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Schema and role.
    creators: BTreeSet<(String, Grantee)>,
    /// By the role that makes the tables. Who gives is not kept: it is that role.
    defaults: BTreeMap<String, Vec<Grant>>,
}

/// A statement about these, with its roles found out.
pub(crate) struct Change<'s> {
    pub(crate) grants: &'s Grants,
    /// Who is granted something.
    pub(crate) to: Vec<Grantee>,
    /// Whose tables it is about.
    pub(crate) by: Vec<String>,
}

impl Standing {
    /// Whether a role, or one of those whose rights it has, may make tables in a schema.
    pub fn may_create(&self, schema: &str, is_one: &dyn Fn(&str) -> bool) -> bool {
        let mut own = self.creators.iter().filter(|(of, _)| of == schema);
        own.any(|(_, role)| role.as_deref().is_none_or(is_one))
    }

    /// What tables of an owner are granted when they are made.
    pub fn of_new_tables(&self, owner: &str) -> &[Grant] {
        self.defaults.get(owner).map_or(&[], Vec::as_slice)
    }

    /// The same of all owners.
    pub fn defaults(&self) -> impl Iterator<Item = (&str, &[Grant])> {
        self.defaults.iter().map(|(owner, grants)| (owner.as_str(), grants.as_slice()))
    }

    /// Who may make tables in a schema: everybody, where there is no name.
    pub fn creators<'s>(&'s self, schema: &'s str) -> impl Iterator<Item = Option<&'s str>> {
        self.creators.iter().filter(move |(of, _)| of == schema).map(|(_, role)| role.as_deref())
    }

    pub(crate) fn apply(&mut self, change: &Change<'_>) -> Result<(), SqlError> {
        match &change.grants.on {
            GrantedOn::Schemas(schemas) => self.on_schemas(change, schemas)?,
            GrantedOn::Future { .. } => self.on_future(change)?,
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

    fn on_future(&mut self, change: &Change<'_>) -> Result<(), SqlError> {
        let privileges = of_whole_tables("", &change.grants.privileges)
            .map_err(|error| SqlError { position: None, ..error })?;
        for (by, to) in change.by.iter().flat_map(|by| change.to.iter().map(move |to| (by, to))) {
            let grants = self.defaults.entry(by.clone()).or_default();
            let grantable = if change.grants.option { privileges } else { Privileges::NONE };
            let one = Grant { to: to.clone(), by: None, privileges, grantable };
            if change.grants.revokes {
                // Nobody has handed on what is not granted yet.
                let _none = revoke_from(grants, &one, change.grants.option, false);
            } else {
                grant_to(grants, &one);
            }
        }
        self.defaults.retain(|_, grants| !grants.is_empty());
        Ok(())
    }

    /// Whether it names a role.
    pub(crate) fn names(&self, role: &str) -> bool {
        let to = |grantee: &Grantee| grantee.as_deref() == Some(role);
        self.creators.iter().any(|(_, grantee)| to(grantee))
            || self.defaults.iter().any(|(by, grants)| by == role || grants.iter().any(|grant| to(&grant.to)))
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
        if let Some(own) = self.defaults.remove(role) {
            self.defaults.insert(name.to_owned(), own);
        }
    }
}

impl fmt::Display for Standing {
    /// The statements that make it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |grantee: &Grantee| grantee.as_deref().map_or_else(|| "PUBLIC".to_owned(), quoted_name);
        for (schema, to) in &self.creators {
            writeln!(f, "GRANT CREATE ON SCHEMA {} TO {};", quoted_name(schema), name(to))?;
        }
        for (by, grant) in
            self.defaults.iter().flat_map(|(by, grants)| grants.iter().map(move |one| (by, one)))
        {
            for (privileges, option) in
                [(grant.privileges.without(grant.grantable), ""), (grant.grantable, " WITH GRANT OPTION")]
            {
                let words: Vec<_> = privileges.each().map(|(_, _, word)| *word).collect();
                if !words.is_empty() {
                    let (by, to, words) = (quoted_name(by), name(&grant.to), words.join(", "));
                    writeln!(
                        f,
                        "ALTER DEFAULT PRIVILEGES FOR ROLE {by} GRANT {words} ON TABLES TO {to}{option};"
                    )?;
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
