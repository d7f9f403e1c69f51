--
-- Collations of ICU (collations_1.out: a server or an encoding without them)
--
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu'
	AND collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database())))
	OR current_setting('server_encoding') IN ('SQL_ASCII', 'MULE_INTERNAL') AS no_icu \gset
\if :no_icu
\quit
\endif
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE words (id int, w text, c text COLLATE nocase, u text COLLATE "und-x-icu", b char(4) COLLATE nocase);
INSERT INTO words SELECT i, s, s, s, s FROM (SELECT i,
	(array['a', 'A', 'b', 'B', 'aB', 'Ab', 'ab', 'AB', '', 'a-b', NULL])[1 + i * 7 % 11] AS s
	FROM generate_series(1, 110) i) r;
CREATE INDEX words_c ON words USING euno (c, id);
CREATE INDEX words_u ON words USING euno (u DESC, id);
CREATE INDEX words_b ON words USING euno (b, id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id, c FROM words WHERE c = 'AB' ORDER BY c, id;
EXPLAIN (COSTS OFF) SELECT id, u FROM words ORDER BY u DESC, id;
-- equal are all spellings, and each comes back as it went in
SELECT c, count(*) FROM words WHERE c = 'AB' GROUP BY c COLLATE "C", c ORDER BY c COLLATE "C";
SELECT b, count(*) FROM words WHERE b = 'AB' GROUP BY b COLLATE "C", b ORDER BY b COLLATE "C";
SELECT count(*) FROM words WHERE c >= 'AB' AND c < 'b';
SELECT count(*) FROM words WHERE u = 'AB';
SELECT count(*) FROM words WHERE u > 'ab' AND u <= 'b';
CREATE TABLE ordered AS
	SELECT 1 AS q, row_number() OVER () AS n, id, w FROM (SELECT id, c AS w FROM words ORDER BY c, id) s
	UNION ALL
	SELECT 2, row_number() OVER () AS n, id, w FROM (SELECT id, u AS w FROM words ORDER BY u DESC, id) s
	UNION ALL
	SELECT 3, row_number() OVER () AS n, id, w FROM (SELECT id, b::text AS w FROM words ORDER BY b, id) s;
DROP INDEX words_c, words_u, words_b;
RESET enable_seqscan;
RESET enable_sort;
SELECT count(*) FROM ordered;
SELECT * FROM ordered EXCEPT (
	SELECT 1 AS q, row_number() OVER () AS n, id, w FROM (SELECT id, c AS w FROM words ORDER BY c, id) s
	UNION ALL
	SELECT 2, row_number() OVER () AS n, id, w FROM (SELECT id, u AS w FROM words ORDER BY u DESC, id) s
	UNION ALL
	SELECT 3, row_number() OVER () AS n, id, w FROM (SELECT id, b::text AS w FROM words ORDER BY b, id) s)
ORDER BY 1, 2;
-- "=" would find what the order of characters keeps apart
CREATE INDEX ON words USING euno (c text_pattern_ops);
CREATE INDEX ON words USING euno (b bpchar_pattern_ops);
CREATE INDEX words_p ON words USING euno (u text_pattern_ops);
DROP TABLE words, ordered;
-- so many that there are fences
CREATE TABLE texts (id int, t text COLLATE "und-x-icu", c text COLLATE nocase, b char(300) COLLATE "und-x-icu");
CREATE FUNCTION add_texts(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO texts SELECT i, s, s, s FROM (SELECT i, CASE i % 5
		WHEN 0 THEN md5(i::text)
		WHEN 1 THEN 'http://www.example.org/' || i
		WHEN 2 THEN upper(md5((i % 700)::text))
		WHEN 3 THEN repeat(chr(97 + i % 26), i % 300)
		ELSE nullif(chr(233) || i % 300, chr(233) || 4) END AS s
		FROM generate_series(first, last) i) r
$$;
SELECT add_texts(1, 10000);
CREATE INDEX texts_t ON texts USING euno (t);
CREATE INDEX texts_d ON texts USING euno (t DESC, id);
CREATE INDEX texts_c ON texts USING euno (c);
CREATE INDEX texts_b ON texts USING euno (b);
SELECT add_texts(10001, 20000);
DELETE FROM texts WHERE id % 7 = 0;
VACUUM ANALYZE texts;
SELECT i, euno_index_check(i) FROM unnest(array['texts_t', 'texts_d', 'texts_c', 'texts_b']::regclass[]) i;
CREATE FUNCTION text_answers() RETURNS TABLE (what text, n bigint) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT 'pairs', count(*) FROM texts x JOIN texts y ON x.t = y.t
		UNION ALL SELECT 'pairs without case', count(*) FROM texts x JOIN texts y ON x.c = y.c
		UNION ALL SELECT 'pairs of char', count(*) FROM texts x JOIN texts y ON x.b = y.b
		UNION ALL SELECT 'range', count(*) FROM texts WHERE t > 'c0' AND t <= 'http://www.example.org/4'
		UNION ALL SELECT 'range without case', count(*) FROM texts WHERE c >= 'C0' AND c < 'HTTP://www.example.org/4'
		UNION ALL SELECT 'range of char', count(*) FROM texts WHERE b >= 'c0' AND b < 'http://www.example.org/4'
		UNION ALL SELECT 'two columns', count(*) FROM texts x JOIN texts y ON x.t = y.t AND y.id BETWEEN x.id AND x.id + 700
		UNION ALL SELECT 'NULL', count(*) FROM texts WHERE t IS NULL
		UNION ALL SELECT 'list', count(*) FROM texts WHERE t = ANY (array(SELECT t FROM texts WHERE id % 100 < 3));
END
$$;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CREATE TABLE indexed AS SELECT * FROM text_answers();
SELECT count(*), count(*) FILTER (WHERE before < t) AS bad FROM
	(SELECT t, lag(t) OVER () AS before FROM (SELECT t FROM texts ORDER BY t DESC, id OFFSET 0) s) r;
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_mergejoin;
DROP INDEX texts_t, texts_d, texts_c, texts_b;
CREATE TABLE plain AS SELECT * FROM text_answers();
SELECT count(*) FROM indexed WHERE n > 0;
SELECT * FROM indexed EXCEPT SELECT * FROM plain;
DROP TABLE texts, indexed, plain;
DROP FUNCTION add_texts, text_answers;
DROP COLLATION nocase;
