//! The audit log: who came in and who did not, who defined, granted and invalidated what. A line of JSON for each,
//! behind the last one of a file.
//!
//! Values are left out of statements: a password in one would be in the file for good. Definitions of a transaction
//! stand in the log as they are done, whether it commits or not. Its invalidations stand there when it commits, but for
//! those beyond a number.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use sql::RefusalFacts;
use store::Clock;
use store::scalar::moment::write_timestamptz;

use crate::limits::AUDIT_FILE_MODE;

/// The invalidations that a source's stream brings are none of anybody here.
const OF_SOURCES: &str = "source";

/// See the module.
#[derive(Debug)]
pub(crate) struct Audit {
    clock: Clock,
    /// There is a file. Relaxed: what happens beside its opening may be in it or not.
    on: AtomicBool,
    /// Held while a line is written.
    file: Mutex<Option<File>>,
    /// The last line could not be written, and that was said.
    failed: AtomicBool,
}

/// Who did something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By<'b> {
    pub(crate) role: &'b str,
    pub(crate) address: Option<&'b str>,
    pub(crate) protocol: &'static str,
    /// The number of a SQL session.
    pub(crate) pid: Option<i32>,
}

/// A line of the log: the event's parts in their order.
struct Line(Map<String, Value>);

impl Line {
    fn new(event: &str) -> Self {
        Self(Map::new()).with("at", None::<&str>).with("event", Some(event))
    }

    fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        self.0.insert(name.to_owned(), value.map_or(Value::Null, Into::into));
        self
    }

    fn by(self, by: &By<'_>) -> Self {
        self.with("role", Some(by.role))
            .with("address", by.address)
            .with("protocol", Some(by.protocol))
            .with("pid", by.pid)
    }
}

impl Audit {
    /// One without a file.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, on: AtomicBool::new(false), file: Mutex::default(), failed: AtomicBool::new(false) }
    }

    /// Goes on in this file, behind what it holds; none: nowhere. A file of the same name may be another one by now.
    pub(crate) fn set_file(&self, path: Option<&Path>) -> io::Result<()> {
        let open = |path| OpenOptions::new().append(true).create(true).mode(AUDIT_FILE_MODE).open(path);
        let file = path.map(open).transpose()?;
        self.on.store(file.is_some(), Ordering::Relaxed);
        *self.file.lock() = file;
        Ok(())
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// A role was let in.
    pub(crate) fn note_login(&self, role: &str, address: Option<IpAddr>, protocol: &'static str) {
        if self.is_on() {
            let line = Line::new("login").with("role", Some(role));
            let address = address.map(|address| address.to_string());
            self.write(line.with("address", address).with("protocol", Some(protocol)));
        }
    }

    /// A peer was not let in, or a role was refused something.
    pub(crate) fn note_refused(&self, refused: &RefusalFacts) {
        if self.is_on() {
            let line = Line::new("refused").with("role", Some(&*refused.role));
            let line =
                line.with("address", refused.address.as_deref()).with("protocol", Some(refused.protocol));
            self.write(line.with("request", Some(&*refused.request)).with("reason", Some(&*refused.reason)));
        }
    }

    /// A statement of this tag has succeeded: it is noted if it has defined something, or changed what roles may do.
    pub(crate) fn note_done(&self, by: &By<'_>, statement: &str, tag: &str) {
        let event = match () {
            () if is_of_roles(tag) => "grant",
            () if defines(tag) => "definition",
            () => return,
        };
        let line = Line::new(event).by(by);
        self.write(line.with("tag", Some(tag)).with("statement", Some(statement)));
    }

    /// So many rows were made invalid; of no table: of all that memcached's clients reach.
    pub(crate) fn note_invalidation(&self, by: &By<'_>, statement: &str, table: Option<&str>, rows: u64) {
        if self.is_on() && by.protocol != OF_SOURCES {
            let line = Line::new("invalidation").by(by).with("statement", Some(statement));
            self.write(line.with("table", table).with("rows", Some(rows)));
        }
    }

    #[cold]
    fn write(&self, line: Line) {
        let now_us = i64::try_from(self.clock.unix_us()).unwrap_or(i64::MAX);
        let at = write_timestamptz(now_us).unwrap_or_default().replace(' ', "T");
        let mut bytes = Value::from(line.with("at", Some(at)).0).to_string().into_bytes();
        bytes.push(b'\n');
        let mut file = self.file.lock();
        let Some(file) = file.as_mut() else { return };
        let written = file.write_all(&bytes);
        // Said once, until a line is written again.
        if let Err(error) = &written
            && !self.failed.load(Ordering::Relaxed)
        {
            tracing::error!(%error, "the audit log cannot be written (audit_file)");
        }
        self.failed.store(written.is_err(), Ordering::Relaxed);
    }
}

/// Whether a statement of this tag defines something.
fn defines(tag: &str) -> bool {
    let heads = ["CREATE ", "ALTER ", "DROP ", "IMPORT ", "REFRESH "];
    tag == "COMMENT" || heads.iter().any(|head| tag.starts_with(head))
}

/// Whether a statement of this tag is about roles and what they may do.
fn is_of_roles(tag: &str) -> bool {
    let heads = ["GRANT", "REVOKE", "CREATE ROLE", "ALTER ROLE", "DROP ROLE"];
    let others = ["DROP OWNED", "REASSIGN OWNED", "ALTER DEFAULT PRIVILEGES"];
    heads.iter().any(|head| tag.starts_with(head)) || others.contains(&tag)
}
