--
-- The planner sees an index while its tree is there, and only then
--
CREATE TABLE p (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO p SELECT n, n % 100 FROM generate_series(1, 10000) n;
CREATE INDEX p_a ON p USING euno (a);
VACUUM ANALYZE p;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'p_a';

-- Absent: other plans, which EXPLAIN does not change
SELECT euno_evict('p_a');
SELECT state, entries, bytes, euno_index_size('p_a') FROM euno_stat_indexes WHERE indexrelname = 'p_a';
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
DO $$ BEGIN EXECUTE 'EXPLAIN (ANALYZE) SELECT * FROM p WHERE a = 5'; END $$;
SELECT * FROM p WHERE a = 5;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'p_a';

-- Writers do not wait for it, and do not build it
INSERT INTO p VALUES (5, 5);
UPDATE p SET a = 6 WHERE a = 7;
DELETE FROM p WHERE a = 8;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'p_a';

-- Evicting what is absent, building what is there
SELECT euno_evict('p_a');
SELECT euno_rebuild('p_a');
SELECT euno_rebuild('p_a');
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
SELECT * FROM p WHERE a BETWEEN 5 AND 9 ORDER BY a, b;
SELECT euno_index_check('p_a', true);

-- A prepared statement, with the plan it was made with
PREPARE s AS SELECT * FROM p WHERE a = $1 ORDER BY b;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE s (5);
EXECUTE s (5);
SELECT euno_evict('p_a');
EXPLAIN (COSTS OFF) EXECUTE s (5);
EXECUTE s (5);
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'p_a';
SELECT euno_rebuild('p_a');
EXPLAIN (COSTS OFF) EXECUTE s (5);
EXECUTE s (5);

-- The plans of a function
CREATE FUNCTION f(x int) RETURNS bigint LANGUAGE plpgsql AS
	$$ BEGIN RETURN (SELECT count(*) FROM p WHERE a = x); END $$;
SELECT f(5), f(6), f(7), f(8);
SELECT euno_evict('p_a');
SELECT f(5), f(6), f(7), f(8);
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'p_a';
SELECT euno_rebuild('p_a');
SELECT f(5), f(6), f(7), f(8);

-- An open cursor: its plan has the index, and needs it
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM p WHERE a > 100 ORDER BY a;
FETCH 2 FROM c;
SELECT euno_evict('p_a');
MOVE 2000 FROM c;
FETCH 2 FROM c;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'p_a';
SELECT euno_evict('p_a');
FETCH BACKWARD 2 FROM c;
MOVE BACKWARD 1990 FROM c;
FETCH BACKWARD 3 FROM c;
COMMIT;
RESET plan_cache_mode;
DEALLOCATE s;

-- What it estimates and what there is
CREATE FUNCTION estimated_rows(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->'Plan Rows';
END $$;
ANALYZE p;
SELECT estimated_rows('SELECT * FROM p WHERE a = 5') BETWEEN 1 AND 3 AS one,
	estimated_rows('SELECT * FROM p WHERE a < 1000') BETWEEN 900 AND 1100 AS a_tenth;
-- An index that is absent has statistics of its expressions all the same, and is in
-- no plan
CREATE TABLE e AS SELECT g AS a, g % 2 AS b FROM generate_series(1, 10000) g;
CREATE INDEX e_half ON e USING euno ((b + 1));
SET client_min_messages = error;
CREATE UNIQUE INDEX e_next ON e USING euno ((a + 1));
RESET client_min_messages;
ANALYZE e;
SELECT euno_evict('e_half'), euno_evict('e_next');
SELECT estimated_rows('SELECT * FROM e WHERE b + 1 = 1') BETWEEN 4500 AND 5500 AS half,
	estimated_rows('SELECT a + 1 FROM e GROUP BY 1') = 10000 AS each;
SET seq_page_cost = 100;
EXPLAIN (COSTS OFF) SELECT * FROM e WHERE b + 1 = 1;
EXPLAIN (COSTS OFF) SELECT * FROM e WHERE a + 1 = 5 OR (b + 1) IN (1, 2);
EXPLAIN (COSTS OFF) SELECT max(a + 1) FROM e;
EXPLAIN (COSTS OFF) SELECT * FROM e WHERE (a + 1) IS NULL;
EXPLAIN (COSTS OFF) SELECT * FROM e ORDER BY a + 1 LIMIT 1;
EXPLAIN (COSTS OFF) SELECT * FROM e x JOIN e y ON x.a + 1 = y.a + 1;
EXPLAIN (COSTS OFF) SELECT * FROM e WHERE a + 1 = ANY ('{1, 2}') AND (b + 1, a + 1) > (1, 2);
RESET seq_page_cost;
SELECT indexrelname, state FROM euno_stat_indexes WHERE relname = 'e' ORDER BY 1;
DROP TABLE e;

SELECT euno_rebuild('p_a');
-- A scan of all of it is for its order alone; a few rows are for the index
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a < 20;
EXPLAIN (COSTS OFF) SELECT * FROM p;
EXPLAIN (COSTS OFF) SELECT * FROM p ORDER BY a LIMIT 10;
EXPLAIN (COSTS OFF) SELECT a FROM p ORDER BY a;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE b = 5;

-- Beside a btree index on the same column
CREATE INDEX p_btree ON p USING btree (a);
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
SELECT euno_evict('p_a');
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
DROP INDEX p_btree;

-- Of several indexes the narrow one; not to decode all of a wide one's entries,
-- where the table takes less
CREATE TABLE w AS SELECT n % 1000 AS n, n AS id, md5(n::text) AS s FROM generate_series(1, 20000) n;
CREATE INDEX w_n ON w USING euno (n);
CREATE INDEX w_n_id ON w USING euno (n, id);
CREATE INDEX w_n_id_s ON w USING euno (n, id, s);
CREATE INDEX w_n_with_id ON w USING euno (n) INCLUDE (id);
VACUUM ANALYZE w;
EXPLAIN (COSTS OFF) SELECT n FROM w WHERE n < 300;
EXPLAIN (COSTS OFF) SELECT n FROM w ORDER BY n;
EXPLAIN (COSTS OFF) SELECT n, id FROM w WHERE n = 7;
EXPLAIN (COSTS OFF) SELECT s FROM w WHERE n = 7 AND id = 5007;
EXPLAIN (COSTS OFF) SELECT s FROM w WHERE n = 7;
EXPLAIN (COSTS OFF) SELECT s FROM w WHERE s LIKE '%99';
DROP TABLE w;

-- "auto" of an integer is a radix tree, and costs what "art" does
CREATE TABLE tree AS SELECT hashint4(n) AS n, repeat('x', 60) AS pad FROM generate_series(1, 20000) n;
CREATE FUNCTION cost_with(structure text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE format('CREATE INDEX tree_n ON tree USING euno (n) WITH (structure = %s)', structure);
	EXECUTE 'EXPLAIN (FORMAT json) SELECT n FROM tree ORDER BY n' INTO plan;
	DROP INDEX tree_n;
	RETURN plan->0->'Plan'->>'Total Cost';
END $$;
VACUUM ANALYZE tree;
SELECT cost_with('auto') = cost_with('art') AS like_art, cost_with('auto') = cost_with('bptree') AS like_bptree;
-- where values repeat it is a B+tree, and costs what that does
UPDATE tree SET n = n % 50;
VACUUM FULL ANALYZE tree;
SELECT cost_with('auto') = cost_with('art') AS like_art, cost_with('auto') = cost_with('bptree') AS like_bptree;
DROP TABLE tree;
DROP FUNCTION cost_with;

-- Groups of texts come in the index's order: to decode them does not cost as
-- much as to read and hash the table
CREATE TABLE goods AS SELECT 'sku-' || (hashint4(n) & 2147483647) % 500 AS sku, repeat('x', 60) AS pad FROM generate_series(1, 50000) n;
CREATE INDEX goods_sku ON goods USING euno (sku);
VACUUM ANALYZE goods;
EXPLAIN (COSTS OFF) SELECT sku, count(*) FROM goods GROUP BY sku;
DROP TABLE goods;

-- For a few rows no bitmap scan, though the planner thinks it some percent
-- cheaper; for many, or where settings say so, one
CREATE TABLE few AS SELECT hashint4(n) % 20000 AS a, repeat('x', 50) AS pad, n AS id FROM generate_series(1, 100000) n;
CREATE INDEX few_a ON few USING euno (a);
CREATE TABLE ten AS SELECT n FROM generate_series(1, 10) n;
SET default_statistics_target = 1000;	-- all rows
VACUUM ANALYZE few, ten;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a = 77;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a IN (1, 2, 3);
EXPLAIN (COSTS OFF) SELECT l.id FROM ten, LATERAL (SELECT * FROM few WHERE a = n OFFSET 0) l;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 4000;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a = 77;
RESET enable_indexscan;
-- Where all of the table is in buffers (038_buffered.pl), not for more either
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 1900;
SET random_page_cost = 1.1;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 4000;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 6800;
-- ... nor a parallel one
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(pad) FROM few WHERE a BETWEEN 1 AND 4000;
SELECT count(pad) FROM few WHERE a BETWEEN 1 AND 4000;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET min_parallel_index_scan_size;
-- ... nor one of two indexes if one index leaves few rows
CREATE INDEX few_half ON few USING euno ((id % 8));
ANALYZE few;
RESET default_statistics_target;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 40 AND id % 8 = 3;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 100 AND id % 8 = 3;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a BETWEEN 1 AND 800 AND id % 8 = 3;
RESET random_page_cost;
SELECT count(*), sum(id) FROM few WHERE a = 77;
DROP TABLE few, ten;

-- An index that is not valid is not used, and one that is built concurrently is
DROP INDEX p_a;
CREATE INDEX CONCURRENTLY p_a ON p USING euno (a);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'p_a'::regclass;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
SELECT euno_index_check('p_a', true);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'p_a'::regclass;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE a = 5;
SELECT euno_index_check('p_a', true);
DROP TABLE p;
DROP FUNCTION f, estimated_rows;

-- Of two indexes as large an index-only scan takes the one with fewer columns
CREATE TABLE narrow AS SELECT n % 10 AS a, 1 AS b FROM generate_series(1, 20000) n;
CREATE INDEX narrow_a ON narrow USING euno (a);
CREATE INDEX narrow_ab ON narrow USING euno (a, b);
VACUUM ANALYZE narrow;
SET enable_seqscan = off; SET enable_hashagg = off; SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT DISTINCT a FROM narrow;
RESET enable_seqscan; RESET enable_hashagg; RESET max_parallel_workers_per_gather;
DROP TABLE narrow;

-- The rows of a narrow table are counted in an index, whose rows come in runs;
-- in that of a radix tree if they are neighbouring numbers
CREATE TABLE runs AS SELECT hashint4(n) AS r, n FROM generate_series(1, 20000) n;
CREATE INDEX runs_r ON runs USING euno (r);
VACUUM ANALYZE runs;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM runs;
DROP INDEX runs_r;
CREATE INDEX runs_r ON runs USING euno (r) WITH (structure = art);
EXPLAIN (COSTS OFF) SELECT count(*) FROM runs;
CREATE INDEX runs_n ON runs USING euno (n) WITH (structure = art);
EXPLAIN (COSTS OFF) SELECT count(*) FROM runs;
-- So do a plain scan's, in the table's order
EXPLAIN (COSTS OFF) SELECT sum(r) FROM runs WHERE n < 16000;
RESET max_parallel_workers_per_gather;
DROP TABLE runs;
