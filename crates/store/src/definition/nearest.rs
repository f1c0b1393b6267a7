//! The name that somebody meant who wrote another.

use crate::limits::WORD_BYTES_MAX;

/// What a letter costs that is missing, too many, another, or that has changed places with the next one.
const LETTER: usize = 2;
/// What it costs to leave the end of a name unwritten, however long it is: `memory` for `memory_mb`.
const END: usize = 2;

/// What belongs to the name nearest to `word`, if one is near: one letter in three may be wrong. Capitals do not
/// matter, nor whether words are joined by `-` or `_`. Of names that are equally near the first is taken.
pub fn nearest<'n, T>(word: &str, names: impl IntoIterator<Item = (&'n str, T)>) -> Option<T> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = plain(word);
    let costs = names.into_iter().map(|(name, what)| (cost(&word, &plain(name)), what));
    let (cost, what) = costs.min_by_key(|(cost, _)| *cost)?;
    let letters = cost.0.div_ceil(LETTER);
    (letters * 3 <= word.len()).then_some(what)
}

/// A word without what does not matter.
fn plain(word: &str) -> Vec<u8> {
    word.bytes().map(|byte| if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }).collect()
}

/// What it takes to make the name of the word, and whether its end is left unwritten, which goes last of two that cost
/// the same.
fn cost(word: &[u8], name: &[u8]) -> (usize, bool) {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=name.len()).map(|letters| letters * LETTER).collect();
    for (i, letter) in word.iter().enumerate() {
        let mut next = vec![(i + 1) * LETTER];
        for (j, other) in name.iter().enumerate() {
            let changed = row[j] + if letter == other { 0 } else { LETTER };
            let mut least = changed.min(row[j + 1] + LETTER).min(next[j] + LETTER);
            if i > 0 && j > 0 && word[i - 1] == *other && name[j - 1] == *letter {
                least = least.min(before[j - 1] + LETTER);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    let unwritten = row.iter().take(name.len()).min().map(|least| (least + END, true));
    let whole = (row[name.len()], false);
    unwritten.map_or(whole, |unwritten| unwritten.min(whole))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_if_one_is_near() {
        let names = ["port", "protocol", "memory_mb", "max_connections", "ssl", "sql_port", "prefix"];
        for (word, name) in [
            ("prot", Some("port")),
            ("memroy", Some("memory_mb")),
            ("MEMORY", Some("memory_mb")),
            ("memorymb", Some("memory_mb")),
            ("max-conns", Some("max_connections")),
            ("sqlport", Some("sql_port")),
            ("prefx", Some("prefix")),
            ("protocl", Some("protocol")),
            ("ttl", None),
            ("encryption", None),
            ("", None),
            (&"port".repeat(100), None),
        ] {
            assert_eq!(nearest(word, names.map(|name| (name, name))), name, "{word}");
        }
    }
}
