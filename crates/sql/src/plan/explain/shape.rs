//! A plan as PostgreSQL writes it: as lines, JSON, XML and YAML.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::tree::{Actual, Node};
use crate::text::explain::Format;

/// A plan with what is known of its run.
#[derive(Debug)]
pub(super) struct Report {
    /// Who runs it.
    pub(super) executor: &'static str,
    pub(super) plan: Node,
    /// Milliseconds.
    pub(super) planning: Option<f64>,
    pub(super) execution: Option<f64>,
}

impl Report {
    /// The rows of the answer.
    pub(super) fn rows(&self, format: Format) -> Vec<String> {
        match format {
            Format::Text => self.lines(),
            Format::Json => vec![serde_json::to_string_pretty(&self.json()).unwrap_or_default()],
            Format::Xml => {
                let mut out = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n".to_owned();
                write_xml("Query", &self.object(), 1, &mut out);
                vec![out + "</explain>"]
            }
            Format::Yaml => {
                let mut out = String::new();
                write_yaml(&self.json(), 0, &mut out);
                vec![out.trim_end().to_owned()]
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("Executor: {}", self.executor)];
        write_node(&self.plan, 0, &mut lines);
        for (name, time) in [("Planning", self.planning), ("Execution", self.execution)] {
            lines.extend(time.map(|time| format!("{name} Time: {time:.3} ms")));
        }
        lines
    }

    fn json(&self) -> Json {
        Json::Array(vec![self.object()])
    }

    fn object(&self) -> Json {
        let mut query = Map::new();
        query.insert("Executor".to_owned(), self.executor.into());
        query.insert("Plan".to_owned(), object(&self.plan, None));
        for (name, time) in [("Planning Time", self.planning), ("Execution Time", self.execution)] {
            query.extend(time.map(|time| (name.to_owned(), milliseconds(time))));
        }
        Json::Object(query)
    }
}

/// With three digits behind the point, as PostgreSQL has them.
fn milliseconds(time: f64) -> Json {
    ((time * 1_000.0).round() / 1_000.0).into()
}

/// A node and those below it, as lines.
fn write_node(node: &Node, depth: usize, lines: &mut Vec<String>) {
    let mut margin = " ".repeat((6 * depth).saturating_sub(4));
    if let Some(part) = &node.part {
        lines.push(format!("{}{part}", " ".repeat((6 * depth).saturating_sub(4))));
        margin.push_str("  ");
    }
    let arrow = if depth > 0 { "->  " } else { "" };
    lines.push(format!("{margin}{arrow}{}", headline(node)));
    let inner = margin.len() + arrow.len() + 2;
    if let Some(condition) = &node.condition {
        lines.push(format!("{:inner$}{}: ({condition})", "", condition_name(node)));
    }
    let below = depth + 1;
    for child in &node.children {
        write_node(child, below, lines);
    }
}

fn condition_name(node: &Node) -> &'static str {
    if node.index.is_some() { "Index Cond" } else { "Cond" }
}

/// `Index Scan using i on t (actual time=0.000..0.010 rows=1 loops=1)`
fn headline(node: &Node) -> String {
    let mut line = node.operation.unwrap_or(&node.kind).to_owned();
    if let Some(join) = node.join.filter(|join| *join != "Inner") {
        let _ = write!(line, " {join} Join");
    }
    if let Some(index) = &node.index {
        let _ = write!(line, " using {index}");
    }
    if let Some(relation) = &node.relation {
        let _ = write!(line, " on {relation}");
    }
    if let Some(Actual { rows, time }) = node.actual {
        let time = time.map(|time| format!("time=0.000..{time:.3} ")).unwrap_or_default();
        let _ = write!(line, " (actual {time}rows={rows} loops=1)");
    }
    line
}

fn object(node: &Node, relationship: Option<&str>) -> Json {
    let mut out = Map::new();
    let mut set = |name: &str, value: Option<Json>| out.extend(value.map(|value| (name.to_owned(), value)));
    let text = |text: &Option<String>| text.clone().map(Json::from);
    set("Node Type", Some(node.kind.as_str().into()));
    set("Operation", node.operation.map(Json::from));
    set("Parent Relationship", relationship.map(Json::from));
    set("Subplan Name", text(&node.part));
    set("Join Type", node.join.map(Json::from));
    set("Scan Direction", node.index.as_ref().map(|_| "Forward".into()));
    set("Index Name", text(&node.index));
    let named = if node.kind == "Subquery Scan" { "Alias" } else { "Relation Name" };
    set(named, text(&node.relation));
    if named == "Relation Name" {
        set("Alias", text(&node.relation));
    }
    if let Some(Actual { rows, time }) = node.actual {
        set("Actual Startup Time", time.map(|_| 0.0.into()));
        set("Actual Total Time", time.map(milliseconds));
        set("Actual Rows", Some(rows.into()));
        set("Actual Loops", Some(1.into()));
    }
    set(condition_name(node), node.condition.as_ref().map(|condition| format!("({condition})").into()));
    if !node.children.is_empty() {
        let plans = node.children.iter().enumerate();
        let plans = plans.map(|(at, child)| object(child, Some(relationship_of(node, at, child))));
        out.insert("Plans".to_owned(), plans.collect());
    }
    Json::Object(out)
}

/// What a child is to its parent.
fn relationship_of(node: &Node, at: usize, child: &Node) -> &'static str {
    match &child.part {
        Some(part) if part.starts_with("SubPlan") => "SubPlan",
        Some(_) => "InitPlan",
        None if node.kind == "Append" || node.kind == "BitmapOr" => "Member",
        None if node.kind == "Subquery Scan" => "Subquery",
        None if at == 0 => "Outer",
        None => "Inner",
    }
}

fn write_xml(name: &str, value: &Json, depth: usize, out: &mut String) {
    let (margin, name) = ("  ".repeat(depth), name.replace(' ', "-"));
    match value {
        Json::Object(members) => {
            let _ = writeln!(out, "{margin}<{name}>");
            for (name, value) in members {
                write_xml(name, value, depth + 1, out);
            }
            let _ = writeln!(out, "{margin}</{name}>");
        }
        Json::Array(elements) => {
            let _ = writeln!(out, "{margin}<{name}>");
            for element in elements {
                write_xml("Plan", element, depth + 1, out);
            }
            let _ = writeln!(out, "{margin}</{name}>");
        }
        value => {
            let _ = writeln!(out, "{margin}<{name}>{}</{name}>", escaped(&plain(value)));
        }
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn write_yaml(value: &Json, depth: usize, out: &mut String) {
    let margin = "  ".repeat(depth);
    match value {
        Json::Array(elements) => {
            for element in elements {
                let from = out.len();
                write_yaml(element, depth + 1, out);
                // The first member stands behind the dash.
                let dash = from + 2 * depth;
                if out.len() > dash + 2 {
                    out.replace_range(dash..dash + 2, "- ");
                }
            }
        }
        Json::Object(members) => {
            for (name, value) in members {
                if value.is_array() || value.is_object() {
                    let _ = writeln!(out, "{margin}{name}:");
                    write_yaml(value, depth + 1, out);
                } else {
                    let _ = writeln!(out, "{margin}{name}: {value}");
                }
            }
        }
        value => {
            let _ = writeln!(out, "{margin}{value}");
        }
    }
}
