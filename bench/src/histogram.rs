//! Latencies in buckets that are at most 3 % wide, so that counting one costs a shift and an add.

/// Each power of two is cut into this many buckets.
const STEPS: u64 = 32;
/// `STEPS` as a power of two.
const STEP_BITS: u32 = 5;
/// Enough buckets for any 64-bit number.
const BUCKETS: usize = 60 * 32;

/// How often each latency was seen.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    /// Counts one.
    pub(crate) fn record(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(bucket(value)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// The value below or at which `share` (0 to 1) of all values lie; 0 if there are none.
    pub(crate) fn percentile(&self, share: f64) -> u64 {
        let rank = share * self.total as f64;
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen as f64 >= rank {
                return middle(index);
            }
        }
        0
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// How many values were recorded.
    pub(crate) fn count(&self) -> u64 {
        self.total
    }
}

/// Small numbers have a bucket each; above, the leading bit and the five behind it choose.
fn bucket(value: u64) -> usize {
    let index = if value < STEPS {
        value
    } else {
        let shift = value.ilog2() - STEP_BITS;
        u64::from(shift + 1) * STEPS + ((value >> shift) - STEPS)
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The middle of a bucket.
fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    let lowest = (STEPS + index % STEPS) << shift;
    lowest + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::{Histogram, bucket, middle};

    #[test]
    fn a_bucket_is_three_percent_wide() {
        for value in [0, 1, 31, 32, 33, 63, 64, 1_000, 123_456, 1 << 40, u64::MAX >> 1] {
            let back = middle(bucket(value));
            assert!(back.abs_diff(value) * 32 <= value, "{value} came back as {back}");
        }
    }

    #[test]
    fn percentiles_of_a_ramp() {
        let mut ramp = Histogram::default();
        (1..=10_000).for_each(|value| ramp.record(value));
        assert!(ramp.percentile(0.5).abs_diff(5_000) < 160);
        assert!(ramp.percentile(0.99).abs_diff(9_900) < 310);
        assert_eq!(ramp.count(), 10_000);
        ramp.clear();
        assert_eq!(ramp.percentile(0.5), 0);
    }
}
