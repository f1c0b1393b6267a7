-- = the session's schema and user
SELECT current_schema(), session_user = current_user;
-- = the search path
SHOW search_path;
-- the database
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datname = current_database();
-- schemas with their comments
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
ORDER BY nspname;
-- = whether a setting is on
SELECT name, setting FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings';
-- words
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,select,from}'::text[]);
-- types
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');
-- tables of a schema
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
  pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind NOT IN ('i', 'I', 'c');
-- sizes of tables
SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size, pg_catalog.pg_relation_size(c.oid) AS rel_size
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace;
-- ~ columns
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON a.attrelid = c.oid
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
LEFT OUTER JOIN pg_catalog.pg_description dsc ON c.oid = dsc.objoid AND a.attnum = dsc.objsubid
LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum
  AND dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'c') AND c.oid = 'shop'::regclass ORDER BY a.attnum;
-- = columns, by their names
SELECT a.attname, a.attnum, a.attnotnull, format_type(a.atttypid, a.atttypmod), a.attidentity, a.atthasdef, col_description(a.attrelid, a.attnum)
FROM pg_attribute a WHERE a.attrelid = 'shop'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
-- constraints
SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description,
  CASE WHEN c.contype NOT IN ('p', 'u') THEN pg_get_constraintdef(c.oid) END AS src_def
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass
WHERE c.conrelid = 'shop'::regclass ORDER BY c.oid;
-- = constraints, by their names
SELECT c.conname, c.contype, t.relname, c.conkey, c.confkey FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
WHERE c.conrelid IN ('shop'::regclass, 'sale'::regclass) ORDER BY 1;
-- references to a table
SELECT c.*, t.relnamespace FROM pg_catalog.pg_constraint c, pg_catalog.pg_class t
WHERE c.confrelid = 'shop'::regclass AND t.oid = c.conrelid ORDER BY c.oid;
-- indexes
SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname AS tabrelname, dsc.description,
  pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr,
  pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size, pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
WHERE i.indrelid = 'shop'::regclass ORDER BY tabrelname, c.relname;
-- what depends on a table
SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname, pg_get_expr(ad.adbin, ad.adrelid) AS adefval,
  CASE WHEN cl.relkind IS NOT NULL THEN cl.relkind::text || coalesce(dep.objsubid::text, '') ELSE '' END AS type,
  coalesce(coc.relname, clrw.relname) AS ownertable
FROM pg_depend dep
LEFT JOIN pg_class cl ON dep.objid = cl.oid
LEFT JOIN pg_attribute attr ON dep.objid = attr.attrelid AND dep.objsubid = attr.attnum
LEFT JOIN pg_attrdef ad ON ad.adrelid = attr.attrelid AND ad.adnum = attr.attnum
LEFT JOIN pg_constraint con ON dep.objid = con.oid
LEFT JOIN pg_class coc ON con.conrelid = coc.oid
LEFT JOIN pg_rewrite rw ON dep.objid = rw.oid
LEFT JOIN pg_class clrw ON clrw.oid = rw.ev_class
WHERE dep.refobjid = 'shop'::regclass AND dep.classid <> 0;
-- sequences
SELECT c.oid, c.relname, s.* FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid WHERE c.relkind = 'S';
-- the text of a view
SELECT pg_catalog.pg_get_viewdef('sold'::regclass, true) IS NOT NULL AS known;
-- functions
SELECT p.oid AS poid, p.*, pg_catalog.pg_get_expr(p.proargdefaults, 0) AS arg_defaults, d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = p.oid AND d.objsubid = 0
WHERE p.pronamespace = 'public'::regnamespace ORDER BY p.proname;
-- triggers and rules
SELECT x.oid, x.*, p.pronamespace AS func_schema_id, d.description FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid = x.tgfoid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = x.oid WHERE x.tgrelid = 'shop'::regclass AND NOT tgisinternal;
-- policies, extensions, servers, tablespaces
SELECT (SELECT count(*) FROM pg_catalog.pg_policy) >= 0, (SELECT count(*) FROM pg_catalog.pg_extension) >= 0,
  (SELECT count(*) FROM pg_catalog.pg_foreign_server) >= 0, (SELECT count(*) FROM pg_catalog.pg_foreign_data_wrapper) >= 0,
  (SELECT count(*) FROM pg_catalog.pg_tablespace) >= 0, (SELECT count(*) FROM pg_catalog.pg_event_trigger) >= 0,
  (SELECT count(*) FROM pg_catalog.pg_language) >= 0, (SELECT count(*) FROM pg_catalog.pg_collation) >= 0;
-- rules of a table
SELECT r.oid, r.rulename, r.ev_class FROM pg_catalog.pg_rewrite r WHERE r.ev_class = 'shop'::regclass;
-- roles
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a
LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname;
-- ~ encodings
SELECT DISTINCT pg_catalog.pg_encoding_to_char(conforencoding) FROM pg_catalog.pg_conversion;
-- access methods
SELECT am.oid, am.* FROM pg_catalog.pg_am am ORDER BY oid;
-- sessions and locks
SELECT sa.* FROM pg_catalog.pg_stat_activity sa;
-- what a table has of statistics
SELECT n_live_tup, seq_scan, relname FROM pg_catalog.pg_stat_user_tables WHERE relname = 'shop';
-- what an inherited table is of
SELECT i.*, c.relnamespace FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c WHERE i.inhrelid = 'shop'::regclass AND c.oid = i.inhparent ORDER BY i.inhseqno;
-- = rows of a table
SELECT x.id, x.title FROM public.shop x ORDER BY x.id LIMIT 200;
