//! What a condition says of columns: `c = k`, `c IN (k, ...)`, `c = d`. All else that it says is left out.

use std::collections::BTreeMap;

use postgres::oid;

use crate::canonical::of_datum;
use crate::node::{Node, Struct};
use crate::types::Types;
use crate::verdict::{GuardKind, Operand};

/// A column of a query: of the query itself, or of one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Column {
    /// How many queries further out.
    pub(super) up: usize,
    /// The number of its table in that query's list.
    pub(super) table: usize,
    /// Its own number there.
    pub(super) number: i32,
}

/// What a column is equal to, and as what it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) kind: GuardKind,
    pub(super) operands: Vec<Operand>,
}

/// What holds for each row that passes a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// The column is one of these values, and not NULL.
    Is(Column, Values),
    /// The two are equal, and not NULL.
    Same(Column, Column),
}

/// What is known of columns of one query.
pub(super) type Known = BTreeMap<(usize, i32), Values>;

/// Operators of `pg_catalog` that are equality, and of which types.
const EQUALITIES: &[(u32, Family)] = &[
    (94, Family::Integer),   // smallint
    (96, Family::Integer),   // integer
    (410, Family::Integer),  // bigint
    (532, Family::Integer),  // smallint = integer
    (533, Family::Integer),  // integer = smallint
    (15, Family::Integer),   // integer = bigint
    (416, Family::Integer),  // bigint = integer
    (1862, Family::Integer), // smallint = bigint
    (1868, Family::Integer), // bigint = smallint
    (98, Family::Text),      // text, and varchar as text
    (1054, Family::Char),    // char(n)
    (2972, Family::Uuid),
    (91, Family::Bool),
    (1093, Family::Date),
    (2060, Family::Timestamp),
    (1320, Family::Timestamptz),
    (1752, Family::Numeric),
    (1955, Family::Bytes),
    (3516, Family::Enum),
];

/// Types among which equality is one and the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Integer,
    Text,
    Char,
    Uuid,
    Bool,
    Date,
    Timestamp,
    Timestamptz,
    Numeric,
    Bytes,
    Enum,
}

/// Types whose values are compared as numbers, and as texts.
const INTEGERS: [u32; 3] = [oid::INT8, oid::INT2, oid::INT4];
const TEXTS: [u32; 2] = [oid::TEXT, oid::VARCHAR];

/// Reads conditions of one query, whose list of tables this is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) types: &'a Types,
    pub(super) tables: &'a [Node],
}

impl Reader<'_> {
    /// What a condition says.
    pub(super) fn facts(&self, condition: &Node) -> Vec<Fact> {
        let Some(node) = condition.as_struct() else { return Vec::new() };
        match node.label.as_str() {
            "BOOLEXPR" => self.of_logic(node),
            "OPEXPR" => self.of_comparison(node).into_iter().collect(),
            "SCALARARRAYOPEXPR" => self.of_list(node).into_iter().collect(),
            "VAR" => self.truth(condition, "t").into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn of_logic(&self, node: &Struct) -> Vec<Fact> {
        let arms = node.field("args").items();
        match node.field("boolop").word() {
            Some("and") => arms.iter().flat_map(|arm| self.facts(arm)).collect(),
            Some("not") => arms.first().and_then(|arm| self.truth(arm, "f")).into_iter().collect(),
            Some("or") => self.of_arms(arms).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// `c = 1 OR c = 2`, where every arm compares the same column.
    fn of_arms(&self, arms: &[Node]) -> Option<Fact> {
        let mut all: Option<(Column, Values)> = None;
        for arm in arms {
            let facts = self.facts(arm);
            let of_column = |wanted: Option<Column>| {
                facts.iter().find_map(|fact| match fact {
                    Fact::Is(column, values) if wanted.is_none_or(|wanted| wanted == *column) => {
                        Some((*column, values.clone()))
                    }
                    _ => None,
                })
            };
            let (column, values) = of_column(all.as_ref().map(|(column, _)| *column))?;
            match &mut all {
                None => all = Some((column, values)),
                Some((_, known)) if known.kind == values.kind => known.operands.extend(values.operands),
                Some(_) => return None,
            }
        }
        all.map(|(column, values)| Fact::Is(column, values))
    }

    /// A column that is a condition by itself.
    fn truth(&self, node: &Node, value: &str) -> Option<Fact> {
        let (column, found) = self.column(node)?;
        let operands = vec![Operand::Literal(value.to_owned())];
        (found.number("vartype") == Some(oid::BOOL))
            .then_some(Fact::Is(column, Values { kind: GuardKind::Bool, operands }))
    }

    /// `c = k`, `k = c` and `c = d`.
    fn of_comparison(&self, node: &Struct) -> Option<Fact> {
        let family = self.equality(node)?;
        let [left, right] = node.field("args").items() else { return None };
        match (self.column(left), self.column(right)) {
            (Some((left, left_found)), Some((right, right_found))) => {
                // That char(n) of several lengths are equal does not say that the stream writes them alike.
                let plain = family != Family::Char
                    && kind(family, left_found).is_some()
                    && kind(family, right_found).is_some();
                plain.then_some(Fact::Same(left, right))
            }
            (Some((column, found)), None) => self.is(column, family, found, std::slice::from_ref(right)),
            (None, Some((column, found))) => self.is(column, family, found, std::slice::from_ref(left)),
            (None, None) => None,
        }
    }

    /// `c IN (k, ...)` and `c = ANY ($1)`
    fn of_list(&self, node: &Struct) -> Option<Fact> {
        let family = self.equality(node).filter(|_| node.is("useOr", "true"))?;
        let [column, list] = node.field("args").items() else { return None };
        let (column, found) = self.column(column)?;
        if let Some(list) = list.labelled("ARRAYEXPR").or_else(|| list.labelled("ARRAY")) {
            let plain = list.is("multidims", "false");
            return plain.then(|| self.is(column, family, found, list.field("elements").items()))?;
        }
        let kind = kind(family, found)?;
        let array = relabelled(list).labelled("PARAM").filter(|array| array.is("paramkind", "0"))?;
        let elements = oid::element_of(array.number("paramtype")?)?;
        if !is_of(elements, family, found.number("vartype")?) {
            return None;
        }
        let operands = vec![Operand::Elements(parameter(array)?)];
        Some(Fact::Is(column, Values { kind, operands }))
    }

    /// The family of an equality operator, if all its texts are compared by their bytes.
    fn equality(&self, node: &Struct) -> Option<Family> {
        let operator: u32 = node.number("opno")?;
        let (_, family) = EQUALITIES.iter().find(|(known, _)| *known == operator)?;
        let loose = node.number("inputcollid").is_none_or(|oid| self.types.loose_collations.contains(&oid));
        (!loose).then_some(*family)
    }

    fn is(&self, column: Column, family: Family, found: &Struct, values: &[Node]) -> Option<Fact> {
        let kind = kind(family, found)?;
        let ty = found.number("vartype")?;
        let mut operands = Vec::new();
        for value in values {
            let value = relabelled(without_cast(value, family));
            self.add_operand(value.as_struct()?, kind, family, ty, &mut operands)?;
        }
        Some(Fact::Is(column, Values { kind, operands }))
    }

    /// Adds a literal or a parameter; NULL adds none, for nothing is equal to it. `None`: it is something else.
    fn add_operand(
        &self,
        node: &Struct,
        kind: GuardKind,
        family: Family,
        column_type: u32,
        operands: &mut Vec<Operand>,
    ) -> Option<()> {
        let ty_field = match node.label.as_str() {
            "CONST" => "consttype",
            "PARAM" if node.is("paramkind", "0") => "paramtype",
            _ => return None,
        };
        let ty: u32 = node.number(ty_field)?;
        if !is_of(ty, family, column_type) {
            return None;
        }
        if node.label == "PARAM" {
            operands.push(Operand::Parameter(parameter(node)?));
        } else if !node.is("constisnull", "true") {
            let Node::Datum(bytes) = node.field("constvalue") else { return None };
            let kind = kind.of_value(ty);
            let value = of_datum(kind, bytes, |label| self.types.labels.get(&label).cloned())?;
            operands.push(Operand::Literal(value));
        }
        Some(())
    }

    /// The column that an expression is, and its node. A column of a join is the one that it shows.
    pub(super) fn column<'n>(&'n self, node: &'n Node) -> Option<(Column, &'n Struct)> {
        let found = relabelled(node).labelled("VAR")?;
        let column = Column {
            up: found.number("varlevelsup")?,
            table: found.number("varno")?,
            number: found.number::<i32>("varattno").filter(|number| *number > 0)?,
        };
        if column.up > 0 {
            return Some((column, found));
        }
        let table = self.tables.get(column.table.checked_sub(1)?)?.as_struct()?;
        if table.is("rtekind", "2") {
            let shown = usize::try_from(column.number - 1).ok()?;
            return self.column(table.field("joinaliasvars").items().get(shown)?);
        }
        Some((column, found))
    }
}

/// An expression without casts that change nothing but the type's name. Only varchar as text is compared so.
fn relabelled(node: &Node) -> &Node {
    match node.labelled("RELABELTYPE") {
        Some(cast) if cast.number("resulttype").is_some_and(|ty| TEXTS.contains(&ty)) => cast.field("arg"),
        _ => node,
    }
}

/// Casts among integers, which keep the number or fail, and from those to `numeric`.
const INTEGER_CASTS: [u32; 6] = [313, 314, 480, 481, 714, 754];
const NUMERIC_CASTS: [u32; 3] = [1740, 1781, 1782];

/// A value without a cast from an integer type that keeps the number.
fn without_cast(node: &Node, family: Family) -> &Node {
    let casts = match family {
        Family::Integer => &INTEGER_CASTS[..],
        Family::Numeric => &NUMERIC_CASTS,
        _ => return node,
    };
    let cast = node.labelled("FUNCEXPR");
    let cast = cast.filter(|cast| cast.number("funcid").is_some_and(|cast| casts.contains(&cast)));
    cast.and_then(|cast| cast.field("args").items().first()).unwrap_or(node)
}

/// How the values of a column are written, if it is compared as what it is.
fn kind(family: Family, column: &Struct) -> Option<GuardKind> {
    let ty: u32 = column.number("vartype")?;
    match family {
        Family::Integer if INTEGERS.contains(&ty) => Some(GuardKind::Integer),
        Family::Text if TEXTS.contains(&ty) => Some(GuardKind::Text),
        // The length of char(n) stands behind four bytes.
        Family::Char if ty == oid::BPCHAR => {
            Some(GuardKind::Char(column.number::<usize>("vartypmod")?.checked_sub(4)?))
        }
        Family::Uuid if ty == oid::UUID => Some(GuardKind::Uuid),
        Family::Bool if ty == oid::BOOL => Some(GuardKind::Bool),
        Family::Date if ty == oid::DATE => Some(GuardKind::Date),
        Family::Timestamp if ty == oid::TIMESTAMP => Some(GuardKind::Timestamp),
        Family::Timestamptz if ty == oid::TIMESTAMPTZ => Some(GuardKind::Timestamptz),
        Family::Numeric if ty == oid::NUMERIC => Some(GuardKind::Numeric),
        Family::Bytes if ty == oid::BYTEA => Some(GuardKind::Bytes),
        Family::Enum => Some(GuardKind::Enum),
        _ => None,
    }
}

/// Whether values of a type are compared in this family with a column of that type.
fn is_of(ty: u32, family: Family, column_type: u32) -> bool {
    match family {
        Family::Integer => INTEGERS.contains(&ty),
        Family::Text => TEXTS.contains(&ty),
        Family::Numeric => ty == oid::NUMERIC || INTEGERS.contains(&ty),
        _ => ty == column_type,
    }
}

/// A parameter's number, from 0.
fn parameter(node: &Struct) -> Option<usize> {
    node.number::<usize>("paramid")?.checked_sub(1)
}

/// Whether values written so are those of a column.
pub(super) fn fits(written: GuardKind, column: &Struct) -> bool {
    let family = match written {
        GuardKind::Integer => Family::Integer,
        GuardKind::Text => Family::Text,
        GuardKind::Char(_) => Family::Char,
        GuardKind::Uuid => Family::Uuid,
        GuardKind::Bool => Family::Bool,
        GuardKind::Date => Family::Date,
        GuardKind::Timestamp => Family::Timestamp,
        GuardKind::Timestamptz => Family::Timestamptz,
        GuardKind::Numeric => Family::Numeric,
        GuardKind::Bytes => Family::Bytes,
        GuardKind::Enum => Family::Enum,
    };
    kind(family, column) == Some(written)
}
