//! Lists of keys.
//!
//! A list of all keys is as long as the store is large. It goes out in slices, one a turn, and only while its reader
//! keeps up, so it holds up no other connection and takes no memory; the request stands at the front of the
//! connection's input until the last slice.

use engine::{KeyDump, ListedKey, ThreadContext};
use memcache::event::{DumpItem, cachedump, metadump, mgdump};
use memcache::{Dump, KEY_MAX, Reply};

use crate::limits::{DUMP_STEPS_PER_TURN, SEND_AT_BYTES, SLAB_CLASS};

/// What `stats cachedump` answers where lists of keys are switched off; memcached's words.
const CACHE_DUMP_REFUSED: &str = "stats cachedump not allowed";

/// A list of keys that is being sent.
#[derive(Debug)]
pub(crate) struct Dumping {
    walk: KeyDump,
    form: Form,
    /// Keys that may still be listed.
    keys_left: u64,
    /// Bytes that may still be sent.
    bytes_left: usize,
}

/// How a list of keys is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Metadump,
    Mgdump,
    CacheDump,
}

/// A list of keys that is asked for.
pub(crate) struct Wanted {
    pub(crate) form: Form,
    /// Whether the slab class under which everything is reported is asked for.
    pub(crate) ours: bool,
    pub(crate) keys: u64,
    pub(crate) bytes: usize,
}

impl Dumping {
    /// Begins the list that is wanted.
    pub(crate) fn new(walk: KeyDump, wanted: &Wanted) -> Self {
        Self { walk, form: wanted.form, keys_left: wanted.keys, bytes_left: wanted.bytes }
    }

    /// The next slice. False: it was the last.
    pub(crate) fn slice(&mut self, context: &ThreadContext, out: &mut Vec<u8>) -> bool {
        let Self { walk, form, keys_left, bytes_left } = self;
        for _ in 0..DUMP_STEPS_PER_TURN {
            let more = walk.step(context, &mut |key| {
                let before = out.len();
                if *keys_left > 0 && write_key(*form, key, out) {
                    let written = out.len() - before;
                    if written > *bytes_left {
                        out.truncate(before);
                        *keys_left = 0;
                    } else {
                        *bytes_left -= written;
                        *keys_left -= 1;
                    }
                }
            });
            if !more || *keys_left == 0 {
                return false;
            }
            if out.len() >= SEND_AT_BYTES {
                break;
            }
        }
        true
    }
}

/// Appends a key to a list; false if the list has no way to write it, or no client could send what it writes: SQL can
/// give a row a key that is longer than memcached's, or empty.
fn write_key(form: Form, key: &ListedKey<'_>, out: &mut Vec<u8>) -> bool {
    let ListedKey { key, expires_at, used_at, cas, fetched, size, value_bytes } = *key;
    let item = DumpItem { key, expires_at, used_at, cas, fetched, class: SLAB_CLASS, size, value_bytes };
    if key.is_empty() || key.len() > KEY_MAX {
        return false;
    }
    match form {
        Form::Metadump => metadump(&item, out),
        Form::Mgdump => mgdump(&item, out),
        Form::CacheDump if key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) => return false,
        Form::CacheDump => cachedump(&item, out),
    }
    true
}

/// What is answered where lists of keys are switched off.
pub(crate) fn refusal_of(form: Form) -> Reply<'static> {
    match form {
        Form::Metadump => Reply::NotAllowed(Dump::Metadump),
        Form::Mgdump => Reply::NotAllowed(Dump::Mgdump),
        Form::CacheDump => Reply::ClientError(CACHE_DUMP_REFUSED),
    }
}
