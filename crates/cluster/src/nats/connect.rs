//! The way to NATS: a connection and a stream, and what is wrong with them in words that say what to do.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use store::definition::ServerDef;

use crate::carrier::Failure;
use crate::limits::{CONNECT_TIMEOUT, DUPLICATES, PUBLISH_WAIT, STREAM_AGE, STREAM_BYTES, WAITING_MESSAGES};

/// The first version whose behaviour is known.
const VERSION: (u32, u32) = (2, 14);

/// The stream's name where none is said.
const STREAM: &str = "sqlcached";

/// A bus that is there.
pub(crate) struct Connected {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) stream: jetstream::stream::Stream,
    /// The stream's name.
    pub(super) name: String,
    /// Where messages are published.
    pub(super) subject: String,
}

impl Connected {
    pub(super) async fn to(server: &ServerDef) -> Result<Self, Failure> {
        let client = connect(server).await?;
        check_version(&client.server_info().version)?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PUBLISH_WAIT);
        let name = server.option("stream").unwrap_or(STREAM);
        let subject = format!("{name}.told");
        let wanted = config(server, name, &subject);
        let stream = context.get_or_create_stream(wanted).await.map_err(|error| no_stream(name, &error))?;
        check_stream(&stream.cached_info().config, &subject)?;
        Ok(Self { client, context, stream, name: name.to_owned(), subject })
    }
}

async fn connect(server: &ServerDef) -> Result<Client, Failure> {
    let servers: Vec<String> =
        server.option("servers").unwrap_or_default().split(',').map(|one| one.trim().to_owned()).collect();
    let timeout = server.option("connect_timeout").and_then(|text| text.parse().ok());
    let mut options = ConnectOptions::new()
        .name("sqlcached")
        .connection_timeout(timeout.map_or(CONNECT_TIMEOUT, Duration::from_secs))
        .subscription_capacity(WAITING_MESSAGES)
        // Each server is tried once. What is lost then is connected again by who notices, with all that is to be
        // checked.
        .max_reconnects(Some(servers.len()));
    let mapping = server.mapping();
    let user = mapping.and_then(|mapping| mapping.user());
    if let (Some(mapping), Some(user)) = (mapping, user) {
        let password = mapping.password().unwrap_or_default();
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    if let Some(file) = server.option("sslrootcert") {
        options = options.add_root_certificates(PathBuf::from(file));
    }
    options.connect(servers).await.map_err(|error| {
        let name = &server.name;
        match (error.kind(), user) {
            (ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication, Some(user)) => {
                Failure::new(format!(
                    "NATS refuses the user \"{user}\": ALTER USER MAPPING FOR PUBLIC SERVER {name} OPTIONS (SET user \
                     '...', SET password '...')"
                ))
            }
            (ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication, None) => Failure::new(format!(
                "NATS wants a user: CREATE USER MAPPING FOR PUBLIC SERVER {name} OPTIONS (user '...', password '...')"
            )),
            _ if error.kind() == ConnectErrorKind::Tls || error.to_string().contains("certificate") => Failure::new(format!(
                "TLS to NATS fails: {error}; sslrootcert names the file of the authority that signed its certificate"
            )),
            _ => Failure::new(format!("no server of the bus can be reached: {error}")),
        }
    })
}

fn check_version(version: &str) -> Result<(), Failure> {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found >= VERSION {
        return Ok(());
    }
    let (major, minor) = VERSION;
    Err(Failure::new(format!("the NATS server is version {version}; install {major}.{minor} or later")))
}

fn config(server: &ServerDef, name: &str, subject: &str) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        // In memory a stream loses its messages with its servers, and keeps its name and age.
        storage: StorageType::File,
        num_replicas: server.option("replicas").and_then(|text| text.parse().ok()).unwrap_or(1),
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_age: STREAM_AGE,
        max_bytes: STREAM_BYTES,
        duplicate_window: DUPLICATES,
        description: Some("what caches tell one another; nobody else may write here".to_owned()),
        ..Config::default()
    }
}

/// A stream that somebody else made, or another version of this program.
fn check_stream(found: &Config, subject: &str) -> Result<(), Failure> {
    let name = &found.name;
    let wrong = if found.storage != StorageType::File {
        "keeps its messages in memory, and loses them with its servers"
    } else if !found.subjects.iter().any(|own| own == subject) {
        "is used for something else"
    } else if found.max_messages_per_subject > 0 || found.retention != RetentionPolicy::Limits {
        "removes messages before their time"
    } else if found.discard != DiscardPolicy::Old {
        "takes no message when it is full"
    } else {
        return Ok(());
    };
    Err(Failure::new(format!(
        "the stream \"{name}\" {wrong}; remove it (nats stream rm {name}), or name another one by the option stream"
    )))
}

fn no_stream(name: &str, error: &dyn fmt::Display) -> Failure {
    let error = error.to_string();
    let advice = if ["10039", "not enabled", "no responders", "jetstream unavailable"]
        .iter()
        .any(|own| error.contains(own))
    {
        "; start the NATS servers with JetStream (nats-server -js -sd DIRECTORY)"
    } else if error.contains("replicas") {
        "; the option replicas says how many servers keep it, and no more than there are can"
    } else {
        ""
    };
    Failure::new(format!("the stream \"{name}\" cannot be had: {error}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_named() {
        for (version, is_good) in
            [("2.14.0", true), ("2.15.2", true), ("3.0.0-beta.1", true), ("2.9.25", false), ("", false)]
        {
            assert_eq!(check_version(version).is_ok(), is_good, "{version}");
        }
        assert!(check_version("2.10.1").unwrap_err().to_string().contains("2.10.1; install 2.14"));
    }

    #[test]
    fn streams_of_others_are_named() {
        let ours = Config { name: "s".into(), subjects: vec!["s.told".into()], ..Config::default() };
        assert!(check_stream(&ours, "s.told").is_ok());
        for wrong in [
            Config { storage: StorageType::Memory, ..ours.clone() },
            Config { subjects: vec!["orders.>".into()], ..ours.clone() },
            Config { max_messages_per_subject: 1, ..ours.clone() },
            Config { discard: DiscardPolicy::New, ..ours.clone() },
        ] {
            assert!(check_stream(&wrong, "s.told").unwrap_err().to_string().contains("nats stream rm s"));
        }
    }
}
