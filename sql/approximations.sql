--
-- Approximations of how text is ordered, which lead, and the comparator, which
-- decides (approximations_1.out: a server without ICU, or another encoding)
--
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'cs-x-icu')
	OR current_setting('server_encoding') <> 'UTF8' AS no_icu \gset
\if :no_icu
\quit
\endif
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION shifted (provider = icu, locale = 'und-u-ka-shifted');
SET client_min_messages = warning; -- ICU's versions have other standard names
CREATE COLLATION numbers (provider = icu, locale = 'und-u-kn');
RESET client_min_messages;
-- contractions, accents and cases, what is ignored, numbers, several scripts
CREATE TABLE syllables AS SELECT s, n - 1 AS n FROM unnest(array['', ' ', '  ', 'c', 'ch', 'Ch', 'CH', 'h', 'd', 'D',
	'e', 'é', 'É', 'č', 'Č', 'ss', 'ß', 'æ', 'a-b', 'a b', '-', '_', '.', '''', '1', '9', '09', '10', '0', 'z', 'Z',
	'ж', 'Ж', 'я', 'е', 'ё', 'ω', 'ά', '中', '文', '한', 'か', 'カ', 'ไ', '😀', E'e\u0301', E'\u00AD', E'\t'])
	WITH ORDINALITY AS u(s, n);
CREATE TABLE odd (id int, t text, cs text COLLATE "cs-x-icu", sh text COLLATE shifted, kn text COLLATE numbers,
	nc text COLLATE nocase, b char(30) COLLATE "und-x-icu");
CREATE FUNCTION add_odd(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO odd SELECT id, s, s, s, s, s, s FROM (
		SELECT id, repeat('x', id % 3) || x.s || y.s || z.s AS s FROM generate_series(first, last) id
		JOIN syllables x ON x.n = abs(hashint4(id)) % 48
		JOIN syllables y ON y.n = abs(hashint4(id + 1000000)) % 48
		JOIN syllables z ON z.n = abs(hashint4(id + 2000000)) % 48) r
$$;
CREATE FUNCTION odd_answers() RETURNS TABLE (what text, n numeric) LANGUAGE plpgsql AS $$
DECLARE
	col text;
BEGIN
	FOREACH col IN ARRAY array['t', 'cs', 'sh', 'kn', 'nc', 'b'] LOOP
		RETURN QUERY EXECUTE format('SELECT %1$L || '' pairs'', sum(x.id::numeric * y.id) FROM odd x JOIN odd y ON x.%1$s = y.%1$s
			UNION ALL SELECT %1$L || '' none'', count(*) FROM odd x JOIN odd y ON y.%1$s = (x.%1$s || ''!'')::%2$s
			UNION ALL SELECT %1$L || '' range '' || s, sum(id) FROM syllables JOIN odd ON %1$s > s AND %1$s <= s || ''m''
				WHERE s <> '''' GROUP BY s
			UNION ALL SELECT %1$L || '' order'', sum(place * id) FROM
				(SELECT row_number() OVER () AS place, id FROM (SELECT id FROM odd ORDER BY %1$s, id OFFSET 0) o) p', col, CASE col WHEN 'b' THEN 'bpchar' ELSE 'text' END);
	END LOOP;
END
$$;
SELECT add_odd(1, 2000);
SET enable_mergejoin = off;
CREATE TABLE plain AS SELECT * FROM odd_answers();
DELETE FROM odd WHERE id > 700;
SET enable_hashjoin = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION add_indexed(wrong bool) RETURNS TABLE (answers bigint, bad bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('euno.debug_wrong_guesses', wrong::text, true);
	CREATE INDEX odd_t ON odd USING euno (t, id);
	CREATE INDEX odd_cs ON odd USING euno (cs, id);
	CREATE INDEX odd_sh ON odd USING euno (sh, id);
	CREATE INDEX odd_kn ON odd USING euno (kn, id);
	CREATE INDEX odd_nc ON odd USING euno (nc, id);
	CREATE INDEX odd_b ON odd USING euno (b, id);
	CREATE INDEX odd_one ON odd USING euno (cs);
	CREATE INDEX odd_desc ON odd USING euno (kn DESC);
	CREATE INDEX odd_second ON odd USING euno ((id % 2), sh);
	PERFORM add_odd(701, 2000);
	ANALYZE odd;
	PERFORM euno_index_check(i::regclass, true) FROM unnest(array['odd_t', 'odd_cs', 'odd_sh', 'odd_kn', 'odd_nc',
		'odd_b', 'odd_one', 'odd_desc', 'odd_second']) i;
	RETURN QUERY SELECT count(*), count(*) FILTER (WHERE a.n IS DISTINCT FROM plain.n)
		FROM odd_answers() a FULL JOIN plain USING (what);
	DROP INDEX odd_t, odd_cs, odd_sh, odd_kn, odd_nc, odd_b, odd_one, odd_desc, odd_second;
	DELETE FROM odd WHERE id > 700;
END
$$;
SELECT * FROM add_indexed(false);
SELECT * FROM add_indexed(true);
DROP TABLE odd, plain, syllables;
DROP FUNCTION add_odd, add_indexed, odd_answers;
DROP COLLATION nocase, shifted, numbers;
