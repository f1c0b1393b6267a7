//! Words that cannot be a name without quotes.

/// In order, so that they can be searched.
pub(crate) const KEYWORDS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "index",
    "initially",
    "intersect",
    "into",
    "leading",
    "limit",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "when",
    "where",
    "window",
    "with",
];

/// Whether a name needs quotes for being a word of the language.
pub(crate) fn is_keyword(name: &str) -> bool {
    KEYWORDS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_in_order() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("order") && !is_keyword("page_id"));
    }
}
