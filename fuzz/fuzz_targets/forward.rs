//! `cargo +nightly fuzz run forward`
#![no_main]

use std::cell::RefCell;

use sqlcached_fuzz::forward::{World, fuzz_forward};

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| WORLD.with_borrow_mut(|world| fuzz_forward(world, data)));
