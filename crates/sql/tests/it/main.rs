//! SQL through the executor: against SQLite's own tables, against PostgreSQL's answers, and feature by feature. One
//! binary, for each would link SQLite again.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

mod accounts;
mod bank;
mod beside_postgresql;
mod blind;
mod bulk;
mod common;
mod compound;
mod concurrent;
mod counts;
mod crashes;
mod definitions;
mod dialect;
mod differential;
mod direct;
mod docs;
mod elements;
mod ends;
mod enums;
mod explain;
mod facts;
mod features;
mod fold;
mod forms;
mod functions;
mod garbage;
mod joins;
mod literals;
mod logic;
mod materialized;
mod merge;
mod migrations;
mod moments;
mod precedence;
mod routines;
mod rules;
mod sandbox;
mod schemas;
mod sequences;
mod servers;
mod statements;
mod system;
mod transactions;
mod updates;
mod values;
mod values_postgresql;
