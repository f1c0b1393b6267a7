//! Generated statements: whatever they say, they end with rows, an effect, or a reason.
#![allow(unreachable_pub, dead_code, clippy::print_stdout, reason = "the modules are fuzz targets too")]

#[path = "../../../fuzz/src/grammar.rs"]
mod grammar;
#[path = "../../../fuzz/src/harness.rs"]
mod harness;
#[path = "../../../fuzz/src/sql.rs"]
mod target;

use std::sync::{Mutex, PoisonError};

use harness::{Random, Run, fails};
use target::{Database, fuzz_sql};

/// More than fit into a run's seconds.
const INPUTS: u64 = 20_000;

/// Caught panics are counted for the whole process, so one test runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn input(random: &mut Random) -> Vec<u8> {
    random.bytes(400)
}

#[test]
fn generated_statements_end_well() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Run::new(INPUTS).of(|| fuzz_sql, input);
}

/// A callback of SQLite that panics is caught and becomes an error; the target must notice nevertheless.
#[test]
fn a_planted_panic_is_noticed() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let planted = || {
        let mut database = Database::new();
        move |_: &[u8]| {
            sql::arm_fault(sql::FaultPoint::Next);
            database.check("SELECT * FROM t");
        }
    };
    assert!(fails(Run::new(1), planted, input));
    assert!(!fails(Run::new(1), || |_: &[u8]| Database::new().check("SELECT * FROM t"), input));
}
