//! The last words to a client of PostgreSQL's protocol.

use postgres::backend::{Report, Severity, report};

/// Appends an error that ends the connection.
pub(crate) fn fatal(state: &str, message: &str, out: &mut Vec<u8>) {
    let severity = Severity::Fatal;
    report(
        &Report {
            severity,
            state,
            message,
            detail: None,
            hint: None,
            position: None,
            context: None,
            table: None,
            column: None,
            constraint: None,
            routine: None,
        },
        out,
    );
}
