--
-- Types: euno beside btree
--
-- Two tables hold the same rows, one with a btree index and one with a euno
-- index, and each check asks both.  A check says what differs, or that a plan
-- did not use the index, or nothing.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET TimeZone = 'America/New_York';
SET client_min_messages = warning;
-- Rows that only one of two queries returns; the first has to use index e_k
-- wherever it names table e_t.
CREATE FUNCTION differ(what text, e text, b text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	missing int := (length(e) - length(replace(e, 'e_t', ''))) / 3;
	n bigint;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || e LOOP
		missing := missing - (line LIKE '%using e_k on %')::int;
	END LOOP;
	IF missing > 0 THEN
		RETURN what || ': index not used; ';
	END IF;
	EXECUTE format('WITH e AS MATERIALIZED (%s), b AS MATERIALIZED (%s)
		SELECT count(*) FROM (
			(SELECT * FROM e EXCEPT ALL SELECT * FROM b)
			UNION ALL (SELECT * FROM b EXCEPT ALL SELECT * FROM e)) d', e, b)
		INTO n;
	RETURN CASE WHEN n > 0 THEN what || ': ' || n || ' differ; ' ELSE '' END;
END $$;
-- The same, of one query with %1$s for the table.
CREATE FUNCTION differ(what text, query text) RETURNS text
LANGUAGE sql AS $$
	SELECT differ(what, format(query, 'e_t'), format(query, 'b_t'))
$$;
CREATE FUNCTION check_type(typ text, vals text[], gen text DEFAULT NULL,
	opclass text DEFAULT '', ops text[] DEFAULT '{<,<=,=,>=,>}')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ord text[];
	r text := '';
	is_row boolean;
	using_lt text := CASE WHEN ops[1] = '<' THEN '' ELSE 'USING ' || ops[1] END;
	using_gt text := CASE WHEN ops[1] = '<' THEN 'DESC' ELSE 'USING ' || ops[5] END;
BEGIN
	PERFORM setseed(0.42);
	EXECUTE format('CREATE TABLE b_t (id int, k %s)', typ);
	EXECUTE format('CREATE TABLE e_t (id int, k %s)', typ);
	EXECUTE format('CREATE TABLE v_t (id int, k %s)', typ);
	EXECUTE format('INSERT INTO v_t SELECT i, ($1)[i]::%s
		FROM generate_series(1, cardinality($1)) i', typ) USING vals;
	EXECUTE format('INSERT INTO b_t SELECT i, CASE WHEN i %% 17 = 0 THEN NULL
		ELSE ($1)[1 + (random() * (cardinality($1) - 1))::int]::%s END
		FROM generate_series(1, 85) i', typ) USING vals;
	IF gen IS NOT NULL THEN
		EXECUTE format('INSERT INTO b_t SELECT i + 1000, %s
			FROM generate_series(1, 60) i', gen);
	END IF;
	INSERT INTO e_t SELECT * FROM b_t ORDER BY ctid;
	ANALYZE b_t, e_t, v_t;
	SELECT t.typtype = 'c' INTO is_row
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = 'e_t'::regclass AND a.attname = 'k';

	FOREACH ord SLICE 1 IN ARRAY array[
		array['', using_lt, using_gt || ' NULLS FIRST'],
		array['DESC', using_gt, using_lt || ' NULLS LAST'],
		array['NULLS FIRST', using_lt || ' NULLS FIRST', using_gt || ' NULLS LAST'],
		array['DESC NULLS LAST', using_gt || ' NULLS LAST', using_lt || ' NULLS FIRST']]
	LOOP
		EXECUTE format('CREATE INDEX b_k ON b_t USING btree (k %s %s)', opclass, ord[1]);
		EXECUTE format('CREATE INDEX e_k ON e_t USING euno (k %s %s)', opclass, ord[1]);
		r := r
			|| differ('forward' || ord[1], 'SELECT array_agg(id) AS ids FROM
				(SELECT id FROM %1$s ORDER BY k ' || ord[2] || ') s')
			-- exactly the reverse (btree turns its posting lists around)
			|| differ('backward' || ord[1], 'SELECT array_agg(id) AS ids FROM
				(SELECT id FROM e_t ORDER BY k ' || ord[3] || ') s',
				'SELECT array_agg(id ORDER BY n DESC) AS ids FROM
				(SELECT id, row_number() OVER () AS n FROM
					(SELECT id FROM b_t ORDER BY k ' || ord[2] || ') r) s')
			|| differ('index only' || ord[1], 'SELECT format(''<%%s>'', k) AS k FROM
				(SELECT k FROM %1$s ORDER BY k ' || ord[2] || ') s');
		-- a row is NULL by its fields, which no index can tell
		IF NOT is_row THEN
			r := r || differ('null' || ord[1],
				'SELECT id, 0 FROM %1$s WHERE k IS NULL UNION ALL
				SELECT id, 1 FROM %1$s WHERE k IS NOT NULL');
		END IF;
		r := r
			|| differ('operators' || ord[1], (SELECT string_agg(format(
				'SELECT %L AS op, v.id AS v, t.id AS t
				FROM v_t v, %%1$s t WHERE t.k %s v.k', op, op), ' UNION ALL ')
				FROM unnest(ops) op))
			|| differ('ranges' || ord[1], (SELECT string_agg(format(
				'SELECT %s AS n, v.id AS v, w.id AS w, t.id AS t
				FROM v_t v, v_t w, %%1$s t WHERE t.k %s v.k AND t.k %s w.k',
				n, ops[o1], ops[o2]), ' UNION ALL ')
				FROM (VALUES (1, 4, 1), (2, 5, 2), (3, 5, 4), (4, 3, 1)) p (n, o1, o2)));
		-- an array of arrays is something else
		IF typ NOT LIKE '%[]' THEN
			r := r || differ('arrays' || ord[1], format(
				'SELECT v.id AS v, w.id AS w, t.id AS t FROM v_t v, v_t w, %%1$s t
				WHERE w.id < 3 AND t.k %s ANY (ARRAY[w.k, NULL, v.k, w.k])', ops[3]));
		END IF;
		DROP INDEX b_k, e_k;
	END LOOP;
	DROP TABLE b_t, e_t, v_t;
	RETURN typ || rtrim(' ' || opclass) || ': ' || CASE WHEN r = '' THEN 'ok' ELSE r END;
END $$;
CREATE FUNCTION check_cross(typ text, vals text[], argtyp text, args text[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ord text;
	r text := '';
BEGIN
	EXECUTE format('CREATE TABLE b_t (id int, k %s)', typ);
	EXECUTE format('CREATE TABLE v_t (id int, k %s)', argtyp);
	EXECUTE format('INSERT INTO b_t SELECT i, ($1)[1 + i %% cardinality($1)]::%s
		FROM generate_series(1, 3 * cardinality($1)) i', typ) USING vals;
	EXECUTE format('INSERT INTO v_t SELECT i, ($1)[i]::%s
		FROM generate_series(1, cardinality($1)) i', argtyp) USING args;
	CREATE TABLE e_t AS SELECT * FROM b_t;
	FOREACH ord IN ARRAY array['', 'DESC NULLS LAST'] LOOP
		EXECUTE format('CREATE INDEX b_k ON b_t USING btree (k %s)', ord);
		EXECUTE format('CREATE INDEX e_k ON e_t USING euno (k %s)', ord);
		r := r
			|| differ('operators' || ord, (SELECT string_agg(format(
				'SELECT %L AS op, v.id AS v, t.id AS t
				FROM v_t v, %%1$s t WHERE t.k %s v.k', op, op), ' UNION ALL ')
				FROM unnest('{<,<=,=,>=,>}'::text[]) op))
			|| differ('between' || ord, 'SELECT v.id AS v, w.id AS w, t.id AS t
				FROM v_t v, v_t w, %1$s t WHERE t.k > v.k AND t.k <= w.k')
			|| differ('mixed' || ord, 'SELECT v.id AS v, w.id AS w, t.id AS t
				FROM v_t v, b_t w, %1$s t
				WHERE t.k > v.k AND t.k >= w.k AND t.k <= v.k');
		DROP INDEX b_k, e_k;
	END LOOP;
	DROP TABLE b_t, e_t, v_t;
	RETURN typ || ' and ' || argtyp || ': ' || CASE WHEN r = '' THEN 'ok' ELSE r END;
END $$;
-- that the checks can fail
CREATE TABLE b_t (k int);
CREATE TABLE e_t (k int);
INSERT INTO b_t VALUES (1), (2), (2);
INSERT INTO e_t VALUES (1), (2), (3);
CREATE INDEX e_k ON e_t USING btree (k);
SELECT differ('rows', 'SELECT k FROM %1$s ORDER BY k');
DROP INDEX e_k;
SELECT differ('plan', 'SELECT k FROM %1$s ORDER BY k');
DROP TABLE b_t, e_t;
--
-- Fixed width
--
SELECT check_type('boolean', '{t,f}');
SELECT check_type('"char"', array['', 'a', 'Z', '~', '0', '\377'],
	'chr(1 + (random() * 126)::int)::"char"');
SELECT check_type('smallint', '{-32768,-32767,-1,0,1,255,256,32766,32767}',
	'((random() - 0.5) * 65000)::int2');
SELECT check_type('integer', '{-2147483648,-2147483647,-65536,-1,0,1,255,256,65536,2147483646,2147483647}',
	'((random() - 0.5) * 4e9)::int4');
SELECT check_type('bigint', '{-9223372036854775808,-9223372036854775807,-4294967296,-1,0,1,255,4294967295,4294967296,9223372036854775806,9223372036854775807}',
	'((random() - 0.5) * 1.8e19)::int8');
SELECT check_type('oid', '{0,1,2147483647,2147483648,4294967295}',
	'(random() * 4e9)::int8::oid');
SELECT check_type('xid8', '{0,1,9223372036854775807,9223372036854775808,18446744073709551615}');
-- From 19 on
SELECT CASE WHEN to_regtype('oid8') IS NULL THEN 'oid8: ok' ELSE
	check_type('oid8', '{0,1,9223372036854775807,9223372036854775808,18446744073709551615}') END AS check_type;
DO $$ BEGIN
	IF to_regtype('oid8') IS NOT NULL THEN
		CREATE TABLE o8 (k oid8);
		CREATE INDEX ON o8 USING euno (k) WITH (structure = art);
		DROP TABLE o8;
	END IF;
END $$;
SELECT check_type('pg_lsn', '{0/0,0/1,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}');
SELECT check_type('money', '{-90000000000000,-1,0,1,2,90000000000000}',
	'((random() - 0.5) * 1000)::int::money');
SELECT check_type('real', '{NaN,-NaN,Infinity,-Infinity,0,-0,1,-1,1e-45,-1e-45,3.4028235e38,-3.4028235e38,1.17549435e-38}',
	'((random() - 0.5) * 100)::float4');
SELECT check_type('double precision', '{NaN,-NaN,Infinity,-Infinity,0,-0,1,-1,5e-324,-5e-324,1.7976931348623157e308,-1.7976931348623157e308}',
	'((random() - 0.5) * 1e10)::float8');
SELECT check_type('date', '{-infinity,infinity,4713-01-01 BC,5874897-12-31,2000-01-01,1999-12-31,1970-01-01}',
	'date ''2000-01-01'' + (random() * 10000)::int');
SELECT check_type('time', '{00:00,24:00,23:59:59.999999,12:00,00:00:00.000001}',
	'time ''00:00'' + random() * interval ''1 day''');
SELECT check_type('timestamp', '{-infinity,infinity,4713-01-01 BC,294276-12-31 23:59:59.999999,2000-01-01,1999-12-31 23:59:59.999999}',
	'timestamp ''2000-01-01'' + random() * interval ''10000 days''');
SELECT check_type('timestamptz', '{-infinity,infinity,4713-01-02 BC,294276-12-31 23:59:59.999999Z,2000-01-01,1999-12-31 23:59:59.999999}',
	'timestamptz ''2000-01-01'' + random() * interval ''10000 days''');
SELECT check_type('uuid', '{00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff,00000000-0000-0000-0000-000000000001,80000000-0000-0000-0000-000000000000}',
	'md5(random()::text)::uuid');
SELECT check_type('macaddr', '{00:00:00:00:00:00,ff:ff:ff:ff:ff:ff,00:00:00:00:00:01,08:00:2b:01:02:03}');
SELECT check_type('macaddr8', '{00:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff,00:00:00:00:00:00:00:01,80:00:00:00:00:00:00:00}');
SELECT check_type('name', array['', 'a', 'A', 'ab', 'a b', 'b', '~', repeat('x', 62), repeat('x', 63)],
	'md5(random()::text)::name');
--
-- Strings
--
SELECT check_type('text COLLATE "C"', array['', 'a', 'A', 'ab', 'aB', 'a ', ' a', 'b', '~', E'\t', E'a\t', E'a\x7f', repeat('a', 1000), repeat('a', 1001)],
	'repeat(chr(97 + (random() * 3)::int), (random() * 5)::int)');
SELECT check_type('text', array['', 'a', 'A', 'ab', 'aB', 'AB', 'a b', 'a-b', 'a ', ' a', 'b', 'B', '~', E'a\t', repeat('a', 1000), repeat('a', 1001)],
	'repeat(chr(97 + (random() * 3)::int), (random() * 5)::int)');
SELECT check_type('varchar(20)', array['', 'a', 'A', 'ab', 'a b', 'b', 'B', 'a ']);
SELECT check_type('varchar(20) COLLATE "POSIX"', array['', 'a', 'A', 'ab', 'a b', 'b', 'B', 'a ']);
SELECT check_type('char(5) COLLATE "C"', array['', 'a', 'A', 'ab', 'a b', 'b', 'abcde', E'a\t', E'a\x01']);
SELECT check_type('char(5)', array['', 'a', 'A', 'ab', 'a b', 'b', 'abcde', E'a\t', E'a\x01']);
SELECT check_type('bpchar COLLATE "C"', array['', ' ', 'a', 'a ', 'a  ', 'ab', 'a b', E'a\t', E'a\t ']);
SELECT check_type('bpchar', array['', ' ', 'a', 'a ', 'a  ', 'ab', 'a b', E'a\t', E'a\t ']);
SELECT check_type('text', array['', 'a', 'A', 'ab', 'a b', 'a-b', 'b', 'B', '~', E'a\t'], NULL,
	'text_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
SELECT check_type('varchar', array['', 'a', 'A', 'ab', 'a b', 'a-b', 'b', 'B', '~', E'a\t'], NULL,
	'varchar_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
SELECT check_type('char(4)', array['', 'a', 'A', 'ab', 'a b', 'a-b', 'b', 'B', '~', E'a\t'], NULL,
	'bpchar_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
SELECT check_type('bytea', '{"","\\x00","\\x0000","\\x000000","\\x0001","\\x00ff","\\x01","\\x0100","\\xff","\\xff00","\\xffff","\\x00ff00"}',
	'decode(repeat(''00'', (random() * 3)::int) || repeat(''ff'', (random() * 2)::int) || repeat(''01'', (random() * 2)::int), ''hex'')');
--
-- Compared by their operator classes
--
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'zzz');
ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok';
ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad';
CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN ctext AS text COLLATE "C";
CREATE TYPE frange AS RANGE (subtype = float8);
SELECT check_type('numeric', '{NaN,Infinity,-Infinity,0,0.0,0.00,1,1.0,1.00,-1,-1.0,1e100,-1e100,1e-100,123456789.123456789}',
	'((random() - 0.5) * 1000)::numeric(10, 2)');
SELECT check_type('numeric(12,3)', '{NaN,0,1,-1,123456789.123}');
SELECT check_type('interval', '{1 month,30 days,29 days,720 hours,1 day,24 hours,-1 day,-24 hours,0,1 year,12 months,360 days,178000000 years,-178000000 years,-0.000001 s,0.000001 s,1 mon -30 days 0.000001 s}',
	'make_interval(months => (random() * 4 - 2)::int, days => (random() * 90 - 45)::int, secs => random() * 100000 - 50000)');
SELECT check_type('timetz', '{10:00+00,11:00+01,09:00-01,10:00+01,24:00-15,00:00+15,24:00+15:59:59,00:00-15:59:59}',
	'(time ''00:00'' + (random() * 24)::int * interval ''1 hour'')::text::time AT TIME ZONE make_interval(hours => (random() * 24 - 12)::int)');
SELECT check_type('inet', '{10.0.0.1,10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,0.0.0.0/0,::1,::/0,255.255.255.255,ffff::}',
	'set_masklen((ARRAY[''10.0.0.0'', ''10::''])[1 + round(random())::int]::inet + (random() * 300)::int, 20 + (random() * 12)::int)');
SELECT check_type('cidr', '{10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,0.0.0.0/0,::/0,::1/128}');
SELECT check_type('cidr', '{10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,0.0.0.0/0,::/0,::1/128}', NULL, 'cidr_ops');
SELECT check_type('mood', '{sad,ok,happy,zzz,meh,awful}', '(enum_range(NULL::mood))[1 + (random() * 5)::int]');
SELECT check_type('int[]', '{"{}","{1}","{1,2}","{2}","{NULL}","{1,NULL}","{{1,2},{3,4}}","[0:1]={1,2}"}');
SELECT check_type('text[]', '{"{}","{a}","{a,b}","{B}","{NULL}"}');
SELECT check_type('int4range', '{empty,"[1,2)","[1,5)","(,)","(,3]","[1,)","[5,5]"}');
SELECT check_type('frange', '{empty,"[1,2)","[1,2]","(1,2)","(,)","[-0,0]","[0,0]"}');
SELECT check_type('int4multirange', '{"{}","{[1,2)}","{[1,2),[5,6)}","{(,)}"}');
SELECT check_type('jsonb', array['null', 'true', 'false', '1', '1.0', '"a"', '""', '[]', '{}', '[1]', '{"a": 1}', '{"a": 1.0}', '{"a": 1, "b": 2}']);
SELECT check_type('bit(5)', '{00000,00001,10000,11111}');
SELECT check_type('bit varying', '{"",0,00,000,1,01,10,1000,000000001}');
SELECT check_type('tid', '{"(0,1)","(0,2)","(1,1)","(4294967295,65535)"}');
SELECT check_type('oidvector', '{"",1,"1 2",2,"2 1",4294967295}');
SELECT check_type('tsvector', '{"",a,"a b",b,"a:1","a:2 b:1"}');
SELECT check_type('tsquery', '{a,b,"a & b","a | b","!a"}');
SELECT check_type('pair', '{"(1,a)","(1,b)","(1,)","(,a)","(,)","(2,A)"}');
SELECT check_type('pair', '{"(1,a)","(1,b)","(1,)","(,a)","(,)","(2,A)"}', NULL,
	'record_image_ops', '{*<,*<=,*=,*>=,*>}');
SELECT check_type('posint', '{1,2,2147483647}');
SELECT check_type('ctext', '{"",a,A,b}');
--
-- Arguments of another type
--
SELECT check_cross('smallint', '{-32768,-1,0,1,32767,NULL}', 'integer',
	'{-2147483648,-32769,-32768,0,1,32767,32768,2147483647,NULL}');
SELECT check_cross('smallint', '{-32768,-1,0,1,32767,NULL}', 'bigint',
	'{-9223372036854775808,-32769,-32768,0,1,32767,32768,9223372036854775807,NULL}');
SELECT check_cross('integer', '{-2147483648,-32769,-32768,-1,0,1,32767,32768,2147483647,NULL}',
	'smallint', '{-32768,-1,0,1,32767,NULL}');
SELECT check_cross('integer', '{-2147483648,-32769,-1,0,1,32768,2147483647,NULL}', 'bigint',
	'{-9223372036854775808,-2147483649,-2147483648,0,1,2147483647,2147483648,9223372036854775807,NULL}');
SELECT check_cross('bigint', '{-9223372036854775808,-32769,-32768,0,1,32767,32768,9223372036854775807,NULL}',
	'smallint', '{-32768,-1,0,1,32767,NULL}');
SELECT check_cross('bigint', '{-9223372036854775808,-2147483649,-2147483648,0,1,2147483647,2147483648,9223372036854775807,NULL}',
	'integer', '{-2147483648,-32769,-1,0,1,32768,2147483647,NULL}');
SELECT check_cross('real', '{NaN,Infinity,-Infinity,0,-0,1,0.1,-0.1,1e-45,-1e-45,3.4028235e38,-3.4028235e38,NULL}',
	'double precision', '{NaN,Infinity,-Infinity,0,-0,1,0.1,-0.1,0.10000000149011612,1e-300,-1e-300,1e300,-1e300,7e-46,-7e-46,3.4028235677973366e38,3.5e38,NULL}');
SELECT check_cross('double precision', '{NaN,Infinity,-Infinity,0,-0,1,0.1,-0.1,0.10000000149011612,1e-300,1e300,-1e300,NULL}',
	'real', '{NaN,Infinity,-Infinity,0,-0,1,0.1,-0.1,1e-45,3.4028235e38,-3.4028235e38,NULL}');
SELECT check_cross('date', '{-infinity,infinity,4713-01-01 BC,1969-12-30,1969-12-31,1970-01-01,2020-03-07,2020-03-08,2020-03-09,294276-12-31,294277-01-01,5874897-12-31,NULL}',
	'timestamp', '{-infinity,infinity,4713-01-01 BC,2020-03-08,2020-03-08 00:00:00.000001,2020-03-07 23:59:59.999999,1969-12-31 12:00,1969-12-31,294276-12-31,294276-12-31 23:59:59.999999,NULL}');
SELECT check_cross('timestamp', '{-infinity,infinity,4713-01-01 BC,2020-03-08,2020-03-08 00:00:00.000001,2020-03-07 23:59:59.999999,1969-12-31 12:00,294276-12-31,294276-12-31 23:59:59.999999,NULL}',
	'date', '{-infinity,infinity,4713-01-01 BC,2020-03-07,2020-03-08,2020-03-09,294276-12-31,294277-01-01,5874897-12-31,NULL}');
-- clocks turned: 02:30 does not exist on the one day, 01:30 comes twice on the other
SELECT check_cross('date', '{-infinity,infinity,4713-01-01 BC,1969-12-30,1969-12-31,1970-01-01,2020-03-07,2020-03-08,2020-03-09,2020-11-01,2020-11-02,294276-12-31,294277-01-01,5874897-12-31,NULL}',
	'timestamptz', '{-infinity,infinity,4713-01-02 BC,2020-03-08,2020-03-08 06:59:59.999999Z,2020-03-08 05:00Z,2020-03-09,2020-11-01,2020-11-02,2020-11-01 05:30Z,1969-12-31 00:00:00.000001,1969-12-31,294276-12-30,294276-12-31 23:59:59.999999Z,NULL}');
SELECT check_cross('timestamptz', '{-infinity,infinity,4713-01-02 BC,2020-03-08,2020-03-08 06:59:59.999999Z,2020-03-08 05:00Z,2020-03-09,2020-11-01,2020-11-02,2020-11-01 05:30Z,294276-12-30,294276-12-31 23:59:59.999999Z,NULL}',
	'date', '{-infinity,infinity,4713-01-01 BC,2020-03-07,2020-03-08,2020-03-09,2020-11-01,2020-11-02,294276-12-31,294277-01-01,5874897-12-31,NULL}');
SELECT check_cross('timestamp', '{-infinity,infinity,4713-01-01 BC,2020-03-08 01:59,2020-03-08 03:31,2020-03-08 04:00,2020-11-01 00:59,2020-11-01 01:30,2020-11-01 02:00,294276-12-31 23:59:59.999999,NULL}',
	'timestamptz', '{-infinity,infinity,4713-01-02 BC,2020-03-08 06:30Z,2020-03-08 07:00Z,2020-03-08 07:30Z,2020-11-01 04:59Z,2020-11-01 05:30Z,2020-11-01 06:00Z,2020-11-01 06:30Z,2020-11-01 07:00Z,294276-12-31 23:59:59.999999Z,NULL}');
SELECT check_cross('timestamptz', '{-infinity,infinity,4713-01-02 BC,2020-03-08 06:30Z,2020-03-08 07:00Z,2020-03-08 07:30Z,2020-11-01 04:59Z,2020-11-01 05:30Z,2020-11-01 06:00Z,2020-11-01 06:30Z,2020-11-01 07:00Z,294276-12-31 23:59:59.999999Z,NULL}',
	'timestamp', '{-infinity,infinity,4713-01-01 BC,2020-03-08 01:59,2020-03-08 02:30,2020-03-08 03:00,2020-11-01 00:59,2020-11-01 01:30,2020-11-01 02:00,294276-12-31 23:59:59.999999,NULL}');
SELECT check_cross('name', '{"",a,A,ab,"a b",b,~,NULL}', 'text COLLATE "C"', array['', 'a', 'A', 'a ', 'b', repeat('b', 100), NULL]);
SELECT check_cross('text COLLATE "C"', array['', 'a', 'A', 'a ', 'b', repeat('b', 100), NULL], 'name', '{"",a,A,ab,"a b",b,~,NULL}');
--
-- Several columns
--
CREATE FUNCTION check_columns(cols text, keys text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	r text := '';
	cond text;
BEGIN
	CREATE TABLE b_t (id int, a int, b text COLLATE "C", c numeric, d float8, e char(4), f timestamp);
	INSERT INTO b_t SELECT i, nullif(i % 7, 3),
		(array['', 'a', 'ab', 'b', NULL])[1 + i % 5],
		(array[1, 1.0, 2, NULL, 'NaN'])[1 + i / 3 % 5],
		(array['-0', '0', 'NaN', 1, NULL]::float8[])[1 + i / 5 % 5],
		(array['', 'x', 'xy', NULL])[1 + i / 11 % 4],
		timestamp '2020-03-07' + i % 9 * interval '9 hours'
		FROM generate_series(1, 400) i;
	CREATE TABLE e_t AS SELECT * FROM b_t;
	CREATE TABLE v_t AS SELECT * FROM b_t WHERE id % 9 = 0;
	EXECUTE 'CREATE INDEX b_k ON b_t USING btree ' || keys;
	EXECUTE 'CREATE INDEX e_k ON e_t USING euno ' || keys;
	r := r
		|| differ('forward', format('SELECT array_agg(format(''%%%%s'', s.*)) AS s FROM
			(SELECT %s FROM %%1$s ORDER BY %s) s', cols, trim('()' FROM split_part(keys, ' INCLUDE', 1))))
		|| differ('index only', format('SELECT format(''%%%%s'', (%s)) AS s FROM %%1$s', cols));
	FOREACH cond IN ARRAY array[
		't.a = v.a', 't.a = v.a AND t.b = v.b', 't.a = v.a AND t.b > v.b',
		't.a = v.a AND t.c <= v.c', 't.a > v.a AND t.b = v.b',
		't.a >= v.a AND t.a < v.a + 2 AND t.d >= v.d', 't.b = v.b AND t.d = v.d',
		't.c = v.c', 't.c = v.c AND t.a < v.a', 't.c >= v.c AND t.b < v.b',
		't.a IS NULL AND t.b = v.b', 't.a IS NOT NULL AND t.b = v.b AND t.c > v.c',
		't.a = v.a AND t.b IS NULL AND t.d IS NOT NULL', 't.e = v.e AND t.a = v.a',
		't.a = v.a AND t.b = v.b AND t.c = v.c AND t.d = v.d AND t.e = v.e',
		't.a = v.a::int8 AND t.f >= v.f::timestamptz',
		't.a <= v.a::int2 AND t.f = v.f::timestamptz', 't.f < v.f::date AND t.a = 1',
		't.a > 1 AND t.a > v.a AND t.a <= 5 AND t.b >= v.b AND t.b <= v.b']
	LOOP
		CONTINUE WHEN cond = 't.c = v.c' AND keys LIKE '%INCLUDE (c)';
		r := r || differ(cond, 'SELECT v.id AS v, t.id AS t FROM v_t v, %1$s t WHERE ' || cond);
	END LOOP;
	DROP TABLE b_t, e_t, v_t;
	RETURN keys || ': ' || CASE WHEN r = '' THEN 'ok' ELSE r END;
END $$;
SELECT check_columns('a, b, d, e, f, c', '(a, b, d, e, f) INCLUDE (c)');
SELECT check_columns('a, b, d, e, f, c', '(a DESC, b DESC NULLS LAST, d DESC, e DESC, f) INCLUDE (c)');
SELECT check_columns('b, a, e, d, f, c', '(b NULLS FIRST, a, e DESC, d NULLS FIRST, f DESC) INCLUDE (c)');
SELECT check_columns('a, b, c, d, e, f', '(a, b, c, d, e, f)');
SELECT check_columns('a, b, c, d, e, f', '(a DESC, b, c DESC, d NULLS FIRST, e, f DESC)');
SELECT check_columns('c, a, b, f, d, e', '(c, a, b, f) INCLUDE (d, e)');
SELECT check_columns('f, a, b, c, d, e', '(f DESC, a, b, c DESC NULLS LAST, d, e)');
--
-- Operator classes that order as they like
--
-- (in plpgsql, because SQL functions would be inlined)
CREATE FUNCTION abs_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN btint4cmp(abs($1), abs($2)); END';
CREATE FUNCTION abs_lt(int, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN abs($1) < abs($2); END';
CREATE FUNCTION abs_le(int, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN abs($1) <= abs($2); END';
CREATE FUNCTION abs_eq(int, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN abs($1) = abs($2); END';
CREATE FUNCTION abs_ge(int, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN abs($1) >= abs($2); END';
CREATE FUNCTION abs_gt(int, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN abs($1) > abs($2); END';
CREATE OPERATOR <# (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_lt);
CREATE OPERATOR <=# (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_le);
CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_eq);
CREATE OPERATOR >=# (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_ge);
CREATE OPERATOR ># (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_gt);
CREATE OPERATOR CLASS abs_ops FOR TYPE int USING btree AS
	OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#,
	FUNCTION 1 abs_cmp(int, int);
CREATE OPERATOR CLASS abs_ops FOR TYPE int USING euno AS
	OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#,
	FUNCTION 1 abs_cmp(int, int);
SELECT check_type('int', '{-3,-2,-1,0,1,2,3}', NULL, 'abs_ops', '{<#,<=#,=#,>=#,>#}');
-- One that no btree family has is for conditions, not for the order of results
CREATE FUNCTION down_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS down_ops FOR TYPE int USING euno AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
	FUNCTION 1 down_cmp(int, int);
CREATE TABLE down_t (a int, b int);
INSERT INTO down_t SELECT n, n % 7 FROM generate_series(1, 1000) n;
CREATE INDEX down_k ON down_t USING euno (b, a down_ops);
CREATE INDEX down_k1 ON down_t USING euno (a down_ops);
ANALYZE down_t;
INSERT INTO down_t VALUES (1001, 0), (NULL, 1), (1002, NULL);
SELECT * FROM down_t WHERE a > 997 ORDER BY a;
EXPLAIN (COSTS OFF) SELECT * FROM down_t WHERE (a, b) > (998, 4);
SELECT * FROM down_t WHERE (a, b) > (998, 4) ORDER BY a;
SELECT * FROM down_t WHERE b = 3 AND a IN (3, 995, 10, NULL, 11, 2000) ORDER BY a DESC;
DROP TABLE down_t;
DROP OPERATOR FAMILY down_ops USING euno;
--
-- Limits
--
-- a key of 2704 bytes, marker and end included, and no more
CREATE TABLE long_t (t text COLLATE "C");
CREATE INDEX long_k ON long_t USING euno (t);
INSERT INTO long_t VALUES (repeat('a', 2702)), (repeat('a', 2701));
DO $$
BEGIN
	INSERT INTO long_t VALUES (repeat('a', 2703));
EXCEPTION WHEN program_limit_exceeded THEN
	RAISE WARNING '% %', SQLSTATE, SQLERRM;
END $$;
DO $$
BEGIN
	INSERT INTO long_t VALUES (repeat('a', 10000000));
EXCEPTION WHEN program_limit_exceeded THEN
	RAISE WARNING '% %', SQLSTATE, SQLERRM;
END $$;
SELECT length(t) FROM long_t WHERE t = repeat('a', 2702);
SELECT length(t) FROM long_t WHERE t = repeat('a', 2703);
SELECT length(t) FROM long_t WHERE t < repeat('a', 1000000) ORDER BY t;
SELECT length(t) FROM long_t WHERE t > repeat('a', 1000000) ORDER BY t;
SELECT length(t) FROM long_t WHERE t > repeat('a', 2701) || repeat('A', 1000000) ORDER BY t;
DROP TABLE long_t;
-- the same of bytes; blanks that are in no key count where they come back
CREATE TABLE long_t (b bytea, c bpchar COLLATE "C");
CREATE INDEX long_b ON long_t USING euno (b);
CREATE INDEX long_c ON long_t USING euno (c);
INSERT INTO long_t VALUES (decode(repeat('61', 2701), 'hex'), NULL), (decode(repeat('61', 2700), 'hex'), NULL), (NULL, 'a' || repeat(' ', 2600));
SELECT length(b) FROM long_t WHERE b = decode(repeat('61', 2701), 'hex');
SELECT length(b) FROM long_t WHERE b > '' ORDER BY b;
DO $$
BEGIN
	INSERT INTO long_t VALUES (NULL, 'a' || repeat(' ', 2800));
EXCEPTION WHEN program_limit_exceeded THEN
	RAISE WARNING '%', SQLSTATE;
END $$;
SELECT octet_length(c) FROM long_t WHERE c = 'a';
DROP TABLE long_t;
--
-- Oidvectors that are equal, and do not look so to those who compare bytes
--
CREATE TABLE vectors (id int, v oidvector);
INSERT INTO vectors SELECT i, ((i % 20) || ' ' || i % 3)::oidvector FROM generate_series(1, 200) i;
INSERT INTO vectors SELECT i + 1000, trim_array(((i % 20) || ' ' || i % 3 || ' 7')::oidvector, 1) FROM generate_series(1, 200) i;
CREATE INDEX vectors_v ON vectors USING euno (v);
ANALYZE vectors;
SET enable_seqscan = off;
SELECT count(*), count(DISTINCT array_lower(v, 1)) FROM vectors WHERE v = '1 1';
SELECT count(*) FROM vectors WHERE v = ANY (ARRAY['1 1', '2 2']::oidvector[]);
RESET enable_seqscan;
DROP TABLE vectors;
--
-- Types that change and leave the index as it is
--
CREATE TABLE change_t (id int, b char(4), v varchar(10) COLLATE "C");
INSERT INTO change_t VALUES (1, 'a', 'a '), (2, 'abcd', ''), (3, '', 'b'), (4, NULL, NULL);
CREATE INDEX change_k ON change_t USING euno (b, v) INCLUDE (id);
SELECT pg_relation_filenode('change_k') AS filenode \gset
ALTER TABLE change_t ALTER b TYPE bpchar, ALTER v TYPE text COLLATE "C";
SELECT pg_relation_filenode('change_k') = :filenode AS same;
INSERT INTO change_t VALUES (5, 'a', 'a'), (6, 'a  ', 'a'), (7, '     ', 'c');
EXPLAIN (COSTS OFF) SELECT id, format('<%s>', b) AS b, v FROM change_t WHERE b >= '' ORDER BY change_t.b, v;
SELECT id, format('<%s>', b) AS b, v FROM change_t WHERE b >= '' ORDER BY change_t.b, v;
DROP TABLE change_t;
DROP FUNCTION differ(text, text, text), differ(text, text), check_columns,
	check_cross, check_type;
DROP OPERATOR CLASS abs_ops USING btree;
DROP OPERATOR CLASS abs_ops USING euno;
DROP OPERATOR <# (int, int), <=# (int, int), =# (int, int), >=# (int, int), ># (int, int);
DROP FUNCTION down_cmp, abs_cmp, abs_lt, abs_le, abs_eq, abs_ge, abs_gt;
DROP TYPE mood, pair, posint, ctext, frange;
