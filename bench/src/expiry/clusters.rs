//! Caches of a large service, by the few numbers that tell what they store, for how long, and how it is asked for.
//!
//! From the statistics that Twitter published of its caches of March 2020 (github.com/twitter/cache-trace,
//! `stat/2020Mar.md`, CC BY 4.0; Yang, Yue, Rashmi: A large scale analysis of hundreds of in-memory cache clusters at
//! Twitter, OSDI 2020).

/// One cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cluster {
    pub(super) name: &'static str,
    /// Means in bytes.
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    /// Of all requests, those for an object that was never asked for before.
    pub(super) new_share: f64,
    /// The exponent of the popularity.
    pub(super) alpha: f64,
    /// Common times to live in seconds, each with its share.
    pub(super) lives: &'static [(f64, f64)],
    /// Megabytes of all objects that were asked for, and of those within their time to live.
    pub(super) all_mb: f64,
    pub(super) living_mb: f64,
}

const HOUR: f64 = 3_600.0;
const DAY: f64 = 24.0 * HOUR;

/// Four with different mixes: half a day to two weeks; mostly a day, and much that is new; five days and twenty
/// seconds; half a day for all, and little of it alive at a time.
pub(super) const CLUSTERS: [Cluster; 4] = [
    Cluster {
        name: "cluster 52",
        key_bytes: 20,
        value_bytes: 273,
        new_share: 0.0307,
        alpha: 1.2117,
        lives: &[(DAY, 0.65), (14.0 * DAY, 0.27), (DAY / 2.0, 0.07)],
        all_mb: 14_057.0,
        living_mb: 12_583.0,
    },
    Cluster {
        name: "cluster 22",
        key_bytes: 54,
        value_bytes: 4,
        new_share: 0.2343,
        alpha: 0.7624,
        lives: &[(DAY, 0.85), (HOUR, 0.11), (HOUR / 2.0, 0.03)],
        all_mb: 3_627.0,
        living_mb: 1_682.0,
    },
    Cluster {
        name: "cluster 11",
        key_bytes: 24,
        value_bytes: 170,
        new_share: 0.0219,
        alpha: 1.4891,
        lives: &[(5.0 * DAY, 0.97), (20.0, 0.03)],
        all_mb: 1_898.0,
        living_mb: 1_751.0,
    },
    Cluster {
        name: "cluster 18",
        key_bytes: 18,
        value_bytes: 37,
        new_share: 0.0015,
        alpha: 2.0994,
        lives: &[(DAY / 2.0, 1.0)],
        all_mb: 311.0,
        living_mb: 41.0,
    },
];

/// The time that the statistics cover, in seconds.
pub(super) const COVERED: f64 = 7.0 * DAY;

impl Cluster {
    /// The time to live of an object, by a number between 0 and 1 that is its own.
    pub(super) fn life(&self, even: f64) -> f64 {
        let total: f64 = self.lives.iter().map(|(_, share)| share).sum();
        let mut rest = even * total;
        for &(life, share) in self.lives {
            if rest < share {
                return life;
            }
            rest -= share;
        }
        self.lives.last().map_or(DAY, |last| last.0)
    }

    /// How many objects back the next one asked for is, of so many; `even` lies between 0 and 1. The newest are asked
    /// for most: the share falls with the rank to the power of `alpha`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and `objects`")]
    pub(super) fn rank(&self, objects: u64, even: f64) -> u64 {
        let exponent = 1.0 - self.alpha;
        let last = (objects as f64 + 1.0).powf(exponent);
        let rank = (1.0 + even * (last - 1.0)).powf(1.0 / exponent);
        (rank as u64).clamp(1, objects.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::{CLUSTERS, DAY};

    #[test]
    fn lives_come_in_their_shares() {
        let long = (0..1_000).filter(|n| CLUSTERS[0].life(f64::from(*n) / 1_000.0) > 13.0 * DAY).count();
        assert!((265..=280).contains(&long), "{long}");
        assert!((CLUSTERS[3].life(0.999) - DAY / 2.0).abs() < 1.0);
    }

    #[test]
    fn ranks_stay_within_and_the_newest_lead() {
        for cluster in CLUSTERS {
            assert_eq!((cluster.rank(1_000, 0.0), cluster.rank(1, 0.999_999)), (1, 1));
            assert!(cluster.rank(1_000, 0.999_999) <= 1_000);
            let near = (0..1_000).filter(|n| cluster.rank(1_000, f64::from(*n) / 1_000.0) <= 100).count();
            // An even choice would take 100 of these; the flattest of the four takes 479.
            assert!(near > 450, "{}: {near}", cluster.name);
        }
    }
}
