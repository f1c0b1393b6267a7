//! The frame of a command on a key.

use crate::answer::Answer;
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::ThreadContext;

impl Session {
    /// Runs a command of memcached's on a key: if the session may, within the time of its class, however it ends. Tests
    /// can have it panic here, by the command's name.
    #[inline]
    pub(crate) fn on_key<T>(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        command: Command,
        run: impl FnOnce(&mut ThreadContext) -> Result<T, Answer>,
    ) -> Result<T, Answer> {
        self.allow_key(context, key, command)?;
        #[cfg(debug_assertions)]
        crate::testing::pass(command.name(), key);
        context.timed(command, Some(key), run)
    }
}

impl ThreadContext {
    /// Runs a command, and takes note of its key and of how long it took if it is one that is sampled.
    #[inline]
    pub(crate) fn timed<T>(
        &mut self,
        command: Command,
        key: Option<&[u8]>,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let began = self.begin_timed(command, key);
        let done = run(self);
        if let Some(began) = began {
            self.end_timed(began, command.class());
        }
        done
    }
}

/// What a client hears that is answered in one word, refused or not.
#[inline]
pub(crate) fn answer_of(done: Result<Answer, Answer>) -> Answer {
    match done {
        Ok(answer) | Err(answer) => answer,
    }
}
