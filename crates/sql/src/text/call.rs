//! Calls of users' functions and procedures: `CALL p(...)`, `SELECT f(...)`, `SELECT * FROM f(...)`.

use store::Catalog;

use super::token::{Kind, Token, Tokens, unquoted};

/// A call that is a whole statement.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// It says `CALL`, not `SELECT`.
    pub(crate) calls: bool,
    /// The name, as it would be in the store.
    pub(crate) name: String,
    /// Where the name stands.
    pub(crate) place: usize,
    pub(crate) arguments: Vec<Argument<'a>>,
    /// It stands in `FROM`.
    pub(crate) from: bool,
    /// What it is called behind it.
    pub(crate) alias: Option<String>,
}

/// What a call gives.
#[derive(Debug)]
pub(crate) struct Argument<'a> {
    /// The parameter that it is for, if it is named.
    pub(crate) name: Option<String>,
    /// Its expression.
    pub(crate) sql: &'a str,
}

impl<'a> Call<'a> {
    /// Whether a statement begins with `CALL`. The first byte says of nearly all that they do not.
    #[inline]
    pub(crate) fn begins(sql: &str) -> bool {
        let first = sql.bytes().find(|byte| !byte.is_ascii_whitespace());
        // A comment or a semicolon may stand before it.
        matches!(first, Some(b'C' | b'c' | b';' | b'-' | b'/')) && Self::begins_behind(sql)
    }

    fn begins_behind(sql: &str) -> bool {
        Tokens::new(sql).find(|token| !token.is_sign(";")).is_some_and(|first| first.is("CALL"))
    }

    /// Reads a statement that may be one; `None`: it is another.
    pub(crate) fn of(catalog: &Catalog, sql: &'a str) -> Option<Self> {
        if !may_be(catalog, sql) {
            return None;
        }
        let tokens: Vec<Token<'a>> = Tokens::new(sql).collect();
        let mut rest = &tokens[..];
        while rest.first()?.is_sign(";") {
            rest = &rest[1..];
        }
        let calls = rest.first()?.is("CALL");
        if !calls && !rest.first()?.is("SELECT") {
            return None;
        }
        rest = &rest[1..];
        let from = !calls && rest.first()?.is_sign("*") && rest.get(1)?.is("FROM");
        if from {
            rest = &rest[2..];
        }
        let (name, place, behind) = name_of(catalog, rest)?;
        rest = &rest[behind..];
        let (arguments, behind) = arguments_of(sql, rest)?;
        let (alias, behind) = if calls { (None, &rest[behind..]) } else { alias_of(&rest[behind..]) };
        let ends = behind.iter().all(|token| token.is_sign(";"));
        ends.then_some(Self { calls, name, place, arguments, from, alias })
    }
}

/// Whether a statement begins as a call does; of others no more is read than this.
fn may_be(catalog: &Catalog, sql: &str) -> bool {
    // `SELECT * FROM schema.name (`
    const HEAD: usize = 7;
    let head = Tokens::new(sql).skip_while(|token| token.is_sign(";")).take(HEAD);
    let head: Vec<Token<'_>> = head.collect();
    match &head[..] {
        [first, ..] if first.is("CALL") => true,
        [first, star, from, rest @ ..] if first.is("SELECT") && star.is_sign("*") && from.is("FROM") => {
            names_routine(catalog, rest)
        }
        [first, rest @ ..] if first.is("SELECT") => names_routine(catalog, rest),
        _ => false,
    }
}

fn names_routine(catalog: &Catalog, tokens: &[Token<'_>]) -> bool {
    name_of(catalog, tokens).is_some_and(|(name, _, behind)| {
        catalog.routine(&name).is_some() && tokens.get(behind).is_some_and(|next| next.is_sign("("))
    })
}

/// A name with its schema, where it stands, and how many tokens it takes.
fn name_of(catalog: &Catalog, tokens: &[Token<'_>]) -> Option<(String, usize, usize)> {
    let is_name = |token: &&Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted);
    let first = tokens.first().filter(is_name)?;
    let is = |catalog: &Catalog, name: &str| catalog.routine(name).is_some();
    if !tokens.get(1)?.is_sign(".") {
        return Some((catalog.found_name(&unquoted(first.text), is), first.start, 1));
    }
    let own = tokens.get(2).filter(is_name)?;
    let (schema, own) = (unquoted(first.text), unquoted(own.text));
    Some((catalog.name_in(&schema, &own).unwrap_or_else(|| format!("{schema}.{own}")), first.start, 3))
}

/// What stands in the parentheses that come first, and how many tokens that is.
fn arguments_of<'a>(sql: &'a str, tokens: &[Token<'a>]) -> Option<(Vec<Argument<'a>>, usize)> {
    if !tokens.first()?.is_sign("(") {
        return None;
    }
    let (mut arguments, mut depth, mut first) = (Vec::new(), 0_usize, 1);
    for (at, token) in tokens.iter().enumerate() {
        depth += usize::from(token.is_sign("(") || token.is_sign("["));
        depth = depth.saturating_sub(usize::from(token.is_sign(")") || token.is_sign("]")));
        let closes = depth == 0;
        if closes || depth == 1 && token.is_sign(",") {
            let inner = tokens.get(first..at)?;
            if !(closes && inner.is_empty() && arguments.is_empty()) {
                arguments.push(argument(sql, inner)?);
            }
            first = at + 1;
        }
        if closes {
            return Some((arguments, at + 1));
        }
    }
    None
}

fn argument<'a>(sql: &'a str, tokens: &[Token<'a>]) -> Option<Argument<'a>> {
    let arrow = |at: usize| {
        let (one, two) = (tokens.get(at), tokens.get(at + 1));
        let is = |token: Option<&Token<'_>>, sign: &str| token.is_some_and(|token| token.is_sign(sign));
        if is(one, "=>") || is(one, ":=") {
            Some(at + 1)
        } else {
            ((is(one, "=") && is(two, ">")) || (is(one, ":") && is(two, "="))).then_some(at + 2)
        }
    };
    let named = tokens.first().filter(|first| matches!(first.kind, Kind::Word | Kind::Quoted));
    let (name, tokens) = match named.zip(arrow(1)) {
        Some((name, behind)) => (Some(unquoted(name.text)), tokens.get(behind..)?),
        None => (None, tokens),
    };
    let sql = sql.get(tokens.first()?.start..tokens.last()?.end())?;
    Some(Argument { name, sql })
}

/// The alias that comes first, and what stands behind it.
fn alias_of<'t, 'a>(tokens: &'t [Token<'a>]) -> (Option<String>, &'t [Token<'a>]) {
    const CLAUSES: &[&str] = &[
        "WHERE",
        "ORDER",
        "LIMIT",
        "GROUP",
        "FROM",
        "UNION",
        "JOIN",
        "OFFSET",
        "FETCH",
        "CROSS",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "NATURAL",
        "EXCEPT",
        "INTERSECT",
        "HAVING",
        "WINDOW",
        "FOR",
        "INTO",
        "WITH",
    ];
    let is_name = |token: &&Token<'_>| matches!(token.kind, Kind::Quoted | Kind::Word);
    match tokens {
        [word, name, rest @ ..] if word.is("AS") && is_name(&name) => (Some(unquoted(name.text)), rest),
        [name, rest @ ..] if is_name(&name) && !name.is_any(CLAUSES) && !name.is("AS") => {
            (Some(unquoted(name.text)), rest)
        }
        _ => (None, tokens),
    }
}
