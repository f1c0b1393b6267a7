//! Definitions. The stream has them where an event trigger of the source writes messages into it. In any case a digest
//! of the rows of the catalogue that have them is compared.

use std::sync::LazyLock;

use crate::error::Error;
use crate::wire::Connection;

/// The prefix of messages that an event trigger writes with a change of definitions.
pub(crate) const DEFINITIONS: &str = "sqlcached definitions";

/// All that may change what a statement means or gives, without a change of a row: each part is a query for numbers.
/// Versions of rows (`xmin`) are compared where that can be, so a change and its undoing are seen, too. `TRUNCATE`
/// makes another version of a table's row in `pg_class`, and is an event of the stream. So of tables the definition
/// itself is compared, and the version of their row's type, which another name or schema makes another one.
const PARTS: &[&str] = &[
    "SELECT hashint8extended(c.oid::int8, hashtext(format('%s %s %s %s %s %s %s %s %s', relname, relnamespace, relkind,
         relrowsecurity, relforcerowsecurity, relreplident, relowner, relispartition, relacl)))
     FROM pg_class c WHERE c.oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'",
    "SELECT hashint8extended(attrelid::int8 * 2048 + attnum, a.xmin::text::int8) FROM pg_attribute a
     JOIN pg_class c ON c.oid = attrelid
     WHERE attrelid >= 16384 AND attnum > 0 AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't'",
    "SELECT hashint8extended(r.oid::int8, r.xmin::text::int8) FROM pg_rewrite r
     JOIN pg_class c ON c.oid = ev_class WHERE r.oid >= 16384 AND relpersistence <> 't'",
    "SELECT hashint8extended(t.oid::int8, t.xmin::text::int8) FROM pg_type t
     JOIN pg_namespace n ON n.oid = typnamespace WHERE t.oid >= 16384 AND nspname !~ '^pg_(toast_)?temp_'",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_proc WHERE oid >= 16384",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_operator WHERE oid >= 16384",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_cast WHERE oid >= 16384",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_collation WHERE oid >= 16384",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_enum",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_policy",
    "SELECT hashint8extended(inhrelid::int8, inhparent::int8 * 7 + xmin::text::int8) FROM pg_inherits",
    "SELECT hashint8extended(indexrelid::int8, indrelid::int8 + indisreplident::int + 2 * indisprimary::int)
     FROM pg_index WHERE indexrelid >= 16384 AND (indisreplident OR indisprimary)",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_publication_rel",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_publication",
    "SELECT hashint8extended(oid::int8, hashtext(format('%s %s %s %s %s', rolname, rolsuper, rolinherit, rolbypassrls,
         rolcanlogin))) FROM pg_roles",
    "SELECT hashint8extended(roleid::int8, member::int8) FROM pg_auth_members",
    "SELECT hashint8extended(oid::int8, xmin::text::int8) FROM pg_event_trigger",
    "SELECT (extract(epoch FROM pg_conf_load_time()) * 1000000)::int8",
    "SELECT hashint8extended(setdatabase::int8 * 7 + setrole::int8, hashtext(setconfig::text)) FROM pg_db_role_setting",
];

/// What the definitions of a source are, as a number.
pub(super) fn digest(connection: &mut Connection) -> Result<u64, Error> {
    static DIGEST: LazyLock<String> = LazyLock::new(|| {
        let part = |(at, query): (usize, &&str)| {
            format!("SELECT format('{at} %s %s', count(*), sum(h)) FROM ({query}) part (h)")
        };
        let parts: Vec<String> = PARTS.iter().enumerate().map(part).collect();
        let all = parts.join("\nUNION ALL ");
        format!(
            "SELECT pg_catalog.hashtextextended(string_agg(one, ' ' ORDER BY one), 0) FROM ({all}) parts (one)"
        )
    });
    number(connection, &DIGEST)
}

/// Which server this is, as a number: restored, promoted or started again it is another one.
pub(super) fn identity(connection: &mut Connection) -> Result<u64, Error> {
    number(connection, IDENTITY)
}

/// See [`identity`]. It is the same in every session, whatever its time zone.
pub(super) const IDENTITY: &str = "
    SELECT pg_catalog.hashtextextended(pg_catalog.concat_ws(' ', (pg_catalog.pg_control_system()).system_identifier,
        (pg_catalog.pg_control_checkpoint()).timeline_id,
        (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::pg_catalog.int8,
        pg_catalog.pg_is_in_recovery()), 0)";

/// The number that a query gives.
pub(super) fn number(connection: &mut Connection, sql: &str) -> Result<u64, Error> {
    let rows = connection.query(sql)?;
    let text = rows.first().and_then(|row| row.first()?.as_deref());
    let number = text.and_then(|text| text.parse::<i64>().ok());
    number.map(i64::cast_unsigned).ok_or_else(|| Error::connection("the source gives no number"))
}
