--
-- IN lists and "= ANY (array)"; conditions behind a gap
--
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir '/test/compare.sql'
\i :compare
CREATE TABLE t (id int, a int, b int, c text COLLATE "C", d numeric, f float8, by bytea, ts timestamptz, nm name);
ALTER TABLE t SET (autovacuum_enabled = off);
INSERT INTO t SELECT n, nullif(n * 7919 % 211, 5), nullif(n * 31 % 29, 3), 'c' || n % 37, (n * 13 % 50) / 4.0,
	CASE n % 40 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE (n % 40 - 2)::float8 END,
	decode(substr('00ff0000ff', 1, n % 6 * 2), 'hex'), '2024-03-30 00:00+00'::timestamptz + n % 100 * interval '1 hour', 'n' || n % 50
	FROM generate_series(1, 12000) n;
CREATE INDEX t_abid ON t USING euno (a, b, id);
CREATE INDEX t_desc ON t USING euno (b DESC, a NULLS FIRST, c DESC);
-- An operator class whose comparator is not known: its index is in COMPARE order
CREATE FUNCTION compared_cmp(numeric, numeric) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_cmp';
CREATE OPERATOR CLASS compared FOR TYPE numeric USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared_cmp(numeric, numeric);
CREATE INDEX t_d ON t USING euno (d compared, a);
CREATE INDEX t_f ON t USING euno (f DESC, by, c);
CREATE INDEX t_c ON t USING euno (c, a);
CREATE INDEX t_by ON t USING euno (by DESC, a);
CREATE INDEX t_ts ON t USING euno (ts, nm);
CREATE INDEX t_nm ON t USING euno (nm, id);
VACUUM ANALYZE t;
SET enable_bitmapscan = off;

-- What an array may hold; several keys on a column; several columns
SELECT q AS "where", compare('SELECT id FROM t WHERE ' || q, 'Index (Only )?Scan') AS plain
FROM unnest(ARRAY[
	'a IN (9, 1, 5, 300, 1, NULL)', 'a IN (5, 5, 5)', 'a = ANY (''{}'')', 'a = ANY (''{NULL}'')', 'a = ANY (NULL::int[])', 'a = ANY (''{{1,2},{3,4}}'')',
	'a IN (3000000000, 9, -7::bigint)', 'a = ANY (''{3000000000}''::bigint[])', 'a = ANY (''{5,7,9}''::smallint[]) AND b <> 4',
	'a < ANY (''{3,9,NULL}'')', 'a <= ANY (''{3,3000000000}''::bigint[])', 'a >= ANY (''{190,199}'')', 'a > ANY (''{}'')', 'a > ANY (''{NULL,205}''::smallint[])',
	'a IN (1, 2, 3) AND a > 1', 'a IN (1, 2, 3) AND a IN (2, 3, 4)', 'a IN (1, 2, 3) AND a IN (7, 8)', 'a IN (1, 2, 3) AND a = 2', 'a IN (1, 2, 3) AND a < 1',
	'a IN (1, 2, 3) AND a IS NULL', 'a IN (1, 2, 3) AND a IS NOT NULL', 'a IN (1, 2, 3, 4) AND a < ANY (''{1,3}'')',
	'a IN (1, 2, 3) AND b IN (1, 2, 3)', 'a IN (1, 2, 3) AND b > 20', 'a IN (1, 2, 3) AND b IS NULL', 'a IN (1, 2, 3) AND id IN (9, 601, 2078, 2873)',
	'a IN (1,2,3,4,6,7,8,9,10,11,12) AND b IN (1,4,9,12,13,15,16,17,20,22)', 'a IN (1,2,3) AND b IN (1,4,9,12,13) AND id IN (2,601,682,2078,9000)', 'a IS NULL AND b IN (1, 2)',
	'b IN (3, 5) AND a < 40', 'b IN (1, 2) AND a IN (1,2,3,4,6,7,8,9,10) AND c IN (''c1'', ''c2'', ''c3'', ''c4'', ''c5'', ''c6'', ''c7'', ''c8'', ''c9'')',
	'd IN (1, 2, 3.5, 3.50, 99)', 'd IN (1, 2) AND a IN (1, 2, 3, 4, 6, 7, 8, 9)', 'd IN (1,2,3,4,5,6,7,8,9) AND a IN (1,2,3,4,6,7,8,9,10)', 'd < ANY (''{1,2}''::numeric[])',
	'd IN (1, 2, 3) AND d > 1', 'd IN (1, 2, 3) AND d IN (3, 4, 2.0)',
	'c IN (''c1'', ''c2'', ''nope'')', 'c = ANY (''{c1,c2,c99}''::name[])', 'c IN (''c1'', ''c2'') AND a BETWEEN 3 AND 20', 'c IN (''c1'', repeat(''x'', 4000))',
	'f IN (0, 5, ''NaN'', 41)', 'f = ANY (''{-0,NaN,7}''::float4[])', 'f IN (0, 1) AND by IN ('''', ''\x00'', ''\x00ff'', ''\x00ff00'')',
	'by IN (''\x00'', ''\x00ff'', ''\x00ff0000'', ''\x01'')', 'by IN (''\x00ff00'', '''') AND a > 200',
	'ts = ANY (''{2024-03-30,2024-03-31,2024-04-01}''::date[])', 'ts = ANY (''{2024-03-30 10:00,2024-03-31 02:30}''::timestamp[])', 'ts IN (''2024-03-30 22:00+00'', ''2024-03-31 01:00+02'') AND nm = ANY (''{n23,n22}''::text[])',
	'nm = ANY (''{n1,n49,n5}''::text[])', 'nm IN (''n1'', ''n2'') AND id < 100'
	]) q;

-- A gap: the leading column has no condition, or a range
SELECT q AS "where", compare('SELECT id FROM t WHERE ' || q, 'Index (Only )?Scan') AS plain
FROM unnest(ARRAY[
	'id = 4711', 'id IN (1, 4711, 11999)', 'a > 100 AND b = 6', 'a BETWEEN 50 AND 60 AND b IN (1, 17, 40)', 'a > 200 AND b IS NULL', 'a > 200 AND b IS NOT NULL', 'a IS NOT NULL AND b < 2',
	'a > 150 AND b > 25 AND id < 3000', 'b > 20 AND a IS NULL', 'b < 3 AND c = ''c7''', 'b = 6 AND c > ''c7'' AND c <= ''c9''', 'b = 6 AND c > ''c8'' AND c < ''c8''',
	'c > ''c5'' AND a = 4', 'by > ''\x00'' AND a = 4', 'f > 3 AND c = ''c5''', 'f < 3 AND by = ''\x00'' AND c >= ''c30''', 'd > 3 AND a IN (4, 6)', 'nm > ''n30'' AND id BETWEEN 50 AND 70'
	]) q;

-- The order is that of the index, both ways
SELECT q AS query, compare('SELECT a, b, id FROM t WHERE ' || q, 'Index (Only )?Scan') AS ordered
FROM unnest(ARRAY[
	'a IN (9, 1, 5) ORDER BY a, b, id', 'a IN (9, 1, 5) ORDER BY a DESC, b DESC, id DESC', 'a IN (3, 2, 1) AND b IN (6, 1, 2, 3, 4) ORDER BY a, b, id',
	'a IN (3, 2, 1) AND b IN (6, 1, 2, 9, 4, 12) AND id IN (2873, 2500, 682, 7, 2800, 601, 2078) ORDER BY a DESC, b DESC, id DESC',
	'a > 5 AND b IN (4, 8) ORDER BY a, b, id', 'a > 5 AND b IN (4, 8, 20, 21, 22) ORDER BY a DESC, b DESC, id DESC', 'a IN (8, 4) ORDER BY a, b, id LIMIT 3', 'a IN (8, 4) ORDER BY a, b, id OFFSET 70',
	'b IN (4, 8, 20) AND a = 7 ORDER BY b DESC, id', 'a IS NULL AND b IN (9, 3, 7) ORDER BY b, id'
	]) q;
SELECT compare('SELECT f, id FROM t WHERE f IN (5, 0, ''NaN'', 9) ORDER BY f DESC, id', 'Index Scan using t_f'),
	compare('SELECT d, id FROM t WHERE d IN (5, 1, 0, 2.50, 9) ORDER BY d DESC, a DESC, id', 'Index Scan Backward using t_d');

-- Bitmaps
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT q AS "where", compare('SELECT id FROM t WHERE ' || q, 'Bitmap Index Scan') AS bitmap
FROM unnest(ARRAY['a IN (9, 1, 5, 300, NULL)', 'a IN (1,2,3,4,6,7,8,9,10,11,12) AND b IN (1,4,9,12,13,15,16,17,20,22)', 'a = ANY (''{}'')',
	'd IN (1, 2, 3.5)', 'a IN (1, 2) OR d IN (1, 2)', 'a > 100 AND b = 6', 'c < ANY (''{c2,c1}'')']) q;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;

-- Rescans with other arrays; a row with its neighbors: mark and restore
CREATE TABLE o AS SELECT n AS k, ARRAY[n, n * 3, NULL, 7] AS l FROM generate_series(1, 60) n;
INSERT INTO o VALUES (1, '{}'), (2, NULL), (3, '{NULL}'), (4, ARRAY(SELECT generate_series(1, 300)));
ANALYZE o;
SET enable_material = off;
SET enable_memoize = off;
SELECT compare('SELECT o.k, t.id FROM o JOIN t ON t.a = ANY (o.l)', 'Nested Loop(.|\n)*Index Cond: \(a = ANY'),
	compare('SELECT o.k, (SELECT count(*) FROM t WHERE c = ANY (ARRAY[''c'' || o.k, ''c5'']) AND a IN (o.k, 4)) FROM o', 'Index Cond: .*(c|a) = ANY'),
	compare('SELECT o.k, l.id FROM o, LATERAL (SELECT id FROM t WHERE a = ANY (o.l) ORDER BY a DESC, b DESC, id DESC LIMIT 2) l', 'Index Only Scan Backward');
SET enable_nestloop = off; SET enable_hashjoin = off;
SELECT compare('SELECT x.a, count(*), sum(x.id::bigint * y.id) FROM t x JOIN t y ON x.a = y.a WHERE x.a IN (1, 4, 9, 50) AND y.a IN (9, 4, 51, 1) GROUP BY x.a', 'Merge Join');
RESET enable_nestloop; RESET enable_hashjoin; RESET enable_material; RESET enable_memoize;

-- A scroll cursor at random, beside a copy of what it should return
CREATE FUNCTION walk(query text, steps int, index_order text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	cur refcursor;
	truth text[];
	at int := 0;
	n int;
	r record;
	back bool;
BEGIN
	SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
	EXECUTE format('SELECT array_agg(q::text) FROM (%s%s) q', query, index_order) INTO truth;
	SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off;
	n := coalesce(cardinality(truth), 0);
	OPEN cur SCROLL FOR EXECUTE query;
	FOR step IN 1..steps LOOP
		back := random() < 0.4;
		FOR i IN 1..(random() ^ 3 * 300)::int + 1 LOOP
			IF back THEN FETCH PRIOR FROM cur INTO r; at := greatest(at - 1, 0);
			ELSE FETCH NEXT FROM cur INTO r; at := least(at + 1, n + 1); END IF;
			IF (CASE WHEN FOUND THEN r::text END) IS DISTINCT FROM (CASE WHEN at BETWEEN 1 AND n THEN truth[at] END) THEN
				RETURN format('row %s of %s: %s', at, n, r);
			END IF;
		END LOOP;
	END LOOP;
	CLOSE cur;
	RETURN n || ' rows';
END $$;
SELECT setseed(0.5);
SELECT q AS query, walk('SELECT a, b, id FROM t WHERE ' || q, 80) AS walked
FROM unnest(ARRAY[
	'a IN (1, 6, 9, 40) ORDER BY a, b, id', 'a IN (9, 1, 6, 40) ORDER BY a DESC, b DESC, id DESC', 'a IN (1, 260, 261, 262, 263, 264, 6, 265, 266, 267, 40, 280, 281, 282, 283) ORDER BY a, b, id',
	'a IN (1, 6, 9, 40) AND b IN (1, 6, 9, 10, 12, 14, 15, 16) ORDER BY a, b, id', 'a > 6 AND id IN (100, 1000, 2000, 3000, 4000, 5555, 6666) ORDER BY a, b, id', 'a BETWEEN 6 AND 90 AND b IN (4, 9, 20) ORDER BY a DESC, b DESC, id DESC',
	'b < 25 AND id < 4000 ORDER BY a, b, id', 'a IN (500, 600, 700) ORDER BY a, b, id'
	]) q;
-- Without an order before 17 both arrays choose
SELECT q AS query, walk('SELECT a, b, id FROM t WHERE ' || q, 80, ' ORDER BY a, b, id') AS walked
FROM unnest(ARRAY['a IN (1, 6, 9, 40) AND b IN (6, 9, 10, 12)', 'a IN (1, 6, 9, 40) AND b IN (1, 6, 9, 10, 12, 14, 15, 16, 17, 18)']) q;
SELECT q AS query, walk('SELECT d, a, id FROM t WHERE ' || q, 80, ' ORDER BY d, a, id') AS walked
FROM unnest(ARRAY['d IN (1.5, 4, 7.25) AND a IN (4, 6, 9, 40)']) q;

-- Index only and backward, several ranges to a batch: the keys of all have to stay
CREATE TABLE back (a int, b int, u uuid);
INSERT INTO back SELECT n % 2000, n, md5((n % 1500)::text)::uuid FROM generate_series(1, 20000) n;
CREATE INDEX back_ab ON back USING euno (a, b); CREATE INDEX back_u ON back USING euno (u, b);
VACUUM ANALYZE back;
SELECT compare('SELECT a, b FROM back WHERE a = ANY (ARRAY(SELECT n * 7 FROM generate_series(1, 250) n)) ORDER BY a DESC, b DESC', 'Index Only Scan Backward using back_ab'),
	compare('SELECT a, b FROM back WHERE a = ANY (ARRAY(SELECT n * 3 FROM generate_series(1, 600) n)) AND b > 9000 ORDER BY a DESC, b DESC', 'Index Only Scan Backward using back_ab'),
	compare('SELECT u, b FROM back WHERE u = ANY (ARRAY(SELECT md5(n::text)::uuid FROM generate_series(1, 1400, 5) n)) ORDER BY u DESC, b DESC', 'Index Only Scan Backward using back_u');
DROP TABLE back;

-- Keys so long that the buffer of a batch is full before the batch is
CREATE TABLE long (k text COLLATE "C", v text);
INSERT INTO long SELECT repeat(chr(97 + n % 26), 1 + n * 37 % 2300) || n, 'p' || n FROM generate_series(1, 1500) n;
CREATE INDEX long_k ON long USING euno (k) INCLUDE (v);
CREATE INDEX long_art ON long USING euno (k) WITH (structure = art);
VACUUM ANALYZE long;
SELECT compare('SELECT v, length(k) FROM long WHERE k = ANY (ARRAY(SELECT k FROM long WHERE length(k) > 1500)) ORDER BY k DESC', 'Index Only Scan Backward using long_k on long(.|\n)*Index Cond');
DROP INDEX long_k;
SELECT compare('SELECT length(k) FROM long WHERE k = ANY (ARRAY(SELECT k FROM long WHERE length(k) > 700)) ORDER BY k', 'Index Only Scan using long_art on long(.|\n)*Index Cond');

-- Where the clock goes from 2:00 to 3:00, 2:30 is a later moment than 3:00
SET timezone = 'Europe/Berlin';
CREATE TABLE clock (t timestamptz);
INSERT INTO clock SELECT timestamptz '2024-03-31 00:00+00' + n * interval '10 min' FROM generate_series(0, 12) n;
CREATE INDEX clock_t ON clock USING euno (t);
SELECT compare('SELECT t FROM clock WHERE t ' || op || ' ANY (ARRAY[''2024-03-31 02:30'', ''2024-03-31 03:00'']::timestamp[]) ORDER BY t', 'using clock_t')
FROM unnest(ARRAY['<', '<=', '=', '>=', '>']) op;
DROP TABLE clock;
RESET timezone;
SELECT euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 't';
DROP TABLE t, o, long;
DROP OPERATOR FAMILY compared USING euno;
DROP FUNCTION compare, walk, compared_cmp;

-- Strings that are together longer than any entry
CREATE TABLE k (a text COLLATE "C", b text COLLATE "C");
INSERT INTO k SELECT n % 50, n % 40 FROM generate_series(1, 20000) n;
INSERT INTO k VALUES (repeat('x', 2000), 'y'), ('x', repeat('y', 2000));
CREATE INDEX k_ab ON k USING euno (a, b);
VACUUM ANALYZE k;
PREPARE longest(text, text, text, text) AS SELECT count(*) FROM k WHERE a = ANY (ARRAY[$1, $2]) AND b = ANY (ARRAY[$3, $4]);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE longest('', '', '', '');
EXECUTE longest(repeat('x', 2000), repeat('x', 2000), repeat('y', 2000), repeat('y', 2000));
EXECUTE longest(repeat('x', 2000), 'x', repeat('y', 2000), 'y');
EXECUTE longest('7', 'x', repeat('y', 2000), '7');
RESET plan_cache_mode;
DROP TABLE k;
