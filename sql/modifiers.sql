-- What the modifiers of numeric(p, s) and char(n) imply is not kept with each key:
-- values come back as they are in the table, and as they were when an ALTER TABLE
-- changes the type but not the index
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE SCHEMA modifiers;
SET search_path = modifiers, public;
CREATE DOMAIN price AS numeric(12, 3);
CREATE DOMAIN code AS char(8) COLLATE "C";
CREATE TABLE m (id int GENERATED ALWAYS AS IDENTITY, n2 numeric(10, 2), n0 numeric(10, 0), nm numeric(12, -2),
	n5 numeric(5, 5), n70 numeric(200, 70), np price, n numeric, c1 char COLLATE "C", c6 char(6) COLLATE "C",
	c256 char(256) COLLATE "C", c257 char(257) COLLATE "C", cc code, c bpchar COLLATE "C") WITH (autovacuum_enabled = off);
SELECT setseed(0.5);
INSERT INTO m (n2, n0, nm, n5, n70, np, n, c1, c6, c256, c257, cc, c)
	SELECT x, x, x * 100, x / 10000, x / 7, x / 3, round(x, (id % 5)::int), t, t, repeat(t, 1 + (id % 11)::int), t, t, t || repeat(' ', (id % 4)::int)
	FROM (SELECT id, CASE id % 4 WHEN 0 THEN id / 20 WHEN 1 THEN round((random() * 3000 - 1500)::numeric, 1)
				WHEN 2 THEN round((random() * 30 - 15)::numeric, 2) ELSE 0 END AS x,
			left(unnest(ARRAY['', 'a', 'ab', 'é', 'éa', '日本語', 'abcde', 'abcdef', 'ééééé', 'éééééé', '12345678', 'a b']), 6) AS t
		FROM generate_series(1, 400) id) g;
INSERT INTO m (n2, n0, nm, n5, np, n) VALUES ('NaN', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN');
INSERT INTO m DEFAULT VALUES;
INSERT INTO m (n2, n70, c6, n) SELECT (random() * 1000)::numeric, random()::numeric * 10 ^ (k % 30 - 15), md5(k::text)::char(3), 1 FROM generate_series(1, 1000) k;
VACUUM ANALYZE m;
CREATE TABLE columns AS SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
	WHERE attrelid = 'm'::regclass AND attnum > 1 ORDER BY attnum;

-- Columns by an index-only scan in its order, beside the table's
CREATE FUNCTION wrong_values(columns text, by text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan text := '';
	line text;
	wrong bigint;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (COSTS off) SELECT %s FROM m ORDER BY %s', columns, by) LOOP
		plan := plan || line;
	END LOOP;
	IF plan NOT LIKE 'Index Only Scan using m_i on m%' THEN
		RETURN NEXT format('%s: %s', columns, plan);
	END IF;
	EXECUTE format('CREATE TEMP TABLE from_index AS SELECT record_send(x) AS image FROM (SELECT %s FROM m ORDER BY %s OFFSET 0) x', columns, by);
	SET LOCAL enable_indexonlyscan = off;
	EXECUTE format('SELECT count(*) FROM ((SELECT image FROM from_index EXCEPT ALL SELECT record_send(x) AS image FROM (SELECT %s FROM m OFFSET 0) x) UNION ALL
		(SELECT record_send(x) AS image FROM (SELECT %s FROM m OFFSET 0) x EXCEPT ALL SELECT image FROM from_index)) d', columns, columns) INTO wrong;
	SET LOCAL enable_indexonlyscan = on;
	DROP TABLE from_index;
	IF wrong > 0 THEN
		RETURN NEXT format('%s by %s: %s wrong', columns, by, wrong);
	END IF;
	PERFORM euno_index_check('m_i', true);
END $$;
CREATE FUNCTION check_index(columns text, definition text, by text, options text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX m_i ON m USING euno %s %s', definition, options);
	RETURN QUERY SELECT * FROM wrong_values(columns, by);
	DROP INDEX m_i;
END $$;
CREATE VIEW wrong AS SELECT w.* FROM
	(SELECT name, format('(%s %s)', name, dir) AS definition, name || ' ' || dir AS by FROM columns, unnest(ARRAY['', 'DESC']) dir
	UNION ALL
	-- several that lose something, more of them than are noted, and INCLUDE columns
	SELECT list, format('(%s)', list), list FROM (VALUES ('n2, c6'), ('c6, n2'), ('c6, id, c256'), ('n2, n0, nm, n5, n70, np'), ('c1, cc, c, c6, n2')) v (list)
	UNION ALL
	SELECT 'n2, cc, c6, np', '(n2, cc) INCLUDE (c6, np)', 'n2, cc') d (columns, definition, by),
	unnest(ARRAY['', 'WITH (structure = art)']) options,
	check_index(columns, definition, by, options) w;
SELECT * FROM wrong;

-- Equal ones of a modifier share a key
CREATE TABLE shared AS SELECT (g % 100)::numeric(10, 2) AS p, (g % 100)::text::char(10) COLLATE "C" AS c,
	(g % 100)::numeric(10, 2)::numeric AS n FROM generate_series(1, 30000) g;
CREATE INDEX shared_p ON shared USING euno (p);
CREATE INDEX shared_c ON shared USING euno (c);
CREATE INDEX shared_n ON shared USING euno (n);
SELECT indexrelname, bytes / entries < 10 AS shared FROM euno_stat_indexes WHERE relname = 'shared' ORDER BY 1;

-- Values that do not follow the modifier
UPDATE pg_attribute SET atttypmod = ('{"n2": 262150, "np": -1, "n": 262151, "c6": 9, "c": 24}'::json ->> attname)::int
	WHERE attrelid = 'm'::regclass AND attname IN ('n2', 'n', 'c6', 'c');
SELECT name, format_type(atttypid, atttypmod) FROM columns JOIN pg_attribute ON attname = name
	WHERE attrelid = 'm'::regclass AND format_type(atttypid, atttypmod) <> type ORDER BY 1;
SELECT * FROM wrong;

-- Types change, the index does not
CREATE TABLE altered (p numeric(10, 2), c char(10) COLLATE "C", d price) WITH (autovacuum_enabled = off);
CREATE INDEX altered_p ON altered USING euno (p);
CREATE INDEX altered_c ON altered USING euno (c, p) WITH (structure = art);
CREATE UNIQUE INDEX altered_d ON altered USING euno (d);
INSERT INTO altered SELECT g, g, g FROM generate_series(1, 3) g;
VACUUM altered;
CREATE FUNCTION files() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(pg_relation_filenode(oid)::text, ' ' ORDER BY relname) FROM pg_class WHERE relname LIKE 'altered\__' $$;
SELECT files() AS files \gset
\set values 'SELECT (SELECT string_agg(p::text, \' \') FROM (SELECT p FROM altered WHERE p > 0 ORDER BY p) x) AS p, (SELECT string_agg(format(\'[%s %s]\', pg_column_size(c), p), \' \') FROM (SELECT c, p FROM altered WHERE c > \'\' ORDER BY c) x) AS c, (SELECT string_agg(d::text, \' \') FROM (SELECT d FROM altered WHERE d > 0 ORDER BY d) x) AS d;'
\set plans 'EXPLAIN (COSTS off) SELECT p FROM altered WHERE p > 0 ORDER BY p; EXPLAIN (COSTS off) SELECT c, p FROM altered WHERE c > \'\' ORDER BY c; EXPLAIN (COSTS off) SELECT d FROM altered WHERE d > 0 ORDER BY d;'
\set states 'SELECT indexrelname, state FROM euno_stat_indexes WHERE relname = \'altered\' ORDER BY 1;'
\set rebuild 'SELECT euno_rebuild(\'altered_p\'), euno_rebuild(\'altered_c\'), euno_rebuild(\'altered_d\');'
\set check 'SELECT euno_index_check(\'altered_p\', true), euno_index_check(\'altered_c\', true), euno_index_check(\'altered_d\', true);'
\set alter 'ALTER TABLE altered ALTER p TYPE numeric, ALTER c TYPE bpchar COLLATE "C", ALTER d TYPE numeric;'
:plans
:values
-- The scale stays, and the trees
ALTER TABLE altered ALTER p TYPE numeric(12, 2);
SELECT files() = :'files' AS same_files;
:values
:states
-- It goes; and comes back
BEGIN;
:alter
SELECT files() = :'files' AS same_files;
-- not by the old trees
:values
:rebuild
:values
SAVEPOINT a;
INSERT INTO altered VALUES (4.5, '4', 4.5);
:values
ROLLBACK TO a;
:values
ROLLBACK;
:values
:rebuild
:values
:check
-- comes back, and nobody has looked
BEGIN;
:alter
ROLLBACK;
:states
:values
-- of the fifth column that loses something the index keeps all
CREATE INDEX altered_e ON altered USING euno (d, d, d, d, p);
BEGIN;
ALTER TABLE altered ALTER p TYPE numeric;
EXPLAIN (COSTS off) SELECT d, p FROM altered WHERE d > 0 ORDER BY d, p;
SELECT d, p FROM altered WHERE d > 0 ORDER BY d, p;
ROLLBACK;
DROP INDEX altered_e;
-- goes for good; a write sees it first
:alter
SELECT files() = :'files' AS same_files;
INSERT INTO altered VALUES (4.5, '4', 4.5), (4.50, '4  ', 4.51);
:rebuild
:plans
:values
:check
INSERT INTO altered VALUES (1, '1', 1.00);
DROP SCHEMA modifiers CASCADE;
