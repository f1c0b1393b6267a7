//! A session of tokio-postgres, whose answers are compared byte for byte.

use std::error::Error as _;

use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage, Statement};

use crate::drivers::place::Place;

/// What a statement came to: a line for each row, or the SQLSTATE.
pub(super) type Answer = Result<Vec<String>, String>;

/// See the module.
pub(super) struct Talk {
    runtime: Runtime,
    client: Client,
    /// Statements that are prepared, by their texts.
    prepared: Vec<(String, Statement)>,
}

/// The bytes of a value, whatever its type.
struct Raw(Vec<u8>);

impl<'b> FromSql<'b> for Raw {
    fn from_sql(_: &Type, raw: &'b [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A parameter of whatever integer type the source wants.
#[derive(Debug)]
struct Number(i32);

impl ToSql for Number {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *ty {
            Type::INT4_ARRAY => vec![self.0, self.0 + 1].to_sql(ty, out),
            Type::INT8 => i64::from(self.0).to_sql(ty, out),
            _ => self.0.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::INT4_ARRAY].contains(ty)
    }

    tokio_postgres::types::to_sql_checked!();
}

impl Talk {
    /// Connects; `None`: there is nobody.
    pub(super) fn try_with(place: &Place, options: &str) -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut config = Config::new();
        config.host("127.0.0.1").port(place.port).user(place.user).dbname(place.database).options(options);
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.ok()?;
            tokio::spawn(connection);
            Some(client)
        })?;
        Some(Self { runtime, client, prepared: Vec::new() })
    }

    pub(super) fn with(place: &Place) -> Self {
        Self::try_with(place, "").unwrap_or_else(|| panic!("nobody serves at {place:?}"))
    }

    /// Whether the other side is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// What asks the server to cancel the statement that runs.
    pub(super) fn cancel(&self) -> impl Fn() + use<> {
        let token = self.client.cancel_token();
        move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(token.cancel_query(NoTls)).unwrap();
        }
    }

    /// Runs a text by a simple query.
    pub(super) fn simple(&self, sql: &str) -> Answer {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).map_err(|error| state(&error))?;
        let row = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                let values: Vec<_> = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect();
                Some(values.join("|"))
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// Runs a text that must not fail.
    pub(super) fn must(&self, sql: &str) -> Vec<String> {
        self.simple(sql).unwrap_or_else(|state| panic!("{sql}: {state}"))
    }

    /// Runs a statement that is prepared once, with the same number for each of its parameters.
    pub(super) fn prepared(&mut self, sql: &str, number: i32) -> Answer {
        let found =
            self.prepared.iter().find(|(text, _)| text == sql).map(|(_, statement)| statement.clone());
        let statement = if let Some(statement) = found {
            statement
        } else {
            let made = self.runtime.block_on(self.client.prepare(sql)).map_err(|error| state(&error))?;
            self.prepared.push((sql.to_owned(), made.clone()));
            made
        };
        let number = Number(number);
        let parameters: Vec<&(dyn ToSql + Sync)> =
            statement.params().iter().map(|_| &number as &(dyn ToSql + Sync)).collect();
        self.rows(self.runtime.block_on(self.client.query(&statement, &parameters)))
    }

    /// Runs a statement that is prepared once with several numbers, which are sent at once.
    pub(super) fn at_once(&mut self, sql: &str, numbers: &[i32]) -> Vec<Answer> {
        let found =
            self.prepared.iter().find(|(text, _)| text == sql).map(|(_, statement)| statement.clone());
        let statement = found.unwrap_or_else(|| {
            let made = self.runtime.block_on(self.client.prepare(sql)).unwrap();
            self.prepared.push((sql.to_owned(), made.clone()));
            made
        });
        let numbers: Vec<Number> = numbers.iter().map(|number| Number(*number)).collect();
        let parameters: Vec<[&(dyn ToSql + Sync); 1]> =
            numbers.iter().map(|number| [number as &(dyn ToSql + Sync)]).collect();
        let asked = parameters.iter().map(|parameters| self.client.query(&statement, parameters));
        let answers = self.runtime.block_on(join_all(asked));
        answers.into_iter().map(|answer| self.rows(answer)).collect()
    }

    /// The same with a statement that is prepared for this once.
    pub(super) fn unprepared(&mut self, sql: &str, number: i32) -> Answer {
        let kept = std::mem::take(&mut self.prepared);
        let answer = self.prepared(sql, number);
        self.prepared = kept;
        answer
    }

    #[expect(clippy::unused_self, reason = "it belongs to what a session is asked")]
    fn rows(&self, answer: Result<Vec<tokio_postgres::Row>, Error>) -> Answer {
        let value = |row: &tokio_postgres::Row, at: usize| {
            row.get::<_, Option<Raw>>(at).map_or_else(|| "NULL".to_owned(), |raw| format!("{:02x?}", raw.0))
        };
        let line =
            |row: &tokio_postgres::Row| (0..row.len()).map(|at| value(row, at)).collect::<Vec<_>>().join("|");
        Ok(answer.map_err(|error| state(&error))?.iter().map(line).collect())
    }
}

fn state(error: &Error) -> String {
    match error.code() {
        Some(code) => code.code().to_owned(),
        None => format!("{error}: {:?}", error.source()),
    }
}
