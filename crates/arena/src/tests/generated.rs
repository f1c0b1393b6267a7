//! Generated damage: the fuzz target of attach, for some seconds.
#![allow(unreachable_pub, dead_code, missing_docs, reason = "the modules are fuzz targets too")]
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "test support")]

#[path = "../../../../fuzz/src/harness.rs"]
mod harness;
#[path = "../../../../fuzz/src/arena.rs"]
mod target;

use harness::{Random, Run, fails};
use target::{Specimen, fuzz_attach};

/// More than fit into a run's seconds.
const INPUTS: u64 = 20_000;

fn input(random: &mut Random) -> Vec<u8> {
    let most = if random.below(2) == 0 { 16 } else { 300 };
    random.bytes(most)
}

/// Some seconds of generated damage.
#[test]
fn generated_damage_is_survived() {
    let make = || {
        let specimen = Specimen::new(1);
        assert!(fuzz_attach(&specimen, b""), "undamaged, it is usable");
        let (mut tried, mut usable) = (0, 0);
        move |data: &[u8]| {
            tried += 1;
            usable += u32::from(fuzz_attach(&specimen, data));
            assert!(
                tried < 200 || usable > tried / 10,
                "what is refused at once tests nothing: {usable} of {tried}"
            );
        }
    };
    Run::new(INPUTS).of(make, input);
}

/// An arena that serves other values than were stored.
#[test]
fn a_planted_wrong_value_is_noticed() {
    let planted = |salt| {
        move || {
            let mut specimen = Specimen::new(1);
            specimen.salt = salt;
            move |_: &[u8]| assert!(fuzz_attach(&specimen, b""))
        }
    };
    assert!(fails(Run::new(1), planted(2), input));
    assert!(!fails(Run::new(1), planted(1), input));
}

/// An input that does not end.
#[test]
fn a_planted_endless_loop_is_noticed() {
    let endless = || {
        |_: &[u8]| loop {
            std::thread::park();
        }
    };
    let run = Run { inputs: 1, patience: std::time::Duration::from_millis(50) };
    assert!(fails(run, endless, input));
}
