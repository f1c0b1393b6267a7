//! What rows of a table depend on: tables of its source, and which of our columns have the values of theirs.

use std::fmt;

use super::server::{ServerDef, Wrapper};
use crate::limits::DEPENDENCES_MAX;

/// A table of a source that rows depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Its schema there.
    pub schema: String,
    /// Its name there.
    pub table: String,
    /// Columns there, each with ours that has its values; none: every change empties the table here.
    pub columns: Vec<(String, String)>,
}

impl Dependence {
    /// Reads `product(id), review(product_id => id), settings`.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let mut words = Words { rest: text };
        let mut all = vec![words.dependence()?];
        while words.sign(",") {
            all.push(words.dependence()?);
        }
        if !words.rest.trim().is_empty() {
            return Err(format!("\"{}\" is too much; {EXPECTED}", words.rest.trim()));
        }
        if all.len() > DEPENDENCES_MAX {
            return Err(format!("{DEPENDENCES_MAX} tables is the limit"));
        }
        Ok(all)
    }
}

impl Dependence {
    /// Its schema at a server. A table that is named without one is in PostgreSQL's `public`, or in the database that
    /// the connection to MariaDB is for; `None`: that is not said.
    pub fn schema_at<'n>(&'n self, server: &'n ServerDef) -> Option<&'n str> {
        match server.wrapper {
            Wrapper::MariaDb if self.schema == NO_SCHEMA => server.option("dbname"),
            _ => Some(&self.schema),
        }
    }
}

/// The schema of a table that is named without one.
const NO_SCHEMA: &str = "public";

/// As PostgreSQL writes the table's name.
impl fmt::Display for Dependence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

const EXPECTED: &str =
    "write tables of the source with their columns, as in 'product(id), review(product_id => id)'";

struct Words<'t> {
    rest: &'t str,
}

impl Words<'_> {
    fn dependence(&mut self) -> Result<Dependence, String> {
        let first = self.name()?;
        let (schema, table) =
            if self.sign(".") { (first, self.name()?) } else { (NO_SCHEMA.to_owned(), first) };
        let mut columns = Vec::new();
        if self.sign("(") {
            loop {
                let theirs = self.name()?;
                let ours = if self.sign("=>") { self.name()? } else { theirs.clone() };
                columns.push((theirs, ours));
                if !self.sign(",") {
                    break;
                }
            }
            if !self.sign(")") {
                return Err(format!("a parenthesis is not closed; {EXPECTED}"));
            }
        }
        Ok(Dependence { schema, table, columns })
    }

    fn sign(&mut self, sign: &str) -> bool {
        match self.rest.trim_start().strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A name, in lower case where it has no quotes.
    fn name(&mut self) -> Result<String, String> {
        let rest = self.rest.trim_start();
        if let Some(quoted) = rest.strip_prefix('"') {
            let (name, rest) = quoted.split_once('"').ok_or("a quote is not closed")?;
            self.rest = rest;
            return if name.is_empty() { Err("a name is empty".into()) } else { Ok(name.to_owned()) };
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
        if end == 0 {
            return Err(format!("a name is missing; {EXPECTED}"));
        }
        self.rest = &rest[end..];
        Ok(rest[..end].to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, ()> {
        let all = Dependence::read_all(text).map_err(|_| ())?;
        let columns = |own: &Dependence| {
            own.columns.iter().map(|(theirs, ours)| format!("{theirs}>{ours}")).collect::<Vec<_>>().join(",")
        };
        Ok(all.iter().map(|own| format!("{own}({})", columns(own))).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn dependences_are_read() {
        assert_eq!(read("Product(ID)").as_deref(), Ok("public.product(id>id)"));
        assert_eq!(
            read(r#"comment(page_id => page), shop."Page"(id=>page, lang), settings"#).as_deref(),
            Ok("public.comment(page_id>page) shop.Page(id>page,lang>lang) public.settings()")
        );
        for wrong in ["", "a(", "a(b", "a()", "a b", "a,", "\"a", "\"\"", "a(b =>)", &"a,".repeat(33)] {
            assert_eq!(read(wrong), Err(()), "{wrong}");
        }
    }
}
