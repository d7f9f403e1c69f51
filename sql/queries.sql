--
-- What queries ask of an ordered index
--
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir '/test/compare.sql'
\i :compare
CREATE TABLE q (id int, a int, b int, c text COLLATE "C", t text, v varchar(20), bp char(10), f bool);
ALTER TABLE q SET (autovacuum_enabled = off);
INSERT INTO q SELECT n, nullif(n * 7919 % 211, 5), nullif(n % 10, 3), 'c' || n % 37, md5((n % 500)::text), md5(n::text)::varchar(20), substr(md5(n::text), 1, n % 10),
	CASE WHEN n % 20 = 0 THEN true WHEN n % 7 = 0 THEN NULL ELSE false END FROM generate_series(1, 4000) n;
CREATE INDEX q_ab ON q USING euno (a, b);
CREATE INDEX q_first ON q USING euno (a NULLS FIRST, c DESC) INCLUDE (b);
CREATE INDEX q_desc ON q USING euno (b DESC, a DESC NULLS LAST);
CREATE INDEX q_c ON q USING euno (c, b) INCLUDE (a, t);
CREATE INDEX q_t ON q USING euno (t text_pattern_ops);
CREATE INDEX q_v ON q USING euno (v varchar_pattern_ops);
CREATE INDEX q_bp ON q USING euno (bp bpchar_pattern_ops);
CREATE INDEX q_f ON q USING euno (f, id);
CREATE INDEX q_expr ON q USING euno ((a % 10), lower(c)) WHERE b > 4;
VACUUM ANALYZE q;

-- NULLs first or last, both ways: from the index, or sorted where it has another order
SELECT o, compare('SELECT ' || regexp_replace(o, ' (DESC|NULLS (FIRST|LAST))', '', 'g') || ' FROM q ORDER BY ' || o, p) AS result
FROM (VALUES ('a, b', 'Index Only Scan using q_ab'), ('a DESC, b DESC', 'Backward using q_ab'), ('a NULLS FIRST', 'Scan using q_first'), ('a DESC NULLS LAST', 'Scan Backward using q_first'),
	('b DESC, a DESC NULLS LAST', 'Scan using q_desc'), ('b, a NULLS FIRST', 'Scan Backward using q_desc'), ('a, b DESC', 'Sort'), ('b NULLS FIRST, a', 'Sort')) o (o, p);
SELECT compare('SELECT a, b FROM q WHERE a IS NULL ORDER BY b', 'Index Only Scan'), compare('SELECT a FROM q WHERE a IS NOT NULL ORDER BY a LIMIT 5', 'Index'),
	compare('SELECT a, c FROM q WHERE a > 200 ORDER BY a NULLS FIRST, c DESC', 'Scan using q_first'), compare('SELECT a FROM q ORDER BY a NULLS FIRST LIMIT 3', 'q_first');

-- LIMIT, OFFSET, ties
SELECT o, compare('SELECT a, b FROM q ' || o, 'Limit(.|\n)*Index Only Scan') AS result
FROM unnest(ARRAY['ORDER BY a, b LIMIT 7', 'ORDER BY a DESC, b DESC LIMIT 7 OFFSET 100', 'WHERE a > 100 ORDER BY a, b FETCH FIRST 3 ROWS WITH TIES', 'WHERE a < 100 AND b = 4 ORDER BY a DESC LIMIT 1', 'WHERE b < 4 ORDER BY b DESC, a DESC NULLS LAST LIMIT 9', 'ORDER BY a, b LIMIT 0']) o;

-- DISTINCT, groups, sets, windows
SELECT query, compare(query, p) AS result
FROM (VALUES ('SELECT DISTINCT a FROM q', 'Unique(.|\n)*Index'), ('SELECT DISTINCT a, b FROM q ORDER BY a, b', 'Unique(.|\n)*using q_ab'), ('SELECT DISTINCT a, b FROM q ORDER BY a DESC, b DESC', 'Unique(.|\n)*Backward using q_ab'),
	('SELECT DISTINCT ON (a) a, b FROM q ORDER BY a, b', 'Unique(.|\n)*q_ab'), ('SELECT DISTINCT ON (b) b, a FROM q ORDER BY b DESC, a DESC NULLS LAST', 'Unique(.|\n)*q_desc'), ('SELECT DISTINCT c FROM q WHERE c > ''c2'' ORDER BY c', 'Unique(.|\n)*q_c'),
	('SELECT a, count(*), sum(b) FROM q GROUP BY a ORDER BY a', 'GroupAggregate(.|\n)*q_'), ('SELECT a, b, count(*) FROM q GROUP BY ROLLUP (a, b) ORDER BY a, b', 'GroupAggregate(.|\n)*q_ab'), ('SELECT a, count(*) FROM q GROUP BY a HAVING count(*) > 18', 'GroupAggregate(.|\n)*q_'),
	('SELECT a, b FROM q WHERE a < 20 UNION ALL SELECT a, b FROM q WHERE a > 190 ORDER BY a, b', 'Append(.|\n)*Index(.|\n)*Index'), ('SELECT a FROM q WHERE a < 20 UNION SELECT a FROM q WHERE a < 30 ORDER BY a', 'Index'),
	('SELECT a FROM q WHERE a < 20 INTERSECT SELECT a FROM q WHERE a > 15 ORDER BY a', 'Index'), ('SELECT a FROM q WHERE a < 20 EXCEPT SELECT a FROM q WHERE b > 3 ORDER BY a', 'Index'),
	('SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) - rank() OVER (PARTITION BY a ORDER BY b) > -1, count(*) OVER (PARTITION BY a) FROM q ORDER BY a, b', 'WindowAgg(.|\n)*q_ab'),
	('SELECT a, lag(a) OVER (ORDER BY a DESC) FROM q WHERE a > 100 ORDER BY a DESC, 2', 'WindowAgg(.|\n)*q_'), ('SELECT a, b, sum(b) OVER (PARTITION BY a ORDER BY b ROWS UNBOUNDED PRECEDING) IS NULL FROM q ORDER BY a, b', 'WindowAgg(.|\n)*q_ab'),
	('SELECT a, b, id FROM q ORDER BY a, b, id', 'Incremental Sort(.|\n)*q_ab'), ('SELECT array_agg(a ORDER BY a) FROM (SELECT a FROM q WHERE a < 10) s', 'Index')) s (query, p);

-- The least and the greatest
SELECT compare('SELECT min(a), max(a), min(b), max(b), min(c), max(c) FROM q', '(Index(.|\n)*){6}'), compare('SELECT min(a) FROM q WHERE a > 100', 'Limit'), compare('SELECT max(b) FROM q WHERE b < 8', 'Limit(.|\n)*q_desc'),
	compare('SELECT max(b) FROM q WHERE a = 17', 'Limit(.|\n)*q_ab'), compare('SELECT min(a) FROM q WHERE a > 5000', 'Index'), compare('SELECT g, (SELECT min(b) FROM q WHERE a = g), (SELECT max(b) FROM q WHERE a = g) FROM generate_series(1, 30) g', 'SubPlan(.|\n)*q_ab');

-- LIKE and regular expressions with a fixed prefix; what a prefix may end in
SELECT cond, compare('SELECT id FROM q WHERE ' || cond, p) AS result
FROM (VALUES ('t LIKE ''ab%''', '~>=~'), ('t LIKE ''ab%c_''', '~>=~'), ('t LIKE ''ab''', 't = '), ('t ~ ''^ab.*1''', '~>=~'), ('t ~~* ''ab%''', 'Filter'), ('t LIKE ''%ab''', 'Filter'), ('t > ''ab''', 'Filter'), ('t ~<~ ''1''', 'q_t'), ('t = ''ab''', 'q_t'),
	('v LIKE ''ab%''', '~>=~'), ('bp LIKE ''ab%''', '~>=~'), ('bp = ''ab''', 'q_bp'), ('c LIKE ''c1%''', 'c >= '), ('c ~ ''^c1[0-3]''', 'c >= '), ('c LIKE ''c\_1%''', 'c >= '), ('t ^@ ''ab''', 'q_t|Filter')) s (cond, p);

-- Conditions that are columns
SELECT cond, compare('SELECT id FROM q WHERE ' || cond, p) AS result
FROM (VALUES ('f AND id < 100', 'Index Cond: \(\(f = true\)'), ('NOT f AND id < 100', 'Index Cond: \(\(f = false\)'), ('f IS NULL AND id < 100', 'Index Cond: \(\(f IS NULL\)'), ('f IS TRUE AND id < 100', 'f = true'), ('f IS NOT TRUE AND id < 100', 'Index'),
	('(a, b) = (20, 4)', 'Index Cond: .*a = 20'), ('(a, b) IN ((20, 4), (21, 7))', 'Bitmap Index Scan'), ('a IS NOT DISTINCT FROM 7', 'Filter'), ('a BETWEEN SYMMETRIC 9 AND 7', 'a >= '),
	('a % 10 = 3 AND lower(c) = ''c7'' AND b > 4', 'q_expr'), ('a % 10 IN (3, 4) AND b > 5', 'q_expr'), ('a % 10 = 3 AND b > 3', 'a|Filter')) s (cond, p);

-- Comparisons of rows: an end of the range, or the first column; the rest is PostgreSQL's to check
SELECT query, compare(query, p) AS result
FROM (VALUES ('SELECT a, b FROM q WHERE (a, b) > (200, 4) ORDER BY a, b', 'Index Only Scan using q_ab(.|\n)*Cond: \(a #># ROW\(200, 4\)\)(.|\n)*Filter: \(ROW'), ('SELECT a, b FROM q WHERE (a, b) < (9, 4) ORDER BY a DESC, b DESC LIMIT 20', 'Limit(.|\n)*Backward using q_ab(.|\n)*Cond: \(a #<# ROW'),
	('SELECT a, b FROM q WHERE (a, b) > (2, 4) ORDER BY a, b LIMIT 5', 'Limit(.|\n)*Cond: \(a #># ROW'),
	('SELECT c, b FROM q WHERE (c, b) >= (''c0'', 5) ORDER BY c, b LIMIT 20', 'Limit(.|\n)*Cond: \(c #>=# ROW'), ('SELECT c, b FROM q WHERE (c, b) <= (''c9'', 4) ORDER BY c DESC, b DESC LIMIT 20', 'Limit(.|\n)*Backward using q_c(.|\n)*Cond: \(c #<=# ROW'),
	('SELECT c, b FROM q WHERE (c, b) >= (''c0'', 5) AND c LIKE ''c1%'' ORDER BY c, b LIMIT 20', 'Limit(.|\n)*Cond: .*c < '), ('SELECT f, id FROM q WHERE (f, id) >= (false, 5) AND f ORDER BY f, id LIMIT 20', 'Limit(.|\n)*Cond: .*f = true'),
	('SELECT a, b FROM q WHERE (200, 4) <= (a, b)', 'Cond: \(a #>=# ROW\(200, 4\)\)'), ('SELECT a, b FROM q WHERE (a, b) >= (9::bigint, 4::smallint) AND (a, b) < (12, 3) ORDER BY a, b', 'Cond: \(\(a #>=# ROW\(.9.::bigint, .4.::smallint\)\) AND \(a #<# ROW\(12, 3\)\)\)'),
	('SELECT a, b FROM q WHERE (a, b) > (200, NULL)', 'Cond: \(a #># ROW'), ('SELECT a, b FROM q WHERE (a, b) > (NULL, 4)', 'One-Time Filter|Index'), ('SELECT b, a FROM q WHERE (b, a) < (2, 100) ORDER BY b DESC, a DESC NULLS LAST LIMIT 50', 'Scan using q_desc(.|\n)*Cond: \(b #<# ROW\(2, 100\)\)'),
	('SELECT id FROM q WHERE a = 17 AND (b, id) > (4, 100)', 'Cond: \(\(a = 17\) AND \(b >= 4\)\)'), ('SELECT id FROM q WHERE (c, id) > (''c30'', 4)', 'Cond: \(c >= '), ('SELECT id FROM q WHERE (a, b) > (b, 3)', 'Filter: \(ROW'), ('SELECT id FROM q WHERE (a, b) > (200 + random()::int * 0, 4)', 'Filter: \(ROW'),
	('SELECT id FROM q WHERE (a, b) > (205, 4) OR a = 3', 'Filter|Index'), ('SELECT id FROM q WHERE (a % 10, b) > (8, 5) AND b > 4', 'q_expr(.|\n)*>= 8|Filter'), ('SELECT x.a, x.b FROM q x WHERE (x.a, x.b) > ((SELECT 200), 4)', 'Cond: \(a #># ROW\((\$0|\(InitPlan)'),
	('SELECT x.a, x.b, (SELECT count(y.b) FROM q y WHERE (y.a, y.b) > (x.a, x.b)) FROM q x WHERE x.a > 205', 'Cond: \(a #># ROW\(x.a, x.b\)\)')) s (query, p);
SET enable_indexscan = off; SET enable_indexonlyscan = off;
SELECT compare('SELECT id FROM q WHERE (a, b) > (200, 4)', 'Filter: \(ROW(.|\n)*Bitmap Index Scan(.|\n)*a #># ROW');
RESET enable_indexscan; RESET enable_indexonlyscan;

-- Estimates stay as they are; a prepared statement can have it; and it does not come before a
-- policy, unless its operator is leakproof
CREATE FUNCTION estimate(query text) RETURNS float LANGUAGE plpgsql AS
	$$ DECLARE plan json; BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan; RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
EXPLAIN (COSTS OFF) SELECT a, b FROM q WHERE (a, b) > (100, 4) ORDER BY a, b LIMIT 10;
SELECT abs(estimate('SELECT FROM q WHERE (a, b) > (100, 4)') - estimate('SELECT FROM q WHERE a > 100')) < 20 AS same;
PREPARE page AS SELECT a, b FROM q WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE page (100, 4);
EXECUTE page (100, 4);
EXECUTE page (210, 8);
RESET plan_cache_mode;
CREATE TABLE hidden (n numeric, k int, c text);
INSERT INTO hidden SELECT n, n, CASE WHEN n % 100 = 7 THEN 'mine' ELSE 'other' END FROM generate_series(1, 2000) n;
CREATE INDEX hidden_n ON hidden USING euno (n);
CREATE INDEX hidden_k ON hidden USING euno (k);
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
CREATE ROLE regress_euno_reader;
CREATE POLICY own ON hidden USING (c = 'mine');
GRANT SELECT ON hidden TO regress_euno_reader;
ANALYZE hidden;
SET ROLE regress_euno_reader;
EXPLAIN (COSTS OFF) SELECT * FROM hidden WHERE (k, n) > (1990, 3);
EXPLAIN (COSTS OFF) SELECT * FROM hidden WHERE (n, k) > (1990, 3);
RESET ROLE;
DROP TABLE hidden;
DROP ROLE regress_euno_reader;

-- Of values beyond those that ANALYZE has seen, the ends are looked up in the index
CREATE TABLE grown (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO grown SELECT n, -n FROM generate_series(1, 10000) n;
CREATE INDEX grown_a ON grown USING euno (a);
CREATE INDEX grown_b ON grown USING euno (b DESC, a) WITH (structure = art);
ANALYZE grown;
INSERT INTO grown SELECT n, -n FROM generate_series(10001, 20000) n;
SELECT estimate('SELECT FROM grown WHERE a > 12000') > 100 AS greatest, estimate('SELECT FROM grown WHERE b < -12000') > 100 AS least, estimate('SELECT FROM grown WHERE a > 20000') AS none;
DELETE FROM grown WHERE a > 12500;
SELECT estimate('SELECT FROM grown WHERE a > 12000') < 60 AS as_far_as_rows_live;
SELECT euno_evict('grown_a');
SELECT estimate('SELECT FROM grown WHERE a > 11000') < 5 AS absent;

-- Networks: what is in one lies between its first and its last address
CREATE TABLE net (i inet);
INSERT INTO net SELECT ('10.' || n % 7 || '.' || n % 50 || '.' || n % 250)::inet FROM generate_series(1, 3000) n;
INSERT INTO net VALUES ('10.3.0.0/16'), ('10.3.7.0/24'), ('10.3.255.255'), ('::1'), ('fe80::3/64'), (NULL);
CREATE INDEX net_i ON net USING euno (i);
ANALYZE net;
SELECT cond, compare('SELECT i FROM net WHERE ' || cond, 'Cond: .*i >') AS result
FROM unnest(ARRAY['i << ''10.3.0.0/16''', 'i <<= ''10.3.7.0/24''', '''10.3.0.0/16'' >> i', '''fe80::/10'' >>= i', 'i <<= ''10.4.2.2''']) cond;

-- Joins
CREATE TABLE r AS SELECT n AS k, n % 7 AS m FROM generate_series(-10, 260) n;
INSERT INTO r SELECT NULL, 2 FROM generate_series(1, 3);
INSERT INTO r SELECT 7, 2 FROM generate_series(1, 40);
CREATE INDEX r_k ON r USING euno (k, m);
ANALYZE r;
SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_sort = off;
SELECT join_type, compare('SELECT q.a, q.id, r.k, r.m FROM q ' || join_type || ' JOIN r ON q.a = r.k', 'Merge(.|\n)*Index(.|\n)*Index') AS merged FROM unnest('{INNER,LEFT,RIGHT,FULL}'::text[]) join_type;
SELECT compare('SELECT q.id FROM q WHERE EXISTS (SELECT FROM r WHERE k = a AND m = b)', 'Merge Semi Join'), compare('SELECT q.id FROM q WHERE NOT EXISTS (SELECT FROM r WHERE k = a)', 'Merge Anti Join'),
	compare('SELECT x.k FROM r x JOIN r y USING (k) ORDER BY x.k DESC', 'Merge Join(.|\n)*Backward(.|\n)*Backward');
RESET enable_nestloop; RESET enable_hashjoin; RESET enable_sort;
SET enable_mergejoin = off; SET enable_hashjoin = off;
SELECT compare('SELECT r.k, q.id FROM r JOIN q ON q.a = r.k AND q.b > r.m', 'Nested Loop'), compare('SELECT r.k, s.a FROM r LEFT JOIN LATERAL (SELECT a, b FROM q WHERE a < r.k ORDER BY a DESC, b DESC LIMIT 1) s ON true', 'Nested Loop Left');
RESET enable_mergejoin; RESET enable_hashjoin;

-- MERGE, and UPDATE and DELETE that find their rows by what they change
BEGIN;
SET LOCAL enable_seqscan = off;
MERGE INTO r USING (VALUES (7, 100), (300, 1), (NULL, 5)) s (k, m) ON r.k = s.k WHEN MATCHED AND r.m = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET m = s.m, k = r.k + 1000 WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.m);
SELECT k, m, count(*) FROM r WHERE k > 255 OR k = 7 OR k IS NULL GROUP BY k, m ORDER BY k, m;
UPDATE r SET k = k + 1 WHERE k > 100;
SELECT count(*), min(k), max(k), sum(k) FROM r WHERE k > 100;
DELETE FROM r WHERE k IN (SELECT k + 1 FROM r WHERE k > 90);
SELECT count(*), sum(k) FROM r WHERE k IS NOT NULL;
SELECT euno_index_check('r_k', true);
ROLLBACK;

-- What the statistics say, and where they are
SELECT pg_stat_force_next_flush();
SELECT indexrelname, idx_scan > 0 AS scanned, idx_tup_read > 0 AS read, idx_tup_fetch IS NOT NULL AS fetched FROM pg_stat_user_indexes WHERE relname = 'q' ORDER BY 1;
SELECT relname, relpages, reltuples FROM pg_class WHERE relname IN ('q_ab', 'q_expr', 'r_k') ORDER BY 1;
SELECT attname, n_distinct, null_frac < 0.2 AS few_nulls FROM pg_stats WHERE tablename = 'q_expr' ORDER BY 1;
ALTER INDEX q_expr ALTER COLUMN 1 SET STATISTICS 10;
ANALYZE q;
SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'q_expr' ORDER BY 1;
DROP TABLE q, r, net, grown;
DROP FUNCTION compare, estimate;
