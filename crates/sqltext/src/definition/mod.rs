//! Definitions: what `CREATE`, `ALTER`, `DROP` and their like say.
//!
//! Their clauses are read by readers of our own: the parser's take those of a dozen databases, and a clause that means
//! nothing here must be refused with its place. Expressions and queries within them are the parser's, from the same
//! tokens, so a definition is one tree too. Each keeps its tokens, by which it is brought into SQLite's words.
//!
//! ```
//! use sqltext::definition::{What, read};
//! let sql = "CREATE TABLE t (a INT DEFAULT 1 + 1 NOT NULL)";
//! let What::CreateTable(table) = read(sql, sqltext::token::tokens(sql), None).unwrap().what else { panic!() };
//! assert_eq!(table.name.text, "t");
//! ```

mod alter;
mod column;
mod enumeration;
pub mod grant;
mod kinds;
mod materialized;
mod object;
mod reader;
pub mod role;
mod routine;
mod rule;
mod schema;
mod sequence;
mod server;
mod table;

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{Expr, Query};
use store::Catalog;
use store::definition::ParameterMode;

use crate::error::SqlError;
use crate::token::Token;
use grant::Grants;
pub use materialized::{CreateMaterialized, Refresh};
pub(crate) use reader::Reader;
use role::RoleRef;
pub use server::{CreateServer, MappingOf, OptionChange, QueryOf, ServerAlteration, ServerStatement};

/// A definition with the text that it was read from.
#[derive(Debug)]
pub struct Definition<'a> {
    /// The text.
    pub sql: &'a str,
    /// Its tokens.
    pub tokens: Vec<Token<'a>>,
    /// What they say.
    pub what: What,
}

/// What a definition says.
#[derive(Debug)]
pub enum What {
    /// `CREATE TABLE`
    CreateTable(Box<CreateTable>),
    /// `CREATE INDEX`
    CreateIndex(Box<CreateIndex>),
    /// `CREATE VIEW`
    CreateView(Box<CreateView>),
    /// `CREATE MATERIALIZED VIEW`
    CreateMaterialized(Box<CreateMaterialized>),
    /// `REFRESH MATERIALIZED VIEW`
    Refresh(Refresh),
    /// `CREATE FUNCTION`, `CREATE PROCEDURE`
    CreateRoutine(Box<CreateRoutine>),
    /// `DROP FUNCTION`, `DROP PROCEDURE`, `DROP ROUTINE`
    DropRoutine(DropRoutine),
    /// `ALTER FUNCTION`, `ALTER PROCEDURE`, `ALTER ROUTINE`
    AlterRoutine(AlterRoutine),
    /// `DROP TABLE`, `DROP INDEX`, `DROP VIEW`, `DROP TYPE`
    Drop(Drop),
    /// `ALTER TABLE`
    AlterTable(AlterTable),
    /// `ALTER INDEX ... RENAME TO`
    RenameIndex(RenameIndex),
    /// `CREATE TYPE ... AS ENUM`
    CreateEnum(CreateEnum),
    /// `ALTER TYPE`
    AlterEnum(AlterEnum),
    /// `TRUNCATE`
    Truncate(Truncate),
    /// `CREATE EXPIRY RULE`
    CreateRule(CreateRule),
    /// `DROP EXPIRY RULE`
    DropRule(DropRule),
    /// `COMMENT ON`
    Comment(Comment),
    /// `GRANT`, `REVOKE`
    Grant(Grants),
    /// `ALTER TABLE ... OWNER TO`, `ALTER VIEW ... OWNER TO`
    Owner(Owner),
    /// `CREATE SCHEMA`
    CreateSchema(CreateSchema),
    /// `CREATE SEQUENCE`
    CreateSequence(Box<CreateSequence>),
    /// `ALTER SEQUENCE`
    AlterSequence(AlterSequence),
    /// `CREATE SERVER`, `CREATE USER MAPPING`, `CREATE CACHED QUERY`, and their changes
    Server(ServerStatement),
    /// `ALTER SCHEMA ... OWNER TO`, and other changes that change nothing, with the tag
    Nothing(&'static str),
    /// `CREATE EXTENSION`
    Known(Known),
    /// `ANALYZE`, `REINDEX`, `VACUUM`
    Upkeep(Upkeep),
}

/// `CREATE FUNCTION`, `CREATE PROCEDURE`
#[derive(Debug)]
pub struct CreateRoutine {
    /// `OR REPLACE`
    pub replace: bool,
    /// Its name.
    pub name: Name,
    /// In their order.
    pub parameters: Vec<Parameter>,
    /// It is a function.
    pub function: bool,
    /// What it returns, where a function says so: else its parameters do.
    pub returns: Option<ReturnType>,
    /// `STRICT`
    pub strict: bool,
    /// `SECURITY DEFINER`
    pub definer: bool,
    /// `SET search_path`
    pub path: Option<Vec<String>>,
    /// What it does.
    pub body: RoutineBody,
}

/// A parameter of a function or procedure.
#[derive(Debug)]
pub struct Parameter {
    /// Its name; empty where it has none.
    pub name: String,
    /// Which way its value goes.
    pub mode: ParameterMode,
    /// Its type.
    pub declared: String,
    /// The expression of its value where a call gives none.
    pub default: Option<String>,
    /// Where its type stands, in bytes.
    pub place: usize,
}

/// What a function returns.
#[derive(Debug)]
pub enum ReturnType {
    /// `void`
    Void,
    /// A value.
    One(String),
    /// `SETOF`
    Set(String),
    /// `record`: its parameters say of what; `true`: `SETOF`
    Record(bool),
    /// `TABLE`: names and types.
    Table(Vec<(String, String)>),
}

/// What a function or procedure does.
#[derive(Debug)]
pub enum RoutineBody {
    /// `AS 'statements'`
    Text(String),
    /// `RETURN expression`
    Return(String),
    /// `BEGIN ATOMIC statements END`
    Atomic(Vec<String>),
}

/// `DROP FUNCTION`, `DROP PROCEDURE`, `DROP ROUTINE`
#[derive(Debug)]
pub struct DropRoutine {
    /// What it is called there, in capitals.
    pub word: &'static str,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// Their names.
    pub names: Vec<Name>,
}

/// `ALTER FUNCTION`, `ALTER PROCEDURE`, `ALTER ROUTINE`
#[derive(Debug)]
pub struct AlterRoutine {
    /// What it is called there, in capitals.
    pub word: &'static str,
    /// Its name.
    pub name: Name,
    /// What changes.
    pub change: RoutineChange,
}

/// What `ALTER FUNCTION` changes.
#[derive(Debug)]
pub enum RoutineChange {
    /// `RENAME TO`
    Rename(Name),
    /// `OWNER TO`
    Owner(RoleRef),
    /// `SECURITY DEFINER`, or `INVOKER`
    Definer(bool),
    /// `SET search_path`, or `RESET`
    Path(Option<Vec<String>>),
    /// What is said of every function that may be made here, and changes nothing.
    Nothing,
}

/// A name as it is meant, without quotes; that of an object is the one that it has in the store, or would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// The schema that it was found in, beside `public`.
    pub namespace: Option<String>,
    /// Where it stands, in bytes.
    pub place: usize,
}

/// An expression or a query, and its tokens.
#[derive(Debug)]
pub struct Part<T> {
    /// Its tree.
    pub node: T,
    /// The numbers of its tokens.
    pub tokens: Range<usize>,
}

/// An expression.
pub type Expression = Part<Box<Expr>>;

/// A query; `None`: the parser does not know all of it, and SQLite has the last word on it.
pub type Read = Option<Box<Query>>;

/// A table option and its text.
pub type Setting = (String, String);

/// `CREATE TABLE name (...)`, `CREATE TABLE name AS query`
#[derive(Debug)]
pub struct CreateTable {
    /// It says that the table is to go by itself.
    pub temporary: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The name.
    pub name: Name,
    /// What it is made of.
    pub body: Body,
    /// `WITH (...)`
    pub settings: Vec<Setting>,
}

/// What a table is made of.
#[derive(Debug)]
pub enum Body {
    /// Columns and constraints, in their order.
    Elements(Vec<Element>),
    /// The rows of a query.
    Query(Part<Read>),
}

/// What stands between two commas of a table's definition.
#[derive(Debug)]
pub enum Element {
    /// A column.
    Column(Column),
    /// A constraint.
    Constraint(Constraint),
    /// `LIKE table`
    Like(Like),
}

/// `LIKE table INCLUDING ...`
#[derive(Debug)]
pub struct Like {
    /// The table that is copied.
    pub table: Name,
    /// What is copied beside columns and `NOT NULL`.
    pub including: Including,
}

/// What `INCLUDING` names.
#[expect(clippy::struct_excessive_bools, reason = "the clause is a list of things that are copied or not")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Including {
    /// `COMMENTS`
    pub comments: bool,
    /// `CONSTRAINTS`: checks.
    pub constraints: bool,
    /// `DEFAULTS`
    pub defaults: bool,
    /// `GENERATED`
    pub generated: bool,
    /// `IDENTITY`
    pub identity: bool,
    /// `INDEXES`: keys and unique constraints among them.
    pub indexes: bool,
    /// `STORAGE`: the table's options.
    pub storage: bool,
}

/// A column's definition.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: Name,
    /// The type as it was declared, in one spelling; empty: none.
    pub declared: String,
    /// What else is said of it.
    pub rules: Vec<ColumnRule>,
}

/// What is said of a column, with the constraint's name.
#[derive(Debug)]
pub struct ColumnRule {
    /// `CONSTRAINT name`
    pub name: Option<String>,
    /// What is said.
    pub kind: ColumnRuleKind,
}

/// What is said of a column.
#[derive(Debug)]
pub enum ColumnRuleKind {
    /// `PRIMARY KEY`
    PrimaryKey {
        /// Where `AUTOINCREMENT` stands behind it.
        autoincrement: Option<usize>,
    },
    /// `NOT NULL`
    NotNull,
    /// `NULL`
    Null,
    /// `UNIQUE`
    Unique,
    /// `DEFAULT expression`
    Default(Expression),
    /// `CHECK (expression)`
    Check(Expression),
    /// `COLLATE name`
    Collate(String),
    /// `REFERENCES table`
    References(Reference),
    /// `GENERATED ALWAYS AS (expression)`
    Generated {
        /// What computes it.
        expression: Expression,
        /// `STORED`
        stored: bool,
    },
    /// `GENERATED ... AS IDENTITY`
    Identity {
        /// `ALWAYS`
        always: bool,
        /// `START WITH`
        start: i64,
    },
    /// `DEFERRABLE` or `INITIALLY DEFERRED`, which no constraint here is.
    Deferrable,
}

/// A table's constraint.
#[derive(Debug)]
pub struct Constraint {
    /// `CONSTRAINT name`
    pub name: Option<String>,
    /// What it is.
    pub kind: ConstraintKind,
    /// `DEFERRABLE` or `INITIALLY DEFERRED`
    pub deferrable: bool,
}

/// What a table's constraint is.
#[derive(Debug)]
pub enum ConstraintKind {
    /// `PRIMARY KEY (terms)`
    PrimaryKey(Vec<Term>),
    /// `UNIQUE (terms)`
    Unique(Vec<Term>),
    /// `CHECK (expression)`
    Check(Expression),
    /// `FOREIGN KEY (columns) REFERENCES table`
    ForeignKey(Vec<Name>, Reference),
}

/// `REFERENCES table (columns) ON DELETE action ON UPDATE action`
#[derive(Clone, Debug)]
pub struct Reference {
    /// The table.
    pub table: Name,
    /// Its columns; empty: its key.
    pub columns: Vec<Name>,
    /// `ON DELETE`, in capitals; empty: nothing is said.
    pub on_delete: String,
    /// `ON UPDATE`
    pub on_update: String,
    /// `DEFERRABLE` or `INITIALLY DEFERRED`
    pub deferrable: bool,
}

/// One term of an index or a key.
#[derive(Debug)]
pub struct Term {
    /// What it is made of.
    pub expression: Expression,
    /// `DESC`
    pub descending: bool,
}

/// `CREATE INDEX`
#[derive(Debug)]
pub struct CreateIndex {
    /// `UNIQUE`
    pub unique: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name, if it has one.
    pub name: Option<Name>,
    /// The table.
    pub table: Name,
    /// `USING method`
    pub method: Option<Name>,
    /// What it is made of.
    pub terms: Vec<Term>,
    /// `INCLUDE (columns)`
    pub include: Vec<Name>,
    /// `WITH (...)`
    pub settings: Vec<Setting>,
    /// `WHERE expression`
    pub condition: Option<Expression>,
}

/// `CREATE VIEW`
#[derive(Debug)]
pub struct CreateView {
    /// `OR REPLACE`
    pub replace: bool,
    /// It says that the view is to go by itself.
    pub temporary: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The name.
    pub name: Name,
    /// The names of its columns.
    pub columns: Vec<Name>,
    /// What it is.
    pub query: Part<Read>,
}

/// What is dropped, or commented on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A view.
    View,
    /// A materialized view.
    Materialized,
    /// An enum type.
    Enum,
    /// A schema.
    Schema,
    /// A sequence.
    Sequence,
}

/// `DROP TABLE`, `DROP INDEX`, `DROP VIEW`, `DROP TYPE`
#[derive(Debug)]
pub struct Drop {
    /// Of what kind they are.
    pub kind: ObjectKind,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The names.
    pub names: Vec<Name>,
    /// `CASCADE`
    pub cascade: bool,
}

/// `ALTER TABLE`
#[derive(Debug)]
pub struct AlterTable {
    /// `ALTER MATERIALIZED VIEW`
    pub materialized: bool,
    /// `ALTER VIEW`
    pub view: bool,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The table.
    pub table: Name,
    /// What is changed, one after the other.
    pub changes: Vec<Change>,
}

/// One change of a table.
#[derive(Debug)]
pub enum Change {
    /// `ADD [COLUMN] [IF NOT EXISTS] column`
    AddColumn {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The column.
        column: Box<Column>,
    },
    /// `ADD constraint`
    AddConstraint(Box<Constraint>),
    /// `DROP [COLUMN] [IF EXISTS] name`
    DropColumn {
        /// `IF EXISTS`
        if_exists: bool,
        /// Its name.
        name: Name,
        /// `CASCADE`
        cascade: bool,
    },
    /// `DROP CONSTRAINT [IF EXISTS] name`
    DropConstraint {
        /// `IF EXISTS`
        if_exists: bool,
        /// Its name.
        name: Name,
    },
    /// `RENAME TO name`
    RenameTable(Name),
    /// `SET SCHEMA name`: none is `public`
    SetSchema(Option<Name>),
    /// `RENAME [COLUMN] name TO name`
    RenameColumn(Name, Name),
    /// `RENAME CONSTRAINT name TO name`
    RenameConstraint(Name, Name),
    /// `ALTER [COLUMN] name ...`
    Column(Name, ColumnChange),
    /// `SET (...)`
    Set(Vec<Setting>),
    /// `RESET (...)`
    Reset(Vec<Setting>),
}

/// A change of a column.
#[derive(Debug)]
pub enum ColumnChange {
    /// `TYPE type [USING expression]`
    Type {
        /// As it was declared, in one spelling.
        declared: String,
        /// `COLLATE name`
        collation: Option<String>,
        /// What makes the new value.
        using: Option<Expression>,
    },
    /// `SET DEFAULT expression`
    SetDefault(Expression),
    /// `DROP DEFAULT`
    DropDefault,
    /// `SET NOT NULL`, `DROP NOT NULL`
    NotNull(bool),
    /// `ADD GENERATED ... AS IDENTITY`
    AddIdentity {
        /// `ALWAYS`
        always: bool,
        /// `START WITH`
        start: i64,
    },
    /// `DROP IDENTITY [IF EXISTS]`
    DropIdentity(bool),
    /// `SET GENERATED ALWAYS`
    SetIdentity(bool),
    /// `RESTART [WITH number]`, `SET START WITH` and its like, which say nothing here, have none
    Restart(Option<i64>),
}

/// `ALTER TABLE name OWNER TO role`, and the same of views and sequences
#[derive(Debug)]
pub struct Owner {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The table, view or sequence.
    pub name: Name,
    /// Its owner from then on.
    pub owner: RoleRef,
    /// What it was called.
    pub kind: ObjectKind,
}

/// `ALTER INDEX name RENAME TO name`
#[derive(Debug)]
pub struct RenameIndex {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The name of now.
    pub name: Name,
    /// The name from then on.
    pub to: Name,
}

/// `CREATE TYPE name AS ENUM (labels)`
#[derive(Debug)]
pub struct CreateEnum {
    /// The name.
    pub name: Name,
    /// The labels in their order.
    pub labels: Vec<String>,
}

/// `ALTER TYPE`
#[derive(Debug)]
pub struct AlterEnum {
    /// The type.
    pub name: Name,
    /// What is changed.
    pub change: EnumChange,
}

/// A change of an enum type.
#[derive(Debug)]
pub enum EnumChange {
    /// `ADD VALUE [IF NOT EXISTS] label [BEFORE | AFTER label]`
    Add {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The label.
        label: String,
        /// The one beside which it comes, and whether it comes behind that.
        beside: Option<(String, bool)>,
    },
    /// `RENAME VALUE label TO label`
    RenameValue(String, String),
    /// `RENAME TO name`
    Rename(Name),
    /// `OWNER TO role`: there is but one.
    Nothing,
}

/// `TRUNCATE`
#[derive(Debug)]
pub struct Truncate {
    /// The tables.
    pub names: Vec<Name>,
    /// `RESTART IDENTITY`
    pub restart: bool,
}

/// `CREATE EXPIRY RULE name ON table WHEN condition EVERY 'span'`
#[derive(Debug)]
pub struct CreateRule {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name.
    pub name: Name,
    /// The table.
    pub table: Name,
    /// The condition.
    pub condition: Expression,
    /// `EVERY`: the text of the span, and its place.
    pub every: Option<Name>,
}

/// `DROP EXPIRY RULE`
#[derive(Debug)]
pub struct DropRule {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// Its name.
    pub name: Name,
}

/// `COMMENT ON object IS text`
#[derive(Debug)]
pub struct Comment {
    /// What it is about.
    pub about: Commented,
    /// The text; `None`: no comment any more.
    pub text: Option<String>,
}

/// What a comment is about.
#[derive(Debug)]
pub enum Commented {
    /// A table, an index or a view.
    Object(ObjectKind, Name),
    /// A column of a table or view.
    Column(Name, Name),
    /// A constraint of a table.
    Constraint(Name, Name),
    /// Something of which no comments are kept: `DATABASE`, `SCHEMA`, `EXTENSION`.
    Other,
}

/// `CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION role]`
#[derive(Debug)]
pub struct CreateSchema {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name; none: that of the role.
    pub name: Option<Name>,
    /// The role, by its name; none: it was named by a word like `CURRENT_USER`, or not at all.
    pub role: Option<Name>,
}

/// `CREATE SEQUENCE`
#[derive(Debug)]
pub struct CreateSequence {
    /// It says that the sequence is to go by itself.
    pub temporary: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name.
    pub name: Name,
    /// What is said of it.
    pub options: SequenceOptions,
}

/// `ALTER SEQUENCE`
#[derive(Debug)]
pub struct AlterSequence {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The sequence.
    pub name: Name,
    /// What is changed.
    pub change: SequenceChange,
}

/// A change of a sequence.
#[derive(Debug)]
pub enum SequenceChange {
    /// Its options.
    Options(Box<SequenceOptions>),
    /// `RENAME TO name`
    Rename(Name),
    /// `SET SCHEMA name`: none is `public`
    SetSchema(Option<Name>),
    /// `OWNER TO role` and its like
    Nothing,
}

/// What is said of a sequence; none: nothing is said.
#[derive(Debug, Default)]
pub struct SequenceOptions {
    /// `AS type`
    pub declared: Option<String>,
    /// `START WITH`
    pub start: Option<i64>,
    /// `RESTART [WITH number]`
    pub restart: Option<Option<i64>>,
    /// `INCREMENT BY`
    pub increment: Option<i64>,
    /// `MINVALUE number`, `NO MINVALUE`
    pub min: Option<Option<i64>>,
    /// `MAXVALUE number`, `NO MAXVALUE`
    pub max: Option<Option<i64>>,
    /// `CACHE`
    pub cache: Option<i64>,
    /// `CYCLE`, `NO CYCLE`
    pub cycle: Option<bool>,
    /// `OWNED BY table.column`, `OWNED BY NONE`
    pub owned: Option<Option<(Name, Name)>>,
    /// `SEQUENCE NAME`, of an identity column
    pub name: Option<Name>,
}

/// `CREATE EXTENSION name`
#[derive(Debug)]
pub struct Known {
    /// `IF NOT EXISTS`, or `IF EXISTS` of a `DROP`.
    pub conditional: bool,
    /// It is dropped.
    pub drops: bool,
    /// Its name.
    pub name: Name,
    /// Where the word stands that says what it is.
    pub place: usize,
}

/// `ANALYZE`, `REINDEX`, `VACUUM`
#[derive(Debug)]
pub struct Upkeep {
    /// The word.
    pub tag: &'static str,
    /// Tables, indexes, collations.
    pub names: Vec<Name>,
}

/// Reads a definition of which the tokens are known. `catalog`: what names without a schema mean, and which schemas
/// there are.
pub fn read<'a>(
    sql: &'a str,
    tokens: Vec<Token<'a>>,
    catalog: Option<&Arc<Catalog>>,
) -> Result<Definition<'a>, SqlError> {
    let what = {
        let mut reader = Reader::new(sql, &tokens)?.with_catalog(catalog.cloned());
        let what = reader.definition()?;
        reader.end()?;
        what
    };
    Ok(Definition { sql, tokens, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    fn read_sql(sql: &str) -> Result<Definition<'_>, SqlError> {
        read(sql, tokens(sql), None)
    }

    fn columns(sql: &str) -> Vec<Column> {
        let What::CreateTable(table) = read_sql(sql).unwrap().what else { panic!("{sql}") };
        let Body::Elements(elements) = table.body else { panic!("{sql}") };
        let column = |element| match element {
            Element::Column(column) => Some(column),
            _ => None,
        };
        elements.into_iter().filter_map(column).collect()
    }

    #[test]
    fn types_have_one_spelling() {
        for (written, declared) in [
            ("int", "int"),
            ("", ""),
            ("numeric ( 10,2 )", "numeric (10, 2)"),
            ("timestamp(6) with time zone", "timestamp (6) with time zone"),
            ("double  precision", "double precision"),
            ("varchar(20)[]", "varchar (20) []"),
            ("text array[3]", "text []"),
            ("int[][]", "int []"),
            ("int [ ]", "int []"),
            ("\"char\"", "char"),
            ("character varying (7) collate x", "character varying (7)"),
        ] {
            let sql = format!("CREATE TABLE t (a {written} NOT NULL)");
            assert_eq!(columns(&sql)[0].declared, declared, "{written}");
        }
    }

    /// An expression ends where the next rule of its column begins.
    #[test]
    fn expressions_keep_their_tokens() {
        let sql = "CREATE TABLE t (a TEXT DEFAULT 'x' || (1) COLLATE NOCASE NOT NULL, \
                   b INT DEFAULT CASE WHEN 1 IS NOT NULL THEN 2 END CHECK (b > 0), c INT AS (a + b) STORED)";
        let definition = read_sql(sql).unwrap();
        let texts = |parts: &[Column]| -> Vec<String> {
            let rules = parts.iter().flat_map(|column| &column.rules);
            let text = |part: &Expression| {
                let tokens = &definition.tokens[part.tokens.clone()];
                sql[tokens[0].start..tokens[tokens.len() - 1].end()].to_owned()
            };
            rules
                .filter_map(|rule| match &rule.kind {
                    ColumnRuleKind::Default(part)
                    | ColumnRuleKind::Check(part)
                    | ColumnRuleKind::Generated { expression: part, .. } => Some(text(part)),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(
            texts(&columns(sql)),
            ["'x' || (1)", "CASE WHEN 1 IS NOT NULL THEN 2 END", "b > 0", "a + b"]
        );
    }

    #[test]
    fn mistakes_have_their_places() {
        for (sql, state, place) in [
            ("CREATE TABLE t (a int,)", "42601", 22),
            ("CREATE TABLE t (a int DEFAULT)", "42601", 29),
            ("CREATE TABLE t (a int DEFAULT NOT NULL)", "42601", 30),
            ("CREATE TABLE t (select int)", "42601", 16),
            ("CREATE TABLE t (a int) b", "42601", 23),
            ("CREATE TABLE t (a int GENERATED BY DEFAULT AS (1))", "42601", 46),
            ("CREATE TABLE s.t (a int)", "3F000", 13),
            ("CREATE INDEX i ON t (a", "42601", 22),
            ("CREATE SEQUENCE s INCREMENT BY x", "42601", 31),
            ("CREATE OR REPLACE TRIGGER f()", "0A000", 18),
            ("DROP TABLE a, b cascade restrict", "42601", 24),
            ("ALTER TABLE t", "42601", 13),
            ("ALTER TABLE t ADD a int, DROP", "42601", 29),
            ("ALTER TABLE t ENABLE x", "0A000", 14),
            ("TRUNCATE", "42601", 8),
            ("COMMENT ON TABLE t IS 1", "42601", 22),
            ("DROP VIEW a; DROP VIEW b", "42601", 13),
            ("CREATE VIEW v AS DELETE FROM t", "42601", 17),
            ("ALTER TABLE t ADD CHECK (a = 'x", "42601", 29),
        ] {
            let error = read_sql(sql).unwrap_err();
            assert_eq!((error.state, error.position), (state, Some(place + 1)), "{sql}: {error}");
        }
    }
}
