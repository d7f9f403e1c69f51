--
-- Comparisons of rows, (a, b) > (1, 2): an end of the range
--
SET client_min_messages = warning;
CREATE TYPE pair AS (x int, y int);
CREATE TABLE r (id int, a int, b int, c int, s int2, f float4, d date, ts timestamp, n name, t text COLLATE "C", u text COLLATE "und-x-icu", j jsonb, e int[], p pair);
ALTER TABLE r SET (autovacuum_enabled = off);
INSERT INTO r SELECT i, nullif(i % 5, 4), nullif(i * 7919 % 101, 50), nullif(i % 11, 3), nullif(i % 7, 6) * 5000, (i % 9) / 3.0, date '2000-01-01' + i % 6, timestamp '2000-01-01' + i % 6 * interval '12 hours',
	'n' || i % 4, 't' || i % 6, 'u' || i % 5, to_jsonb(i % 4), ARRAY[i % 3, i % 2], (i % 5, i % 101)::pair FROM generate_series(1, 3000) i;
ANALYZE r;
SET enable_sort = off; SET enable_bitmapscan = off; SET jit = off;

-- What the scan reads and the comparison then drops: nothing, where the index's columns go on with the row's
CREATE FUNCTION dropped(query text, OUT cond text, OUT rows int, OUT dropped int) LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	dropped := 0;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM r ' || query LOOP
		cond := coalesce(cond, substring(line FROM 'Index Cond: (.*)'));
		rows := coalesce(rows, substring(line FROM 'rows=(\d+)')::int);
		dropped := coalesce(substring(line FROM 'Removed by Filter: (\d+)')::int, dropped);
	END LOOP;
END $$;
SET enable_seqscan = off;
CREATE INDEX r_abc ON r USING euno (a, b, c);
SELECT q, (dropped('WHERE ' || q || ' ORDER BY a, b, c')).* FROM unnest(ARRAY['(a, b, c) > (2, 70, 5)', '(a, b, c) >= (2, 70, 5)', '(a, b, c) < (2, 70, 5)', '(a, b, c) <= (2, 70, 5)', '(2, 70) <= (a, b)', '(a, b) > (2, 70)', '(a, c) > (2, 5)', '(b, c) > (70, 5)',
	'a = 2 AND (b, c) > (70, 5)', 'a = 2 AND (a, b, c) > (2, 70, 5)', 'a >= 2 AND (a, b, c) > (2, 70, 5)', 'a > 2 AND (a, b, c) > (2, 70, 5)', 'a IN (1, 3) AND (b, c) < (20, 5)', '(a, b, c) > (1, 70, 5) AND (a, b, c) <= (2, 30, 6)', '(a, b) > (2, 20) AND (a, b) < (2, 30)',
	'(a, b, c) > (2, 20, 3) AND (a, b) <= (2, 20)', '(a, b) > (2, 20) AND (a, b) < (2, 20)', '(a, b) > (2, NULL)', '(a, b, c) <= (2, NULL, 5)', '(a, b, c) > (2, 70, NULL)', 'a = 2 AND (a, b) > (2, NULL)', '(a, b) > (NULL, 2)', '(a, b) > (2, 70) AND b > 90', '(a, b, c) > (2::bigint, 70::smallint, 3000000000)', '(a, b) > (2::bigint, 70.5)']) q;
DROP INDEX r_abc;
CREATE INDEX r_afc ON r USING euno (a, f, c);
SELECT q, (dropped('WHERE ' || q || ' ORDER BY a, f, c')).* FROM unnest(ARRAY['(a, f, c) > (2, 0.5::float8, 7)', '(a, f, c) > (2, 0.333333333333::float8, 7)', '(a, f, c) < (2, 0.666666666::float8, 7)', '(a, f, c) > (2, 1::float8, 7)', '(a, f, c) <= (2, 1::float8, 7)', '(a, f, c) > (2, 1::float8, NULL)']) q;
DROP INDEX r_afc;
CREATE INDEX r_desc ON r USING euno (a DESC, b DESC, c) WITH (structure = art);
SELECT q, (dropped('WHERE ' || q || ' ORDER BY a DESC, b DESC, c')).* FROM unnest(ARRAY['(a, b) > (2, 70)', '(a, b) <= (2, 70)', '(a, b, c) > (2, 70, 5)', '(a, b, c) < (2, 70, 5)', '(b, c) < (70, 5)']) q;
DROP INDEX r_desc;
CREATE INDEX r_u ON r USING euno (u, b, j);
SELECT q, (dropped('WHERE ' || q || ' ORDER BY u, b, j')).* FROM unnest(ARRAY['(u, b) > (''u2'', 70)', '(u, b, j) >= (''u2'', 70, ''3'')', 'u = ''u2'' AND (b, j) < (70, ''1'')', '(u, b) > (''u2'', 70) AND (u, b) < (''u2'', 90)', '(u, b) > (''u2'' COLLATE "C", 70)', 'u >= ''u2'' AND (b, j) > (90, ''1'')']) q;
DROP INDEX r_u;
CREATE INDEX r_pc ON r USING euno (p, c);
SELECT q, (dropped('WHERE ' || q || ' ORDER BY p, c')).* FROM unnest(ARRAY['(p, c) > ((3, 90)::pair, 5) AND p < (3, 95)::pair', '(p, c) > ((3, 90), 5) AND p < (3, 95)']) q;
DROP INDEX r_pc;

-- No condition on the first column that matches, but in another family: no mistake either
CREATE INDEX r_twice ON r USING euno (t text_pattern_ops, a, t, b);
SELECT (dropped('WHERE (t, b) > (''t2'', 70) ORDER BY t USING ~<~, a')).*;
DROP INDEX r_twice;

-- In joins too, where before 18 a unique index has to pass for a btree, and on types whose families do
SET client_min_messages = error; -- of ON CONFLICT, before 18
CREATE UNIQUE INDEX r_unique ON r USING euno (id, b);
SET client_min_messages = warning;
EXPLAIN (COSTS OFF) SELECT id, x FROM r, generate_series(1, 2) x WHERE (id, b) > (2990, 70) ORDER BY id, b;
SELECT id, x FROM r, generate_series(1, 2) x WHERE (id, b) > (2998, 70) ORDER BY id, b, x;
DROP INDEX r_unique;
CREATE INDEX r_odd ON r USING euno ((c > 5), b);
SELECT (dropped('WHERE (c > 5, b) > (true, 90) ORDER BY c > 5, b')).*;
DROP INDEX r_odd;
CREATE INDEX r_net ON r USING euno (('10.0.0.0'::inet + id), b);
SELECT (dropped('WHERE (''10.0.0.0''::inet + id, b) > (''10.0.11.180'', 70) ORDER BY ''10.0.0.0''::inet + id, b')).*;
DROP INDEX r_net;

-- Other columns keep the names of families that other conditions need
CREATE INDEX r_mixed ON r USING euno (t text_pattern_ops, (a > 1), a, b);
SELECT (dropped('WHERE t LIKE ''t2%'' AND (a > 1) AND (a, b) > (2, 70) ORDER BY t USING ~<~, a > 1, a, b')).*;
DROP INDEX r_mixed;

-- Where there is no right to call the operators' function, and where they would come before a policy, the
-- first column is all
CREATE INDEX r_ab ON r USING euno (a, b);
CREATE ROLE regress_euno_reader;
GRANT SELECT ON r TO regress_euno_reader;
REVOKE EXECUTE ON FUNCTION euno_row_bound FROM PUBLIC;
SET ROLE regress_euno_reader;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE (a, b) > (3, 90) ORDER BY a, b;
SELECT count(*) FROM r WHERE (a, b) > (3, 90);
RESET ROLE;
GRANT EXECUTE ON FUNCTION euno_row_bound TO PUBLIC;
SET ROLE regress_euno_reader;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE (a, b) > (3, 90) ORDER BY a, b;
SELECT count(*) FROM r WHERE (a, b) > (3, 90);
RESET ROLE;
DROP INDEX r_ab;
CREATE INDEX r_aj ON r USING euno (a, j);
CREATE POLICY evens ON r USING (id % 2 = 0);
ALTER TABLE r ENABLE ROW LEVEL SECURITY;
SET ROLE regress_euno_reader;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE (a, j) > (3, '2') ORDER BY a, j;
SELECT count(*) FROM r WHERE (a, j) > (3, '2');
RESET ROLE;
ALTER TABLE r DISABLE ROW LEVEL SECURITY;
DROP POLICY evens ON r;
DROP INDEX r_aj;
REVOKE SELECT ON r FROM regress_euno_reader;
DROP ROLE regress_euno_reader;
RESET enable_seqscan;

-- Under OR: bitmaps of several indexes, each with what follows for it, where all arms have one
CREATE INDEX r_abc ON r USING euno (a, b, c);
CREATE INDEX r_ba ON r USING euno (b DESC, a DESC);
CREATE INDEX r_id ON r USING euno (id);
CREATE INDEX r_c ON r USING euno (c, id) WHERE s = 5000;
SET enable_bitmapscan = on; SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE (a, b) > (3, 95) OR id = 7;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE ((a, b, c) < (0, 3, 5) OR (b, a) > (99, 1) OR id IN (7, 8)) AND d > '2000-01-02';
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE ((b, c) > (95, 3) OR id < 4) AND a = 3;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE (c, id) < (0, 500) AND s = 5000 OR (id < 3 OR id > 2990) AND (a, b) > (3, 95);
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE (a, b) > (3, 95) OR (c, id) < (0, 500);
-- Row comparisons beside it are for each arm, but not where there are many: 16 arms with two, 17 with two
CREATE FUNCTION ends_at_row(arms int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n bigint := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT id FROM r WHERE ((a, b, c) > (3, 95, 1)' ||
		(SELECT string_agg(format(' OR a = 3 AND b = %s', g), '') FROM generate_series(2, arms) g) || ') AND (a, b) < (3, 98) AND (b, a) < (98, 3)' LOOP
		n := n + (line ~ 'Index Cond: .*#<# ROW')::int;
	END LOOP;
	RETURN n;
END $$;
SELECT ends_at_row(16) > 0 AS "16 arms", ends_at_row(17) > 0 AS "17 arms";
DROP FUNCTION ends_at_row;
CREATE FUNCTION both_ways(cond text) RETURNS TABLE (with_indexes text, same boolean) LANGUAGE plpgsql AS $$
DECLARE without text;
BEGIN
	EXECUTE 'SELECT count(*) || '' '' || sum(id) FROM r WHERE ' || cond INTO with_indexes;
	SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = off;
	EXECUTE 'SELECT count(*) || '' '' || sum(id) FROM r WHERE ' || cond INTO without;
	SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = on;
	same := with_indexes = without;
	RETURN NEXT;
END $$;
SELECT q, b.* FROM unnest(ARRAY['(a, b) > (3, 95) OR id = 7', '((a, b, c) < (0, 3, 5) OR (b, a) > (99, 1) OR id IN (7, 8)) AND d > ''2000-01-02''', '((b, c) > (95, 3) OR id < 4) AND a = 3', '(c, id) < (0, 500) AND s = 5000 OR (id < 3 OR id > 2990) AND (a, b) > (3, 95)',
	'(a, b) > (3, 95) OR (c, id) < (0, 500)', '(c, id) < (0, 500) AND s = 5000 OR (c, id) < (0, 600)', '(a, b) > (3, NULL) OR id = 7', '(a, b) > (NULL, 3) OR id = 7', '(3, 95) < (a, b) OR a IS NULL', '(a, b) > (2, 3) OR a IS NOT NULL', 'NOT ((a, b) > (0, 3) AND id > 5)', '((a, b) > (3, 95) OR id = 7) AND ((b, a) < (2, 3) OR id < 9)']) q, both_ways(q) b;
BEGIN;
UPDATE r SET c = 99 WHERE (a, b) > (3, 95) OR id = 7;
SELECT count(*), count(*) FILTER (WHERE (a, b) > (3, 95) OR id = 7) FROM r WHERE c = 99;
ROLLBACK;
DROP INDEX r_abc, r_ba, r_id, r_c;
DROP FUNCTION both_ways;
RESET enable_seqscan; SET enable_bitmapscan = off;

-- With a condition that is another index's, but not with the same one of another index
CREATE TABLE wide WITH (autovacuum_enabled = off) AS SELECT i AS id, i * 7919 % 101 AS a, i * 2713 % 1009 AS b, i * 5471 % 127 AS c, repeat('x', 200) AS w FROM generate_series(1, 20000) i;
CREATE INDEX wide_ab ON wide USING euno (a, b);
CREATE INDEX wide_c ON wide USING euno (c);
CREATE INDEX wide_btree ON wide USING btree (a, b, c);
ANALYZE wide;
SET enable_bitmapscan = on; SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM wide WHERE (a, b) > (97, 500);
DROP INDEX wide_btree;
EXPLAIN (COSTS OFF) SELECT id FROM wide WHERE (a, b) > (97, 500) AND c = 3;
SELECT count(*), sum(id) FROM wide WHERE (a, b) > (97, 500) AND c = 3;
SET enable_bitmapscan = off;
SELECT count(*), sum(id) FROM wide WHERE (a, b) > (97, 500) AND c = 3;
RESET enable_indexscan;
DROP TABLE wide;

-- All the same with and without an index
CREATE FUNCTION differences(columns text, definition text, tries int) RETURNS TABLE (queries int, wrong text) LANGUAGE plpgsql AS $$
DECLARE
	cols text[] := string_to_array(columns, ' ');
	sum1 bigint; sum2 bigint; cond text; n int; at int; value text; left_side text; right_side text; op text;
BEGIN
	queries := 0;
	EXECUTE format('CREATE INDEX r_test ON r USING euno (%s)', definition);
	FOR try IN 1 .. tries LOOP
		cond := 'true';
		FOR k IN 1 .. 1 + (random() * 1.4)::int LOOP
			at := 1 + (random() * (cardinality(cols) - 2))::int;
			n := 2 + (random() * (cardinality(cols) - at - 1))::int;
			right_side := '';
			FOR i IN at .. at + n - 1 LOOP
				EXECUTE format('SELECT quote_nullable(%1$I) || %2$L FROM r WHERE id = %3$s', cols[i], CASE WHEN cols[i] IN ('a', 'b', 'c') THEN '::' || (ARRAY['int2', 'int4', 'int8'])[1 + (random() * 2)::int] WHEN cols[i] = 's' THEN '::int8 * ' || (1 + (random() * 3)::int)
					WHEN cols[i] = 'd' AND random() < 0.5 THEN '::timestamp + interval ''6 hours''' WHEN cols[i] IN ('d', 'ts') AND random() < 0.5 THEN '::timestamptz' WHEN cols[i] = 'f' THEN '::float8 + ' || (random() * 2)::int / 10.0 WHEN cols[i] = 'n' AND random() < 0.5 THEN '::text'
					WHEN cols[i] = 't' AND random() < 0.1 THEN '|| repeat(''x'', 9000)' WHEN cols[i] = 'e' THEN '::int[]' WHEN cols[i] = 'p' THEN '::pair' WHEN cols[i] = 'j' THEN '::jsonb' ELSE '' END, 1 + (random() * 2999)::int) INTO value;
				right_side := right_side || ', ' || coalesce(value, 'NULL');
			END LOOP;
			right_side := '(' || substr(right_side, 3) || ')';
			left_side := '(' || array_to_string(cols[at : at + n - 1], ', ') || ')';
			op := (ARRAY[' < ', ' <= ', ' >= ', ' > '])[1 + (random() * 3)::int];
			cond := cond || ' AND ' || CASE WHEN random() < 0.8 THEN left_side || op || right_side ELSE right_side || op || left_side END;
		END LOOP;
		IF random() < 0.3 THEN
			EXECUTE format('SELECT quote_literal(%1$I) FROM r WHERE id = %2$s', cols[1], 1 + (random() * 2999)::int) INTO value;
			cond := cond || CASE WHEN value IS NULL THEN '' ELSE format(' AND %I %s %s', cols[1], (ARRAY['=', '>=', '<'])[1 + (random() * 2)::int], value) END;
		END IF;
		IF random() < 0.4 THEN
			EXECUTE format('SELECT quote_literal(%1$I) FROM r WHERE id = %2$s', cols[1], 1 + (random() * 2999)::int) INTO value;
			cond := cond || CASE WHEN value IS NULL THEN '' ELSE format(' OR %I %s %s', cols[1], (ARRAY['=', '>', '<='])[1 + (random() * 2)::int], value) END;
		END IF;
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
		EXECUTE 'SELECT sum(id * (id + 17) % 1009) FROM r WHERE ' || cond INTO sum1;
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on;
		EXECUTE 'SELECT sum(id * (id + 17) % 1009) FROM r WHERE ' || cond INTO sum2;
		queries := queries + 1;
		IF sum1 IS DISTINCT FROM sum2 THEN wrong := cond; END IF;
	END LOOP;
	DROP INDEX r_test;
	RETURN NEXT;
END $$;
SELECT setseed(0.5);
SELECT definition, d.* FROM (VALUES ('a b c', 'a, b, c'), ('a b c', 'a DESC, b DESC, c DESC) WITH (structure = art'), ('a b c', 'a NULLS FIRST, b DESC, c'), ('s f a', 's, f, a'), ('d ts a', 'd, ts, a'), ('d a b', 'd DESC, a DESC, b DESC'), ('n t a', 'n, t, a'), ('t n b', 't, n, b) WITH (structure = art'),
	('u a b', 'u, a, b'), ('a u j', 'a, u, j'), ('j b u', 'j DESC, b DESC, u DESC'), ('e a d', 'e, a, d'), ('b p a', 'b, p, a')) v (columns, definition), differences(columns, definition, 60) d;

-- The operators are the planner's
SELECT id FROM r WHERE a #># ROW(1, 2);
SELECT 1 #<# NULL::record;
SELECT id FROM r WHERE a #># ANY (ARRAY[ROW(1, 2)]);
SELECT id FROM r WHERE a #>=# ALL (ARRAY[ROW(1, 2), NULL]);
SELECT id FROM r WHERE a #<# ANY (SELECT ROW(b, c) FROM r);
SELECT id FROM r WHERE a #<=# (SELECT ROW(1, 2));
DROP TABLE r;
DROP TYPE pair;
DROP FUNCTION dropped, differences;
