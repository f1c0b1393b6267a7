//! What of the statements that a client ran took effect, by what the client printed. A random statement may find
//! nothing to change, or fail: neither is counted.

/// A line of the client's, behind which a definition begins.
pub(super) const DEFINITION: &str = "=definition";
/// The same for what is no definition.
pub(super) const CHANGE: &str = "=change";

/// What took effect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effects {
    /// Statements that changed rows for good.
    pub(super) changes: usize,
    /// The rows that they changed.
    pub(super) rows: usize,
    /// Definitions, each with all of its steps.
    pub(super) definitions: usize,
}

impl Effects {
    pub(super) const fn add(&mut self, more: Self) {
        self.changes += more.changes;
        self.rows += more.rows;
        self.definitions += more.definitions;
    }
}

/// A statement that succeeded: its first words, and how many rows it changed.
struct Done<'t> {
    words: &'t str,
    rows: usize,
}

/// What psql printed: a tag for each statement that succeeded.
pub(super) fn of_psql(printed: &str) -> Effects {
    let done = |tag| Done { words: tag, rows: last_number(tag) };
    let mut reader = Reader::default();
    printed.lines().for_each(|line| reader.read(line, Some(done(line))));
    reader.ended()
}

/// What MariaDB's client printed at `-vv`: each statement, and `Query OK` behind those that succeeded.
pub(super) fn of_mariadb(printed: &str) -> Effects {
    let (mut reader, mut statement) = (Reader::default(), "");
    for line in printed.lines() {
        match line.strip_prefix("Query OK, ") {
            Some(counted) => {
                let rows = counted.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                reader.read(line, Some(Done { words: statement, rows }));
            }
            None if is_statement(line) => statement = line,
            None => reader.read(line, None),
        }
    }
    reader.ended()
}

/// Whether a line begins with a word in capitals, as our statements do and what the client says does not.
fn is_statement(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn last_number(tag: &str) -> usize {
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[derive(Default)]
struct Reader {
    effects: Effects,
    /// What the open transaction did, which may be rolled back.
    open: Effects,
    in_transaction: bool,
    in_definition: bool,
    /// Whether a step of the definition took effect.
    defined: bool,
}

impl Reader {
    fn read(&mut self, line: &str, done: Option<Done<'_>>) {
        match line {
            DEFINITION | CHANGE => self.begin(line == DEFINITION),
            _ => done.into_iter().for_each(|done| self.note(&done)),
        }
    }

    fn begin(&mut self, is_definition: bool) {
        self.effects.definitions += usize::from(self.in_definition && self.defined);
        (self.in_definition, self.defined) = (is_definition, false);
    }

    fn note(&mut self, done: &Done<'_>) {
        let mut words = done.words.split(' ');
        match words.next().unwrap_or_default() {
            "BEGIN" => self.in_transaction = true,
            "XA" => match words.next().unwrap_or_default() {
                "START" => self.in_transaction = true,
                "COMMIT" => self.in_transaction = false,
                _ => {}
            },
            "COMMIT" | "PREPARE" => self.in_transaction = false,
            // Also where it goes back to a savepoint only: too little is counted then.
            "ROLLBACK" => (self.open, self.in_transaction) = (Effects::default(), false),
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => {
                self.open.changes += usize::from(done.rows > 0);
                self.open.rows += done.rows;
            }
            "ALTER" | "CREATE" | "DROP" | "TRUNCATE" | "RENAME" | "VACUUM" | "OPTIMIZE" | "FLUSH" => {
                self.open.definitions = 1;
            }
            _ => {}
        }
        if !self.in_transaction {
            let done = std::mem::take(&mut self.open);
            self.defined |= done.definitions > 0;
            self.effects.add(Effects { definitions: 0, ..done });
        }
    }

    fn ended(mut self) -> Effects {
        self.begin(false);
        self.effects
    }
}

#[test]
fn what_was_rolled_back_or_changed_nothing_is_not_counted() {
    let printed = "=definition\nALTER TABLE\nUPDATE 3\n=change\nUPDATE 0\nINSERT 0 2\nBEGIN\nUPDATE 9\nROLLBACK\n\
                   =definition\nUPDATE 1\n=definition\nBEGIN\nTRUNCATE TABLE\nCOMMIT\n";
    let Effects { changes, rows, definitions } = of_psql(printed);
    assert_eq!((changes, rows, definitions), (3, 6, 2));
}

#[test]
fn what_mariadb_says_is_counted_in_the_same_way() {
    let line = "--------------\n";
    let said = |statement: &str, rows: usize| {
        format!("{line}{statement}\n{line}\nQuery OK, {rows} rows affected (0.001 sec)\nRows matched: 3\n")
    };
    let printed = [
        "=definition\n".to_owned(),
        said("ALTER TABLE plain DROP COLUMN n", 0),
        "=change\n".to_owned(),
        said("BEGIN", 0) + &said("UPDATE plain SET v = 'never'", 9) + &said("ROLLBACK", 0),
        said("REPLACE INTO part VALUES (1)", 2),
        // It failed: nothing is said of it.
        format!("{line}UPDATE nowhere SET v = 1\n{line}\n"),
    ];
    let Effects { changes, rows, definitions } = of_mariadb(&printed.concat());
    assert_eq!((changes, rows, definitions), (1, 2, 1));
}
