//! Medians and spreads: the figures of this machine move, so one number alone says nothing.

/// Median, and the quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// Half of the repetitions lie below.
    pub(crate) median: f64,
    /// A quarter lies below.
    pub(crate) low: f64,
    /// A quarter lies above.
    pub(crate) high: f64,
}

impl Summary {
    /// The summary of some figures; all zero if there are none.
    pub(crate) fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self { median: quantile(&sorted, 2), low: quantile(&sorted, 1), high: quantile(&sorted, 3) }
    }

    /// Ratios of paired figures: each repetition of ours by the same repetition of the peer.
    pub(crate) fn of_ratios(ours: &[f64], peers: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(peers).map(|(our, peer)| our / peer).collect();
        Self::of(&ratios)
    }
}

/// The quantile of `quarter` quarters, between neighbours where it falls between them.
fn quantile(sorted: &[f64], quarter: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = last * quarter;
    let (index, rest) = (position / 4, position % 4);
    let below = sorted.get(index).copied().unwrap_or(0.0);
    let above = sorted.get(index + 1).copied().unwrap_or(below);
    below + (above - below) * rest as f64 / 4.0
}

/// Figures for people: three significant digits.
pub(crate) fn digits(figure: f64) -> String {
    let size = figure.abs();
    if size >= 1_000.0 {
        thousands(figure)
    } else if size >= 100.0 {
        format!("{figure:.0}")
    } else if size >= 10.0 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.2}")
    }
}

/// A whole number with commas between the thousands.
pub(crate) fn thousands(figure: f64) -> String {
    let plain = format!("{figure:.0}");
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let mut text = String::from(sign);
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Summary, digits, thousands};

    #[test]
    fn median_and_quartiles() {
        let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(summary, Summary { median: 3.0, low: 2.0, high: 4.0 });
        assert!((Summary::of(&[1.0, 2.0]).median - 1.5).abs() < 1e-9);
        assert!(Summary::of(&[]).median.abs() < 1e-9);
        assert!((Summary::of_ratios(&[1.0, 4.0], &[2.0, 8.0]).median - 0.5).abs() < 1e-9);
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(-1_234.0), "-1,234");
        assert_eq!(digits(0.1234), "0.12");
        assert_eq!(digits(12.34), "12.3");
    }
}
