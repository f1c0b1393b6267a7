//! The words `now`, `today`, `tomorrow` and `yesterday`. As a date or a time they are computed when they are read,
//! and leave no trace in the tree.

const WORDS: &[&str] = &["now", "today", "tomorrow", "yesterday"];

/// The first of these words that a text contains. PostgreSQL takes any run of letters in a date for a word, in any
/// case.
pub(crate) fn clock_word(text: &[u8]) -> Option<&'static str> {
    text.split(|byte| !byte.is_ascii_alphabetic())
        .find_map(|run| WORDS.iter().find(|word| run.eq_ignore_ascii_case(word.as_bytes())).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters() {
        for text in ["now", "Today", "[2020-01-01,TOMORROW)", "{yesterday}", "now()", "2020 now"] {
            assert!(clock_word(text.as_bytes()).is_some(), "{text}");
        }
        for text in ["", "know", "nowadays", "snow", "to day", "infinity", "2020-01-01"] {
            assert_eq!(clock_word(text.as_bytes()), None, "{text}");
        }
    }
}
