-- Builds sort entries in several ways: not at all if they come in order, as
-- two numbers if all are short and of one length, else in a buffer; in memory,
-- or in runs.  The order must be right, and no entry lost, whatever comes.
SET max_parallel_maintenance_workers = 0;
CREATE TABLE builds AS
	SELECT n AS ascending, -n AS descending,
		hashint8(n)::bigint * 4294967296 + hashint8(-n) AS random,
		n % 7 AS few, (n % 2)::float8 AS halves,
		CASE WHEN n % 1000 <> 0 THEN n END AS holes,
		CASE WHEN n > 70000 THEN -0.0 ELSE n END::float8 AS payload_late,
		md5(n::text) AS long
	FROM generate_series(1, 80000) AS n;

CREATE FUNCTION build(columns text, memory text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SET LOCAL maintenance_work_mem = %L', memory);
	EXECUTE format('CREATE INDEX builds_index ON builds USING euno (%s)', columns);
	PERFORM euno_index_check('builds_index', true);
	DROP INDEX builds_index;
	RETURN 'ok';
END $$;

SELECT columns, memory, build(columns, memory)
	FROM unnest(ARRAY['ascending', 'descending', 'random', 'few', 'halves', 'holes',
					  'holes NULLS FIRST', 'payload_late', 'few, halves', 'few, few',
					  'random) INCLUDE (few', 'long COLLATE "C"', 'long']) WITH ORDINALITY AS c(columns, number),
		unnest(ARRAY['1MB', '64MB']) AS m(memory)
	ORDER BY number, memory;

DROP TABLE builds;
DROP FUNCTION build;
