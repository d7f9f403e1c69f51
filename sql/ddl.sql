--
-- Commands that make, change and drop the relations behind an index
--
SET enable_seqscan = off;
SET client_min_messages = warning;
CREATE TABLE t (id int, v text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT n, 'v' || n % 100, n FROM generate_series(1, 1000) n;
CREATE INDEX t_id ON t USING euno (id);
CREATE INDEX t_v ON t USING euno (v, id DESC);
-- Is all of it there, and found by the indexes?
CREATE FUNCTION state(OUT index name, OUT state text, OUT entries bigint, OUT count bigint, OUT "check" text) RETURNS SETOF record LANGUAGE sql AS $$
	SELECT s.indexrelname, s.state, s.entries, c.count,
		CASE WHEN s.state = 'ready' THEN euno_index_check(indexrelid, true)::text END
	FROM euno_stat_indexes s, (SELECT count(*) FROM t WHERE id IS NOT NULL) c WHERE relname = 't';
$$;
SELECT * FROM state() ORDER BY 1;

-- REINDEX in its forms; undone
REINDEX INDEX t_id;
REINDEX TABLE t;
REINDEX INDEX CONCURRENTLY t_v;
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM state() ORDER BY 1;
BEGIN;
REINDEX INDEX t_id;
SELECT count(*) FROM t WHERE id > 900;
ROLLBACK;
SELECT * FROM state() ORDER BY 1;
BEGIN;
SAVEPOINT s;
REINDEX TABLE t;
INSERT INTO t VALUES (2000);
SELECT count(*) FROM t WHERE id > 900;
ROLLBACK TO s;
SELECT count(*) FROM t WHERE id > 900;
COMMIT;
SELECT index, state, count, "check" FROM state() ORDER BY 1;
VACUUM t;

-- TRUNCATE; undone; of a table made in the same transaction
BEGIN;
TRUNCATE t;
SELECT count(*) FROM t WHERE id > 0;
INSERT INTO t VALUES (1, 'v');
SELECT * FROM state() ORDER BY 1;
ROLLBACK;
SELECT index, state, count, "check" FROM state() ORDER BY 1;
BEGIN;
CREATE TABLE fresh (id int);
CREATE INDEX fresh_id ON fresh USING euno (id);
INSERT INTO fresh SELECT generate_series(1, 100);
TRUNCATE fresh;
SELECT count(*) FROM fresh WHERE id > 0;
INSERT INTO fresh VALUES (7);
TRUNCATE fresh;
INSERT INTO fresh VALUES (8), (9);
SELECT count(*), min(id) FROM fresh WHERE id > 0;
SAVEPOINT s;
TRUNCATE fresh;
INSERT INTO fresh VALUES (10);
ROLLBACK TO s;
SELECT count(*), min(id) FROM fresh WHERE id > 0;
COMMIT;
SELECT count(*), min(id) FROM fresh WHERE id > 0;
SELECT euno_index_check('fresh_id', true);
TRUNCATE fresh;
SELECT count(*), min(id) FROM fresh WHERE id > 0;
SELECT state, entries FROM euno_stat_indexes WHERE indexrelname = 'fresh_id';
DROP TABLE fresh;
BEGIN;
TRUNCATE t;
INSERT INTO t SELECT n, 'v' || n % 100, n FROM generate_series(1, 500) n;
COMMIT;
SELECT * FROM state() ORDER BY 1;

-- TRUNCATE again and again: trees that nobody will see do not stay until the end
BEGIN;
CREATE TEMP TABLE trees ON COMMIT DROP AS SELECT count(*) AS before FROM euno_stat_get_indexes();
SAVEPOINT s;
DO $$
BEGIN
	FOR i IN 1..60 LOOP
		BEGIN
			TRUNCATE t;
			INSERT INTO t VALUES (i);
			IF i % 3 = 0 THEN
				REINDEX TABLE t;
				RAISE EXCEPTION 'undone';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
		IF i = 30 THEN
			REINDEX TABLE t;
			REINDEX TABLE t;
		END IF;
	END LOOP;
END $$;
SELECT count(*) - before < 10 AS few FROM euno_stat_get_indexes(), trees GROUP BY before;
SELECT id FROM t WHERE id > 0;
SELECT * FROM state() ORDER BY 1;
ROLLBACK TO s;
SELECT index, state, count, "check" FROM state() ORDER BY 1;
COMMIT;
SELECT index, state, count, "check" FROM state() ORDER BY 1;

-- ALTER TYPE with the old file, in the transaction that made it
BEGIN;
CREATE TABLE fresh (v varchar(20) COLLATE "C");
CREATE INDEX fresh_v ON fresh USING euno (v);
SAVEPOINT s;
ALTER TABLE fresh ALTER v TYPE varchar(50) COLLATE "C";
RELEASE s;
ALTER TABLE fresh ALTER v TYPE varchar(60) COLLATE "C";
COMMIT;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'fresh_v';
DROP TABLE fresh;

-- ALTER TYPE: with the old file, with a new one, with other semantics
ALTER TABLE t ALTER v TYPE varchar(50) COLLATE "C";
SELECT * FROM state() ORDER BY 1;
SELECT count(*) FROM t WHERE v = 'v7';
ALTER TABLE t ALTER id TYPE bigint;
SELECT * FROM state() ORDER BY 1;
ALTER TABLE t ALTER id TYPE numeric USING id / 2.0;
SELECT * FROM state() ORDER BY 1;
SELECT id, v FROM t WHERE id BETWEEN 3.4 AND 4.6 ORDER BY id;
ALTER TABLE t ALTER v TYPE text COLLATE "POSIX";
SELECT count(*) FROM t WHERE v < 'v2';
BEGIN;
ALTER TABLE t ALTER id TYPE text COLLATE "C";
SELECT count(*) FROM t WHERE id > '5';
ROLLBACK;
SELECT count(*) FROM t WHERE id > 5;
ALTER TABLE t ALTER id TYPE int USING (id * 2)::int;
SELECT * FROM state() ORDER BY 1;

-- Columns: added with a default, dropped, renamed
ALTER TABLE t ADD extra int DEFAULT 7;
CREATE INDEX t_extra ON t USING euno (extra);
SELECT count(*) FROM t WHERE extra = 7;
ALTER TABLE t DROP n;
SELECT count(*) FROM t WHERE extra = 7;
ALTER TABLE t RENAME extra TO more;
ALTER INDEX t_extra RENAME TO t_more;
SELECT count(*) FROM t WHERE more = 7;
SELECT * FROM state() ORDER BY 1;
ALTER TABLE t DROP more;
SELECT * FROM state() ORDER BY 1;

-- Other files: rewrites, another tablespace
VACUUM FULL t;
SELECT * FROM state() ORDER BY 1;
CREATE INDEX t_btree ON t (v);
CLUSTER t USING t_btree;
DROP INDEX t_btree;
SELECT * FROM state() ORDER BY 1;
BEGIN;
CLUSTER t USING t_v;
SELECT * FROM state() ORDER BY 1;
ROLLBACK;
ALTER TABLE t SET UNLOGGED;
SELECT * FROM state() ORDER BY 1;
ALTER TABLE t SET LOGGED;
SELECT * FROM state() ORDER BY 1;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE euno_space LOCATION '';
ALTER INDEX t_id SET TABLESPACE euno_space;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE id > 400;
SELECT count(*) FROM t WHERE id > 400;
SELECT euno_rebuild('t_id');
SELECT * FROM state() ORDER BY 1;
ALTER TABLE t SET TABLESPACE euno_space;
SELECT count(*) FROM t WHERE id > 400;
INSERT INTO t VALUES (1000, 'v1000');
SELECT count(*) FROM t WHERE id > 400;
ALTER TABLE t SET TABLESPACE pg_default;
ALTER INDEX t_id SET TABLESPACE pg_default;
DROP TABLESPACE euno_space;
REINDEX TABLE t;
SELECT * FROM state() ORDER BY 1;
DROP FUNCTION state;

-- ON COMMIT DELETE ROWS, ON COMMIT DROP; temporary
CREATE TEMP TABLE tmp (id int) ON COMMIT DELETE ROWS;
CREATE INDEX tmp_id ON tmp USING euno (id);
BEGIN;
INSERT INTO tmp SELECT generate_series(1, 100);
SELECT count(*), max(id) FROM tmp WHERE id > 50;
COMMIT;
SELECT count(*), max(id) FROM tmp WHERE id > 50;
BEGIN;
INSERT INTO tmp SELECT generate_series(1, 10);
SELECT count(*), max(id) FROM tmp WHERE id > 5;
SAVEPOINT s;
INSERT INTO tmp SELECT generate_series(11, 20);
ROLLBACK TO s;
SELECT count(*), max(id) FROM tmp WHERE id > 5;
COMMIT;
SELECT count(*), max(id) FROM tmp WHERE id > 5;
BEGIN;
INSERT INTO tmp SELECT generate_series(1, 10);
SELECT euno_evict('tmp_id');
COMMIT;
SELECT count(*), max(id) FROM tmp WHERE id > 5;
SELECT euno_index_check('tmp_id', true);
BEGIN;
CREATE TEMP TABLE gone (id int) ON COMMIT DROP;
CREATE INDEX gone_id ON gone USING euno (id);
INSERT INTO gone VALUES (1);
SELECT count(*) FROM gone WHERE id = 1;
COMMIT;
DROP TABLE tmp;

-- A session keeps nothing of indexes that are gone
CREATE FUNCTION kept() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM pg_backend_memory_contexts WHERE name ~ '^euno (index|scan)$'
$$;
SELECT kept() AS before \gset
CREATE PROCEDURE pass_by(n int, keep bool) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		CREATE TEMP TABLE brief AS SELECT generate_series(1, 100) AS id;
		CREATE INDEX brief_id ON brief USING euno (id);
		PERFORM id FROM brief WHERE id = i;
		IF keep THEN
			COMMIT;
			DROP TABLE brief;
			COMMIT;
		ELSE
			ROLLBACK;
		END IF;
	END LOOP;
END $$;
CALL pass_by(20, true);
CALL pass_by(20, false);
SELECT kept() - :before AS more;
DROP PROCEDURE pass_by;
DROP FUNCTION kept;
CREATE TABLE many (id int);
CREATE PROCEDURE come_and_go(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		CREATE INDEX many_id ON many USING euno (id);
		COMMIT;
		DROP INDEX many_id;
		COMMIT;
	END LOOP;
END $$;
CALL come_and_go(100);
SELECT used_bytes AS before FROM pg_backend_memory_contexts WHERE name = 'euno indexes' \gset
CALL come_and_go(200);
SELECT used_bytes - :before AS more FROM pg_backend_memory_contexts WHERE name = 'euno indexes';
DROP PROCEDURE come_and_go;
DROP TABLE many;

-- Partitions
CREATE TABLE part (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (200);
INSERT INTO part SELECT n, n % 10 FROM generate_series(0, 199) n;
CREATE INDEX part_id ON part USING euno (id) INCLUDE (v);
CREATE TABLE part3 PARTITION OF part FOR VALUES FROM (200) TO (300);
CREATE TABLE part4 (id int, v int);
INSERT INTO part4 SELECT n, n % 10 FROM generate_series(300, 399) n;
CREATE INDEX part4_own ON part4 USING euno (id) INCLUDE (v);
ALTER TABLE part ATTACH PARTITION part4 FOR VALUES FROM (300) TO (400);
INSERT INTO part SELECT n, n % 10 FROM generate_series(200, 299) n;
SET enable_bitmapscan = off;
VACUUM ANALYZE part;
EXPLAIN (COSTS OFF) SELECT id, v FROM part WHERE id BETWEEN 98 AND 101 ORDER BY id;
SELECT id, v FROM part WHERE id BETWEEN 98 AND 101 ORDER BY id;
EXPLAIN (COSTS OFF) SELECT id FROM part ORDER BY id DESC LIMIT 3;
SELECT id FROM part ORDER BY id DESC LIMIT 3;
SELECT count(*), sum(id) FROM part WHERE id > 0;
UPDATE part SET id = id + 100 WHERE id = 50;
SELECT tableoid::regclass, id FROM part WHERE id = 150;
ALTER TABLE part DETACH PARTITION part2;
SELECT count(*), sum(id) FROM part WHERE id > 0;
SELECT count(*), sum(id) FROM part2 WHERE id > 0;
REINDEX INDEX part_id;
SELECT inhrelid::regclass, euno_index_check(inhrelid, true) FROM pg_inherits WHERE inhparent = 'part_id'::regclass ORDER BY 1::text;
SELECT state, euno_evict(indexrelid) FROM euno_stat_indexes WHERE indexrelname = 'part1_id_v_idx';
-- 18 says of the sequential scan that it is disabled
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line !~ 'Disabled' THEN RETURN NEXT line; END IF;
	END LOOP;
END $$;
SELECT * FROM plan('SELECT id FROM part WHERE id BETWEEN 98 AND 201 ORDER BY id');
DROP FUNCTION plan;
SELECT count(*), sum(id) FROM part WHERE id > 0;
DROP TABLE part, part2;

-- Inheritance: indexes are each table's own
CREATE TABLE parent (id int);
CREATE TABLE child (more int) INHERITS (parent);
CREATE INDEX parent_id ON parent USING euno (id);
CREATE INDEX child_id ON child USING euno (id);
INSERT INTO parent SELECT generate_series(1, 50);
INSERT INTO child SELECT n, -n FROM generate_series(26, 75) n;
SELECT id, count(*) FROM parent WHERE id BETWEEN 24 AND 27 GROUP BY id ORDER BY id;
SELECT min(id), max(id) FROM parent;
UPDATE parent SET id = id + 1000 WHERE id = 26;
DELETE FROM parent WHERE id = 27;
SELECT tableoid::regclass, id FROM parent WHERE id > 1000 OR id = 27 ORDER BY 1, 2;
SELECT euno_index_check('parent_id', true), euno_index_check('child_id', true);
DROP TABLE parent, child;

-- Exclusion constraints: equality by euno
CREATE TABLE ex (id int, v text, EXCLUDE USING euno (id WITH =));
INSERT INTO ex VALUES (1, 'one'), (2, 'two'), (NULL, 'null'), (NULL, 'null');
INSERT INTO ex VALUES (2, 'two again');
INSERT INTO ex VALUES (2, 'two again') ON CONFLICT DO NOTHING;
UPDATE ex SET id = 1 WHERE v = 'two';
UPDATE ex SET id = 3 WHERE v = 'two';
INSERT INTO ex VALUES (2, 'two again');
DELETE FROM ex WHERE id = 1;
INSERT INTO ex VALUES (1, 'one again');
BEGIN;
INSERT INTO ex VALUES (4, 'four');
SAVEPOINT s;
INSERT INTO ex VALUES (4, 'four again');
ROLLBACK TO s;
INSERT INTO ex VALUES (5, 'five');
COMMIT;
SELECT * FROM ex ORDER BY id;
-- deferred; and an index that is absent is built for it
ALTER TABLE ex ADD CONSTRAINT ex_deferred EXCLUDE USING euno (v WITH =, (id % 2) WITH =) DEFERRABLE INITIALLY DEFERRED;
DELETE FROM ex WHERE id IS NULL;
SELECT euno_evict('ex_id_excl'), euno_evict('ex_deferred');
INSERT INTO ex VALUES (5, 'five again');
BEGIN;
INSERT INTO ex VALUES (7, 'five');
DELETE FROM ex WHERE id = 5;
COMMIT;
BEGIN;
INSERT INTO ex VALUES (9, 'five');
COMMIT;
SELECT * FROM ex ORDER BY id;
SELECT euno_index_check('ex_id_excl', true), euno_index_check('ex_deferred', true);
DROP TABLE ex;

-- The extension cannot go while it has indexes; what was known of them can
\set VERBOSITY terse
DROP EXTENSION euno_index;
DROP ACCESS METHOD euno;
\set VERBOSITY default
DISCARD ALL;
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE id > 400;
DROP TABLE t;
