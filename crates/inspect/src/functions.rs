//! Which functions give the same answer as long as their arguments, the tables and the session's settings are the
//! same.

use std::collections::BTreeSet;

use crate::trees::{oids, unreadable};
use crate::uses::Uses;
use crate::verdict::{Catalogue, Refusal, Stop};

/// Functions of `pg_catalog` that are called stable only because of settings that the key has, or because they take
/// values of any type. All of one name count; those that are immutable are not asked for here.
#[rustfmt::skip]
const STABLE: &[&str] = &[
    // Dates and times, by TimeZone, DateStyle and IntervalStyle.
    "date", "date_out", "date_part", "date_trunc", "extract", "generate_series", "in_range", "interval_in",
    "interval_out", "interval_pl_timestamptz", "make_timestamptz", "overlaps", "time", "timestamp", "timestamp_out",
    "timestamptz", "timestamptz_mi_interval", "timestamptz_out", "timestamptz_pl_interval", "to_char", "to_date",
    "to_number", "to_timestamp",
    "date_cmp_timestamptz", "date_eq_timestamptz", "date_ge_timestamptz", "date_gt_timestamptz",
    "date_le_timestamptz", "date_lt_timestamptz", "date_ne_timestamptz",
    "timestamp_cmp_timestamptz", "timestamp_eq_timestamptz", "timestamp_ge_timestamptz", "timestamp_gt_timestamptz",
    "timestamp_le_timestamptz", "timestamp_lt_timestamptz", "timestamp_ne_timestamptz",
    "timestamptz_cmp_date", "timestamptz_eq_date", "timestamptz_ge_date", "timestamptz_gt_date",
    "timestamptz_le_date", "timestamptz_lt_date", "timestamptz_ne_date",
    "timestamptz_cmp_timestamp", "timestamptz_eq_timestamp", "timestamptz_ge_timestamp", "timestamptz_gt_timestamp",
    "timestamptz_le_timestamp", "timestamptz_lt_timestamp", "timestamptz_ne_timestamp",
    // Money, by lc_monetary.
    "cash_in", "cash_out", "money", "numeric",
    // Values of any type as text.
    "anytextcat", "array_out", "array_to_string", "concat", "concat_ws", "enum_out", "format", "multirange_out",
    "quote_literal", "quote_nullable", "range_out", "record_out", "textanycat",
    // Enums, whose labels are definitions.
    "enum_first", "enum_in", "enum_last", "enum_range",
    // JSON.
    "array_to_json", "json_agg", "json_agg_strict", "json_agg_strict_transfn", "json_agg_transfn",
    "json_build_array", "json_build_object", "json_object_agg", "json_object_agg_strict",
    "json_object_agg_strict_transfn", "json_object_agg_transfn", "json_object_agg_unique",
    "json_object_agg_unique_strict", "json_object_agg_unique_strict_transfn", "json_object_agg_unique_transfn",
    "jsonb_agg", "jsonb_agg_finalfn", "jsonb_agg_strict", "jsonb_agg_strict_transfn", "jsonb_agg_transfn",
    "jsonb_build_array", "jsonb_build_object", "jsonb_object_agg", "jsonb_object_agg_finalfn",
    "jsonb_object_agg_strict", "jsonb_object_agg_strict_transfn", "jsonb_object_agg_transfn",
    "jsonb_object_agg_unique", "jsonb_object_agg_unique_strict", "jsonb_object_agg_unique_strict_transfn",
    "jsonb_object_agg_unique_transfn", "jsonb_path_exists_tz", "jsonb_path_match_tz", "jsonb_path_query_array_tz",
    "jsonb_path_query_first_tz", "jsonb_path_query_tz", "row_to_json", "to_json", "to_jsonb",
    // Full text search, by default_text_search_config; its dictionaries are definitions.
    "get_current_ts_config", "json_to_tsvector", "jsonb_to_tsvector", "phraseto_tsquery", "plainto_tsquery",
    "to_tsquery", "to_tsvector", "ts_headline", "ts_match_tq", "ts_match_tt", "websearch_to_tsquery",
    // Encodings, and what the key names.
    "convert", "convert_from", "convert_to", "current_database", "current_user", "getpgusername", "length",
    "pg_client_encoding", "session_user",
];

/// Functions that tell the time.
#[rustfmt::skip]
const CLOCKS: &[&str] = &[
    "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "timeofday", "age", "timetz",
];

/// Functions that read a text as a date or a time.
const READS_TIME: &[&str] = &["date_in", "time_in", "timetz_in", "timestamp_in", "timestamptz_in"];

/// Whether the functions, operators and aggregates that trees use may be kept.
pub(crate) fn check(source: &mut dyn Catalogue, uses: &Uses) -> Result<(), Stop> {
    let builtin: BTreeSet<&str> = STABLE.iter().copied().collect();
    let rows = source.query(&asked(uses))?;
    for row in &rows {
        let [Some(name), Some(shown), Some(volatility), Some(language), Some(is_builtin)] = row.as_slice()
        else {
            return Err(unreadable().into());
        };
        let is_builtin = is_builtin == "t";
        let kept = match volatility.as_str() {
            "i" => is_builtin || matches!(language.as_str(), "internal" | "c"),
            "s" => is_builtin && builtin.contains(name.as_str()),
            _ => false,
        };
        if !kept {
            return Err(refusal(name, shown, volatility, language, is_builtin).into());
        }
    }
    Ok(())
}

/// All functions that count: those named, those of operators, those that make aggregates of values, those that write
/// and read values as texts.
fn asked(uses: &Uses) -> String {
    format!(
        "WITH named (oid) AS (SELECT unnest({functions}) \
         UNION SELECT oprcode FROM pg_operator WHERE oid = ANY ({operators}) \
         UNION SELECT typoutput FROM pg_type WHERE oid = ANY ({written}) \
         UNION SELECT typinput FROM pg_type WHERE oid = ANY ({read})), \
         used (oid) AS (SELECT oid FROM named UNION SELECT part FROM pg_aggregate a, \
         LATERAL unnest(ARRAY[aggtransfn, aggfinalfn, aggmtransfn, aggminvtransfn, aggmfinalfn]::oid[]) part \
         WHERE a.aggfnoid IN (SELECT oid FROM named) AND part <> 0) \
         SELECT p.proname, p.oid::regprocedure, p.provolatile, l.lanname, \
         p.pronamespace = 'pg_catalog'::regnamespace AND p.oid < 16384 \
         FROM used u JOIN pg_proc p ON p.oid = u.oid JOIN pg_language l ON l.oid = p.prolang ORDER BY p.oid",
        functions = oids(&uses.functions),
        operators = oids(&uses.operators),
        written = oids(&uses.written),
        read = oids(&uses.read),
    )
}

fn refusal(name: &str, shown: &str, volatility: &str, language: &str, is_builtin: bool) -> Refusal {
    if is_builtin && CLOCKS.contains(&name) {
        return Refusal::new(format!("{shown} tells the time")).with_cure("send the time as a parameter");
    }
    if is_builtin && READS_TIME.contains(&name) {
        return Refusal::new("it casts text to a date or a time, and a text may say 'now' or 'today'")
            .with_cure("send a parameter of that type, or keep the column in that type");
    }
    if name == "current_setting" {
        return Refusal::new("current_setting has a name that is computed")
            .with_cure("name the setting in a literal");
    }
    match volatility {
        "v" => Refusal::new(format!("function {shown} is VOLATILE")),
        "i" => {
            Refusal::new(format!("function {shown} is written in {language}: what it reads is not visible"))
                .with_cure("write its expression into the statement, or into a view")
        }
        _ if is_builtin => {
            Refusal::new(format!("function {shown} depends on more than its arguments, tables and settings"))
        }
        _ => Refusal::new(format!("function {shown} is STABLE: what it reads is not visible"))
            .with_cure("write its expression into the statement, or into a view"),
    }
}
