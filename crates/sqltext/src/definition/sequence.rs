//! Sequences: `CREATE SEQUENCE`, `ALTER SEQUENCE`, and the options that `IDENTITY` takes of them.

use super::reader::Reader;
use super::role::role;
use super::{AlterSequence, CreateSequence, Name, ObjectKind, Owner, SequenceChange, SequenceOptions, What};
use crate::error::SqlError;
use crate::token::Kind;

impl Reader<'_, '_> {
    /// What stands behind `CREATE SEQUENCE`.
    pub(super) fn create_sequence(&mut self, temporary: bool) -> Result<CreateSequence, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_object()?;
        let options = self.sequence_options()?;
        Ok(CreateSequence { temporary, if_not_exists, name, options })
    }

    /// What stands behind `ALTER SEQUENCE`.
    pub(super) fn alter_sequence(&mut self) -> Result<What, SqlError> {
        let if_exists = self.if_exists()?;
        let name = self.object_if_there(if_exists)?;
        if self.words(&["OWNER", "TO"]) {
            let kind = ObjectKind::Sequence;
            return Ok(What::Owner(Owner { if_exists, name, owner: role(self)?, kind }));
        }
        let change = if self.words(&["RENAME", "TO"]) {
            SequenceChange::Rename(self.name()?)
        } else if self.words(&["SET", "SCHEMA"]) {
            SequenceChange::SetSchema(self.schema_name()?)
        } else if self.words(&["SET", "LOGGED"]) || self.words(&["SET", "UNLOGGED"]) {
            SequenceChange::Nothing
        } else {
            SequenceChange::Options(Box::new(self.sequence_options()?))
        };
        Ok(What::AlterSequence(AlterSequence { if_exists, name, change }))
    }

    /// The options of a sequence, as many as there are.
    pub(super) fn sequence_options(&mut self) -> Result<SequenceOptions, SqlError> {
        let mut options = SequenceOptions::default();
        loop {
            if self.word("AS") {
                options.declared = Some(self.sequence_type()?);
            } else if self.word("START") {
                self.word("WITH");
                options.start = Some(self.whole_number()?);
            } else if self.word("RESTART") {
                self.word("WITH");
                let number = self.at_number();
                options.restart = Some(if number { Some(self.whole_number()?) } else { None });
            } else if self.word("INCREMENT") {
                self.word("BY");
                options.increment = Some(self.whole_number()?);
            } else if self.word("MINVALUE") {
                options.min = Some(Some(self.whole_number()?));
            } else if self.word("MAXVALUE") {
                options.max = Some(Some(self.whole_number()?));
            } else if self.word("CACHE") {
                options.cache = Some(self.whole_number()?);
            } else if self.word("CYCLE") {
                options.cycle = Some(true);
            } else if self.word("NO") {
                match self.any_word(&["MINVALUE", "MAXVALUE", "CYCLE"]) {
                    Some("MINVALUE") => options.min = Some(None),
                    Some("MAXVALUE") => options.max = Some(None),
                    Some(_) => options.cycle = Some(false),
                    None => return Err(self.unexpected()),
                }
            } else if self.words(&["OWNED", "BY"]) {
                options.owned = Some(self.sequence_owner()?);
            } else if self.words(&["SEQUENCE", "NAME"]) {
                options.name = Some(self.new_object()?);
            } else {
                return Ok(options);
            }
        }
    }

    /// The name of a type of one word.
    fn sequence_type(&mut self) -> Result<String, SqlError> {
        let name = self.name()?;
        if self.sign(".") { self.name().map(|name| name.text) } else { Ok(name.text) }
    }

    fn at_number(&self) -> bool {
        self.at_sign("-") || self.peek().is_some_and(|token| token.kind == Kind::Number)
    }

    fn sequence_owner(&mut self) -> Result<Option<(Name, Name)>, SqlError> {
        if self.word("NONE") { Ok(None) } else { self.column_of_table().map(Some) }
    }

    fn whole_number(&mut self) -> Result<i64, SqlError> {
        let minus = self.sign("-");
        let digits = self.peek().filter(|token| token.kind == Kind::Number);
        let signed = digits.map(|digits| format!("{}{}", if minus { "-" } else { "" }, digits.text));
        let number = signed.and_then(|signed| signed.parse().ok()).ok_or_else(|| self.unexpected())?;
        self.skip();
        Ok(number)
    }
}
