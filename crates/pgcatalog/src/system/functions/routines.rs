//! Users' functions and procedures, as clients are shown them.

use std::sync::Arc;

use store::definition::{RoutineDef, RoutineParameter};
use store::value::Value;

use super::{Call, optional};
use crate::system::System;
use crate::system::oid::oid_of_routine;
use crate::system::relation::identifier;
use crate::system::rows::text;

/// What a call gives, with defaults. Functions of our own take anything.
pub(super) fn arguments(system: &System, call: &Call) -> Value {
    shown(system, call, |routine| listed(routine, true))
}

/// The same without defaults.
pub(super) fn identity_arguments(system: &System, call: &Call) -> Value {
    shown(system, call, |routine| listed(routine, false))
}

/// What it returns; NULL for a procedure.
pub(super) fn result(system: &System, call: &Call) -> Value {
    match of(system, call) {
        Some(routine) => optional(routine.returns.as_ref().map(|returns| returns.declared.clone())),
        None => text("\"any\""),
    }
}

/// The statement that makes it.
pub(super) fn definition(system: &System, call: &Call) -> Value {
    optional(of(system, call).map(|routine| {
        let schema = identifier(routine.namespace.as_deref().unwrap_or("public"));
        let (word, name) = (routine.word().to_ascii_uppercase(), identifier(routine.own_name()));
        let returns = routine.returns.as_ref().map(|returns| format!("\n RETURNS {}", returns.declared));
        let strict = if routine.strict { "\n STRICT" } else { "" };
        let body = body(&routine);
        format!(
            "CREATE OR REPLACE {word} {schema}.{name}({}){}\n LANGUAGE sql{strict}\n{body}\n",
            listed(&routine, true),
            returns.unwrap_or_default(),
        )
    }))
}

fn body(routine: &RoutineDef) -> String {
    if routine.text { format!("AS $function${}$function$", routine.written) } else { routine.written.clone() }
}

fn of(system: &System, call: &Call) -> Option<Arc<RoutineDef>> {
    let oid = call.oid(0)?;
    system.catalog().routines().iter().find(|routine| oid_of_routine(routine) == oid).cloned()
}

fn shown(system: &System, call: &Call, show: impl Fn(&RoutineDef) -> String) -> Value {
    of(system, call).map_or_else(|| text("\"any\""), |routine| text(&show(&routine)))
}

fn listed(routine: &RoutineDef, defaults: bool) -> String {
    let one = |own: &RoutineParameter| {
        let named = if own.name.is_empty() { String::new() } else { format!("{} ", identifier(&own.name)) };
        let default = own.default.as_ref().filter(|_| defaults);
        let default = default.map(|default| format!(" DEFAULT {default}")).unwrap_or_default();
        let mode = if routine.returns.is_none() { "IN " } else { "" };
        format!("{mode}{named}{}{default}", own.declared)
    };
    routine.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}
