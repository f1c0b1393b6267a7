//! Tables as the daemon describes them: how to ask for a row over the socket.

use store::Clock;
use store::value::Value as SqlValue;

use crate::client::Client;
use crate::error::Error;
use crate::limits::LOOK_AGAIN;
use crate::reply::{Pipeline, Reply};
use crate::row::Row;
use crate::{Lookup, Meta, Value};

/// Name of the table whose prefix is empty.
const BUILT_IN: &str = "memcached";

/// What the daemon said of a table, a moment ago.
#[derive(Debug)]
pub(crate) struct Remote {
    name: String,
    /// What memcached keys of the table begin with; none: they reach it not at all.
    pub(crate) prefix: Option<String>,
    value: Option<String>,
    /// The columns of its primary key.
    keys: Vec<String>,
    /// When it was asked: a table may be altered.
    asked_ns: u64,
}

impl Remote {
    pub(crate) fn is_recent(&self) -> bool {
        let age = Clock::System.now_ns().saturating_sub(self.asked_ns);
        u128::from(age) < LOOK_AGAIN.as_nanos()
    }

    /// Asks the daemon.
    pub(crate) fn ask(client: &Client, name: &str) -> Result<Self, Error> {
        let mut pipeline = Pipeline::new();
        let parameter = [SqlValue::Text(name.to_lowercase())];
        pipeline.sql(
            "SELECT table_name, prefix, value_column FROM sqlcached_tables WHERE lower(table_name) = ?1",
            &parameter,
        );
        pipeline.sql(
            "SELECT column_name FROM information_schema.key_column_usage \
             WHERE lower(table_name) = ?1 AND constraint_name IN (SELECT constraint_name \
             FROM information_schema.table_constraints WHERE constraint_type = 'PRIMARY KEY' \
             AND lower(table_name) = ?1) ORDER BY ordinal_position",
            &parameter,
        );
        let mut replies = client.run(pipeline)?.into_iter();
        let mut rows = || match replies.next() {
            Some(Ok(Reply::Rows(rows))) => Ok(rows),
            Some(Err(error)) => Err(error),
            _ => Err(Error::Protocol("a query has no rows".into())),
        };
        let found = rows()?;
        let found = found.first().ok_or_else(|| Error::NoTable(name.to_owned()))?;
        let keys = rows()?.iter().filter_map(|row| row.text("column_name").map(str::to_owned)).collect();
        let own = found.text("table_name").unwrap_or(name).to_owned();
        let prefix = found.text("prefix").map(str::to_owned);
        let prefix = if own == BUILT_IN { Some(String::new()) } else { prefix };
        let value = found.text("value_column").map(str::to_owned);
        Ok(Self { name: own, prefix, value, keys, asked_ns: Clock::System.now_ns() })
    }

    /// The memcached key of a row.
    pub(crate) fn full_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        let prefix = self.prefix.as_ref()?;
        Some([prefix.as_bytes(), key].concat())
    }

    /// The value under a key.
    pub(crate) fn value(&self, client: &Client, key: &[u8]) -> Result<Lookup, Error> {
        if let Some(full) = self.full_key(key) {
            return client.get_key_by_socket(&full);
        }
        let value = self.value.as_ref().ok_or_else(|| Error::Unreachable(self.name.clone()))?;
        let row = self.select(client, &quoted(value), key)?;
        Ok(row.and_then(|row| row.into_columns().pop()).map_or(Lookup::Miss, |(_, value)| {
            Lookup::Hit(Value { bytes: bytes_of(value), meta: Meta::default() })
        }))
    }

    /// The whole row under a key.
    pub(crate) fn row(&self, client: &Client, key: &[u8]) -> Result<Option<Row>, Error> {
        self.select(client, "*", key)
    }

    fn select(&self, client: &Client, what: &str, key: &[u8]) -> Result<Option<Row>, Error> {
        if self.keys.is_empty() {
            return Err(Error::Unreachable(self.name.clone()));
        }
        let parts: Vec<SqlValue> = key
            .splitn(self.keys.len(), |&byte| byte == b':')
            .map(|part| store::value::text_or_blob(part).to_owned())
            .collect();
        if parts.len() < self.keys.len() {
            return Ok(None);
        }
        let terms: Vec<String> = self
            .keys
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{} = ?{}", quoted(name), at + 1))
            .collect();
        let statement = format!("SELECT {what} FROM {} WHERE {}", quoted(&self.name), terms.join(" AND "));
        match client.sql(&statement, &parts)? {
            Reply::Rows(rows) => Ok(rows.into_iter().next()),
            _ => Err(Error::Protocol("a query has no rows".into())),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value as a memcached client reads it.
fn bytes_of(value: SqlValue) -> Vec<u8> {
    match value {
        SqlValue::Null => Vec::new(),
        SqlValue::Blob(bytes) => bytes,
        other => {
            let mut text = Vec::new();
            other.as_ref().write_text(&mut text);
            text
        }
    }
}
