//! The text under way, with what is known of it and where each piece came from.

use std::borrow::Cow;

use store::definition::SqlType;

use sqltext::places::Places;
use sqltext::token::{Kind, Tokens, in_word};
use sqltext::value;

use super::binding::Binding;
use super::spelling::{Word, words};
use crate::lowered::{Node, Piece as Lowered};

/// A piece of the new text and the place in the user's text that it stands for.
#[derive(Clone, Debug)]
struct Piece<'a> {
    text: Cow<'a, str>,
    from: usize,
    /// The expression in whose place this hidden column stands.
    stood: Option<Box<str>>,
}

impl<'a> Piece<'a> {
    fn new(text: impl Into<Cow<'a, str>>, from: usize) -> Self {
        Self { text: text.into(), from, stood: None }
    }
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
    /// A query in parentheses. `floats`: it is `NUMERIC` by its type, a float as SQLite computes it.
    Query { floats: bool },
    /// A literal with a point, or one too long for an integer; the text of the number.
    Number(String),
    /// `NUMERIC` by its type, a float as SQLite computes it.
    Float,
    /// A computed `NUMERIC` number; here it is without the cast and the collation around it.
    Exact(Out<'a>),
    /// `json ->> key` as a text; here it is as SQLite's operator gives it, a number or truth where it is one.
    Extract(Out<'a>),
    /// A column of a function by its own name; the one that the statement gave it.
    Renamed(&'a str),
    /// A column of a table, `COLLATE` behind it.
    Collated,
    /// `x'ff'`, SQLite's literal of bytes.
    Blob,
    /// `ARRAY[a, b]`, its elements.
    Array(Vec<Out<'a>>),
}

/// Text that was made.
#[derive(Clone, Debug, Default)]
pub(super) struct Out<'a> {
    pieces: Vec<Piece<'a>>,
    pub(super) ty: Option<SqlType>,
    pub(super) form: Box<Form<'a>>,
    /// What it is in SQLite's words, where neither its form nor its only piece says that.
    node: Option<Box<Node>>,
    /// What PostgreSQL calls a column of it.
    pub(super) label: Option<String>,
    /// Its label is the name of a type that it was cast to, and nothing else names it.
    pub(super) named_by_cast: bool,
    /// How tightly its outermost operator binds.
    pub(super) binding: Binding,
}

impl PartialEq for Out<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() && self.ty == other.ty
    }
}

impl<'a> Out<'a> {
    /// A piece of the user's text.
    pub(super) fn source(text: &'a str, from: usize) -> Self {
        Self { pieces: vec![Piece::new(text, from)], ..Self::default() }
    }

    /// A new text for the place, with a blank before it.
    pub(super) fn made(text: impl AsRef<str>, from: usize) -> Self {
        Self { pieces: vec![Piece::new(format!(" {}", text.as_ref()), from)], ..Self::default() }
    }

    pub(super) fn typed(mut self, ty: SqlType) -> Self {
        self.ty = Some(ty);
        self
    }

    pub(super) fn of_type(mut self, ty: Option<SqlType>) -> Self {
        self.ty = ty;
        self
    }

    pub(super) fn labelled(self, label: &str) -> Self {
        self.named(label, false)
    }

    /// The same where the label may be that of a cast.
    pub(super) fn named(mut self, label: &str, by_cast: bool) -> Self {
        self.label = Some(label.to_owned());
        self.named_by_cast = by_cast;
        self
    }

    pub(super) fn formed(mut self, form: Form<'a>) -> Self {
        *self.form = form;
        self
    }

    /// Says which operator is its outermost.
    pub(super) fn bound(mut self, binding: Binding) -> Self {
        self.binding = binding;
        self
    }

    /// The same in brackets, which changes nothing but how SQLite reads what stands beside it.
    fn bracketed(mut self) -> Self {
        let from = self.start();
        self.pieces.insert(0, Piece::new(" (", from));
        self.pieces.push(Piece::new(")", from));
        self.bound(Binding::Whole)
    }

    /// As the left operand of an operator, or what a prefix stands before; all of SQLite's group from the left.
    pub(super) fn left_of(self, operator: Binding) -> Self {
        if self.binding < operator { self.bracketed() } else { self }
    }

    /// As the right operand.
    pub(super) fn right_of(self, operator: Binding) -> Self {
        if self.binding <= operator { self.bracketed() } else { self }
    }

    /// Says what the whole of it is.
    pub(super) fn meaning(mut self, node: Node) -> Self {
        self.node = Some(Box::new(node));
        self
    }

    /// What it is in SQLite's words. It is asked once.
    pub(super) fn take_node(&mut self) -> Node {
        if let Some(node) = self.node.take() {
            return *node;
        }
        match (&mut *self.form, &self.pieces[..]) {
            (Form::List(parts), _) => Node::List(parts.iter_mut().map(Self::take_node).collect()),
            (Form::Array(parts), _) => Node::Array(parts.iter_mut().map(Self::take_node).collect()),
            (_, [literal]) => literal_node(&literal.text),
            _ => Node::Other,
        }
    }

    /// The same with its node left behind.
    pub(super) fn without_node(&mut self) -> Self {
        let node = self.node.take();
        let kept = self.clone();
        self.node = node;
        kept
    }

    /// Its text by itself.
    pub(super) fn sql(self) -> String {
        let (mut text, _) = self.finish();
        let blanks = text.len() - text.trim_start().len();
        text.drain(..blanks);
        text
    }

    /// Its text, and what it is.
    pub(super) fn lowered(mut self) -> Lowered {
        let node = self.take_node();
        Lowered { sql: self.sql(), node }
    }

    /// Puts another behind, which makes it a computed one.
    pub(super) fn push(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
        *self.form = Form::Computed;
        self.node = None;
    }

    /// Puts a text behind.
    pub(super) fn push_str(&mut self, text: &str) {
        let from = self.pieces.last().map_or(0, |piece| piece.from);
        self.pieces.push(Piece::new(text.to_owned(), from));
        *self.form = Form::Computed;
        self.node = None;
    }

    /// Of how many pieces it is, as a place for [`Out::insert`].
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Puts another between its pieces.
    pub(super) fn insert(&mut self, at: usize, other: Self) {
        self.pieces.splice(at..at, other.pieces);
    }

    /// `before`, it, `behind`.
    pub(super) fn wrapped(mut self, before: &str, behind: &str) -> Self {
        let from = self.pieces.first().map_or(0, |piece| piece.from);
        self.pieces.insert(0, Piece::new(format!(" {before}"), from));
        self.push_str(behind);
        Self { pieces: self.pieces, ..Self::default() }
    }

    /// A hidden column in the place of it, which means the same.
    pub(super) fn instead(self, column: &str) -> Self {
        let text = |piece: &Piece<'_>| piece.stood.as_deref().unwrap_or(&piece.text).to_owned();
        let stood: Vec<String> = self.pieces.iter().map(text).collect();
        let piece =
            Piece { stood: Some(stood.join(" ").into()), ..Piece::new(format!(" {column}"), self.start()) };
        Self { pieces: vec![piece], binding: Binding::Whole, ..self }
    }

    /// The same condition of the rows in which a hidden column is true: there are no others.
    pub(super) fn narrowed(self, column: &str) -> Self {
        let (ty, node) = (self.ty, self.node.clone());
        let stood = |text: &str| Some(Box::from(text));
        let from = self.start();
        let mut pieces = vec![Piece::new(" (", from)];
        pieces.extend(self.pieces);
        pieces.push(Piece { stood: stood(")"), ..Piece::new(format!(") AND ({column} = 1)"), from) });
        Self { pieces, ty, node, binding: Binding::And, ..Self::default() }
    }

    /// Its words, with what hidden columns stand for.
    pub(super) fn words(&self) -> Vec<Word> {
        words(self.pieces.iter().flat_map(|piece| Tokens::new(piece.stood.as_deref().unwrap_or(&piece.text))))
    }

    /// Whether a word stands in its text as SQLite gets it.
    pub(super) fn has(&self, word: &str) -> bool {
        self.pieces.iter().any(|piece| piece.text.contains(word))
    }

    /// Whether it is a literal and nothing else.
    pub(super) fn is_literal(&self) -> bool {
        matches!(&self.pieces[..], [only] if literal_node(&only.text) != Node::Other)
    }

    /// What it is known to be in SQLite's words.
    pub(super) fn node(&self) -> Option<&Node> {
        self.node.as_deref()
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

/// A literal as a value.
fn literal_node(text: &str) -> Node {
    let mut tokens = Tokens::new(text);
    let (Some(first), second, None) = (tokens.next(), tokens.next(), tokens.next()) else {
        return Node::Other;
    };
    let node = match second {
        None if first.is("TRUE") => Some(Node::Truth(true)),
        None if first.is("FALSE") => Some(Node::Truth(false)),
        None => value::of_token(&first).map(Node::Value),
        Some(number) if number.kind == Kind::Number => signed_node(first.text, number.text),
        Some(_) => None,
    };
    node.unwrap_or(Node::Other)
}

/// A number behind a sign.
pub(super) fn signed_node(sign: &str, digits: &str) -> Option<Node> {
    let known = matches!(sign, "-" | "+");
    known.then(|| value::number(&format!("{sign}{digits}")).map(Node::Signed)).flatten()
}

/// A function of these.
pub(super) fn call<'a, const N: usize>(name: &str, arguments: [Out<'a>; N]) -> Out<'a> {
    Out::joined(arguments, ",").wrapped(&format!("{name}("), ")").labelled(name)
}

/// The same, with its meaning: a function that an index may serve.
pub(super) fn served_call<'a, const N: usize>(name: &str, mut arguments: [Out<'a>; N]) -> Out<'a> {
    let nodes = arguments.iter_mut().map(Out::take_node).collect();
    call(name, arguments).meaning(Node::Call { name: name.to_owned(), arguments: nodes })
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
