//! How long something has lasted, for people.

use std::time::Duration;

/// The two largest units of a time.
pub(crate) fn span(time: Duration) -> String {
    let whole = time.as_secs();
    let (days, hours, minutes) = (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{whole} s"),
        (0, 0, _) => format!("{minutes} min {} s", whole % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::span;

    #[test]
    fn the_two_largest_units_are_shown() {
        for (seconds, text) in
            [(0, "0 s"), (59, "59 s"), (65, "1 min 5 s"), (7_380, "2 h 3 min"), (273_700, "3 d 4 h")]
        {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }
}
