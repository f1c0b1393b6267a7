//! PostgreSQL's text of a parse tree: `{VAR :varno 1 :varattno 2}`, `(...)`, `(o 1 2)`, `4 [ 5 0 0 0 ]`, `<>`.
//!
//! The text has no grammar of its own in PostgreSQL's documents: it is what `outfuncs.c` writes and `readfuncs.c`
//! reads back by the place of each field. A value may therefore begin with a colon, and is taken by its place
//! here, too.

/// Nodes within each other: what walks a tree is recursive, and PostgreSQL's own parser makes few that are deeper.
const DEPTH_MAX: usize = 500;

/// The longest text of a tree that is read, in bytes: a statement's is some hundred times as long as its own text.
const SIZE_MAX: usize = 16 << 20;

/// A part of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// `<>`: nothing stands here.
    Nothing,
    /// A number, a word, a name.
    Word(String),
    /// A name in a list.
    Quoted(String),
    /// Parts behind each other. `(i 1 2)`, `(o 1 2)`, `(b 1 2)` and `(x 1 2)` are such lists of words.
    List(Vec<Self>),
    /// `{LABEL :field value ...}`
    Struct(Struct),
    /// A value as it lies in the server's memory.
    Datum(Vec<u8>),
}

/// A node with named fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Struct {
    pub(crate) label: String,
    fields: Vec<(String, Node)>,
}

impl Node {
    /// The words of a list; a single node is a list of itself, and nothing is an empty one.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Nothing => &[],
            Self::List(items) => items,
            single => std::slice::from_ref(single),
        }
    }

    pub(crate) fn as_struct(&self) -> Option<&Struct> {
        if let Self::Struct(node) = self { Some(node) } else { None }
    }

    /// The node if it has this label.
    pub(crate) fn labelled(&self, label: &str) -> Option<&Struct> {
        self.as_struct().filter(|node| node.label == label)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        if let Self::Word(word) = self { Some(word) } else { None }
    }

    pub(crate) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        self.word()?.parse().ok()
    }
}

impl Struct {
    /// A field; nothing where this version of PostgreSQL has none of that name.
    pub(crate) fn field(&self, name: &str) -> &Node {
        self.fields.iter().find(|(field, _)| field == name).map_or(&Node::Nothing, |(_, value)| value)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.field(name).number()
    }

    pub(crate) fn is(&self, name: &str, word: &str) -> bool {
        self.field(name).word() == Some(word)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Reads a tree; `None` for a text that is none.
pub(crate) fn read(text: &str) -> Option<Node> {
    if text.len() > SIZE_MAX {
        return None;
    }
    let mut reader = Reader { rest: text };
    let node = reader.value(0)?;
    reader.rest.trim_ascii_start().is_empty().then_some(node)
}

struct Reader<'a> {
    rest: &'a str,
}

/// A piece of the text.
#[derive(Clone, Copy)]
enum Token<'a> {
    /// One of `(`, `)`, `{`, `}`.
    Sign(u8),
    /// All else, with its backslashes.
    Word(&'a str),
}

impl<'a> Reader<'a> {
    fn token(&mut self) -> Option<Token<'a>> {
        self.rest = self.rest.trim_ascii_start();
        let bytes = self.rest.as_bytes();
        let first = *bytes.first()?;
        if matches!(first, b'(' | b')' | b'{' | b'}') {
            self.rest = &self.rest[1..];
            return Some(Token::Sign(first));
        }
        let mut end = 0;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'\\' => end += 2,
                b'(' | b')' | b'{' | b'}' => break,
                byte if byte.is_ascii_whitespace() => break,
                _ => end += 1,
            }
        }
        // A backslash may stand before a character of several bytes; the ones behind end no token.
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(Token::Word(word))
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        let token = self.token()?;
        self.value_of(token, depth)
    }

    fn value_of(&mut self, token: Token<'a>, depth: usize) -> Option<Node> {
        if depth > DEPTH_MAX {
            return None;
        }
        match token {
            Token::Sign(b'{') => self.fields(depth).map(Node::Struct),
            Token::Sign(b'(') => self.list(depth).map(Node::List),
            Token::Sign(_) => None,
            Token::Word("<>") => Some(Node::Nothing),
            Token::Word(word) => match word.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"').map(|name| Node::Quoted(unescaped(name))),
                None if self.opens_datum(word) => self.datum(word.parse().ok()?),
                None => Some(Node::Word(unescaped(word))),
            },
        }
    }

    fn fields(&mut self, depth: usize) -> Option<Struct> {
        let Token::Word(label) = self.token()? else { return None };
        let mut fields = Vec::new();
        loop {
            match self.token()? {
                Token::Sign(b'}') => return Some(Struct { label: label.to_owned(), fields }),
                Token::Sign(_) => return None,
                Token::Word(name) => {
                    let name = name.strip_prefix(':')?;
                    fields.push((name.to_owned(), self.value(depth + 1)?));
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        loop {
            match self.token()? {
                Token::Sign(b')') => return Some(items),
                Token::Word("b" | "i" | "o" | "x") if items.is_empty() => {}
                token => items.push(self.value_of(token, depth + 1)?),
            }
        }
    }

    /// Whether this length of a value is followed by its bytes.
    fn opens_datum(&self, word: &str) -> bool {
        word.bytes().all(|byte| byte.is_ascii_digit()) && self.rest.trim_ascii_start().starts_with('[')
    }

    /// The bytes behind `[`. A value that is passed in a word is written as the whole word; its length says how many
    /// count, and where they lie depends on the server's byte order.
    fn datum(&mut self, length: usize) -> Option<Node> {
        let Token::Word("[") = self.token()? else { return None };
        let mut bytes = Vec::new();
        loop {
            let Token::Word(word) = self.token()? else { return None };
            if word == "]" {
                break;
            }
            let [byte, ..] =
                word.parse::<i16>().ok().filter(|byte| (-128..256).contains(byte))?.to_le_bytes();
            bytes.push(byte);
        }
        (bytes.len() >= length).then(|| {
            bytes.truncate(length);
            Node::Datum(bytes)
        })
    }
}

/// A word without the backslashes that protect characters.
fn unescaped(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Node {
        Node::Word(text.to_owned())
    }

    #[test]
    fn a_node_has_fields_by_name() {
        let node = read("{VAR :varno 1 :name a\\ b :list (o 1 2) :none <> :inner ({X} {Y :z :w})}").unwrap();
        let node = node.labelled("VAR").unwrap();
        assert_eq!(node.number::<u32>("varno"), Some(1));
        assert!(node.is("name", "a b"));
        assert_eq!(node.field("list").items(), [word("1"), word("2")]);
        assert_eq!((node.field("none"), node.field("absent")), (&Node::Nothing, &Node::Nothing));
        let inner: Vec<_> = node.field("inner").items().iter().filter_map(Node::as_struct).collect();
        assert_eq!(inner[0].label, "X");
        // A value that begins with a colon is a value by its place.
        assert!(inner[1].is("z", ":w"));
    }

    #[test]
    fn values_are_bytes() {
        let node = read("{CONST :constvalue 4 [ -1 0 127 -128 0 0 0 0 ] :n 4}").unwrap();
        let node = node.labelled("CONST").unwrap();
        assert_eq!(node.field("constvalue"), &Node::Datum(vec![255, 0, 127, 128]));
        assert_eq!(node.number::<u32>("n"), Some(4));
    }

    #[test]
    fn names_in_lists_keep_what_is_protected() {
        let names = read("(\"a\" \"b\\ \\(\" \"\u{e9}\\\"\" \"\" \"i\")").unwrap();
        let names: Vec<_> = names.items().to_vec();
        let quoted = |text: &str| Node::Quoted(text.to_owned());
        assert_eq!(names, [quoted("a"), quoted("b ("), quoted("\u{e9}\""), quoted(""), quoted("i")]);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let deep = format!("{}{}", "(".repeat(2_000), ")".repeat(2_000));
        for text in [
            "",
            "{",
            "{X",
            "{X :a}",
            "{X a 1}",
            "(",
            "(}",
            "1 2",
            "4 [ 1 ]",
            "1 [ 300 ]",
            "1 [ a ]",
            ")",
            "\\",
            &deep,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
