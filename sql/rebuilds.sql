-- What a rebuild makes of settings and definitions.
--
-- The tree that it builds is for all sessions.  PostgreSQL lets expressions
-- into indexes that depend on settings, or on what a transaction may change
-- and roll back: there a background worker evaluates them, unless nobody else
-- can read the tree before the transaction has ended.

SET enable_seqscan = off;
SET client_min_messages = error;
CREATE VIEW states AS
	SELECT indexrelid::regclass AS index, state FROM euno_stat_indexes ORDER BY 1::text;
CREATE PROCEDURE evict(VARIADIC indexes regclass[]) LANGUAGE sql AS $$
	SELECT FROM unnest(indexes) i, euno_evict(i) $$;

-- Settings: who has changed one is the first to need a unique index.
CREATE TABLE settings (f float8, b bytea, p point, n text, z timestamp);
CREATE UNIQUE INDEX settings_f ON settings USING euno ((f::text));
CREATE UNIQUE INDEX settings_array ON settings USING euno ((ARRAY[f::text, n]));
CREATE UNIQUE INDEX settings_out ON settings USING euno (textin(float8out(f)));
CREATE UNIQUE INDEX settings_b ON settings USING euno ((b::text));
CREATE UNIQUE INDEX settings_p ON settings USING euno ((p::text));
CREATE UNIQUE INDEX settings_n ON settings USING euno (quote_ident(n));
CREATE UNIQUE INDEX settings_z ON settings USING euno ((z AT TIME ZONE 'EST'));
CREATE INDEX settings_partial ON settings USING euno (f) WHERE f::text = '0.1';
INSERT INTO settings VALUES
	(0.1, 'a', '(0.1,0)', 'plain', '2020-01-01'),
	(0.1::float8 + 0.2, '\000', '(0.30000000000000004,0)', 'quo"te', '2020-02-01');

CALL evict('settings_f', 'settings_array', 'settings_out', 'settings_b', 'settings_p',
	'settings_n', 'settings_z', 'settings_partial');
SET extra_float_digits = -15;
SET bytea_output = escape;
SET quote_all_identifiers = on;
SET timezone_abbreviations = 'Australia';
-- (A row has one entry: who would give it another than the worker is refused.)
INSERT INTO settings VALUES (7, 'b', '(7,7)', 'other', '2020-03-01');
SELECT euno_rebuild('settings_p'), euno_rebuild('settings_n'), euno_rebuild('settings_z');
INSERT INTO settings VALUES (7, 'b', '(7,7)', 'other', '2020-03-01');
SELECT euno_rebuild('settings_partial');
RESET extra_float_digits;
RESET bytea_output;
RESET quote_all_identifiers;
RESET timezone_abbreviations;
SELECT count(*) FROM settings WHERE f::text = '0.30000000000000004';
SELECT count(*) FROM settings WHERE ARRAY[f::text, n] = ARRAY['0.30000000000000004', 'quo"te'];
SELECT count(*) FROM settings WHERE textin(float8out(f)) = '0.30000000000000004';
SELECT count(*) FROM settings WHERE b::text = '\x00';
SELECT count(*) FROM settings WHERE p::text = '(0.30000000000000004,0)';
SELECT count(*) FROM settings WHERE quote_ident(n) = 'plain';
SELECT count(*) FROM settings WHERE z AT TIME ZONE 'EST' = '2020-01-01 05:00+00';
SELECT f FROM settings WHERE f > 0 AND f::text = '0.1';
SELECT f FROM settings WHERE b::text > '' ORDER BY f;
INSERT INTO settings (f) VALUES (0.1::float8 + 0.2);
-- Later versions let more that names a time zone into indexes.
SELECT current_setting('server_version_num')::int >= 160000 AS v16,
	current_setting('server_version_num')::int >= 170000 AS v17,
	current_setting('server_version_num')::int >= 180000 AS v18 \gset
\set added z
\set subtracted z
\set truncated z
\set parsed j
\if :v16
\set added 'date_add(z, ''1 month'', ''EST'')'
\set subtracted 'date_subtract(z, ''2 months'', ''EST'')'
\endif
\if :v17
\set parsed 'jsonb_path_query_first(j, ''$.datetime("YYYY-MM-DD HH24:MI TZ")'')'
\endif
\if :v18
\set truncated 'date_trunc(''day'', z, ''EST'')'
\endif
CREATE TABLE zones (z timestamptz, j jsonb);
INSERT INTO zones VALUES ('2024-01-31 02:00+00', '"2024-01-31 02:00 EST"');
CREATE UNIQUE INDEX zones_added ON zones USING euno ((:added));
CREATE UNIQUE INDEX zones_subtracted ON zones USING euno ((:subtracted));
CREATE UNIQUE INDEX zones_truncated ON zones USING euno ((:truncated));
CREATE UNIQUE INDEX zones_parsed ON zones USING euno ((:parsed));
CALL evict('zones_added', 'zones_subtracted', 'zones_truncated', 'zones_parsed');
SET timezone_abbreviations = 'Australia';
INSERT INTO zones VALUES ('infinity', '"2020-01-01 02:00 GMT"');
RESET timezone_abbreviations;
SELECT count(*) FROM zones WHERE :added = (SELECT min(:added) FROM zones WHERE z < 'infinity');
SELECT count(*) FROM zones WHERE :subtracted = (SELECT min(:subtracted) FROM zones WHERE z < 'infinity');
SELECT count(*) FROM zones WHERE :truncated = (SELECT min(:truncated) FROM zones WHERE z < 'infinity');
SELECT count(*) FROM zones WHERE :parsed = (SELECT :parsed FROM zones WHERE z < 'infinity');

-- Definitions that are rolled back: functions,
CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	AS 'BEGIN RETURN $1; END';
CREATE PROCEDURE define_f(plus int) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE
		PARALLEL SAFE AS ''BEGIN RETURN $1 + %s; END''', plus);
END $$;
CREATE TABLE functions (x int);
INSERT INTO functions SELECT generate_series(1, 2000);
CREATE INDEX functions_plain ON functions USING euno (f(x));
CREATE INDEX functions_partial ON functions USING euno (x) WHERE f(x) > 1990;
CREATE UNIQUE INDEX functions_unique ON functions USING euno (f(x), x);
ANALYZE functions;
CALL evict('functions_plain', 'functions_partial', 'functions_unique');
BEGIN;
CALL define_f(1000000);
SAVEPOINT s;
INSERT INTO functions VALUES (5000);
ROLLBACK TO s;
INSERT INTO functions VALUES (5000);
SELECT euno_rebuild('functions_plain');
SELECT euno_rebuild('functions_partial');
ROLLBACK;
SELECT count(*) FROM functions WHERE f(x) = 42;
SELECT count(*) FROM functions WHERE f(x) > 1990 AND x > 0;
INSERT INTO functions VALUES (42);
-- committed: what a worker has made of new rows meanwhile is given up,
CREATE FUNCTION new(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE TABLE news (x int);
CREATE INDEX news_x ON news USING euno (new(x), x);
CALL evict('news_x');
BEGIN;
CREATE OR REPLACE FUNCTION new(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN -$1; END';
INSERT INTO news VALUES (1), (2);
SELECT euno_rebuild('news_x');
COMMIT;
SELECT * FROM states WHERE index = 'news_x'::regclass;
SELECT euno_rebuild('news_x');
SELECT x FROM news WHERE new(x) = -2;
-- but not what the transaction has built itself, or found,
BEGIN;
CREATE OR REPLACE FUNCTION new(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN -$1; END';
CREATE INDEX news_new ON news USING euno (new(x));
INSERT INTO news VALUES (3);
COMMIT;
SELECT * FROM states WHERE index::text LIKE 'news%';
-- row types,
CREATE TYPE composite AS (a int, b int);
CREATE TABLE composites (x composite);
INSERT INTO composites SELECT ROW(i % 50, i * 7919 % 1000)::composite FROM generate_series(1, 1000) i;
CREATE INDEX composites_x ON composites USING euno (x);
ANALYZE composites;
CALL evict('composites_x');
BEGIN;
ALTER TYPE composite DROP ATTRIBUTE a;
SELECT euno_rebuild('composites_x');
ROLLBACK;
SELECT count(*) FROM composites WHERE x = ROW(7, 7 * 7919 % 1000)::composite;
CREATE TABLE rows (x int, y int);
INSERT INTO rows SELECT i, i FROM generate_series(1, 500) i;
CREATE INDEX rows_hash ON rows USING euno (hash_record(rows));
ANALYZE rows;
CALL evict('rows_hash');
BEGIN;
ALTER TABLE rows ADD z int DEFAULT 5;
SELECT euno_rebuild('rows_hash');
ROLLBACK;
SELECT count(*) FROM rows WHERE hash_record(rows) = hash_record(ROW(7, 7));
-- partitions,
CREATE TABLE parted (a int) PARTITION BY LIST (a);
CREATE TABLE part PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE names (x regclass, y int);
INSERT INTO names SELECT 'part', i FROM generate_series(1, 500) i;
CREATE UNIQUE INDEX names_root ON names USING euno (pg_partition_root(x), y);
ANALYZE names;
CALL evict('names_root');
BEGIN;
ALTER TABLE parted DETACH PARTITION part;
INSERT INTO names VALUES ('parted', 1000);
ROLLBACK;
SELECT count(*) FROM names WHERE pg_partition_root(x) = 'parted'::regclass AND y = 7;
-- and text search configurations.
CREATE TEXT SEARCH CONFIGURATION configuration (COPY = english);
CREATE TABLE documents (b text);
INSERT INTO documents SELECT 'runs ' || i FROM generate_series(1, 500) i;
CREATE INDEX documents_b ON documents USING euno (to_tsvector('configuration', b));
ANALYZE documents;
CALL evict('documents_b');
BEGIN;
ALTER TEXT SEARCH CONFIGURATION configuration ALTER MAPPING FOR asciiword WITH simple;
SELECT euno_rebuild('documents_b');
ROLLBACK;
SELECT count(*) FROM documents
	WHERE to_tsvector('configuration', b) = to_tsvector('configuration', 'running 7');

-- With the table locked the session builds, for itself:
CALL evict('functions_plain', 'functions_unique');
BEGIN;
LOCK TABLE functions;
CALL define_f(1000000);
INSERT INTO functions VALUES (5000);
SELECT euno_rebuild('functions_plain');
SELECT count(*) FROM functions WHERE f(x) = 1000042;
SELECT * FROM states WHERE index::text LIKE 'functions%';
ROLLBACK;
SELECT * FROM states WHERE index::text LIKE 'functions%';
INSERT INTO functions VALUES (42);
-- up to a savepoint,
CALL evict('functions_unique');
BEGIN;
LOCK TABLE functions;
SAVEPOINT s;
CALL define_f(1000000);
INSERT INTO functions VALUES (5000);
ROLLBACK TO s;
SELECT * FROM states WHERE index = 'functions_unique'::regclass;
INSERT INTO functions VALUES (42);
ROLLBACK;
SELECT * FROM states WHERE index = 'functions_unique'::regclass;
-- or one that is released,
BEGIN;
LOCK TABLE functions;
SAVEPOINT s;
CALL define_f(1000000);
SAVEPOINT s2;
INSERT INTO functions VALUES (5000);
RELEASE s2;
ROLLBACK TO s;
SELECT * FROM states WHERE index = 'functions_unique'::regclass;
COMMIT;
-- until it commits, for its settings end there,
BEGIN;
LOCK TABLE functions;
INSERT INTO functions VALUES (5001);
SELECT * FROM states WHERE index = 'functions_unique'::regclass;
COMMIT;
SELECT * FROM states WHERE index = 'functions_unique'::regclass;
-- or is prepared.
BEGIN;
LOCK TABLE functions;
CALL define_f(1000000);
INSERT INTO functions VALUES (5000);
PREPARE TRANSACTION 'rebuilds';
SELECT * FROM states WHERE index = 'functions_unique'::regclass;
ROLLBACK PREPARED 'rebuilds';
INSERT INTO functions VALUES (42);
-- An index of this transaction.
BEGIN;
CREATE UNIQUE INDEX functions_new ON functions USING euno (f(x));
CALL evict('functions_new');
INSERT INTO functions VALUES (5002);
SELECT count(*) FROM functions WHERE f(x) = 5002;
COMMIT;
INSERT INTO functions VALUES (5002);
DROP INDEX functions_new;
-- In a parallel worker, which has none of its leader's locks.
CREATE FUNCTION evict_in_query(index regclass) RETURNS int PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM euno_evict(index);
	RETURN 42;
END $$;
DROP INDEX functions_unique;
SELECT euno_rebuild('functions_plain');
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
BEGIN;
LOCK TABLE functions;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL min_parallel_index_scan_size = 0;
SET LOCAL parallel_leader_participation = off;
SET LOCAL enable_bitmapscan = off;
SELECT trim(line) FROM plan($$
	SELECT sum(x) FROM functions WHERE f(x) >= (SELECT evict_in_query('functions_plain')) $$) line
	WHERE line LIKE '%Scan%';
SELECT sum(x) FROM functions WHERE f(x) >= (SELECT evict_in_query('functions_plain'));
ROLLBACK;
SELECT * FROM states WHERE index = 'functions_plain'::regclass;

-- A temporary table's stays when its transaction commits, for only this
-- session can read it.
CREATE TEMP TABLE temporary AS SELECT x FROM functions;
CREATE UNIQUE INDEX temporary_f ON temporary USING euno (f(x));
CALL evict('temporary_f');
INSERT INTO temporary VALUES (6000);
SELECT * FROM states WHERE index = 'temporary_f'::regclass;
CALL evict('temporary_f');
BEGIN;
CALL define_f(1000000);
INSERT INTO temporary VALUES (6001);
ROLLBACK;
SELECT * FROM states WHERE index = 'temporary_f'::regclass;
INSERT INTO temporary VALUES (42);

-- A subtransaction that begins while the tree is built, or later, and is rolled
-- back, has changed nothing for it: an exception that a function handles.
CREATE FUNCTION number(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN $1::int;
EXCEPTION WHEN invalid_text_representation THEN
	RETURN NULL;
END $$;
CREATE TEMP TABLE numbers AS
	SELECT CASE WHEN i % 10 = 0 THEN 'none' ELSE i::text END AS x FROM generate_series(1, 500) i;
CREATE UNIQUE INDEX numbers_x ON numbers USING euno (number(x));
CALL evict('numbers_x');
BEGIN;
INSERT INTO numbers VALUES ('501');
SAVEPOINT s;
INSERT INTO numbers VALUES ('none');
ROLLBACK TO s;
SELECT * FROM states WHERE index = 'numbers_x'::regclass;
COMMIT;
INSERT INTO numbers VALUES ('501');

-- The owner is told what went wrong, as if the session had built it.
CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF $1 = 7 THEN
		RAISE EXCEPTION 'no %', $1 USING ERRCODE = 'P0007', HINT = 'Try another one.';
	END IF;
	RAISE NOTICE 'not 7 but %', $1;
	RETURN $1;
END $$;
CREATE TABLE failing (x int);
CREATE UNIQUE INDEX failing_x ON failing USING euno (fails(x)) WHERE x <> 7;
INSERT INTO failing VALUES (6), (7);
UPDATE pg_index SET indpred = NULL WHERE indexrelid = 'failing_x'::regclass;
CALL evict('failing_x');
\set SHOW_CONTEXT never
SET client_min_messages = notice;
SELECT euno_rebuild('failing_x');
\echo :LAST_ERROR_SQLSTATE
DROP TABLE failing;
DROP FUNCTION fails;

DROP TABLE settings, zones, functions, composites, rows, names, parted, documents, temporary, numbers, news;
DROP FUNCTION f, number, new, evict_in_query, plan;
DROP PROCEDURE define_f, evict;
DROP TYPE composite;
DROP TEXT SEARCH CONFIGURATION configuration;
DROP VIEW states;
