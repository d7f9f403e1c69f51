--
-- Abbreviations of keys with text in a collation: what comes before the text
-- and after it, in either direction, also where it is NULL or long
--
CREATE TABLE mixed (id int, a int2, t text, b int8, u text, o oid, c char(12));
CREATE FUNCTION add_mixed(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO mixed SELECT g, h % 3 - 1, CASE h % 6 WHEN 0 THEN concat(repeat('a long one, ', 3 + h % 9), g)
		WHEN 1 THEN concat('short ', h % 40) WHEN 2 THEN repeat('x', h % 130) WHEN 3 THEN concat(chr(40 + h % 80), h)
		WHEN 4 THEN concat('status ', h % 2) END, (h % 21 - 10)::int8 * 1000000007, CASE WHEN h % 7 > 1 THEN md5(h::text) END,
		4294967295 - h % 1000, concat('pad', h % 300)
	FROM (SELECT g, abs(hashint4(g / 2)) AS h FROM generate_series(first, last) g) s
$$;
CREATE TABLE shapes (columns text);
INSERT INTO shapes VALUES ('t'), ('t DESC'), ('t, b'), ('t, b DESC'), ('t DESC, b'), ('t NULLS FIRST, a, b'),
	('a, t'), ('a DESC, t, u, id'), ('b, a, t DESC, u DESC'), ('o, t, u'), ('o DESC, a, b, id, t'),
	('t, u, a'), ('t, u DESC, o'), ('c, t, o'), ('a, c DESC, u DESC, b'), ('t, a, o, b, id, c, u'), ('u, t, id, a, b, c, o'),
	('a, b, o, id, c, t, u'), ('t COLLATE "C", u, b'), ('u, t COLLATE "C", b');
-- how often others have the same, what comes after a tenth of the rows, and the order of all
CREATE FUNCTION mixed_answer(columns text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	names text := regexp_replace(columns, ' (DESC|NULLS FIRST|COLLATE "C")', '', 'g');
	same text := (SELECT string_agg(format('x.%1$s = y.%1$s', n), ' AND ') FROM unnest(string_to_array(names, ', ')) n);
	first text := split_part(columns, ', ', 1);
	answer text;
BEGIN
	EXECUTE format('SELECT concat_ws('' '', (SELECT sum(x.id::numeric * y.id) FROM mixed x JOIN mixed y ON %s),
		(SELECT sum(n) FROM (SELECT (SELECT sum(y.id) FROM mixed y WHERE y.%3$s >= x.%3$s AND y.%3$s < x.%3$s%4$s) AS n
			FROM mixed x WHERE id %% 10 = 0 OFFSET 0) s),
		(SELECT md5(string_agg(concat_ws('','', %5$s), '';'' ORDER BY place)) FROM
			(SELECT row_number() OVER () AS place, * FROM (SELECT * FROM mixed ORDER BY %2$s OFFSET 0) o) p))',
		same, columns, split_part(names, ', ', 1),
		CASE WHEN first ~ '^[tuc]' THEN ' || ''m''' WHEN first ~ '^o' THEN '::int8 + 5' ELSE ' + 5' END, names) INTO answer;
	RETURN answer;
END
$$;
SELECT add_mixed(1, 1500);
ANALYZE mixed;
SET enable_mergejoin = off;
CREATE TABLE plain AS SELECT columns, mixed_answer(columns) AS answer FROM shapes;
CREATE FUNCTION check_indexed(wrong bool) RETURNS TABLE (columns text) LANGUAGE plpgsql AS $$
DECLARE
	shape plain;
	answer text;
BEGIN
	PERFORM set_config('euno.debug_wrong_guesses', wrong::text, true);
	PERFORM set_config(name, 'off', true) FROM unnest(array['enable_hashjoin', 'enable_seqscan', 'enable_bitmapscan', 'enable_sort']) name;
	FOR shape IN SELECT * FROM plain LOOP
		DELETE FROM mixed WHERE id > 500;
		EXECUTE format('CREATE INDEX mixed_index ON mixed USING euno (%s)', shape.columns);
		PERFORM add_mixed(501, 2500);
		DELETE FROM mixed WHERE id > 1500;
		PERFORM euno_index_check('mixed_index', true);
		answer := mixed_answer(shape.columns);
		IF answer IS DISTINCT FROM shape.answer THEN
			columns := concat(shape.columns, ': ', answer, ' instead of ', shape.answer);
			RETURN NEXT;
		END IF;
		DROP INDEX mixed_index;
	END LOOP;
END
$$;
SELECT count(answer) FROM plain;
SELECT * FROM check_indexed(false);
SELECT * FROM check_indexed(true);
DROP TABLE mixed, shapes, plain;
DROP FUNCTION add_mixed, mixed_answer, check_indexed;
-- a type of another alignment, with the comparator of text
SET client_min_messages = warning;
CREATE TYPE wide;
CREATE FUNCTION wide_in(cstring) RETURNS wide LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION wide_out(wide) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE wide (input = wide_in, output = wide_out, internallength = variable, alignment = double, storage = plain, collatable = true);
CREATE FUNCTION wide_lt(wide, wide) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'text_lt';
CREATE FUNCTION wide_eq(wide, wide) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'texteq';
CREATE OPERATOR < (leftarg = wide, rightarg = wide, function = wide_lt);
CREATE OPERATOR = (leftarg = wide, rightarg = wide, function = wide_eq);
CREATE OPERATOR CLASS wide_ops DEFAULT FOR TYPE wide USING euno AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 (wide, wide) bttextcmp(text, text);
CREATE TABLE wides (id int, w wide);
CREATE INDEX wides_w ON wides USING euno (w);
CREATE INDEX wides_id_w ON wides USING euno (id, w);
INSERT INTO wides SELECT i % 10, wide_in(textout(md5((i / 2)::text))) FROM generate_series(1, 3000) i;
SELECT euno_index_check('wides_w', true), euno_index_check('wides_id_w', true);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(n) FROM (SELECT (SELECT count(*) FROM wides WHERE w = wide_in(textout(md5(i::text)))) AS n FROM generate_series(0, 1500) i) s;
SELECT count(*) FROM generate_series(0, 1500) i JOIN wides ON id = i % 10 AND w = wide_in(textout(md5(i::text)));
DROP TABLE wides;
DROP TYPE wide CASCADE;
DROP OPERATOR FAMILY wide_ops USING euno;
