//! What happened recently: who did it, and a list of the last of it that has a bound.

use std::collections::VecDeque;
use std::fmt::Write as _;

use parking_lot::Mutex;
use store::value::{Value, ValueRef};

use crate::audit::By;
use crate::limits::HAPPENED_TEXT_BYTES_MAX;

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Who {
    /// The role that connected, the rule's table owner, or the source; empty: nobody in particular.
    pub(crate) role: String,
    /// The number of a SQL session.
    pub(crate) pid: Option<i32>,
    /// The client's address; none on a Unix socket and for the server's own.
    pub(crate) address: Option<String>,
    /// `postgresql`, `memcached`, `http`, `rule`, `source`.
    pub(crate) protocol: &'static str,
}

impl Who {
    /// The same for the audit log.
    pub(crate) fn by(&self) -> By<'_> {
        let Self { role, pid, address, protocol } = self;
        By { role, address: address.as_deref(), protocol, pid: *pid }
    }
}

/// The last of something, the newest last. Its lock is held for a moment.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    last: Mutex<VecDeque<T>>,
    max: usize,
}

impl<T: Clone> Ring<T> {
    /// Room for so many.
    pub(crate) fn new(max: usize) -> Self {
        Self { last: Mutex::default(), max }
    }

    /// Adds one. `merge`: is asked of so many of the newest, from the newest on, and may take it in instead.
    pub(crate) fn push(&self, one: T, among: usize, mut merge: impl FnMut(&mut T, &T) -> bool) {
        let mut last = self.last.lock();
        if last.iter_mut().rev().take(among).any(|known| merge(known, &one)) {
            return;
        }
        if last.len() >= self.max {
            last.pop_front();
        }
        last.push_back(one);
    }

    /// All that are kept.
    pub(crate) fn all(&self) -> Vec<T> {
        self.last.lock().iter().cloned().collect()
    }
}

/// A text in one line, with its end cut off where it is long.
pub(crate) fn bounded(text: &str) -> String {
    let mut short =
        text[..text.floor_char_boundary(HAPPENED_TEXT_BYTES_MAX)].replace(['\n', '\r', '\t'], " ");
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// The values of parameters, as PostgreSQL's log writes them: each of so many bytes at most, all of them bounded.
pub(crate) fn parameters(values: &[Value], bytes_max: usize) -> Option<String> {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        if text.len() > HAPPENED_TEXT_BYTES_MAX {
            break;
        }
        let comma = if at == 0 { "" } else { ", " };
        // Writing to a String never fails.
        let _written = write!(text, "{comma}${} = ", at + 1);
        write_value(value.as_ref(), bytes_max.min(HAPPENED_TEXT_BYTES_MAX), &mut text);
    }
    (!text.is_empty()).then(|| bounded(&text))
}

fn write_value(value: ValueRef<'_>, bytes_max: usize, out: &mut String) {
    let _written = match value {
        ValueRef::Null => write!(out, "NULL"),
        ValueRef::Integer(number) => write!(out, "'{number}'"),
        ValueRef::Real(number) => write!(out, "'{number}'"),
        ValueRef::Text(text) => {
            let shown = &text[..text.floor_char_boundary(bytes_max)];
            let end = if shown.len() < text.len() { "..." } else { "" };
            write!(out, "'{}{end}'", shown.replace('\'', "''"))
        }
        ValueRef::Blob(bytes) => {
            let shown = &bytes[..bytes.len().min(bytes_max / 2)];
            let hex = shown.iter().fold(String::new(), |mut hex, byte| {
                let _written = write!(hex, "{byte:02x}");
                hex
            });
            write!(out, "'\\x{hex}{}'", if shown.len() < bytes.len() { "..." } else { "" })
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_a_bound_and_merges() {
        let ring = Ring::new(3);
        for number in 0..10 {
            ring.push(number, 0, |_, _| panic!("nothing is asked"));
        }
        assert_eq!(ring.all(), [7, 8, 9]);
        ring.push(8, 2, |known, new| {
            let same = known == new;
            *known += i32::from(same) * 100;
            same
        });
        assert_eq!(ring.all(), [7, 108, 9]);
    }

    #[test]
    fn parameters_are_bounded() {
        let values =
            [Value::Integer(1), Value::Null, Value::Text("it's".into()), Value::Blob(vec![0, 255, 7, 8])];
        assert_eq!(
            parameters(&values, 100).unwrap(),
            "$1 = '1', $2 = NULL, $3 = 'it''s', $4 = '\\x00ff0708'"
        );
        assert_eq!(parameters(&values[2..], 2).unwrap(), "$1 = 'it...', $2 = '\\x00...'");
        assert_eq!(parameters(&[], 100), None);
        let many = vec![Value::Text("x".repeat(900)); 1000];
        assert!(parameters(&many, usize::MAX).unwrap().len() <= HAPPENED_TEXT_BYTES_MAX + 3);
        assert_eq!(bounded("a\nb"), "a b");
        assert!(bounded(&"\u{e9}".repeat(HAPPENED_TEXT_BYTES_MAX)).len() <= HAPPENED_TEXT_BYTES_MAX + 3);
    }
}
