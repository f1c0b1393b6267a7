//! What the random tests share.

/// The seed of a random test: `SEED`, or a new one. It is printed, so that a failure can be replayed.
#[allow(clippy::print_stdout, reason = "a failure shows what its test printed")]
pub(crate) fn seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the environment says which run to replay")]
    let given = std::env::var("SEED");
    let given = given.ok().map(|seed| seed.parse().expect("SEED is a number"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    seed
}
