--
-- VACUUM: entries of dead rows go, leaves that they leave empty are merged
--
CREATE TABLE v (id int, t text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO v SELECT n, md5(n::text) FROM generate_series(1, 40000) n;
CREATE INDEX v_id ON v USING euno (id);
CREATE INDEX v_t ON v USING euno (t DESC);
CREATE INDEX v_part ON v USING euno (id) WHERE id % 2 = 0;
SELECT indexrelname, entries, leaves > 20 AS leaves, merges FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;

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

-- Nothing to do
SELECT settle() \g /dev/null
VACUUM v;
SELECT indexrelname, entries, merges FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;

-- A range: whole leaves of one index, some of each leaf of the others
SELECT leaves FROM euno_stat_indexes WHERE indexrelname = 'v_id' \gset
DELETE FROM v WHERE id BETWEEN 10001 AND 30000;
SELECT settle() \g /dev/null
VACUUM v;
SELECT indexrelname, entries, merges > 0 AS merged FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SELECT leaves < :leaves * 0.65 AS fewer_leaves FROM euno_stat_indexes WHERE indexrelname = 'v_id';
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), min(id), max(id) FROM v WHERE id BETWEEN 8000 AND 32000;
SELECT count(*), min(id), max(id) FROM v WHERE id BETWEEN 8000 AND 32000;
SELECT count(*), sum(id) FROM (SELECT id FROM v ORDER BY t DESC) s;

-- Room is used again
INSERT INTO v SELECT n, md5(n::text) FROM generate_series(10001, 30000) n;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SELECT leaves < :leaves * 1.5 AS leaves FROM euno_stat_indexes WHERE indexrelname = 'v_id';
SELECT count(*), min(id), max(id) FROM v WHERE id BETWEEN 8000 AND 32000;

-- TIDs are recycled: what has another key now is not found under the old one
DELETE FROM v WHERE id <= 1000;
SELECT settle() \g /dev/null
VACUUM v;
INSERT INTO v SELECT n, md5(n::text) FROM generate_series(100001, 101000) n;
SELECT count(*) FROM v WHERE id <= 1000;
SELECT count(*) FROM v WHERE id > 100000;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;

-- Every second row, with several passes over the indexes and in parallel
SET maintenance_work_mem = '1MB';
SET min_parallel_index_scan_size = 0;
DELETE FROM v WHERE id % 2 = 1;
SELECT settle() \g /dev/null
VACUUM (PARALLEL 2) v;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
RESET maintenance_work_mem;
RESET min_parallel_index_scan_size;

-- Left for later, and done then
DELETE FROM v WHERE id % 4 = 0;
VACUUM (INDEX_CLEANUP OFF) v;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SELECT count(*) FROM v WHERE id > 0;
SELECT settle() \g /dev/null
VACUUM v;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;

-- All rows
DELETE FROM v;
SELECT settle() \g /dev/null
VACUUM v;
SELECT indexrelname, entries, leaves, height FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SELECT count(*) FROM v WHERE id > 0;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
INSERT INTO v SELECT n, md5(n::text) FROM generate_series(1, 1000) n;
SELECT count(*) FROM v WHERE id > 0;

-- An index that is absent has nothing to be removed from it
SELECT euno_evict('v_id'), euno_evict('v_t');
DELETE FROM v WHERE id > 500;
SELECT settle() \g /dev/null
VACUUM v;
INSERT INTO v SELECT n, md5(n::text) FROM generate_series(2001, 2500) n;
SELECT euno_rebuild('v_id'), euno_rebuild('v_t');
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SELECT count(*), min(id), max(id) FROM v WHERE id > 0;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;

-- reltuples, and that VACUUM counts for ANALYZE too
SELECT settle() \g /dev/null
VACUUM (ANALYZE) v;
SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'v\_%' AND relkind = 'i' ORDER BY 1;
VACUUM FULL v;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'v' ORDER BY 1;
SELECT count(*), min(id), max(id) FROM v WHERE id > 0;
DROP TABLE v;
DROP FUNCTION settle;

-- Nothing has changed: nothing is looked at
CREATE TABLE calm AS SELECT md5(n::text)::uuid AS a FROM generate_series(1, 20000) n;
CREATE INDEX calm_a ON calm USING euno (a) WITH (structure = art);
VACUUM calm;
SELECT sum(descents) AS before FROM euno_stat_domains \gset
VACUUM calm;
SELECT sum(descents) - :before < 10 AS calm FROM euno_stat_domains;
DELETE FROM calm WHERE a < '20000000-0000-0000-0000-000000000000';
VACUUM calm;
SELECT sum(descents) - :before > 256 AS at_work FROM euno_stat_domains;
DROP TABLE calm;
