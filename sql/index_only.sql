--
-- Index-only scans give back what was stored, bit by bit; INCLUDE, expression
-- and partial indexes
--
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET extra_float_digits = 3;
CREATE TABLE x (id int, f4 float4, f8 float8, n numeric, bp char(5), v varchar(8), t text COLLATE "C",
	i interval, b bytea, j jsonb, a int[], ip inet, tz timetz, bit bit varying(9));
ALTER TABLE x SET (autovacuum_enabled = off);
INSERT INTO x VALUES
	(1, 0, 0, 1, 'a', 'a', 'a', '1 mon', '\x00', '{"a": 1.0}', '{1,2}', '10.0.0.1/24', '12:00+01', B'1'),
	(2, '-0', '-0', 1.0, 'a ', 'a ', 'a ', '30 days', '\x0000', '{"a": 1.00}', '[0:1]={1,2}', '10.0.0.1', '13:00+02', B'10'),
	(3, 'NaN', 'NaN', 1.000, 'a    ', 'a  ', '', '720 hours', '', '{"a": 1}', '{1,NULL}', '10.0.0.0/24', '11:00+00', B'100'),
	(4, '-NaN', '-NaN', 'NaN', '', '', repeat('long', 200), '-1 mon +30 days', '\xffff', '[]', '{}', '::1', '24:00', B''),
	(5, 1.1, 1.1, -0.0, 'b', 'b', 'b', '1 mon', '\xff', '{}', '{{1,2},{3,4}}', '10.0.0.1/8', '00:00', B'000000001'),
	(6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(7, 1e-45, 5e-324, 1e-20, 'ä', 'ä', 'ä', '0', '\x01', 'null', '{NULL}', '255.255.255.255', '00:00:00.000001-15:59', B'1111'),
	(8, 'inf', '-inf', 'Infinity', E'\t', E'\t', E'\t', '178000000 years', '\x0001', '"x"', '{2147483647,-2147483648}', '0.0.0.0/0', '23:59:60', B'0');
VACUUM x;

-- All values of a column as their binary representation, from the index and
-- from the table: the same?
CREATE FUNCTION identical(col name, definition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	from_index text;
	from_table text;
	query text := (SELECT format('SELECT string_agg(bytes, '' '' ORDER BY bytes) FROM (SELECT coalesce(encode(%s(%I), ''hex''), ''NULL'') AS bytes FROM x) s',
			typsend, col)
		FROM pg_type t JOIN pg_attribute ON atttypid = t.oid WHERE attrelid = 'x'::regclass AND attname = col);
BEGIN
	EXECUTE 'CREATE INDEX x_i ON x USING euno ' || definition;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP plan := plan || line; END LOOP;
	IF plan !~ 'Index Only Scan using x_i' THEN
		RETURN plan;
	END IF;
	EXECUTE query INTO from_index;
	DROP INDEX x_i;
	EXECUTE query INTO from_table;
	RETURN CASE WHEN from_index = from_table THEN 'identical' ELSE from_index || ' instead of ' || from_table END;
END $$;
SELECT attname, identical(attname, format('(%I)', attname)) AS ascending,
		identical(attname, format('(%I DESC NULLS FIRST)', attname)) AS descending,
		identical(attname, format('(id, %I)', attname)) AS second,
		identical(attname, format('(id) INCLUDE (%I)', attname)) AS included
	FROM pg_attribute WHERE attrelid = 'x'::regclass AND attnum > 0 ORDER BY attnum;

-- A value that is all there is, of all lengths
CREATE TABLE l (t text COLLATE "en-x-icu");
INSERT INTO l SELECT repeat('x', n) FROM unnest('{0,1,5,125,126,127,128,129,250,251,252,253,254,255,256,257,2000,NULL}'::int[]) n;
CREATE INDEX l_t ON l USING euno (t);
VACUUM l;
EXPLAIN (COSTS OFF) SELECT t FROM l ORDER BY t;
SELECT array_agg(length(t)) AS lengths, bool_and(t = repeat('x', length(t))) AS right FROM (SELECT t FROM l ORDER BY t OFFSET 0) l;
DROP TABLE l;
CREATE TABLE l (t text COLLATE "C", b bytea, n numeric);
INSERT INTO l SELECT repeat('x', n), decode(repeat('ab', n), 'hex'), (repeat('7', n) || '.5')::numeric FROM generate_series(0, 260) n;
VACUUM l;
CREATE INDEX l_t ON l USING euno (t); CREATE INDEX l_b ON l USING euno (b); CREATE INDEX l_n ON l USING euno (n);
EXPLAIN (COSTS OFF) SELECT count(*), bool_and(t = repeat('x', length(t))) FROM (SELECT t FROM l ORDER BY t OFFSET 0) l;
SELECT count(*), sum(length(t)), bool_and(t = repeat('x', length(t))) FROM (SELECT t FROM l ORDER BY t OFFSET 0) l;
SELECT count(*), sum(length(b)), bool_and(b = decode(repeat('ab', length(b)), 'hex')) FROM (SELECT b FROM l ORDER BY b OFFSET 0) l;
SELECT count(*), sum(length(n::text)), bool_and(n::text ~ '^7*0?[.]5$') FROM (SELECT n FROM l ORDER BY n OFFSET 0) l;
DROP TABLE l;

-- Tuples much longer than their keys, more of them than room was made for: arrays of empty strings, blanks
CREATE TABLE l (a text[] COLLATE "C", c char(2600) COLLATE "C");
INSERT INTO l SELECT array_fill(''::text, ARRAY[560 + n]), 'x' || chr(65 + n % 26) || n / 26 FROM generate_series(1, 100) n;
VACUUM l;
CREATE INDEX l_a ON l USING euno (a); CREATE INDEX l_c ON l USING euno (c);
EXPLAIN (COSTS OFF) SELECT count(*), sum(cardinality(a)), bool_and(a = array_fill(''::text, ARRAY[cardinality(a)])) FROM (SELECT a FROM l ORDER BY a OFFSET 0) l;
SELECT count(*), sum(cardinality(a)), bool_and(a = array_fill(''::text, ARRAY[cardinality(a)])) FROM (SELECT a FROM l ORDER BY a OFFSET 0) l;
EXPLAIN (COSTS OFF) SELECT count(*), count(DISTINCT c), sum(octet_length(c)), bool_and(c LIKE 'x%') FROM (SELECT c FROM l ORDER BY c OFFSET 0) l;
SELECT count(*), count(DISTINCT c), sum(octet_length(c)), bool_and(c LIKE 'x%') FROM (SELECT c FROM l ORDER BY c OFFSET 0) l;
SELECT cardinality(a) FROM l WHERE a = array_fill(''::text, ARRAY[600]);
SELECT octet_length(c), rtrim(c) FROM l WHERE c = 'xB0';
DROP TABLE l;

-- NULLs among more columns than a byte of the tuple's bitmap has bits
CREATE TABLE w AS SELECT n AS a1, n + 1 AS a2, 'x' || n AS a3, n AS a4, n AS a5, n AS a6, n AS a7, n AS a8, nullif(n, 3) AS a9, nullif(n, 4) AS a10, n AS a11, n AS a12, n AS a13, n AS a14, n AS a15, n AS a16,
	nullif(n, 5) AS a17, n AS a18 FROM generate_series(1, 6) n;
CREATE INDEX w_i ON w USING euno (a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) INCLUDE (a11, a12, a13, a14, a15, a16, a17, a18);
VACUUM w;
EXPLAIN (COSTS OFF) SELECT * FROM w ORDER BY a1;
SELECT * FROM w ORDER BY a1;
DROP TABLE w;

-- Many rows at a time, in both directions: with NULLs among them, values of all lengths, and what a key alone
-- does not tell: -0, a price's last zeros, blanks; keys without a byte encoding, and included columns
CREATE TABLE m AS SELECT nullif(n % 7, 3)::int2 AS a, nullif(repeat(chr(97 + n % 26), n * 7919 % 300), '') COLLATE "C" AS t,
		md5(n::text)::uuid AS u, CASE n % 5 WHEN 0 THEN '-0' WHEN 1 THEN NULL ELSE n / 3.0 END::float8 AS f, n % 2 = 0 AS b, n AS k,
		nullif(n * 7 % 3001, 5)::numeric / 4 AS p, (n % 100 * 10 ^ (n % 40))::numeric(80, 30) AS q, nullif(n % 53, 7)::char(9) COLLATE "C" AS c,
		nullif(repeat(chr(97 + n % 26), n * 7919 % 300), '') COLLATE "en-x-icu" AS i, (n || 'x')::name COLLATE "C" AS w, nullif(n * 7 % 1000, 5) * interval '5 hours' AS s, make_interval(months => n % 5 - 2, days => n % 9) AS z,
		nullif(set_masklen('10.0.0.0'::inet + n % 300, 20 + n % 13), '10.0.0.9/29') AS h, (time '00:00' + n * interval '1 minute') AT TIME ZONE make_interval(hours => n % 9 - 4) AS d, decode(repeat('00', n % 9) || to_hex(n % 97 + 16), 'hex') AS y,
		(ARRAY[n % 3, NULL, n % 5, 7])[:n % 5] AS l, nullif(int8range(n % 50, n % 50 + n % 3), 'empty') AS r, ARRAY[repeat('e', n % 200), NULL, to_hex(n)] COLLATE "C" AS e
	FROM generate_series(1, 3000) n;
ALTER TABLE m ALTER p TYPE numeric(12, 2);
ALTER TABLE m SET (autovacuum_enabled = off);
VACUUM ANALYZE m;
SET enable_sort = off;
CREATE FUNCTION in_order(cols text, direction text, options text, included text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	from_index text;
	from_table text;
	list text := replace(cols, ',', direction || ',') || direction;
	query text := format('SELECT md5(string_agg(s::text, ''|'')) FROM (SELECT %s FROM m ORDER BY %s) s', concat_ws(', ', cols, included), list);
BEGIN
	EXECUTE format('CREATE INDEX m_i ON m USING euno (%s) %s %s', cols, 'INCLUDE (' || included || ')', options);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP plan := plan || line; END LOOP;
	EXECUTE query INTO from_index;
	DROP INDEX m_i;
	EXECUTE query INTO from_table;
	RETURN CASE WHEN plan !~ 'Index Only Scan( Backward)? using m_i' THEN plan WHEN from_index = from_table THEN 'same'
		ELSE 'different' END;
END $$;
SELECT cols, in_order(cols, '', '') AS forward, in_order(cols, ' DESC', '') AS backward,
		in_order(cols, '', 'WITH (structure = art)') AS art_forward, in_order(cols, ' DESC', 'WITH (structure = art)') AS art_backward
	FROM unnest('{"k","u","a, k","t, u","a, t, u","f, k","b, u","t, f, b, k","p, k","c, k","q, k","w","y, k","s, k","z, k","h, k","d, k","a, d, k","l, k","r, k","e","a, p, c, y, f, w, s, h, z, d, l, r, k"}'::text[]) cols;
SELECT cols, in_order(cols, '', '') AS forward, in_order(cols, ' DESC', '') AS backward
	FROM unnest('{"i, k","a, i, p, k","k, i, f, c","s, h, i, d, z, k"}'::text[]) cols;
SELECT cols, in_order(cols, '', '', included) AS forward, in_order(cols, ' DESC', '', included) AS backward
	FROM (VALUES ('k', 't'), ('p, k', 'c, i, a'), ('c, k', 'a, b, u'), ('s, k', 'd, h'), ('h, k', 's, z'), ('a, k', 'q'), ('i, k', 'w, f, y, t'), ('l, r, k', 'e, l'), ('u', 'a, b')) d (cols, included);
SELECT cols, in_order(cols, '', 'WITH (structure = art)', included) AS art_forward, in_order(cols, ' DESC', 'WITH (structure = art)', included) AS art_backward
	FROM (VALUES ('k', 't'), ('p, k', 'c, i, a'), ('c, k', 'a, b, u'), ('u', 'a, b')) d (cols, included);
SELECT format_type(atttypid, atttypmod) AS type, in_order(attname, '', '') AS forward, in_order(attname, ' DESC', '') AS backward
	FROM pg_attribute WHERE attrelid = 'm'::regclass AND attname IN ('p', 'q', 'c', 'w', 'y', 'd', 'h') ORDER BY attnum;
DROP FUNCTION in_order;
DROP TABLE m;
RESET enable_sort;

-- The table would tell: this is what differs within equal values
SELECT count(*) AS rows, count(DISTINCT f8) AS f8, count(DISTINCT f8::text) AS f8_text, count(DISTINCT n) AS n, count(DISTINCT n::text) AS n_text,
	count(DISTINCT i) AS i, count(DISTINCT i::text) AS i_text, count(DISTINCT j) AS j, count(DISTINCT j::text) AS j_text FROM x;

-- Values that the index has in another form are found by what they equal
CREATE INDEX x_f8 ON x USING euno (f8) INCLUDE (id);
CREATE INDEX x_n ON x USING euno (n) INCLUDE (id);
CREATE INDEX x_bp ON x USING euno (bp) INCLUDE (id);
EXPLAIN (COSTS OFF) SELECT id, f8 FROM x WHERE f8 = '-0';
SELECT id, f8 FROM x WHERE f8 = '-0';
SELECT id, f8 FROM x WHERE f8 = 'NaN';
SELECT id, f8 FROM x WHERE f8 > 1;
SELECT id, n FROM x WHERE n = 1.00;
SELECT id, n FROM x WHERE n = 0;
SELECT id, n FROM x WHERE n >= 2;
SELECT id, bp || '.' AS bp FROM x WHERE bp = 'a';
SELECT id, bp || '.' AS bp FROM x WHERE bp < 'a';
SELECT id, f8 FROM x ORDER BY f8;
SELECT id, n FROM x ORDER BY n DESC;
DROP TABLE x;
DROP FUNCTION identical;

-- INCLUDE: what is included is kept, not compared, and of any type
CREATE TABLE inc (k int, p point, big text, small text);
ALTER TABLE inc SET (autovacuum_enabled = off);
ALTER TABLE inc ALTER big SET STORAGE EXTERNAL;
INSERT INTO inc SELECT n % 100, point(n, -n), CASE n % 4 WHEN 0 THEN NULL ELSE repeat(md5(n::text), n % 60) END, n::text
	FROM generate_series(1, 1000) n;
CREATE INDEX inc_k ON inc USING euno (k) INCLUDE (p, big, small);
VACUUM inc;
EXPLAIN (COSTS OFF) SELECT k, p, length(big), small FROM inc WHERE k = 7;
SELECT k, p, length(big), small FROM inc WHERE k = 7;
EXPLAIN (COSTS OFF) SELECT k FROM inc WHERE k < 50 AND small = '107';
SELECT k FROM inc WHERE k < 50 AND small = '107';
SELECT count(*), md5(string_agg(big, '' ORDER BY big COLLATE "C")), sum(p[0]) FROM (SELECT big, p FROM inc WHERE k >= 0) i;
SET enable_indexonlyscan = off;
SELECT count(*), md5(string_agg(big, '' ORDER BY big COLLATE "C")), sum(p[0]) FROM (SELECT big, p FROM inc WHERE k >= 0) i;
RESET enable_indexonlyscan;

-- A row whose included column was toasted does not refer to the toast table
UPDATE inc SET big = repeat('toast', 400) WHERE k = 8;
DELETE FROM inc WHERE k = 9;
VACUUM inc;
SELECT k, length(big), md5(big) FROM inc WHERE k BETWEEN 8 AND 9 AND small < '3';
INSERT INTO inc VALUES (1, NULL, repeat('x', 3000), NULL);
SELECT euno_index_check('inc_k', true);
DROP TABLE inc;

-- Of fixed lengths, some of them NULL, where others have the same places all the same; keys that are alike, too
CREATE TABLE inc AS SELECT n % 700 AS k, nullif(n % 3, 0)::int2 AS a, nullif(n % 5, 0) AS b, n % 4 = 0 AS c, nullif(n % 7, 0)::int8 AS d, nullif(n % 2, 0)::float8 AS e, n AS id FROM generate_series(1, 3000) n;
CREATE TABLE stored AS SELECT k, a, b, c, d, e FROM inc;
CREATE FUNCTION differ(definition text) RETURNS TABLE (plan text, rows bigint) LANGUAGE plpgsql AS $$ BEGIN
	EXECUTE 'CREATE INDEX inc_i ON inc USING euno ' || definition;
	EXECUTE 'EXPLAIN (COSTS OFF) SELECT k, a, b, c, d, e FROM inc WHERE k >= 0' INTO plan;
	SELECT count(*) INTO rows FROM (SELECT k, a, b, c, d, e FROM inc WHERE k >= 0 EXCEPT ALL TABLE stored) x;
	DROP INDEX inc_i;
	RETURN NEXT;
END $$;
VACUUM inc;
SELECT d.*, i FROM unnest(ARRAY['(k) INCLUDE (a, b, c, d, e)', '(k DESC, id) INCLUDE (c, a, b, e, d)', '(k) INCLUDE (e, d, c, b, a) WITH (structure = art)', '(k, a, b, c, d) INCLUDE (e)', '(k, c, a, b, d, e)', '(k, c, a, b, d, e) WITH (structure = art)']) i, differ(i) d;
DROP TABLE inc, stored;
DROP FUNCTION differ;

-- Scans of one index in turn, one after the other and nested: of a few rows and of many, which look into the
-- table and which do not
CREATE TABLE s AS SELECT n AS k, 'row ' || n AS t, n AS v FROM generate_series(1, 3000) n;
ALTER TABLE s SET (autovacuum_enabled = off);
CREATE INDEX s_k ON s USING euno (k) INCLUDE (t);
VACUUM ANALYZE s;
EXPLAIN (COSTS OFF) SELECT string_agg(t, ' ' ORDER BY k) FROM s WHERE k >= 7 AND k < 57;
CREATE FUNCTION wrong_answers() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	wrong bigint := 0;
	many int;
	texts text;
	total bigint;
	inner_total bigint := 0;
	r record;
BEGIN
	FOR i IN 1 .. 300 LOOP
		many := (ARRAY[1, 20, 50, 150, 700])[1 + i % 5];
		SELECT string_agg(t, ' ' ORDER BY k) INTO texts FROM s WHERE k >= i * 7 AND k < i * 7 + many;
		SELECT sum(v) INTO total FROM s WHERE k >= i * 7 AND k < i * 7 + many;
		IF texts <> (SELECT string_agg('row ' || n, ' ' ORDER BY n) FROM generate_series(i * 7, i * 7 + many - 1) n) OR
			total <> (SELECT sum(n) FROM generate_series(i * 7, i * 7 + many - 1) n) THEN
			wrong := wrong + 1;
		END IF;
	END LOOP;
	FOR r IN SELECT k FROM s WHERE k >= 1 AND k <= 200 LOOP
		SELECT inner_total + length(t) INTO inner_total FROM s WHERE k = r.k;
	END LOOP;
	RETURN wrong + abs(inner_total - (SELECT sum(length('row ' || n)) FROM generate_series(1, 200) n));
END $$;
SELECT wrong_answers();
DROP INDEX s_k;
CREATE INDEX s_k ON s USING euno (k) INCLUDE (t) WITH (structure = art);
SELECT wrong_answers();
DROP TABLE s;
DROP FUNCTION wrong_answers();

-- An expression; what it gives may be read from the index
CREATE TABLE e (id int, t text, n int);
ALTER TABLE e SET (autovacuum_enabled = off);
INSERT INTO e SELECT n, 'Row ' || n, n FROM generate_series(1, 2000) n;
CREATE INDEX e_lower ON e USING euno (lower(t), (n % 10) DESC);
CREATE INDEX e_n ON e USING euno ((n % 10), id);
VACUUM ANALYZE e;
EXPLAIN (COSTS OFF) SELECT t FROM e WHERE lower(t) = 'row 77';
SELECT t FROM e WHERE lower(t) = 'row 77';
SELECT count(*) FROM e WHERE lower(t) < 'row 2' AND n % 10 = 3;
EXPLAIN (COSTS OFF) SELECT id FROM e WHERE n % 10 = 3 ORDER BY id LIMIT 2;
SELECT id FROM e WHERE n % 10 = 3 ORDER BY id LIMIT 2;
UPDATE e SET t = upper(t), n = n + 1 WHERE id = 77;
SELECT t, n FROM e WHERE lower(t) = 'row 77';

-- An expression that fails leaves nothing behind
BEGIN;
INSERT INTO e VALUES (3001, 'fails', 5000);
CREATE INDEX e_fails ON e USING euno ((100 / (n - 5000)));
ROLLBACK;
CREATE INDEX e_fails ON e USING euno ((100 / (n - 5000)));
INSERT INTO e VALUES (3000, 'fails', 5000);
SELECT count(*) FROM e WHERE id = 3000;
SELECT count(*) FROM e WHERE lower(t) = 'fails';
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'e' ORDER BY 1;
DROP INDEX e_fails;

-- Partial: rows come and go as they satisfy the predicate
CREATE INDEX e_part ON e USING euno (id) WHERE n > 1990;
SELECT entries FROM euno_stat_indexes WHERE indexrelname = 'e_part';
EXPLAIN (COSTS OFF) SELECT id FROM e WHERE n > 1990 AND id < 1995;
SELECT id FROM e WHERE n > 1990 AND id < 1995;
EXPLAIN (COSTS OFF) SELECT id FROM e WHERE n > 1995;
SELECT id FROM e WHERE n > 1995;
UPDATE e SET n = 5 WHERE id = 1993;
UPDATE e SET n = 3000 WHERE id = 5;
SELECT id, n FROM e WHERE n > 1990 AND id < 1995;
EXPLAIN (COSTS OFF) SELECT id FROM e WHERE n > 1980 AND id < 5;
VACUUM e;
SELECT entries BETWEEN 10 AND 12 FROM euno_stat_indexes WHERE indexrelname = 'e_part';
SELECT indexrelname, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE relname = 'e' ORDER BY 1;
DROP TABLE e;

-- Numbers come back by a way of their own: every kind, both directions, at every
-- place in the tuple; first without NULLs, then with some
CREATE TABLE num (i2 int2, i4 int4, i8 int8, o oid, c "char", bo bool, d date, ts timestamptz, m money, l pg_lsn, x xid8, f4 float4, f8 float8);
ALTER TABLE num SET (autovacuum_enabled = off);
INSERT INTO num SELECT (n % 65536 - 32768)::int2, (n * 40503::int8 * 53 % 4294967296 - 2147483648)::int4, hashint8extended(n, 0), hashint8(n)::oid, (n % 256 - 128)::int::"char", n % 3 = 0,
		'epoch'::date + (n - 1000), '2000-01-01 UTC'::timestamptz + (n::float8 * n - 1000000) * interval '1.5 s', (n - 1000)::money, '0/0'::pg_lsn + n * 7919, n::text::xid8, (n - 1000) * 1.1, (n - 1000) / 7.0
	FROM generate_series(0, 2000) n;
INSERT INTO num VALUES (-32768, -2147483648, -9223372036854775808, 0, '', false, '-infinity', '-infinity', '-92233720368547758.08', '0/0', '0', '-inf', '-inf'),
	(32767, 2147483647, 9223372036854775807, 4294967295, '\377', true, 'infinity', 'infinity', '92233720368547758.07', 'FFFFFFFF/FFFFFFFF', '18446744073709551615', 'nan', 'nan'),
	(0, 0, 0, 1, 'a', false, 'epoch', 'epoch', '0', '0/1', '1', '-0', '-0');
VACUUM ANALYZE num;
CREATE FUNCTION same_numbers(columns text, directions text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	from_index text;
	from_table text;
	query text := format('SELECT string_agg(r, '' '' ORDER BY r COLLATE "C") FROM (SELECT (%s)::text AS r FROM num ORDER BY ', regexp_replace(columns, '^(\w+)$', 'ROW(\1)'));
BEGIN
	EXECUTE format('CREATE INDEX num_i ON num USING euno (%s)', directions);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query || directions || ') s' LOOP plan := plan || line; END LOOP;
	IF plan !~ 'Index Only Scan using num_i' THEN
		RETURN plan;
	END IF;
	EXECUTE query || directions || ') s' INTO from_index;
	DROP INDEX num_i;
	EXECUTE query || directions || ') s' INTO from_table;
	RETURN CASE WHEN from_index = from_table THEN 'identical' ELSE 'different' END;
END $$;
CREATE TABLE definitions (columns text, directions text);
INSERT INTO definitions SELECT attname, attname || d FROM pg_attribute, unnest(ARRAY['', ' DESC']) d WHERE attrelid = 'num'::regclass AND attnum > 0 ORDER BY attnum, d;
INSERT INTO definitions VALUES ('c, i8, i2', 'c, i8, i2'), ('bo, i2, i4, i8', 'bo DESC, i2, i4 DESC, i8 DESC'), ('o, d, ts', 'o, d DESC, ts'),
	('i2, f8, c, f4', 'i2, f8 DESC, c DESC, f4'), ('m, l, x', 'm DESC, l, x DESC'), ('c, o, bo, x', 'c DESC, o DESC, bo, x');
SELECT directions, same_numbers(columns, directions) FROM definitions;
INSERT INTO num SELECT i2, NULL, i8, NULL, c, NULL, d, NULL, m, NULL, x, f4, NULL FROM num WHERE i2 % 10 = 0;
INSERT INTO num DEFAULT VALUES;
VACUUM ANALYZE num;
SELECT directions, same_numbers(columns, directions) FROM definitions WHERE same_numbers(columns, directions) <> 'identical';
DROP FUNCTION same_numbers;

-- Conditions behind a range are held against each entry: all numbers, both
-- directions, at and beside the ends that a type has
CREATE FUNCTION misfits(col text, direction text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	type text := (SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'num'::regclass AND attname = col);
	value text;
	condition text;
	from_index text[];
	from_table text[];
BEGIN
	EXECUTE format('CREATE INDEX num_i ON num USING euno (bo, %s %s)', col, direction);
	FOR value IN EXECUTE format('WITH e AS (SELECT min(%1$s) AS least, max(%1$s) AS most FROM num)
			SELECT least::text FROM e UNION SELECT most::text FROM e UNION SELECT min(%1$s)::text FROM num WHERE i2 = 0
			UNION SELECT min(%1$s)::text FROM num WHERE %1$s > (SELECT least FROM e) UNION SELECT max(%1$s)::text FROM num WHERE %1$s < (SELECT most FROM e)', col)
	LOOP
		FOREACH condition IN ARRAY ARRAY['< %2$L', '<= %2$L', '= %2$L', '>= %2$L', '> %2$L', 'BETWEEN %2$L AND %2$L', '> %2$L AND %1$s < %2$L', 'IN (%2$L, NULL)', 'IS NULL', 'IS NOT NULL']
		LOOP
			condition := format('SELECT array_agg(%1$s::text ORDER BY %1$s::text COLLATE "C") FROM (SELECT %1$s FROM num WHERE bo <= true AND %1$s ' || condition || ' OFFSET 0) s', col, value);
			PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexonlyscan', 'on', true);
			EXECUTE condition INTO from_index;
			PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexonlyscan', 'off', true);
			EXECUTE condition INTO from_table;
			IF from_index IS DISTINCT FROM from_table THEN
				RETURN NEXT condition;
			END IF;
		END LOOP;
	END LOOP;
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexonlyscan', 'on', true);
	FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT %1$s FROM num WHERE bo <= true AND %1$s < %2$L', col, value) LOOP plan := plan || line; END LOOP;
	IF plan !~ 'Index Only Scan using num_i.*Index Cond.* AND ' THEN
		RETURN NEXT plan;
	END IF;
	DROP INDEX num_i;
END $$;
SET enable_bitmapscan = off;
SET enable_indexscan = off;
SELECT columns, directions, m FROM definitions, misfits(columns, substring(directions FROM ' DESC$')) m WHERE columns !~ ',' AND columns NOT IN ('c', 'bo');
RESET enable_indexscan;
RESET enable_bitmapscan;
DROP FUNCTION misfits;

-- Equal keys behind a range: a cursor that turns, and goes on
CREATE TABLE equals AS SELECT n % 2 = 0 AS a, (n % 5)::int2 AS b FROM generate_series(1, 3000) n;
CREATE INDEX equals_ab ON equals USING euno (a, b);
VACUUM ANALYZE equals;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
EXPLAIN (COSTS OFF) SELECT * FROM equals WHERE a <= true AND b >= 3 ORDER BY a, b;
DECLARE turns SCROLL CURSOR FOR SELECT * FROM equals WHERE a <= true AND b >= 3 ORDER BY a, b;
MOVE 599 IN turns;
FETCH 2 FROM turns;
FETCH BACKWARD 3 FROM turns;
MOVE BACKWARD 299 IN turns;
FETCH 2 FROM turns;
MOVE BACKWARD 3 IN turns;
FETCH 1 FROM turns;
MOVE ALL IN turns;
FETCH BACKWARD 2 FROM turns;
MOVE BACKWARD ALL IN turns;
FETCH 2 FROM turns;
COMMIT;
DROP TABLE num, definitions, equals;

-- Two large scans of a session keep their memory, whichever were the last; an
-- error frees one that is in use, and a dropped index its own
CREATE TABLE large AS SELECT n AS a, n AS b, n AS c, n AS d FROM generate_series(1, 20000) n;
CREATE INDEX large_a ON large USING euno (a);
CREATE INDEX large_b ON large USING euno (b);
CREATE INDEX large_c ON large USING euno (c);
CREATE INDEX large_d ON large USING euno (d) WITH (structure = art);
VACUUM ANALYZE large;
CREATE VIEW kept AS SELECT count(*) FILTER (WHERE total_bytes > 60000) AS large FROM pg_backend_memory_contexts WHERE name = 'euno scan';
CREATE FUNCTION read_large(names text[], fail bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
	n bigint;
BEGIN
	FOREACH name IN ARRAY names LOOP
		EXECUTE format('SELECT count(%1$s / (CASE WHEN %2$L AND %1$s = 9000 THEN 0 ELSE 1 END)) FROM large WHERE %1$s > 0', name, fail) INTO STRICT n;
		IF n <> 20000 THEN RETURN name || n; END IF;
	END LOOP;
	RETURN 'all read';
EXCEPTION WHEN division_by_zero THEN RETURN sqlerrm;
END $$;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(b) FROM large WHERE b > 0;
SELECT read_large('{a,b,c,d}', false);
SELECT * FROM kept;
SELECT read_large('{d,c,a,b,a,b}', false);
SELECT * FROM kept;
SELECT read_large('{b}', true);
SELECT * FROM kept;
SELECT read_large('{b,c}', false);
DROP INDEX large_c;
SELECT * FROM kept;
SELECT read_large('{a,d,b,a,d}', false);
SELECT * FROM kept;
RESET enable_seqscan; RESET enable_bitmapscan;
DROP VIEW kept;
DROP TABLE large;
DROP FUNCTION read_large;
