--
-- Storage parameters, and what is refused and how
--
CREATE TABLE t (a int, b text COLLATE "C", c point);
-- Runs a statement; tells all of the error but its place
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(E'\n', SQLSTATE || ': ' || message, nullif(detail, ''), nullif(hint, ''));
END $$;
\pset format unaligned
\pset tuples_only on

-- fillfactor
CREATE INDEX i ON t USING euno (a) WITH (fillfactor = 50);
ALTER INDEX i SET (fillfactor = 100);
SELECT reloptions FROM pg_class WHERE relname = 'i';
ALTER INDEX i RESET (fillfactor);
SELECT reloptions FROM pg_class WHERE relname = 'i';
SELECT try('ALTER INDEX i SET (fillfactor = 49)');
SELECT try('ALTER INDEX i SET (fillfactor = 101)');
SELECT try('CREATE INDEX ON t USING euno (a) WITH (fillfactor = full)');
DROP INDEX i;

-- Tables and other indexes have an option of that name, and it locks them no more than it did
BEGIN;
ALTER TABLE t SET (fillfactor = 90);
SELECT mode FROM pg_locks WHERE relation = 't'::regclass;
ROLLBACK;

-- A smaller fillfactor makes more leaves
INSERT INTO t SELECT n FROM generate_series(1, 20000) n;
CREATE INDEX i50 ON t USING euno (a) WITH (fillfactor = 50);
CREATE INDEX i100 ON t USING euno (a) WITH (fillfactor = 100);
SELECT l.leaves > 1.7 * f.leaves AS more, l.leaves < 2.3 * f.leaves AS not_too_many
	FROM euno_stat_indexes l, euno_stat_indexes f WHERE l.indexrelname = 'i50' AND f.indexrelname = 'i100';
DROP INDEX i50, i100;

-- structure
CREATE INDEX i ON t USING euno (a) WITH (structure = bptree);
SELECT structure, state FROM euno_stat_indexes WHERE indexrelname = 'i';
CREATE INDEX i_art ON t USING euno (a) WITH (structure = 'ART', sync = 'Rowex', replicate = yes);
SELECT structure, state FROM euno_stat_indexes WHERE indexrelname = 'i_art';
SELECT euno_evict('i_art');
SELECT structure, state FROM euno_stat_indexes WHERE indexrelname = 'i_art';
DROP INDEX i_art;
SELECT try('CREATE INDEX ON t USING euno (a) WITH (structure = hash)');
SELECT try('CREATE INDEX ON t USING euno (a) WITH (unheard = of)');

-- Kinds of indexes
SELECT try('ALTER TABLE t ADD UNIQUE USING INDEX i');
SELECT try('CREATE INDEX ON t USING euno (c)');
SELECT try('CREATE INDEX ON t USING euno (a text_ops)');
SELECT replace(try('CREATE INDEX ON t USING euno (a int4_ops (x = 1))'), 'public.', '');

-- The functions and what they take
CREATE INDEX b ON t USING btree (a);
CREATE VIEW v AS SELECT * FROM t;
CREATE TABLE p (a int) PARTITION BY LIST (a);
CREATE INDEX p_a ON p USING euno (a);
SELECT f || '(' || o || '): ' || try(format('SELECT %s(%s::regclass)', f, coalesce(quote_literal(o), 'NULL')))
	FROM unnest(ARRAY['euno_index_check', 'euno_index_size', 'euno_evict', 'euno_rebuild']) f,
		unnest(ARRAY['b', 't', 'v', 'p_a', 'i', 'pg_class']) o;
SELECT try('SELECT euno_index_size(''nosuch'')');
SELECT try('SELECT euno_index_size(1)'), try('SELECT euno_evict(1)'), try('SELECT euno_rebuild(1)'),
	try('SELECT euno_index_check(1)');
SELECT euno_index_size(NULL) IS NULL;

-- and who may call them
CREATE ROLE euno_nobody;
SET ROLE euno_nobody;
SELECT try('SELECT euno_evict(''i'')');
SELECT try('SELECT euno_rebuild(''i'')');
SELECT try('SELECT euno_index_check(''i'')');
SELECT try('SELECT euno_index_size(''i'')');
SELECT count(*) >= 1 FROM euno_stat_indexes;
SELECT count(*) FROM euno_memory;
SELECT try('SET euno.debug_stop = ''build-end:1''');
RESET ROLE;
DROP ROLE euno_nobody;

-- Settings
SELECT try('SET euno.max_memory = ''2GB''');
SELECT try('SET euno.max_indexes = 7');
SELECT try('SET euno.unheard = 7');
SELECT name, boot_val, unit, vartype, context, min_val, max_val FROM pg_settings WHERE name LIKE 'euno.%' ORDER BY 1;

-- The longest key: one more byte is refused, by an insertion as by a build
DROP VIEW v;
DROP TABLE t;
CREATE TABLE t (b text COLLATE "C", n int);
ALTER TABLE t ALTER b SET STORAGE PLAIN;
CREATE INDEX i ON t USING euno (b);
CREATE FUNCTION longest(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	low int := 1;
	high int := 4000;
	len int;
BEGIN
	WHILE high - low > 1 LOOP
		len := (low + high) / 2;
		IF try(format(statement, len)) = 'no error' THEN low := len; ELSE high := len; END IF;
	END LOOP;
	RETURN low;
END $$;
SELECT longest('INSERT INTO t VALUES (repeat(''x'', %s))') AS len \gset
SELECT :len BETWEEN 2690 AND 2704 AS near_the_limit;
TRUNCATE t;
INSERT INTO t VALUES (repeat('x', :len));
SELECT try(format('INSERT INTO t VALUES (repeat(''x'', %s))', :len + 1));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT length(b) FROM t WHERE b = 'x';
SELECT length(b) = :len FROM t WHERE b = repeat('x', :len);
SELECT length(b) = :len FROM t WHERE b > repeat('x', :len - 1);
SELECT count(*) FROM t WHERE b > repeat('x', :len + 1) OR b = repeat('x', :len + 1);
SELECT euno_evict('i');
SELECT euno_rebuild('i');
SELECT length(b) = :len FROM t WHERE b = repeat('x', :len);
SELECT euno_index_check('i', true);
DROP INDEX i;
INSERT INTO t VALUES (repeat('x', :len + 1));
SELECT try('CREATE INDEX i ON t USING euno (b)');
DELETE FROM t WHERE length(b) > :len;
VACUUM t;
CREATE INDEX i ON t USING euno (b);

-- The limit is that of the whole entry
DROP INDEX i;
DELETE FROM t;
CREATE INDEX i ON t USING euno (n) INCLUDE (b);
SELECT longest('INSERT INTO t VALUES (repeat(''x'', %s), 1)') BETWEEN 2660 AND 2704;
SELECT try('INSERT INTO t VALUES (repeat(''x'', 2705), 1)');
SELECT euno_index_check('i', true);
DROP INDEX i;
TRUNCATE t;
CREATE INDEX i ON t USING euno (b, b, n);
SELECT try('INSERT INTO t VALUES (repeat(''x'', 1400), 1)');
-- which table and index that is
DO $$
DECLARE
	space text;
	tab text;
	con text;
BEGIN
	INSERT INTO t VALUES (repeat('x', 1400), 1);
EXCEPTION WHEN program_limit_exceeded THEN
	GET STACKED DIAGNOSTICS space = SCHEMA_NAME, tab = TABLE_NAME, con = CONSTRAINT_NAME;
	RAISE NOTICE '% % %', space, tab, con;
END $$;

DROP TABLE t, p;
DROP FUNCTION try, longest;
