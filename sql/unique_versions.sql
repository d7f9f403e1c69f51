-- What PostgreSQL does with unique indexes that are no btrees.  Until 17 most of
-- it is refused, from 18 on it works: the expected output is one for each.

-- ON CONFLICT.  The warning comes once, and not for indexes that are not unique.
CREATE TABLE w (a int NOT NULL, b int, v text);
CREATE UNIQUE INDEX w_a ON w USING euno (a);
CREATE UNIQUE INDEX IF NOT EXISTS w_a ON w USING euno (a);
CREATE MATERIALIZED VIEW wm AS SELECT a FROM w;
CREATE UNIQUE INDEX ON wm USING euno (a);
DROP MATERIALIZED VIEW wm;
CREATE TABLE wd AS SELECT 1 AS a FROM generate_series(1, 2);
CREATE UNIQUE INDEX CONCURRENTLY wd_a ON wd USING euno (a);
DROP TABLE wd;
CREATE INDEX w_v ON w USING euno (v);
SET client_min_messages = error;
CREATE UNIQUE INDEX w_b ON w USING euno (b) WHERE v <> 'free';
RESET client_min_messages;
INSERT INTO w VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three');
INSERT INTO w VALUES (1, 1, 'again') ON CONFLICT DO NOTHING;
INSERT INTO w VALUES (1, 10, 'updated'), (4, 4, 'new') ON CONFLICT (a) DO UPDATE SET v = excluded.v, b = excluded.b;
INSERT INTO w VALUES (5, 10, 'again') ON CONFLICT (b) WHERE v <> 'free' DO UPDATE SET v = 'by b';
INSERT INTO w VALUES (5, 10, 'again') ON CONFLICT (a) DO NOTHING;
INSERT INTO w VALUES (6, 6, 'six'), (6, 60, 'six') ON CONFLICT (a) DO UPDATE SET v = 'twice';
INSERT INTO w VALUES (6, 6, 'six'), (6, 60, 'six') ON CONFLICT DO NOTHING;
SELECT euno_evict('w_a');
INSERT INTO w VALUES (1, 1, 'again'), (7, 7, 'new') ON CONFLICT (a) DO NOTHING;
INSERT INTO w SELECT g % 500 + 100, g + 100, g FROM generate_series(1, 2000) g ON CONFLICT (a) DO UPDATE SET v = excluded.v;
SELECT count(*), count(DISTINCT a), count(DISTINCT b), sum(v::int) FILTER (WHERE v ~ '^[0-9]') FROM w;
SELECT * FROM w WHERE a < 100 ORDER BY a;
SELECT euno_index_check('w_a', true), euno_index_check('w_b', true);

-- MERGE needs no arbiter
MERGE INTO w USING (VALUES (1, 'merged'), (8, 'merged')) m (a, v) ON w.a = m.a
	WHEN MATCHED THEN UPDATE SET v = m.v
	WHEN NOT MATCHED THEN INSERT VALUES (m.a, m.a, m.v);
SELECT * FROM w WHERE v = 'merged' ORDER BY a;

-- An operator class there is btree's, and finds no index of ours; columns do.
CREATE TABLE wo (v text);
SET client_min_messages = error;
CREATE UNIQUE INDEX wo_v ON wo USING euno (v text_pattern_ops);
RESET client_min_messages;
INSERT INTO wo VALUES ('a') ON CONFLICT (v text_pattern_ops) DO NOTHING;
INSERT INTO wo VALUES ('a'), ('a') ON CONFLICT (v) DO NOTHING;
SELECT * FROM wo;
DROP TABLE wo;

-- NULLs that are not distinct: one that is there is found
CREATE TABLE nn (n int, c int, v text COLLATE "C");
SET client_min_messages = error;
CREATE UNIQUE INDEX nn_n ON nn USING euno (n, c) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX nn_v ON nn USING euno (v) NULLS NOT DISTINCT WITH (structure = art);
RESET client_min_messages;
INSERT INTO nn VALUES (NULL, 1, NULL), (NULL, NULL, 'a'), (2, NULL, 'b');
SET statement_timeout = '20s';
INSERT INTO nn VALUES (NULL, 1, 'c') ON CONFLICT DO NOTHING;
INSERT INTO nn VALUES (NULL, NULL, 'c') ON CONFLICT (n, c) DO UPDATE SET v = 'by two NULLs';
INSERT INTO nn VALUES (2, NULL, 'c') ON CONFLICT (c, n) DO UPDATE SET v = 'by 2 and a NULL';
INSERT INTO nn VALUES (9, 9, NULL) ON CONFLICT (v) DO UPDATE SET v = 'by a NULL';
INSERT INTO nn VALUES (3, NULL, 'new') ON CONFLICT DO NOTHING;
RESET statement_timeout;
INSERT INTO nn VALUES (NULL, NULL, 'c');
SELECT * FROM nn ORDER BY n, c;
DROP TABLE nn;

-- With an exclusion constraint instead, ON CONFLICT works everywhere
CREATE TABLE x (a int, v text, EXCLUDE USING euno (a WITH =));
INSERT INTO x VALUES (1, 'one'), (1, 'again') ON CONFLICT DO NOTHING;
SELECT * FROM x;

-- Replica identity
ALTER TABLE w REPLICA IDENTITY USING INDEX w_a;
ALTER TABLE w REPLICA IDENTITY USING INDEX w_none;
ALTER TABLE w REPLICA IDENTITY FULL;

-- Constraints need a btree in all versions
ALTER TABLE w ADD PRIMARY KEY USING INDEX w_a;
ALTER TABLE w ADD CONSTRAINT w_unique UNIQUE USING INDEX w_a;

-- Foreign keys.  Until 17 the first unique index on the column counts.
CREATE TABLE child (a int REFERENCES w (a));
INSERT INTO child VALUES (1);
INSERT INTO child VALUES (-1);
DELETE FROM w WHERE a = 1;
CREATE TABLE parent (a int PRIMARY KEY);
SET client_min_messages = error;
CREATE UNIQUE INDEX parent_a ON parent USING euno (a);
RESET client_min_messages;
CREATE TABLE child2 (a int REFERENCES parent);
DROP TABLE IF EXISTS child, child2;
DROP TABLE parent;

-- Partitioned tables
CREATE TABLE part (a int, v text) PARTITION BY RANGE (a);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (200);
SET client_min_messages = error;
CREATE UNIQUE INDEX part_a ON part USING euno (a);
RESET client_min_messages;
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX part_v ON part USING euno (v);
\set VERBOSITY default
INSERT INTO part VALUES (50, 'x'), (150, 'x');
INSERT INTO part VALUES (50, 'y');
INSERT INTO part VALUES (50, 'y') ON CONFLICT (a) DO UPDATE SET v = excluded.v;
UPDATE part SET a = 150 WHERE a = 50;
SELECT tableoid::regclass, * FROM part ORDER BY a, v;

-- Materialized views
CREATE MATERIALIZED VIEW mv AS SELECT a, v FROM w WHERE a < 10;
SET client_min_messages = error;
CREATE UNIQUE INDEX mv_a ON mv USING euno (a);
RESET client_min_messages;
UPDATE w SET v = 'changed' WHERE a = 3;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
SELECT * FROM mv WHERE a = 3;
REFRESH MATERIALIZED VIEW mv;
SELECT * FROM mv WHERE a = 3;
SELECT euno_index_check('mv_a', true);

DROP MATERIALIZED VIEW mv;
DROP TABLE w, x, part;
