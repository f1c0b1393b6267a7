//! `watch`: events as lines, in memcached's words.

use std::fmt::Write;
use std::sync::Arc;

use engine::{Event, Happening, Seen, WatcherEnd};
use memcache::event::url_encoded;

use crate::limits::SLAB_CLASS;
use crate::mailbox::{Address, Mailbox, Message};

/// Where the events for a connection go. Its worker is told when some wait.
pub(crate) fn end(address: Address, mailbox: Arc<Mailbox>) -> WatcherEnd {
    let wake = Box::new(move || mailbox.send(Message::Events(address)));
    WatcherEnd { write, skipped, wake }
}

fn skipped(count: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("skipped={count}\n").as_bytes());
}

fn write(event: &Event<'_>, out: &mut Vec<u8>) {
    let (seconds, micros) = (event.unix_ms / 1_000, event.unix_ms % 1_000 * 1_000);
    let mut line = format!("ts={seconds}.{micros:06} gid={} ", event.number);
    // Writing to a string does not fail.
    let _ = match event.what {
        Happening::Command { key, connection, seen } => command(&name(key), connection, seen, &mut line),
        Happening::Evicted(eviction) => {
            let fetched = if eviction.fetched { "yes" } else { "no" };
            let ttl = eviction.seconds_left.map_or(-1, u64::cast_signed);
            let (unused, size) = (eviction.seconds_unused, eviction.size);
            write!(
                line,
                "type=eviction key={} fetch={fetched} ttl={ttl} la={unused} clsid={SLAB_CLASS} size={size}",
                name(&eviction.key)
            )
        }
        Happening::Connected { connection, peer, port } => {
            let (peer, transport) = transport(peer);
            write!(line, "type=conn_new rip={peer} rport={port} transport={transport} cfd={connection}")
        }
        Happening::Closed { connection, peer, port, reason } => {
            let (peer, transport) = transport(peer);
            write!(
                line,
                "type=conn_close rip={peer} rport={port} transport={transport} reason={reason} cfd={connection}"
            )
        }
    };
    line.push('\n');
    out.extend_from_slice(line.as_bytes());
}

fn command(name: &str, connection: i32, seen: Seen<'_>, line: &mut String) -> std::fmt::Result {
    match seen {
        Seen::Fetched(bytes) => {
            let (status, class) = if bytes.is_some() { ("found", SLAB_CLASS) } else { ("not_found", 0) };
            let size = bytes.unwrap_or(0);
            write!(
                line,
                "type=item_get key={name} status={status} clsid={class} cfd={connection} size={size}"
            )
        }
        Seen::Stored { command, status, bytes, exptime } => {
            let ttl = exptime.max(0);
            write!(
                line,
                "type=item_store key={name} status={status} cmd={command} ttl={ttl} clsid={SLAB_CLASS} \
                 cfd={connection} size={bytes}"
            )
        }
        Seen::Deleted { command, bytes } => {
            let size = bytes.unwrap_or(0);
            write!(line, "type=deleted key={name} cmd={command} clsid={SLAB_CLASS} size={size}")
        }
    }
}

fn name(key: &[u8]) -> String {
    let mut name = Vec::new();
    url_encoded(key, &mut name);
    String::from_utf8_lossy(&name).into_owned()
}

/// What stands for a peer, and how it came: one without an address by the Unix socket.
fn transport(peer: &str) -> (&str, &'static str) {
    if peer.is_empty() { ("unix", "local") } else { (peer, "tcp") }
}
