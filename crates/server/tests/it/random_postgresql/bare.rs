//! Expressions with as few brackets as PostgreSQL needs: who binds tighter decides what they mean.

use fastrand::Rng;

/// PostgreSQL's classes of operators, the loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
    Is,
    Compare,
    Like,
    Other,
    Sum,
    Product,
    Sign,
    Whole,
}

struct Expression {
    text: String,
    binding: Binding,
}

impl Expression {
    fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), binding: Binding::Whole }
    }

    /// Its text where an operand binds so tightly at least.
    fn from(self, least: Binding) -> String {
        if self.binding < least { format!("({})", self.text) } else { self.text }
    }

    /// Its text where an operand binds tighter.
    fn above(self, binding: Binding) -> String {
        if self.binding <= binding { format!("({})", self.text) } else { self.text }
    }
}

/// `left operator right`; operators of one class group from the left, or not at all.
fn infix(left: Expression, operator: &str, right: Expression, binding: Binding) -> Expression {
    let groups = !matches!(binding, Binding::Compare | Binding::Like | Binding::Is);
    let left = if groups { left.from(binding) } else { left.above(binding) };
    Expression { text: format!("{left} {operator} {}", right.above(binding)), binding }
}

/// Makes them.
pub(super) struct Bare<'r> {
    pub(super) rng: &'r mut Rng,
}

impl Bare<'_> {
    /// Of any kind.
    pub(super) fn expression(&mut self) -> String {
        let depth = self.rng.u32(1..5);
        match self.rng.u32(0..4) {
            0 => self.number(depth).text,
            1 => self.word(depth).text,
            _ => self.truth(depth).text,
        }
    }

    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.rng.usize(0..from.len())]
    }

    fn number(&mut self, depth: u32) -> Expression {
        if depth == 0 {
            return Expression::whole(self.pick(&["d.i", "d.id", "1", "2", "3", "7", "10"]));
        }
        match self.rng.u32(0..8) {
            0 => self.number(0),
            1 => Expression {
                text: format!("- {}", self.number(depth - 1).from(Binding::Sign)),
                binding: Binding::Sign,
            },
            2 => Expression {
                text: format!("~ {}", self.number(depth - 1).above(Binding::Other)),
                binding: Binding::Other,
            },
            sign => {
                let (left, right) = (self.number(depth - 1), self.number(depth - 1));
                let (operator, binding) = match sign {
                    3 => (self.pick(&["*", "%"]), Binding::Product),
                    4 | 5 => (self.pick(&["+", "-"]), Binding::Sum),
                    _ => (self.pick(&["&", "|"]), Binding::Other),
                };
                infix(left, operator, right, binding)
            }
        }
    }

    fn word(&mut self, depth: u32) -> Expression {
        if depth == 0 {
            return Expression::whole(self.pick(&["d.s", "'a'::text", "'7'::text", "upper('b')"]));
        }
        let depth = depth - 1;
        let (left, right) = match self.rng.u32(0..5) {
            0 => (self.word(depth), self.number(depth)),
            1 => (self.number(depth), self.word(depth)),
            2 => (self.word(depth), self.truth(depth)),
            3 => {
                let member = infix(Expression::whole("d.j"), "->>", Expression::whole("'a'"), Binding::Other);
                (member, self.word(depth))
            }
            _ => (self.word(depth), self.word(depth)),
        };
        infix(left, "||", right, Binding::Other)
    }

    fn truth(&mut self, depth: u32) -> Expression {
        if depth == 0 {
            return Expression::whole(self.pick(&["d.b", "true", "false"]));
        }
        let depth = depth - 1;
        match self.rng.u32(0..12) {
            0 => infix(self.truth(depth), "AND", self.truth(depth), Binding::And),
            1 => infix(self.truth(depth), "OR", self.truth(depth), Binding::Or),
            2 => Expression {
                text: format!("NOT {}", self.truth(depth).from(Binding::Not)),
                binding: Binding::Not,
            },
            3 => {
                let test = self.pick(&["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE"]);
                let text = format!("{} {test}", self.truth(depth).above(Binding::Is));
                Expression { text, binding: Binding::Is }
            }
            4 => {
                let operator = self.pick(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                infix(self.truth(depth), operator, self.truth(depth), Binding::Is)
            }
            5 => infix(self.word(depth), "LIKE", self.word(depth), Binding::Like),
            6 => infix(self.word(depth), "~", Expression::whole("'a'"), Binding::Other),
            7 => self.between(depth),
            8 => {
                let list = self.pick(&["IN", "NOT IN"]);
                let items = format!("({}, {})", self.number(depth).text, self.number(0).text);
                infix(self.number(depth), list, Expression::whole(items), Binding::Like)
            }
            9 => infix(self.truth(depth), "=", self.truth(depth), Binding::Compare),
            _ => {
                let operator = self.pick(&["<", "<=", "=", "<>", ">"]);
                infix(self.number(depth), operator, self.number(depth), Binding::Compare)
            }
        }
    }

    fn between(&mut self, depth: u32) -> Expression {
        let bounds = format!(
            "{} AND {}",
            self.number(depth).above(Binding::Like),
            self.number(depth).above(Binding::Like)
        );
        infix(self.number(depth), "BETWEEN", Expression::whole(bounds), Binding::Like)
    }
}
