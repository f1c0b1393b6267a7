//! Where the pieces of a rewritten text came from, so that errors speak of the text that the user sent.

use crate::error::SqlError;

/// Pieces of a rewritten text in their order: where each begins there, and what it stands for in the user's text, both
/// in bytes.
#[derive(Debug, Default)]
pub struct Places(Vec<(usize, usize)>);

impl Places {
    /// Those of a text that was not changed.
    pub fn unchanged() -> Self {
        Self(vec![(0, 0)])
    }

    /// A piece begins at `new` that stands for what begins at `old`.
    pub fn push(&mut self, new: usize, old: usize) {
        self.0.push((new, old));
    }

    /// Turns the error's place in the rewritten text, in characters from 1, into one of the user's text.
    ///
    /// Within a piece that reads as the user wrote it up to there it is the very place, else where the piece begins.
    pub fn relocate(&self, mut error: SqlError, rewritten: &str, user: &str) -> SqlError {
        let Some(position) = error.position.take() else { return error };
        let mut characters = rewritten.char_indices();
        let offset = characters.nth(position.saturating_sub(1)).map_or(rewritten.len(), |(at, _)| at);
        let piece = self.0.partition_point(|(new, _)| *new <= offset).saturating_sub(1);
        let Some(&(new, old)) = self.0.get(piece) else { return error };
        let same = rewritten.get(new..offset) == user.get(old..old + (offset - new));
        let at = if same { old + (offset - new) } else { old };
        let at = (at..=user.len()).find(|at| user.is_char_boundary(*at)).unwrap_or(user.len());
        let blanks = user[at..].len() - user[at..].trim_start().len();
        error.at(user, (at + blanks).min(user.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_users_text() {
        let user = "\u{e9} CURRENT x tail";
        let rewritten = "\u{e9} f() x tail";
        let mut places = Places::default();
        for (new, old) in [(0, 0), (3, 3), (6, 10)] {
            places.push(new, old);
        }
        // In characters from 1: unchanged, within what was rewritten, behind it, at the end, beyond it.
        for (new, old) in [(1, 1), (3, 3), (5, 3), (7, 11), (9, 13), (13, 17), (99, 17)] {
            let error = SqlError { position: Some(new), ..SqlError::new("42601", "x") };
            assert_eq!(places.relocate(error, rewritten, user).position, Some(old), "{new}");
        }
        let nowhere = SqlError::new("42601", "x");
        assert_eq!(places.relocate(nowhere, rewritten, user).position, None);
        let error = SqlError { position: Some(5), ..SqlError::new("42601", "x") };
        assert_eq!(Places::unchanged().relocate(error, user, user).position, Some(5));
    }
}
