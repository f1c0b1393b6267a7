//! What the nodes of a tree use: relations, functions, operators, types, collations, settings. A node that is not
//! known here is refused.

use std::collections::BTreeSet;

use crate::canonical::text_of_datum;
use crate::node::{Node, Struct};
use crate::verdict::Refusal;

/// Nodes of which the fields below say everything that counts.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "ALIAS", "RANGETBLENTRY", "RTE", "RTEPERMISSIONINFO", "FROMEXPR", "JOINEXPR", "RANGETBLREF", "TARGETENTRY",
    "RANGETBLFUNCTION", "COMMONTABLEEXPR", "SETOPERATIONSTMT", "SORTGROUPCLAUSE", "GROUPINGSET", "WINDOWCLAUSE",
    "VAR", "CONST", "PARAM", "OPEXPR", "DISTINCTEXPR", "NULLIFEXPR", "SCALARARRAYOPEXPR", "FUNCEXPR", "BOOLEXPR",
    "SUBLINK", "FIELDSELECT", "RELABELTYPE", "COERCEVIAIO", "ARRAYCOERCEEXPR", "COLLATE", "COLLATEEXPR", "CASE",
    "CASEEXPR", "WHEN", "CASEWHEN", "CASETESTEXPR", "ARRAY", "ARRAYEXPR", "ROW", "ROWEXPR", "ROWCOMPARE",
    "ROWCOMPAREEXPR", "COALESCE", "COALESCEEXPR", "MINMAX", "MINMAXEXPR", "NULLTEST", "BOOLEANTEST", "AGGREF",
    "GROUPINGFUNC", "WINDOWFUNC", "SUBSCRIPTINGREF", "NAMEDARGEXPR", "SQLVALUEFUNCTION", "QUERY",
];

/// Nodes that are never kept, and why.
const REFUSED: &[(&str, &str)] = &[
    ("ROWMARKCLAUSE", "it locks rows (FOR UPDATE, FOR SHARE)"),
    ("TABLESAMPLECLAUSE", "TABLESAMPLE reads other rows each time"),
    ("NEXTVALUEEXPR", "it takes a number from a sequence"),
    (concat!("COERCETO", "DOMAIN"), "it casts to a domain, whose checks are not visible"),
    ("TABLEFUNC", "it uses XMLTABLE or JSON_TABLE"),
    ("XMLEXPR", "it uses an XML expression"),
];

/// Fields that hold the OID of a function.
const FUNCTIONS: &[&str] = &[
    "funcid",
    "opfuncid",
    "hashfuncid",
    "negfuncid",
    "aggfnoid",
    "winfnoid",
    "startInRangeFunc",
    "endInRangeFunc",
];

/// Fields that hold the OID of an operator, or a list of them.
const OPERATORS: &[&str] = &["opno", "opnos", "eqop", "sortop"];

/// Fields that hold the OID of a type, or a list of them.
#[rustfmt::skip]
const TYPES: &[&str] = &[
    "vartype", "consttype", "paramtype", "opresulttype", "funcresulttype", "resulttype", "aggtype", "aggargtypes",
    "aggtranstype", "wintype", "array_typeid", "element_typeid", "row_typeid", "casetype", "coalescetype", "minmaxtype",
    "refcontainertype", "refelemtype", "refrestype", "typeId", "type", "coltypes", "funccoltypes", "ctecoltypes",
    "colTypes",
];

/// `current_setting(text)` and `current_setting(text, boolean)`.
const CURRENT_SETTING: &[u32] = &[2077, 3294];

/// How settings begin that a transaction changes by itself, so that the session's state does not tell them.
const OF_TRANSACTIONS: &str = "transaction_";

/// The numbers of the SQL words that ask for the time: `CURRENT_DATE` up to `LOCALTIMESTAMP(n)`. Those behind name
/// the role, the database and the schema, which the key has.
const CLOCKS: std::ops::Range<u32> = 0..9;
const NAMES: std::ops::Range<u32> = 9..15;

/// What trees use.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) relations: BTreeSet<u32>,
    pub(crate) functions: BTreeSet<u32>,
    pub(crate) operators: BTreeSet<u32>,
    pub(crate) types: BTreeSet<u32>,
    /// Types that a value is written from as text, and those that are read from one.
    pub(crate) written: BTreeSet<u32>,
    pub(crate) read: BTreeSet<u32>,
    pub(crate) collations: BTreeSet<u32>,
    pub(crate) settings: BTreeSet<String>,
}

impl Uses {
    /// Adds what a tree uses.
    pub(crate) fn add(&mut self, node: &Node) -> Result<(), Refusal> {
        match node {
            Node::List(items) => items.iter().try_for_each(|item| self.add(item)),
            Node::Struct(node) => self.add_struct(node),
            _ => Ok(()),
        }
    }

    fn add_struct(&mut self, node: &Struct) -> Result<(), Refusal> {
        let label = node.label.as_str();
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == label) {
            return Err(Refusal::new(*reason));
        }
        if !KNOWN.contains(&label) {
            return Err(Refusal::new(format!("it has a node {label} that is not known here")));
        }
        match label {
            "QUERY" => query(node)?,
            "RANGETBLENTRY" | "RTE" => self.range(node)?,
            "VAR" if node.number::<i32>("varattno").is_none_or(|number| number < 0) => {
                return Err(Refusal::new("it reads a system column (ctid, xmin, tableoid, ...)"));
            }
            "PARAM" if !matches!(node.number::<u32>("paramkind"), Some(0 | 2)) => {
                return Err(Refusal::new("it has a parameter of an unknown kind"));
            }
            "COERCEVIAIO" => {
                self.written.extend(type_of(node.field("arg")));
                self.read.extend(node.number::<u32>("resulttype"));
                if type_of(node.field("arg")).is_none() {
                    return Err(Refusal::new("it casts a value of an unknown type to text"));
                }
            }
            "SQLVALUEFUNCTION" => value_function(node)?,
            _ => {}
        }
        let setting = setting(node);
        if let Some(name) = setting.as_ref().filter(|name| name.starts_with(OF_TRANSACTIONS)) {
            return Err(Refusal::new(format!("it reads {name}, which each transaction has for itself")));
        }
        let names_setting = setting.is_some();
        self.settings.extend(setting);
        for (name, value) in node.fields() {
            if !(names_setting && name == "funcid") {
                self.add_field(name, value);
            }
            self.add(value)?;
        }
        Ok(())
    }

    fn add_field(&mut self, name: &str, value: &Node) {
        let numbers = || value.items().iter().filter_map(Node::number::<u32>).filter(|number| *number != 0);
        if FUNCTIONS.contains(&name) {
            self.functions.extend(numbers());
        } else if OPERATORS.contains(&name) {
            self.operators.extend(numbers());
        } else if TYPES.contains(&name) {
            self.types.extend(numbers());
        } else if name == "inputcollid" {
            self.collations.extend(numbers());
        }
    }

    fn range(&mut self, node: &Struct) -> Result<(), Refusal> {
        match node.number::<u32>("rtekind") {
            Some(0) => {
                self.relations.extend(node.number::<u32>("relid"));
                Ok(())
            }
            Some(1 | 2 | 3 | 5 | 6 | 8) => Ok(()),
            Some(4) => Err(Refusal::new("it uses XMLTABLE or JSON_TABLE")),
            _ => Err(Refusal::new("its FROM has something that is not known here")),
        }
    }
}

/// A query must be a SELECT that neither locks nor writes.
fn query(node: &Struct) -> Result<(), Refusal> {
    let reason = if !node.is("commandType", "1") {
        "it writes"
    } else if node.is("hasModifyingCTE", "true") {
        "it writes in a WITH"
    } else if node.is("hasForUpdate", "true") || !node.field("rowMarks").items().is_empty() {
        "it locks rows (FOR UPDATE, FOR SHARE)"
    } else if *node.field("utilityStmt") != Node::Nothing {
        "it is no SELECT"
    } else {
        return Ok(());
    };
    Err(Refusal::new(reason))
}

fn value_function(node: &Struct) -> Result<(), Refusal> {
    match node.number::<u32>("op") {
        Some(op) if CLOCKS.contains(&op) => {
            Err(Refusal::new("it asks for the time (CURRENT_DATE, CURRENT_TIMESTAMP, LOCALTIME, ...)")
                .with_cure("send the time as a parameter"))
        }
        Some(op) if NAMES.contains(&op) => Ok(()),
        _ => Err(Refusal::new("it has an SQL word that is not known here")),
    }
}

/// The setting that `current_setting('name')` names.
fn setting(node: &Struct) -> Option<String> {
    let called = node.label == "FUNCEXPR" && CURRENT_SETTING.contains(&node.number("funcid")?);
    let first = called.then(|| node.field("args").items().first())??.labelled("CONST")?;
    let Node::Datum(bytes) = first.field("constvalue") else { return None };
    text_of_datum(bytes).filter(|_| first.is("consttype", "25")).map(|name| name.to_ascii_lowercase())
}

/// The type of an expression's value.
fn type_of(node: &Node) -> Option<u32> {
    let node = node.as_struct()?;
    let field = match node.label.as_str() {
        "VAR" => "vartype",
        "CONST" => "consttype",
        "PARAM" => "paramtype",
        "OPEXPR" | "DISTINCTEXPR" | "NULLIFEXPR" => "opresulttype",
        "FUNCEXPR" => "funcresulttype",
        "AGGREF" => "aggtype",
        "WINDOWFUNC" => "wintype",
        "CASE" | "CASEEXPR" => "casetype",
        "COALESCE" | "COALESCEEXPR" => "coalescetype",
        "MINMAX" | "MINMAXEXPR" => "minmaxtype",
        "ARRAY" | "ARRAYEXPR" => "array_typeid",
        "ROW" | "ROWEXPR" => "row_typeid",
        "RELABELTYPE" | "COERCEVIAIO" | "ARRAYCOERCEEXPR" | "FIELDSELECT" => "resulttype",
        "SUBSCRIPTINGREF" => "refrestype",
        "SQLVALUEFUNCTION" => "type",
        "CASETESTEXPR" => "typeId",
        "COLLATE" | "COLLATEEXPR" | "NAMEDARGEXPR" => return type_of(node.field("arg")),
        "BOOLEXPR" | "SCALARARRAYOPEXPR" | "NULLTEST" | "BOOLEANTEST" | "ROWCOMPARE" | "ROWCOMPAREEXPR" => {
            return Some(BOOL);
        }
        "SUBLINK" => return type_of_sublink(node),
        _ => return None,
    };
    node.number(field)
}

/// `boolean`
const BOOL: u32 = 16;

/// A scalar subquery has the type of its column; `EXISTS`, `ALL`, `ANY` and comparisons of rows are true or false.
fn type_of_sublink(node: &Struct) -> Option<u32> {
    match node.number::<u32>("subLinkType")? {
        0..=3 => Some(BOOL),
        4 => {
            let query = node.field("subselect").labelled("QUERY")?;
            type_of(query.field("targetList").items().first()?.as_struct()?.field("expr"))
        }
        _ => None,
    }
}
