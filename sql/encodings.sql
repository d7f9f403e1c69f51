-- Intervals, times with a zone and network addresses of every shape, in indexes that have their bytes, beside a
-- sort by comparison
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

-- An index in this order: what is wrong with it?  All values are stored as they are in the table, in the order of
-- the comparator, and each one is found with all that are equal, and with all that are less
CREATE FUNCTION check_index(t text, columns text, by text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	send text := replace(format_type((SELECT atttypid FROM pg_attribute WHERE attrelid = t::regclass AND attname = 'k'), NULL), 'time with time zone', 'timetz') || '_send';
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
	('(k, (ARRAY[id]))', ''), ('(k DESC, (ARRAY[id]))', '');
VACUUM spans, zoned, networks;
SELECT * FROM copy_of('spans', 'interval_send');
SELECT columns, direction, check_index('spans', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('zoned', 'timetz_send');
SELECT columns, direction, check_index('zoned', columns, direction) FROM definitions;
DROP TABLE copied;
SELECT * FROM copy_of('networks', 'inet_send');
SELECT columns, direction, check_index('networks', columns, direction) FROM definitions;
DROP TABLE copied;
CREATE INDEX ON networks USING euno ((k::cidr)) WITH (structure = art);
EXPLAIN (COSTS OFF) SELECT count(*) FROM networks WHERE k::cidr = '10.0.0.0/24';
SELECT count(*) FROM networks WHERE k::cidr = '10.0.0.0/24';
SELECT count(*) FROM networks WHERE k::cidr >= '10.0.0.0/24' AND k::cidr < '10.0.2.0/24';

-- Unique: equal is what the comparator says
CREATE TABLE one (i interval, z timetz, n inet);
CREATE UNIQUE INDEX one_i ON one USING euno (i);
CREATE UNIQUE INDEX one_z ON one USING euno (z) WITH (structure = art);
CREATE UNIQUE INDEX one_n ON one USING euno (n);
INSERT INTO one VALUES ('1 mon', '12:00+00', '10.0.0.0/24');
INSERT INTO one VALUES ('29 days 24 hours', '12:00+01', '10.0.0.1');
INSERT INTO one VALUES ('30 days 1 microsecond', '13:00+01', '10.0.0.0/24');
INSERT INTO one VALUES ('30 days 1 microsecond', '13:00+01', '10.0.0.1/24');
INSERT INTO one VALUES ('0', '13:00+01', '10.0.0.0/25');
SELECT * FROM one ORDER BY i;
SELECT i FROM one ORDER BY i;
DROP TABLE one, spans, zoned, networks, definitions;
DROP FUNCTION check_index, copy_of;
