-- Makes random queries and compares their results through the indexes with
-- those of a sequential scan, in one snapshot.
--
-- A query has two output columns: r, the row as text, bit for bit; and k, its
-- sort keys in a form that is the same for equal keys.  Without an order, both
-- runs must give the same set of r.  With an order, they must also give the
-- same sequence of k.  With an order and a LIMIT, the sequence of k, because
-- it is not said which of several equal rows is within the limit; but if the
-- order ends with the row's number, the sequence of r.

CREATE FUNCTION diff.upto(n int) RETURNS int LANGUAGE sql AS
	'SELECT trunc(random() * (n + 1))::int';

CREATE FUNCTION diff.pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql AS
	'SELECT choices[1 + diff.upto(cardinality(choices) - 1)]';

-- A value to compare the column with
CREATE FUNCTION diff.literal(c diff.col) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	value text;
BEGIN
	IF random() < 0.15 AND c.crosses <> '{}' THEN
		RETURN diff.pick(VARIADIC c.crosses);
	END IF;
	IF random() < 0.02 THEN
		RETURN 'NULL::' || c.type;
	END IF;
	EXECUTE format('SELECT (%s)::text', coalesce(c.generator, 'trunc(random() * 10000)'))
		INTO value;
	RETURN format('%L::%s', value, c.type);
END
$$;

-- An array, mostly for equality; of few elements or of many
CREATE FUNCTION diff.array_condition(c diff.col) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	elements text;
BEGIN
	SELECT string_agg(diff.literal(c), ', ') INTO elements
		FROM generate_series(0, CASE WHEN random() < 0.8 THEN diff.upto(5) ELSE diff.upto(80) END);
	-- An array of arrays is something else
	IF c.type LIKE '%[]%' OR random() < 0.7 THEN
		RETURN format('%s IN (%s)', c.name, elements);
	END IF;
	RETURN format('%s %s ANY (ARRAY[%s])', c.name, diff.pick('=', '=', '=', '<', '<=', '>', '>='), elements);
END
$$;

CREATE FUNCTION diff.condition(c diff.col) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	p float8 := random();
	low text := diff.literal(c);
	high text := diff.literal(c);
BEGIN
	RETURN CASE
		WHEN p < 0.12 THEN NULL
		WHEN p < 0.15 THEN format('%s IS NULL', c.name)
		WHEN p < 0.17 THEN format('%s IS NOT NULL', c.name)
		WHEN p < 0.35 THEN diff.array_condition(c)
		WHEN p < 0.53 THEN format('%s = %s', c.name, low)
		WHEN p < 0.60 THEN format('%s %s %s', c.name, diff.pick('<', '<=', '>', '>='), low)
		WHEN p < 0.87 THEN format('%s %s least(%s, %s) AND %1$s %5$s greatest(%3$s, %4$s)',
			c.name, diff.pick('>', '>='), low, high, diff.pick('<', '<='))
		WHEN p < 0.92 THEN format('%s %s %s AND %1$s %4$s %5$s', c.name,
			diff.pick('<', '<=', '=', '>', '>='), low,
			diff.pick('<', '<=', '=', '>', '>='), high)
		WHEN p < 0.96 THEN diff.array_condition(c)
		WHEN p < 0.97 THEN format('%s <> %s', c.name, low)
		ELSE format('%s IS NOT NULL', c.name)
	END;
END
$$;

-- A comparison of some of the index's keys, one after the other, with as many values
CREATE FUNCTION diff.row_condition(x diff.idx) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	first int := 1 + diff.upto(cardinality(x.keys) - 2);
	n int := 2 + diff.upto(cardinality(x.keys) - first - 1);
	names text;
	literals text;
BEGIN
	SELECT string_agg(k.name, ', ' ORDER BY i), string_agg(diff.literal(c), ', ' ORDER BY i)
		INTO names, literals
		FROM unnest(x.keys) WITH ORDINALITY AS k (name, i)
			JOIN diff.col c ON c.tab = x.tab AND c.name = k.name
		WHERE i BETWEEN first AND first + n - 1;
	IF random() < 0.8 THEN
		RETURN format('(%s) %s (%s)', names, diff.pick('<', '<=', '>', '>='), literals);
	END IF;
	RETURN format('(%s) %s (%s)', literals, diff.pick('<', '<=', '>', '>='), names);
END
$$;

-- Conditions on the first keys of the index, and sometimes on any column
CREATE FUNCTION diff.conditions(x diff.idx) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	conditions text[] := '{}';
	c diff.col;
BEGIN
	-- Most queries should be of few rows: there can be more of them
	WHILE conditions = '{}' AND random() < 0.95 LOOP
		FOR i IN 1..1 + diff.upto(cardinality(x.keys) - 1) LOOP
			SELECT * INTO c FROM diff.col WHERE tab = x.tab AND name = x.keys[i];
			conditions := array_remove(conditions || diff.condition(c), NULL);
		END LOOP;
	END LOOP;
	IF random() < 0.1 THEN
		SELECT * INTO c FROM diff.col WHERE tab = x.tab ORDER BY random() LIMIT 1;
		conditions := array_remove(conditions || diff.condition(c), NULL);
	END IF;
	WHILE cardinality(x.keys) > 1 AND random() < 0.15 LOOP
		conditions := conditions || diff.row_condition(x);
	END LOOP;
	IF x.predicate <> '' AND random() < 0.95 THEN
		conditions := conditions || x.predicate;
	END IF;
	RETURN coalesce('(' || nullif(array_to_string(conditions, ') AND ('), '') || ')', 'true');
END
$$;

CREATE FUNCTION diff.opposite(sort_order text) RETURNS text LANGUAGE sql AS
$$
	SELECT CASE WHEN sort_order LIKE 'ASC%' THEN 'DESC' ELSE 'ASC' END ||
		CASE WHEN sort_order LIKE '%FIRST' THEN ' NULLS LAST' ELSE ' NULLS FIRST' END
$$;

-- The canonical form of the first n keys, as one text
CREATE FUNCTION diff.canon(x diff.idx, n int) RETURNS text LANGUAGE sql AS
$$
	SELECT format('ROW(%s)::text', string_agg(coalesce(c.canon, c.name), ', ' ORDER BY i))
	FROM unnest((x).keys) WITH ORDINALITY AS k (name, i)
		JOIN diff.col c ON c.tab = (x).tab AND c.name = k.name
	WHERE i <= n
$$;

CREATE TYPE diff.query AS (sql text, kind text, in_order bool, limited bool, total bool);

-- SELECT with conditions, perhaps an order, perhaps a limit
CREATE FUNCTION diff.select_query(x diff.idx) RETURNS diff.query LANGUAGE plpgsql AS
$$
DECLARE
	q diff.query;
	columns text[];
	norder int := 0;
	flip bool := random() < 0.5;
BEGIN
	q.kind := 'select';
	IF random() < 0.65 THEN
		norder := 1 + diff.upto(cardinality(x.keys) - 1);
	END IF;
	IF random() < 0.5 THEN
		-- What the index itself has, so that the table need not be read
		SELECT array_agg(k) INTO columns FROM unnest(x.keys || x.include) k;
	ELSE
		SELECT array_agg(name) INTO columns FROM diff.col WHERE tab = x.tab AND is_column;
	END IF;

	q.in_order := norder > 0;
	q.limited := q.in_order AND random() < 0.4;
	q.total := norder > 0 AND x.keys[norder] = 'id';
	q.sql := format('SELECT ROW(%s)::text AS r, %s AS k FROM diff.%I WHERE %s',
		array_to_string(columns, ', '),
		CASE WHEN norder > 0 THEN diff.canon(x, norder) ELSE 'NULL' END,
		x.tab, diff.conditions(x));
	IF q.in_order THEN
		q.sql := q.sql || ' ORDER BY ' ||
			(SELECT string_agg(k || ' ' || CASE WHEN flip THEN diff.opposite(o) ELSE o END, ', ' ORDER BY n)
				FROM unnest(x.keys, x.orders) WITH ORDINALITY AS u (k, o, n) WHERE n <= norder);
	END IF;
	IF q.limited THEN
		q.sql := q.sql || format(' LIMIT %s OFFSET %s', diff.upto(40),
			CASE WHEN random() < 0.5 THEN 0 ELSE diff.upto(60) END);
	END IF;
	RETURN q;
END
$$;

-- Aggregates and joins, whose result is one row
CREATE FUNCTION diff.other_query(x diff.idx) RETURNS diff.query LANGUAGE plpgsql AS
$$
DECLARE
	q diff.query;
	key text := x.keys[1];
	c diff.col;
	filter text := CASE WHEN x.predicate <> '' THEN x.predicate ELSE 'true' END;
	some_ids text := format('id %% %s = %s', 100 + diff.upto(300), diff.upto(99));
BEGIN
	SELECT * INTO c FROM diff.col WHERE tab = x.tab AND name = key;
	q.kind := diff.pick('min', 'max', 'count', 'group', 'nested loop', 'merge join');
	q.in_order := false;
	q.limited := false;
	q.total := false;

	-- These types have no min and max
	IF q.kind IN ('min', 'max') AND
		c.type IN ('boolean', 'uuid', 'name', 'bytea', 'jsonb', 'int4range') THEN
		q.kind := 'count';
	END IF;
	q.sql := CASE
		WHEN q.kind IN ('min', 'max') THEN
			format('SELECT (%s)::text AS r, NULL AS k FROM (SELECT %s(%s) AS %s FROM diff.%I WHERE %s) s',
				CASE WHEN c.is_column THEN coalesce(c.canon, key) ELSE 'm' END, q.kind, key,
				CASE WHEN c.is_column THEN key ELSE 'm' END, x.tab, diff.conditions(x))
		WHEN q.kind = 'count' THEN
			format('SELECT count(*)::text AS r, NULL AS k FROM diff.%I WHERE %s', x.tab, diff.conditions(x))
		WHEN q.kind = 'group' THEN
			format('SELECT ROW(%s, count(*))::text AS r, NULL AS k FROM diff.%I WHERE %s GROUP BY %s',
				diff.canon(x, 1), x.tab, diff.conditions(x), key)
		WHEN q.kind = 'nested loop' THEN
			format('SELECT ROW(count(*), sum(hashint8(a.id * 1000000 + b.id)::bigint))::text AS r, NULL AS k'
				' FROM (SELECT id, %s AS e FROM diff.%I WHERE %s) a,'
				' LATERAL (SELECT id FROM diff.%2$I WHERE %1$s %4$s a.e AND %5$s) b',
				key, x.tab, some_ids, CASE WHEN random() < 0.8 THEN '=' ELSE '<' END, diff.conditions(x))
		ELSE
			format('SELECT ROW(count(*), sum(hashint8(a.id * 1000000 + b.id)::bigint))::text AS r, NULL AS k'
				' FROM (SELECT id, %s AS e FROM diff.%I WHERE %s AND %s) a'
				' JOIN (SELECT id, %1$s AS e FROM diff.%2$I WHERE %4$s) b ON a.e = b.e',
				key, x.tab, some_ids, filter)
	END;
	RETURN q;
END
$$;

-- How the next queries are to be planned, until the end of the transaction
CREATE FUNCTION diff.plan(through_index bool, kind text DEFAULT '') RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	way int := diff.upto(7);
	in_parallel bool := random() < 0.25;
	setting record;
BEGIN
	FOR setting IN
		SELECT name, value::text AS value FROM (VALUES
			('enable_seqscan', NOT through_index),
			('enable_indexscan', through_index AND way < 7),
			('enable_indexonlyscan', through_index AND way < 5),
			('enable_bitmapscan', through_index AND way > 4),
			('enable_sort', NOT through_index OR way > 5),
			('enable_hashagg', NOT through_index OR way > 5),
			('enable_hashjoin', NOT through_index),
			('enable_mergejoin', through_index AND kind <> 'nested loop'),
			('enable_nestloop', through_index AND kind <> 'merge join'),
			('enable_material', NOT through_index OR way > 3)) s (name, value)
		UNION ALL
		SELECT * FROM (VALUES
			('min_parallel_table_scan_size', CASE WHEN in_parallel THEN '0' ELSE '8MB' END),
			('min_parallel_index_scan_size', CASE WHEN in_parallel THEN '0' ELSE '512kB' END),
			('parallel_leader_participation', CASE WHEN random() < 0.7 THEN 'on' ELSE 'off' END),
			('parallel_setup_cost', CASE WHEN in_parallel THEN '0' ELSE '1000' END),
			('parallel_tuple_cost', CASE WHEN in_parallel THEN '0' ELSE '0.1' END)) s (name, value)
	LOOP
		PERFORM set_config(setting.name, setting.value, true);
	END LOOP;
END
$$;

CREATE FUNCTION diff.run(sql text, OUT r text[], OUT k text[]) LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format('SELECT coalesce(array_agg(r), ''{}''), coalesce(array_agg(k), ''{}'') FROM (%s) q', sql)
		INTO r, k;
END
$$;

CREATE FUNCTION diff.sorted(a text[]) RETURNS text[] LANGUAGE sql AS
	'SELECT coalesce(array_agg(e ORDER BY e COLLATE "C"), ''{}'') FROM unnest(a) e';

-- What is wrong with the result (r, k), if the reference is right; NULL: nothing
CREATE FUNCTION diff.verdict(q diff.query, r text[], k text[], ref_r text[], ref_k text[])
RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
	IF cardinality(r) <> cardinality(ref_r) THEN
		RETURN format('%s rows instead of %s', cardinality(r), cardinality(ref_r));
	ELSIF q.in_order AND k <> ref_k THEN
		RETURN (SELECT format('row %s has the wrong key: %s instead of %s', min(n), min(a), min(b))
			FROM (SELECT * FROM unnest(k, ref_k) WITH ORDINALITY AS u (a, b, n)
				WHERE a IS DISTINCT FROM b ORDER BY n LIMIT 1) s);
	ELSIF q.total AND r <> ref_r THEN
		RETURN 'another sequence of rows';
	ELSIF NOT q.limited AND diff.sorted(r) <> diff.sorted(ref_r) THEN
		RETURN 'other rows';
	END IF;
	RETURN NULL;
END
$$;

CREATE FUNCTION diff.explained(sql text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
	lines text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || sql LOOP
		lines := lines || E'\n' || line;
	END LOOP;
	RETURN lines;
END
$$;

CREATE FUNCTION diff.excerpt(a text[]) RETURNS text LANGUAGE sql AS
	'SELECT array_to_string(a[1:200], E''\n'', ''NULL'') || CASE WHEN cardinality(a) > 200 THEN E''\n...'' ELSE '''' END';

CREATE FUNCTION diff.complain(q diff.query, verdict text, plan text, r text[], ref_r text[])
RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	again record;
BEGIN
	SELECT * INTO again FROM diff.run(q.sql);
	RAISE EXCEPTION 'difference: %', verdict
		USING ERRCODE = 'EUDIF',
			DETAIL = format(E'query: %s;\nplan:%s\nmissing:\n%s\ntoo many:\n%s\nthrough the index:\n%s\nreference:\n%s\n'
				'the same query once more through the index: %s\nsnapshot: %s',
				q.sql, plan,
				diff.excerpt(ARRAY(SELECT unnest(ref_r) EXCEPT ALL SELECT unnest(r))),
				diff.excerpt(ARRAY(SELECT unnest(r) EXCEPT ALL SELECT unnest(ref_r))),
				diff.excerpt(r), diff.excerpt(ref_r),
				CASE WHEN diff.sorted(again.r) = diff.sorted(r) THEN 'the same result'
					WHEN diff.sorted(again.r) = diff.sorted(ref_r) THEN 'the right result'
					ELSE 'yet another result' END,
				pg_current_snapshot());
END
$$;

-- How many cursors are to be slow
CREATE FUNCTION diff.patience() RETURNS float8 LANGUAGE sql AS
	'SELECT coalesce(nullif(current_setting(''diff.patience'', true), ''''), ''0.1'')::float8';

-- A random walk with a scrollable cursor over the result, which is known
CREATE FUNCTION diff.walk(q diff.query, plan text, ref_r text[], ref_k text[])
RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	c refcursor;
	row record;
	n int := cardinality(ref_k);
	pos int := 0;
	distance int;
	step text;
	slowly bool := random() < diff.patience();	-- much happens between the steps
BEGIN
	OPEN c SCROLL FOR EXECUTE q.sql;
	FOR i IN 1..CASE WHEN slowly THEN 25 ELSE 60 END LOOP
		IF slowly THEN
			PERFORM pg_sleep(random() * 0.1);
		END IF;
		distance := diff.upto(2 * least(n, 100)) - least(n, 100);
		step := diff.pick('next', 'next', 'prior', 'prior', 'relative', 'absolute', 'last', 'first');
		CASE step
			WHEN 'next' THEN FETCH NEXT FROM c INTO row; pos := pos + 1;
			WHEN 'prior' THEN FETCH PRIOR FROM c INTO row; pos := pos - 1;
			WHEN 'relative' THEN FETCH RELATIVE distance FROM c INTO row; pos := pos + distance;
			WHEN 'absolute' THEN
				distance := diff.upto(n + 1);
				FETCH ABSOLUTE distance FROM c INTO row; pos := distance;
			WHEN 'last' THEN FETCH LAST FROM c INTO row; pos := n;
			WHEN 'first' THEN FETCH FIRST FROM c INTO row; pos := 1;
		END CASE;
		pos := greatest(0, least(pos, n + 1));
		IF pos BETWEEN 1 AND n AND row IS NULL OR pos NOT BETWEEN 1 AND n AND row IS NOT NULL THEN
			PERFORM diff.complain(q, format('cursor at %s of %s: %s', pos, n, row), plan, '{}', ref_r);
		ELSIF pos BETWEEN 1 AND n AND (row.k <> ref_k[pos] OR q.total AND row.r <> ref_r[pos]) THEN
			PERFORM diff.complain(q, format('cursor at %s of %s has key %s instead of %s', pos, n,
				row.k, ref_k[pos]), plan, ARRAY[row.r], ref_r);
		END IF;
	END LOOP;
	CLOSE c;
END
$$;

CREATE TYPE diff.counts AS
(
	compared int, through_index int, index_only int, bitmap int, backward int,
	parallel int, cursors int, rows bigint
);

-- Compares n queries.  Must run in one snapshot: REPEATABLE READ.
CREATE FUNCTION diff.compare(n int, only_tab name DEFAULT NULL) RETURNS diff.counts LANGUAGE plpgsql AS
$$
DECLARE
	total diff.counts := (0, 0, 0, 0, 0, 0, 0, 0);
	x diff.idx;
	q diff.query;
	ref record;
	result record;
	plan text;
	verdict text;
BEGIN
	IF current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable') THEN
		RAISE EXCEPTION 'isolation level is %', current_setting('transaction_isolation');
	END IF;
	FOR i IN 1..n LOOP
		SELECT * INTO x FROM diff.idx WHERE tab = coalesce(only_tab, tab) ORDER BY random() LIMIT 1;
		q := CASE WHEN random() < 0.7 THEN diff.select_query(x) ELSE diff.other_query(x) END;

		-- In either order: the second one finds what the first one has set
		IF random() < 0.5 THEN
			PERFORM diff.plan(false);
			SELECT * INTO ref FROM diff.run(q.sql);
			PERFORM diff.plan(true, q.kind);
			plan := diff.explained(q.sql);
			SELECT * INTO result FROM diff.run(q.sql);
		ELSE
			PERFORM diff.plan(true, q.kind);
			plan := diff.explained(q.sql);
			SELECT * INTO result FROM diff.run(q.sql);
			PERFORM diff.plan(false);
			SELECT * INTO ref FROM diff.run(q.sql);
			PERFORM diff.plan(true, q.kind);
		END IF;

		verdict := diff.verdict(q, result.r, result.k, ref.r, ref.k);
		IF verdict IS NOT NULL THEN
			PERFORM diff.complain(q, verdict, plan, result.r, ref.r);
		END IF;
		IF q.in_order AND random() < 0.1 + diff.patience() / 2 THEN
			PERFORM diff.walk(q, plan, ref.r, ref.k);
			total.cursors := total.cursors + 1;
		END IF;

		total.compared := total.compared + 1;
		total.rows := total.rows + cardinality(ref.r);
		total.through_index := total.through_index + (plan ~ 'Index')::int;
		total.index_only := total.index_only + (plan ~ 'Index Only Scan')::int;
		total.bitmap := total.bitmap + (plan ~ 'Bitmap Index Scan')::int;
		total.backward := total.backward + (plan ~ 'Scan Backward')::int;
		total.parallel := total.parallel + (plan ~ 'Gather')::int;
	END LOOP;
	RETURN total;
END
$$;

-- No key of a unique index is in its table twice.
CREATE FUNCTION diff.no_duplicates() RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	x diff.idx;
	keys text;
	found text;
BEGIN
	PERFORM diff.plan(false);
	FOR x IN SELECT * FROM diff.idx WHERE uniq LOOP
		keys := array_to_string(x.keys, ', ');
		EXECUTE format('SELECT ROW(%s)::text FROM diff.%I WHERE num_nulls(%1$s) = 0 AND %3$s GROUP BY %1$s HAVING count(*) > 1 LIMIT 1',
			keys, x.tab, coalesce(nullif(x.predicate, ''), 'true')) INTO found;
		IF found IS NOT NULL THEN
			RAISE EXCEPTION 'difference: % is twice in %', found, x.tab USING ERRCODE = 'EUDIF';
		END IF;
	END LOOP;
END
$$;

-- The comparison itself must notice what it is for.
CREATE FUNCTION diff.self_test() RETURNS text LANGUAGE sql AS
$$
	SELECT string_agg(what, ', ') FROM (VALUES
		('a missing row', diff.verdict(('', '', false, false, false), '{a}', '{1}', '{a,b}', '{1,1}') IS NOT NULL),
		('another row', diff.verdict(('', '', false, false, false), '{a,c}', '{1,1}', '{a,b}', '{1,1}') IS NOT NULL),
		('a row twice', diff.verdict(('', '', false, false, false), '{a,a}', '{1,1}', '{a,b}', '{1,1}') IS NOT NULL),
		('the wrong order', diff.verdict(('', '', true, false, false), '{a,b}', '{2,1}', '{a,b}', '{1,2}') IS NOT NULL),
		('the wrong limit', diff.verdict(('', '', true, true, false), '{a,c}', '{1,3}', '{a,b}', '{1,2}') IS NOT NULL),
		('the wrong total order', diff.verdict(('', '', true, true, true), '{b,a}', '{1,1}', '{a,b}', '{1,1}') IS NOT NULL),
		('no difference', diff.verdict(('', '', true, false, false), '{b,a,c}', '{1,1,2}', '{a,b,c}', '{1,1,2}') IS NULL)
	) t (what, noticed) WHERE noticed IS NOT TRUE
$$;
