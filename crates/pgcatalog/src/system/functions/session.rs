//! Who speaks, with what, about which database.

use sqltext::error::SqlError;
use store::value::Value;

use super::{Call, FunctionDef, fallible, function, optional, truth};
use crate::system::System;
use crate::system::array;
use crate::system::content::{OWN_NAME, PUBLIC_NAME};
use crate::system::rows::{int, text};
use crate::system::time::moment;

/// The version of PostgreSQL whose catalogue and protocol clients find here.
const SERVER_VERSION: &str = "15.0";
/// The same as a number.
const SERVER_VERSION_NUMBER: &str = "150000";

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    function("current_catalog", (0, 0), |system, _| text(&system.identity().database)),
    function("current_database", (0, 0), |system, _| text(&system.identity().database)),
    function("current_role", (0, 0), |system, _| text(&system.identity().role)),
    function("current_schema", (0, 0), |system, _| optional(searched(system).into_iter().next())),
    function("current_schemas", (1, 1), current_schemas),
    function("current_user", (0, 0), |system, _| text(&system.identity().role)),
    function("getdatabaseencoding", (0, 0), |_, _| text("UTF8")),
    function("inet_client_addr", (0, 0), client_address),
    function("inet_client_port", (0, 0), |_, _| Value::Null),
    function("inet_server_addr", (0, 0), |_, _| Value::Null),
    function("inet_server_port", (0, 0), |_, _| Value::Null),
    function("pg_backend_pid", (0, 0), |system, _| int(system.identity().pid)),
    // A client that waits for another has no place in a queue that others could see.
    function("pg_blocking_pids", (1, 1), |_, _| text("[]")),
    function("pg_char_to_encoding", (1, 1), char_to_encoding),
    function("pg_client_encoding", (0, 0), |_, _| text("UTF8")),
    function("pg_conf_load_time", (0, 0), |system, _| moment(system.server().started_ms())),
    function("pg_current_xact_id", (0, 0), transaction),
    function("pg_encoding_to_char", (1, 1), |_, call| match call.integer(0) {
        Some(crate::system::content::UTF8) => text("UTF8"),
        Some(0) => text("SQL_ASCII"),
        _ => text(""),
    }),
    fallible("pg_export_snapshot", (0, 0), |_, _| {
        let error = SqlError::not_supported("pg_export_snapshot()");
        Err(error.with_hint("transactions share no snapshot: use one connection, as pg_dump does without -j"))
    }),
    function("pg_is_in_recovery", (0, 0), |_, _| truth(false)),
    function("pg_is_other_temp_schema", (1, 1), |_, _| truth(false)),
    function("pg_my_temp_schema", (0, 0), |_, _| int(0)),
    function("pg_postmaster_start_time", (0, 0), |system, _| moment(system.server().started_ms())),
    function("row_security_active", (1, 1), |_, _| truth(false)),
    function("session_user", (0, 0), |system, _| text(&system.identity().user)),
    function("txid_current", (0, 0), transaction),
    function("user", (0, 0), |system, _| text(&system.identity().role)),
    // No transaction is older than another, and consoles that ask for what is new find all.
    function("xid_age", (1, 1), |_, _| int(0)),
    function("version", (0, 0), |_, _| text(&version())),
];

fn version() -> String {
    let (package, architecture) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    format!("PostgreSQL {SERVER_VERSION} (sqlcached {package}) on {architecture}")
}

/// Each statement is numbered by what it sees.
fn transaction(system: &System, _: &Call) -> Value {
    int(system.store().view().stamp())
}

fn client_address(system: &System, _: &Call) -> Value {
    let pid = system.identity().pid;
    let mine = system.server().sessions().into_iter().find(|session| session.pid == pid);
    optional(mine.and_then(|session| session.address))
}

fn current_schemas(system: &System, call: &Call) -> Value {
    let own = searched(system);
    if call.integer(0) == Some(0) {
        return array::of_texts(own.into_iter());
    }
    // Two schemas are searched that `search_path` does not name.
    let implied = |name: &str| std::iter::once(name.to_owned());
    array::of_texts(implied("pg_catalog").chain(own).chain(implied(OWN_NAME)))
}

/// The schemas in which the session looks for names, as far as they are there.
fn searched(system: &System) -> Vec<String> {
    let catalog = system.catalog();
    if catalog.path().is_empty() {
        return vec![PUBLIC_NAME.to_owned()];
    }
    let known = |name: &String| match catalog.namespace(name) {
        Some(own) => Some(own.name.clone()),
        None => name.eq_ignore_ascii_case(PUBLIC_NAME).then(|| PUBLIC_NAME.to_owned()),
    };
    catalog.path().iter().filter_map(known).collect()
}

fn char_to_encoding(_: &System, call: &Call) -> Value {
    let name = call.text(0).unwrap_or_default().to_ascii_lowercase();
    int(if ["utf8", "utf-8", "unicode"].contains(&name.as_str()) { 6 } else { -1 })
}

/// Settings that are as they are in every server: `pg_settings` tells them beside the server's own.
pub(crate) const PRESET: &[(&str, &str)] = &[
    ("integer_datetimes", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C.UTF-8"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", SERVER_VERSION_NUMBER),
];

/// Settings that clients ask for where no session answers, as a new session has them.
const FIXED: &[(&str, &str)] = &[
    ("client_encoding", "UTF8"),
    ("datestyle", "ISO, MDY"),
    ("default_table_access_method", "cache"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "on"),
    ("search_path", "\"$user\", public"),
    ("standard_conforming_strings", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "off"),
];

/// What PostgreSQL fixes when it is built or started, as it is here.
pub fn preset(name: &str) -> Option<&'static str> {
    PRESET.iter().chain(FIXED).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}
