//! Words of a line, as the files of rules and maps have them.

/// A word of a line. What stands in quotes is a name, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) quoted: bool,
}

/// The words of a line, and `None`s for the commas between them.
pub(crate) fn words(line: &str) -> Result<Vec<Option<Word>>, String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '#' => break,
            ',' => words.push(None),
            '"' => {
                let text: String = chars.by_ref().take_while(|next| *next != '"').collect();
                // `take_while` has taken the closing quote, if there is one.
                if !line.matches('"').count().is_multiple_of(2) {
                    return Err("a quote is not closed".into());
                }
                words.push(Some(Word { text, quoted: true }));
            }
            blank if blank.is_whitespace() => {}
            first => {
                let mut text = String::from(first);
                while let Some(next) = chars.next_if(|next| !next.is_whitespace() && !",\"#".contains(*next))
                {
                    text.push(next);
                }
                words.push(Some(Word { text, quoted: false }));
            }
        }
    }
    Ok(words)
}
