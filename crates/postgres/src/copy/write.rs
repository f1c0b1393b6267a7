//! Rows to `COPY` data.

use super::{Layout, Options, SIGNATURE};
use crate::datum::{Datum, Format, ValueError};
use crate::encode::encode;

/// Writes rows as data.
#[derive(Debug)]
pub struct Writer {
    options: Options,
}

impl Writer {
    /// A writer of data that looks so.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Whether values are binary.
    pub fn format(&self) -> Format {
        if self.options.layout == Layout::Binary { Format::Binary } else { Format::Text }
    }

    /// What comes before the rows, which may be nothing.
    pub fn begin<'a>(&self, names: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        if self.options.layout == Layout::Binary {
            out.extend_from_slice(SIGNATURE);
            out.extend_from_slice(&[0; 8]);
        } else if self.options.header {
            for (at, name) in names.enumerate() {
                self.delimit(at, out);
                self.value(name.as_bytes(), out);
            }
            out.push(b'\n');
        }
    }

    /// A row: each value with its type.
    pub fn row<'a>(
        &self,
        values: impl ExactSizeIterator<Item = (u32, Datum<'a>)>,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        if self.options.layout == Layout::Binary {
            return Self::binary_row(values, out);
        }
        let mut text = Vec::new();
        for (at, (type_oid, datum)) in values.enumerate() {
            self.delimit(at, out);
            if datum == Datum::Null {
                out.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            text.clear();
            encode(type_oid, Format::Text, datum, &mut text)?;
            self.value(&text, out);
        }
        out.push(b'\n');
        Ok(())
    }

    /// What comes behind the rows, which may be nothing.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.options.layout == Layout::Binary {
            out.extend_from_slice(&(-1_i16).to_be_bytes());
        }
    }

    fn binary_row<'a>(
        values: impl ExactSizeIterator<Item = (u32, Datum<'a>)>,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        out.extend_from_slice(&i16::try_from(values.len()).unwrap_or(i16::MAX).to_be_bytes());
        for (type_oid, datum) in values {
            if datum == Datum::Null {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            encode(type_oid, Format::Binary, datum, out)?;
            let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
            if let Some(place) = out.get_mut(at..at + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    fn delimit(&self, at: usize, out: &mut Vec<u8>) {
        if at > 0 {
            out.push(self.options.delimiter);
        }
    }

    fn value(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.options.layout == Layout::Csv { self.csv(text, out) } else { self.escape(text, out) }
    }

    fn escape(&self, text: &[u8], out: &mut Vec<u8>) {
        for byte in text {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                8 => out.extend_from_slice(b"\\b"),
                11 => out.extend_from_slice(b"\\v"),
                12 => out.extend_from_slice(b"\\f"),
                byte if *byte == self.options.delimiter => out.extend_from_slice(&[b'\\', *byte]),
                byte => out.push(*byte),
            }
        }
    }

    fn csv(&self, text: &[u8], out: &mut Vec<u8>) {
        let Options { delimiter, quote, escape, .. } = self.options;
        let special = |byte: &u8| [delimiter, quote, b'\n', b'\r'].contains(byte);
        if text != self.options.null.as_bytes() && text != b"\\." && !text.iter().any(special) {
            return out.extend_from_slice(text);
        }
        out.push(quote);
        for byte in text {
            if *byte == quote || *byte == escape {
                out.push(escape);
            }
            out.push(*byte);
        }
        out.push(quote);
    }
}
