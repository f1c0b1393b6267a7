//! A sequence in force: how it is defined, and where it stands.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::definition::{Access, Place, SequenceDef};

/// A sequence under its definition. What it gives out is the same under an earlier and a later one.
#[derive(Clone, Debug)]
pub struct Sequence {
    def: SequenceDef,
    pub(crate) state: Arc<SequenceState>,
}

#[derive(Debug)]
pub(crate) struct SequenceState {
    pub(crate) now: Mutex<Now>,
    /// What the definitions say, or are about to. Changed by who holds their lock.
    pub(crate) written: Mutex<Place>,
}

/// Where a sequence stands, and how many of the numbers to come are behind what the definitions say.
#[derive(Debug)]
pub(crate) struct Now {
    pub(crate) place: Place,
    pub(crate) left: i64,
}

impl Sequence {
    pub(crate) fn new(def: SequenceDef) -> Self {
        let now = Mutex::new(Now { place: def.place, left: 0 });
        let written = Mutex::new(def.place);
        Self { def, state: Arc::new(SequenceState { now, written }) }
    }

    /// The same under another definition.
    pub(crate) fn redefined(&self, def: SequenceDef) -> Self {
        *self.state.now.lock() = Now { place: def.place, left: 0 };
        *self.state.written.lock() = def.place;
        Self { def, state: Arc::clone(&self.state) }
    }

    /// The same with other privileges. Numbers are given out meanwhile.
    pub(crate) fn with_access(&self, access: Access) -> Self {
        let state = Arc::clone(&self.state);
        Self { def: SequenceDef { access, ..self.def.clone() }, state }
    }

    /// How it was defined. It stands where [`Sequence::place`] says.
    pub fn def(&self) -> &SequenceDef {
        &self.def
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.state.now.lock().place
    }

    /// Its definition as it is written: behind all that was given out.
    pub(crate) fn written(&self) -> SequenceDef {
        SequenceDef { place: *self.state.written.lock(), ..self.def.clone() }
    }

    /// Its definition with where it stands.
    pub fn current(&self) -> SequenceDef {
        SequenceDef { place: self.place(), ..self.def.clone() }
    }

    /// The next number, if the definitions say already that it may be in use.
    pub(crate) fn next_reserved(&self) -> Option<i64> {
        let mut now = self.state.now.lock();
        let next = self.def.next(now.place).filter(|_| now.left > 0)?;
        *now = Now { place: Place { last: next, called: true }, left: now.left - 1 };
        Some(next)
    }
}
