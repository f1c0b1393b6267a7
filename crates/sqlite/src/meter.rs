//! What functions in Rust take of a statement's allowances: of its memory, and of its time.
//!
//! SQLite counts its own memory ([`crate::heap`]), and asks every so many of its operations whether to stop. A function
//! is one operation, however long it takes and whatever it builds. So each call goes through [`call`], what it takes is
//! asked for with [`take`] before it is taken, and what it does is reported with [`work`], which stops it where the
//! statement must stop. A function need not hand the refusal on: the call fails all the same.

use std::cell::Cell;
use std::rc::Rc;

use sqltext::error::{SqlError, state};
use store::patience::{self, Watch, must_stop};
use store::value::ValueRef;

use crate::limits::{PROGRESS_OPERATIONS, UNITS_PER_OPERATION};
use crate::{Arguments, heap};

/// Units of work between two looks whether to stop.
const UNITS_PER_LOOK: usize = PROGRESS_OPERATIONS.unsigned_abs() as usize * UNITS_PER_OPERATION;

thread_local! {
    /// Units of work since the last look.
    static WORKED: Cell<usize> = const { Cell::new(0) };
    /// Bytes that the calls under way took.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// Why the call under way fails.
    static REFUSED: Cell<Option<Refusal>> = const { Cell::new(None) };
}

#[derive(Clone, Copy, Debug)]
enum Refusal {
    Memory,
    Time,
}

impl From<Refusal> for SqlError {
    #[cold]
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Memory => Self::out_of_memory(),
            Refusal::Time => Self::stopped(),
        }
    }
}

/// Runs a statement's `body` with so many bytes of memory, until `policy` says that it must stop.
pub fn statement<T>(policy: Rc<dyn Watch>, bytes: usize, body: impl FnOnce() -> T) -> T {
    let _give_back = GiveBack(TAKEN.get());
    patience::watched(policy, || heap::capped(bytes, body))
}

/// Gives back what was taken since there were so many bytes.
struct GiveBack(usize);

impl Drop for GiveBack {
    fn drop(&mut self) {
        heap::give(TAKEN.replace(self.0).saturating_sub(self.0));
    }
}

/// Runs one call of a function: what it took is given back at its end.
pub fn call<T>(arguments: &Arguments<'_>, body: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    let _give_back = GiveBack(TAKEN.get());
    REFUSED.set(None);
    let bytes = (0..arguments.count()).map(|at| length(arguments.value_ref(at))).sum();
    // They are copied, and looked through.
    take(bytes)?;
    work(bytes)?;
    let result = body();
    match REFUSED.take() {
        None => result,
        Some(refusal) => Err(refusal.into()),
    }
}

/// Runs a part of a call, or of something else that has no end of its own: what it took is given back behind it.
pub fn part<T>(body: impl FnOnce() -> T) -> T {
    let _give_back = GiveBack(TAKEN.get());
    body()
}

/// What something takes that outlives the call in which it was made.
#[derive(Debug, Default)]
pub struct Kept(usize);

impl Drop for Kept {
    fn drop(&mut self) {
        heap::give(self.0);
    }
}

/// Makes something that stays, with what it takes.
pub fn kept<T>(body: impl FnOnce() -> T) -> Result<(T, Kept), SqlError> {
    let before = TAKEN.get();
    REFUSED.set(None);
    let made = body();
    let kept = Kept(TAKEN.replace(before) - before);
    match REFUSED.take() {
        None => Ok((made, kept)),
        Some(refusal) => Err(refusal.into()),
    }
}

/// Bytes of a text or of bytes.
fn length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(text) => text.len(),
        ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Asks for so many bytes of the statement's memory until the call ends.
pub fn take(bytes: usize) -> Result<(), SqlError> {
    if heap::take(bytes) {
        TAKEN.set(TAKEN.get() + bytes);
        return Ok(());
    }
    REFUSED.set(Some(Refusal::Memory));
    Err(Refusal::Memory.into())
}

/// Asks for more in the place of what was taken before: both are there for a moment.
pub fn retake(before: usize, bytes: usize) -> Result<(), SqlError> {
    take(bytes)?;
    let before = before.min(TAKEN.get());
    TAKEN.set(TAKEN.get() - before);
    heap::give(before);
    Ok(())
}

/// Reports work: a byte that is looked at or copied is one unit. Fails where the statement must stop.
#[inline]
pub fn work(units: usize) -> Result<(), SqlError> {
    let worked = WORKED.get() + units;
    WORKED.set(worked);
    if worked < UNITS_PER_LOOK { Ok(()) } else { look(worked) }
}

#[cold]
fn look(worked: usize) -> Result<(), SqlError> {
    WORKED.set(0);
    let operations = u64::try_from(worked / UNITS_PER_OPERATION).unwrap_or(u64::MAX);
    if must_stop(operations) {
        REFUSED.set(Some(Refusal::Time));
        return Err(Refusal::Time.into());
    }
    Ok(())
}

/// A text that grows within the statement's memory. Every function whose result can be much longer than its arguments
/// builds it so.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends.
    #[inline]
    pub fn push(&mut self, more: &str) -> Result<(), SqlError> {
        self.reserve(more.len())?;
        self.0.push_str(more);
        Ok(())
    }

    /// Appends a value as JSON.
    pub fn push_json(&mut self, value: &impl serde::Serialize) -> Result<(), SqlError> {
        // Writing to a String never fails, and it grows by as much as was asked for above.
        let json = serde_json::to_string(value)
            .map_err(|error| SqlError::new(state::BAD_VALUE, error.to_string()))?;
        self.push(&json)
    }

    fn reserve(&mut self, more: usize) -> Result<(), SqlError> {
        work(more)?;
        let length = self.0.len() + more;
        if length > self.0.capacity() {
            // It is moved: both are there for a moment.
            let capacity = length.max(self.0.capacity() * 2);
            retake(self.0.capacity(), capacity)?;
            self.0.reserve_exact(capacity - self.0.len());
        }
        Ok(())
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Whether JSON writes a byte of a text as it is.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && !matches!(byte, b'"' | b'\\')
}

/// Writes a JSON array of texts piece by piece.
#[derive(Debug)]
pub struct TextArray(Text);

impl TextArray {
    /// An empty one.
    pub fn new() -> Result<Self, SqlError> {
        let mut text = Text::new();
        text.push("[")?;
        Ok(Self(text))
    }

    /// Appends an element; `None` is null.
    pub fn push(&mut self, item: Option<&str>) -> Result<(), SqlError> {
        if self.0.bytes() > 1 {
            self.0.push(",")?;
        }
        match item {
            Some(text) if text.bytes().all(is_plain) => {
                self.0.push("\"")?;
                self.0.push(text)?;
                self.0.push("\"")
            }
            _ => self.0.push_json(&item),
        }
    }

    /// The array.
    pub fn finish(mut self) -> Result<String, SqlError> {
        self.0.push("]")?;
        Ok(self.0.finish())
    }
}
