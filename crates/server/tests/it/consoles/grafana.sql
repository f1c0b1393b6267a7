-- = the version
SELECT current_setting('server_version_num')::int / 100 >= 1500;
-- = extensions
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';
-- schemas of the query builder
SELECT quote_ident(schema_name) FROM information_schema.schemata
WHERE schema_name NOT LIKE 'pg\_%' AND schema_name NOT LIKE '\_%' AND schema_name <> 'information_schema';
-- = tables
SELECT quote_ident(table_name) AS "table" FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog')
  AND table_type IN ('BASE TABLE', 'VIEW')
  AND quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
      array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
    string_to_array(current_setting('search_path'), ',') s)
ORDER BY 1;
-- = columns of a table
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE quote_ident(table_name) = 'shop' AND table_schema = 'public' ORDER BY ordinal_position;
-- = a table with a time and a value
SELECT quote_ident(table_name) AS table_name,
  (SELECT quote_ident(column_name) FROM information_schema.columns c WHERE c.table_schema = t.table_schema
     AND c.table_name = t.table_name AND udt_name IN ('timestamptz', 'timestamp') ORDER BY ordinal_position LIMIT 1) AS time_column,
  (SELECT quote_ident(column_name) FROM information_schema.columns c WHERE c.table_schema = t.table_schema
     AND c.table_name = t.table_name AND udt_name = 'float8' ORDER BY ordinal_position LIMIT 1) AS value_column
FROM information_schema.tables t WHERE EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = t.table_schema
  AND c.table_name = t.table_name AND udt_name IN ('timestamptz', 'timestamp')) AND t.table_schema = 'public' ORDER BY 1 LIMIT 1;
-- = columns of a time
SELECT quote_ident(column_name) FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'shop'
  AND data_type IN ('timestamp without time zone', 'timestamp with time zone', 'bigint', 'integer', 'double precision', 'real');
-- = the type of a column
SELECT udt_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'shop' AND column_name = 'made';
-- ~ aggregate functions
SELECT DISTINCT proname FROM pg_aggregate INNER JOIN pg_proc ON pg_aggregate.aggfnoid = pg_proc.oid
  INNER JOIN pg_type ON pg_type.oid = pg_proc.prorettype
WHERE pronargs = 1 AND typname IN ('float8') AND aggkind = 'n' AND proname IN ('avg', 'sum', 'max') ORDER BY 1;
-- = a time series
SELECT floor(extract(epoch FROM made) / 3600) * 3600 AS "time", avg(weight) AS "weight" FROM shop
WHERE made BETWEEN '2026-01-01T00:00:00Z' AND '2026-12-31T23:59:59.999Z' GROUP BY 1 ORDER BY 1;
-- = a time series with a name for each line
SELECT made AS "time", title AS metric, weight AS value FROM shop
WHERE made >= '2026-01-01T00:00:00Z' AND made <= '2026-12-31T00:00:00Z' ORDER BY 1, 2;
-- = whole seconds
SELECT id AS time, price FROM shop WHERE id >= 1 AND id <= 1798675200 ORDER BY 1;
-- = the interval of a dashboard
SELECT date_trunc('hour', made) AS time, count(*) FROM shop WHERE extract(epoch FROM made) >= 1767225600 GROUP BY 1 ORDER BY 1;
-- = values of a variable
SELECT DISTINCT title AS __text, id AS __value FROM shop WHERE title ~* '' ORDER BY 1;
-- = an annotation
SELECT extract(epoch FROM made) * 1000 > 0 AS time, title AS text, array_to_string(tags, ',') AS tags FROM shop ORDER BY id;
