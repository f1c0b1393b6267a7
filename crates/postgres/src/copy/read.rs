//! Pieces of `COPY` data to rows.

use super::{Layout, Options, SIGNATURE};
use crate::limits::COPY_ROW_BYTES_MAX;

/// Why data cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyError {
    /// The SQLSTATE.
    pub state: &'static str,
    /// In words.
    pub message: String,
}

/// One row of the data.
#[derive(Debug)]
pub struct Row<'r> {
    bytes: &'r [u8],
    fields: &'r [Option<(usize, usize)>],
    line: u64,
}

impl Row<'_> {
    /// A value; none for NULL.
    pub fn get(&self, field: usize) -> Option<&[u8]> {
        let (start, end) = (*self.fields.get(field)?)?;
        self.bytes.get(start..end)
    }

    /// The line of the data that it ends in, or which row of binary data it is; counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }
}

/// Cuts data into rows. What is not yet a whole row waits here, which is the only thing that does.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    columns: usize,
    /// Data of which no row was made.
    input: Vec<u8>,
    /// How much of it was looked at, and within what.
    scanned: usize,
    quoted: bool,
    escaped: bool,
    /// The first line, or binary header, is still to come.
    begins: bool,
    /// The end of the data was marked; what follows does not count.
    ended: bool,
    /// The last row's values, one behind the other.
    bytes: Vec<u8>,
    fields: Vec<Option<(usize, usize)>>,
    /// Lines that were read, or rows of binary data.
    lines: u64,
}

impl Reader {
    /// A reader of rows with so many values.
    pub fn new(options: Options, columns: usize) -> Self {
        let begins = options.header || options.layout == Layout::Binary;
        Self {
            options,
            columns,
            input: Vec::new(),
            scanned: 0,
            quoted: false,
            escaped: false,
            begins,
            ended: false,
            bytes: Vec::new(),
            fields: Vec::new(),
            lines: 0,
        }
    }

    /// The line or row that was read last, counted from 1.
    pub fn line(&self) -> u64 {
        self.lines
    }

    /// Takes a piece of the data and gives every row that is whole to `take`.
    pub fn feed<E: From<CopyError>>(
        &mut self,
        piece: &[u8],
        take: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.input.extend_from_slice(piece);
        let mut input = std::mem::take(&mut self.input);
        let result = self.rows(&input, take);
        let consumed = *result.as_ref().unwrap_or(&input.len());
        input.drain(..consumed);
        self.scanned -= consumed.min(self.scanned);
        self.input = input;
        if self.input.len() > COPY_ROW_BYTES_MAX {
            return Err(wrong(format!("a row is longer than {COPY_ROW_BYTES_MAX} bytes")).into());
        }
        result.map(|_| ())
    }

    /// The end of the data: a last line without its end is a row too.
    pub fn finish<E: From<CopyError>>(
        &mut self,
        take: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.ended || self.input.is_empty() {
            return Ok(());
        }
        if self.quoted {
            self.lines += 1;
            return Err(wrong("unterminated CSV quoted field".into()).into());
        }
        if self.options.layout == Layout::Binary {
            return Err(wrong("unexpected EOF in COPY data".into()).into());
        }
        self.feed(b"\n", take)
    }

    /// Gives the whole rows of `input` away; returns how many bytes they took.
    fn rows<E: From<CopyError>>(
        &mut self,
        input: &[u8],
        take: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut consumed = 0;
        while !self.ended {
            let next = match self.options.layout {
                Layout::Binary => self.binary_row(&input[consumed..])?,
                _ => self.line_row(input, consumed)?,
            };
            let Some((length, is_row)) = next else { return Ok(consumed) };
            consumed += length;
            if is_row {
                take(&Row { bytes: &self.bytes, fields: &self.fields, line: self.lines })?;
            }
        }
        Ok(input.len())
    }

    /// Reads a line, if there is a whole one; says how long it was and whether it was a row.
    fn line_row(&mut self, input: &[u8], start: usize) -> Result<Option<(usize, bool)>, CopyError> {
        let Some(end) = self.line_end(input, start) else { return Ok(None) };
        self.lines += 1;
        let length = end + 1 - start;
        if std::mem::take(&mut self.begins) {
            return Ok(Some((length, false)));
        }
        let line = &input[start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line == b"\\." {
            self.ended = true;
            return Ok(Some((length, false)));
        }
        self.bytes.clear();
        self.fields.clear();
        if self.options.layout == Layout::Csv {
            self.csv(line);
        } else {
            self.text(line);
        }
        let found = self.fields.len();
        if found != self.columns {
            let what = if found < self.columns {
                "missing data"
            } else {
                "extra data after the last expected column"
            };
            return Err(wrong(format!("{what}: {found} values for {} columns", self.columns)));
        }
        Ok(Some((length, true)))
    }

    /// Where the line that begins at `start` ends, as far as it has come.
    fn line_end(&mut self, input: &[u8], start: usize) -> Option<usize> {
        let csv = self.options.layout == Layout::Csv;
        let (quote, escape) = (self.options.quote, self.options.escape);
        let from = self.scanned.max(start);
        for (at, byte) in input.iter().enumerate().skip(from) {
            if self.escaped {
                self.escaped = false;
            } else if csv && *byte == quote {
                self.quoted = !self.quoted;
            } else if csv && self.quoted && *byte == escape || !csv && *byte == b'\\' {
                self.escaped = true;
            } else if *byte == b'\n' && !self.quoted {
                self.scanned = at + 1;
                return Some(at);
            } else if *byte == b'\n' {
                self.lines += 1;
            }
        }
        self.scanned = input.len();
        None
    }

    fn text(&mut self, line: &[u8]) {
        let delimiter = self.options.delimiter;
        let mut at = 0;
        loop {
            let (from, start) = (at, self.bytes.len());
            while let Some(byte) = line.get(at).copied().filter(|byte| *byte != delimiter) {
                at += 1;
                if byte == b'\\' {
                    at += self.unescape(&line[at..]);
                } else {
                    self.bytes.push(byte);
                }
            }
            let null = line.get(from..at) == Some(self.options.null.as_bytes());
            self.fields.push((!null).then_some((start, self.bytes.len())));
            if at >= line.len() {
                return;
            }
            at += 1;
        }
    }

    /// Appends what a backslash and `rest` stand for; returns how much of `rest` that takes.
    fn unescape(&mut self, rest: &[u8]) -> usize {
        let Some(first) = rest.first() else {
            self.bytes.push(b'\\');
            return 0;
        };
        let digits = |radix: u32, from: usize, most: usize| -> (u8, usize) {
            let digits = rest[from..].iter().take(most).map_while(|byte| char::from(*byte).to_digit(radix));
            let (mut value, mut count) = (0_u32, 0);
            for digit in digits {
                value = value * radix + digit;
                count += 1;
            }
            (u8::try_from(value & 0xff).unwrap_or(0), from + count)
        };
        let (byte, taken) = match first {
            b'b' => (8, 1),
            b'f' => (12, 1),
            b'n' => (b'\n', 1),
            b'r' => (b'\r', 1),
            b't' => (b'\t', 1),
            b'v' => (11, 1),
            b'0'..=b'7' => digits(8, 0, 3),
            b'x' if rest.get(1).is_some_and(u8::is_ascii_hexdigit) => digits(16, 1, 2),
            other => (*other, 1),
        };
        self.bytes.push(byte);
        taken
    }

    fn csv(&mut self, line: &[u8]) {
        let Options { delimiter, quote, escape, .. } = self.options;
        let mut at = 0;
        loop {
            let start = self.bytes.len();
            let (mut any_quote, mut quoted) = (false, false);
            while let Some(byte) = line.get(at).copied() {
                let next = line.get(at + 1).copied();
                if !quoted && byte == delimiter {
                    break;
                }
                at += 1;
                if quoted && byte == escape && next.is_some_and(|next| next == quote || next == escape) {
                    self.bytes.extend(next);
                    at += 1;
                } else if byte == quote {
                    quoted = !quoted;
                    any_quote = true;
                } else {
                    self.bytes.push(byte);
                }
            }
            let null = !any_quote && self.bytes[start..] == *self.options.null.as_bytes();
            self.fields.push((!null).then_some((start, self.bytes.len())));
            if at >= line.len() {
                return;
            }
            at += 1;
        }
    }

    /// Reads a row of binary data, if there is a whole one; says how long it was and whether it was a row.
    fn binary_row(&mut self, input: &[u8]) -> Result<Option<(usize, bool)>, CopyError> {
        if self.begins {
            return self.binary_head(input);
        }
        let Some((count, mut rest)) =
            input.split_first_chunk().map(|(word, rest)| (i16::from_be_bytes(*word), rest))
        else {
            return Ok(None);
        };
        if count == -1 {
            self.ended = true;
            return Ok(Some((2, false)));
        }
        if usize::try_from(count) != Ok(self.columns) {
            return Err(wrong(format!("row field count is {count}, expected {}", self.columns)));
        }
        self.bytes.clear();
        self.fields.clear();
        for _ in 0..self.columns {
            let Some((length, after)) = rest.split_first_chunk() else { return Ok(None) };
            let length = i32::from_be_bytes(*length);
            rest = after;
            if length == -1 {
                self.fields.push(None);
                continue;
            }
            let length = usize::try_from(length).ok().filter(|length| *length <= COPY_ROW_BYTES_MAX);
            let Some(length) = length else { return Err(wrong("invalid field size".into())) };
            let Some((value, after)) = rest.split_at_checked(length) else { return Ok(None) };
            rest = after;
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value);
            self.fields.push(Some((start, self.bytes.len())));
        }
        self.lines += 1;
        Ok(Some((input.len() - rest.len(), true)))
    }

    fn binary_head(&mut self, input: &[u8]) -> Result<Option<(usize, bool)>, CopyError> {
        let seen = input.len().min(SIGNATURE.len());
        if input[..seen] != SIGNATURE[..seen] {
            return Err(wrong("COPY file signature not recognized".into()));
        }
        let Some(rest) = input.get(SIGNATURE.len()..) else { return Ok(None) };
        let Some((flags, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let Some((extension, rest)) = rest.split_first_chunk() else { return Ok(None) };
        // The upper flags are those that a reader must understand.
        if u32::from_be_bytes(*flags) >> 16 != 0 {
            return Err(wrong("unrecognized critical flags in COPY file header".into()));
        }
        let extension = usize::try_from(i32::from_be_bytes(*extension)).ok();
        let Some(extension) = extension.filter(|length| *length <= COPY_ROW_BYTES_MAX) else {
            return Err(wrong("invalid COPY file header".into()));
        };
        if rest.len() < extension {
            return Ok(None);
        }
        self.begins = false;
        Ok(Some((input.len() - rest.len() + extension, false)))
    }
}

#[cold]
fn wrong(message: String) -> CopyError {
    CopyError { state: "22P04", message }
}
