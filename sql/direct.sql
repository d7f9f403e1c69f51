-- Scans of many rows, which go from their windows to their nodes: that they do,
-- and return and count what the executor's own way does
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA direct;
SET search_path = direct, public;
CREATE TABLE bt (a int8, b text COLLATE "C", c int2, n numeric, d text, name name) WITH (autovacuum_enabled = off, fillfactor = 80);
-- Until this is committed, no page is visible to everybody
BEGIN;
INSERT INTO bt SELECT g, 'b' || g % 700, CASE WHEN g % 7 > 0 THEN g % 50 END, g % 300 / 7.0, repeat('d', g % 200), 'n' || g FROM generate_series(1, 8000) g;
CREATE TABLE u (LIKE bt) WITH (autovacuum_enabled = off, fillfactor = 80);
INSERT INTO u TABLE bt;
CREATE INDEX ON bt (a);
CREATE INDEX ON bt (b, a);
CREATE INDEX ON bt (c, a DESC) INCLUDE (d);
CREATE INDEX ON bt (n);
CREATE INDEX ON bt (name);
CREATE INDEX u_a ON u USING euno (a);
CREATE INDEX u_b ON u USING euno (b, a) WITH (structure = art);
CREATE INDEX u_c ON u USING euno (c, a DESC) INCLUDE (d);
CREATE INDEX u_n ON u USING euno (n) WITH (structure = art);
CREATE INDEX u_name ON u USING euno (name);
ANALYZE bt, u;

-- What the nodes of a plan count
CREATE FUNCTION counts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING off, SUMMARY off, COSTS off, FORMAT json) ' || query INTO plan;
	RETURN (SELECT string_agg(m[1] || round(m[2]::numeric), ' ' ORDER BY i)
			FROM regexp_matches(plan::text, '"(Actual Rows|Rows Removed by Filter|Heap Fetches|Actual Loops)": ([0-9.]+)', 'g') WITH ORDINALITY AS x(m, i));
END $$;

-- Do the rows of some scan of the query go directly?  Is the answer right, in the
-- order of the index, and counted in the plan?
CREATE FUNCTION look(query text) RETURNS TABLE (direct bool, same bool, counted bool) LANGUAGE plpgsql AS $$
DECLARE
	twin text := regexp_replace(query, '\mu\M', 'bt', 'g');
	ours text;
	theirs text;
BEGIN
	direct := false;
	BEGIN
		PERFORM set_config('euno.debug_stop', 'scan-direct:error', true);
		EXECUTE query;
	EXCEPTION WHEN others THEN
		direct := true;
		IF SQLERRM NOT LIKE '%scan-direct%' THEN
			RAISE;
		END IF;
	END;
	PERFORM set_config('euno.debug_stop', '', true);
	EXECUTE format('SELECT string_agg(x::text, E''\n'') FROM (%s) x', query) INTO ours;
	EXECUTE format('SELECT string_agg(x::text, E''\n'') FROM (%s) x', twin) INTO theirs;
	same := ours = theirs;
	counted := counts(query) = counts(twin);
	RETURN NEXT;
END $$;

CREATE TABLE queries (q text);
INSERT INTO queries VALUES
	-- index-only
	('SELECT a FROM u ORDER BY a'),
	('SELECT a FROM u WHERE a BETWEEN 100 AND 200 ORDER BY a DESC'),
	('SELECT a + 1, 7 FROM u WHERE a > 4000 AND a % 3 = 0 ORDER BY a'),
	('SELECT count(*), sum(a) FROM u WHERE a > 5'),
	('SELECT count(*) FROM u WHERE a > 5'),
	('SELECT b, a FROM u WHERE b > ''b3'' ORDER BY b, a'),
	('SELECT c, a, d FROM u ORDER BY c, a DESC'),
	('SELECT c, a, d FROM u WHERE c IS NULL ORDER BY a'),
	('SELECT c, a FROM u WHERE c IN (3, 4, 9) AND a > 50 ORDER BY c, a DESC'),
	('SELECT n FROM u ORDER BY n'),
	('SELECT name FROM u WHERE name > ''n5'' ORDER BY name'),
	('SELECT x, s FROM generate_series(1, 7000, 500) x, LATERAL (SELECT sum(a) AS s FROM u WHERE a BETWEEN x AND x + 90) y'),
	-- and not
	('SELECT * FROM u ORDER BY a'),
	('SELECT u FROM u WHERE a BETWEEN 100 AND 200 ORDER BY a DESC'),
	('SELECT a, (SELECT y.a = x.a FROM u y WHERE y.ctid = x.ctid), tableoid::regclass::text IN (''u'', ''bt'') FROM u x WHERE a > 300 ORDER BY a'),
	('SELECT n, d FROM u WHERE a > 4000 AND n > 10 ORDER BY a'),
	('SELECT max(length(d)), sum(c) FROM u WHERE a < 3000'),
	('SELECT x, s FROM generate_series(1, 7000, 500) x, LATERAL (SELECT sum(n) AS s FROM u WHERE a BETWEEN x AND x + 90) y'),
	('SELECT a, d FROM u WHERE a > 10 ORDER BY a LIMIT 500 OFFSET 300'),
	('SELECT x.n, y.d FROM u x, LATERAL (SELECT d FROM u y WHERE y.a BETWEEN x.a AND x.a + 40 OFFSET 0) y WHERE x.a BETWEEN 5 AND 200'),
	-- little, or all over the table
	('SELECT a FROM u WHERE a < 10 ORDER BY a'),
	('SELECT n FROM u WHERE a = 10'),
	('SELECT n FROM u WHERE n > 3 AND d <> '''' ORDER BY n');
\pset format unaligned
-- pages that are not known to be visible to everybody, and then are
SELECT count(*), count(*) FILTER (WHERE direct) AS direct, bool_and(same) AS same, bool_and(counted) AS counted FROM queries, look(q);
COMMIT;
VACUUM ANALYZE bt, u;
SELECT q, (look(q)).* FROM queries;
SET enable_nestloop = off;
SET enable_hashjoin = off;
SET enable_sort = off;
SELECT (look('SELECT x.a, y.a FROM u x JOIN u y ON x.a = y.a')).*;
SELECT (look('SELECT x.c, y.n FROM (SELECT c, a FROM u WHERE c < 9 ORDER BY c) x JOIN (SELECT c, n FROM u WHERE c < 9 AND a < 200 ORDER BY c, a DESC) y ON x.c = y.c')).*;
-- an inner scan that goes back to a mark, of which rows before were on this page
SET enable_material = off;
CREATE INDEX ON bt ((a / 10));
CREATE INDEX ON u USING euno ((a / 10));
ANALYZE bt, u;
EXPLAIN (COSTS off) SELECT x.n, y.d FROM u x JOIN u y ON x.a / 10 = y.a / 10 WHERE x.a / 10 < 200 AND y.a / 10 < 190;
SELECT (look('SELECT x.n, y.d FROM u x JOIN u y ON x.a / 10 = y.a / 10 WHERE x.a / 10 < 200 AND y.a / 10 < 190')).*;
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_sort;
RESET enable_material;

-- In workers
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
EXPLAIN (COSTS off) SELECT count(d), sum(n) FROM u WHERE a > 5;
SELECT direct, same FROM look('SELECT count(d), sum(n) FROM u WHERE a > 5');
SELECT direct, same FROM look('SELECT sum(a) FROM u WHERE a > 5');
SELECT direct, same FROM look('SELECT count(*) FROM u WHERE a > 5');
SET max_parallel_workers_per_gather = 0;

-- Versions of rows on the page and elsewhere, dead ones, and pages of both kinds
UPDATE bt SET n = n + 1 WHERE a % 5 = 0;
UPDATE u SET n = n + 1 WHERE a % 5 = 0;
UPDATE bt SET d = d || 'x' WHERE a % 11 = 0;
UPDATE u SET d = d || 'x' WHERE a % 11 = 0;
DELETE FROM bt WHERE a % 13 = 0;
DELETE FROM u WHERE a % 13 = 0;
SELECT count(*), count(*) FILTER (WHERE direct) AS direct, bool_and(same) AS same FROM queries, look(q);
SELECT count(*), count(*) FILTER (WHERE direct) AS direct, bool_and(same) AS same FROM queries, look(q);
VACUUM bt, u;
SELECT count(*), count(*) FILTER (WHERE direct) AS direct, bool_and(same) AS same, bool_and(counted) AS counted FROM queries, look(q);
BEGIN;
UPDATE bt SET name = 'm' || a WHERE a BETWEEN 3000 AND 3300;
UPDATE u SET name = 'm' || a WHERE a BETWEEN 3000 AND 3300;
SAVEPOINT s;
DELETE FROM bt WHERE a < 1500;
DELETE FROM u WHERE a < 1500;
SELECT count(*), count(*) FILTER (WHERE direct) AS direct, bool_and(same) AS same FROM queries, look(q);
ROLLBACK TO s;
SELECT count(*), count(*) FILTER (WHERE direct) AS direct, bool_and(same) AS same FROM queries, look(q);
COMMIT;

-- What the statistics count
SELECT pg_stat_force_next_flush();
BEGIN;
SELECT count(d) FROM u WHERE a BETWEEN 100 AND 2000;
SELECT count(a) FROM u WHERE a BETWEEN 100 AND 2000;
SELECT count(d) FROM bt WHERE a BETWEEN 100 AND 2000;
SELECT count(a) FROM bt WHERE a BETWEEN 100 AND 2000;
SELECT pg_stat_get_xact_numscans(i) AS scans, pg_stat_get_xact_tuples_returned(i) AS read, pg_stat_get_xact_tuples_fetched(i) AS fetched
FROM unnest(ARRAY['bt_a_idx'::regclass, 'u_a'::regclass]) i;
COMMIT;

-- Cursors: back and forth, and where they are
BEGIN;
DECLARE p SCROLL CURSOR FOR SELECT a, d FROM u WHERE a > 0 ORDER BY a;
MOVE 200 FROM p;
FETCH 2 FROM p;
FETCH BACKWARD 150 FROM p \g /dev/null
FETCH 3 FROM p;
MOVE ABSOLUTE 190 FROM p;
FETCH 2 FROM p;
UPDATE u SET d = 'here' WHERE CURRENT OF p;
FETCH p;
DELETE FROM u WHERE CURRENT OF p;
MOVE 3000 FROM p;
SELECT euno_evict('u_a');
FETCH 2 FROM p;
FETCH BACKWARD 2 FROM p;
FETCH RELATIVE 100 FROM p;
DECLARE q SCROLL CURSOR FOR SELECT a FROM u WHERE a > 0 ORDER BY a;
MOVE 200 FROM q;
FETCH 2 FROM q;
FETCH BACKWARD 150 FROM q \g /dev/null
FETCH 3 FROM q;
MOVE 3000 FROM q;
SELECT euno_evict('u_a');
FETCH 2 FROM q;
FETCH BACKWARD 2 FROM q;
SELECT a, d FROM u WHERE d = 'here';
SELECT count(*) FROM u WHERE a BETWEEN 190 AND 215;
COMMIT;

-- Where a cursor is if the entries' lines lead to other versions
CREATE TABLE versions (a int, b int) WITH (autovacuum_enabled = off, fillfactor = 40);
INSERT INTO versions SELECT g, 0 FROM generate_series(1, 1000) g;
CREATE INDEX ON versions USING euno (a);
UPDATE versions SET b = 1;
SET enable_seqscan = on;
SELECT count(*) FROM versions;
SET enable_seqscan = off;
BEGIN;
-- No page is visible to everybody
UPDATE versions SET b = 1 WHERE a % 20 = 0;
CREATE FUNCTION touch_each(query text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	r record;
BEGIN
	OPEN c FOR EXECUTE query;
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		UPDATE versions SET b = b + 10 WHERE CURRENT OF c;
	END LOOP;
END $$;
SELECT touch_each('SELECT a FROM versions WHERE a > 100 ORDER BY a');
SELECT touch_each('SELECT a, b FROM versions WHERE a > 200 ORDER BY a');
SELECT b, count(*) FROM versions GROUP BY b ORDER BY b;
COMMIT;

-- The table changes while it is scanned
CREATE FUNCTION touch(x int8) RETURNS int8 LANGUAGE plpgsql AS $$
BEGIN
	UPDATE u SET n = -1 WHERE a = x + 3;
	DELETE FROM u WHERE a = x + 7;
	INSERT INTO u (a) VALUES (x + 1);
	RETURN x;
END $$;
BEGIN;
SELECT count(touch(a)), count(n), sum(n) > 0 AS none FROM u WHERE a BETWEEN 5000 AND 5300 AND n IS DISTINCT FROM -1;
SELECT count(*), count(n), count(*) FILTER (WHERE n = -1) FROM u WHERE a BETWEEN 5000 AND 5310;
ROLLBACK;
WITH w AS (UPDATE u SET d = 'w' WHERE a BETWEEN 6000 AND 6400 RETURNING a) SELECT count(*) FROM w;
UPDATE u SET c = 77 FROM (SELECT a FROM u WHERE a BETWEEN 6000 AND 6400) x WHERE x.a = u.a;
SELECT count(*) FROM u WHERE a BETWEEN 6000 AND 6400 AND c = 77 AND d = 'w';
SELECT count(*) FROM (SELECT a FROM u WHERE a BETWEEN 6000 AND 6400 FOR UPDATE) x;

-- Errors in the middle
DO $$
BEGIN
	FOR i IN 1..50 LOOP
		BEGIN
			PERFORM 1 / (a - 5150) FROM u WHERE a BETWEEN 5000 AND 5300 AND length(d) >= 0;
		EXCEPTION WHEN division_by_zero THEN
		END;
		BEGIN
			PERFORM 1 / (a - 5150) FROM u WHERE a BETWEEN 5000 AND 5300;
		EXCEPTION WHEN division_by_zero THEN
		END;
	END LOOP;
END $$;
SET statement_timeout = '300ms';
SELECT count(*) FROM u WHERE a > 0 AND pg_sleep(0.001) IS NOT NULL AND length(d) >= 0;
SELECT count(*) FROM u WHERE a > 0 AND pg_sleep(0.001) IS NOT NULL;
RESET statement_timeout;
SELECT count(d), count(a) FROM u WHERE a BETWEEN 5000 AND 5300;

-- In a serializable transaction pages are locked, so nothing goes directly
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*), count(*) FILTER (WHERE direct) AS direct FROM queries, look(q);
COMMIT;

-- Temporary tables, whose pages others cannot see
CREATE TEMP TABLE t AS TABLE u;
CREATE INDEX ON t USING euno (a);
ANALYZE t;
SELECT count(a) = (SELECT count(a) FROM u WHERE a > 0) AS same FROM t WHERE a > 0;
VACUUM t;
SELECT (SELECT sum(n) FROM t WHERE a > 0) = (SELECT sum(n) FROM u WHERE a > 0) AS same, (SELECT count(a) FROM t WHERE a > 0) = (SELECT count(a) FROM u WHERE a > 0) AS same;
DROP TABLE t;
SELECT euno_index_check('u_a', true), euno_index_check('u_b', true), euno_index_check('u_c', true);
DROP SCHEMA direct CASCADE;
