-- Numbers of every shape, in an index that has their bytes, beside a sort
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS off) ' || query;
END $$;

-- Weights on both sides of those in one byte, and of those in a short header;
-- digits that end in zeros; more decimals than needed, and more than 63
CREATE TABLE num (id int GENERATED ALWAYS AS IDENTITY, n numeric) WITH (autovacuum_enabled = off);
SELECT setseed(0.5);
INSERT INTO num (n)
	SELECT sign * digits * 10::numeric ^ power
	FROM (VALUES (1), (-1)) s (sign),
		(VALUES (1), (2), (10), (9999), (10000), (10001), (99990000), (12345678), (100000001), (50005000.5)) d (digits),
		unnest(ARRAY[-300, -260, -257, -256, -255, -140, -133, -129, -128, -127, -124, -123, -64, -63, -9, -8, -5, -4, -3, -2, -1, 0,
			1, 2, 3, 4, 5, 8, 60, 116, 120, 121, 123, 124, 127, 128, 129, 131, 132, 251, 252, 255, 256, 257, 300, 5000]) p (power)
	WHERE power > -200 OR digits = trunc(digits);
INSERT INTO num (n) VALUES ('NaN'), ('Infinity'), ('-Infinity'), (NULL), ('NaN'), ('-Infinity');
-- the same numbers with other decimals
INSERT INTO num (n) SELECT round(n, scale(n) + k)
	FROM num, unnest(ARRAY[1, 3, 62, 70]) k
	WHERE n > '-Infinity' AND n < 'Infinity' AND abs(n) < 1e70;
INSERT INTO num (n) SELECT round(0, k) FROM unnest(ARRAY[0, 1, 2, 63, 64, 300, 16383]) k;
-- others
INSERT INTO num (n) SELECT (random() * 2 - 1)::numeric(20, 9) * 10::numeric ^ (trunc(random() * 40) - 20)::int FROM generate_series(1, 3000);
INSERT INTO num (n) SELECT trunc(random() * 2000 - 1000)::numeric / 100 FROM generate_series(1, 3000);
INSERT INTO num (n) SELECT (random() * 200 - 100)::numeric(5, 2) FROM generate_series(1, 1000);
INSERT INTO num (n) SELECT ('-0.' || repeat('0', k) || '1')::numeric FROM generate_series(0, 2000, 7) k;
INSERT INTO num (n) SELECT (repeat('9', k) || '.' || repeat('120', k % 5) || '0')::numeric FROM generate_series(1, 1500, 11) k;

-- around the longest short varlena, in either form
INSERT INTO num (n) SELECT (repeat('7', k) || '.' || repeat('12', 40))::numeric FROM generate_series(140, 200) k;
INSERT INTO num (n) SELECT (repeat('7', k) || '.' || repeat('12', 62))::numeric FROM generate_series(100, 128) k;
-- short ones as PostgreSQL stored them before 9.1: 1.5, -1.50, 0, 0.00, in either byte order
CREATE CAST (bytea AS numeric) WITHOUT FUNCTION;
CREATE CAST (numeric AS bytea) WITHOUT FUNCTION;
INSERT INTO num (n) SELECT (CASE get_byte(1::numeric::bytea, 0) WHEN 0 THEN little ELSE big END)::numeric
	FROM (VALUES ('\x0100000001008813'::bytea, '\x0001000000011388'::bytea), ('\x0240000001008813', '\x4002000000011388'),
		('\x00000000', '\x00000000'), ('\x02000000', '\x00020000')) bytes (little, big);
DROP CAST (bytea AS numeric);
DROP CAST (numeric AS bytea);
VACUUM ANALYZE num;
CREATE TABLE copied AS SELECT id, n, count(*) OVER (PARTITION BY n) AS same, rank() OVER (ORDER BY n) - 1 AS less FROM num;
SELECT count(*) > 10000 AS rows, count(DISTINCT n) > 6000 AS numbers, count(DISTINCT n::text) > count(DISTINCT n) + 1000 AS shown_otherwise FROM num;
SELECT n, pg_column_size(n) FROM num ORDER BY id DESC LIMIT 4;

-- The index, in this order, against the copy.  The comparator of the second
-- operator class is not known: it is asked
CREATE FUNCTION compared_cmp(numeric, numeric) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_cmp';
CREATE OPERATOR CLASS compared FOR TYPE numeric USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared_cmp(numeric, numeric);
CREATE FUNCTION check_index(what text, columns text, by text) RETURNS TABLE (check_name text, wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX num_n ON num USING euno %s', columns);
	PERFORM FROM plan('SELECT n FROM num ORDER BY n ' || by) p WHERE p LIKE '%Index Only Scan%num_n%';
	IF NOT FOUND THEN
		RETURN QUERY SELECT what || ': not index only', 1::bigint;
	END IF;
	-- the order of the index, by the comparator
	RETURN QUERY EXECUTE format('SELECT %L || '': order'', count(*) FROM (
		SELECT n, lag(n) OVER () AS before, row_number() OVER () AS i FROM (SELECT n FROM num ORDER BY n %s) x) y
		WHERE i > 1 AND NOT coalesce(%s, (n IS NULL) <> (before IS NULL) OR n IS NULL)', what, by,
		CASE WHEN by LIKE 'DESC%' THEN 'before >= n' ELSE 'before <= n' END);
	-- every number as it is in the table, its size too
	EXECUTE format('CREATE TEMP TABLE from_index AS SELECT n::text AS t, scale(n) AS s, numeric_send(n) AS b, pg_column_size(n) AS c FROM num ORDER BY num.n %s', by);
	RETURN QUERY EXECUTE format('SELECT %L || '': values'', count(*) FROM ((SELECT * FROM from_index EXCEPT ALL
		SELECT n::text, scale(n), numeric_send(n), pg_column_size(n) FROM copied) UNION ALL
		(SELECT n::text, scale(n), numeric_send(n), pg_column_size(n) FROM copied EXCEPT ALL SELECT * FROM from_index)) d', what);
	DROP TABLE from_index;
	-- each one is found, with all that are equal
	RETURN QUERY EXECUTE format('SELECT %L || '': equal'', count(*) FROM copied c WHERE n IS NOT NULL AND
		(SELECT count(*) FROM num WHERE num.n = c.n) <> c.same', what);
	RETURN QUERY EXECUTE format('SELECT %L || '': less'', count(*) FROM copied c WHERE n IS NOT NULL AND id %% 37 = 0 AND
		(SELECT count(*) FROM num WHERE num.n < c.n) <> c.less', what);
	PERFORM euno_index_check('num_n', true);
	DROP INDEX num_n;
END $$;
SELECT * FROM check_index('ascending', '(n)', '') WHERE wrong <> 0;
SELECT * FROM check_index('descending', '(n DESC)', 'DESC') WHERE wrong <> 0;
SELECT * FROM check_index('art', '(n) WITH (structure = art)', '') WHERE wrong <> 0;
SELECT * FROM check_index('art descending', '(n DESC NULLS LAST) WITH (structure = art)', 'DESC NULLS LAST') WHERE wrong <> 0;
SELECT * FROM check_index('second column', '(n, id)', '') WHERE wrong <> 0;
SELECT * FROM check_index('included', '(n) INCLUDE (id)', '') WHERE wrong <> 0;
SELECT * FROM check_index('by comparison', '(n compared)', '') WHERE wrong <> 0;
SELECT * FROM check_index('by comparison, descending', '(n compared DESC, id)', 'DESC') WHERE wrong <> 0;

-- Between other columns
CREATE INDEX num_pair ON num USING euno ((id % 3), n DESC, id);
SELECT count(*) FROM (
	(SELECT id % 3 AS m, n::text, id FROM num WHERE id % 3 = 1 AND n BETWEEN -2 AND 3.50
		EXCEPT ALL SELECT id % 3, n::text, id FROM copied WHERE id % 3 = 1 AND n BETWEEN -2 AND 3.50)
	UNION ALL (SELECT id % 3, n::text, id FROM copied WHERE id % 3 = 1 AND n BETWEEN -2 AND 3.50
		EXCEPT ALL SELECT id % 3, n::text, id FROM num WHERE id % 3 = 1 AND n BETWEEN -2 AND 3.50)) d;
SELECT * FROM plan('SELECT n FROM num WHERE id % 3 = 1 AND n BETWEEN -2 AND 3.50');
DROP INDEX num_pair;

-- Unique: decimals make no difference
CREATE TABLE one (n numeric, m numeric(8, 3));
CREATE UNIQUE INDEX one_n ON one USING euno (n) WITH (structure = art);
CREATE UNIQUE INDEX one_m ON one USING euno (m);
INSERT INTO one VALUES (1.0, 1), ('NaN', 2), (-0.50, 2.5), (0.000, 3);
INSERT INTO one VALUES (1.000, 7);
INSERT INTO one VALUES ('NaN', 7);
INSERT INTO one VALUES (-0.5, 7);
INSERT INTO one VALUES (-0, 7);
INSERT INTO one VALUES (7, 2.500);
SELECT n, m FROM one ORDER BY n;
SELECT n FROM one ORDER BY n;
SELECT m FROM one ORDER BY m DESC;
-- another length leaves the index as it is
ALTER TABLE one ALTER m TYPE numeric;
INSERT INTO one VALUES (8, 2.50000001), (9, 2.4999);
SELECT m FROM one WHERE m > 2.4 ORDER BY m;
-- long ones
INSERT INTO one SELECT repeat('7', 5300)::numeric, 55;
INSERT INTO one SELECT repeat('7', 5500)::numeric, 56;
SELECT length(n::text), m FROM one WHERE n = repeat('7', 5300)::numeric;
SELECT count(*) FROM one WHERE n < repeat('7', 5500)::numeric;
SELECT count(*) FROM one WHERE n > -repeat('7', 5500)::numeric AND n < 'NaN';
DROP TABLE one, num, copied;
DROP OPERATOR FAMILY compared USING euno;
DROP FUNCTION check_index(text, text, text), plan(text), compared_cmp(numeric, numeric);
