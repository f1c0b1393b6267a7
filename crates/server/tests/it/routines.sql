CREATE TYPE mood AS ENUM ('well', 'ill')
CREATE FUNCTION plain(a int, b varchar(3), c int DEFAULT 7) RETURNS int LANGUAGE sql AS $$ SELECT a $$
CREATE FUNCTION strict_one(text) RETURNS text[] LANGUAGE sql STRICT AS 'SELECT ARRAY[$1]'
CREATE FUNCTION some_of(low bigint) RETURNS TABLE (id int, "Name" text) LANGUAGE sql AS 'SELECT 1, ''x'''
CREATE FUNCTION outs(a int, OUT twice int, INOUT c numeric) LANGUAGE sql AS 'SELECT a * 2, c'
CREATE FUNCTION one_out(OUT m mood) LANGUAGE sql AS $$ SELECT 'well'::mood $$
CREATE FUNCTION many(OUT a int, OUT b int) RETURNS SETOF record LANGUAGE sql AS 'SELECT 1, 2'
CREATE FUNCTION set_of() RETURNS SETOF double precision LANGUAGE sql AS 'SELECT 1.0::float8'
CREATE FUNCTION nothing() RETURNS void LANGUAGE sql AS ''
CREATE PROCEDURE proc(a int, INOUT b timestamptz, c int DEFAULT 7) LANGUAGE sql AS 'SELECT b'
CREATE PROCEDURE bare() LANGUAGE sql AS $x$ SELECT '$procedure$' $x$
CREATE FUNCTION lent(a int) RETURNS int LANGUAGE sql STRICT SECURITY DEFINER AS 'SELECT a'
CREATE FUNCTION elsewhere() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = public, "Other" AS 'SELECT 1'
ALTER FUNCTION plain(int, varchar, int) SET search_path TO 'public'
-- asked
SELECT proname, prosecdef, proconfig FROM pg_proc WHERE prosecdef OR proconfig IS NOT NULL ORDER BY proname;
SELECT routine_name, security_type FROM information_schema.routines WHERE routine_schema = 'public' ORDER BY 1;
SELECT proname, prokind, proretset, proisstrict, prosecdef, pronargs, pronargdefaults, proargnames, proargmodes,
    prosrc, prosqlbody IS NULL, proacl, procost, prorows
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public' ORDER BY proname;
SELECT proname, pg_get_function_result(p.oid), pg_get_function_arguments(p.oid), pg_get_function_identity_arguments(p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public' ORDER BY proname;
SELECT proname, format_type(prorettype, NULL), pg_catalog.oidvectortypes(proargtypes), proallargtypes IS NULL,
    array_length(proallargtypes, 1)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public' ORDER BY proname;
SELECT pg_get_functiondef(p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public' ORDER BY proname;
SELECT pg_catalog.pg_get_functiondef('plain'::pg_catalog.regproc::pg_catalog.oid);
SELECT pg_catalog.pg_get_functiondef('public.plain(int, varchar, int)'::pg_catalog.regprocedure::pg_catalog.oid);
SELECT 'plain'::regproc, 'some_of'::regproc::text, (SELECT proname FROM pg_proc WHERE oid = 'plain'::regproc);
SELECT 'nosuch'::regproc;
SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type",
    pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types",
    CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END as "Type",
    CASE WHEN prosecdef THEN 'definer' ELSE 'invoker' END AS "Security",
    pg_catalog.array_to_string(p.proacl, E'\n') AS "Access privileges",
    l.lanname as "Language",
    COALESCE(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as "Source code",
    pg_catalog.obj_description(p.oid, 'pg_proc') as "Description"
FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    LEFT JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE pg_catalog.pg_function_is_visible(p.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema'
ORDER BY 1, 2, 4;
SELECT routine_schema, routine_name, routine_type, data_type, type_udt_schema, type_udt_name, routine_body,
    routine_definition, external_language, is_null_call, security_type, dtd_identifier
FROM information_schema.routines WHERE routine_schema = 'public' ORDER BY routine_name;
SELECT r.routine_name, ordinal_position, parameter_mode, is_result, parameter_name, p.data_type, p.udt_schema,
    p.udt_name, p.dtd_identifier
FROM information_schema.parameters p JOIN information_schema.routines r USING (specific_schema, specific_name)
WHERE specific_schema = 'public' ORDER BY 1, 2;
SELECT NULL AS procedure_cat, n.nspname AS procedure_schem, p.proname AS procedure_name, NULL, NULL, NULL,
    d.description AS remarks, 2 AS procedure_type
FROM pg_catalog.pg_namespace n, pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_description d ON (p.oid=d.objoid)
    LEFT JOIN pg_catalog.pg_class c ON (d.classoid=c.oid AND c.relname='pg_proc')
    LEFT JOIN pg_catalog.pg_namespace pn ON (c.relnamespace=pn.oid AND pn.nspname='pg_catalog')
WHERE p.pronamespace=n.oid AND p.prokind='p' AND n.nspname LIKE 'public' ORDER BY procedure_schem, procedure_name;
SELECT n.nspname, p.proname, t.typtype FROM pg_catalog.pg_proc p, pg_catalog.pg_namespace n, pg_catalog.pg_type t
WHERE p.pronamespace=n.oid AND p.prorettype=t.oid AND n.nspname LIKE 'public' ORDER BY n.nspname, p.proname;
