--
-- Index scans that several processes share
--
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir '/test/compare.sql'
\i :compare
CREATE TABLE p (id int, a int, b int, c text COLLATE "C", d numeric);
ALTER TABLE p SET (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO p SELECT n, nullif(n * 7919 % 997, 5), nullif(n * 31 % 29, 3), 'c' || n % 37, (n * 13 % 5000) / 4.0 FROM generate_series(1, 40000) n;
CREATE INDEX p_ab ON p USING euno (a, b DESC, id);
CREATE INDEX p_c ON p USING euno (c, a) INCLUDE (b);
-- An operator class whose comparator is not known: its index is in COMPARE order
CREATE FUNCTION compared_cmp(numeric, numeric) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_cmp';
CREATE OPERATOR CLASS compared FOR TYPE numeric USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared_cmp(numeric, numeric);
CREATE INDEX p_d ON p USING euno (d compared, id);
CREATE INDEX p_art ON p USING euno (b, id, a) WITH (structure = art);
VACUUM ANALYZE p;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET enable_bitmapscan = off;
-- Worth a worker for each row
CREATE FUNCTION odd(n int) RETURNS bool IMMUTABLE PARALLEL SAFE COST 1000 LANGUAGE plpgsql AS 'BEGIN RETURN n % 2 <> 0; END';
-- An array that is known when the query is planned
CREATE FUNCTION steps(a int, b int, by int) RETURNS int[] IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT array_agg(n) FROM generate_series(a, b, by) n';

EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM p WHERE a < 400 AND odd(id);
EXPLAIN (COSTS OFF) SELECT a, b FROM p WHERE a < 100 AND odd(b) ORDER BY a, b DESC;

-- With the leader's help and without it
SELECT on_off, q AS query, compare('SELECT ' || q, 'Parallel Index (Only )?Scan') AS result
FROM unnest('{on,off}'::text[]) on_off, set_config('parallel_leader_participation', on_off, true), unnest(ARRAY[
	'count(*), sum(id) FROM p WHERE a < 400 AND odd(id)', 'count(*), sum(a) FROM p WHERE a >= 0 AND odd(a)', 'a, b, id FROM p WHERE a IN (1, 7, 900, 44, 2000) AND odd(id)',
	'a, id FROM p WHERE a = ANY (steps(1, 600, 3)) AND odd(id)', 'id FROM p WHERE a > 5 AND b = 6 AND odd(id)', 'id FROM p WHERE a > 5 AND id IN (4, 1000, 1001, 39999) AND odd(a)', 'c, a, b FROM p WHERE c > ''c3'' AND odd(b)',
	'c, a, b FROM p WHERE c IN (''c1'', ''c35'', ''x'') AND a < 500 AND odd(a)', 'count(*), sum(d) FROM p WHERE d < 800 AND odd(id)', 'd, id FROM p WHERE d = ANY (steps(-5, 1500, 3)::numeric[]) AND odd(id / 4)', 'd, id FROM p WHERE d > 5 AND id IN (8, 7, 30001) AND odd(id)',
	'count(*), sum(a) FROM p WHERE b > 3 AND odd(a)', 'b, id FROM p WHERE b IN (28, 4, 60, 9) AND id < 3000 AND odd(a)'
	]) q;

-- Each process returns its share in order
SELECT on_off, q AS query, compare('SELECT ' || q, 'Gather Merge(.|\n)*Parallel Index (Only )?Scan') AS merged
FROM unnest('{on,off}'::text[]) on_off, set_config('parallel_leader_participation', on_off, true), unnest(ARRAY[
	'a, b, id FROM p WHERE odd(id) ORDER BY a, b DESC, id', 'a, b, id FROM p WHERE odd(id) ORDER BY a DESC, b, id DESC', 'a, b, id FROM p WHERE a = ANY (steps(1, 900, 17)) AND odd(id) ORDER BY a, b DESC, id', 'a, b, id FROM p WHERE a = ANY (steps(1, 900, 2)) AND odd(id) ORDER BY a DESC, b, id DESC',
	'd, id FROM p WHERE odd(id) AND d > 100 ORDER BY d DESC, id DESC LIMIT 500', 'd, id FROM p WHERE d = ANY (steps(-5, 1500, 7)::numeric[]) AND odd(id / 4) ORDER BY d, id', 'b, id, a FROM p WHERE odd(a) ORDER BY b DESC, id DESC, a DESC', 'c, a, b FROM p WHERE odd(b) ORDER BY c, a, b OFFSET 1000 LIMIT 20'
	]) q;

-- Joins and rescans
SET enable_nestloop = off;
SELECT compare('SELECT x.id, y.id FROM p x JOIN p y ON x.a = y.a AND x.b = y.b AND x.id = y.id WHERE x.a < 300 AND odd(x.id)', 'Merge Join(.|\n)*Parallel Index Only Scan');
SET enable_nestloop = on; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
SELECT compare('SELECT x.id, y.id FROM p x JOIN p y ON y.a = x.a + 1 WHERE x.a < 40 AND odd(x.id)', 'Nested Loop(.|\n)*Parallel Index(.|\n)*Index Cond: \(a = ');
SELECT compare('SELECT v, n FROM (VALUES (1), (2), (3)) v (v) LEFT JOIN (SELECT count(*) AS n FROM p WHERE a IN (9, 5, 990) AND odd(id)) s ON n > v', 'Nested Loop(.|\n)*Gather(.|\n)*Parallel Index');
SELECT compare('SELECT v, id FROM (VALUES (1), (2), (3)) v (v) LEFT JOIN LATERAL (SELECT id FROM p WHERE a IN (9, 5, 990) AND odd(id) ORDER BY a, b DESC, id LIMIT 7) s ON true', 'Gather(.|\n)*Parallel Index');
RESET enable_mergejoin; RESET enable_material; RESET enable_memoize;

-- Workers do take part
SET parallel_leader_participation = off;
CREATE TABLE seen AS SELECT 0 AS launched LIMIT 0;
DO $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM p WHERE a > 5 AND odd(a) LOOP
		INSERT INTO seen SELECT (regexp_match(line, 'Workers Launched: (\d+)'))[1]::int WHERE line ~ 'Workers Launched';
	END LOOP;
END $$;
SELECT launched > 0 AS workers FROM seen;

-- An error in a worker, and a cursor that is closed early
SELECT count(1 / (id - 777)) FROM p WHERE a >= 0 AND odd(id);
SELECT count(*) FROM (SELECT FROM p WHERE a >= 0 AND odd(id) LIMIT 10) s;

-- Bitmaps are filled by one process and read by all
SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
SELECT compare('SELECT id FROM p WHERE a IN (1, 5, 9, 300) AND odd(id)', 'Parallel Bitmap Heap Scan(.|\n)*Bitmap Index Scan');
DROP TABLE p, seen;
DROP OPERATOR FAMILY compared USING euno;
DROP FUNCTION compare, odd, steps, compared_cmp;
