//! The English of the pages: the length of sentences, and idioms that a reader has to read twice.
//!
//! `cargo xtask prose` prints the figures of every page; `cargo xtask tidy` fails where one is beyond its limit.

use std::fs;
use std::ops::ControlFlow;

use crate::Outcome;
use crate::metadata::{root, tracked_files};

/// A sentence with more words holds two thoughts.
const WORDS_MAX: usize = 30;

/// So many of a hundred sentences of a page may be longer: a list that names many things needs its words.
const LONG_PERCENT_MAX: usize = 3;

/// Half of the sentences of the user's book, `docs/`, have at most so many words.
const MEDIAN_WORDS_MAX: usize = 16;

/// Phrases that only this project used, each with what a reader of its field expects. They are words in lower case.
const IDIOMS: &[(&str, &str)] = &[
    ("anew", "again; a row is refreshed"),
    ("not to be had", "not available"),
    ("of late", "recently"),
    ("is dear", "is slow, is expensive"),
    ("are dear", "are slow, are expensive"),
    ("is the matter of", "is described in"),
    ("the door", "the listener, the port, the protocol"),
    ("a door", "a listener, a port, a protocol"),
    ("every door", "every protocol"),
    ("all doors", "all protocols"),
    ("any door", "any protocol"),
    ("which door", "which protocol"),
    ("other doors", "other protocols"),
    ("memcached door", "memcached port, memcached's protocol"),
    ("postgresql door", "PostgreSQL port, PostgreSQL's protocol"),
    ("behind everybody's back", "in the background"),
    ("and its relatives", "and similar ones, by name"),
    ("and their relatives", "and similar ones, by name"),
    ("is told so", "gets an error"),
    ("are told so", "get an error"),
    ("likewise", "also, in the same way"),
    ("tells of", "reports"),
    ("begins anew", "starts again"),
    ("goes by", "uses, depends on"),
    ("that there is not", "that does not exist"),
    ("of its own accord", "by itself"),
];

/// A sentence as its reader meets it: where it begins, its words, and whether it asks something.
#[derive(Debug, PartialEq, Eq)]
struct Sentence {
    line: usize,
    words: usize,
    first: String,
    asks: bool,
}

/// Reads every page that people read. Journals of measurements keep their own words.
pub(crate) fn check() -> Outcome {
    let pages = match pages() {
        Ok(pages) => pages,
        Err(why) => return Outcome::broken(why),
    };
    let mut failures = Vec::new();
    let mut passed = 0;
    let mut book = Vec::new();
    for (name, text) in &pages {
        let complaints = complaints(text);
        passed += usize::from(complaints.is_empty());
        failures.extend(complaints.into_iter().map(|(line, why)| format!("{name}:{line}: {why}")));
        if name.starts_with("docs/") {
            book.extend(sentences(text).iter().map(|sentence| sentence.words));
        }
    }
    let median = median(&mut book);
    if median > MEDIAN_WORDS_MAX {
        failures.push(format!("docs/: the median sentence has {median} words; {MEDIAN_WORDS_MAX} at most"));
    }
    Outcome::new(passed, failures)
}

/// Prints sentences, median and the share of long sentences for each page and for the whole book.
pub(crate) fn report() -> Result<(), String> {
    println!("{:<32} sentences  median  above {WORDS_MAX}", "page");
    let mut book = Vec::new();
    for (name, text) in pages()? {
        let mut words: Vec<usize> = sentences(&text).iter().map(|sentence| sentence.words).collect();
        if name.starts_with("docs/") {
            book.extend(&words);
        }
        print_line(&name, &mut words);
    }
    print_line("docs/ together", &mut book);
    Ok(())
}

fn print_line(name: &str, words: &mut [usize]) {
    let long = words.iter().filter(|words| **words > WORDS_MAX).count();
    let tenths = (long * 1_000).checked_div(words.len()).unwrap_or(0);
    let percent = format!("{}.{} %", tenths / 10, tenths % 10);
    println!("{name:<32} {:>9}  {:>6}  {percent:>8}", words.len(), median(words));
}

/// Name and text of each page, without journals of measurements.
fn pages() -> Result<Vec<(String, String)>, String> {
    let mut pages = Vec::new();
    for file in tracked_files()? {
        let name = file.display().to_string();
        if file.extension().is_some_and(|extension| extension == "md") && !name.starts_with("bench/") {
            let text = fs::read_to_string(root().join(&file)).map_err(|error| format!("{name}: {error}"))?;
            pages.push((name, text));
        }
    }
    Ok(pages)
}

fn complaints(text: &str) -> Vec<(usize, String)> {
    let sentences = sentences(text);
    let long: Vec<&Sentence> = sentences.iter().filter(|sentence| sentence.words > WORDS_MAX).collect();
    let mut found = Vec::new();
    if long.len() * 100 > sentences.len() * LONG_PERCENT_MAX {
        let why = |words| format!("a sentence of {words} words: make two of it, or a list");
        found.extend(long.iter().map(|sentence| (sentence.line, why(sentence.words))));
    }
    for sentence in &sentences {
        if !sentence.asks && ["What", "Who", "Whoever", "Whose"].contains(&sentence.first.as_str()) {
            found.push((sentence.line, format!("'{} ...' opens a sentence: name the thing", sentence.first)));
        }
    }
    let _ = each_line(text, |line, text| {
        found.extend(idioms(text).map(|(idiom, plain)| (line, format!("'{idiom}': write {plain}"))));
        ControlFlow::Continue(())
    });
    found
}

/// The idioms in a line, each with its replacement.
pub(crate) fn idioms(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = format!(" {} ", plain(line)).to_lowercase();
    let words: String = line.chars().map(|letter| if is_word(letter) { letter } else { ' ' }).collect();
    IDIOMS.iter().filter(move |(idiom, _)| words.contains(&format!(" {idiom} "))).copied()
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '\'' || letter == '_' || letter == '-'
}

/// The sentences of a page's running text: no code, no tables, no headings, no names of tests.
fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut paragraph = Vec::new();
    let _ = each_line(text, |line, text| {
        let item = list_item(text);
        let skipped = text.starts_with('#') || text.starts_with('|') || text.starts_with("<!--");
        if text.is_empty() || skipped || item.is_some() {
            found.append(&mut split(&paragraph));
            paragraph.clear();
        }
        if !text.is_empty() && !skipped {
            paragraph.push((line, plain(item.unwrap_or(text))));
        }
        ControlFlow::Continue(())
    });
    found.append(&mut split(&paragraph));
    found
}

/// Calls `each` with the number and the text of each line outside code. Code is fenced, or indented by four blanks
/// after an empty line.
fn each_line(text: &str, mut each: impl FnMut(usize, &str) -> ControlFlow<()>) -> ControlFlow<()> {
    let (mut fenced, mut indented, mut blank) = (false, false, true);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let fence = trimmed.starts_with("```");
        fenced ^= fence;
        indented = line.starts_with("    ") && (blank || indented);
        blank = trimmed.is_empty();
        if !fenced && !fence && !indented {
            each(index + 1, trimmed)?;
        }
    }
    ControlFlow::Continue(())
}

/// The text of a list's item, without its mark.
fn list_item(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
        return Some(rest);
    }
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    (digits > 0).then(|| text[digits..].strip_prefix(". ")).flatten()
}

/// A line as it is read: code in it is one word, a link is its text, emphasis is nothing.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    for (index, part) in line.split('`').enumerate() {
        plain.push_str(if index % 2 == 0 { part } else { "code" });
    }
    while let Some(at) = plain.find("](") {
        let end = plain[at..].find(')').map_or(plain.len(), |end| at + end + 1);
        plain.replace_range(at..end, "");
    }
    plain.replace(['[', '*'], "")
}

/// Cuts a paragraph, given by its lines, where a sentence ends.
fn split(paragraph: &[(usize, String)]) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut sentence: Option<Sentence> = None;
    for (line, word) in
        paragraph.iter().flat_map(|(line, text)| text.split_whitespace().map(move |word| (*line, word)))
    {
        let new = Sentence { line, words: 0, first: word.to_owned(), asks: false };
        let current = sentence.get_or_insert(new);
        current.words += usize::from(word.contains(char::is_alphanumeric));
        let end = word.trim_end_matches([')', '"', '\'']);
        current.asks = end.ends_with('?');
        if end.ends_with(['.', '!', '?']) && !end.ends_with("...") {
            found.extend(sentence.take());
        }
    }
    found.extend(sentence);
    found.retain(|sentence| sentence.words > 0 && !["Test:", "Tests:"].contains(&sentence.first.as_str()));
    found
}

fn median(words: &mut [usize]) -> usize {
    words.sort_unstable();
    words.get(words.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{complaints, idioms, sentences};

    fn words(text: &str) -> Vec<(usize, usize)> {
        sentences(text).iter().map(|sentence| (sentence.line, sentence.words)).collect()
    }

    #[test]
    fn sentences_are_counted_outside_code_tables_and_headings() {
        let text =
            "# A heading. Two.\n\nOne two three. Four\nfive 1.5 s?\n\n| a | b. c |\n\n```sh\nx. y.\n```\n";
        assert_eq!(words(text), [(3, 3), (3, 4)]);
        assert_eq!(words("- an item\n  goes on\n- another one.\n1. first"), [(1, 4), (3, 2), (4, 1)]);
        assert_eq!(words("Run:\n\n    make bench. Now.\n    make demo\n\nThen read."), [(1, 1), (6, 2)]);
        assert_eq!(
            words("**Bold.** See `SELECT a FROM b` and [the page](x.md#y z), ... (here.) End"),
            [(1, 1), (1, 6), (1, 1)]
        );
    }

    #[test]
    fn a_page_has_few_long_sentences() {
        let long = format!("{}end.\n", "word ".repeat(30));
        let short = "A short one.\n";
        assert_eq!(complaints(&long).len(), 1);
        assert_eq!(complaints(&format!("{}{long}", short.repeat(33))).len(), 0);
        assert_eq!(complaints(&format!("{}{long}{long}", short.repeat(33))).len(), 2);
    }

    #[test]
    fn a_headless_relative_opens_no_sentence() {
        assert_eq!(
            complaints("Who waits is woken. What is it? What it holds. Whoever comes goes.\n").len(),
            3
        );
    }

    #[test]
    fn idioms_are_named_with_their_replacement() {
        assert_eq!(idioms("it begins Anew.").next(), Some(("anew", "again; a row is refreshed")));
        assert_eq!(idioms("the doors, `anew`, renewed").next(), None);
        assert_eq!(complaints("Through every\ndoor and every door.\n").len(), 1);
    }
}
