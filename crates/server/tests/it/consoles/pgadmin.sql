-- = the session is set up
SELECT set_config('bytea_output', 'hex', false) FROM pg_settings WHERE name = 'bytea_output';
-- = the version
SELECT version() LIKE 'PostgreSQL%';
-- the database that was connected to
SELECT db.oid AS did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
  has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database();
-- the role
SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END AS can_create_db,
  CASE WHEN 'pg_signal_backend' = ANY(ARRAY(WITH RECURSIVE cte AS (
    SELECT pg_roles.oid, pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid
    UNION ALL SELECT m.roleid, pgr.rolname FROM cte cte_1 JOIN pg_auth_members m ON m.member = cte_1.oid JOIN pg_roles pgr ON pgr.oid = m.roleid)
    SELECT rolname FROM cte)) THEN true ELSE false END AS can_signal_backend
FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user;
-- databases
SELECT db.oid AS did, db.datname AS name, ta.spcname AS spcname, db.datallowconn, db.datistemplate AS is_template,
  pg_catalog.has_database_privilege(db.oid, 'CREATE') AS cancreate, datdba AS owner, descr.description
FROM pg_catalog.pg_database db LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
LEFT OUTER JOIN pg_catalog.pg_shdescription descr ON (db.oid = descr.objoid AND descr.classoid = 'pg_database'::regclass)
ORDER BY datname;
-- schemas
SELECT nsp.oid, nsp.nspname AS name, pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') AS can_create,
  pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND NOT (nsp.nspname = 'pg_catalog' AND EXISTS
  (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1)) ORDER BY nspname;
-- tables
SELECT rel.oid, rel.relname AS name,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = false) AS triggercount,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = false AND tgenabled = 'O') AS has_enable_triggers,
  (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
  (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits, des.description
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
WHERE rel.relkind IN ('r', 's', 't', 'p') AND rel.relnamespace = 'public'::regnamespace::oid AND NOT rel.relispartition ORDER BY rel.relname;
-- = columns
SELECT DISTINCT att.attname AS name, att.attnum AS "OID", pg_catalog.format_type(ty.oid, NULL) AS datatype, att.attnotnull AS not_null,
  CASE WHEN att.atthasdef OR att.attidentity <> '' OR ty.typdefault IS NOT NULL THEN true ELSE false END AS has_default_val, des.description
FROM pg_catalog.pg_attribute att
JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
JOIN pg_catalog.pg_namespace tn ON tn.oid = ty.typnamespace
JOIN pg_catalog.pg_class cl ON cl.oid = att.attrelid
JOIN pg_catalog.pg_namespace na ON na.oid = cl.relnamespace
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = ty.typelem
LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
WHERE att.attrelid = 'shop'::regclass::oid AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum;
-- = indexes
SELECT DISTINCT ON (cls.relname) cls.relname AS name, indrelid = 'shop'::regclass AS of_shop, indisclustered, indisunique, indisprimary,
  n.nspname, indnatts, cls.reltablespace AS spcoid, indisvalid
FROM pg_catalog.pg_index idx
JOIN pg_catalog.pg_class cls ON cls.oid = indexrelid
JOIN pg_catalog.pg_class tab ON tab.oid = indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = tab.relnamespace
LEFT JOIN pg_catalog.pg_depend dep ON (dep.classid = cls.tableoid AND dep.objid = cls.oid AND dep.refobjsubid = '0'
  AND dep.refclassid = (SELECT oid FROM pg_catalog.pg_class WHERE relname = 'pg_constraint') AND dep.deptype = 'i')
WHERE indrelid = 'shop'::regclass ORDER BY cls.relname;
-- constraints
SELECT conindid AS oid, conname AS name, NOT convalidated AS convalidated, contype FROM pg_catalog.pg_constraint ct
WHERE contype IN ('p', 'u', 'c', 'f') AND conrelid = 'shop'::regclass ORDER BY 2;
-- the charts
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity) AS "Total",
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active') AS "Active",
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle') AS "Idle") t
UNION ALL
SELECT 'tps_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database) AS "Transactions",
  (SELECT sum(xact_commit) FROM pg_catalog.pg_stat_database) AS "Commits",
  (SELECT sum(xact_rollback) FROM pg_catalog.pg_stat_database) AS "Rollbacks") t
UNION ALL
SELECT 'bio_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT (SELECT sum(blks_read) FROM pg_catalog.pg_stat_database) AS "Reads",
  (SELECT sum(blks_hit) FROM pg_catalog.pg_stat_database) AS "Hits") t;
-- sessions
SELECT pid, datname, usename, application_name, client_addr, pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start,
  state, wait_event_type || ': ' || wait_event AS wait_event, array_to_string(pg_catalog.pg_blocking_pids(pid), ', ') AS blocking_pids, query,
  pg_catalog.to_char(state_change, 'YYYY-MM-DD HH24:MI:SS TZ') AS state_change, backend_type,
  CASE WHEN state = 'active' THEN round((extract(epoch FROM now() - query_start) / 60)::numeric, 2) ELSE 0 END AS active_since
FROM pg_catalog.pg_stat_activity ORDER BY pid;
-- ~ locks
SELECT pid, locktype, datname, relation::regclass, page, tuple, virtualxid, transactionid, classid::regclass, objid, virtualtransaction, mode, granted, fastpath
FROM pg_catalog.pg_locks l LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid) ORDER BY pid, locktype;
-- prepared transactions
SELECT gid, database, owner, transaction, prepared FROM pg_catalog.pg_prepared_xacts ORDER BY gid, database, owner;
-- settings
SELECT name, setting, unit, category, short_desc FROM pg_catalog.pg_settings ORDER BY category;
-- statistics of a table
SELECT seq_scan AS "Sequential scans", seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_live_tup,
  n_dead_tup, last_vacuum, last_autovacuum, last_analyze, last_autoanalyze, pg_catalog.pg_size_pretty(pg_catalog.pg_relation_size(stat.relid)) IS NOT NULL
FROM pg_catalog.pg_stat_all_tables stat JOIN pg_catalog.pg_class cl ON cl.oid = stat.relid WHERE stat.relid = 'shop'::regclass::oid;
-- = how many rows
SELECT count(*) AS cnt FROM public.shop;
-- = the key of a grid
SELECT at.attname, at.attnum, ty.typname FROM pg_catalog.pg_attribute at
LEFT JOIN pg_catalog.pg_type ty ON (ty.oid = at.atttypid)
JOIN (SELECT unnest(ARRAY[1]::smallint[]) AS n) k ON k.n = at.attnum WHERE attrelid = 'shop'::regclass::oid;
