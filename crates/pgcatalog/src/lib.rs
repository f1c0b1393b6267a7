//! The tables and functions that PostgreSQL's clients expect.
//!
//! [`system`] has the catalogue, `information_schema` and the server's own figures as virtual tables of SQLite: their
//! rows are computed from the store's definitions for each statement that names one. [`function`] has one table of all
//! functions that a statement may call, with their types and the user's page. [`shape`] says which columns a table
//! shows.
//!
//! A statement goes through here twice. While it is compiled, names and types are asked for. While it runs, SQLite
//! calls the functions and opens the tables, for the [`session::Asker`] that [`system::System::begin`] was given.
//!
//! ```
//! use pgcatalog::function::{Returns, returns};
//! use store::definition::SqlType;
//!
//! assert!(pgcatalog::system::is_table("pg_class"));
//! assert_eq!(returns("current_database"), Some(Returns::Type(SqlType::Name)));
//! ```
#![forbid(unsafe_code)]

pub mod advisory;
pub mod began;
mod effect;
pub mod function;
mod keywords;
pub mod limits;
pub mod look;
mod names;
mod numbers;
pub mod predicate;
pub mod sequence;
pub mod session;
pub mod shape;
pub mod system;
mod words;
pub mod zone;

pub use effect::Effect;
pub use names::{KEY_OPTION, identifier};
