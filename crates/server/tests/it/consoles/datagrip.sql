-- ~ the session
SELECT current_database() IS NOT NULL AS a, current_schemas(false) AS b;
-- = the level
SHOW TRANSACTION ISOLATION LEVEL;
-- = when the server started
SELECT round(extract(epoch FROM pg_postmaster_start_time() AT TIME ZONE 'UTC')) > 0 AS startup_time;
-- databases
SELECT N.oid::bigint AS id, datname AS name, D.description, datistemplate AS is_template, datallowconn AS allow_connections,
  pg_catalog.pg_get_userbyid(N.datdba) AS "owner"
FROM pg_catalog.pg_database N LEFT JOIN pg_catalog.pg_shdescription D ON N.oid = D.objoid
ORDER BY CASE WHEN datname = pg_catalog.current_database() THEN -1::bigint ELSE N.oid::bigint END;
-- schemas
SELECT N.oid::bigint AS id, N.xmin AS state_number, nspname AS name, D.description, pg_catalog.pg_get_userbyid(N.nspowner) AS "owner"
FROM pg_catalog.pg_namespace N LEFT JOIN pg_catalog.pg_description D ON N.oid = D.objoid
ORDER BY CASE WHEN nspname = pg_catalog.current_schema() THEN -1::bigint ELSE N.oid::bigint END;
-- the transaction
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL
  ELSE (pg_catalog.txid_current() % (2^32)::bigint)::varchar::bigint END AS current_txid;
-- what changed
SELECT L.transactionid::varchar::bigint AS transaction_id FROM pg_catalog.pg_locks L
WHERE L.transactionid IS NOT NULL ORDER BY pg_catalog.age(L.transactionid) DESC LIMIT 1;
-- zones
SELECT name, is_dst FROM pg_catalog.pg_timezone_names
UNION DISTINCT SELECT abbrev AS name, is_dst FROM pg_catalog.pg_timezone_abbrevs;
-- languages
SELECT l.oid AS id, l.xmin AS state_number, lanname AS name, lanpltrusted AS trusted, h.proname AS handler,
  hn.nspname AS "handlerSchema", i.proname AS inline, isc.nspname AS "inlineSchema"
FROM pg_catalog.pg_language l
LEFT JOIN pg_catalog.pg_proc h ON h.oid = lanplcallfoid LEFT JOIN pg_catalog.pg_namespace hn ON hn.oid = h.pronamespace
LEFT JOIN pg_catalog.pg_proc i ON i.oid = laninline LEFT JOIN pg_catalog.pg_namespace isc ON isc.oid = i.pronamespace
ORDER BY lanname;
-- roles
SELECT R.oid::bigint AS role_id, rolname AS role_name, rolsuper AS is_super, rolinherit AS is_inherit, rolcreaterole AS can_createrole,
  rolcreatedb AS can_createdb, rolcanlogin AS can_login, rolreplication AS is_replication, rolconnlimit AS conn_limit,
  rolvaliduntil AS valid_until, rolbypassrls AS bypass_rls, rolconfig AS config, D.description
FROM pg_catalog.pg_roles R LEFT JOIN pg_catalog.pg_shdescription D ON D.objoid = R.oid;
-- ~ members
SELECT member AS id, roleid AS role_id, admin_option FROM pg_catalog.pg_auth_members ORDER BY id, roleid::text;
-- tablespaces
SELECT T.oid::bigint AS id, T.spcname AS name, T.xmin AS state_number, pg_catalog.pg_get_userbyid(T.spcowner) AS owner,
  pg_catalog.pg_tablespace_location(T.oid) AS location, T.spcoptions AS options, D.description AS comment
FROM pg_catalog.pg_tablespace T LEFT JOIN pg_catalog.pg_shdescription D ON D.objoid = T.oid;
-- access methods, casts, extensions
SELECT A.oid AS access_method_id, A.xmin AS state_number, A.amname AS access_method_name, A.amhandler::oid AS handler_id, A.amtype
FROM pg_am A WHERE pg_catalog.age(A.xmin) <= coalesce(nullif(greatest(pg_catalog.age('3'::varchar::xid), -1), -1), 2147483647);
-- extensions
SELECT E.oid AS id, E.xmin AS state_number, extname AS name, extversion AS version, extnamespace AS schema_id, nspname AS schema_name,
  array(SELECT unnest FROM unnest(available_versions) WHERE unnest > extversion) AS available_updates
FROM pg_catalog.pg_extension E JOIN pg_namespace N ON E.extnamespace = N.oid
LEFT JOIN (SELECT name, array_agg(version) AS available_versions FROM pg_available_extension_versions() GROUP BY name) V ON E.extname = V.name;
-- sequences
SELECT cls.xmin AS sequence_state_number, sq.seqrelid AS sequence_id, cls.relname AS sequence_name,
  pg_catalog.format_type(sq.seqtypid, NULL) AS data_type, sq.seqstart AS start_value, sq.seqincrement AS inc_value,
  sq.seqmin AS min_value, sq.seqmax AS max_value, sq.seqcache AS cache_size, sq.seqcycle AS cycle_option,
  pg_catalog.pg_get_userbyid(cls.relowner) AS "owner"
FROM pg_catalog.pg_sequence sq JOIN pg_class cls ON sq.seqrelid = cls.oid WHERE cls.relnamespace = 'public'::regnamespace::oid;
-- types
SELECT T.oid AS type_id, T.xmin AS type_state_number, T.typname AS type_name, T.typtype AS type_sub_kind, T.typcategory AS type_category,
  T.typrelid AS class_id, T.typbasetype AS base_type_id,
  CASE WHEN T.typtype IN ('c', 'e') THEN NULL ELSE pg_catalog.format_type(T.typbasetype, T.typtypmod) END AS type_def,
  T.typndims AS dimensions_number, T.typdefault AS default_expression, T.typnotnull AS mandatory,
  pg_catalog.pg_get_userbyid(T.typowner) AS "owner"
FROM pg_catalog.pg_type T LEFT OUTER JOIN pg_catalog.pg_class C ON T.typrelid = C.oid
WHERE T.typnamespace = 'public'::regnamespace::oid AND (T.typtype IN ('d', 'e') OR C.relkind = 'c'::"char" OR (T.typtype = 'b'
  AND (T.typelem = 0 OR T.typcategory <> 'A')) OR T.typtype = 'p' AND NOT T.typisdefined) ORDER BY 1;
-- tables
SELECT T.relkind AS table_kind, T.relname AS table_name, T.oid AS table_id, T.xmin AS table_state_number,
  false AS table_with_oids, T.reltablespace AS tablespace_id, T.reloptions AS options, T.relpersistence AS persistence,
  (SELECT pg_catalog.array_agg(inhparent::bigint ORDER BY inhseqno)::varchar FROM pg_catalog.pg_inherits WHERE T.oid = inhrelid) AS ancestors,
  (SELECT pg_catalog.array_agg(inhrelid::bigint ORDER BY inhrelid)::varchar FROM pg_catalog.pg_inherits WHERE T.oid = inhparent) AS successors,
  T.relispartition AS is_partition, pg_catalog.pg_get_partkeydef(T.oid) AS partition_key,
  pg_catalog.pg_get_expr(T.relpartbound, T.oid) AS partition_expression, T.relam AS am_id,
  pg_catalog.pg_get_userbyid(T.relowner) AS "owner"
FROM pg_catalog.pg_class T
WHERE relnamespace = 'public'::regnamespace::oid AND relkind IN ('r', 'm', 'v', 'f', 'p') ORDER BY table_kind, table_id;
-- columns
WITH T AS (SELECT DISTINCT T.oid AS table_id, T.relname AS table_name FROM pg_catalog.pg_class T, pg_catalog.pg_attribute A
  WHERE T.relnamespace = 'public'::regnamespace::oid AND T.relkind IN ('r', 'm', 'v', 'f', 'p') AND A.attrelid = T.oid)
SELECT T.table_id, C.attnum AS column_position, C.attname AS column_name, C.xmin AS column_state_number, C.atttypmod AS type_mod,
  C.attndims AS dimensions_number, pg_catalog.format_type(C.atttypid, C.atttypmod) AS type_spec, C.atttypid AS type_id,
  C.attnotnull AS mandatory, pg_catalog.pg_get_expr(D.adbin, T.table_id) AS column_default_expression, NOT C.attislocal AS column_is_inherited,
  C.attfdwoptions AS options, C.attisdropped AS column_is_dropped, C.attidentity AS identity_kind, C.attgenerated AS generated
FROM T JOIN pg_catalog.pg_attribute C ON T.table_id = C.attrelid
LEFT JOIN pg_catalog.pg_attrdef D ON (C.attrelid, C.attnum) = (D.adrelid, D.adnum)
WHERE attnum > 0 ORDER BY table_id, attnum;
-- indexes
SELECT tab.oid AS table_id, tab.relkind AS table_kind, ind_stor.relname AS index_name, ind_head.indexrelid AS index_id,
  ind_stor.xmin AS state_number, ind_head.indisunique AS is_unique, ind_head.indisprimary AS is_primary,
  pg_catalog.pg_get_expr(ind_head.indpred, ind_head.indrelid) AS condition,
  (SELECT pg_catalog.array_agg(inhparent::bigint ORDER BY inhseqno)::varchar FROM pg_catalog.pg_inherits WHERE ind_stor.oid = inhrelid) AS ancestors,
  ind_stor.reltablespace AS tablespace_id, opcmethod AS access_method_id
FROM pg_catalog.pg_class tab
JOIN pg_catalog.pg_index ind_head ON ind_head.indrelid = tab.oid
JOIN pg_catalog.pg_class ind_stor ON tab.relnamespace = ind_stor.relnamespace AND ind_stor.oid = ind_head.indexrelid
LEFT JOIN pg_catalog.pg_opclass ON pg_opclass.oid = ANY(indclass)
WHERE tab.relnamespace = 'public'::regnamespace::oid AND tab.relkind IN ('r', 'm', 'v', 'p') AND ind_stor.relkind IN ('i', 'I');
-- columns of indexes
SELECT ind_head.indexrelid AS index_id, k AS col_idx, k <= indnkeyatts AS in_key, ((ind_head.indkey::int2[])[k - 1])::int AS column_position,
  ind_head.indoption[k - 1] AS column_options, ind_head.indcollation[k - 1] AS collation, colln.nspname AS collation_schema, collname AS collation_str,
  ind_head.indclass[k - 1] AS opclass, CASE WHEN opcdefault THEN NULL ELSE opcn.nspname END AS opclass_schema,
  CASE WHEN opcdefault THEN NULL ELSE opcname END AS opclass_str,
  CASE WHEN indexprs IS NULL THEN NULL WHEN ((ind_head.indkey::int2[])[k - 1])::int = 0
    THEN chr(27) || pg_catalog.pg_get_indexdef(ind_head.indexrelid, k::int, true)
    ELSE pg_catalog.pg_get_indexdef(ind_head.indexrelid, k::int, true) END AS expression
FROM pg_catalog.pg_index ind_head
JOIN pg_catalog.pg_class ind_stor ON ind_stor.oid = ind_head.indexrelid
CROSS JOIN unnest(ind_head.indkey) WITH ORDINALITY u(u, k)
LEFT JOIN pg_catalog.pg_collation coll ON coll.oid = ind_head.indcollation[k - 1]
LEFT JOIN pg_catalog.pg_namespace colln ON collnamespace = colln.oid
LEFT JOIN pg_catalog.pg_opclass opc ON opc.oid = ind_head.indclass[k - 1]
LEFT JOIN pg_catalog.pg_namespace opcn ON opcnamespace = opcn.oid
WHERE ind_stor.relnamespace = 'public'::regnamespace::oid AND ind_stor.relkind = 'i' ORDER BY index_id, k;
-- constraints
SELECT T.oid AS table_id, relkind AS table_kind, C.oid::bigint AS con_id, C.xmin::varchar::bigint AS con_state_id, conname AS con_name,
  contype AS con_kind, conkey AS con_columns, conindid AS index_id, confrelid AS ref_table_id, condeferrable AS is_deferrable,
  condeferred AS is_init_deferred, confupdtype AS on_update, confdeltype AS on_delete, connoinherit AS no_inherit,
  pg_catalog.pg_get_expr(conbin, T.oid) AS con_expression, confkey AS ref_columns, conexclop::int[] AS excl_operators
FROM pg_catalog.pg_constraint C JOIN pg_catalog.pg_class T ON C.conrelid = T.oid
WHERE relkind IN ('r', 'v', 'f', 'p') AND relnamespace = 'public'::regnamespace::oid AND contype IN ('p', 'u', 'f', 'c', 'x') AND connamespace = 'public'::regnamespace::oid;
-- ~ functions
WITH languages AS (SELECT oid AS lang_oid, lanname AS lang FROM pg_catalog.pg_language),
routines AS (SELECT proname AS r_name, prolang AS lang_oid, oid AS r_id, xmin AS r_state_number, proargnames AS arg_names,
  proargmodes AS arg_modes, proargtypes::int[] AS in_arg_types, proallargtypes::int[] AS all_arg_types, proargdefaults IS NOT NULL AS has_def,
  provariadic AS arg_variadic_id, prorettype AS ret_type_id, proretset AS ret_set, prokind AS kind, provolatile AS volatile_kind,
  proisstrict AS is_strict, prosecdef AS is_security_definer, proconfig AS configuration_parameters, procost AS cost,
  pg_catalog.pg_get_userbyid(proowner) AS "owner", prorows AS rows, proleakproof AS is_leakproof, proparallel AS concurrency_kind
  FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace::oid AND NOT (prokind = 'a'))
SELECT * FROM routines NATURAL JOIN languages;
-- rules and triggers
SELECT R.ev_class AS table_id, R.oid AS rule_id, R.xmin AS rule_state_number, R.rulename AS rule_name,
  pg_catalog.translate(ev_type, '1234', 'SUID') AS rule_event_code, R.ev_enabled AS rule_fire_mode, R.is_instead AS rule_is_instead
FROM pg_catalog.pg_rewrite R WHERE R.ev_class = 'shop'::regclass AND R.rulename <> '_RETURN'::name;
-- = comments
SELECT D.objsubid AS con_id, D.description FROM pg_catalog.pg_description D JOIN pg_catalog.pg_class C ON D.objoid = C.oid
WHERE C.relnamespace = 'public'::regnamespace::oid AND C.relname = 'shop' AND pg_catalog.pg_get_constraintdef(0) IS NULL ORDER BY 1;
-- views
SELECT T.relkind AS view_kind, T.oid AS view_id, pg_catalog.pg_get_viewdef(T.oid, true) IS NOT NULL AS source_text
FROM pg_catalog.pg_class T JOIN pg_catalog.pg_namespace N ON T.relnamespace = N.oid
WHERE N.oid = 'public'::regnamespace::oid AND T.relkind IN ('m', 'v') AND (T.relname) NOT IN ('x');
-- privileges
SELECT T.oid AS object_id, T.relacl AS acl FROM pg_catalog.pg_class T
WHERE relnamespace = 'public'::regnamespace::oid AND relacl IS NOT NULL ORDER BY object_id;
