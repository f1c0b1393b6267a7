//! The statements that a client has prepared, and which of them the source has.

use std::collections::HashMap;
use std::sync::Arc;

use crate::frame::put;
use crate::limits::NAMES_MAX;
use crate::state::Hash;
use crate::text::Text;

/// Settings by which literals are read when a statement is prepared. The source tells each change of them.
const LITERAL: &[&str] =
    &["TimeZone", "DateStyle", "IntervalStyle", "standard_conforming_strings", "client_encoding"];

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: HashMap<Box<str>, Named>,
    /// How many of them the source does not have.
    deferred: usize,
    /// Statements were prepared in SQL, by names that are not known here: how often that was possible.
    pub(super) doubts: u64,
    /// The client has no unnamed statement any more, and the source may still have one.
    hidden: bool,
    /// How often the source has told a setting by which it reads the literals of texts.
    told: u64,
}

#[derive(Debug)]
struct Named {
    text: Arc<Text>,
    /// The source has it.
    sent: bool,
    /// It may be gone there, or another one.
    doubted: bool,
    /// How often such a setting had been told.
    told: u64,
    /// The session's state when it was prepared, by its hash; none: it was not known.
    state: Option<Hash>,
}

impl Names {
    /// The text of a name, if its literals mean today what they meant when it was prepared.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Text>> {
        let known = |named: &&Named| !named.doubted && named.told == self.told;
        self.by_name.get(name).filter(known).map(|named| &named.text)
    }

    /// The source tells the value of a setting.
    pub(super) fn note_setting(&mut self, body: &[u8]) {
        let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
        self.told += u64::from(LITERAL.iter().any(|own| own.as_bytes() == name));
    }

    /// The text of a name, if it means in this state what it means where it is prepared in it. The source keeps the
    /// types of parameters that it found when a statement was prepared: in another state it may find others.
    pub(super) fn get_in(&self, name: &str, state: Option<&Hash>) -> Option<&Arc<Text>> {
        let text = self.get(name)?;
        let as_prepared = || state.is_none_or(|state| self.by_name[name].state.as_ref() == Some(state));
        (text.is_typed || as_prepared()).then_some(text)
    }

    /// Whether a statement of this name may be prepared without the source.
    pub(super) fn takes(&self, name: &str) -> bool {
        name.is_empty()
            || self.doubts == 0 && self.by_name.len() < NAMES_MAX && !self.by_name.contains_key(name)
    }

    /// A statement was prepared; `sent`: at the source.
    pub(super) fn put(&mut self, name: &str, text: Arc<Text>, sent: bool, state: Option<Hash>) {
        if self.by_name.len() >= NAMES_MAX && !self.by_name.contains_key(name) {
            return;
        }
        self.forget(name);
        self.deferred += usize::from(!sent);
        self.by_name.insert(name.into(), Named { text, sent, doubted: false, told: self.told, state });
    }

    /// The source has prepared a statement that it was sent after so many doubts: later ones concern it, too.
    pub(super) fn prepared(&mut self, name: &str, text: Arc<Text>, doubts: u64, state: Option<Hash>) {
        self.put(name, text, true, state);
        if let Some(named) = self.by_name.get_mut(name) {
            named.doubted = doubts != self.doubts;
        }
    }

    /// It is no more, here and at the source.
    pub(super) fn forget(&mut self, name: &str) {
        self.hidden &= !name.is_empty();
        if let Some(named) = self.by_name.remove(name) {
            self.deferred -= usize::from(!named.sent);
        }
    }

    /// A simple query was answered here: it ends the unnamed statement.
    pub(super) fn hide_unnamed(&mut self) {
        self.forget("");
        self.hidden = true;
    }

    /// Has the source forget an unnamed statement that the client has no more. True: it does, and its `CloseComplete`
    /// is ours.
    pub(super) fn close_hidden(&mut self, out: &mut Vec<u8>) -> bool {
        if self.hidden {
            put(b'C', &[b"S\0"], out);
        }
        std::mem::take(&mut self.hidden)
    }

    /// What the names stand for is not known any more.
    pub(super) fn doubt_all(&mut self) {
        self.by_name.values_mut().for_each(|named| named.doubted = true);
        self.doubts += 1;
    }

    /// Has the source prepare a statement that it does not have. True: it does, and its `ParseComplete` is ours.
    pub(super) fn send(&mut self, name: &str, out: &mut Vec<u8>) -> bool {
        if self.deferred == 0 {
            return false;
        }
        let Some(named) = self.by_name.get_mut(name).filter(|named| !named.sent) else { return false };
        named.sent = true;
        self.deferred -= 1;
        prepare(name, &named.text, out);
        true
    }

    /// The same for all of them. Returns which.
    pub(super) fn send_all(&mut self, out: &mut Vec<u8>) -> Vec<Box<str>> {
        let mut sent = Vec::new();
        if self.deferred == 0 {
            return sent;
        }
        for (name, named) in self.by_name.iter_mut().filter(|(_, named)| !named.sent) {
            named.sent = true;
            prepare(name, &named.text, out);
            sent.push(name.clone());
        }
        self.deferred = 0;
        sent
    }

    /// The source did not prepare a statement that it was sent.
    pub(super) fn unsend(&mut self, name: &str) {
        if let Some(named) = self.by_name.get_mut(name).filter(|named| named.sent) {
            named.sent = false;
            self.deferred += 1;
        }
    }
}

fn prepare(name: &str, text: &Text, out: &mut Vec<u8>) {
    let types: Vec<u8> = text.types.iter().flat_map(|number| number.to_be_bytes()).collect();
    // As many as the client's message had, which fit.
    let count = u16::try_from(text.types.len()).unwrap_or(u16::MAX).to_be_bytes();
    put(b'P', &[name.as_bytes(), b"\0", text.sql.as_bytes(), b"\0", &count, &types], out);
}
