--
-- Ways to scan
--
SET client_min_messages = warning;
CREATE TABLE s (id int, a int, b int, c text COLLATE "C", d numeric);
-- autovacuum must not change what plans and hints say
ALTER TABLE s SET (autovacuum_enabled = off);
INSERT INTO s SELECT n, nullif(n * 7919 % 211, 5), nullif(n % 10, 3), 'c' || n % 37, n / 7.0
	FROM generate_series(1, 3000) n;
CREATE INDEX s_ab ON s USING euno (a, b);
CREATE INDEX s_desc ON s USING euno (b DESC, c, a NULLS FIRST);
-- An operator class whose comparator is not known: its index is in COMPARE order
CREATE FUNCTION compared_cmp(numeric, numeric) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_cmp';
CREATE OPERATOR CLASS compared FOR TYPE numeric USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared_cmp(numeric, numeric);
CREATE INDEX s_d ON s USING euno (d compared);
CREATE INDEX s_c ON s USING euno (c);
VACUUM ANALYZE s;

\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir '/test/compare.sql'
\i :compare

-- Conditions on one or two columns; gaps; contradictions; the impossible
SELECT q AS "where", compare('SELECT id FROM s WHERE ' || q, 'Index Scan (using|on) s_') AS plain
FROM unnest(ARRAY[
	'a = 10', 'a = 10 AND b = 4', 'a < 10', 'a <= 10', 'a > 200', 'a >= 200',
	'a > 10 AND a < 20', 'a > 20 AND a < 10', 'a = 10 AND a = (SELECT 11)', 'a = 10 AND a > 10',
	'a >= 10 AND a <= 10', 'a = 10 AND b > 4', 'a > 10 AND b = 4', 'a > 10 AND a < 30 AND b > 2 AND b <= 6',
	'a = 10 AND b < 4 AND b > 6', 'a IS NULL', 'a IS NULL AND b = 4', 'a IS NULL AND b IS NULL',
	'a IS NOT NULL AND b IS NULL', 'a = 10 AND b IS NOT NULL', 'a > 200 AND b IS NULL', 'a IS NULL AND a = 5',
	'a IN (1, 2, 3, NULL)', 'a = ANY (''{7,7,8}'')', 'a <> 10 AND a < 12', 'NOT a >= 3',
	'a = 10::bigint', 'a = 10::smallint', 'a = 3000000000', 'a < 3000000000', 'a > -3000000000', 'a >= 3000000000',
	'a < (-3000000000)', 'a < 10 AND a < 3000000000 AND a > (-5)::smallint',
	'b = 4 AND c = ''c1''', 'b = 4 AND a = 10', 'b > 4 AND c = ''c1''', 'b < 2 AND c >= ''c30'' AND a < 100', 'b IS NULL AND c < ''c2''',
	'c = ''c7''', 'c > ''c35''', 'c < ''c1''', 'c LIKE ''c3%'' AND c >= ''c3''', 'c = ''c7''::name', 'c = ''''',
	'c >= ''c3'' AND c >= ''c1''::name', 'c >= ''c1''::name AND c >= ''c3''', 'c <= ''c1''::name AND c <= ''c3''', 'c < ''c3'' AND c < ''c1''::name',
	'c >= ''c2''::name AND c <= ''c30''', 'c >= ''c2'' AND c <= ''c30''::name', 'c >= ''c2''::name AND c <= ''c30''::name', 'c > ''c3''::name AND c < ''c3''', 'c > ''c3''::name AND c < ''c1''::name',
	'd = 1', 'd = 1.0', 'd < 1', 'd > 400 AND d < ''NaN''', 'd = ''NaN''', 'd < ''-Infinity'''
	]) q;

-- A NULL that the planner does not know of
PREPARE by_a AS SELECT count(*) FROM s WHERE a = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_a (NULL);
EXECUTE by_a (NULL);
EXECUTE by_a (10);
DEALLOCATE by_a;
RESET plan_cache_mode;

-- In order, forward and backward
SELECT q AS query, compare('SELECT a, b, id FROM s ' || q || ', id', 'Incremental Sort') AS result
FROM unnest(ARRAY[
	'ORDER BY a, b', 'ORDER BY a DESC, b DESC', 'WHERE a > 100 ORDER BY a, b', 'WHERE a < 100 ORDER BY a DESC, b DESC',
	'WHERE a IS NULL ORDER BY b', 'WHERE a = 10 ORDER BY b DESC', 'WHERE a BETWEEN 10 AND 60 AND b = 4 ORDER BY a, b',
	'ORDER BY b DESC, c, a NULLS FIRST', 'ORDER BY b NULLS LAST, c DESC, a DESC NULLS LAST', 'WHERE b = 2 ORDER BY c, a NULLS FIRST',
	'WHERE b = 2 ORDER BY c DESC', 'WHERE b < 3 AND c > ''c30'' ORDER BY b DESC'
	]) q;
SELECT q AS query, compare('SELECT a, b FROM s ' || q, 'Index Only Scan (Backward )?using s_ab') AS result
FROM unnest(ARRAY['ORDER BY a, b LIMIT 10', 'ORDER BY a DESC, b DESC LIMIT 25', 'ORDER BY a, b OFFSET 500 LIMIT 7',
	'WHERE a > 7 ORDER BY a, b LIMIT 1', 'WHERE a < 7 ORDER BY a DESC, b DESC LIMIT 1', 'WHERE a > 7 AND b > 7 ORDER BY a, b LIMIT 3',
	'WHERE a > 5000 ORDER BY a, b LIMIT 3', 'ORDER BY a, b']) q;
SELECT compare('SELECT d FROM s ORDER BY d DESC', 'Scan Backward using s_d');

-- Aggregates
SELECT compare('SELECT min(d), max(d) FROM s', 'Index Only Scan using s_d(.|\n)*Index Only Scan Backward using s_d');
SELECT min(d), max(d) FROM s;
SELECT min(a), max(a), min(b), max(b), min(c), max(c) FROM s;
SELECT min(a) FROM s WHERE a > 100;
SELECT max(a) FROM s WHERE a < 5;
SELECT min(a) FROM s WHERE a > 1000;
SELECT compare('SELECT a, count(*), sum(id) FROM s GROUP BY a', 'GroupAggregate(.|\n)*using s_ab');
SELECT compare('SELECT DISTINCT a, b FROM s', 'Unique(.|\n)*using s_ab');
SELECT compare('SELECT DISTINCT ON (b) b, c FROM s ORDER BY b DESC, c', 'Unique(.|\n)*using s_desc');
SELECT compare('SELECT a, rank() OVER (ORDER BY a) FROM s ORDER BY a', 'WindowAgg(.|\n)*using s_ab');

-- Bitmaps, alone and combined
SET enable_indexscan = off;
SELECT q AS "where", compare('SELECT id FROM s WHERE ' || q, p) AS bitmap
FROM (VALUES ('a = 10', 'Bitmap Index Scan on s_ab'), ('a = 10 OR d < 2', 'BitmapOr'),
	('a < 3 OR a IS NULL', 'BitmapOr'), ('a > 20 AND a < 10', 'Bitmap'), ('b = 2 AND a > 100', 'Bitmap Index Scan on s_desc'),
	('a IN (1, 2)', 'Bitmap Index Scan')) v (q, p);
SET work_mem = '64kB';
SELECT compare('SELECT id FROM s WHERE a >= 0', 'Bitmap');
RESET work_mem;
RESET enable_indexscan;

-- Joins: rescans with new keys, marks, laterals
CREATE TABLE o AS SELECT n AS k, n % 13 AS m FROM generate_series(-5, 300) n;
INSERT INTO o VALUES (NULL, NULL), (7, 7), (7, 7);
ANALYZE o;
SET enable_material = off;
SET enable_memoize = off;
SET enable_mergejoin = off;
SELECT compare('SELECT o.k, s.id FROM o JOIN s ON s.a = o.k', 'Nested Loop(.|\n)*Scan using s_ab');
SELECT compare('SELECT o.k, s.id FROM o LEFT JOIN s ON s.a = o.k AND s.b = o.m', 'Nested Loop(.|\n)*using s_ab');
SELECT compare('SELECT o.k FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.a = o.k AND s.b > 2)', 'Nested Loop Anti(.|\n)*using s_ab');
SELECT compare('SELECT o.k, l.id FROM o, LATERAL (SELECT id FROM s WHERE a >= o.k ORDER BY a, b, id LIMIT 2) l', 'using s_ab');
SELECT compare('SELECT o.k, (SELECT max(a) FROM s WHERE a < o.k) FROM o', 'SubPlan(.|\n)*using s_ab');
SELECT compare('SELECT o.k, s.id FROM o JOIN s ON s.a = o.k AND s.b IS NULL', 'Nested Loop(.|\n)*using s_ab');
SELECT compare('SELECT o.k, s.id FROM o JOIN s ON s.a < o.k WHERE o.k < 4', 'Nested Loop(.|\n)*s_ab');
RESET enable_mergejoin;
SET enable_nestloop = off;
SELECT compare('SELECT x.id, y.id FROM (SELECT * FROM s WHERE id % 5 = 0) x JOIN s y ON x.a = y.a', 'Merge Join(.|\n)*using s_ab');
SELECT compare('SELECT x.a, count(*), sum(x.id * y.id::bigint) FROM s x JOIN s y ON x.a = y.a AND x.b = y.b GROUP BY x.a', 'Merge Join(.|\n)*using s_ab(.|\n)*using s_ab');
SELECT compare('SELECT x.c, count(*) FROM s x JOIN s y USING (c) GROUP BY x.c', 'Merge Join(.|\n)*using s_c(.|\n)*using s_c');
RESET enable_nestloop;
RESET enable_memoize;
RESET enable_material;

-- A row with itself: mark and restore within and across batches
CREATE TABLE dups (k int, n int);
INSERT INTO dups SELECT n / 700, n FROM generate_series(0, 2799) n;
CREATE INDEX dups_k ON dups USING euno (k);
ANALYZE dups;
SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_sort = off; SET enable_material = off; SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(x.n::bigint * y.n) FROM dups x JOIN dups y USING (k);
SELECT count(*), sum(x.n::bigint * y.n) FROM dups x JOIN dups y USING (k);
SELECT 4 * 700 * 700 AS count, sum(t * t) FROM (SELECT k, sum(n) AS t FROM dups GROUP BY k) g;
-- the same index only: what was marked is still there when it is restored
CREATE INDEX dups_kn ON dups USING euno (k, n);
VACUUM ANALYZE dups;
EXPLAIN (COSTS OFF) SELECT count(*), sum(x.n::bigint * y.n) FROM dups x JOIN dups y USING (k);
SELECT count(*), sum(x.n::bigint * y.n) FROM dups x JOIN dups y USING (k);
CREATE TABLE twins (t text COLLATE "C", u uuid, n int);
INSERT INTO twins SELECT 'text ' || n / 300, md5((n / 300)::text)::uuid, n FROM generate_series(0, 1799) n;
CREATE INDEX twins_tn ON twins USING euno (t, n);
CREATE INDEX twins_un ON twins USING euno (u, n) WITH (structure = art);
VACUUM ANALYZE twins;
EXPLAIN (COSTS OFF) SELECT count(*), sum(x.n::bigint * y.n) FROM twins x JOIN twins y USING (t);
SELECT count(*), sum(x.n::bigint * y.n) FROM twins x JOIN twins y USING (t);
EXPLAIN (COSTS OFF) SELECT count(*), sum(x.n::bigint * y.n) FROM twins x JOIN twins y USING (u);
SELECT count(*), sum(x.n::bigint * y.n) FROM twins x JOIN twins y USING (u);
SELECT 6 * 300 * 300 AS count, sum(s * s) FROM (SELECT t, sum(n) AS s FROM twins GROUP BY t) g;
DROP TABLE twins;
DROP INDEX dups_kn;
RESET ALL;
SET client_min_messages = warning;

-- Cursors: every way to move, in the middle and at the ends
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
BEGIN;
DECLARE cur SCROLL CURSOR FOR SELECT d, id FROM s WHERE d > 1 AND d < 3 ORDER BY d;
FETCH PRIOR FROM cur;
FETCH 3 FROM cur;
FETCH BACKWARD 2 FROM cur;
FETCH RELATIVE 4 FROM cur;
FETCH LAST FROM cur;
FETCH NEXT FROM cur;
FETCH NEXT FROM cur;
FETCH PRIOR FROM cur;
FETCH FIRST FROM cur;
FETCH PRIOR FROM cur;
FETCH PRIOR FROM cur;
FETCH NEXT FROM cur;
FETCH ABSOLUTE 5 FROM cur;
FETCH ABSOLUTE -2 FROM cur;
FETCH BACKWARD ALL FROM cur;
FETCH FORWARD ALL FROM cur;
FETCH RELATIVE 0 FROM cur;
CLOSE cur;

-- across batches
DECLARE big SCROLL CURSOR FOR SELECT id FROM s ORDER BY d;
MOVE 2000 FROM big;
FETCH 1 FROM big;
MOVE BACKWARD 1000 FROM big;
FETCH 1 FROM big;
FETCH BACKWARD 1 FROM big;
MOVE FORWARD ALL FROM big;
FETCH BACKWARD 2 FROM big;
MOVE BACKWARD 2990 FROM big;
FETCH BACKWARD ALL FROM big;
FETCH 2 FROM big;
-- with changes of its own: the cursor does not see them
DELETE FROM s WHERE id BETWEEN 3 AND 10;
INSERT INTO s (id, d) SELECT 5000 + n, 0.5 FROM generate_series(1, 500) n;
FETCH 3 FROM big;
FETCH BACKWARD 2 FROM big;
COMMIT;
BEGIN;
DECLARE updater CURSOR FOR SELECT * FROM s WHERE a = 10 FOR UPDATE;
FETCH 2 FROM updater;
UPDATE s SET b = -1 WHERE CURRENT OF updater;
DELETE FROM s WHERE a = 10 AND b = -1;
FETCH 1 FROM updater;
ROLLBACK;
BEGIN;
DECLARE held SCROLL CURSOR WITH HOLD FOR SELECT id FROM s WHERE d < 2 AND id < 5000 ORDER BY d DESC;
FETCH 2 FROM held;
COMMIT;
FETCH 2 FROM held;
CLOSE held;

-- Statistics of scans
SELECT pg_stat_force_next_flush();
SELECT idx_scan > 0 AS scanned, idx_tup_read > 0 AS read FROM pg_stat_user_indexes WHERE indexrelname = 's_ab';

SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes
	WHERE relname IN ('s', 'dups') ORDER BY 1;
DROP TABLE s, o, dups;
DROP OPERATOR FAMILY compared USING euno;
DROP FUNCTION compare, compared_cmp;
