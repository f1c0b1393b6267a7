//! Statements that write: SQLite computes which rows and with which values, the store applies the list.
//!
//! A statement is compiled once into a [`WritePlan`]. Running it makes a [`Batch`], at most one change for each
//! key, which one call of `Store::commit` applies whole or not at all. A list that lost a race is computed again
//! for the rows that were lost, so a statement is atomic by construction and nobody sees a conflict.

mod batch;
mod before;
mod build;
mod change;
mod head;
mod insert;
mod merge;
mod plan;
mod refresh;
pub(crate) mod route;
mod taken;
mod target;
mod view;

pub(crate) use before::Before;
pub(crate) use build::{build, operand, placed};
pub(crate) use change::{ChangeKind, ChangePlan, UpdateConflict};
pub(crate) use head::{HeadColumn, NewHead};
pub(crate) use insert::{InsertPlan, OnConflict, Operand, Source, check_size};
pub(crate) use plan::{Given, Verb, WritePlan, refused};
pub(crate) use refresh::ViewRows;
pub(crate) use target::{Draft, Target, accept};
