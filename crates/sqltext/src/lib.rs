//! SQL text to a tree: tokens, one dialect, places.
//!
//! A statement is cut into [`token`]s once, and `sqlparser` makes a [`Tree`] of these by a dialect of ours
//! (PostgreSQL's forms, and SQLite's). A node of the tree leads back to its tokens, and these to the text as the user
//! wrote it.
//!
//! ```
//! let tree = sqltext::parse("DELETE FROM frag WHERE page_id = 17").unwrap();
//! assert!(matches!(tree.statement, sqltext::ast::Statement::Delete(_)));
//! let error = sqltext::parse("DELETE FORM frag").unwrap_err();
//! assert_eq!(error.place, 7);
//! ```
#![forbid(unsafe_code)]

pub mod block;
pub mod conflict;
pub mod definition;
mod dialect;
pub mod error;
pub mod limits;
pub mod literals;
mod nesting;
mod parse;
pub mod places;
pub mod secret;
pub mod token;
pub mod value;

pub use definition::{grant, role};
pub use nesting::too_deep;
pub use parse::{Fault, SyntaxError, Tree, bytewise_collation, parse, parse_tokens, token_at};
pub use sqlparser::ast;
