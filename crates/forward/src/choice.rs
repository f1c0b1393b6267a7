//! Which reads are kept and how fresh their answers are, as the server, the session and the statement say.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::RwLock;
use sqltext::token::tokens;
use store::definition::{CACHES, ServerDef};

use crate::freshness::Freshness;
use crate::named::Named;
use crate::state::State;

/// In a statement's text: its answers are kept where only named ones are, and from the first time on.
const NAMED: &str = "sqlcached: cache";
/// In a statement's text: its answers are not kept.
const EXCLUDED: &str = "sqlcached: off";
/// In a statement's text, before how fresh its answers are; they are kept.
const FRESH: &str = "sqlcached: ";

/// The values of the option and of the setting `cache`.
const OFF: &str = CACHES[0];
const ONLY_NAMED: &str = CACHES[1];
const ALL: &str = CACHES[2];

/// What the text of a statement says of keeping its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing.
    None,
    /// They are to be kept, and are this fresh.
    Keep(Option<Freshness>),
    /// They are not.
    Refuse,
}

impl Wish {
    /// The numbers of those that say no freshness; the others follow.
    const NONE: u8 = 0;
    const REFUSE: u8 = 1;
    const KEEP: u8 = 2;

    /// As a number, for a text has it where all its sessions read it.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::None => Self::NONE,
            Self::Refuse => Self::REFUSE,
            Self::Keep(freshness) => freshness.map_or(Self::KEEP, |own| Self::KEEP + 1 + own.place()),
        }
    }

    /// That of a number.
    pub(crate) fn numbered(number: u8) -> Self {
        match number {
            Self::NONE => Self::None,
            Self::REFUSE => Self::Refuse,
            _ => Self::Keep(number.checked_sub(Self::KEEP + 1).and_then(|place| Freshness::at(place.into()))),
        }
    }

    /// That of a text, which has it in a comment.
    pub(crate) fn of(sql: &str) -> Self {
        if sql.contains(EXCLUDED) {
            return Self::Refuse;
        }
        let word = |rest: &str| {
            rest.split(|letter: char| !letter.is_ascii_lowercase()).next().and_then(Freshness::of)
        };
        let freshness = sql.split(FRESH).skip(1).find_map(word);
        if freshness.is_some() || sql.contains(NAMED) { Self::Keep(freshness) } else { Self::None }
    }
}

/// What the server's options `cache` and `freshness` say, and its cached queries.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    only_named: AtomicBool,
    freshness: AtomicU8,
    queries: RwLock<Vec<Named>>,
}

impl Choice {
    /// What a server's definition says. True: it has other cached queries than before.
    pub(crate) fn set(&self, server: &ServerDef) -> bool {
        // Relaxed: both take effect soon.
        self.only_named.store(server.option("cache") == Some(ONLY_NAMED), Ordering::Relaxed);
        let freshness = server.option("freshness").and_then(Freshness::of).unwrap_or_default();
        self.freshness.store(freshness.place(), Ordering::Relaxed);
        let are_same = self.queries.read().iter().map(|named| &named.query).eq(&server.queries);
        if !are_same {
            *self.queries.write() = server.queries.iter().map(Named::of).collect();
        }
        !are_same
    }

    /// What a text says of keeping its answers, itself or as a cached query, and that one's name.
    pub(crate) fn wish(&self, sql: &str) -> (Wish, Option<String>) {
        let own = Wish::of(sql);
        let queries = self.queries.read();
        if queries.is_empty() {
            return (own, None);
        }
        let tokens = tokens(sql);
        match queries.iter().find(|query| query.is(&tokens)) {
            Some(named) if matches!(own, Wish::None | Wish::Keep(None)) => {
                (Wish::Keep(named.freshness), Some(named.query.name.clone()))
            }
            found => (own, found.map(|named| named.query.name.clone())),
        }
    }

    /// Why a statement is not kept, if that is so.
    pub(crate) fn refuses(&self, state: &State, wish: Wish) -> Option<&'static str> {
        let own = state.own_cache();
        let is = |value: &str| own.is_some_and(|own| own.eq_ignore_ascii_case(value));
        if own.is_some_and(|own| !CACHES.iter().any(|word| own.eq_ignore_ascii_case(word))) {
            return Some("the session has set sqlcached.cache to none of off, named, auto");
        }
        if state.own_freshness().is_some_and(|own| Freshness::of(own).is_none()) {
            return Some("the session has set sqlcached.freshness to none of own, stream, checked, commit");
        }
        let only_named = is(ONLY_NAMED) || !is(ALL) && self.only_named.load(Ordering::Relaxed);
        match wish {
            _ if is(OFF) => Some("the session has set sqlcached.cache to off"),
            Wish::Refuse => Some("its text says: sqlcached: off"),
            Wish::None if only_named => Some("only named statements are kept: cache is named"),
            Wish::None | Wish::Keep(_) => None,
        }
    }

    /// How fresh the answers of a statement are: as its text says, the session, or the server.
    pub(crate) fn freshness(&self, state: &State, wish: Wish) -> Freshness {
        let own = if let Wish::Keep(freshness) = wish { freshness } else { None };
        own.or_else(|| state.own_freshness().and_then(Freshness::of)).unwrap_or_else(|| {
            Freshness::at(self.freshness.load(Ordering::Relaxed).into()).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::with_settings;

    fn choice(options: &[(&str, &str)]) -> Choice {
        let choice = Choice::default();
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        choice.set(&ServerDef { options: options.collect(), ..ServerDef::default() });
        choice
    }

    #[test]
    fn the_session_goes_before_the_server_and_the_text_before_both() {
        let auto = choice(&[("cache", "auto")]);
        let kept = |choice: &Choice, own: &str, sql: &str| {
            choice.refuses(&with_settings(&[("sqlcached.cache", own)]), Wish::of(sql)).is_none()
        };
        assert!(kept(&auto, "", "SELECT 1") && !kept(&auto, "", "SELECT 1 -- sqlcached: off"));
        assert!(!kept(&auto, "OFF", "SELECT 1") && !kept(&auto, "named", "SELECT 1"));
        assert!(kept(&auto, "named", "/* sqlcached: cache */ SELECT 1"));
        let named = choice(&[("cache", "named")]);
        assert!(!kept(&named, "", "SELECT 1") && kept(&named, "auto", "SELECT 1"));
        assert!(kept(&named, "", "SELECT 1 /* sqlcached: cache */"));
        assert!(!kept(&named, "off", "SELECT 1 /* sqlcached: cache */"));
        assert!(!kept(&auto, "on", "SELECT 1"), "who mistypes it is not guessed at");
        let mistyped = with_settings(&[("sqlcached.freshness", "check")]);
        assert!(auto.refuses(&mistyped, Wish::None).is_some());
    }

    #[test]
    fn freshness_is_that_of_the_text_or_the_session_or_the_server() {
        let fresh = |choice: &Choice, own: &str, sql: &str| {
            choice.freshness(&with_settings(&[("sqlcached.freshness", own)]), Wish::of(sql))
        };
        let (usual, checked) = (choice(&[]), choice(&[("freshness", "checked")]));
        assert_eq!(fresh(&usual, "", "SELECT 1"), Freshness::Own);
        assert_eq!(fresh(&checked, "", "SELECT 1"), Freshness::Checked);
        assert_eq!(fresh(&checked, "Own", "SELECT 1"), Freshness::Own);
        assert_eq!(fresh(&checked, "own", "/* sqlcached: stream */ SELECT 1"), Freshness::Stream);
        assert_eq!(fresh(&usual, "checked", "SELECT 1 -- sqlcached: cache"), Freshness::Checked);
        assert_eq!(Wish::of("SELECT 1 /* sqlcached: streams */"), Wish::None);
        for text in ["", "sqlcached: off", "sqlcached: cache", "sqlcached: own", "sqlcached: commit"] {
            assert_eq!(Wish::numbered(Wish::of(text).number()), Wish::of(text), "{text}");
        }
    }
}
