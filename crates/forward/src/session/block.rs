//! Transactions that begin late: `BEGIN` is answered here, and sent in front of the first statement that the source has
//! to answer. So a transaction that only reads what is kept never reaches the source.

/// Where a session is in a transaction of its client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Block {
    /// In none.
    #[default]
    None,
    /// It has begun for the client, and not at the source.
    Waiting {
        /// The text that begins it.
        begin: Box<str>,
    },
    /// It has begun, and has done nothing but eligible reads.
    Reading,
    /// It has done something else.
    Other,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    RollBack,
}

/// Longest text that is looked at: what begins or ends a transaction is short.
const TEXT_BYTES_MAX: usize = 100;

/// Whether a text begins a transaction that reads what is committed, or says nothing of that. Others begin at once.
pub(super) fn is_begin(sql: &str) -> bool {
    let Some(words) = words(sql) else { return false };
    let mut rest = match words.split_first() {
        Some((&"BEGIN", rest)) => {
            rest.strip_prefix(&["TRANSACTION"]).or_else(|| rest.strip_prefix(&["WORK"])).unwrap_or(rest)
        }
        Some((&"START", ["TRANSACTION", rest @ ..])) => rest,
        _ => return false,
    };
    while !rest.is_empty() {
        // READ WRITE may fail, and would do so behind what the client was told.
        let modes: [&[&str]; 2] = [&["READ", "ONLY"], &["ISOLATION", "LEVEL", "READ", "COMMITTED"]];
        match modes.iter().find_map(|mode| rest.strip_prefix(*mode)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// Whether a text ends a transaction, and does nothing else.
pub(super) fn end_of(sql: &str) -> Option<End> {
    let words = words(sql)?;
    let (first, rest) = words.split_first()?;
    if !matches!(rest, [] | ["TRANSACTION" | "WORK"]) {
        return None;
    }
    match *first {
        "COMMIT" | "END" => Some(End::Commit),
        "ROLLBACK" | "ABORT" => Some(End::RollBack),
        _ => None,
    }
}

/// The words of a short text, in upper case as the words that are looked for.
fn words(sql: &str) -> Option<Vec<&'static str>> {
    const KNOWN: [&str; 16] = [
        "BEGIN",
        "START",
        "TRANSACTION",
        "WORK",
        "READ",
        "ONLY",
        "WRITE",
        "ISOLATION",
        "LEVEL",
        "COMMITTED",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "",
        ",",
    ];
    if sql.len() > TEXT_BYTES_MAX {
        return None;
    }
    let known = |word: &str| KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(word));
    let text = sql.trim().trim_end_matches(';');
    let words: Option<Vec<_>> =
        text.split(|letter: char| letter.is_ascii_whitespace() || letter == ',').map(known).collect();
    Some(words?.into_iter().filter(|word| !word.is_empty()).collect())
}

impl End {
    /// What the source says when it has ended one.
    pub(super) fn tag(self) -> &'static [u8] {
        match self {
            Self::Commit => b"COMMIT\0",
            Self::RollBack => b"ROLLBACK\0",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_begin_and_end() {
        for begin in [
            "BEGIN",
            " begin;",
            "BEGIN WORK",
            "Begin Transaction Read Only",
            "START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
            "BEGIN ISOLATION LEVEL READ COMMITTED",
        ] {
            assert!(is_begin(begin), "{begin}");
        }
        for other in [
            "",
            "BEGIN; SELECT 1",
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "START",
            "COMMIT",
            "BEGIN READ",
            "BEGIN READ WRITE",
            "BEGIN /* */",
        ] {
            assert!(!is_begin(other), "{other}");
        }
        let ends = ["COMMIT", "end;", "ROLLBACK WORK", "abort transaction"].map(end_of);
        let [commit, roll_back] = [Some(End::Commit), Some(End::RollBack)];
        assert_eq!(ends, [commit, commit, roll_back, roll_back]);
        for other in ["COMMIT AND CHAIN", "ROLLBACK TO a", "COMMIT PREPARED 'a'", "BEGIN", ""] {
            assert_eq!(end_of(other), None, "{other}");
        }
    }
}
