--
-- Every kind of relation that an index can be on, and types of extensions
--
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir '/test/compare.sql'
\i :compare

-- Partitions: by range, by list below that, and what falls through
CREATE TABLE p (id int, a int, b text COLLATE "C", c numeric) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) PARTITION BY LIST (b);
CREATE TABLE p2x PARTITION OF p2 FOR VALUES IN ('x', 'y');
CREATE TABLE p2z PARTITION OF p2 DEFAULT;
CREATE INDEX p_ab ON p USING euno (a, b);
CREATE INDEX p_c ON p USING euno (c DESC, id);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300);
CREATE TABLE pd PARTITION OF p DEFAULT;
INSERT INTO p SELECT n, nullif(n % 350, 17), chr(115 + n % 8), n * 7919 % 1000 / 4.0 FROM generate_series(1, 7000) n;
SELECT c.relname, am.amname, i.inhparent::regclass AS parent FROM pg_class c JOIN pg_am am ON am.oid = c.relam LEFT JOIN pg_inherits i ON i.inhrelid = c.oid WHERE c.relname ~ '^p\d?[xzd]?_' ORDER BY 1;
VACUUM ANALYZE p;
SELECT q, compare('SELECT ' || q, p) AS result
FROM (VALUES ('a, b FROM p ORDER BY a, b', 'Append(.|\n)*p1_a(.|\n)*p2x_a(.|\n)*p3_a'), ('a, b FROM p WHERE a BETWEEN 90 AND 210 ORDER BY a DESC, b DESC LIMIT 50', 'Limit(.|\n)*Backward'), ('c, id FROM p ORDER BY c DESC, id', 'Merge Append'), ('c, id FROM p WHERE a IN (5, 105, 205, 305) AND c > 100 ORDER BY c, id DESC', 'Append|Sort'),
	('id FROM p WHERE a = 105 AND b = ''x''', 'Index'), ('id FROM p WHERE a IN (5, 105, 205, 305, NULL) AND b IN (''x'', ''t'')', 'Index'), ('count(*), min(a), max(a), min(c), max(c) FROM p', 'Append'), ('DISTINCT a FROM p ORDER BY a', 'Unique'), ('v, (SELECT count(*) FROM p WHERE a = v) FROM generate_series(-1, 400, 40) v', 'SubPlan'),
	('x.id, y.id FROM p x JOIN p y ON x.a = y.a AND x.b = y.b AND x.c < y.c WHERE x.id < 200', 'Join|Nested Loop'), ('id FROM p WHERE a IS NULL', 'Index')) s (q, p);
SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;
SELECT compare('SELECT a, count(*) FROM p GROUP BY a', 'Append(.|\n)*Group'), compare('SELECT x.a, count(*) FROM p x JOIN p y USING (a) GROUP BY x.a', 'Join');
RESET enable_partitionwise_join; RESET enable_partitionwise_aggregate;
-- Rows that move, partitions that leave and come back, reindexing all of them
UPDATE p SET a = a + 100 WHERE a BETWEEN 50 AND 149;
DELETE FROM p WHERE b = 'y';
ALTER TABLE p DETACH PARTITION p3;
ALTER TABLE p DETACH PARTITION p1;
SELECT compare('SELECT a, b FROM p ORDER BY a, b', 'Append');
INSERT INTO p1 VALUES (8000, 5, 'x', 1);
CREATE TABLE p4 (LIKE p);
INSERT INTO p4 SELECT * FROM p3;
CREATE INDEX p4_mine ON p4 USING euno (a, b);
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (200) TO (300);
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (100);
SELECT relname, relispartition FROM pg_class WHERE relname ~ '^p4_' ORDER BY 1;
REINDEX TABLE p;
REINDEX INDEX CONCURRENTLY p_ab;
REINDEX TABLE CONCURRENTLY p;
VACUUM p;
SELECT compare('SELECT a, b FROM p ORDER BY a, b', 'Append'), compare('SELECT id FROM p WHERE a IN (5, 205) AND b = ''x''', 'Index'), compare('SELECT c, id FROM p ORDER BY c DESC, id LIMIT 100', 'Merge Append');
-- An index that is complete once all partitions have it
CREATE INDEX p_later ON ONLY p USING euno (id);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'p_later'::regclass;
CREATE INDEX CONCURRENTLY p1_later ON p1 USING euno (id);
CREATE INDEX p2_later ON p2 USING euno (id);
CREATE INDEX pd_later ON pd USING euno (id);
CREATE INDEX p4_later ON p4 USING euno (id);
ALTER INDEX p_later ATTACH PARTITION p1_later;
ALTER INDEX p_later ATTACH PARTITION p2_later;
ALTER INDEX p_later ATTACH PARTITION pd_later;
ALTER INDEX p_later ATTACH PARTITION p4_later;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'p_later'::regclass;
SELECT compare('SELECT id FROM p ORDER BY id', 'Merge Append');
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname ~ '^p\d?[xzd]?$' ORDER BY 1;

-- Inheritance: some children lack the index
CREATE TABLE i (id int, a int);
CREATE TABLE i1 (more int) INHERITS (i);
CREATE TABLE i2 () INHERITS (i);
CREATE INDEX i_a ON i USING euno (a);
CREATE INDEX i1_a ON i1 USING euno (a);
INSERT INTO i SELECT n, n % 50 FROM generate_series(1, 500) n;
INSERT INTO i1 SELECT n, n % 60, n FROM generate_series(1, 700) n;
INSERT INTO i2 SELECT n, n % 70 FROM generate_series(1, 20) n;
ANALYZE i, i1, i2;
SELECT compare('SELECT a FROM i ORDER BY a', 'Merge Append'), compare('SELECT id FROM i WHERE a IN (4, 55)', 'Append'), compare('SELECT min(a), max(a) FROM i', 'Append|Aggregate'), compare('SELECT a FROM ONLY i ORDER BY a DESC', 'Backward');

-- Materialized views
CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM i GROUP BY a WITH NO DATA;
CREATE INDEX m_n ON m USING euno (n, a);
REFRESH MATERIALIZED VIEW m;
SELECT count(*), sum(a) FROM m WHERE n > 20;
INSERT INTO i SELECT n, 900 FROM generate_series(1, 30) n;
BEGIN;
REFRESH MATERIALIZED VIEW m;
SELECT compare('SELECT a, n FROM m WHERE n IN (22, 30) ORDER BY n, a', 'Index Only Scan using m_n');
ROLLBACK;
SELECT compare('SELECT a, n FROM m WHERE n IN (22, 30) ORDER BY n, a', 'Index Only Scan using m_n');
REFRESH MATERIALIZED VIEW m;
SELECT compare('SELECT a, n FROM m WHERE n IN (22, 30) ORDER BY n, a', 'Index Only Scan using m_n'), euno_index_check('m_n', true);

-- Temporary tables, of three kinds of life
CREATE TEMP TABLE keep (a int, b int);
CREATE TEMP TABLE clear (a int) ON COMMIT DELETE ROWS;
CREATE INDEX keep_ab ON keep USING euno (a, b);
CREATE INDEX clear_a ON clear USING euno (a);
INSERT INTO keep SELECT n % 40, n FROM generate_series(1, 4000) n;
BEGIN;
CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT n AS a FROM generate_series(1, 100) n;
CREATE INDEX gone_a ON gone USING euno (a);
INSERT INTO clear SELECT generate_series(1, 1000);
SAVEPOINT s;
DELETE FROM clear WHERE a > 10;
ROLLBACK TO s;
ANALYZE clear;
ANALYZE gone;
SELECT compare('SELECT a FROM clear WHERE a IN (7, 70, 7000)', 'clear_a'), compare('SELECT a FROM gone WHERE a > 98', 'gone_a');
COMMIT;
SELECT compare('SELECT a FROM clear WHERE a > 0', 'clear_a'), compare('SELECT a, b FROM keep WHERE a IN (3, 4) AND b < 900 ORDER BY a, b', 'keep_ab');
INSERT INTO clear VALUES (1);
SELECT indexrelname, entries, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE indexrelname ~ '^(keep|clear|gone)_' ORDER BY 1;

-- A commit that fails while it makes the indexes of an emptied table anew: in
-- the first one; before that one, as by an index of another access method
CREATE TEMP TABLE twice (a int, b int) ON COMMIT DELETE ROWS;
CREATE INDEX twice_a ON twice USING euno (a);
CREATE INDEX twice_b ON twice USING euno (b);
BEGIN;
INSERT INTO twice SELECT n, n FROM generate_series(1, 100) n;
SET LOCAL euno.debug_stop = 'build-unchecked:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (200, 200);
SELECT indexrelname, state FROM euno_stat_indexes WHERE relname = 'twice' ORDER BY 1;
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
ANALYZE twice;
SELECT compare('SELECT a, b FROM twice WHERE b IN (1, 200)', 'twice_b');
COMMIT;
SELECT indexrelname, state, entries FROM euno_stat_indexes WHERE relname = 'twice' ORDER BY 1;
BEGIN;
INSERT INTO twice SELECT n, n FROM generate_series(1, 100) n;
SET LOCAL euno.debug_stop = 'build-begin:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (201, 201);
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
ANALYZE twice;
SELECT compare('SELECT a, b FROM twice WHERE b IN (1, 201)', 'twice_b'), compare('SELECT a, b FROM twice WHERE a IN (1, 201)', 'twice_a');
COMMIT;

-- Two in a row: that a commit empties the table is not forgotten by the first.
-- PREPARE TRANSACTION empties it, too, and then refuses.
BEGIN;
INSERT INTO twice VALUES (1, 1);
SET LOCAL euno.debug_stop = 'build-end:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (2, 2);
SELECT euno_rebuild('twice_a'), euno_rebuild('twice_b');
SET LOCAL euno.debug_stop = 'build-begin:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (3, 3);
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
COMMIT;
BEGIN;
INSERT INTO twice VALUES (4, 4);
SET LOCAL euno.debug_stop = 'build-begin:error';
PREPARE TRANSACTION 'twice';
BEGIN;
INSERT INTO twice VALUES (5, 5);
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
COMMIT;

-- Nor is it by a move that is rolled back
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_euno_emptied LOCATION '';
BEGIN;
SAVEPOINT s;
ALTER TABLE twice SET TABLESPACE regress_euno_emptied;
ROLLBACK TO s;
INSERT INTO twice VALUES (6, 6);
SELECT euno_rebuild('twice_a'), euno_rebuild('twice_b');
SET LOCAL euno.debug_stop = 'build-begin:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (7, 7);
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
COMMIT;

-- Nor when it is moved so and another table, which is emptied first, makes the commit fail
BEGIN;
SAVEPOINT s;
ALTER TABLE twice SET TABLESPACE regress_euno_emptied;
ROLLBACK TO s;
CREATE TEMP TABLE later (a int) ON COMMIT DELETE ROWS;
CREATE INDEX later_a ON later USING euno (a);
SET LOCAL euno.debug_stop = 'build-end:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (8, 8);
SELECT euno_rebuild('twice_a'), euno_rebuild('twice_b');
SET LOCAL euno.debug_stop = 'build-begin:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (9, 9);
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
COMMIT;

-- One whose drop is rolled back stays known, too
BEGIN;
SAVEPOINT s;
DROP TABLE twice;
ROLLBACK TO s;
COMMIT;
BEGIN;
DROP TABLE twice;
ROLLBACK;
BEGIN;
INSERT INTO twice VALUES (10, 10);
SELECT euno_rebuild('twice_a'), euno_rebuild('twice_b');
SET LOCAL euno.debug_stop = 'build-begin:error';
COMMIT;
BEGIN;
INSERT INTO twice VALUES (11, 11);
SELECT euno_index_check('twice_a', true), euno_index_check('twice_b', true);
COMMIT;
DROP TABLESPACE regress_euno_emptied;

-- That gives up nothing of a table that is emptied by a new file, and back
BEGIN;
TRUNCATE keep;
ROLLBACK;
SELECT indexrelname, state, entries FROM euno_stat_indexes WHERE relname = 'keep';

-- Unlogged, and back
CREATE UNLOGGED TABLE u AS SELECT n AS a, n % 9 AS b FROM generate_series(1, 2000) n;
CREATE INDEX u_ba ON u USING euno (b, a);
ANALYZE u;
SELECT compare('SELECT b, a FROM u WHERE b = 3 AND a > 1900 ORDER BY b, a', 'u_ba');
ALTER TABLE u SET LOGGED;
SELECT compare('SELECT b, a FROM u WHERE b = 3 AND a > 1900 ORDER BY b, a', 'u_ba');
ALTER TABLE u SET UNLOGGED;
SELECT compare('SELECT b, a FROM u WHERE b = 3 AND a > 1900 ORDER BY b, a', 'u_ba'), euno_index_check('u_ba', true);

-- CLUSTER puts the rows into the order of the index, and keeps what others may still see
CREATE TABLE cl (id int, a int, pad text);
INSERT INTO cl SELECT n, n * 7919 % 1000, repeat('x', 100) FROM generate_series(1, 3000) n;
CREATE INDEX cl_a ON cl USING euno (a DESC, id);
CREATE INDEX cl_id ON cl (id);
DELETE FROM cl WHERE id % 5 = 0;
UPDATE cl SET pad = 'y' WHERE id % 7 = 0;
CLUSTER cl USING cl_a;
SELECT count(*) AS out_of_order FROM (SELECT a, id, lag(a) OVER w AS pa, lag(id) OVER w AS pid FROM cl WINDOW w AS (ORDER BY ctid)) s WHERE a > pa OR a = pa AND id < pid;
SELECT count(*), sum(a), count(*) FILTER (WHERE pad = 'y') FROM cl;
SELECT indisclustered FROM pg_index WHERE indexrelid = 'cl_a'::regclass;
INSERT INTO cl VALUES (9000, 500, 'z');
SELECT euno_evict('cl_a');
CLUSTER cl;
SELECT count(*) AS out_of_order FROM (SELECT a, lag(a) OVER (ORDER BY ctid) AS pa FROM cl) s WHERE a > pa;
ALTER TABLE cl SET WITHOUT CLUSTER;
ALTER TABLE cl CLUSTER ON cl_a;
SELECT count(*), euno_index_check('cl_a', true) FROM cl;
CREATE INDEX cl_part ON cl USING euno (a) WHERE a > 5;
CLUSTER cl USING cl_part;

-- A type of an extension that can be taken for text: it needs a class of its own,
-- or every case would be another value of a unique index
CREATE EXTENSION citext;
CREATE DOMAIN cd AS citext;
CREATE TABLE ci (id int, name citext, d cd);
CREATE INDEX ON ci USING euno (id, name);
CREATE UNIQUE INDEX ON ci USING euno (d);
CREATE INDEX CONCURRENTLY ci_c ON ci USING euno (name);
DROP INDEX ci_c;
CREATE INDEX ON ci USING euno ((name::text));
CREATE INDEX ON ci USING euno (id) INCLUDE (name);
DROP TABLE ci;
DROP DOMAIN cd;

-- Its comparison function is all there is to it
CREATE OPERATOR CLASS citext_ops DEFAULT FOR TYPE citext USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 citext_cmp(citext, citext);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'citext_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'euno');
CREATE TABLE ci (id int, name citext);
INSERT INTO ci SELECT n, CASE n % 3 WHEN 0 THEN 'Name ' WHEN 1 THEN 'name ' ELSE 'NAME ' END || n % 100 FROM generate_series(1, 2000) n;
CREATE INDEX ci_name ON ci USING euno (name, id);
ANALYZE ci;
SELECT cond, compare('SELECT id, name FROM ci WHERE ' || cond, 'ci_name') AS result
FROM unnest(ARRAY['name = ''nAmE 7''', 'name IN (''NAME 1'', ''name 2'', ''naMe 1'', ''x'')', 'name > ''name 98'' ORDER BY name, id', 'name < ''NAME 11'' ORDER BY name DESC, id DESC']) cond;
SELECT compare('SELECT lower(name), count(*) FROM ci WHERE name > ''name 5'' GROUP BY name, lower(name)', 'ci_name'), euno_index_check('ci_name', true);
DROP TABLE ci;
DROP EXTENSION citext CASCADE;

-- No page of an index is read: of the table, three rows' and the visibility map's
VACUUM ANALYZE cl;
CREATE FUNCTION heap_blocks(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END $$;
SET enable_seqscan = off;
DROP INDEX cl_id, cl_part;
SELECT heap_blocks('SELECT id FROM cl WHERE a = 701 AND id > 0') BETWEEN 1 AND 6 AS few;
-- Not on catalogs, where CREATE INDEX would be let in
SET allow_system_table_mods = on;
CREATE INDEX pg_class_pages ON pg_class USING euno (relpages);
CREATE INDEX pg_am_name ON pg_am USING euno (amname);
RESET allow_system_table_mods;

DROP TABLE p, p3, i, i1, i2, keep, clear, u, cl CASCADE;
DROP FUNCTION compare, heap_blocks;
