//! The three formats of `COPY`: rows to bytes, and bytes in pieces to rows.

mod read;
mod write;

pub use read::{CopyError, Reader, Row};
pub use write::Writer;

/// The layout of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A line a row, tabs between values, backslashes before what would be mistaken.
    #[default]
    Text,
    /// Comma-separated values with quotes.
    Csv,
    /// Values with their lengths before them.
    Binary,
}

/// How the data looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its layout.
    pub layout: Layout,
    /// The first line holds names.
    pub header: bool,
    /// What stands between values.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// What stands around values, in CSV.
    pub quote: u8,
    /// What stands before a quote within them, in CSV.
    pub escape: u8,
}

/// What binary data begins with.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Format;
    use crate::{Datum, oid};

    fn options(layout: Layout) -> Options {
        let csv = layout == Layout::Csv;
        Options {
            layout,
            header: false,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".into() },
            quote: b'"',
            escape: b'"',
        }
    }

    type Rows = Vec<Vec<Option<Vec<u8>>>>;

    fn read(options: &Options, data: &[u8], piece: usize) -> Result<Rows, CopyError> {
        let mut reader = Reader::new(options.clone(), 3);
        let mut rows = Vec::new();
        let mut take = |row: &Row<'_>| -> Result<(), CopyError> {
            rows.push((0..3).map(|at| row.get(at).map(<[u8]>::to_vec)).collect());
            Ok(())
        };
        for piece in data.chunks(piece) {
            reader.feed(piece, &mut take)?;
        }
        reader.finish(&mut take)?;
        Ok(rows)
    }

    fn rows(rows: &[[Option<&str>; 3]]) -> Rows {
        rows.iter()
            .map(|row| row.iter().map(|value| value.map(|text| text.as_bytes().to_vec())).collect())
            .collect()
    }

    #[test]
    fn text_in_pieces() {
        let data = b"1\ta\\tb\\\\\t\\N\n\t\\x41\\101\\\n\t\\q\r\nx\ty\tz";
        let expected = rows(&[
            [Some("1"), Some("a\tb\\"), None],
            [Some(""), Some("AA\n"), Some("q")],
            [Some("x"), Some("y"), Some("z")],
        ]);
        for piece in 1..data.len() {
            assert_eq!(read(&options(Layout::Text), data, piece).unwrap(), expected, "{piece}");
        }
        assert_eq!(read(&options(Layout::Text), b"1\t2\t3\n\\.\nrest", 3).unwrap().len(), 1);
        for wrong in [&b"1\t2\n"[..], b"1\t2\t3\t4\n"] {
            assert_eq!(read(&options(Layout::Text), wrong, 99).unwrap_err().state, "22P04");
        }
    }

    #[test]
    fn csv_in_pieces() {
        let data = b"1,\"a,\"\"b\nc\",\r\n\"\",x y,\"z\"\n";
        let expected = rows(&[[Some("1"), Some("a,\"b\nc"), None], [Some(""), Some("x y"), Some("z")]]);
        for piece in 1..data.len() {
            assert_eq!(read(&options(Layout::Csv), data, piece).unwrap(), expected, "{piece}");
        }
        let header = Options { header: true, delimiter: b';', escape: b'\\', ..options(Layout::Csv) };
        let expected = rows(&[[Some("a\"b"), None, Some("c")]]);
        assert_eq!(read(&header, b"x;y;z\n\"a\\\"b\";;c\n", 2).unwrap(), expected);
        assert_eq!(read(&options(Layout::Csv), b"\"open", 9).unwrap_err().state, "22P04");
    }

    #[test]
    fn what_is_written_is_read() {
        let values = [
            [Datum::Text("a\tb\nc\\d\"e,"), Datum::Null, Datum::Integer(-7)],
            [Datum::Text(""), Datum::Text("\\N"), Datum::Integer(0)],
            [Datum::Text("\\."), Datum::Text("x"), Datum::Integer(1)],
        ];
        for layout in [Layout::Text, Layout::Csv, Layout::Binary] {
            let writer = Writer::new(options(layout));
            let mut data = Vec::new();
            writer.begin(["a", "b", "c"].into_iter(), &mut data);
            for row in values {
                let types = [oid::TEXT, oid::TEXT, oid::INT4];
                writer.row(types.into_iter().zip(row), &mut data).unwrap();
            }
            writer.end(&mut data);
            for piece in 1..data.len() {
                let mut found = read(&options(layout), &data, piece).unwrap();
                for row in &mut found {
                    if let (Layout::Binary, Some(number)) = (layout, &mut row[2]) {
                        let value = crate::decode(oid::INT4, Format::Binary, number).unwrap();
                        *number = format!("{value:?}").replace("Integer(", "").replace(')', "").into_bytes();
                    }
                }
                let expected = rows(&[
                    [Some("a\tb\nc\\d\"e,"), None, Some("-7")],
                    [Some(""), Some("\\N"), Some("0")],
                    [Some("\\."), Some("x"), Some("1")],
                ]);
                assert_eq!(found, expected, "{layout:?} {piece}");
            }
        }
    }

    #[test]
    fn binary_lies_are_refused() {
        let mut head = SIGNATURE.to_vec();
        head.extend_from_slice(&[0; 8]);
        for tail in
            [&[0, 2, 0, 0][..], &[0, 3, 255, 255, 255, 254], &[0x7f, 0xff], &[0, 3, 0x7f, 255, 255, 255, 1]]
        {
            let data = [&head[..], tail].concat();
            assert_eq!(read(&options(Layout::Binary), &data, 5).unwrap_err().state, "22P04");
        }
        assert_eq!(read(&options(Layout::Binary), b"PGCOPX\n\xff\r\n\0", 5).unwrap_err().state, "22P04");
    }
}
