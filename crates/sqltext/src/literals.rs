//! Literals as parameters: texts that differ in these only are one statement.
//!
//! Clients that write values into the text send another text each time. [`Literals`] takes the values out: what is left
//! is the [`Literals::key`] of all such texts. Which of them a statement can take as parameters depends on where they
//! stand ([`Literals::free`]): what is compared, or assigned, is free; what gives a column its name or type, or says
//! how to sort or to compute, is part of the statement.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::Write;

use sqlparser::ast::{
    Assignment, BinaryOperator, Expr, FromTable, Insert, JoinConstraint, JoinOperator, LimitClause, Query,
    SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, UnaryOperator, UpdateTableFromKind, Value,
    ValueWithSpan,
};

use crate::parse::{Tree, token_at};
use crate::token::{Kind, Token, text_of};

/// Digits that a float keeps.
const FLOAT_DIGITS: usize = 15;

/// A value that is written in a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant<'a> {
    /// A whole number of 64 bits, with its sign.
    Integer(i64),
    /// A number that a float keeps exactly as it was written.
    Real(f64),
    /// A text.
    Text(Cow<'a, str>),
}

impl Constant<'_> {
    /// A letter for what the value says of its own type: the statement may mean another operator by it.
    pub fn kind(&self) -> char {
        match self {
            Self::Integer(small) if i32::try_from(*small).is_ok() => 'i',
            Self::Integer(_) => 'l',
            Self::Real(_) => 'r',
            Self::Text(_) => 't',
        }
    }
}

/// A statement's text. Its literals are looked for once, by the first who asks for them: the figures of statements and
/// the cache of plans both know a text by what it is without them.
#[derive(Debug)]
pub struct StatementText<'a> {
    /// As the client wrote it.
    pub sql: &'a str,
    found: OnceCell<Option<(Literals<'a>, String)>>,
}

impl<'a> StatementText<'a> {
    /// A text of which nothing is known.
    pub fn new(sql: &'a str) -> Self {
        Self { sql, found: OnceCell::new() }
    }

    /// See [`Literals::of`], with their [`Literals::key`].
    pub fn literals(&self) -> Option<(&Literals<'a>, &str)> {
        let found = self.found.get_or_init(|| {
            let literals = Literals::of(self.sql)?;
            let key = literals.key();
            Some((literals, key))
        });
        found.as_ref().map(|(literals, key)| (literals, key.as_str()))
    }
}

/// One of them and where it stands.
#[derive(Debug)]
struct Literal<'a> {
    /// The token of its sign, or its own.
    first: usize,
    last: usize,
    value: Constant<'a>,
}

/// The literals of a text.
#[derive(Debug)]
pub struct Literals<'a> {
    sql: &'a str,
    tokens: Vec<Token<'a>>,
    all: Vec<Literal<'a>>,
}

impl<'a> Literals<'a> {
    /// Those of a statement; `None` where none of them can be free: it has none, or parameters of its own, or defines
    /// something.
    pub fn of(sql: &'a str) -> Option<Self> {
        // A definition is recognised by its first letter, and costs no more than that.
        let first = sql.bytes().find(|byte| !byte.is_ascii_whitespace())?;
        if matches!(first.to_ascii_lowercase(), b'a' | b'b' | b'c' | b'e' | b't') {
            return None;
        }
        Self::among(sql, crate::token::tokens(sql))
    }

    fn among(sql: &'a str, tokens: Vec<Token<'a>>) -> Option<Self> {
        let mut all: Vec<Literal<'a>> = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let first = if token.kind == Kind::Number && signed(&tokens, at) { at - 1 } else { at };
            let value = match token.kind {
                Kind::Parameter => return None,
                Kind::Text => Some(Constant::Text(plain_text(token)?)),
                Kind::Foreign => Some(Constant::Text(Cow::Owned(text_of(token)?))),
                Kind::Number => number(sql.get(tokens[first].start..token.end())?),
                _ => None,
            };
            all.extend(value.map(|value| Literal { first, last: at, value }));
        }
        (!all.is_empty()).then_some(Self { sql, tokens, all })
    }

    /// The tokens of the text.
    pub fn tokens(&self) -> &[Token<'a>] {
        &self.tokens
    }

    /// Whether a number ends with zeros behind its point, which a float does not keep.
    pub fn has_scale(&self) -> bool {
        let numbers = self.all.iter().filter(|literal| matches!(literal.value, Constant::Real(_)));
        numbers.into_iter().any(|literal| self.tokens[literal.last].text.ends_with('0'))
    }

    /// The text with a mark in the place of each value, which says its kind.
    pub fn key(&self) -> String {
        self.written(|_, literal, out| {
            // What is counted as one statement keeps its signs.
            out.push_str(if literal.first < literal.last { "-?" } else { "?" });
            out.push(literal.value.kind());
        })
    }

    /// For each literal whether the statement may take it as a parameter.
    pub fn free(&self, tree: &Tree<'_>) -> Vec<bool> {
        let mut walk = Walk { literals: &self.all, free: vec![false; self.all.len()] };
        walk.statement(&tree.statement);
        for update in tree.tail.conflicts.iter().filter_map(|conflict| conflict.update.as_ref()) {
            walk.assignments(&update.assignments);
            walk.conditions(update.selection.as_ref());
        }
        walk.free
    }

    /// The values of those that are free.
    pub fn values<'s>(&'s self, free: &'s [bool]) -> impl Iterator<Item = &'s Constant<'a>> {
        self.all.iter().zip(free).filter(|(_, free)| **free).map(|(literal, _)| &literal.value)
    }

    /// The text with numbered parameters in the place of those that are free.
    pub fn opened(&self, free: &[bool]) -> String {
        let mut number = 0;
        self.written(|at, literal, out| {
            if free.get(at) == Some(&true) {
                number += 1;
                let _ = write!(out, "?{number}");
            } else {
                out.push_str(&self.sql[self.tokens[literal.first].start..self.tokens[literal.last].end()]);
            }
        })
    }

    /// The text with something else in the place of each literal.
    fn written<'s>(&'s self, mut each: impl FnMut(usize, &'s Literal<'a>, &mut String)) -> String {
        let mut out = String::with_capacity(self.sql.len().min(16 << 10));
        let mut copied = 0;
        for (at, literal) in self.all.iter().enumerate() {
            out.push_str(&self.sql[copied..self.tokens[literal.first].start]);
            each(at, literal, &mut out);
            copied = self.tokens[literal.last].end();
        }
        out.push_str(&self.sql[copied..]);
        out
    }
}

/// The values of a text's literals, as those of an indexed expression.
pub fn constants(sql: &str) -> Vec<Constant<'static>> {
    let owned = |literal: Literal<'_>| match literal.value {
        Constant::Integer(integer) => Constant::Integer(integer),
        Constant::Real(real) => Constant::Real(real),
        Constant::Text(text) => Constant::Text(Cow::Owned(text.into_owned())),
    };
    let literals = Literals::among(sql, crate::token::tokens(sql));
    literals.map(|literals| literals.all.into_iter().map(owned).collect()).unwrap_or_default()
}

/// Whether a minus stands right before this number that is no operator: behind an operator, or a word that needs an
/// operand.
fn signed(tokens: &[Token<'_>], at: usize) -> bool {
    let [.., before, sign] = &tokens[..at] else { return false };
    let opens = match before.kind {
        Kind::Sign => !matches!(before.text, ")" | "]"),
        _ => before.is_any(&["AND", "OR", "BETWEEN", "NOT", "WHEN"]),
    };
    sign.is_sign("-") && sign.end() == tokens[at].start && opens
}

/// A closed literal in plain quotes.
fn plain_text<'a>(token: &Token<'a>) -> Option<Cow<'a, str>> {
    let inner = token.text.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(if inner.contains('\'') { Cow::Owned(text_of(token)?) } else { Cow::Borrowed(inner) })
}

/// A decimal number; `None`: it has more digits than its kind keeps, or is spelled in another way.
fn number(text: &str) -> Option<Constant<'static>> {
    if let Ok(integer) = text.parse() {
        return Some(Constant::Integer(integer));
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let real = text.parse::<f64>().ok().filter(|_| plain && digits <= FLOAT_DIGITS)?;
    Some(Constant::Real(real))
}

/// Finds the literals that are free.
struct Walk<'l, 'a> {
    literals: &'l [Literal<'a>],
    free: Vec<bool>,
}

impl Walk<'_, '_> {
    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) => self.query(query),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => {
                self.table(&update.table);
                self.assignments(&update.assignments);
                if let Some(UpdateTableFromKind::AfterSet(tables) | UpdateTableFromKind::BeforeSet(tables)) =
                    &update.from
                {
                    self.tables(tables);
                }
                self.conditions(update.selection.as_ref());
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
                self.tables(tables);
                self.conditions(delete.selection.as_ref());
            }
            _ => {}
        }
    }

    fn insert(&mut self, insert: &Insert) {
        if let Some(source) = &insert.source {
            match &*source.body {
                SetExpr::Values(values) => {
                    for row in &values.rows {
                        self.operands(&row.content);
                    }
                }
                _ => self.query(source),
            }
        }
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            self.operand(&assignment.value);
        }
    }

    fn query(&mut self, query: &Query) {
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.query(&named.query);
        }
        self.body(&query.body);
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                self.count(limit.as_ref());
                self.count(offset.as_ref().map(|offset| &offset.value));
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.count(Some(offset));
                self.count(Some(limit));
            }
            None => {}
        }
        self.count(query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref()));
    }

    /// How many rows are left out or shown.
    fn count(&mut self, count: Option<&Expr>) {
        if let Some(at) = count.and_then(|count| self.literal(count)) {
            self.free[at] = self.is_integer(at);
        }
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => {
                self.shown(&select.projection);
                self.tables(&select.from);
                self.conditions(select.selection.as_ref());
                self.conditions(select.having.as_ref());
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                self.statement(statement);
            }
            _ => {}
        }
    }

    /// What is shown is part of the statement, apart from the queries in it.
    fn shown(&mut self, items: &[SelectItem]) {
        for item in items {
            if let SelectItem::UnnamedExpr(shown) | SelectItem::ExprWithAlias { expr: shown, .. } = item
                && let Expr::Subquery(query) | Expr::Exists { subquery: query, .. } = bare(shown)
            {
                self.query(query);
            }
        }
    }

    fn tables(&mut self, tables: &[TableWithJoins]) {
        for table in tables {
            self.table(table);
        }
    }

    fn table(&mut self, table: &TableWithJoins) {
        self.factor(&table.relation);
        for join in &table.joins {
            self.factor(&join.relation);
            if let JoinOperator::Join(on)
            | JoinOperator::Inner(on)
            | JoinOperator::Left(on)
            | JoinOperator::LeftOuter(on)
            | JoinOperator::Right(on)
            | JoinOperator::RightOuter(on)
            | JoinOperator::FullOuter(on) = &join.join_operator
                && let JoinConstraint::On(condition) = on
            {
                self.condition(condition);
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.table(table_with_joins),
            _ => {}
        }
    }

    fn conditions(&mut self, condition: Option<&Expr>) {
        if let Some(condition) = condition {
            self.condition(condition);
        }
    }

    fn condition(&mut self, condition: &Expr) {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.condition(left);
                self.condition(right);
            }
            Expr::BinaryOp { left, op, right } if compares(op) => self.beside(left, &[&**right]),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } | Expr::Nested(expr) => self.condition(expr),
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => match bare(right) {
                Expr::Array(array) => self.beside(left, &array.elem.iter().collect::<Vec<_>>()),
                // A column says what its elements are.
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.operand(left),
                _ => {}
            },
            Expr::BinaryOp { left, op: BinaryOperator::AtArrow | BinaryOperator::PGOverlap, right }
                if is_column(left) =>
            {
                match bare(right) {
                    Expr::Array(array) => self.operands(&array.elem),
                    other => self.operand(other),
                }
            }
            Expr::InList { expr, list, .. } => self.beside(expr, &list.iter().collect::<Vec<_>>()),
            Expr::Between { expr, low, high, .. } => self.beside(expr, &[&**low, &**high]),
            Expr::InSubquery { subquery, .. } | Expr::Exists { subquery, .. } => self.query(subquery),
            _ => {}
        }
    }

    /// Operands beside which others stand: of two literals the statement says what they are compared as.
    fn beside(&mut self, one: &Expr, others: &[&Expr]) {
        if self.literal(one).is_some() && others.iter().any(|other| self.literal(other).is_some()) {
            return;
        }
        self.operand(one);
        for other in others {
            self.operand(other);
        }
    }

    /// A value, a row of values, a query, or arithmetic of whole numbers: beside another number, one that is none
    /// decides what is computed.
    fn operand(&mut self, operand: &Expr) {
        if let Some(at) = self.literal(operand) {
            self.free[at] = true;
            return;
        }
        match operand {
            Expr::Nested(inner) => self.operand(inner),
            Expr::Tuple(parts) => self.operands(parts),
            Expr::Subquery(query) => self.query(query),
            Expr::BinaryOp { left, op, right } if computes(op) => {
                let found = [self.literal(left), self.literal(right)];
                let both = found.iter().flatten().count() == 2;
                let whole = found.iter().flatten().all(|&at| self.is_integer(at));
                // A division by zero that is written so is an error.
                let divisor =
                    found[1].filter(|_| matches!(op, BinaryOperator::Divide | BinaryOperator::Modulo));
                for (side, literal) in [left, right].into_iter().zip(found) {
                    match literal {
                        Some(at) => {
                            let free = self.is_integer(at) && (whole || !both);
                            self.free[at] = free && divisor != Some(at);
                        }
                        None => self.operand(side),
                    }
                }
            }
            _ => {}
        }
    }

    fn operands(&mut self, operands: &[Expr]) {
        for operand in operands {
            self.operand(operand);
        }
    }

    fn is_integer(&self, at: usize) -> bool {
        matches!(self.literals[at].value, Constant::Integer(_))
    }

    /// The literal that an expression is, with its sign.
    fn literal(&self, expression: &Expr) -> Option<usize> {
        let (value, sign) = match expression {
            Expr::Value(value) => (value, false),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
                Expr::Value(value) => (value, true),
                _ => return None,
            },
            _ => return None,
        };
        let ValueWithSpan { value: Value::Number(..) | Value::SingleQuotedString(_), span } = value else {
            return None;
        };
        let token = token_at(span.start)?;
        let at = self.literals.binary_search_by_key(&token, |literal| literal.last).ok()?;
        let literal = &self.literals[at];
        (sign == (literal.first < literal.last)).then_some(at)
    }
}

/// An expression without the parentheses around it.
pub fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

fn is_column(expression: &Expr) -> bool {
    matches!(bare(expression), Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

fn compares(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | Gt | LtEq | GtEq)
}

fn computes(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(operator, Plus | Minus | Multiply | Divide | Modulo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn opened(sql: &str) -> Option<(String, Vec<Constant<'_>>)> {
        // The values live as long as the text.
        let literals = Box::leak(Box::new(Literals::of(sql)?));
        let free = literals.free(&parse(sql).unwrap());
        Some((literals.opened(&free), literals.values(&free).cloned().collect()))
    }

    #[test]
    fn what_is_compared_or_assigned_is_free() {
        for (sql, text) in [
            ("SELECT a FROM t WHERE b = 'it''s'", "SELECT a FROM t WHERE b = ?1"),
            ("DELETE FROM t WHERE a=17 AND (b = '')", "DELETE FROM t WHERE a=?1 AND (b = ?2)"),
            (
                "SELECT 1, 'x' FROM t WHERE a IN (1, -2) ORDER BY 2",
                "SELECT 1, 'x' FROM t WHERE a IN (?1, ?2) ORDER BY 2",
            ),
            (
                "UPDATE t SET n = n + 5, s = E'a\\n' WHERE k = 1.5",
                "UPDATE t SET n = n + ?1, s = ?2 WHERE k = ?3",
            ),
            ("SELECT a FROM t WHERE b BETWEEN -1 AND 5-1", "SELECT a FROM t WHERE b BETWEEN ?1 AND ?2-?3"),
            ("SELECT a FROM t WHERE b = 5 - 1.5", "SELECT a FROM t WHERE b = 5 - 1.5"),
            (
                "SELECT EXISTS (SELECT 1 FROM t WHERE a = 2), (SELECT 3 FROM u WHERE b = 4) AS c, 5",
                "SELECT EXISTS (SELECT 1 FROM t WHERE a = ?1), (SELECT 3 FROM u WHERE b = ?2) AS c, 5",
            ),
            ("SELECT a FROM t WHERE a - 1 = 2", "SELECT a FROM t WHERE a - ?1 = ?2"),
            ("SELECT a FROM t WHERE (a, b) = (1, 'x')", "SELECT a FROM t WHERE (a, b) = (?1, ?2)"),
            ("INSERT INTO t VALUES (1, now(), 'x')", "INSERT INTO t VALUES (?1, now(), ?2)"),
            (
                "SELECT a FROM t JOIN (SELECT b FROM u WHERE c = 1) s ON t.a = 2 HAVING count(*) > 3 LIMIT 4",
                "SELECT a FROM t JOIN (SELECT b FROM u WHERE c = ?1) s ON t.a = ?2 HAVING count(*) > ?3 LIMIT ?4",
            ),
            ("SELECT a FROM t LIMIT 10 OFFSET 20", "SELECT a FROM t LIMIT ?1 OFFSET ?2"),
            ("SELECT a FROM t FETCH FIRST 5 ROWS ONLY", "SELECT a FROM t FETCH FIRST ?1 ROWS ONLY"),
            ("SELECT a FROM t WHERE b = ANY (ARRAY[1, 2])", "SELECT a FROM t WHERE b = ANY (ARRAY[?1, ?2])"),
            (
                "SELECT a FROM t WHERE 'x' = ANY (t.b) AND 1 = ANY ('{1}')",
                "SELECT a FROM t WHERE ?1 = ANY (t.b) AND 1 = ANY ('{1}')",
            ),
            (
                "DELETE FROM t WHERE b && ARRAY['x', 'y'] OR t.b @> '{z}' OR '{a}' @> b",
                "DELETE FROM t WHERE b && ARRAY[?1, ?2] OR t.b @> ?3 OR '{a}' @> b",
            ),
            ("SELECT a FROM t WHERE b LIKE 'x%'", "SELECT a FROM t WHERE b LIKE 'x%'"),
            ("SELECT a FROM t WHERE 1 = 1 AND a = 2", "SELECT a FROM t WHERE 1 = 1 AND a = ?1"),
            ("SELECT a FROM t WHERE d ->> 'x' = 'y'", "SELECT a FROM t WHERE d ->> 'x' = ?1"),
            (
                "SELECT a FROM t WHERE at > now() - interval '1 day'",
                "SELECT a FROM t WHERE at > now() - interval '1 day'",
            ),
            (
                "SELECT a FROM t WHERE x = '1'::int AND f(2) = 3",
                "SELECT a FROM t WHERE x = '1'::int AND f(2) = ?1",
            ),
            (
                "INSERT INTO t SELECT a, 1 FROM u WHERE b = 2 ON CONFLICT (k) DO UPDATE SET n = 3 WHERE t.n < 4",
                "INSERT INTO t SELECT a, 1 FROM u WHERE b = ?1 ON CONFLICT (k) DO UPDATE SET n = ?2 WHERE t.n < ?3",
            ),
            (
                "SELECT a FROM t WHERE n = 12345678901234567890.5",
                "SELECT a FROM t WHERE n = 12345678901234567890.5",
            ),
        ] {
            match opened(sql) {
                Some((found, _)) => assert_eq!(found, text, "{sql}"),
                None => assert_eq!(sql, text),
            }
        }
        for sql in [
            "",
            "SELECT a FROM t",
            "CREATE TABLE t (a INT DEFAULT 1)",
            "SELECT a FROM t WHERE b = $1 AND c = 1",
            "SELECT a FROM t WHERE b = 'open",
        ] {
            assert!(Literals::of(sql).is_none(), "{sql}");
        }
    }

    #[test]
    fn values_are_what_was_written() {
        let (_, values) = opened("SELECT 1 FROM t WHERE a IN (-5, 3000000000, 'x''y', $$z$$, 2.50)").unwrap();
        let text = |text: &str| Constant::Text(Cow::Owned(text.to_owned()));
        let expected = [
            Constant::Integer(-5),
            Constant::Integer(3_000_000_000),
            text("x'y"),
            text("z"),
            Constant::Real(2.5),
        ];
        assert_eq!(values, expected);
        assert_eq!(values.iter().map(Constant::kind).collect::<String>(), "ilttr");
    }

    #[test]
    fn texts_of_one_statement_have_one_key() {
        let key = |sql: &str| Literals::of(sql).unwrap().key();
        assert_eq!(key("DELETE FROM t WHERE a = 1"), key("DELETE FROM t WHERE a = 7"));
        assert_ne!(key("DELETE FROM t WHERE a = 1"), key("DELETE FROM t WHERE a = '1'"));
        assert_ne!(key("DELETE FROM t WHERE a = 1"), key("DELETE FROM t WHERE a = 1.5"));
        assert_ne!(key("DELETE FROM t WHERE a = b -1"), key("DELETE FROM t WHERE a = b 1"));
    }
}
