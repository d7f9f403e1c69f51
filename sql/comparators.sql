-- Comparators that users have written: they run queries, fail, come back to the
-- index that calls them, and write to it.

CREATE FUNCTION query_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS
$$SELECT CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END
    FROM (VALUES (1)) v LIMIT 1$$;
CREATE OPERATOR CLASS query_ops FOR TYPE int USING euno AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 query_cmp(int, int);

-- What a scan has found dead is removed when it ends, and no snapshot is active
-- any more then: the comparator's query needs one.
CREATE TABLE cut (a int, b text) WITH (autovacuum_enabled = off);
INSERT INTO cut SELECT i, 'x' FROM generate_series(1, 1000) i;
CREATE INDEX cut_a ON cut USING euno (a query_ops);
ANALYZE cut;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DELETE FROM cut WHERE a BETWEEN 200 AND 210;
SELECT a FROM cut WHERE a BETWEEN 197 AND 220 LIMIT 5;
DELETE FROM cut WHERE a BETWEEN 300 AND 310;
BEGIN;
DECLARE c CURSOR FOR SELECT a, b FROM cut WHERE a BETWEEN 297 AND 320;
FETCH 5 FROM c;
CLOSE c;
DECLARE d CURSOR FOR SELECT a, b FROM cut WHERE a BETWEEN 197 AND 320;
FETCH 5 FROM d;
COMMIT;
SELECT entries FROM euno_stat_indexes WHERE indexrelname = 'cut_a';
SELECT euno_index_check('cut_a', true);

-- One fails in the middle of a query.  The next call must not go on with it.
CREATE TABLE one_row (x int PRIMARY KEY);
INSERT INTO one_row VALUES (1);
CREATE FUNCTION fail_cmp(x int, y int) RETURNS int LANGUAGE sql STABLE AS
$$SELECT CASE WHEN x < y THEN -1 WHEN x > y THEN 1 ELSE 0 END +
    (SELECT CASE WHEN current_setting('test.fail', true) = 'on' THEN 1 / (o.x - 1) ELSE 0 END
       FROM public.one_row o WHERE o.x >= 1 ORDER BY o.x LIMIT 1)$$;
CREATE OPERATOR CLASS fail_ops FOR TYPE int USING euno AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 fail_cmp(int, int);
CREATE TABLE failing (a int);
INSERT INTO failing SELECT generate_series(1, 50);
CREATE INDEX failing_a ON failing USING euno (a fail_ops);
BEGIN;
INSERT INTO failing VALUES (5);
SAVEPOINT s;
SET LOCAL test.fail = 'on';
INSERT INTO failing VALUES (6);
ROLLBACK TO s;
INSERT INTO failing VALUES (7);
SELECT a FROM failing WHERE a BETWEEN 5 AND 8 ORDER BY a;
COMMIT;
SELECT euno_index_check('failing_a', true);

-- Nothing stays of one that has failed.
SET test.fail = 'on';
DO $$BEGIN
    FOR i IN 1..100 LOOP
        BEGIN
            INSERT INTO failing VALUES (8);
        EXCEPTION WHEN division_by_zero THEN
        END;
    END LOOP;
END$$;
RESET test.fail;
SELECT count(*) < 10 AS few FROM pg_backend_memory_contexts WHERE name = 'SQL function';

-- One looks into its own index, which calls it, while it is being called.
CREATE TABLE again (a int, b int);
CREATE FUNCTION again_cmp(x int, y int) RETURNS int LANGUAGE sql STABLE AS
$$SELECT CASE WHEN x < y THEN -1 WHEN x > y THEN 1 ELSE 0 END + CASE current_setting('test.again', true)
    WHEN 'on' THEN 0 * (SELECT count(*)::int FROM (SELECT set_config('test.again', 'off', false) OFFSET 0) s,
                        LATERAL (SELECT 1 FROM public.again t WHERE t.a = 17 OFFSET 0) u) ELSE 0 END$$;
CREATE OPERATOR CLASS again_ops FOR TYPE int USING euno AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 again_cmp(int, int);
INSERT INTO again SELECT i, i FROM generate_series(1, 100) i;
CREATE INDEX again_a ON again USING euno (a again_ops);
ANALYZE again;
SET test.again = 'on';
SELECT b FROM again WHERE a = 30;
SHOW test.again;
SET test.again = 'on';
INSERT INTO again VALUES (1000, 1000);
SHOW test.again;
SELECT b FROM again WHERE a >= 99;

-- One inserts into its own table, while the key of another insert is compared.
CREATE TABLE writing (a int);
CREATE FUNCTION write_cmp(x int, y int) RETURNS int LANGUAGE plpgsql AS
$$BEGIN
    IF current_setting('test.write', true) = 'on' THEN
        PERFORM set_config('test.write', 'off', false);
        INSERT INTO public.writing VALUES (1000000);
    END IF;
    RETURN CASE WHEN x < y THEN -1 WHEN x > y THEN 1 ELSE 0 END;
END$$;
CREATE OPERATOR CLASS write_ops FOR TYPE int USING euno AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 write_cmp(int, int);
INSERT INTO writing SELECT generate_series(1, 1000);
CREATE INDEX writing_a ON writing USING euno (a write_ops);
SET test.write = 'on';
INSERT INTO writing VALUES (500);
SELECT euno_index_check('writing_a', true);
SELECT a FROM writing WHERE a IN (500, 1000000) ORDER BY a;

DROP TABLE cut, failing, again, writing;
DROP OPERATOR FAMILY query_ops USING euno;
DROP OPERATOR FAMILY fail_ops USING euno;
DROP OPERATOR FAMILY again_ops USING euno;
DROP OPERATOR FAMILY write_ops USING euno;

-- Arrays are compared by the default class of their elements, which may be
-- replaced while there is an index: no tree is made of what that class is.
SET client_min_messages = warning;
CREATE TYPE number;
CREATE FUNCTION number_in(cstring) RETURNS number LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION number_out(number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int4);
CREATE FUNCTION number_lt(number, number) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION number_eq(number, number) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION number_cmp(number, number) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE OPERATOR < (FUNCTION = number_lt, LEFTARG = number, RIGHTARG = number);
CREATE OPERATOR = (FUNCTION = number_eq, LEFTARG = number, RIGHTARG = number);
CREATE OPERATOR CLASS number_ops DEFAULT FOR TYPE number USING btree AS
    OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 (number, number) btint4cmp(int4, int4);
CREATE TABLE numbers (a number[]);
INSERT INTO numbers SELECT ARRAY[i % 50, i]::text::number[] FROM generate_series(1, 500) i;
CREATE INDEX numbers_a ON numbers USING euno (a);
ANALYZE numbers;
DROP OPERATOR CLASS number_ops USING btree;
CREATE OPERATOR CLASS number_ops DEFAULT FOR TYPE number USING btree AS
    OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 number_cmp(number, number);
\c -
SET enable_seqscan = off;
SELECT a FROM numbers WHERE a = '{7,107}';
SELECT count(*) FROM numbers WHERE a > '{48,0}';
SELECT a FROM numbers ORDER BY a LIMIT 3;
DROP TABLE numbers;
SET client_min_messages = warning;
DROP TYPE number CASCADE;
-- A type of the server's may get one of its own: then the tree is built anew.
CREATE TABLE words (a varchar[] COLLATE "C");
INSERT INTO words SELECT ARRAY[i % 50, i]::varchar[] FROM generate_series(1, 500) i;
CREATE INDEX words_a ON words USING euno (a);
ANALYZE words;
CREATE FUNCTION varchar_cmp(varchar, varchar) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
    'BEGIN RETURN bttextcmp($1, $2); END';
CREATE OPERATOR CLASS varchar_own_ops DEFAULT FOR TYPE varchar USING btree AS
    OPERATOR 1 < (text, text), OPERATOR 3 = (text, text), FUNCTION 1 varchar_cmp(varchar, varchar);
\c -
SET enable_seqscan = off;
SET client_min_messages = warning;
SELECT a FROM words WHERE a = '{7,107}';
SELECT euno_rebuild('words_a');
SELECT a FROM words WHERE a = '{7,107}';
SELECT count(*) FROM words WHERE a > '{49,0}';
DROP TABLE words;
DROP OPERATOR FAMILY varchar_own_ops USING btree;
DROP FUNCTION varchar_cmp;
