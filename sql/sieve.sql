--
-- Conditions on numbers behind a range: entries that are left out at once
--
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir '/test/compare.sql'
\i :compare
-- Of the second half of b's values long runs of a have none; nor of NULLs
CREATE TABLE s (id int, a int, b int8, c int2, d timestamp NOT NULL);
ALTER TABLE s SET (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO s SELECT n, n / 7, n * 7919 % CASE WHEN n % 6000 < 50 THEN 100000 ELSE 50000 END,
	CASE WHEN n < 30000 OR n % 11 <> 0 THEN n % 300 - 150 END, '2024-01-01'::timestamp + (n * 31 % 5000 - 2500) * interval '1 hour' FROM generate_series(1, 40000) n;
INSERT INTO s SELECT id, a, b, c, d FROM s WHERE id % 4000 < 30;
CREATE TABLE ranges (q text);
INSERT INTO ranges SELECT 'a, b FROM s WHERE a > 5 AND ' || c FROM unnest(ARRAY['b < 0', 'b < 40', 'b <= 5000', 'b > 99990', 'b > 50000', 'b BETWEEN 60000 AND 70000', 'b = 7919', 'b = 99999',
	'b IN (7919, 60000, 99000)', 'b >= -9223372036854775808', 'b < 40 AND id % 2 = 0', 'b > 50000 AND c > 0', 'b > 50000 AND c IS NULL', 'c < -140', 'c IS NULL AND b > 90000']) c;
INSERT INTO ranges SELECT 'a, c, d FROM s WHERE a BETWEEN 40 AND 5000 AND ' || c FROM unnest(ARRAY['c = 149', 'c < -140', 'c > 100 AND d > ''2024-02-01''', 'd > ''2024-04-13 18:00''',
	'd < ''-infinity''', 'd IN (''2024-01-01'', ''2024-03-01'')', 'c IS NULL AND d > ''2024-04-01''']) c;
INSERT INTO ranges VALUES ('a, b FROM s WHERE a IN (3, 857, 858, 859, 5000) AND b > 50000'), ('a, b FROM s WHERE a < 2000 AND a > 100 AND b > 99000'), ('a, b FROM s WHERE a = 857 AND b > 50000');

CREATE FUNCTION differences(pattern text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT q || ord || ': ' || r FROM ranges, unnest(ARRAY['', ' ORDER BY a DESC', ' ORDER BY a']) ord,
		compare('SELECT ' || CASE WHEN ord = '' THEN q ELSE regexp_replace(q, '^.* FROM', 'a FROM') END || ord, pattern) r WHERE r !~ '^\d+ rows$'
$$;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE INDEX s_ab ON s USING euno (a, b, c, id);
CREATE INDEX s_ac ON s USING euno (a DESC, c, d DESC);
VACUUM ANALYZE s;
SELECT differences('Index Only Scan');
DROP INDEX s_ab, s_ac;
CREATE INDEX s_ab ON s USING euno (a, b, c DESC, id) WITH (structure = art);
CREATE INDEX s_ac ON s USING euno (a, c, d DESC) WITH (structure = art);
SELECT differences('Index Only Scan');
DROP INDEX s_ab, s_ac;
CREATE INDEX s_ab ON s USING euno (a, b DESC, c DESC, id);
CREATE INDEX s_ac ON s USING euno (a, c DESC, d);
SELECT differences('Index Only Scan');

-- A value of a list that takes several batches, and then many of which one batch has all
CREATE TABLE parts (a int, b int, c int);
ALTER TABLE parts SET (autovacuum_enabled = off);
INSERT INTO parts SELECT CASE WHEN n < 5000 THEN 1 ELSE 2 + n % 30 END, n % 977, n * 7919 % 100 FROM generate_series(1, 5300) n;
CREATE INDEX parts_abc ON parts USING euno (a, b, c);
VACUUM ANALYZE parts;
SELECT r FROM compare('SELECT a, b, c FROM parts WHERE a = ANY (ARRAY(SELECT generate_series(1, 31))) AND c > 40', 'Index Only Scan') r WHERE r !~ '^\d+ rows$';
DROP TABLE parts;

-- In several processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0;
SELECT differences('Index Only Scan');
SET max_parallel_workers_per_gather = 0;

-- Under predicate locks
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT differences('Index Only Scan');
COMMIT;

-- A cursor that turns where there is nothing, and goes on
SET enable_seqscan = off;
SET enable_sort = off;
BEGIN;
EXPLAIN (COSTS OFF) SELECT a, b FROM s WHERE a > 0 AND b > 50000 ORDER BY a, b DESC;
SELECT count(*) FROM s WHERE a > 0 AND b > 50000;
SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_indexscan = off;
SELECT n, a, b FROM (SELECT row_number() OVER (ORDER BY a, b DESC) AS n, a, b FROM s WHERE a > 0 AND b > 50000) o
	WHERE n IN (1, 2, 234, 235) OR n BETWEEN 26 AND 29 OR n BETWEEN 175 AND 177;
SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_indexscan = on;
DECLARE turns SCROLL CURSOR FOR SELECT a, b FROM s WHERE a > 0 AND b > 50000 ORDER BY a, b DESC;
MOVE 25 IN turns;
FETCH 4 FROM turns;
FETCH BACKWARD 3 FROM turns;
MOVE ALL IN turns;
FETCH BACKWARD 2 FROM turns;
MOVE BACKWARD 60 IN turns;
FETCH 2 FROM turns;
MOVE BACKWARD ALL IN turns;
FETCH 2 FROM turns;
COMMIT;

-- Marked places
SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM s x JOIN s y ON x.a = y.a WHERE x.a > 0 AND x.b > 50000 AND y.a > 0 AND y.b > 50000;
SELECT count(*), sum(x.b), sum(y.b) FROM s x JOIN s y ON x.a = y.a WHERE x.a > 0 AND x.b > 50000 AND y.a > 0 AND y.b > 50000;
RESET enable_seqscan; RESET enable_sort; RESET enable_hashjoin; RESET enable_nestloop;
SET enable_indexonlyscan = off; SET enable_indexscan = off;
SELECT count(*), sum(x.b), sum(y.b) FROM s x JOIN s y ON x.a = y.a WHERE x.a > 0 AND x.b > 50000 AND y.a > 0 AND y.b > 50000;
RESET enable_indexonlyscan; RESET enable_indexscan;

-- While entries die, and go
DELETE FROM s WHERE id % 3 = 0 OR b BETWEEN 60000 AND 80000;
SELECT differences('Index');
VACUUM s;
SELECT differences('Index Only Scan');
SELECT euno_index_check('s_ab', true), euno_index_check('s_ac', true);
DROP INDEX s_ab, s_ac;
CREATE INDEX s_ab ON s USING euno (a, b, c, id) WITH (structure = art);
CREATE INDEX s_ac ON s USING euno (a DESC, c, d DESC) WITH (structure = art);
SELECT differences('Index Only Scan');
DROP TABLE s, ranges;
DROP FUNCTION compare, differences;
