//! Floats as PostgreSQL writes them: the shortest digits that read back as the same number, and an exponent where the
//! number is very large or small.

/// From this power of ten on a double has an exponent, and a single.
const DOUBLE_EXPONENT_FROM: i32 = 15;
const SINGLE_EXPONENT_FROM: i32 = 6;
/// Below this one both have.
const EXPONENT_BELOW: i32 = -4;

/// A double.
pub fn text(number: f64) -> String {
    written(number, number.to_string(), &format!("{number:e}"), DOUBLE_EXPONENT_FROM)
}

/// A single, which is kept as a double.
#[expect(clippy::cast_possible_truncation, reason = "it is a single")]
pub fn single_text(number: f64) -> String {
    let single = number as f32;
    written(number, single.to_string(), &format!("{single:e}"), SINGLE_EXPONENT_FROM)
}

fn written(number: f64, plain: String, scientific: &str, from: i32) -> String {
    if number.is_infinite() {
        return if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return plain };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (EXPONENT_BELOW..from).contains(&exponent) {
        return plain;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_by_postgresql() {
        for (number, double, single) in [
            (1.0, "1", "1"),
            (-2.5, "-2.5", "-2.5"),
            (1e20, "1e+20", "1e+20"),
            (1e14, "100000000000000", "1e+14"),
            (1e-5, "1e-05", "1e-05"),
            (0.1, "0.1", "0.1"),
            (f64::NEG_INFINITY, "-Infinity", "-Infinity"),
            (f64::NAN, "NaN", "NaN"),
        ] {
            assert_eq!((text(number).as_str(), single_text(number).as_str()), (double, single));
        }
    }
}
