//! `to_char` of numbers: PostgreSQL's patterns, filled from the digits that a number has.

use sqlite::meter;
use sqltext::error::SqlError;
use store::scalar::numeric::{self, Number};
use store::value::{NAN, Value};

use bigdecimal::{BigDecimal, RoundingMode};

use super::def::{Now, text};
use super::moment::bad;

/// Characters of a pattern: more than a number has digits.
const PATTERN_MAX: usize = 1_000;
/// The digits of a double that PostgreSQL writes.
const DOUBLE_DIGITS: usize = 15;

/// A piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Nine,
    Zero,
    Point,
    Comma,
    Sign,
    Minus,
    Plus,
    MinusOrPlus,
    Bracket,
    Shift,
    Currency,
    Ordinal(&'static str),
    /// As it stands.
    Character(char),
}

/// The words of patterns, the longest first.
const WORDS: &[(&str, Option<Piece>)] = &[
    ("EEEE", None),
    ("MI", Some(Piece::Minus)),
    ("PL", Some(Piece::Plus)),
    ("PR", Some(Piece::Bracket)),
    ("RN", None),
    ("SG", Some(Piece::MinusOrPlus)),
    ("SP", None),
    (",", Some(Piece::Comma)),
    (".", Some(Piece::Point)),
    ("0", Some(Piece::Zero)),
    ("9", Some(Piece::Nine)),
    ("B", None),
    ("C", None),
    ("D", Some(Piece::Point)),
    ("G", Some(Piece::Comma)),
    ("L", Some(Piece::Currency)),
    ("S", Some(Piece::Sign)),
    ("V", Some(Piece::Shift)),
];

/// Where `S` puts the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignAt {
    Before,
    Behind,
}

/// A pattern that was read.
#[derive(Clone, Debug, Default)]
struct Pattern {
    pieces: Vec<Piece>,
    /// Places before and behind the point.
    before: usize,
    behind: usize,
    /// Without blanks.
    bare: bool,
    point: bool,
    /// The first place with a zero, and how many places there are up to the last one.
    zero: Option<usize>,
    zero_end: usize,
    sign: Option<SignAt>,
    bracket: bool,
    minus: bool,
    plus: bool,
    /// Places behind `V`, by which the number is shifted.
    shift: Option<u32>,
}

impl Pattern {
    fn read(pattern: &str) -> Result<Self, SqlError> {
        if pattern.len() > PATTERN_MAX {
            return Err(bad(&format!("a pattern for numbers has up to {PATTERN_MAX} characters")));
        }
        meter::take(pattern.len() * size_of::<Piece>())?;
        let mut read = Self::default();
        let mut signs_before = 0;
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            if let Some(behind) = rest.strip_prefix('"') {
                let end = behind.find('"').unwrap_or(behind.len());
                read.pieces.extend(behind[..end].chars().map(Piece::Character));
                rest = behind.get(end + 1..).unwrap_or_default();
                continue;
            }
            let begins =
                |word: &str| rest.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word));
            if begins("FM") {
                read.bare = true;
                rest = &rest[2..];
                continue;
            }
            if begins("TH") {
                read.pieces.push(Piece::Ordinal(if rest.starts_with("TH") { "TH" } else { "th" }));
                rest = &rest[2..];
                continue;
            }
            let Some((word, piece)) = WORDS.iter().find(|(word, _)| begins(word)) else {
                read.pieces.push(Piece::Character(first));
                rest = &rest[first.len_utf8()..];
                continue;
            };
            let piece = piece
                .ok_or_else(|| SqlError::not_supported(format!("\"{word}\" in a pattern for numbers")))?;
            read.take(piece, &mut signs_before)?;
            rest = &rest[word.len()..];
        }
        if read.sign == Some(SignAt::Before) && read.before == signs_before {
            read.sign = Some(SignAt::Behind);
        }
        Ok(read)
    }

    fn take(&mut self, piece: Piece, before_sign: &mut usize) -> Result<(), SqlError> {
        match piece {
            Piece::Nine | Piece::Zero if self.shift.is_some() && piece == Piece::Nine => {
                self.shift = self.shift.map(|places| places + 1);
            }
            Piece::Nine | Piece::Zero => self.place(piece == Piece::Zero),
            Piece::Point if self.point => return Err(wrong("multiple decimal points")),
            Piece::Point if self.shift.is_some() => {
                return Err(wrong("cannot use \"V\" and decimal point together"));
            }
            Piece::Shift if self.point => return Err(wrong("cannot use \"V\" and decimal point together")),
            Piece::Point => self.point = true,
            Piece::Shift => self.shift = Some(self.shift.unwrap_or(0)),
            Piece::Sign if self.sign.is_some() => return Err(wrong("cannot use \"S\" twice")),
            Piece::Sign if self.plus || self.minus || self.bracket => {
                return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            Piece::Sign => {
                *before_sign = self.before;
                self.sign = Some(if self.point { SignAt::Behind } else { SignAt::Before });
            }
            Piece::Minus | Piece::Plus | Piece::MinusOrPlus if self.sign.is_some() => {
                return Err(wrong("cannot use \"S\" and \"MI\"/\"PL\"/\"SG\" together"));
            }
            Piece::Minus => self.minus = true,
            Piece::Plus => self.plus = true,
            Piece::MinusOrPlus => (self.minus, self.plus) = (true, true),
            Piece::Bracket => self.bracket = true,
            _ => {}
        }
        if !matches!(piece, Piece::Sign | Piece::Bracket | Piece::Shift) {
            self.pieces.push(piece);
        }
        Ok(())
    }

    fn place(&mut self, zero: bool) {
        if zero && self.zero.is_none() && !self.point {
            self.zero = Some(self.before);
        }
        if self.point {
            self.behind += 1;
        } else {
            self.before += 1;
        }
        if zero {
            self.zero_end = self.before + self.behind;
        }
    }
}

fn wrong(what: &str) -> SqlError {
    SqlError::new("42601", what)
}

/// `to_char(number, pattern)`
pub(super) fn to_char(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let pattern = text(values, 1)?;
    let mut pattern = Pattern::read(&pattern)?;
    let digits = match values.first() {
        Some(Value::Real(real)) => of_double(*real, &mut pattern),
        Some(value) => of_decimal(numeric::of_value(value)?, &mut pattern),
        None => String::new(),
    };
    meter::take(digits.len() + pattern.pieces.len() * 4)?;
    Ok(Value::Text(Writing::new(&pattern, &digits).written()))
}

/// The digits of a decimal number or an integer, rounded to the places that there are.
fn of_decimal(number: Number, pattern: &mut Pattern) -> String {
    let Number::Finite(number) = number else { return number.text() };
    let shift = pattern.shift.unwrap_or(0);
    pattern.before += shift as usize;
    let (units, scale) = number.into_bigint_and_scale();
    let shifted = BigDecimal::new(units, scale - i64::from(shift));
    let places = i64::try_from(pattern.behind).unwrap_or(0);
    numeric::text(&shifted.with_scale_round(places, RoundingMode::HalfUp))
}

/// Those of a double: no more than it has.
fn of_double(real: f64, pattern: &mut Pattern) -> String {
    let shift = pattern.shift.unwrap_or(0);
    pattern.before += shift as usize;
    let real = real * 10_f64.powi(i32::try_from(shift).unwrap_or(0));
    if !real.is_finite() {
        return if real > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let whole = format!("{:.0}", real.abs()).len();
    pattern.behind = pattern.behind.min(DOUBLE_DIGITS.saturating_sub(whole));
    format!("{real:.*}", pattern.behind)
}

/// A number on its way into a pattern.
struct Writing<'p> {
    pattern: &'p Pattern,
    digits: Vec<u8>,
    negative: bool,
    /// Places in front of its digits.
    blanks: usize,
    /// The last digit that is shown, or the point.
    last: Option<usize>,
    signed: bool,
    /// How many places were written, and which digit is next.
    place: usize,
    next: usize,
    /// Whether the last place had a digit.
    within: bool,
    out: String,
}

impl<'p> Writing<'p> {
    fn new(pattern: &'p Pattern, digits: &str) -> Self {
        let negative = digits.starts_with('-');
        let mut digits = digits.trim_start_matches('-').to_owned();
        let before = digits.find('.').unwrap_or(digits.len());
        if before == digits.len() && pattern.behind > 0 && digits != NAN {
            digits = format!("{digits}.{}", "0".repeat(pattern.behind));
        }
        if before > pattern.before {
            digits = format!("{}.{}", "#".repeat(pattern.before), "#".repeat(pattern.behind));
        }
        let blanks = pattern.before.saturating_sub(before);
        let by_itself = pattern.minus || pattern.plus;
        let signed = if by_itself {
            !pattern.plus || pattern.minus
        } else {
            !negative && pattern.bare && pattern.sign.is_none()
        };
        let digits = digits.into_bytes();
        let last = (pattern.bare && pattern.point).then(|| last_relevant(&digits, pattern, blanks)).flatten();
        let out = String::new();
        Self { pattern, digits, negative, blanks, last, signed, place: 0, next: 0, within: false, out }
    }

    fn written(mut self) -> String {
        for piece in &self.pattern.pieces {
            match piece {
                Piece::Nine | Piece::Zero | Piece::Point => self.digit(*piece),
                Piece::Comma if self.within => self.out.push(','),
                Piece::Minus if self.negative => self.out.push('-'),
                Piece::Plus if !self.negative => self.out.push('+'),
                Piece::Comma | Piece::Minus | Piece::Plus if self.pattern.bare => {}
                Piece::Comma | Piece::Minus | Piece::Plus | Piece::Currency => self.out.push(' '),
                Piece::MinusOrPlus => self.out.push(if self.negative { '-' } else { '+' }),
                Piece::Ordinal(word) => self.ordinal(word),
                Piece::Character(character) => self.out.push(*character),
                Piece::Sign | Piece::Bracket | Piece::Shift => {}
            }
        }
        self.out
    }

    fn ordinal(&mut self, word: &str) {
        if self.negative || self.pattern.point || self.digits.first() == Some(&b'#') {
            return;
        }
        let tail = &self.digits[self.digits.len().saturating_sub(2)..];
        let number = tail.iter().fold(0, |number, digit| number * 10 + i64::from(digit.wrapping_sub(b'0')));
        let ending = super::format::ordinal(number);
        self.out.push_str(&if word == "TH" { ending.to_uppercase() } else { ending.to_owned() });
    }

    fn now(&self) -> Option<u8> {
        self.digits.get(self.next).copied()
    }

    /// Whether this is the zero before a point that no place asks for.
    fn is_needless_zero(&self) -> bool {
        self.pattern.zero.is_none() && self.next == 0 && self.now() == Some(b'0') && self.pattern.behind > 0
    }

    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits[last] == b'.')
    }

    fn sign(&mut self) {
        let Pattern { bare, bracket, sign, .. } = *self.pattern;
        match sign {
            Some(SignAt::Behind) => return,
            Some(SignAt::Before) => self.out.push(if self.negative { '-' } else { '+' }),
            None if bracket && self.negative => self.out.push('<'),
            None if self.negative => self.out.push('-'),
            None if !bare => self.out.push(' '),
            None => {}
        }
        self.signed = true;
    }

    /// One place of the pattern, or its point.
    fn digit(&mut self, piece: Piece) {
        let zero_here = self.pattern.zero.is_some_and(|zero| zero <= self.place);
        let begins = self.place >= self.blanks || self.pattern.zero == Some(self.place);
        if !self.signed && begins && (!self.is_needless_zero() || self.ends_at_point()) {
            self.sign();
        }
        self.within = false;
        if self.place < self.blanks {
            match (zero_here, self.pattern.bare) {
                (true, _) => {
                    self.out.push('0');
                    self.within = true;
                }
                (false, false) => self.out.push(' '),
                (false, true) => {}
            }
        } else {
            self.own_digit(piece);
        }
        self.end();
        self.place += 1;
    }

    fn own_digit(&mut self, piece: Piece) {
        match self.now() {
            Some(b'.') => self.out.push('.'),
            _ if self.last.is_some_and(|last| self.next > last) && piece != Piece::Zero => {}
            _ if self.is_needless_zero() && !self.pattern.bare => self.out.push(' '),
            _ if self.is_needless_zero() && self.ends_at_point() => self.out.push('0'),
            _ if self.is_needless_zero() => {}
            Some(digit) => {
                self.out.push(char::from(digit));
                self.within = true;
            }
            None => {}
        }
        self.next += usize::from(self.next < self.digits.len());
    }

    /// The sign that stands behind the last digit.
    fn end(&mut self) {
        let counted = (self.pattern.before + self.pattern.behind).saturating_sub(1);
        let unsigned = usize::from(!self.started_signed() && self.blanks == 0);
        let mut end = counted + unsigned + usize::from(self.blanks > 0) + usize::from(self.pattern.point);
        if self.last.is_some() && self.last == Some(self.next) {
            end = self.place;
        }
        if self.place + 1 != end {
            return;
        }
        if self.signed && self.pattern.bracket {
            let kept = self.negative || !self.pattern.bare;
            self.out.push_str(if self.negative {
                ">"
            } else if kept {
                " "
            } else {
                ""
            });
        } else if self.pattern.sign == Some(SignAt::Behind) {
            self.out.push(if self.negative { '-' } else { '+' });
        }
    }

    /// Whether the sign needs no place of its own.
    fn started_signed(&self) -> bool {
        let Pattern { minus, plus, bare, sign, .. } = *self.pattern;
        if minus || plus { !plus || minus } else { !self.negative && bare && sign.is_none() }
    }
}

/// The last digit behind the point that is not zero, or that a zero of the pattern keeps.
fn last_relevant(digits: &[u8], pattern: &Pattern, blanks: usize) -> Option<usize> {
    let point = digits.iter().position(|digit| *digit == b'.')?;
    let last = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(point).max(point);
    if pattern.zero_end <= blanks {
        return Some(last);
    }
    Some(last.max((pattern.zero_end - blanks).min(digits.len() - 1)))
}
