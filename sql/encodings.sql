-- Intervals, times with a zone, network addresses, arrays, ranges and multiranges of every shape, in indexes that
-- have their bytes, beside a sort by comparison
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT setseed(0.5);
CREATE TABLE spans (id int GENERATED ALWAYS AS IDENTITY, k interval) WITH (autovacuum_enabled = off);
-- around what a day, a month and 64 bits hold, divided in every way
INSERT INTO spans (k)
	SELECT make_interval(months => sign * months, days => turn * days) + turn * micros * interval '1 microsecond'
	FROM unnest(ARRAY[-1, 1]) sign, unnest(ARRAY[-1, 1]) turn, unnest(ARRAY[0, 1, 2, 12, 2000000000]) months, unnest(ARRAY[0, 1, 29, 30, 31, 60, 2000000000]) days,
		unnest(ARRAY[0, 1, 65535, 65536, 86399999999, 86400000000, 86400000001, 2592000000000, 9000000000000000000]) micros;
INSERT INTO spans (k) SELECT random() * 200 * interval '1 day' - interval '100 days' FROM generate_series(1, 500);
INSERT INTO spans (k) SELECT justify_hours(trunc(random() * 2000) * interval '1 hour') FROM generate_series(1, 500);
INSERT INTO spans (k) SELECT trunc(random() * 2000) * interval '1 hour' FROM generate_series(1, 500);
INSERT INTO spans (k) VALUES (NULL), (NULL), ('178000000 years'), ('-178000000 years');
-- since version 17
DO $$
BEGIN
	INSERT INTO spans (k) SELECT x::interval FROM unnest(ARRAY['infinity', '-infinity', 'infinity']) x;
EXCEPTION WHEN invalid_datetime_format THEN
END $$;
CREATE TABLE zoned (id int GENERATED ALWAYS AS IDENTITY, k timetz) WITH (autovacuum_enabled = off);
INSERT INTO zoned (k)
	SELECT concat(t, z)::timetz FROM unnest(ARRAY['00:00', '00:00:00.000001', '11:59:59.999999', '12:00', '23:59:59.999999', '24:00']) t,
		unnest(ARRAY['+00', '-15:59:59', '+15:59:59', '-00:00:01', '+00:00:01', '-01', '+01']) z;
INSERT INTO zoned (k) SELECT concat(trunc(random() * 24), ':00', trunc(random() * 31 - 15)::int)::timetz FROM generate_series(1, 1500);
INSERT INTO zoned (k) VALUES (NULL), (NULL);
CREATE TABLE networks (id int GENERATED ALWAYS AS IDENTITY, k inet) WITH (autovacuum_enabled = off);
INSERT INTO networks (k)
	SELECT set_masklen(a::inet, least(bits, CASE family(a::inet) WHEN 4 THEN 32 ELSE 128 END))
	FROM unnest(ARRAY['0.0.0.0', '0.0.0.1', '10.0.0.0', '10.0.0.1', '10.0.0.255', '10.0.1.0', '10.128.0.0', '127.255.255.255', '128.0.0.0', '255.255.255.255',
			'::', '::1', '::a00:1', '::ffff:10.0.0.1', '2001:db8::', '2001:db8::1', '2001:db8:0:0:8000::', '7fff::', '8000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']) a,
		generate_series(0, 128) bits
	WHERE bits <= 32 OR family(a::inet) = 6;
INSERT INTO networks (k) SELECT set_masklen('10.0.0.0'::inet + trunc(random() * 1000)::int, 20 + trunc(random() * 13)::int) FROM generate_series(1, 1000);
INSERT INTO networks (k) VALUES (NULL), (NULL);
-- elements that are equal, NULL, empty, or the beginning of others; all shapes; more than fit behind a short header
CREATE TABLE lists (id int GENERATED ALWAYS AS IDENTITY, k int[]) WITH (autovacuum_enabled = off);
INSERT INTO lists (k)
	SELECT CASE n WHEN 0 THEN '{}' WHEN 1 THEN ARRAY[a] WHEN 2 THEN ARRAY[a, b] ELSE ARRAY[a, b, c] END
	FROM generate_series(0, 3) n, unnest(ARRAY[NULL, -2147483648, -1, 0, 1, 2147483647]) a, unnest(ARRAY[NULL, -1, 0, 256]) b, unnest(ARRAY[NULL, 0, 1]) c;
INSERT INTO lists (k) SELECT k::int[] FROM unnest(ARRAY['[0:1]={0,1}', '[2:3]={0,1}', '[-7:-6]={0,1}', '{{0,1}}', '{{0},{1}}', '[0:0][1:2]={{0,1}}', '[1:1][0:1]={{0,1}}',
	'{{{0}},{{1}}}', '{{{{{{0,1}}}}}}', '{{0,NULL},{1,2}}', '{{0,NULL,1,2}}', '[5:5]={NULL}']) k;
INSERT INTO lists (k) SELECT ARRAY(SELECT nullif(trunc(random() * 4)::int, 3) FROM generate_series(1, n % 40)) FROM generate_series(1, 250) n;
INSERT INTO lists (k) SELECT ARRAY(SELECT m / n FROM generate_series(1, 400) m) FROM generate_series(1, 8) n;
INSERT INTO lists (k) VALUES (NULL), (NULL);
-- without NULLs, with a bitmap of them
INSERT INTO lists (k) SELECT (ARRAY[n % 5, 1, NULL])[1:2] FROM generate_series(1, 20) n;
CREATE TABLE words (id int GENERATED ALWAYS AS IDENTITY, k text[] COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO words (k) SELECT ARRAY[a, b, c] FROM unnest(ARRAY[NULL, '', 'a', 'aa', 'b', U&'\00e4', repeat('x', 150)]) a, unnest(ARRAY[NULL, '', 'a', E'\x01']) b, unnest(ARRAY[NULL, '', 'z']) c;
INSERT INTO words (k) SELECT ARRAY(SELECT repeat(chr(97 + trunc(random() * 3)::int), trunc(random() * 3)::int) FROM generate_series(1, n % 30)) FROM generate_series(1, 150) n;
INSERT INTO words (k) VALUES (NULL), ('{}');
CREATE TABLE codes (id int GENERATED ALWAYS AS IDENTITY, k bytea[]) WITH (autovacuum_enabled = off);
INSERT INTO codes (k) SELECT ARRAY[a, b] FROM unnest('{"", "\\x00", "\\x0000", "\\x00ff", "\\x01", "\\xff", "\\xff00", NULL}'::bytea[]) a, unnest('{"", "\\x00", "\\x01", NULL}'::bytea[]) b, generate_series(1, 3);
CREATE TABLE spaces (id int GENERATED ALWAYS AS IDENTITY, k int8range) WITH (autovacuum_enabled = off);
INSERT INTO spaces (k)
	SELECT int8range(a, b, bounds) FROM unnest(ARRAY[NULL, -9223372036854775808, -1, 0, 1, 5, 9223372036854775806]) a, unnest(ARRAY[NULL, 0, 1, 5, 6, 9223372036854775806]) b, unnest(ARRAY['[)', '(]', '()', '[]']) bounds
	WHERE coalesce(a <= b, true);
INSERT INTO spaces (k) SELECT int8range(trunc(random() * 20)::int, 20 + trunc(random() * 20)::int) FROM generate_series(1, 200);
INSERT INTO spaces (k) VALUES (NULL), (NULL);
CREATE TYPE wordrange AS RANGE (subtype = text, collation = "C");
CREATE TABLE pages (id int GENERATED ALWAYS AS IDENTITY, k wordrange) WITH (autovacuum_enabled = off);
INSERT INTO pages (k)
	SELECT wordrange(a, b, bounds) FROM unnest(ARRAY[NULL, '', 'a', 'aa', 'b', repeat('c', 200)]) a, unnest(ARRAY[NULL, '', 'a', 'aa', 'b', 'd', repeat('d', 200)]) b, unnest(ARRAY['[)', '(]', '()', '[]']) bounds
	WHERE coalesce(a COLLATE "C" <= b, true);
CREATE TABLE holes (id int GENERATED ALWAYS AS IDENTITY, k tsmultirange) WITH (autovacuum_enabled = off);
INSERT INTO holes (k) SELECT k::tsmultirange FROM unnest(ARRAY['{}', '{(,)}', '{(,2024-01-01)}', '{(,2024-01-01]}', '{[2024-01-01,)}', '{(2024-01-01,)}', '{[infinity,infinity]}', '{(,-infinity),(-infinity,)}']) k, generate_series(1, 3);
INSERT INTO holes (k)
	SELECT range_agg(tsrange('2024-01-01'::timestamp + m * (1 + n % 7) * interval '1 day', '2024-01-01'::timestamp + (m * (1 + n % 7) + n % 3) * interval '1 day', CASE n % 2 WHEN 0 THEN '[)' ELSE '(]' END))
	FROM generate_series(1, 150) n, generate_series(1, 6) m WHERE m <= n % 8 GROUP BY n;

-- An index in this order: what is wrong with it?  All values are stored as they are in the table, in the order of
-- the comparator, and each one is found with all that are equal, and with all that are less
CREATE FUNCTION check_index(t text, columns text, by text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	send text := (SELECT typsend FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid WHERE attrelid = t::regclass AND attname = 'k');
	wrong bigint[];
BEGIN
	EXECUTE format('CREATE INDEX k_index ON %I USING euno %s', t, columns);
	FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT k FROM %I ORDER BY k %s', t, by) LOOP plan := plan || line; END LOOP;
	IF plan !~ '^Index Only Scan (Backward )?using k_index' THEN
		RETURN plan;
	END IF;
	EXECUTE format('SELECT ARRAY[
		(SELECT count(*) FROM (SELECT k, lag(k) OVER () AS before, row_number() OVER () AS i FROM (SELECT k FROM %1$I ORDER BY k %2$s) o) s
			WHERE i > 1 AND NOT coalesce(before %3$s k, (k IS NULL) <> (before IS NULL) OR k IS NULL)),
		(SELECT count(*) FROM (
			(SELECT %4$s(k), row_number() OVER (PARTITION BY %4$s(k)) FROM (SELECT k FROM %1$I ORDER BY k %2$s) i EXCEPT SELECT bytes, nth FROM copied)
			UNION ALL (SELECT bytes, nth FROM copied EXCEPT SELECT %4$s(k), row_number() OVER (PARTITION BY %4$s(k)) FROM (SELECT k FROM %1$I ORDER BY k %2$s) i)) d),
		(SELECT count(*) FROM copied c WHERE k IS NOT NULL AND (SELECT count(*) FROM %1$I t WHERE t.k = c.k) <> c.same),
		(SELECT count(*) FROM copied c WHERE k IS NOT NULL AND id %% 17 = 0 AND (SELECT count(*) FROM %1$I t WHERE t.k < c.k) <> c.less),
		(SELECT count(*) FROM copied c WHERE k IS NOT NULL AND id %% 17 = 0 AND (SELECT count(*) FROM %1$I t WHERE t.k >= c.k) <> (SELECT count(k) FROM copied) - c.less)]',
		t, by, CASE WHEN by LIKE 'DESC%' THEN '>=' ELSE '<=' END, send) INTO wrong;
	PERFORM euno_index_check('k_index', true);
	DROP INDEX k_index;
	RETURN CASE WHEN wrong = '{0,0,0,0,0}' THEN 'right' ELSE wrong::text END;
END $$;
CREATE FUNCTION copy_of(t text, send text) RETURNS TABLE (more_rows boolean, more_images boolean) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TEMP TABLE copied AS SELECT id, k, %2$s(k) AS bytes, row_number() OVER (PARTITION BY %2$s(k)) AS nth,
		count(*) OVER (PARTITION BY k) AS same, rank() OVER (ORDER BY k) - 1 AS less FROM %1$I', t, send);
	RETURN QUERY SELECT count(*) > 1.01 * count(DISTINCT k), count(DISTINCT bytes) > 1.2 * count(DISTINCT k) FROM copied;
END $$;
CREATE TABLE definitions (columns text, direction text);
INSERT INTO definitions VALUES ('(k)', ''), ('(k DESC)', 'DESC'), ('(k NULLS FIRST)', 'DESC NULLS LAST'),
	('(k) WITH (structure = art)', ''), ('(k DESC NULLS LAST) WITH (structure = art)', 'DESC NULLS LAST'),
	('(k, id)', ''), ('(k DESC, id DESC) WITH (structure = art)', ''), ('(k) INCLUDE (id)', 'DESC'), ('(k DESC) INCLUDE (id) WITH (structure = art)', 'DESC'),
	('(k, (ARRAY[id::numeric]))', ''), ('(k DESC, (ARRAY[id::numeric]))', '');
VACUUM spans, zoned, networks, lists, words, codes, spaces, pages, holes;
SELECT * FROM copy_of('spans', 'interval_send');
SELECT columns, direction, check_index('spans', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('zoned', 'timetz_send');
SELECT columns, direction, check_index('zoned', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('networks', 'inet_send');
SELECT columns, direction, check_index('networks', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('lists', 'array_send');
SELECT columns, direction, check_index('lists', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('words', 'array_send');
SELECT columns, direction, check_index('words', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('codes', 'array_send');
SELECT columns, direction, check_index('codes', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('spaces', 'range_send');
SELECT columns, direction, check_index('spaces', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('pages', 'range_send');
SELECT columns, direction, check_index('pages', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('holes', 'multirange_send');
SELECT columns, direction, check_index('holes', columns, direction) FROM definitions;
DROP TABLE copied;

-- What arrays and ranges can be made of, and what they are compared by
CREATE DOMAIN few AS int[] CHECK (cardinality(VALUE) < 5);
CREATE DOMAIN natural_number AS int CHECK (VALUE >= 0);
CREATE TYPE color AS ENUM ('red', 'green');
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TABLE made (few few, naturals natural_number[], v varchar(5)[] COLLATE "C", t timetz[], i inet[], b bool[], d daterange, u uuid[], vector int2vector, k int8[],
	words text[] COLLATE "en-x-icu", color color[], name name[], n numeric[], f floatrange, nr numrange, span interval[], json jsonb[], blank char(3)[] COLLATE "C", whole pg_class[], nested int4range[]);
CREATE FUNCTION kind_of(col name) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX made_i ON made USING euno (%I) WITH (structure = art)', col);
	DROP INDEX made_i;
	RETURN 'bytes';
EXCEPTION WHEN feature_not_supported THEN
	RETURN 'compared';
END $$;
SELECT string_agg(attname, ', ' ORDER BY attnum), kind_of(attname) FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0 GROUP BY 2 ORDER BY 2;
CREATE INDEX ON made USING euno (few, naturals, v) WITH (structure = art);
INSERT INTO made (few, naturals, v) VALUES ('{1,2}', '{3}', '{a,b}'), ('{1,2}', '{2,9}', '{}'), ('{1}', NULL, '{a}');
SELECT few, naturals, v FROM made WHERE few >= '{1}' ORDER BY few, naturals, v;
SELECT v FROM made WHERE few = '{1,2}' AND naturals = '{3}' AND v = '{a,b}';
-- as long as may be, and longer; nothing takes more than many short texts when it is decoded
CREATE TABLE longest (k text[] COLLATE "C");
INSERT INTO longest SELECT array_fill('x'::text, ARRAY[n]) FROM generate_series(330, 334) n;
CREATE INDEX ON longest USING euno (k);
VACUUM longest;
EXPLAIN (COSTS OFF) SELECT k FROM longest ORDER BY k;
SELECT string_agg(cardinality(k) || CASE WHEN k = array_fill('x'::text, ARRAY[cardinality(k)]) THEN '' ELSE ' differs' END, ', ') FROM (SELECT k FROM longest ORDER BY k) s;
INSERT INTO longest SELECT array_fill('x'::text, ARRAY[335]);
DROP TABLE longest;
-- beside columns that are longer than their encodings, too
CREATE FUNCTION wide(elements int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	names text := (SELECT string_agg('n' || n, ', ') FROM generate_series(1, 31) n);
BEGIN
	EXECUTE format('CREATE TABLE wide (%s name DEFAULT '''', k text[] COLLATE "C")', replace(names, ',', ' name DEFAULT '''','));
	INSERT INTO wide (k) SELECT array_fill('x'::text, ARRAY[elements]) FROM generate_series(1, 2);
	EXECUTE format('CREATE UNIQUE INDEX wide_i ON wide USING euno (%s, k)', names);
	RETURN 'unique';
EXCEPTION WHEN unique_violation OR program_limit_exceeded THEN
	RETURN SQLERRM;
END $$;
SELECT n, wide(n) FROM unnest(ARRAY[316, 879]) n;
DROP FUNCTION wide;
CREATE INDEX made_k ON made USING euno (k) WITH (structure = art);
INSERT INTO made (k) SELECT array_agg(n) FROM generate_series(1, 334) n;
INSERT INTO made (k) SELECT array_agg(n) FROM generate_series(1, 335) n;
DROP TABLE made;
DROP TYPE color, floatrange;
DROP DOMAIN few, natural_number;

CREATE INDEX ON networks USING euno ((k::cidr)) WITH (structure = art);
EXPLAIN (COSTS OFF) SELECT count(*) FROM networks WHERE k::cidr = '10.0.0.0/24';
SELECT count(*) FROM networks WHERE k::cidr = '10.0.0.0/24';
SELECT count(*) FROM networks WHERE k::cidr >= '10.0.0.0/24' AND k::cidr < '10.0.2.0/24';

-- Unique: equal is what the comparator says
CREATE TABLE one (i interval, z timetz, n inet, a int[], r int4range);
CREATE UNIQUE INDEX one_i ON one USING euno (i);
CREATE UNIQUE INDEX one_z ON one USING euno (z) WITH (structure = art);
CREATE UNIQUE INDEX one_n ON one USING euno (n);
CREATE UNIQUE INDEX one_a ON one USING euno (a);
CREATE UNIQUE INDEX one_r ON one USING euno (r) WITH (structure = art);
INSERT INTO one VALUES ('1 mon', '12:00+00', '10.0.0.0/24');
INSERT INTO one VALUES ('29 days 24 hours', '12:00+01', '10.0.0.1');
INSERT INTO one VALUES ('30 days 1 microsecond', '13:00+01', '10.0.0.0/24');
INSERT INTO one VALUES ('30 days 1 microsecond', '13:00+01', '10.0.0.1/24');
INSERT INTO one VALUES ('0', '13:00+01', '10.0.0.0/25');
SELECT * FROM one ORDER BY i;
SELECT i FROM one ORDER BY i;
INSERT INTO one (a, r) VALUES ('{1,2}', '[1,3)'), ('[0:1]={1,2}', '[1,3]'), ('{1,2,NULL}', 'empty');
INSERT INTO one (a) VALUES ('{1,2}');
INSERT INTO one (r) VALUES ('[1,2]');
INSERT INTO one (r) VALUES ('(7,7]');
DROP TABLE one, spans, zoned, networks, definitions, lists, words, codes, spaces, pages, holes;
DROP TYPE wordrange;
DROP FUNCTION check_index, copy_of, kind_of;
