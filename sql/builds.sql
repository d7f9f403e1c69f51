-- Builds sort entries in several ways: not at all if they come in order, as
-- two or three numbers if all are short and of one length, else in a buffer; rows
-- with abbreviations, guesses or neither; in memory, or in runs.  The order must
-- be right, and no entry lost, whatever comes.
SET max_parallel_maintenance_workers = 0;
CREATE TYPE builds_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE builds_mood ADD VALUE 'meh' BEFORE 'ok';
CREATE TABLE builds AS
	SELECT n AS ascending, -n AS descending,
		hashint8(n)::bigint * 4294967296 + hashint8(-n) AS random,
		n % 7 AS few, (n % 2)::float8 AS halves,
		CASE WHEN n % 1000 <> 0 THEN n END AS holes,
		CASE WHEN n > 70000 THEN -0.0 ELSE n END::float8 AS payload_late,
		md5(n::text) AS long, md5(n::text)::uuid AS uuid,
		CASE WHEN n % 10 <> 0 THEN md5((n % 5000)::text) END AS long_holes,
		(n::bigint * 7919 % 5000 - 2500) / 7.0 AS number,
		CASE WHEN n % 10 <> 0 THEN n % 11 * 0.1 END AS number_holes,
		CASE n % 3 WHEN 0 THEN '::1'::inet + n WHEN 1 THEN '192.168.0.0'::inet + n
			ELSE set_masklen('10.0.0.0'::inet + n % 5000, 8 + n % 25) END AS address,
		CASE WHEN n % 10 <> 0 THEN '10.0.0.0'::inet + n % 5000 END AS address_holes,
		make_interval(months => n % 3 - 1, days => n * 7 % 61 - 30, secs => n % 9 * 86400 - 1e-6 * (n % 5)) AS span,
		CASE WHEN n % 10 <> 0 THEN make_interval(days => n % 100) END AS span_holes,
		(time '00:00' + n % 24 * interval '1 hour') AT TIME ZONE make_interval(hours => n % 13 - 6) AS zoned,
		(enum_range(NULL::builds_mood))[1 + n % 4] AS mood,
		ARRAY[n % 100, n]::numeric[] AS no_heads
	FROM generate_series(1, 80000) AS n;

-- Abbreviations with a comparator of their own.
CREATE FUNCTION compared_cmp(numeric, numeric) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_cmp';
CREATE OPERATOR CLASS compared FOR TYPE numeric USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 compared_cmp(numeric, numeric), FUNCTION 2 (numeric, numeric) numeric_sortsupport(internal);

CREATE FUNCTION build(columns text, memory text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SET LOCAL maintenance_work_mem = %L', memory);
	EXECUTE format('CREATE INDEX builds_index ON builds USING euno (%s)', columns);
	PERFORM euno_index_check('builds_index', true);
	DROP INDEX builds_index;
	RETURN 'ok';
END $$;

SELECT columns, memory, build(columns, memory)
	FROM unnest(ARRAY['ascending', 'descending', 'random', 'few', 'halves', 'holes',
					  'holes NULLS FIRST', 'payload_late', 'few, halves', 'few, few',
					  'random) INCLUDE (few', 'long COLLATE "C"', 'long',
					  'uuid', 'uuid, few', 'halves, long', 'long_holes', 'long_holes DESC, few',
					  'number', 'number DESC', 'number_holes NULLS FIRST, long', 'number_holes DESC) INCLUDE (long',
					  'number compared', 'number compared DESC', 'number_holes compared, few',
					  'address', 'address DESC', 'address_holes NULLS FIRST, few', 'address_holes DESC) INCLUDE (few',
					  'span', 'span DESC', 'span_holes NULLS FIRST, span', 'span_holes DESC, few', 'zoned', 'zoned DESC, few',
					  'mood', 'mood DESC', 'mood, random', 'mood DESC, few', 'mood, few, halves DESC, random', 'mood, holes DESC, mood, span', 'mood, long', 'few, mood', 'few DESC, no_heads', 'random, no_heads', 'holes NULLS FIRST, span',
					  'holes DESC, mood', 'halves, mood', 'payload_late DESC, zoned', 'uuid, mood', 'uuid DESC, span', 'long COLLATE "C", mood',
					  'long_holes COLLATE "C" DESC, no_heads', 'span, no_heads', 'span_holes DESC, mood', 'zoned DESC, no_heads',
					  'few, long_holes DESC', 'few DESC NULLS FIRST, long, few', 'address, mood', 'address DESC, no_heads', 'address_holes NULLS FIRST, no_heads', 'number, mood',
					  'no_heads', 'no_heads DESC']) WITH ORDINALITY AS c(columns, number),
		unnest(ARRAY['1MB', '64MB']) AS m(memory)
	ORDER BY number, memory;

-- Columns behind others of any length, dropped and added ones, in rows with and
-- without NULLs: what is in the index is what is in the table.
CREATE TABLE widths (a int2, b "char", c text, d int8, e name, f varchar, gone text,
					 g int2, h numeric, i int4[], j float8);
INSERT INTO widths
	SELECT n, 'b', repeat('c', n % 300), n, n, repeat('f', n % 3), repeat('gone', n % 40), n,
		n / 7.0, ARRAY[n], n FROM generate_series(1, 500) n;
ALTER TABLE widths DROP COLUMN gone;
INSERT INTO widths
	SELECT n, 'b', CASE WHEN n % 2 = 0 THEN 'c' END, n, n, repeat('f', n % 3), n, n / 7.0,
		ARRAY[n], n FROM generate_series(1, 500) n;
ALTER TABLE widths ADD COLUMN k text DEFAULT 'k', ADD COLUMN l int8;
INSERT INTO widths
	SELECT n, 'b', repeat('c', n % 300), n, n, repeat('f', n % 3), n, n / 7.0, ARRAY[n], n,
		repeat('k', n % 9), n FROM generate_series(1, 500) n;
CREATE FUNCTION values_of(name text, index boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('enable_seqscan', (NOT index)::text, true),
		set_config('enable_indexscan', index::text, true);
	EXECUTE format('SELECT md5(string_agg(coalesce(%1$I::text, ''NULL''), '','' ORDER BY %1$I)) FROM widths', name)
		INTO result;
	RETURN result;
END $$;
CREATE FUNCTION build_of(name text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	result boolean;
BEGIN
	EXECUTE format('CREATE INDEX widths_index ON widths USING euno (%I)', name);
	ANALYZE widths;
	result := values_of(name, true) = values_of(name, false);
	DROP INDEX widths_index;
	RETURN result;
END $$;
SET enable_bitmapscan = off;
SELECT attname, build_of(attname) FROM pg_attribute
	WHERE attrelid = 'widths'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
SET enable_seqscan = off;
CREATE INDEX widths_index ON widths USING euno (f);
EXPLAIN (COSTS OFF) SELECT md5(string_agg(coalesce(f::text, 'NULL'), ',' ORDER BY f)) FROM widths;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP FUNCTION build_of, values_of;
DROP TABLE widths;

-- Wrong guesses: the comparator is the judge.
SET euno.debug_wrong_guesses = on;
SELECT columns, memory, build(columns, memory)
	FROM unnest(ARRAY['long', 'long DESC, few', 'long_holes', 'long_holes DESC NULLS LAST) INCLUDE (few',
					  '(repeat(''same'', 4) || long)', 'mood, random', 'mood DESC, few, halves', 'halves, long', 'few, long_holes DESC']) WITH ORDINALITY AS c(columns, number),
		unnest(ARRAY['1MB', '64MB']) AS m(memory)
	ORDER BY number, memory;
CREATE INDEX builds_index ON builds USING euno (long);
RESET euno.debug_wrong_guesses;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TEMP TABLE by_index AS SELECT row_number() OVER () AS place, long FROM (SELECT long FROM builds ORDER BY long) AS o;
DROP INDEX builds_index;
CREATE TEMP TABLE by_sort AS SELECT row_number() OVER () AS place, long FROM (SELECT long FROM builds ORDER BY long) AS o;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(*), count(*) FILTER (WHERE i.long = s.long) AS same FROM by_index AS i JOIN by_sort AS s USING (place);
DROP TABLE builds, by_index, by_sort;
DROP OPERATOR FAMILY compared USING euno;
DROP FUNCTION compared_cmp;

-- Text for which abbreviations and guesses need larger buffers, in runs.
CREATE TABLE builds AS
	SELECT repeat(md5(n::text), 30 + n % 50) AS text FROM generate_series(1, 6000) AS n;
SELECT build(format('text COLLATE %I', locale), '1MB')
	FROM unnest(ARRAY['default', (SELECT max(collname) FROM pg_collation WHERE collname IN ('C', 'und-x-icu'))]) AS locale;
DROP TABLE builds;

-- Text in several scripts, with letters of one place, ignored ones, and others
-- whose places are not asked for.
CREATE TABLE builds AS
	SELECT n, repeat(CASE n % 3 WHEN 0 THEN 'chata' ELSE 'c' END, n % 2) ||
			(ARRAY['', 'A', 'a', U&'\00e1', U&'\0441', U&'\3042', U&'\304c', U&'\0e40', U&'\4e2d', U&'\d55c',
				   U&'\+01F600', U&'\00ad', chr(1), '-', ' '])[n % 15 + 1] || n % 13 || repeat('z', n % 97) || n AS text
	FROM generate_series(1, 20000) AS n;
SELECT count(build(format('text COLLATE %I %s', locale, direction), memory))
	FROM unnest(ARRAY['default', (SELECT max(collname) FROM pg_collation WHERE collname IN ('C', 'und-x-icu'))]) AS locale,
		unnest(ARRAY['ASC', 'DESC']) AS direction, unnest(ARRAY['1MB', '64MB']) AS memory;
SET euno.debug_wrong_guesses = on;
SELECT count(build(format('text COLLATE %I %s', locale, direction), memory))
	FROM unnest(ARRAY['default', (SELECT max(collname) FROM pg_collation WHERE collname IN ('C', 'und-x-icu'))]) AS locale,
		unnest(ARRAY['ASC', 'DESC']) AS direction, unnest(ARRAY['1MB', '64MB']) AS memory;
RESET euno.debug_wrong_guesses;
DROP TABLE builds;
DROP FUNCTION build;

-- CREATE INDEX looks at a page once if all on it is settled, and leaves others to
-- PostgreSQL: rows that are being changed, and broken HOT chains.
BEGIN;
CREATE TABLE settled AS SELECT n, n % 10 AS v FROM generate_series(1, 5000) AS n;
UPDATE settled SET v = 100 WHERE n BETWEEN 1000 AND 1100;
DELETE FROM settled WHERE n BETWEEN 3000 AND 3010;
SAVEPOINT undone;
INSERT INTO settled SELECT n, 200 FROM generate_series(1, 500) AS n;
ROLLBACK TO undone;
SELECT seq_scan AS scans FROM pg_stat_xact_user_tables WHERE relname = 'settled' \gset
CREATE INDEX settled_euno ON settled USING euno (v);
SELECT seq_scan - :scans AS scans FROM pg_stat_xact_user_tables WHERE relname = 'settled';
CREATE INDEX settled_btree ON settled USING btree (v);
SELECT amname, reltuples, indcheckxmin
	FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
	WHERE indrelid = 'settled'::regclass ORDER BY amname;
COMMIT;
DROP INDEX settled_btree;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(n), sum(v) FROM settled WHERE v >= 0;
UPDATE settled SET n = -n WHERE v = 3;
VACUUM settled;
UPDATE settled SET n = n + 1 WHERE v = 5;
REINDEX INDEX settled_euno;
SELECT euno_index_check('settled_euno', true);
SELECT count(*), sum(n), sum(v) FROM settled WHERE v >= 0;
SET enable_seqscan = on;
SET enable_indexscan = off;
SELECT count(*), sum(n), sum(v) FROM settled WHERE v >= 0;
DROP TABLE settled;
