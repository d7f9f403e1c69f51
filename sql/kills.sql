--
-- Entries of dead rows go when a scan finds them dead, and before a leaf that
-- they fill is split
--
CREATE TABLE k (id int, v int, note text) WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO k SELECT n, n % 100 FROM generate_series(1, 5000) n;
CREATE INDEX k_id ON k USING euno (id);
CREATE INDEX k_v ON k USING euno (v);
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- Other sessions (an ANALYZE of autovacuum's, say) may keep rows from being
-- dead to everybody for a while: scan until they are.
CREATE PROCEDURE scan_until(query text, index text, target bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..100 LOOP
		EXECUTE query;
		COMMIT;
		-- What is marked is removed when the scan goes on or ends
		EXIT WHEN (SELECT entries <= target FROM euno_stat_indexes WHERE indexrelname = index);
		PERFORM pg_sleep(0.1);
		COMMIT;
	END LOOP;
END $$;
CREATE VIEW entries AS SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'k';

-- A scan over deleted rows
DELETE FROM k WHERE id BETWEEN 1001 AND 2000;
SELECT * FROM entries ORDER BY 1;
CALL scan_until('SELECT count(note) FROM k WHERE id BETWEEN 900 AND 2100', 'k_id', 4000);
SELECT * FROM entries ORDER BY 1;
SELECT count(note), count(*) FROM k WHERE id BETWEEN 900 AND 2100;

-- Rows of an aborted transaction, backward
BEGIN;
INSERT INTO k SELECT 10000 + n, n % 100 FROM generate_series(1, 1000) n;
SELECT * FROM entries ORDER BY 1;
ROLLBACK;
CALL scan_until('SELECT id FROM k WHERE id > 9000 ORDER BY id DESC', 'k_id', 4000);
SELECT * FROM entries WHERE indexrelname = 'k_id';

-- Not what somebody may still see
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(note), count(*) FROM k WHERE id > 4000;
DELETE FROM k WHERE id > 4000;
SELECT count(*) FROM k WHERE id > 4000;
SELECT * FROM entries WHERE indexrelname = 'k_id';
ROLLBACK;
SELECT count(*) FROM k WHERE id > 4000;
SELECT * FROM entries WHERE indexrelname = 'k_id';

-- An index-only scan, too: it looks at the rows of pages that are not all
-- visible
DELETE FROM k WHERE id BETWEEN 3001 AND 3500;
EXPLAIN (COSTS OFF) SELECT count(id) FROM k WHERE id BETWEEN 2900 AND 3600;
CALL scan_until('SELECT count(id) FROM k WHERE id BETWEEN 2900 AND 3600', 'k_id', 3500);
SELECT * FROM entries WHERE indexrelname = 'k_id';

-- A nested loop: kills across rescans
DELETE FROM k WHERE id BETWEEN 2001 AND 2500;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CALL scan_until('SELECT count(k.note) FROM generate_series(1990, 2510) n JOIN k ON k.id = n', 'k_id', 3000);
SELECT * FROM entries WHERE indexrelname = 'k_id';
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'k' ORDER BY 1;

-- Version churn: a few rows are updated again and again, never HOT because "v"
-- is indexed.  The index of id gets an entry with the same key each time, and
-- removes the dead ones before a leaf splits (nobody scans it: no kills).
TRUNCATE k;
INSERT INTO k SELECT n, 0 FROM generate_series(1, 200) n;
CREATE PROCEDURE churn(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..rounds LOOP
		UPDATE k SET v = i WHERE id BETWEEN 91 AND 110;
		COMMIT;
	END LOOP;
END $$;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
RESET enable_seqscan;
EXPLAIN (COSTS OFF) UPDATE k SET v = 1 WHERE id BETWEEN 91 AND 110;
CALL churn(1000);
SELECT entries < 5000 AS few_entries, leaves < 20 AS few_leaves FROM euno_stat_indexes WHERE indexrelname = 'k_id';
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_seqscan = off;
SELECT count(*), sum(v) FROM k WHERE id BETWEEN 90 AND 111;
SELECT count(*) FROM k WHERE v = 1000;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'k' ORDER BY 1;

-- The control: versions that may come back have to stay
TRUNCATE k;
INSERT INTO k SELECT n, 0 FROM generate_series(1, 200) n;
BEGIN;
DO $$ BEGIN FOR i IN 1..100 LOOP UPDATE k SET v = i WHERE id BETWEEN 91 AND 110; END LOOP; END $$;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'k' ORDER BY 1;
COMMIT;
SELECT count(*), sum(v) FROM k WHERE id BETWEEN 90 AND 111;
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'k' ORDER BY 1;

-- Arrays: several parts in one batch, both ways; and at the rescans of a join
TRUNCATE k;
INSERT INTO k SELECT n, n % 100 FROM generate_series(1, 2000) n;
DELETE FROM k WHERE id BETWEEN 101 AND 300 OR id % 10 = 7;
CALL scan_until('SELECT count(note) FROM k WHERE id = ANY (ARRAY(SELECT generate_series(50, 200)))', 'k_id', 1895);
SELECT entries FROM entries WHERE indexrelname = 'k_id';
CALL scan_until('SELECT id, note FROM k WHERE id = ANY (ARRAY(SELECT generate_series(150, 350))) ORDER BY id DESC', 'k_id', 1790);
SELECT entries FROM entries WHERE indexrelname = 'k_id';
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CALL scan_until('SELECT count(k.note) FROM generate_series(400, 2000) g JOIN k ON k.id = g', 'k_id', 1630);
SELECT entries, (SELECT count(*) FROM k) AS rows FROM entries WHERE indexrelname = 'k_id';
RESET enable_hashjoin;
RESET enable_mergejoin;

DROP VIEW entries;
DROP PROCEDURE scan_until, churn;
DROP TABLE k;

-- What was found dead goes when the scan is left, at a rescan or when an outer node has been ended, and what
-- it compared with is gone: keys without a byte encoding are compared with that
CREATE TABLE k (t text COLLATE "und-x-icu", u text COLLATE "und-x-icu", n int, pad int) WITH (autovacuum_enabled = off);
CREATE TABLE o (id int, x text COLLATE "und-x-icu", y text COLLATE "und-x-icu");
ALTER TABLE o ALTER x SET STORAGE plain;
INSERT INTO o SELECT g, repeat('x', 1 + g * 7 % 90), repeat('x', 1 + g * 13 % 50) FROM generate_series(1, 2000) g;
INSERT INTO k SELECT x, y, n, g FROM o, generate_series(1, 2) n, generate_series(1, 6) g;
CREATE INDEX k_tun ON k USING euno (t, u, n);
ANALYZE k, o;
DELETE FROM k WHERE pad <= 3;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off; SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB';
SELECT count(*) FROM (SELECT * FROM o ORDER BY id OFFSET 0) o, LATERAL (SELECT * FROM k WHERE k.t = (o.x || '') AND k.u = (o.y || '') AND n IN (1, 2, 3) LIMIT 1) z;
SELECT count(*) FROM (SELECT * FROM o ORDER BY id OFFSET 0) o, LATERAL (SELECT * FROM k WHERE k.t = ANY (ARRAY[o.x || '', o.y || '-']) AND k.u = (o.y || '') AND n = 1 LIMIT 1) z;
DELETE FROM k WHERE pad <= 4;
SELECT count(*) FROM (SELECT * FROM o ORDER BY id OFFSET 0) o, LATERAL (SELECT * FROM k WHERE k.t = ANY (ARRAY[o.x || '', o.y || '-']) AND k.u = (o.y || '') AND n = 1 LIMIT 1) z;
SELECT count(*) FROM (SELECT * FROM o ORDER BY id OFFSET 0) o, LATERAL (SELECT * FROM k WHERE k.t = (o.x || '') AND k.u = (o.y || '') AND n IN (1, 2, 3) LIMIT 1) z;
SELECT euno_index_check('k_tun', true);
SELECT entries < 24000 AS some_gone FROM euno_stat_indexes WHERE indexrelid = 'k_tun'::regclass;
TRUNCATE k, o;
INSERT INTO o SELECT g, repeat('x', 150) || g FROM generate_series(1, 80000) g;
INSERT INTO k SELECT x, '', 1, p FROM o, generate_series(1, 3) p WHERE id > 78000;
ANALYZE k, o;
DELETE FROM k WHERE pad <= 2;
SELECT z.pad FROM (SELECT * FROM o ORDER BY id DESC OFFSET 0) o, LATERAL (SELECT * FROM k WHERE k.t >= o.x ORDER BY t OFFSET 0) z LIMIT 1;
DELETE FROM k WHERE t = (SELECT x FROM o WHERE id = 80000);
SELECT z.pad FROM (SELECT * FROM o ORDER BY id DESC OFFSET 0) o, LATERAL (SELECT * FROM k WHERE k.t >= o.x AND k.t <= 'y' ORDER BY t OFFSET 0) z LIMIT 1;
SELECT euno_index_check('k_tun', true);
DROP TABLE k, o;

-- A scan that skips looks again at what it has read for that, and not at what it has skipped
CREATE TABLE k (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO k SELECT i / 30000, i % 30000 FROM generate_series(0, 89999) i;
CREATE INDEX k_ab ON k USING euno (a, b);
VACUUM ANALYZE k;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0;
DELETE FROM k WHERE b IN (10, 29980) AND a = 1;
SELECT sum(descents) AS before FROM euno_stat_domains \gset
SELECT a, b FROM k WHERE b = 10 ORDER BY a, b;
SELECT a, b FROM k WHERE b = 29980 ORDER BY a DESC, b DESC;
SELECT entries, (SELECT sum(descents) FROM euno_stat_domains) - :before < 40 AS few FROM euno_stat_indexes WHERE indexrelid = 'k_ab'::regclass;
SELECT euno_index_check('k_ab', true);
DROP TABLE k;
RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_indexonlyscan; RESET max_parallel_workers_per_gather;
