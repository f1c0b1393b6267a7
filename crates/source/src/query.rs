//! A question with parameters: prepared once for a connection, asked often. Values are text, as PostgreSQL writes them.

use std::time::Instant;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::error::Error;
use crate::wire::{Connection, Frame, cells_of, cut};

/// What a source says of a statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    /// How many parameters it takes.
    pub(crate) parameters: usize,
    /// The columns that it gives: their names, and the OIDs of their types.
    pub(crate) columns: Vec<(String, u32)>,
}

/// The values of a row; none is NULL.
pub(crate) type Cells<'r> = [Option<&'r [u8]>];

/// Takes the rows of a query.
pub(crate) trait Rows {
    /// The next row.
    fn row(&mut self, cells: &Cells<'_>) -> Result<(), Error>;
    /// Whether the query is to go on: asked while nothing comes.
    fn look(&mut self) -> Result<(), Error>;
}

impl Connection {
    /// Prepares a statement under a name, and says what it takes and gives.
    pub(crate) fn prepare(&mut self, name: &str, sql: &str, until: Instant) -> Result<Described, Error> {
        let mut bytes = BytesMut::new();
        frontend::parse(name, sql, [], &mut bytes)?;
        frontend::describe(b'S', name, &mut bytes)?;
        frontend::sync(&mut bytes);
        self.send(&bytes)?;
        let mut described = Described::default();
        self.each_answer(until, |frame| {
            match frame.tag {
                b't' => described.parameters = count_of(&frame.body)?,
                b'T' => described.columns = columns_of(&frame.body)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(described)
    }

    /// The OIDs of the types of a text's parameters, of which `given` are known.
    pub(crate) fn parameter_types(
        &mut self,
        sql: &str,
        given: &[u32],
        until: Instant,
    ) -> Result<Vec<u32>, Error> {
        let mut bytes = BytesMut::new();
        frontend::parse("", sql, given.iter().copied(), &mut bytes)?;
        frontend::describe(b'S', "", &mut bytes)?;
        frontend::sync(&mut bytes);
        self.send(&bytes)?;
        let mut types = Vec::new();
        self.each_answer(until, |frame| {
            if frame.tag == b't' {
                let (_, numbers) = frame.body.split_first_chunk::<2>().ok_or_else(cut)?;
                types = numbers.as_chunks::<4>().0.iter().map(|number| u32::from_be_bytes(*number)).collect();
            }
            Ok(())
        })?;
        Ok(types)
    }

    /// Runs a prepared statement, and gives each of its rows to `take`.
    pub(crate) fn fetch(
        &mut self,
        name: &str,
        parameters: &Cells<'_>,
        until: Instant,
        take: &mut dyn FnMut(&Cells<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.run(name, parameters)?;
        self.each_answer(until, |frame| match frame.tag {
            b'D' => take(&cells_of(&frame.body)?),
            _ => Ok(()),
        })
    }

    /// Runs a prepared statement without parameters, and gives each of its rows to `rows`.
    pub(crate) fn fetch_all(&mut self, name: &str, until: Instant, rows: &mut dyn Rows) -> Result<(), Error> {
        self.run(name, &[])?;
        let mut result = Ok(());
        loop {
            match self.answer_while(until, &mut || rows.look()) {
                Ok(frame) if frame.tag == b'Z' => return result,
                Ok(frame) if frame.tag == b'D' => {
                    let taken = cells_of(&frame.body).and_then(|cells| rows.row(&cells));
                    // Nobody wants the rest, whose end is not known.
                    taken.inspect_err(|_| self.give_up())?;
                }
                Ok(_) => {}
                Err(error) if self.is_broken() => return Err(error),
                Err(error) => result = result.and(Err(error)),
            }
        }
    }

    /// Has a prepared statement run.
    fn run(&mut self, name: &str, parameters: &Cells<'_>) -> Result<(), Error> {
        let mut bytes = BytesMut::new();
        let write = |value: Option<&[u8]>, out: &mut BytesMut| {
            out.extend_from_slice(value.unwrap_or_default());
            Ok(if value.is_some() { IsNull::No } else { IsNull::Yes })
        };
        frontend::bind("", name, [], parameters.iter().copied(), write, [], &mut bytes)
            .map_err(|_| Error::new("54000", "the parameters of a query are too large"))?;
        frontend::execute("", 0, &mut bytes)?;
        frontend::sync(&mut bytes);
        self.send(&bytes)
    }

    /// Meets all answers until the next question may come. An error of the statement, or of `meet`, is returned then.
    fn each_answer(
        &mut self,
        until: Instant,
        mut meet: impl FnMut(&Frame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        loop {
            match self.answer(until) {
                Ok(frame) if frame.tag == b'Z' => return result,
                Ok(frame) => result = result.and_then(|()| meet(&frame)),
                // Nothing follows from a connection that is broken.
                Err(error) if self.is_broken() => return Err(error),
                Err(error) => result = result.and(Err(error)),
            }
        }
    }
}

/// The count at the beginning of a message.
fn count_of(body: &[u8]) -> Result<usize, Error> {
    let (count, _) = body.split_first_chunk::<2>().ok_or_else(cut)?;
    Ok(u16::from_be_bytes(*count).into())
}

/// The columns of a `RowDescription`. Behind each name stand 18 bytes: six of the table's, four of the type, eight
/// more.
fn columns_of(body: &[u8]) -> Result<Vec<(String, u32)>, Error> {
    let mut rest = body.get(2..).ok_or_else(cut)?;
    let mut columns = Vec::new();
    for _ in 0..count_of(body)? {
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        let (facts, behind) = rest[end + 1..].split_first_chunk::<18>().ok_or_else(cut)?;
        rest = behind;
        columns.push((name, u32::from_be_bytes([facts[6], facts[7], facts[8], facts[9]])));
    }
    Ok(columns)
}

/// Writes an array of texts as PostgreSQL reads it, whatever the type of its elements.
pub(crate) fn array<'t>(elements: impl Iterator<Item = &'t str>) -> String {
    let mut text = String::from("{");
    for (at, element) in elements.enumerate() {
        text.push_str(if at == 0 { "\"" } else { ",\"" });
        for letter in element.chars() {
            if matches!(letter, '"' | '\\') {
                text.push('\\');
            }
            text.push(letter);
        }
        text.push('"');
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read() {
        let mut body = b"\0\x02id\0".to_vec();
        let facts = |oid| [0, 0, 0, 0, 0, 0, 0, 0, 0, oid, 0, 0, 0, 0, 0, 0, 0, 0];
        body.extend_from_slice(&facts(23));
        body.extend_from_slice(b"name\0");
        body.extend_from_slice(&facts(25));
        assert_eq!(columns_of(&body).unwrap(), [("id".to_owned(), 23), ("name".to_owned(), 25)]);
        for cut in 0..body.len() {
            assert!(columns_of(&body[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn arrays_are_written() {
        assert_eq!(array([].into_iter()), "{}");
        assert_eq!(
            array(["1", "a\"b", "c\\,{}", "NULL", ""].into_iter()),
            r#"{"1","a\"b","c\\,{}","NULL",""}"#
        );
    }
}
