//! Generated definitions: the fuzz target of what a file says of tables, for some seconds.
#![allow(unreachable_pub, dead_code, missing_docs, reason = "the modules are fuzz targets too")]
#![allow(clippy::disallowed_methods, reason = "test support")]

#[path = "../../../../fuzz/src/harness.rs"]
mod harness;
#[path = "../../../../fuzz/src/definitions.rs"]
mod target;

use harness::{Random, Run, fails};
use store::definition::TableDef;
use target::{File, Specimen, fuzz_definitions};

/// More than fit into a run's seconds.
const INPUTS: u64 = 20_000;

fn input(random: &mut Random) -> Vec<u8> {
    let most = if random.below(2) == 0 { 8 } else { 60 };
    random.bytes(most)
}

/// Some seconds of generated definitions.
#[test]
fn generated_definitions_are_taken_or_refused() {
    let make = || {
        let file = File::new("generated");
        let specimen = Specimen::new(&file);
        assert_eq!(fuzz_definitions(&specimen, &file, b""), 3, "as they are, all are taken");
        let (mut tried, mut taken) = (0, 0);
        move |data: &[u8]| {
            tried += 1;
            taken += usize::from(fuzz_definitions(&specimen, &file, data) > 0);
            assert!(
                tried < 200 || taken > tried / 10,
                "what is refused at once tests nothing: {taken} of {tried}"
            );
        }
    };
    Run::new(INPUTS).of(make, input);
}

/// The place of a column, followed as the file says it.
#[test]
fn a_planted_place_that_is_not_bounded_is_noticed() {
    let planted = || {
        let specimen = Specimen::new(&File::new("planted"));
        move |data: &[u8]| {
            let tables: Vec<TableDef> = serde_json::from_value(specimen.edited(data)).unwrap_or_default();
            for def in &tables {
                let places = vec![(); def.slots.map_or(COLUMNS, |slots| usize::from(slots.now))];
                for column in def.columns.iter().filter_map(|column| column.slot) {
                    let () = places[usize::from(column)];
                }
            }
        }
    };
    assert!(fails(Run::new(INPUTS), planted, input));
}

/// No specimen has a table with more.
const COLUMNS: usize = 8;
