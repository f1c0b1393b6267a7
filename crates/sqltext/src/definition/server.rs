//! Foreign servers with user mappings and cached queries: `CREATE SERVER`, `CREATE USER MAPPING`,
//! `CREATE CACHED QUERY`, their changes and their end.

use store::definition::ServerOption;

use super::grant::GrantedTo;
use super::reader::Reader;
use super::role::{RoleRef, role};
use super::{Name, What};
use crate::error::{SqlError, state};

/// What is said of a foreign server or of a user mapping.
#[derive(Debug)]
pub enum ServerStatement {
    /// `CREATE SERVER`
    Create(CreateServer),
    /// `ALTER SERVER`
    Alter(Name, ServerAlteration),
    /// `DROP SERVER`
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// Their names.
        names: Vec<Name>,
        /// `CASCADE`
        cascade: bool,
    },
    /// `CREATE USER MAPPING`
    CreateMapping {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// Whose it is, and of which server.
        of: MappingOf,
        /// `OPTIONS`
        options: Vec<ServerOption>,
    },
    /// `ALTER USER MAPPING`
    AlterMapping(MappingOf, Vec<OptionChange>),
    /// `DROP USER MAPPING`
    DropMapping {
        /// `IF EXISTS`
        if_exists: bool,
        /// Whose it is, and of which server.
        of: MappingOf,
    },
    /// `CREATE CACHED QUERY`
    CreateQuery {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// Its name, and that of its server.
        of: QueryOf,
        /// `OPTIONS`
        options: Vec<ServerOption>,
        /// `AS`: the statement as the application sends it.
        statement: String,
    },
    /// `DROP CACHED QUERY`
    DropQuery {
        /// `IF EXISTS`
        if_exists: bool,
        /// Its name, and that of its server.
        of: QueryOf,
    },
}

/// Which cached query it is.
#[derive(Debug)]
pub struct QueryOf {
    /// Its name.
    pub name: Name,
    /// `SERVER`
    pub server: Name,
}

/// `CREATE SERVER`
#[derive(Debug)]
pub struct CreateServer {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name.
    pub name: Name,
    /// `TYPE`
    pub kind: Option<String>,
    /// `VERSION`
    pub version: Option<String>,
    /// `FOREIGN DATA WRAPPER`
    pub wrapper: Name,
    /// `OPTIONS`
    pub options: Vec<ServerOption>,
}

/// What `ALTER SERVER` changes.
#[derive(Debug)]
pub enum ServerAlteration {
    /// `VERSION`, `OPTIONS`
    Facts {
        /// `VERSION`; `Some(None)`: `NULL`
        version: Option<Option<String>>,
        /// `OPTIONS`
        options: Vec<OptionChange>,
    },
    /// `RENAME TO`
    Rename(Name),
    /// `OWNER TO`
    Owner(RoleRef),
}

/// One change of options.
#[derive(Debug)]
pub enum OptionChange {
    /// `ADD name 'value'`
    Add(String, String),
    /// `SET name 'value'`
    Set(String, String),
    /// `DROP name`
    Drop(String),
}

/// Whose user mapping it is, and of which server.
#[derive(Debug)]
pub struct MappingOf {
    /// `FOR`
    pub role: GrantedTo,
    /// `SERVER`
    pub server: Name,
}

impl OptionChange {
    /// Changes options in place.
    ///
    /// # Errors
    ///
    /// What is added is there, or what is changed is not.
    pub fn apply(&self, options: &mut Vec<ServerOption>) -> Result<(), SqlError> {
        let (Self::Add(name, _) | Self::Set(name, _) | Self::Drop(name)) = self;
        let place = options.iter().position(|(own, _)| own == name);
        match (self, place) {
            (Self::Add(..), Some(_)) => {
                let message = format!("option \"{name}\" provided more than once");
                return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
            }
            (Self::Add(name, value), None) => options.push((name.clone(), value.clone())),
            (Self::Set(_, value), Some(place)) => options[place].1.clone_from(value),
            (Self::Drop(_), Some(place)) => drop(options.remove(place)),
            (_, None) => {
                let message = format!("option \"{name}\" not found");
                return Err(SqlError::new(state::UNKNOWN_OBJECT, message));
            }
        }
        Ok(())
    }
}

impl Reader<'_, '_> {
    /// What stands behind `CREATE`, where it is about servers.
    pub(super) fn create_server(&mut self) -> Result<What, SqlError> {
        if self.words(&["CACHED", "QUERY"]) {
            return self.create_query();
        }
        if self.user_mapping()? {
            let if_not_exists = self.if_not_exists()?;
            let (of, options) = (self.mapping_of()?, self.server_options()?);
            return Ok(What::Server(ServerStatement::CreateMapping { if_not_exists, of, options }));
        }
        let if_not_exists = self.if_not_exists()?;
        let name = self.name()?;
        let kind = if self.word("TYPE") { Some(self.text()?) } else { None };
        let version = if self.word("VERSION") { Some(self.text()?) } else { None };
        for word in ["FOREIGN", "DATA", "WRAPPER"] {
            self.expect_word(word)?;
        }
        let (wrapper, options) = (self.name()?, self.server_options()?);
        let made = CreateServer { if_not_exists, name, kind, version, wrapper, options };
        Ok(What::Server(ServerStatement::Create(made)))
    }

    /// What stands behind `ALTER`, where it is about servers.
    pub(super) fn alter_server(&mut self) -> Result<What, SqlError> {
        if self.user_mapping()? {
            let of = self.mapping_of()?;
            return Ok(What::Server(ServerStatement::AlterMapping(of, self.option_changes()?)));
        }
        let name = self.name()?;
        let change = if self.words(&["RENAME", "TO"]) {
            ServerAlteration::Rename(self.name()?)
        } else if self.words(&["OWNER", "TO"]) {
            ServerAlteration::Owner(role(self)?)
        } else {
            let version = match self.word("VERSION") {
                true if self.word("NULL") => Some(None),
                true => Some(Some(self.text()?)),
                false => None,
            };
            let options = if version.is_some() && !self.at_word("OPTIONS") {
                Vec::new()
            } else {
                self.option_changes()?
            };
            ServerAlteration::Facts { version, options }
        };
        Ok(What::Server(ServerStatement::Alter(name, change)))
    }

    /// What stands behind `DROP`, where it is about servers.
    pub(super) fn drop_server(&mut self) -> Result<What, SqlError> {
        if self.words(&["CACHED", "QUERY"]) {
            let (if_exists, of) = (self.if_exists()?, self.query_of()?);
            return Ok(What::Server(ServerStatement::DropQuery { if_exists, of }));
        }
        if self.user_mapping()? {
            let (if_exists, of) = (self.if_exists()?, self.mapping_of()?);
            return Ok(What::Server(ServerStatement::DropMapping { if_exists, of }));
        }
        let if_exists = self.if_exists()?;
        let names = self.list(Self::name)?;
        let cascade = self.any_word(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
        Ok(What::Server(ServerStatement::Drop { if_exists, names, cascade }))
    }

    /// Whether a statement about servers, mappings or cached queries comes next.
    pub(super) fn at_server(&self) -> bool {
        let second = |word: &str| self.peek_at(1).is_some_and(|next| next.is(word));
        self.at_word("SERVER")
            || self.at_word("USER") && second("MAPPING")
            || self.at_word("CACHED") && second("QUERY")
    }

    /// What stands behind `CREATE CACHED QUERY`. Its statement is another database's, and is not read here.
    fn create_query(&mut self) -> Result<What, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let (of, options) = (self.query_of()?, self.server_options()?);
        self.expect_word("AS")?;
        let from = self.number();
        while self.peek().is_some_and(|token| !token.is_sign(";")) {
            self.skip();
        }
        let statement = self.written(from..self.number());
        if statement.is_empty() {
            return Err(self.unexpected());
        }
        Ok(What::Server(ServerStatement::CreateQuery { if_not_exists, of, options, statement }))
    }

    /// `name SERVER name`
    fn query_of(&mut self) -> Result<QueryOf, SqlError> {
        let name = self.name()?;
        self.expect_word("SERVER")?;
        Ok(QueryOf { name, server: self.name()? })
    }

    /// Takes `SERVER`, or `USER MAPPING`: true.
    fn user_mapping(&mut self) -> Result<bool, SqlError> {
        let mapping = self.words(&["USER", "MAPPING"]);
        if !mapping {
            self.expect_word("SERVER")?;
        }
        Ok(mapping)
    }

    /// `FOR role SERVER name`
    fn mapping_of(&mut self) -> Result<MappingOf, SqlError> {
        self.expect_word("FOR")?;
        let role = match self.any_word(&["PUBLIC", "USER"]) {
            Some("PUBLIC") => GrantedTo::Public,
            Some(_) => GrantedTo::Role(RoleRef::Current),
            None => GrantedTo::Role(role(self)?),
        };
        self.expect_word("SERVER")?;
        Ok(MappingOf { role, server: self.name()? })
    }

    /// `OPTIONS (name 'value', ...)`, if it comes.
    fn server_options(&mut self) -> Result<Vec<ServerOption>, SqlError> {
        if !self.word("OPTIONS") {
            return Ok(Vec::new());
        }
        self.listed(Self::server_option)
    }

    fn server_option(&mut self) -> Result<ServerOption, SqlError> {
        Ok((self.any_name()?, self.text()?))
    }

    /// `OPTIONS ([ADD | SET | DROP] name ['value'], ...)`
    fn option_changes(&mut self) -> Result<Vec<OptionChange>, SqlError> {
        self.expect_word("OPTIONS")?;
        self.listed(|reader| {
            Ok(match reader.any_word(&["ADD", "SET", "DROP"]) {
                Some("SET") => reader.server_option().map(|(name, value)| OptionChange::Set(name, value))?,
                Some("DROP") => OptionChange::Drop(reader.any_name()?),
                _ => reader.server_option().map(|(name, value)| OptionChange::Add(name, value))?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::read;
    use crate::token::tokens;

    fn shown(sql: &str) -> String {
        match read(sql, tokens(sql), None) {
            Ok(read) => format!("{:?}", read.what),
            Err(error) => error.state.to_owned(),
        }
    }

    #[test]
    fn servers_and_mappings_are_read() {
        let made = shown(
            "CREATE SERVER IF NOT EXISTS pg TYPE 'x' VERSION '15' FOREIGN DATA WRAPPER postgres OPTIONS (host 'db', port '5432')",
        );
        assert!(made.contains("(\"host\", \"db\")") && made.contains("if_not_exists: true"), "{made}");
        let altered =
            shown("ALTER SERVER pg VERSION NULL OPTIONS (SET host 'a', ADD port '1', DROP dbname, x 'y')");
        assert!(altered.contains("version: Some(None)") && altered.contains("Drop(\"dbname\")"), "{altered}");
        assert!(shown("ALTER SERVER pg RENAME TO other").contains("Rename"));
        assert!(shown("ALTER SERVER pg OWNER TO CURRENT_USER").contains("Owner(Current)"));
        assert!(shown("DROP SERVER IF EXISTS a, b CASCADE;").contains("cascade: true"));
        assert!(
            shown("CREATE USER MAPPING FOR PUBLIC SERVER pg OPTIONS (user 'u', password 'p')")
                .contains("Public")
        );
        assert!(shown("CREATE USER MAPPING FOR USER SERVER pg").contains("Current"));
        assert!(shown("ALTER USER MAPPING FOR \"A\" SERVER pg OPTIONS (SET password 'p')").contains("\"A\""));
        assert!(shown("DROP USER MAPPING IF EXISTS FOR a SERVER pg").contains("if_exists: true"));
        let query = shown(
            "CREATE CACHED QUERY IF NOT EXISTS top SERVER pg OPTIONS (freshness 'stream') AS SELECT  a FROM t WHERE b = $1;",
        );
        assert!(query.contains("statement: \"SELECT  a FROM t WHERE b = $1\""), "{query}");
        assert!(shown("DROP CACHED QUERY IF EXISTS top SERVER pg").contains("if_exists: true"));
        for wrong in [
            "CREATE CACHED QUERY a SERVER pg AS",
            "CREATE CACHED QUERY a AS SELECT 1",
            "DROP CACHED QUERY a",
            "CREATE SERVER pg",
            "CREATE SERVER pg FOREIGN DATA WRAPPER postgres OPTIONS (host db)",
            "CREATE USER MAPPING FOR a",
            "ALTER SERVER pg",
            "DROP USER MAPPING FOR a",
        ] {
            assert_eq!(shown(wrong), "42601", "{wrong}");
        }
    }

    #[test]
    fn options_change() {
        let mut options = vec![("a".to_owned(), "1".to_owned())];
        let apply = |change: OptionChange, options: &mut Vec<ServerOption>| {
            change.apply(options).map_err(|error| error.state)
        };
        assert_eq!(apply(OptionChange::Set("a".into(), "2".into()), &mut options), Ok(()));
        assert_eq!(apply(OptionChange::Add("b".into(), "3".into()), &mut options), Ok(()));
        assert_eq!(apply(OptionChange::Add("b".into(), "3".into()), &mut options), Err("42710"));
        assert_eq!(apply(OptionChange::Drop("a".into()), &mut options), Ok(()));
        assert_eq!(apply(OptionChange::Set("a".into(), "2".into()), &mut options), Err("42704"));
        assert_eq!(options, [("b".to_owned(), "3".to_owned())]);
    }
}
