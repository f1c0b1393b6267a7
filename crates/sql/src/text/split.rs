//! A text of several statements, cut at the semicolons between them.

use super::token::{Token, Tokens};

/// One statement of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Where it begins in the text, in bytes: positions in its errors count from here.
    pub start: usize,
    /// The statement without its semicolon.
    pub sql: &'a str,
}

/// The statements of a text in their order; what holds nothing but blanks and comments is none.
///
/// A semicolon in a literal, a quoted name or a comment is part of it, and the body of a `CREATE TRIGGER` or of a
/// function (`BEGIN ATOMIC`) reaches to its `END`. Nothing is judged here: each statement is, when it is run.
pub fn split_statements(sql: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut tokens = Tokens::new(sql);
    std::iter::from_fn(move || {
        let first = tokens.find(|token| !token.is_sign(";"))?;
        let end = if is_trigger(&first, &tokens) || is_atomic(&first, &tokens) {
            end_of_trigger(&mut tokens)
        } else {
            tokens.find(|token| token.is_sign(";")).map(|token| token.start)
        };
        let end = end.unwrap_or(sql.len());
        Some(Piece { start: first.start, sql: sql.get(first.start..end)?.trim_end() })
    })
}

fn is_trigger(first: &Token<'_>, rest: &Tokens<'_>) -> bool {
    let what = rest.clone().find(|token| !token.is("TEMP") && !token.is("TEMPORARY"));
    first.is("CREATE") && what.is_some_and(|token| token.is("TRIGGER"))
}

/// Whether a function or procedure has a body of statements, not of text.
fn is_atomic(first: &Token<'_>, rest: &Tokens<'_>) -> bool {
    let mut words = rest.clone().filter(|token| !token.is("OR") && !token.is("REPLACE"));
    if !first.is("CREATE") || !words.next().is_some_and(|token| token.is_any(&["FUNCTION", "PROCEDURE"])) {
        return false;
    }
    let mut head = words.take_while(|token| !token.is_sign(";"));
    head.any(|token| token.is("BEGIN")) && head.next().is_some_and(|token| token.is("ATOMIC"))
}

/// The body's own semicolons follow its statements; the one behind `END` is the trigger's.
fn end_of_trigger(tokens: &mut Tokens<'_>) -> Option<usize> {
    let (mut behind_semicolon, mut behind_end) = (false, false);
    tokens.find_map(|token| {
        let semicolon = token.is_sign(";");
        let ends = semicolon && behind_end;
        behind_end = behind_semicolon && token.is("END");
        behind_semicolon = semicolon;
        ends.then_some(token.start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str) -> Vec<&str> {
        split_statements(sql)
            .inspect(|piece| assert!(sql[piece.start..].starts_with(piece.sql)))
            .map(|piece| piece.sql)
            .collect()
    }

    #[test]
    fn semicolons_part_statements() {
        for (sql, pieces) in [
            ("", vec![]),
            (" ; -- nothing; at all\n ; /* ; */", vec![]),
            ("select 1", vec!["select 1"]),
            ("select 1;", vec!["select 1"]),
            ("select 1; select 2 ;;\n select 3", vec!["select 1", "select 2", "select 3"]),
            (
                "select ';', \";\", [;], `;` -- ;\n, 1; select 2",
                vec!["select ';', \";\", [;], `;` -- ;\n, 1", "select 2"],
            ),
            (
                "select $$;$$, $t$ $$; $t$, E'\\';', a[1]; select 2",
                vec!["select $$;$$, $t$ $$; $t$, E'\\';', a[1]", "select 2"],
            ),
            ("select 'never closed; select 2", vec!["select 'never closed; select 2"]),
            ("begin; select 1; end; select 2", vec!["begin", "select 1", "end", "select 2"]),
        ] {
            assert_eq!(split(sql), pieces, "{sql}");
        }
    }

    #[test]
    fn a_functions_body_belongs_to_it() {
        let function = "create or replace procedure p(a int) begin atomic delete from t; select case when 1 then 2 end; end";
        assert_eq!(split(&format!("{function}; select 1")), [function, "select 1"]);
        assert_eq!(
            split("create procedure p() language sql as 'a; b'; end"),
            ["create procedure p() language sql as 'a; b'", "end"]
        );
    }

    #[test]
    fn a_triggers_body_belongs_to_it() {
        let trigger =
            "create temp trigger r after insert on t begin select case when 1 then 2 end; delete from t; end";
        assert_eq!(split(&format!("{trigger}; select 1")), [trigger, "select 1"]);
        assert_eq!(split("create trigger r; select 1"), ["create trigger r; select 1"]);
        assert_eq!(split("create table t (a); end"), ["create table t (a)", "end"]);
    }
}
