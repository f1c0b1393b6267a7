//! A panic in the middle of a change ends the process.
//!
//! Whoever catches the panic of a command goes on serving, and must not find locks let go over a change that is half
//! done. What is in the arena is safe at every single store: the next start proves or drops it.

/// Alive while shared state is being changed.
#[derive(Debug)]
pub(crate) struct Mutation;

impl Drop for Mutation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
