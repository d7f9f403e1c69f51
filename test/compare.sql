-- Through the index (the plan must match the pattern) and without: the same
-- rows, and in the same order if the query has one?
CREATE FUNCTION compare(query text, pattern text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	with_index text[];
	without text[];
	scans text[] := ARRAY['enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan'];
	allowed text[] := ARRAY(SELECT current_setting(s) FROM unnest(scans) s);
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
		set_config('enable_hashjoin', 'off', true), set_config('enable_hashagg', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP plan := plan || line || E'\n'; END LOOP;
	IF plan !~ pattern THEN
		RETURN 'plan: ' || plan;
	END IF;
	EXECUTE format('SELECT array_agg(r::text) FROM (%s) r', query) INTO with_index;
	PERFORM set_config(s, 'off', true) FROM unnest(scans) s;
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true),
		set_config('enable_hashjoin', 'on', true);
	EXECUTE format('SELECT array_agg(r::text) FROM (%s) r', query) INTO without;
	PERFORM set_config(s, a, true) FROM unnest(scans, allowed) u (s, a);
	IF query !~ 'ORDER BY' THEN
		with_index := ARRAY(SELECT unnest(with_index) AS r ORDER BY 1);
		without := ARRAY(SELECT unnest(without) AS r ORDER BY 1);
	END IF;
	IF with_index IS DISTINCT FROM without THEN
		RETURN format('%s rows, %s', cardinality(with_index), cardinality(without));
	END IF;
	RETURN coalesce(cardinality(with_index), 0) || ' rows';
END $$;
