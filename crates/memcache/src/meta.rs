//! What a meta command says: `mg`, `ms`, `md`, `ma` and `me`.
//!
//! A meta command is a key and flags: letters, each perhaps with a token glued to it. The parser looks at all of them
//! and keeps the text; [`Meta::options`] reads it for whoever executes the command, [`Meta::flags`] gives the letters
//! in the order of the request, in which answers repeat them.

use crate::limits::{KEY_MAX, META_FLAGS_MAX, META_OPAQUE_MAX};
use crate::token::{self, Words};
use crate::{Malformed, base64};

/// Every letter that a meta command may have, whichever command it is: memcached ignores those that mean nothing to
/// the command at hand.
const LETTERS: &[u8] = b"bcfhklqstuvxCDEFIJLMNOPRT";

/// A key as the peer wrote it: plain, or in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The text; within the limit, without spaces and control characters.
    pub text: &'a [u8],
    /// Whether the text is base64.
    pub base64: bool,
}

/// Room for a decoded key.
pub type KeyBuffer = [u8; KEY_MAX];

impl<'a> Key<'a> {
    /// A key that is its text.
    pub(crate) fn plain(text: &'a [u8]) -> Self {
        Self { text, base64: false }
    }

    /// The bytes of the key, in the text or in `buffer`.
    #[inline]
    pub fn bytes<'b>(&self, buffer: &'b mut KeyBuffer) -> &'b [u8]
    where
        'a: 'b,
    {
        // The parser lets no other text through.
        if self.base64 { base64::decode(self.text, buffer).unwrap_or_default() } else { self.text }
    }
}

/// A meta command's key and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The rest of the line; every word of it has been looked at.
    pub(crate) words: &'a [u8],
}

/// How `ms` and `ma` work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `ms` without a mode, or with `S`: stores always.
    #[default]
    Set,
    /// `ME`: if the key is not there.
    Add,
    /// `MR`: if the key is there.
    Replace,
    /// `MA`: behind the value.
    Append,
    /// `MP`: before the value.
    Prepend,
    /// `ma` without a mode, with `I` or `+`.
    Increment,
    /// `MD`, `M-`.
    Decrement,
}

/// What the flags of a meta command say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaOptions {
    /// `q`: the usual answer is not wanted.
    pub quiet: bool,
    /// `v`: the value is.
    pub value: bool,
    /// `u`: a hit does not count as a use.
    pub unnoticed: bool,
    /// `I`: `md` marks as stale; `ms` may store with an older CAS, as stale.
    pub invalidate: bool,
    /// `x`: `md` empties the value.
    pub empty: bool,
    /// `T`: a new expiry time.
    pub exptime: Option<i64>,
    /// `N`: a missing key is made, with this expiry time.
    pub vivify: Option<i64>,
    /// `R`: who sees fewer seconds left may refresh the value.
    pub recache: Option<i64>,
    /// `C`: the CAS that is compared.
    pub compare: Option<u64>,
    /// `E`: the CAS that the value gets.
    pub own_cas: Option<u64>,
    /// `F`: the peer's 32 bits.
    pub client_flags: Option<u32>,
    /// `M`.
    pub mode: Mode,
    /// `D`: how much `ma` adds or takes away.
    pub delta: u64,
    /// `J`: the number that `ma` with `N` begins with.
    pub initial: u64,
}

/// Which of the commands it is; they differ in what `M` takes and in the words of their errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Set,
    Delete,
    Arithmetic,
}

impl<'a> Meta<'a> {
    /// The flags with their tokens, in the order of the request.
    #[inline]
    pub fn flags(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        Words::new(self.words).filter_map(|word| word.split_first().map(|(letter, token)| (*letter, token)))
    }

    /// The token of `L`, which memcached accepts and ignores: here the tags of the value that is stored.
    pub fn tags(&self) -> Option<&'a [u8]> {
        self.flags().find_map(|(letter, token)| (letter == b'L').then_some(token))
    }

    /// What the flags say.
    pub fn options(&self) -> MetaOptions {
        let mut options = MetaOptions { delta: 1, ..MetaOptions::default() };
        for (letter, token) in self.flags() {
            // The parser lets no token through that cannot be read.
            let _read = options.take(letter, token);
        }
        options
    }

    /// Looks at every flag: first whether there are such letters and each comes once, then at the tokens.
    pub(crate) fn check(&self, verb: Verb) -> Result<MetaOptions, Malformed> {
        if self.flags().count() > META_FLAGS_MAX {
            return Err(Malformed::MetaFlags);
        }
        let mut seen = 0_u128;
        for (letter, _) in self.flags() {
            let bit = 1_u128 << (letter & 0x7f);
            if !letter.is_ascii_alphabetic() {
                return Err(Malformed::CommandLine);
            } else if seen & bit != 0 {
                return Err(Malformed::MetaDuplicate);
            } else if !LETTERS.contains(&letter) {
                return Err(Malformed::MetaLetter);
            }
            seen |= bit;
        }
        let mut options = MetaOptions { delta: 1, ..MetaOptions::default() };
        for (letter, token) in self.flags() {
            options.take(letter, token)?;
            if letter == b'M' {
                mode(verb, token)?;
            }
        }
        Ok(options)
    }

    /// Whether the key is to be base64.
    pub(crate) fn has_encoded_key(&self) -> bool {
        self.flags().any(|(letter, _)| letter == b'b')
    }

    /// Whether the key is base64, as it must be with `b`.
    pub(crate) fn check_key(&mut self) -> Result<(), Malformed> {
        self.key.base64 = self.has_encoded_key();
        if self.key.base64 && base64::decode(self.key.text, &mut [0; KEY_MAX]).is_none() {
            return Err(Malformed::MetaKey);
        }
        Ok(())
    }
}

impl MetaOptions {
    /// Takes one flag in.
    fn take(&mut self, letter: u8, token: &[u8]) -> Result<(), Malformed> {
        let number = || token::unsigned(token).ok_or(Malformed::MetaToken);
        let time = || token::exptime(token).ok_or(Malformed::MetaToken);
        match letter {
            b'q' => self.quiet = true,
            b'v' => self.value = true,
            b'u' => self.unnoticed = true,
            b'I' => self.invalidate = true,
            b'x' => self.empty = true,
            b'T' => self.exptime = Some(time()?),
            b'N' => self.vivify = Some(time()?),
            b'R' => self.recache = Some(time()?),
            b'C' => self.compare = Some(number()?),
            b'E' => self.own_cas = Some(number()?),
            b'D' => self.delta = number()?,
            b'J' => self.initial = number()?,
            b'F' => {
                let flags = token::client_flags(token).ok_or(Malformed::CommandLine)?;
                self.client_flags = Some(flags);
            }
            b'M' => self.mode = any_mode(token).unwrap_or_default(),
            b'O' if token.len() >= META_OPAQUE_MAX => return Err(Malformed::MetaOpaque),
            // It is sent back, and must not look like the end of a line to anybody.
            b'O' if token::has_space_or_control(token) => return Err(Malformed::MetaToken),
            _ => {}
        }
        Ok(())
    }
}

/// The mode that a token names, in whichever command.
fn any_mode(token: &[u8]) -> Option<Mode> {
    Some(match token {
        b"E" => Mode::Add,
        b"A" => Mode::Append,
        b"P" => Mode::Prepend,
        b"R" => Mode::Replace,
        b"S" => Mode::Set,
        b"I" | b"+" => Mode::Increment,
        b"D" | b"-" => Mode::Decrement,
        _ => return None,
    })
}

/// Refuses a mode that the command does not have.
fn mode(verb: Verb, token: &[u8]) -> Result<(), Malformed> {
    if token.len() != 1 {
        return Err(Malformed::MetaModeLength);
    }
    let mode = any_mode(token);
    let arithmetic = matches!(mode, Some(Mode::Increment | Mode::Decrement));
    match verb {
        Verb::Set if mode.is_none() || arithmetic => Err(Malformed::MetaSetMode),
        Verb::Arithmetic if !arithmetic => Err(Malformed::MetaArithmeticMode),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_read() {
        let words = b"q v u I x T60 N30 R10 C5 E6 D7 J8 F9 MA";
        let meta = Meta { key: Key::plain(b"k"), words };
        let expected = MetaOptions {
            quiet: true,
            value: true,
            unnoticed: true,
            invalidate: true,
            empty: true,
            exptime: Some(60),
            vivify: Some(30),
            recache: Some(10),
            compare: Some(5),
            own_cas: Some(6),
            client_flags: Some(9),
            mode: Mode::Append,
            delta: 7,
            initial: 8,
        };
        assert_eq!(meta.options(), expected);
        assert_eq!(meta.check(Verb::Set), Ok(expected));
    }

    #[test]
    fn tags_are_a_token() {
        let tags = |words| Meta { key: Key::plain(b"k"), words }.tags();
        assert_eq!(tags(b"T60 Lpage:7,user:3 q"), Some(&b"page:7,user:3"[..]));
        assert_eq!(tags(b"q L"), Some(&b""[..]));
        assert_eq!(tags(b"q T60"), None);
    }

    #[test]
    fn a_key_has_one_text() {
        let mut buffer = [0; KEY_MAX];
        assert_eq!(Key { text: b"Zm9v", base64: true }.bytes(&mut buffer), b"foo");
        assert_eq!(Key::plain(b"Zm9v").bytes(&mut buffer), b"Zm9v");
    }
}
