//! What tests share.

/// A generator for a random test. Its seed is printed, and `SEED=<n> cargo test <name>` replays it.
pub(crate) fn seeded() -> fastrand::Rng {
    #[expect(clippy::disallowed_methods, reason = "a test's seed is no setting")]
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
