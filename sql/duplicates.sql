--
-- Equal keys: one, ten, a thousand, a hundred thousand rows of each
--
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE d (one int, ten int, thousand int, most int, wide text COLLATE "C", f float8) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT n, n / 10, n / 1000, CASE WHEN n % 1000 = 0 THEN n ELSE -1 END,
		repeat('wide', 50) || n / 1000, CASE n % 3 WHEN 0 THEN 0 WHEN 1 THEN '-0'::float8 ELSE n / 1000 END
	FROM generate_series(0, 99999) n;
CREATE INDEX d_one ON d USING euno (one);
CREATE INDEX d_ten ON d USING euno (ten);
CREATE INDEX d_thousand ON d USING euno (thousand);
CREATE INDEX d_most ON d USING euno (most);
CREATE INDEX d_wide ON d USING euno (wide);
CREATE INDEX d_f ON d USING euno (f);
VACUUM ANALYZE d;

-- Rows are dead to everybody when no other session (an ANALYZE of
-- autovacuum's, say) has a snapshot.
CREATE FUNCTION settle() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..600 LOOP
		PERFORM pg_stat_clear_snapshot();
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL);
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'd' ORDER BY 1;
-- Rows with equal keys share one copy of it
SELECT m.bytes < o.bytes / 2 AS shared, w.bytes / w.entries < 10 AS wide_shared
	FROM euno_stat_indexes m, euno_stat_indexes o, euno_stat_indexes w
	WHERE m.indexrelname = 'd_most' AND o.indexrelname = 'd_one' AND w.indexrelname = 'd_wide';

-- Each way of counting them
CREATE VIEW counts AS SELECT
	(SELECT count(*) FROM d WHERE one = 77777) AS one,
	(SELECT count(*) FROM d WHERE ten = 7777) AS ten,
	(SELECT count(*) FROM d WHERE ten BETWEEN 7777 AND 7780) AS tens,
	(SELECT count(*) FROM d WHERE thousand = 77) AS thousand,
	(SELECT count(*) FROM d WHERE most = -1) AS most,
	(SELECT count(*) FROM d WHERE most > -1) AS others,
	(SELECT count(*) FROM d WHERE wide = repeat('wide', 50) || 77) AS wide,
	(SELECT count(*) FROM d WHERE f = 0) AS zeros,
	(SELECT count(*) FROM d WHERE f > 0) AS positive;
EXPLAIN (COSTS OFF) SELECT count(*) FROM d WHERE most = -1;
SELECT * FROM counts;
SET enable_indexonlyscan = off;
SELECT * FROM counts;
RESET enable_indexonlyscan;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT * FROM counts;
RESET enable_indexscan;
SET enable_bitmapscan = off;
SELECT count(*) FILTER (WHERE f::text = '-0') AS minus_zero, count(*) FILTER (WHERE f::text = '0') AS zero
	FROM (SELECT f FROM d WHERE f = 0) s;

-- Equal keys come in the order of the table
SELECT count(*), bool_and(ctid > before) AS ascending FROM (
	SELECT ctid, lag(ctid) OVER () AS before FROM (SELECT ctid FROM d WHERE most = -1 ORDER BY most OFFSET 0) s) t;
SELECT count(*), bool_and(ctid < before) AS descending FROM (
	SELECT ctid, lag(ctid) OVER () AS before FROM (SELECT ctid FROM d WHERE thousand BETWEEN 50 AND 50 ORDER BY thousand DESC OFFSET 0) s) t;

-- A cursor in the middle of a long list
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT one FROM d WHERE most = -1 ORDER BY most;
MOVE 50000 FROM c;
FETCH 2 FROM c;
MOVE BACKWARD 40000 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;

-- Keys that many more rows get, one after the other and all over the table
INSERT INTO d SELECT 200000 + n, 7777, 77, -1, repeat('wide', 50) || 77, '-0' FROM generate_series(1, 20000) n;
SELECT * FROM counts;
DELETE FROM d WHERE one % 2 = 1;
SELECT * FROM counts;
SELECT settle() \g /dev/null
VACUUM d;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'd' ORDER BY 1;
SELECT * FROM counts;
-- into the holes: TIDs in the middle of the lists
INSERT INTO d SELECT 300000 + n, 7777, 77, -1, repeat('wide', 50) || 77, CASE n % 2 WHEN 0 THEN 0 ELSE '-0'::float8 END FROM generate_series(1, 30000) n;
SELECT * FROM counts;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'd' ORDER BY 1;

-- and after a rebuild
SELECT euno_evict(indexrelid), euno_rebuild(indexrelid) FROM euno_stat_indexes WHERE relname = 'd';
SELECT * FROM counts;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'd' ORDER BY 1;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'd' ORDER BY 1;
DROP VIEW counts;
DROP TABLE d;
DROP FUNCTION settle;
