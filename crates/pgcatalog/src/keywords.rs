//! Words of PostgreSQL's language: one line a word in `keywords.txt`.
//!
//! `word category bare`, where category is that of `pg_get_keywords()`, and bare says whether the word can be a
//! column's label without `AS`.

use std::sync::LazyLock;

/// A word, as `pg_get_keywords()` tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyword {
    pub(crate) word: &'static str,
    /// `U`: any name, `C`: no function's, `T`: only a function's or a type's, `R`: none.
    pub(crate) category: &'static str,
    /// It can be a label without `AS`.
    pub(crate) bare: bool,
}

impl Keyword {
    /// What its category means, in PostgreSQL's words.
    pub(crate) fn meaning(&self) -> &'static str {
        match self.category {
            "U" => "unreserved",
            "C" => "unreserved (cannot be function or type name)",
            "T" => "reserved (can be function or type name)",
            _ => "reserved",
        }
    }
}

/// All of them in order, so that they can be searched.
pub(crate) static KEYWORDS: LazyLock<Vec<Keyword>> =
    LazyLock::new(|| include_str!("keywords.txt").lines().filter_map(keyword).collect());

fn keyword(line: &'static str) -> Option<Keyword> {
    let mut words = line.split(' ');
    Some(Keyword { word: words.next()?, category: words.next()?, bare: words.next()? == "t" })
}

/// Whether a name needs quotes for being a word of the language, as PostgreSQL has it.
pub(crate) fn is_keyword(name: &str) -> bool {
    let known = KEYWORDS.binary_search_by_key(&name, |keyword| keyword.word).ok();
    known.and_then(|at| KEYWORDS.get(at)).is_some_and(|keyword| keyword.category != "U")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood() {
        assert_eq!(KEYWORDS.len(), include_str!("keywords.txt").lines().count());
        assert!(KEYWORDS.is_sorted_by_key(|keyword| keyword.word));
        assert!(KEYWORDS.iter().all(|keyword| ["U", "C", "T", "R"].contains(&keyword.category)));
        assert!(
            is_keyword("order") && is_keyword("timestamp") && !is_keyword("page_id") && !is_keyword("name")
        );
    }
}
