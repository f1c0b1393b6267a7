//! A statement's sight of the store, lent to the cursors of the statement that SQLite runs.
//!
//! Cursors live inside SQLite and outlive no statement, but the borrow checker cannot see that. So the view is
//! handed to them call by call, and only while the statement that owns it lends it.

use std::cell::Cell;
use std::fmt;
use std::ptr;

use store::View;

/// The place of the view that is lent at the moment, if any.
pub struct LentView {
    at: Cell<*const ()>,
}

impl fmt::Debug for LentView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LentView").field("lent", &!self.at.get().is_null()).finish()
    }
}

impl Default for LentView {
    /// A place with nothing lent.
    fn default() -> Self {
        Self { at: Cell::new(ptr::null()) }
    }
}

impl LentView {
    /// Lends the view for the length of `body`.
    pub fn lend<T>(&self, view: &View<'_>, body: impl FnOnce() -> T) -> T {
        struct TakeBack<'a>(&'a Cell<*const ()>, *const ());
        impl Drop for TakeBack<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _take_back = TakeBack(&self.at, self.at.replace(ptr::from_ref(view).cast()));
        body()
    }

    /// Uses the view that is lent; `None` when none is.
    #[inline]
    pub fn with<T>(&self, body: impl FnOnce(&View<'_>) -> T) -> Option<T> {
        let at = self.at.get();
        if at.is_null() {
            return None;
        }
        // SAFETY: `lend` set the address from a reference that outlives its body, and takes it back before it
        // returns, also by a panic; this thread alone can get here (`Cell`), so it is within that body. A view's
        // lifetime is that of shared borrows of the store and of a transaction's list, which may be shortened to this
        // call.
        Some(body(unsafe { &*at.cast::<View<'_>>() }))
    }
}
