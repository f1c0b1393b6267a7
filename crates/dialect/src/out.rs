//! The text under way, with what is known of it and where each piece came from.

use std::borrow::Cow;

use store::definition::SqlType;

use sqltext::places::Places;
use sqltext::token::in_word;

/// A piece of the new text and the place in the user's text that it stands for.
#[derive(Clone, Debug)]
struct Piece<'a> {
    text: Cow<'a, str>,
    from: usize,
}

/// What an expression is, beside its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Form<'a> {
    /// Anything.
    #[default]
    Computed,
    /// A text literal of no type yet.
    Literal(String),
    /// The parameter of this number, from 0.
    Parameter(usize),
    /// `NULL`
    Null,
    /// `(a, b)`, its parts.
    List(Vec<Out<'a>>),
    /// A query in parentheses.
    Query,
    /// A literal with a point, or one too long for an integer; the text of the number.
    Number(String),
    /// `NUMERIC` by its type, a float as SQLite computes it.
    Float,
    /// A `NUMERIC` number; here it is as an exact decimal text.
    Exact(Out<'a>),
    /// A column of numbers with so many digits behind the point.
    Column(u16),
    /// Values of such a column.
    Scaled(u16),
    /// `json ->> key` as a text; here it is as SQLite's operator gives it, a number or truth where it is one.
    Extract(Out<'a>),
    /// A column of a function by its own name, and the one that the statement gave it.
    Renamed(&'a str),
    /// `ARRAY[a, b]`, its elements.
    Array(Vec<Out<'a>>),
}

/// Text that was made.
#[derive(Clone, Debug, Default)]
pub(super) struct Out<'a> {
    pieces: Vec<Piece<'a>>,
    pub(super) ty: Option<SqlType>,
    pub(super) form: Box<Form<'a>>,
    /// What PostgreSQL calls a column of it.
    pub(super) label: Option<String>,
}

impl PartialEq for Out<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() && self.ty == other.ty
    }
}

impl<'a> Out<'a> {
    /// A piece of the user's text.
    pub(super) fn source(text: &'a str, from: usize) -> Self {
        Self { pieces: vec![Piece { text: Cow::Borrowed(text), from }], ..Self::default() }
    }

    /// A new text for the place, with a blank before it.
    pub(super) fn made(text: impl AsRef<str>, from: usize) -> Self {
        Self {
            pieces: vec![Piece { text: Cow::Owned(format!(" {}", text.as_ref())), from }],
            ..Self::default()
        }
    }

    pub(super) fn typed(mut self, ty: SqlType) -> Self {
        self.ty = Some(ty);
        self
    }

    pub(super) fn of_type(mut self, ty: Option<SqlType>) -> Self {
        self.ty = ty;
        self
    }

    pub(super) fn labelled(mut self, label: &str) -> Self {
        self.label = Some(label.to_owned());
        self
    }

    pub(super) fn formed(mut self, form: Form<'a>) -> Self {
        *self.form = form;
        self
    }

    /// Puts another behind, which makes it a computed one.
    pub(super) fn push(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
        *self.form = Form::Computed;
    }

    /// Puts a text behind.
    pub(super) fn push_str(&mut self, text: &str) {
        let from = self.pieces.last().map_or(0, |piece| piece.from);
        self.pieces.push(Piece { text: Cow::Owned(text.to_owned()), from });
        *self.form = Form::Computed;
    }

    /// `before`, it, `behind`.
    pub(super) fn wrapped(mut self, before: &str, behind: &str) -> Self {
        let from = self.pieces.first().map_or(0, |piece| piece.from);
        self.pieces.insert(0, Piece { text: Cow::Owned(format!(" {before}")), from });
        self.push_str(behind);
        Self { pieces: self.pieces, ..Self::default() }
    }

    /// All of them as one, with a text between.
    pub(super) fn joined(parts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let mut all = Self::default();
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                all.push_str(between);
            }
            all.push(part);
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Where it begins in the user's text.
    pub(super) fn start(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.from)
    }

    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_ref()).collect()
    }

    /// The parameter that it is, and nothing else.
    pub(super) fn parameter(&self) -> Option<usize> {
        match *self.form {
            Form::Parameter(number) => Some(number),
            _ => None,
        }
    }

    /// The text, and for each piece where it begins there and where in the user's text.
    pub(super) fn finish(self) -> (String, Places) {
        let mut text = String::new();
        let mut places = Places::default();
        let mut end = 0;
        for piece in self.pieces {
            // Pieces that were not neighbours in the user's text, as a keyword and what was behind `cast(`, must not
            // become one token.
            if piece.from != end && would_join(text.as_bytes(), piece.text.as_bytes()) {
                text.push(' ');
            }
            places.push(text.len(), piece.from);
            text.push_str(&piece.text);
            end = match piece.text {
                Cow::Borrowed(source) => piece.from + source.len(),
                Cow::Owned(_) => usize::MAX,
            };
        }
        (text, places)
    }
}

/// A function of these.
pub(super) fn call<'a, const N: usize>(name: &str, arguments: [Out<'a>; N]) -> Out<'a> {
    Out::joined(arguments, ",").wrapped(&format!("{name}("), ")").labelled(name)
}

/// Whether the second text, put right behind the first, would change the last token of it: a word grows, a sign becomes
/// another sign or begins a comment.
fn would_join(before: &[u8], behind: &[u8]) -> bool {
    let (Some(&last), Some(&first)) = (before.last(), behind.first()) else { return false };
    if in_word(last) {
        return in_word(first) || b"'\"`[?:@#".contains(&first);
    }
    matches!(
        (last, first),
        (b'-', b'-' | b'>') | (b'/', b'*') | (b'<', b'<' | b'>' | b'=') | (b'>', b'>' | b'=')
    )
}
