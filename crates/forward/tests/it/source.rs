//! A source: PostgreSQL's protocol over statements whose answers never change.

use std::collections::HashMap;

/// See the module.
#[derive(Debug)]
pub(crate) struct Source {
    input: Vec<u8>,
    status: u8,
    names: HashMap<String, String>,
    portal: Option<(String, Vec<u8>)>,
    /// Requests are skipped up to the next `Sync`.
    skips: bool,
    /// What it says by itself before its next answer.
    pub(crate) aside: Vec<u8>,
    /// Statements that it has run.
    pub(crate) executed: usize,
}

/// Appends a message.
pub(crate) fn message(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    out.extend_from_slice(body);
}

fn text(body: &[u8]) -> (&str, &[u8]) {
    let end = body.iter().position(|byte| *byte == 0).unwrap();
    (std::str::from_utf8(&body[..end]).unwrap(), &body[end + 1..])
}

impl Source {
    pub(crate) fn new() -> Self {
        Self {
            input: Vec::new(),
            status: b'I',
            names: HashMap::new(),
            portal: None,
            skips: false,
            aside: Vec::new(),
            executed: 0,
        }
    }

    /// Answers what was sent.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let (input, mut at, mut out) = (std::mem::take(&mut self.input), 0, Vec::new());
        while let Some(head) = input.get(at..at + 5) {
            let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize + 1;
            let Some(whole) = input.get(at..at + len) else { break };
            out.append(&mut self.aside);
            self.request(whole[0], &whole[5..], &mut out);
            at += len;
        }
        self.input = input[at..].to_vec();
        out
    }

    fn request(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) {
        if self.skips && kind != b'S' {
            return;
        }
        match kind {
            b'Q' => {
                self.names.remove("");
                self.run(text(body).0, &[], true, out);
                message(b'Z', &[self.status], out);
            }
            b'P' => {
                let (name, rest) = text(body);
                let (sql, _) = text(rest);
                if !name.is_empty() && self.names.contains_key(name) {
                    return self.fail("42P05", out);
                }
                self.names.insert(name.to_owned(), sql.to_owned());
                message(b'1', &[], out);
            }
            b'B' => {
                let (_, rest) = text(body);
                let (name, values) = text(rest);
                let Some(sql) = self.names.get(name) else { return self.fail("26000", out) };
                self.portal = Some((sql.clone(), values.to_vec()));
                message(b'2', &[], out);
            }
            b'D' => self.describe(body, out),
            b'E' => {
                let Some((sql, values)) = self.portal.clone() else { return self.fail("34000", out) };
                self.run(&sql, &values, false, out);
            }
            b'C' => {
                if body[0] == b'S' {
                    self.names.remove(text(&body[1..]).0);
                } else {
                    self.portal = None;
                }
                message(b'3', &[], out);
            }
            b'S' => {
                self.skips = false;
                if self.status == b'I' {
                    self.portal = None;
                }
                message(b'Z', &[self.status], out);
            }
            _ => {}
        }
    }

    fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let sql = if body[0] == b'S' {
            self.names.get(text(&body[1..]).0).cloned()
        } else {
            self.portal.as_ref().map(|(sql, _)| sql.clone())
        };
        let Some(sql) = sql else { return self.fail("26000", out) };
        if body[0] == b'S' {
            message(b't', &[0, 0], out);
        }
        if sql.starts_with("SELECT") {
            message(b'T', format!("the columns of {sql}").as_bytes(), out);
        } else {
            message(b'n', &[], out);
        }
    }

    fn fail(&mut self, state: &str, out: &mut Vec<u8>) {
        message(b'E', format!("SERROR\0C{state}\0Mno\0\0").as_bytes(), out);
        self.skips = true;
        if self.status == b'T' {
            self.status = b'E';
        }
    }

    fn run(&mut self, sql: &str, values: &[u8], simple: bool, out: &mut Vec<u8>) {
        let ends = ["COMMIT", "ROLLBACK"].contains(&sql);
        if sql.starts_with("SELECT session_user") {
            return state(sql, out);
        }
        self.executed += 1;
        let fails = sql.starts_with("FAIL") || self.status == b'E' && !ends;
        if fails {
            self.fail("22012", out);
            // A simple query skips nothing.
            self.skips = !simple;
            return;
        }
        match sql {
            "BEGIN" => self.status = b'T',
            "COMMIT" | "ROLLBACK" => self.status = b'I',
            "DISCARD ALL" => self.names.retain(|name, _| name.is_empty()),
            _ => {}
        }
        if let Some(name) = sql.strip_prefix("DEALLOCATE ") {
            self.names.remove(name);
        }
        if sql.starts_with("SELECT") {
            if simple {
                message(b'T', format!("the columns of {sql}").as_bytes(), out);
            }
            message(b'D', &[sql.as_bytes(), values].concat(), out);
        }
        message(b'C', &[sql.split(' ').next().unwrap().as_bytes(), b"\0"].concat(), out);
    }
}

/// The state of a session without anything special.
fn state(sql: &str, out: &mut Vec<u8>) {
    let settings = sql.matches(", true)").count();
    let values = ["u", "u", "shop", "0", "read committed", "0"].into_iter();
    let values: Vec<&str> = values.chain(std::iter::repeat_n("", settings)).collect();
    let mut row = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        row.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        row.extend_from_slice(value.as_bytes());
    }
    message(b'D', &row, out);
    message(b'C', b"SELECT 1\0", out);
}
