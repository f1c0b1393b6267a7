//! Decimal numbers.

/// A plain decimal number without zeros that change nothing; `None`: it is none, such as `1e5` or `NaN`.
pub(super) fn plain(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let (whole, point) =
        (if whole.is_empty() { "0" } else { whole }, if fraction.is_empty() { "" } else { "." });
    let sign = if (whole, fraction) == ("0", "") { "" } else { sign };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// Bits of the first word of a number in the memory of a server, as in PostgreSQL's `numeric.c`.
const KIND: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
const SCALE: u16 = 0x3FFF;
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_SCALE: u16 = 0x1F80;
const SHORT_SCALE_SHIFT: u32 = 7;
const SHORT_WEIGHT: u16 = 0x003F;
const SHORT_WEIGHT_NEGATIVE: u16 = 0x0040;

/// The same number as it is sent in binary; `None`: it is no finite one.
pub(super) fn sent(datum: &[u8]) -> Option<Vec<u8>> {
    let words: Vec<u16> =
        datum.chunks(2).map(|pair| pair.try_into().map(u16::from_le_bytes)).collect::<Result<_, _>>().ok()?;
    let (first, rest) = words.split_first()?;
    let (weight, is_negative, scale, groups) = match first & KIND {
        SPECIAL => return None,
        SHORT => {
            let sign = if first & SHORT_WEIGHT_NEGATIVE == 0 { 0 } else { !SHORT_WEIGHT };
            let scale = (first & SHORT_SCALE) >> SHORT_SCALE_SHIFT;
            (first & SHORT_WEIGHT | sign, first & SHORT_NEGATIVE != 0, scale, rest)
        }
        kind => {
            let (weight, groups) = rest.split_first()?;
            (*weight, kind == NEGATIVE, first & SCALE, groups)
        }
    };
    let count = u16::try_from(groups.len()).ok()?;
    let header = [count, weight, if is_negative { NEGATIVE } else { 0 }, scale];
    Some(header.iter().chain(groups).flat_map(|word| word.to_be_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_one_way() {
        for (text, written) in [
            ("1.50", Some("1.5")),
            ("+001.0", Some("1")),
            ("-0.00", Some("0")),
            ("-0.010", Some("-0.01")),
            ("100", Some("100")),
            ("5.", Some("5")),
            (".5", None),
            ("1e5", None),
            ("NaN", None),
            ("", None),
            ("-", None),
            ("1.5.0", None),
        ] {
            assert_eq!(plain(text).as_deref(), written, "{text}");
        }
    }
}
