//! Parameters: their numbers, as SQLite gives them, and what is known of their types.

use store::definition::SqlType;

use sqltext::token::Token;

/// What is known of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterType {
    /// Its type; `None`: nothing is known.
    pub ty: Option<SqlType>,
    /// Whether the statement says so itself (`$1::int`), rather than what stands beside it.
    pub cast: bool,
    /// Whether the client said so, before anything else was known.
    pub chosen: bool,
    /// Whether it is compared with a value of this type. A text that is no number is greater than all of them to
    /// SQLite, and so must not stand there.
    pub compared: bool,
}

/// The parameters of a statement.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// What the client said of them.
    chosen: Vec<ParameterType>,
    types: Vec<ParameterType>,
    names: Vec<(String, usize)>,
    /// Where each stands in the text, and its number.
    places: Vec<(usize, usize)>,
}

/// Whether a client that says a parameter is of this type leaves its meaning open: drivers send as text whatever has
/// no type of their language.
fn is_open(ty: SqlType) -> bool {
    use SqlType::{Bpchar, Char, Name, Text, Unknown, Varchar};
    matches!(ty, Text | Varchar | Bpchar | Name | Char | Unknown)
}

impl Parameters {
    /// Of a statement whose client said this of them.
    pub(super) fn new(chosen: &[Option<SqlType>]) -> Self {
        let known = |ty: &Option<SqlType>| {
            let ty = ty.filter(|ty| !is_open(*ty));
            ParameterType { ty, chosen: ty.is_some(), ..ParameterType::default() }
        };
        Self { chosen: chosen.iter().map(known).collect(), ..Self::default() }
    }

    /// The next of the text, in its order.
    pub(super) fn add(&mut self, token: &Token<'_>) {
        if let Some(number) = self.number_of(token.text) {
            for new in self.types.len()..=number {
                self.types.push(self.chosen.get(new).copied().unwrap_or_default());
            }
            self.places.push((token.start, number));
        }
    }

    /// The number of the one at a place, from 0; `None` where it is none, which SQLite reports.
    pub(super) fn number(&self, token: &Token<'_>) -> Option<usize> {
        let at = self.places.binary_search_by_key(&token.start, |(place, _)| *place).ok()?;
        Some(self.places[at].1)
    }

    fn number_of(&mut self, text: &str) -> Option<usize> {
        let digits =
            text.strip_prefix(['?', '$']).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = match digits {
            Some("") => self.types.len(),
            Some(digits) => digits.parse::<usize>().ok()?.checked_sub(1)?,
            None => {
                let known = self.names.iter().find(|(name, _)| name == text).map(|(_, number)| *number);
                known.unwrap_or_else(|| {
                    self.names.push((text.to_owned(), self.types.len()));
                    self.types.len()
                })
            }
        };
        (number < sqltext::limits::PARAMETERS_MAX).then_some(number)
    }

    /// The highest number of them.
    pub(super) fn count(&self) -> usize {
        self.types.len()
    }

    pub(super) fn ty(&self, number: usize) -> Option<SqlType> {
        self.types.get(number)?.ty
    }

    /// Whether the client or the statement said its type.
    pub(super) fn is_chosen(&self, number: usize) -> bool {
        self.types.get(number).is_some_and(|known| known.chosen || known.cast)
    }

    /// What stands beside it tells its type, if nothing else did.
    pub(super) fn suggest(&mut self, number: usize, ty: SqlType) {
        if let Some(known) = self.types.get_mut(number)
            && known.ty.is_none()
        {
            known.ty = Some(ty);
        }
    }

    /// It stands in a comparison.
    pub(super) fn note_comparison(&mut self, number: usize) {
        if let Some(known) = self.types.get_mut(number) {
            known.compared = true;
        }
    }

    /// The statement tells its type. False: it, or the client, told another one before.
    pub(super) fn declare(&mut self, number: usize, ty: SqlType) -> bool {
        let Some(known) = self.types.get_mut(number) else { return false };
        if known.cast || known.chosen {
            return known.ty == Some(ty);
        }
        *known = ParameterType { ty: Some(ty), cast: true, ..ParameterType::default() };
        true
    }

    pub(super) fn finish(&mut self) -> Vec<ParameterType> {
        std::mem::take(&mut self.types)
    }
}
