-- Index-only scans whose columns nobody reads: which are taken for such, and that
-- they return as many rows as there are
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA unread;
SET search_path = unread, public;
CREATE TABLE u (a int, b text COLLATE "C", n numeric, g int) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT CASE WHEN g % 10 > 0 THEN g END, g % 700, g % 300 / 7.0, g % 5 FROM generate_series(1, 20000) g;
CREATE INDEX u_a ON u USING euno (a);
CREATE INDEX u_b ON u USING euno (b) WITH (structure = art);
CREATE INDEX u_n ON u USING euno (n, a) INCLUDE (g);
CREATE INDEX u_g ON u USING euno (g, a);
VACUUM ANALYZE u;
CREATE TABLE plain AS TABLE u;
ANALYZE plain;

-- Does some scan of the query do without keys?  And is the answer right?
CREATE FUNCTION look(query text) RETURNS TABLE (unread bool, same bool) LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	theirs text;
BEGIN
	unread := false;
	BEGIN
		PERFORM set_config('euno.debug_stop', 'scan-unread:error', true);
		EXECUTE query;
	EXCEPTION WHEN others THEN
		unread := true;
		IF SQLERRM NOT LIKE '%scan-unread%' THEN
			RAISE;
		END IF;
	END;
	PERFORM set_config('euno.debug_stop', '', true);
	EXECUTE format('SELECT string_agg(x::text, E''\n'' ORDER BY x::text) FROM (%s) x', query) INTO ours;
	EXECUTE format('SELECT string_agg(x::text, E''\n'' ORDER BY x::text) FROM (%s) x', regexp_replace(query, '\mu\M', 'plain', 'g')) INTO theirs;
	same := ours = theirs;
	RETURN NEXT;
END $$;

\pset format unaligned
-- nobody reads them
SELECT q, (look(q)).* FROM unnest(ARRAY[
	'SELECT count(*) FROM u',
	'SELECT count(*), count(1), 7 FROM u WHERE a > 100',
	'SELECT count(*) FROM u WHERE a IS NULL',
	'SELECT count(*) FROM u WHERE b > ''3''',
	'SELECT count(*) FROM u WHERE n > 10 AND n < 30',
	'SELECT count(*) FROM u WHERE g IN (1, 3) AND a > 0',
	'SELECT count(*) FROM u HAVING count(*) > 10',
	'SELECT sum(1), max(random() * 0) FROM u WHERE a > 0',
	'SELECT x, (SELECT count(*) FROM u WHERE a > x) FROM generate_series(-500, 20000, 500) x',
	'SELECT x, c FROM generate_series(0, 4) x, LATERAL (SELECT count(*) AS c FROM u WHERE g = x OFFSET 0) y',
	'WITH c AS MATERIALIZED (SELECT count(*) FROM u WHERE a < 15000) SELECT * FROM c',
	'SELECT count(*) FROM (SELECT a FROM u WHERE a > 5 ORDER BY a LIMIT 3000) x',
	'SELECT count(*) FROM (SELECT 1 FROM u WHERE a > 9000 UNION ALL (SELECT a FROM u WHERE a < 5000 LIMIT 900) OFFSET 7) x',
	'SELECT count(*) FROM u WHERE a > 100 UNION ALL SELECT count(*) FROM u WHERE b < ''3''',
	'SELECT count(*) > 5000 FROM u WHERE a > (SELECT count(*) / 2 FROM u)']) q;
-- somebody does
SELECT q, (look(q)).* FROM unnest(ARRAY[
	'SELECT count(a) FROM u',
	'SELECT count(*), sum(a) FROM u WHERE a > 100',
	'SELECT count(*) FILTER (WHERE a % 2 = 0) FROM u WHERE a > 0',
	'SELECT count(*) FROM u WHERE a > 0 AND a % 2 = 0',
	'SELECT g, count(*) FROM u WHERE g > 1 GROUP BY g',
	'SELECT count(*) FROM u WHERE g > 1 GROUP BY g',
	'SELECT count(DISTINCT g) FROM u WHERE g > 1',
	'SELECT count(*) FROM (SELECT DISTINCT n FROM u) x',
	'SELECT count(*) FROM (SELECT g FROM u WHERE g > 1 ORDER BY g FETCH FIRST 3000 ROWS WITH TIES) x',
	'SELECT count(*) FROM (SELECT a FROM u WHERE a > 5 UNION SELECT a FROM u WHERE a < 0) x',
	'SELECT count(DISTINCT a) FROM (SELECT a FROM u WHERE a > 5 UNION ALL SELECT a FROM u WHERE a < 0) x',
	'SELECT max(b) FROM u WHERE b > ''1'' AND a > 0',
	'SELECT count(*) OVER () FROM u WHERE a > 19000',
	'SELECT n, a, g FROM u WHERE n > 30',
	'SELECT (SELECT count(*) FROM u WHERE a = x) FROM generate_series(1, 100) x']) q;
\pset format aligned

-- The partitions of a table
CREATE TABLE parts (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000);
CREATE TABLE parts_2 (x text, b int, a int);
ALTER TABLE parts_2 DROP x;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (5000) TO (20000);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT PARTITION BY RANGE (a);
CREATE TABLE parts_3_1 PARTITION OF parts_3 DEFAULT;
INSERT INTO parts SELECT g, g % 9 FROM generate_series(1, 30000) g;
CREATE INDEX ON parts USING euno (a, b);
VACUUM ANALYZE parts;
EXPLAIN (COSTS off) SELECT count(*) FROM parts WHERE a > 3000;
SELECT (look('SELECT count(*) FROM parts')).unread, count(*) FROM parts;
SELECT (look('SELECT count(*) FROM parts WHERE a > 3000')).unread, count(*) FROM parts WHERE a > 3000;
SELECT (look('SELECT count(b) FROM parts WHERE a > 3000')).unread, count(b) FROM parts WHERE a > 3000;
SELECT (look('SELECT tableoid, count(*) FROM parts WHERE a > 3000 GROUP BY tableoid')).unread,
	array_agg(count) FROM (SELECT count(*) FROM parts WHERE a > 3000 GROUP BY tableoid ORDER BY 1) x;

-- In workers
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE u SET (parallel_workers = 2);
EXPLAIN (COSTS off) SELECT count(*) FROM u WHERE a > 5;
SELECT count(*) FROM u WHERE a > 5;
SET parallel_leader_participation = off;
SELECT * FROM look('SELECT count(*) FROM u WHERE a > 5');
SELECT * FROM look('SELECT count(a) FROM u WHERE a > 5');
RESET max_parallel_workers_per_gather;

-- Rows that are not visible to all, dead to all, or not yet there
BEGIN;
DELETE FROM u WHERE a % 3 = 0;
INSERT INTO u SELECT -g, g, g, g FROM generate_series(1, 3000) g;
SELECT count(*) FROM u WHERE a > -2000;
SAVEPOINT s;
DELETE FROM u WHERE a < 0;
SELECT count(*) FROM u WHERE a > -2000;
ROLLBACK TO s;
SELECT count(*) FROM u WHERE a > -2000;
DECLARE c CURSOR FOR SELECT count(*) FROM u WHERE a > -2000;
INSERT INTO u SELECT -g FROM generate_series(1, 100) g;
FETCH c;
ROLLBACK;
SELECT count(*) FROM u WHERE a > -2000;
DELETE FROM u WHERE a % 3 = 0;
SELECT count(*) FROM u WHERE a > -2000;
SELECT count(*) FROM u WHERE a > -2000;
VACUUM u;
SELECT count(*) FROM u WHERE a > -2000;
SELECT euno_index_check('u_a', true), euno_index_check('u_b', true), euno_index_check('u_n', true);

-- Trees are given up between scans of one query
CREATE FUNCTION evict() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM euno_evict('u_a'); RETURN 0; END $$;
SELECT count(*), sum(CASE WHEN x THEN evict() END) FROM (SELECT i % 2 = 0 AS x, (SELECT count(*) FROM u WHERE a > 5 + i) FROM generate_series(1, 6) i OFFSET 0) y;

-- An error in the middle leaves nothing behind
DO $$
BEGIN
	FOR i IN 1..20 LOOP
		BEGIN
			PERFORM count(*) / 0 FROM u WHERE a > 0;
		EXCEPTION WHEN division_by_zero THEN
		END;
	END LOOP;
END $$;
SELECT count(*) FROM u WHERE a > 0;
DROP SCHEMA unread CASCADE;
