//! Cached queries: texts that are known by name, however an application writes its values into them.

use sqltext::token::{Kind, Token, tokens};
use store::definition::CachedQueryDef;

use crate::freshness::Freshness;

/// A cached query, as texts are compared with it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) query: CachedQueryDef,
    pub(crate) freshness: Option<Freshness>,
    parts: Vec<Part>,
}

/// A part of its text.
#[derive(Debug)]
enum Part {
    /// A word that is no name in quotes: its case does not matter.
    Word(String),
    /// What stands for itself.
    Exactly(String),
    /// A parameter: any parameter or literal stands there.
    Value,
}

impl Named {
    pub(crate) fn of(query: &CachedQueryDef) -> Self {
        let part = |token: &Token<'_>| match token.kind {
            Kind::Word => Part::Word(token.text.to_ascii_lowercase()),
            Kind::Parameter => Part::Value,
            _ => Part::Exactly(token.text.to_owned()),
        };
        Self {
            query: query.clone(),
            freshness: query.option("freshness").and_then(Freshness::of),
            parts: tokens(&query.statement).iter().filter(|token| !token.is_sign(";")).map(part).collect(),
        }
    }

    /// Whether a text is this query: the same but for blanks, comments, the case of words, and its values.
    pub(crate) fn is(&self, text: &[Token<'_>]) -> bool {
        let mut rest = text.iter().filter(|token| !token.is_sign(";"));
        let all = self.parts.iter().all(|part| match (part, rest.next()) {
            (Part::Word(word), Some(token)) => {
                token.kind == Kind::Word && token.text.eq_ignore_ascii_case(word)
            }
            (Part::Exactly(own), Some(token)) => token.text == *own,
            (Part::Value, Some(token)) if token.is_sign("-") => {
                rest.next().is_some_and(|token| token.kind == Kind::Number)
            }
            (Part::Value, Some(token)) => {
                matches!(token.kind, Kind::Parameter | Kind::Number | Kind::Text | Kind::Foreign)
                    || token.is_any(&["NULL", "TRUE", "FALSE"])
            }
            (_, None) => false,
        });
        all && rest.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_for_parameters() {
        let query = CachedQueryDef {
            name: "top".into(),
            statement: "SELECT id, \"Name\" FROM item WHERE seller = $1 AND price > $2 LIMIT 5;".into(),
            options: vec![("freshness".into(), "stream".into())],
        };
        let named = Named::of(&query);
        assert_eq!(named.freshness, Some(Freshness::Stream));
        for same in [
            "select id,\"Name\" from item where seller=$1 and price>$2 limit 5",
            "/* app */ SELECT id, \"Name\" FROM item WHERE seller = 'x''y' AND price > -7.5 LIMIT 5 -- end",
            "SELECT id, \"Name\" FROM item WHERE seller = $2 AND price > NULL LIMIT 5;",
        ] {
            assert!(named.is(&tokens(same)), "{same}");
        }
        for other in [
            "SELECT id, \"name\" FROM item WHERE seller = 1 AND price > 2 LIMIT 5",
            "SELECT id, \"Name\" FROM item WHERE seller = 1 AND price > 2 LIMIT 6",
            "SELECT id, \"Name\" FROM item WHERE seller = 1 AND price > 2",
            "SELECT id, \"Name\" FROM item WHERE seller = a AND price > 2 LIMIT 5",
            "SELECT id, \"Name\" FROM item WHERE seller = 1 AND price > 2 LIMIT 5 OFFSET 1",
            "",
        ] {
            assert!(!named.is(&tokens(other)), "{other}");
        }
    }
}
