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
DROP COLLATION nocase;
