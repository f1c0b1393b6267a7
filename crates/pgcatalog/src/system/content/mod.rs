//! What is in each system table.

mod activity;
mod buses;
mod fixed;
mod grants;
mod happened;
mod hot;
mod information;
mod own;
mod refreshes;
mod relations;
mod roles;
mod routines;
mod rules;
mod sampled;
mod sequences;
mod servers;
mod types;
mod zones;

pub(super) use self::fixed::{
    DATABASE_OWNER, DATABASE_OWNER_NAME, OWN_NAME, OWNER, PUBLIC, PUBLIC_NAME, UTF8, namespace_name,
    namespace_oid, schema_of, schema_of_view,
};

pub(super) use self::grants::quoted as acl_name;
pub(super) use self::types::RECORD;

use super::System;
use super::columns::Schema;
use super::rows::Rows;

/// Computes a table's rows.
type Fill = fn(&System, &mut Rows);

/// Who computes which table; one that is not here is empty.
const CATALOG: &[(&str, Fill)] = &[
    ("pg_am", fixed::access_methods),
    ("pg_attrdef", relations::defaults),
    ("pg_attribute", relations::attributes),
    ("pg_auth_members", roles::members),
    ("pg_authid", roles::authid),
    ("pg_class", relations::classes),
    ("pg_collation", fixed::collations),
    ("pg_constraint", relations::constraints),
    ("pg_database", fixed::databases),
    ("pg_db_role_setting", roles::settings),
    ("pg_default_acl", grants::defaults),
    ("pg_depend", sequences::dependencies),
    ("pg_description", super::comments::descriptions),
    ("pg_enum", types::labels),
    ("pg_extension", fixed::extensions),
    ("pg_foreign_data_wrapper", servers::wrappers),
    ("pg_foreign_server", servers::servers),
    ("pg_index", relations::indexes),
    ("pg_indexes", relations::index_definitions),
    ("pg_language", fixed::languages),
    ("pg_locks", activity::locks),
    ("pg_matviews", relations::materialized_views),
    ("pg_namespace", fixed::namespaces),
    ("pg_opclass", fixed::operator_classes),
    ("pg_proc", routines::functions),
    ("pg_roles", roles::roles),
    ("pg_sequence", sequences::sequences),
    ("pg_sequences", sequences::sequence_list),
    ("pg_settings", activity::settings),
    ("pg_shadow", roles::shadow),
    ("pg_stat_activity", activity::sessions),
    ("pg_stat_all_tables", activity::table_counts),
    ("pg_stat_archiver", activity::archiver),
    ("pg_stat_bgwriter", activity::background_writer),
    ("pg_stat_ssl", activity::encryption),
    ("pg_stat_statements", own::statement_counts),
    ("pg_stat_user_tables", activity::table_counts),
    ("pg_statio_all_tables", activity::table_names),
    ("pg_statio_user_tables", activity::table_names),
    ("pg_tables", relations::table_list),
    ("pg_tablespace", fixed::tablespaces),
    ("pg_timezone_names", zones::names),
    ("pg_type", types::types),
    ("pg_user", roles::users),
    ("pg_user_mapping", servers::mapping_rows),
    ("pg_user_mappings", servers::mappings),
    ("pg_views", relations::views),
    ("sqlcached_buses", buses::buses),
    ("sqlcached_cached_queries", servers::queries),
    ("sqlcached_expiry_rules", rules::rules),
    ("sqlcached_forwarded", servers::forwarded),
    ("sqlcached_history", happened::history),
    ("sqlcached_hot", hot::hot),
    ("sqlcached_indexes", own::indexes),
    ("sqlcached_invalidations", happened::invalidations),
    ("sqlcached_largest", sampled::largest),
    ("sqlcached_limits", rules::limits),
    ("sqlcached_nodes", buses::nodes),
    ("sqlcached_prefixes", sampled::prefixes),
    ("sqlcached_refusals", own::refusals),
    ("sqlcached_roles", own::roles),
    ("sqlcached_sessions", own::sessions),
    ("sqlcached_settings", own::settings),
    ("sqlcached_slow", happened::slow),
    ("sqlcached_sources", servers::sources),
    ("sqlcached_statements", own::statements),
    ("sqlcached_tables", own::tables),
    ("sqlcached_views", refreshes::views),
];

/// The same for `information_schema`.
const INFORMATION: &[(&str, Fill)] = &[
    ("applicable_roles", grants::applicable_roles),
    ("character_sets", information::character_sets),
    ("check_constraints", information::check_constraints),
    ("column_privileges", grants::column_privileges),
    ("columns", information::columns),
    ("constraint_column_usage", information::constraint_column_usage),
    ("constraint_table_usage", information::constraint_table_usage),
    ("enabled_roles", grants::enabled_roles),
    ("information_schema_catalog_name", information::catalog_name),
    ("key_column_usage", information::key_column_usage),
    ("parameters", routines::parameters),
    ("referential_constraints", information::referential_constraints),
    ("role_column_grants", grants::column_privileges),
    ("role_table_grants", grants::table_privileges),
    ("routines", routines::information),
    ("schemata", information::schemata),
    ("sequences", sequences::information),
    ("table_constraints", information::table_constraints),
    ("table_privileges", grants::table_privileges),
    ("tables", information::tables),
    ("views", information::views),
];

pub(super) fn fill(system: &System, rows: &mut Rows) {
    let list = match rows.layout().schema {
        Schema::Catalog => CATALOG,
        Schema::Information => INFORMATION,
    };
    if let Ok(at) = list.binary_search_by_key(&rows.layout().name, |(name, _)| name) {
        list[at].1(system, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::LAYOUTS;
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_name_tables() {
        for (schema, list) in [(Schema::Catalog, CATALOG), (Schema::Information, INFORMATION)] {
            assert!(list.is_sorted_by_key(|(name, _)| name));
            for (name, _) in list {
                assert!(
                    LAYOUTS.iter().any(|layout| layout.schema == schema && layout.name == *name),
                    "{name}"
                );
            }
        }
    }
}
