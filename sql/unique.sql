-- Unique indexes: every statement runs on a table with a euno index and on one
-- with a btree index; outcome, message and detail must be the same.
SET client_min_messages = error;
CREATE SCHEMA e;
CREATE SCHEMA b;

CREATE FUNCTION twin(stmt text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text[] := '{}';
	msg text;
	detail text;
	state text;
	con text;
	n bigint;
BEGIN
	FOR i IN 1..2 LOOP
		PERFORM set_config('search_path', (ARRAY['e, public', 'b, public'])[i], true);
		BEGIN
			EXECUTE replace(replace(stmt, '%AM', (ARRAY['euno', 'btree'])[i]),
				'%ART', (ARRAY['WITH (structure = art)', ''])[i]);
			GET DIAGNOSTICS n = ROW_COUNT;
			result[i] := 'ok ' || n;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS msg = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
				state = RETURNED_SQLSTATE, con = CONSTRAINT_NAME;
			result[i] := concat_ws(' | ', state, msg, detail, con);
		END;
	END LOOP;
	PERFORM set_config('search_path', 'public', true);
	RETURN CASE WHEN result[1] IS NOT DISTINCT FROM result[2] THEN result[1]
		ELSE 'DIFFERENT: ' || result[1] || ' <> ' || result[2] END;
END $$;

-- Both tables hold the same rows, and the tree is sound.
CREATE FUNCTION same(tab text, idx text, keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE differ bigint; twice bigint;
BEGIN
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE format('SELECT count(*) FROM ((TABLE e.%1$I EXCEPT ALL TABLE b.%1$I) UNION ALL (TABLE b.%1$I EXCEPT ALL TABLE e.%1$I)) d', tab) INTO differ;
	EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM e.%1$I GROUP BY %2$s HAVING count(*) > 1 AND num_nulls(%2$s) = 0) d', tab, keys) INTO twice;
	PERFORM euno_index_check(format('e.%I', idx)::regclass, true);
	RETURN format('%s differ, %s twice', differ, twice);
END $$;

-- Inserts and updates
SELECT twin('CREATE TABLE t (a int, v text)');
SELECT twin('CREATE UNIQUE INDEX t_a ON t USING %AM (a)');
SELECT twin('INSERT INTO t SELECT g, ''first'' FROM generate_series(1, 3000) g');
SELECT twin('INSERT INTO t VALUES (7, ''second'')');
SELECT twin('INSERT INTO t VALUES (3001, ''x''), (3001, ''y'')');
SELECT twin('UPDATE t SET a = 8 WHERE a = 9');
SELECT twin('UPDATE t SET a = -a');
-- The rows are in this order in a new table
SELECT twin('CREATE TABLE shifted (a int)');
SELECT twin('CREATE UNIQUE INDEX shifted_a ON shifted USING %AM (a)');
SELECT twin('INSERT INTO shifted SELECT -g FROM generate_series(1, 3000) g');
SELECT twin('UPDATE shifted SET a = a + 1');
SELECT twin('UPDATE t SET v = ''changed'' WHERE a % 3 = 0');
SELECT twin('DELETE FROM t WHERE a = -10');
SELECT twin('INSERT INTO t VALUES (-10, ''again'')');
SELECT twin('INSERT INTO t VALUES (-10, ''and again'')');
SELECT twin('INSERT INTO t VALUES (NULL, ''null''), (NULL, ''null too'')');
SELECT same('t', 't_a', 'a');

-- One key over and over: the dead versions are no duplicates, and go.
SELECT twin('DO $d$ BEGIN FOR i IN 1..300 LOOP DELETE FROM t WHERE a = -20; INSERT INTO t VALUES (-20, i); END LOOP; END $d$');
SELECT twin('INSERT INTO t VALUES (-20, ''one too many'')');
SELECT twin('UPDATE t SET a = -20 WHERE a = -21');
SELECT same('t', 't_a', 'a');

-- After an eviction the tree is built before the check.
SELECT euno_evict('e.t_a');
SELECT twin('INSERT INTO t VALUES (-30, ''evicted'')');
SELECT state FROM euno_stat_indexes WHERE indexrelname = 't_a';
SELECT euno_evict('e.t_a');
SELECT twin('INSERT INTO t VALUES (5000, ''new'')');
SELECT twin('INSERT INTO t VALUES (5000, ''new'')');
SELECT same('t', 't_a', 'a');

-- Subtransactions
SELECT twin('DO $d$ BEGIN
	BEGIN INSERT INTO t VALUES (6000, ''undone''); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END;
	INSERT INTO t VALUES (6000, ''kept''); END $d$');
SELECT twin('DO $d$ BEGIN
	BEGIN DELETE FROM t WHERE a = 6000; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END;
	INSERT INTO t VALUES (6000, ''duplicate''); END $d$');
SELECT same('t', 't_a', 'a');

-- NULLs
SELECT twin('CREATE TABLE n (a int, c text)');
SELECT twin('CREATE UNIQUE INDEX n_ac ON n USING %AM (a, c COLLATE "C") NULLS NOT DISTINCT');
SELECT twin('INSERT INTO n VALUES (1, NULL), (NULL, ''x''), (NULL, NULL)');
SELECT twin('INSERT INTO n VALUES (1, NULL)');
SELECT twin('INSERT INTO n VALUES (NULL, ''x'')');
SELECT twin('INSERT INTO n VALUES (NULL, NULL)');
SELECT twin('INSERT INTO n VALUES (2, NULL)');
SELECT twin('CREATE TABLE n2 (a int, c text)');
SELECT twin('INSERT INTO n2 VALUES (1, NULL), (1, NULL), (NULL, NULL), (NULL, NULL)');
SELECT twin('CREATE UNIQUE INDEX n2_ac ON n2 USING %AM (a, c COLLATE "C")');
SELECT twin('DROP INDEX n2_ac');
SELECT twin('CREATE UNIQUE INDEX n2_ac ON n2 USING %AM (a, c COLLATE "C") NULLS NOT DISTINCT');
SELECT same('n', 'n_ac', 'a, c');

-- What is equal: by the comparator, not by the bytes
SELECT twin('CREATE TABLE eq (f float8, n numeric, c char(5), i text)');
SELECT twin('CREATE UNIQUE INDEX eq_f ON eq USING %AM (f)');
SELECT twin('CREATE UNIQUE INDEX eq_n ON eq USING %AM (n)');
SELECT twin('CREATE UNIQUE INDEX eq_c ON eq USING %AM (c)');
SELECT twin('CREATE UNIQUE INDEX eq_i ON eq USING %AM (lower(i)) INCLUDE (n) WHERE i <> ''free''');
SELECT twin('INSERT INTO eq VALUES (0, 1.0, ''a'', ''Abc''), (1, 2, ''b'', ''free''), (2, 3, ''c'', ''free'')');
SELECT twin('INSERT INTO eq VALUES (-0.0, 10, ''x'', ''x'')');
SELECT twin('INSERT INTO eq VALUES (10, 1.00, ''x'', ''x'')');
SELECT twin('INSERT INTO eq VALUES (10, 10, ''a   '', ''x'')');
SELECT twin('INSERT INTO eq VALUES (10, 10, ''x'', ''aBC'')');
SELECT twin('INSERT INTO eq VALUES (10, 10, ''x'', ''free'')');
SELECT twin('UPDATE eq SET i = ''ABC'' WHERE n = 2');
SELECT same('eq', 'eq_n', 'n');
SELECT euno_index_check('e.eq_f', true);
SELECT euno_index_check('e.eq_c', true);
SELECT euno_index_check('e.eq_i', true);

-- Building
SELECT twin('CREATE TABLE d (a int, n numeric, v text)');
SELECT twin('INSERT INTO d SELECT g % 999, g % 999, g FROM generate_series(1, 1000) g');
SELECT twin('CREATE UNIQUE INDEX d_a ON d USING %AM (a)');
SELECT twin('CREATE UNIQUE INDEX d_n ON d USING %AM (n DESC)');
SELECT twin('CREATE UNIQUE INDEX d_av ON d USING %AM (a, v)');
SELECT twin('DELETE FROM d WHERE v = ''1''');
SELECT twin('CREATE UNIQUE INDEX d_a ON d USING %AM (a)');
SELECT twin('CREATE UNIQUE INDEX d_n ON d USING %AM (n DESC)');
SELECT twin('INSERT INTO d VALUES (500, -1, ''dup'')');
SELECT twin('INSERT INTO d VALUES (-1, 500, ''dup'')');
SELECT twin('UPDATE d SET v = v || ''x''');
SELECT twin('REINDEX INDEX d_a');
SELECT twin('INSERT INTO d VALUES (500, -1, ''dup'')');
SELECT twin('TRUNCATE d');
SELECT twin('INSERT INTO d VALUES (500, 500, ''first'')');
SELECT twin('INSERT INTO d VALUES (500, 500, ''dup'')');
SELECT same('d', 'd_a', 'a');

-- In the transaction that deletes one of two equal rows
SELECT twin('CREATE TABLE o (a int)');
SELECT twin('INSERT INTO o VALUES (1), (1), (2)');
BEGIN;
SELECT twin('DELETE FROM o WHERE ctid = ''(0,1)''');
SELECT twin('CREATE UNIQUE INDEX o_a ON o USING %AM (a)');
SELECT twin('INSERT INTO o VALUES (1)');
ROLLBACK;
SELECT twin('CREATE UNIQUE INDEX o_a ON o USING %AM (a)');

-- With parallel workers
SELECT twin('CREATE TABLE p (a int, v text) WITH (parallel_workers = 2)');
SELECT twin('INSERT INTO p SELECT g, g FROM generate_series(1, 30000) g');
SET min_parallel_table_scan_size = 0;
SELECT twin('CREATE UNIQUE INDEX p_a ON p USING %AM (a)');
SELECT twin('DROP INDEX p_a');
SELECT twin('INSERT INTO p VALUES (12345, ''dup'')');
CREATE UNIQUE INDEX p_a ON e.p USING euno (a);	-- btree stops its workers here: noise in the log
SELECT twin('DELETE FROM p WHERE v = ''12345''');
SELECT twin('CREATE UNIQUE INDEX p_a ON p USING %AM (a)');
RESET min_parallel_table_scan_size;
SELECT same('p', 'p_a', 'a');

-- A chain of HOT updates, made before the index and in its transaction
SELECT twin('CREATE TABLE h (a int)');
SELECT twin('INSERT INTO h VALUES (0), (1), (2), (2)');
SELECT twin('UPDATE h SET a = 1 - a WHERE a < 2');
BEGIN;
SELECT twin('UPDATE h SET a = 1 - a WHERE a < 2');
SELECT twin('CREATE UNIQUE INDEX h_a ON h USING %AM (a)');
SELECT twin('UPDATE h SET a = 3 WHERE ctid = (SELECT max(ctid) FROM h WHERE a = 2)');
SELECT twin('CREATE UNIQUE INDEX h_a ON h USING %AM (a)');
SELECT twin('INSERT INTO h VALUES (1)');
COMMIT;
SELECT twin('INSERT INTO h VALUES (3)');
SELECT same('h', 'h_a', 'a');

-- A radix tree
SELECT twin('CREATE TABLE r (a int, c text, v text)');
SELECT twin('INSERT INTO r SELECT g % 2000, g % 7, g FROM generate_series(1, 5000) g');
SELECT twin('CREATE UNIQUE INDEX r_ac ON r USING %AM (a, c COLLATE "C") %ART');
SELECT twin('CREATE UNIQUE INDEX r_a ON r USING %AM (a) %ART WHERE a = 7');
SELECT twin('INSERT INTO r SELECT g, NULL, g FROM generate_series(1, 100) g');
SELECT twin('INSERT INTO r SELECT a, c, ''x'' FROM r WHERE c = ''3'' ORDER BY v LIMIT 1');
SELECT twin('UPDATE r SET a = a + 1 WHERE a % 2 = 0');
SELECT twin('DELETE FROM r WHERE a % 3 = 0');
SELECT twin('DO $d$ BEGIN FOR i IN 1..300 LOOP DELETE FROM r WHERE a = 20 AND c = ''3''; INSERT INTO r VALUES (20, ''3'', i); END LOOP; END $d$');
SELECT twin('INSERT INTO r VALUES (20, ''3'', ''one too many'')');
SELECT euno_evict('e.r_ac');
SELECT twin('INSERT INTO r VALUES (20, ''3'', ''one too many'')');
SELECT same('r', 'r_ac', 'a, c');

-- Exclusion constraints
SELECT twin('CREATE TABLE x (a int, v text, CONSTRAINT x_a EXCLUDE USING %AM (a WITH =))');
SELECT twin('INSERT INTO x SELECT g, g FROM generate_series(1, 100) g');
SELECT twin('INSERT INTO x VALUES (7, ''again'')');
SELECT twin('INSERT INTO x VALUES (7, ''again''), (101, ''new''), (101, ''newer'') ON CONFLICT DO NOTHING');
SELECT twin('INSERT INTO x VALUES (7, ''again''), (102, ''next'') ON CONFLICT ON CONSTRAINT x_a DO NOTHING');
SELECT twin('INSERT INTO x VALUES (7, ''again'') ON CONFLICT ON CONSTRAINT x_a DO UPDATE SET v = ''updated''');
SELECT twin('UPDATE x SET a = a + 1');
SELECT twin('UPDATE x SET a = -a');
SELECT twin('CREATE UNIQUE INDEX x_v ON x USING btree (v)');
SELECT twin('INSERT INTO x VALUES (200, ''7'') ON CONFLICT (v) DO UPDATE SET a = excluded.a');
SELECT twin('INSERT INTO x VALUES (200, ''x'') ON CONFLICT (v) DO UPDATE SET a = excluded.a');
SELECT euno_evict('e.x_a');
SELECT twin('INSERT INTO x VALUES (200, ''x'') ON CONFLICT DO NOTHING');
SELECT same('x', 'x_a', 'a');
SELECT twin('CREATE TABLE y (a int, CONSTRAINT y_a EXCLUDE USING %AM (a WITH =) DEFERRABLE INITIALLY DEFERRED)');
SELECT twin('INSERT INTO y SELECT generate_series(1, 100)');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; UPDATE y SET a = a + 1; SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; UPDATE y SET a = 7 WHERE a = 8; SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('INSERT INTO y VALUES (7) ON CONFLICT DO NOTHING');
SELECT same('y', 'y_a', 'a');

-- Deferrable unique constraints need a btree.  With the catalogs changed by hand
-- the same calls reach a euno index: inserts that only say that there may be a
-- duplicate, and checks of rows that are in the index already.
SELECT twin('CREATE TABLE z (a int, v text)');
ALTER TABLE b.z ADD CONSTRAINT z_a UNIQUE (a) DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX z_a ON e.z USING euno (a);
CREATE CONSTRAINT TRIGGER z_a AFTER INSERT OR UPDATE ON e.z DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION unique_key_recheck();
SET allow_system_table_mods = on;
UPDATE pg_index SET indimmediate = false WHERE indexrelid = 'e.z_a'::regclass;
UPDATE pg_trigger SET tgconstrindid = 'e.z_a'::regclass WHERE tgrelid = 'e.z'::regclass;
RESET allow_system_table_mods;
SELECT twin('INSERT INTO z SELECT g, g FROM generate_series(1, 100) g');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; UPDATE z SET a = a + 1; SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO z VALUES (7, ''second''); SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO z VALUES (7, ''second''); DELETE FROM z WHERE v = ''second''; SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO z VALUES (7, ''second''); UPDATE z SET v = v || ''x'' WHERE a = 7; DELETE FROM z WHERE v = ''6x''; SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO z VALUES (NULL, ''null''), (NULL, ''null''); SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO z VALUES (7, ''third''); PERFORM euno_evict(''e.z_a''); SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT twin('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO z VALUES (300, ''new''); PERFORM euno_evict(''e.z_a''); SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT same('z', 'z_a', 'a');

-- Concurrently
CREATE TABLE e.k (a int);
INSERT INTO e.k SELECT generate_series(1, 100);
CREATE UNIQUE INDEX CONCURRENTLY k_a ON e.k USING euno (a);
INSERT INTO e.k VALUES (50);
REINDEX INDEX CONCURRENTLY e.k_a;
INSERT INTO e.k VALUES (50);
DROP INDEX e.k_a;
INSERT INTO e.k VALUES (50);
CREATE UNIQUE INDEX CONCURRENTLY k_a ON e.k USING euno (a);

-- A description only of what the user may read
CREATE ROLE euno_unique_reader;
GRANT USAGE ON SCHEMA e, b TO euno_unique_reader;
GRANT INSERT ON e.t, b.t TO euno_unique_reader;
SET ROLE euno_unique_reader;
SELECT twin('INSERT INTO t VALUES (5000, ''new'')');
RESET ROLE;
GRANT INSERT, SELECT (a) ON e.n, b.n TO euno_unique_reader;
SET ROLE euno_unique_reader;
SELECT twin('INSERT INTO n VALUES (1, NULL)');
RESET ROLE;
GRANT SELECT (c) ON e.n, b.n TO euno_unique_reader;
SET ROLE euno_unique_reader;
SELECT twin('INSERT INTO n VALUES (1, NULL)');
RESET ROLE;
ALTER TABLE e.n ENABLE ROW LEVEL SECURITY;
ALTER TABLE b.n ENABLE ROW LEVEL SECURITY;
CREATE POLICY writes ON e.n FOR INSERT WITH CHECK (true);
CREATE POLICY writes ON b.n FOR INSERT WITH CHECK (true);
SET ROLE euno_unique_reader;
SELECT twin('INSERT INTO n VALUES (1, NULL)');
RESET ROLE;

DROP SCHEMA e CASCADE;
DROP SCHEMA b CASCADE;
DROP ROLE euno_unique_reader;
DROP FUNCTION twin, same;

-- What the planner concludes: a join that adds nothing is left out, while the index
-- is there
SET client_min_messages = error;
CREATE TABLE proof (a int, b text, c int);
INSERT INTO proof SELECT n, 'b' || n, n % 10 FROM generate_series(1, 1000) n;
CREATE UNIQUE INDEX proof_a ON proof USING euno (a);
CREATE UNIQUE INDEX proof_bc ON proof USING euno (b, c);
RESET client_min_messages;
CREATE TABLE proven (x bigint, y text, z int);
INSERT INTO proven SELECT n % 2000, 'b' || n, n % 10 FROM generate_series(1, 3000) n;
ANALYZE proof, proven;
EXPLAIN (COSTS OFF) SELECT x FROM proven LEFT JOIN proof ON a = x;
EXPLAIN (COSTS OFF) SELECT x FROM proven LEFT JOIN proof ON b = y AND c = z;
EXPLAIN (COSTS OFF) SELECT x FROM proven LEFT JOIN proof ON b = y;
SELECT count(x) FROM proven LEFT JOIN proof ON a = x;
SELECT count(*) FROM proven WHERE x IN (SELECT a FROM proof WHERE c = 3);
SELECT euno_evict('proof_a');
EXPLAIN (COSTS OFF) SELECT x FROM proven LEFT JOIN proof ON a = x;
SELECT euno_rebuild('proof_a');
-- No operator is offered that only the btree family has
BEGIN;
CREATE FUNCTION same_digits(int, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1::text = $2; END';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = text, FUNCTION = same_digits);
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 === (int, text);
SET LOCAL enable_seqscan = off;
SELECT a, x FROM proof JOIN proven ON a = x WHERE a === '7';
ROLLBACK;
DROP TABLE proof, proven;
