//! Whatever both sides send: what libFuzzer runs, over generated inputs.

use super::generated::{World, check, fuzz_forward};
use super::harness::{Random, Run, fails};

fn inputs(random: &mut Random) -> Vec<u8> {
    random.bytes(600)
}

#[test]
fn nothing_that_either_side_sends_breaks_a_session() {
    let target = || {
        let mut world = World::new();
        move |data: &[u8]| fuzz_forward(&mut world, data)
    };
    Run::new(20_000).of(target, inputs);
}

#[test]
fn a_session_that_changes_a_byte_is_found() {
    let target = || {
        let mut world = World::new();
        move |data: &[u8]| {
            check(&mut world, data, |to_source| {
                if let Some(last) = to_source.last_mut() {
                    *last ^= 1;
                }
            });
        }
    };
    assert!(fails(Run::new(2_000), target, inputs));
}
