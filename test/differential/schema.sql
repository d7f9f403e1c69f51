-- Tables and indexes of the differential test, and a description of them that
-- the statements are made from.  Called with the variable "am".
--
-- Every column has a generator: an SQL expression that calls random().  The
-- generators draw from small sets, so that equal keys, neighbors and misses
-- are all frequent, and they give values that compare equal and look different
-- (0 and -0, 1.0 and 1.00) where the type has any.

CREATE SCHEMA diff;

SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu') AS icu \gset
\if :icu
CREATE COLLATION diff.icu (provider = icu, locale = 'en');
CREATE COLLATION diff.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
\else
CREATE COLLATION diff.icu FROM "C";
CREATE COLLATION diff.nocase FROM "C";
\endif

CREATE TYPE diff.mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE diff.mood ADD VALUE 'so so' BEFORE 'ok';

-- A column, or an expression that an index has as a key
CREATE TABLE diff.col
(
	tab name,
	name text,
	type text,
	generator text,				-- NULL: filled by its default
	canon text,					-- equal for equal values; NULL: the text
	crosses text[] DEFAULT '{}',	-- arguments of other types, or out of range
	is_column bool DEFAULT true,
	PRIMARY KEY (tab, name)
);

CREATE TABLE diff.idx
(
	name name PRIMARY KEY,
	tab name,
	keys text[],				-- in diff.col
	orders text[],				-- 'ASC NULLS LAST' and so on, or '' for each key
	include text[] DEFAULT '{}',
	predicate text DEFAULT '',
	options text DEFAULT '',
	uniq bool DEFAULT false
);

-- How many rows each table is kept at
CREATE TABLE diff.tab
(
	name name PRIMARY KEY,
	rows int,
	options text
);

INSERT INTO diff.tab VALUES
	('num', 6000, 'WITH (fillfactor = 85)'),
	('txt', 3000, ''),
	('misc', 2500, 'WITH (fillfactor = 70)'),
	('dup', 4000, 'WITH (fillfactor = 60)'),
	('parted', 3000, 'PARTITION BY HASH (id)'),
	('uniq', 1500, 'WITH (fillfactor = 80)');

INSERT INTO diff.col (tab, name, type, generator, canon, crosses) VALUES
	('num', 'id', 'bigint', NULL, NULL, '{}'),
	('num', 'i2', 'smallint', 'trunc(random() * 40 - 20)::int2', NULL,
	 '{70000::int4, -70000::int4, 5000000000::int8, 7::int4, 3::int8}'),
	('num', 'i4', 'integer', 'trunc(random() * 3000)::int4', NULL,
	 '{3000000000::int8, -3000000000::int8, 1000::int8, 12::int2, 2147483647, (-2147483648)}'),
	('num', 'i8', 'bigint', 'trunc(random() ^ 3 * 100000)::int8 * 1000003', NULL,
	 '{0::int2, 100000300::int4, 9223372036854775807, (-9223372036854775808)}'),
	('num', 'f4', 'real',
	 '(ARRAY[0, ''-0'', 1.1, ''NaN'', ''Infinity'', ''-Infinity'', 1e30, (random() * 100 - 50)::numeric(9,2)]::float4[])[1 + trunc(random() ^ 0.3 * 8)::int]',
	 'CASE WHEN f4 = 0 THEN 0 ELSE f4 END', '{1.1::float8, 1e300::float8, (-1e300)::float8, 0::float8, ''NaN''::float8, 1e-60::float8}'),
	('num', 'f8', 'double precision',
	 '(ARRAY[0, ''-0'', 1.5, ''NaN'', ''Infinity'', ''-Infinity'', 1e300, trunc(random() * 200 - 100) / 4]::float8[])[1 + trunc(random() ^ 0.3 * 8)::int]',
	 'CASE WHEN f8 = 0 THEN 0 ELSE f8 END', '{1.5::float4, ''-0''::float4, ''NaN''::float4}'),
	('num', 'n', 'numeric',
	 'CASE trunc(random() * 20) WHEN 0 THEN ''NaN'' WHEN 1 THEN ''Infinity'' WHEN 2 THEN ''-Infinity'' WHEN 3 THEN 1e40 WHEN 4 THEN round(-1e-20, 30) ELSE round((random() * 60 - 30)::numeric(9,1), trunc(random() * 5)::int) END::numeric',
	 'CASE WHEN n IN (''NaN'', ''Infinity'', ''-Infinity'') THEN n ELSE trim_scale(n) END', '{7, 3.5}'),
	('num', 'b', 'boolean', 'random() < 0.4', NULL, '{}'),
	('num', 'note', 'text', 'repeat(chr(97 + trunc(random() * 26)::int), trunc(random() * 40)::int)', NULL, '{}'),

	('txt', 'id', 'bigint', NULL, NULL, '{}'),
	('txt', 'c', 'text COLLATE "C"',
	 'CASE trunc(random() * 60) WHEN 0 THEN '''' WHEN 1 THEN repeat(chr(97 + trunc(random() * 4)::int), 100 * trunc(random() * 25)::int) WHEN 2 THEN repeat(''x'', 300) || trunc(random() * 20) ELSE substr(md5(trunc(random() * 700)::text), 1, 1 + trunc(random() * 9)::int) END',
	 NULL, '{''''::text, ''zz''::name}'),
	('txt', 'd', 'text', '(ARRAY[''a'', ''A'', ''aa'', ''Ä'', ''ä'', ''b'', ''B'', ''é'', '' '', ''a b'', ''ab'', ''a-b'', ''ß'', ''ss'', ''😀''])[1 + trunc(random() * 15)::int] || trunc(random() * 30)',
	 NULL, '{''a''::name}'),
	('txt', 'icu', 'text COLLATE diff.icu', '(ARRAY[''a'', ''A'', ''aa'', ''Ä'', ''ä'', ''b'', ''B'', ''é'', '' '', ''a b'', ''ab'', ''a-b'', ''ß'', ''ss''])[1 + trunc(random() * 14)::int] || repeat(''q'', trunc(random() * 3)::int)',
	 NULL, '{}'),
	('txt', 'nocase', 'text COLLATE diff.nocase', '(ARRAY[''ab'', ''Ab'', ''aB'', ''AB'', ''b'', ''B'', ''c'', ''''])[1 + trunc(random() * 8)::int] || trunc(random() * 20)',
	 'lower(nocase)', '{}'),
	('txt', 'bp', 'character(6)', 'substr(''abcde'', 1, trunc(random() * 6)::int) || trunc(random() * 4)', 'bp::text', '{}'),
	('txt', 'v', 'varchar(20)', 'chr(97 + trunc(random() * 20)::int) || trunc(random() * 9)', NULL, '{}'),
	('txt', 'nm', 'name', 'chr(65 + trunc(random() * 50)::int)', NULL, '{''a''::text}'),
	('txt', 'by', 'bytea', 'substr(decode(md5(trunc(random() * 200)::text), ''hex''), 1, trunc(random() * 4)::int)', NULL, '{}'),
	('txt', 'note', 'text', 'repeat(md5(random()::text), trunc(random() * 4)::int)', NULL, '{}'),

	('misc', 'id', 'bigint', NULL, NULL, '{}'),
	('misc', 'u', 'uuid', 'md5(trunc(random() * 900)::text)::uuid', NULL, '{}'),
	('misc', 'ts', 'timestamptz', '''2024-03-30 22:00+00''::timestamptz + trunc(random() * 200) * interval ''15 min''', NULL,
	 '{''infinity''::date, ''2024-03-31''::date, ''2024-03-31 02:30''::timestamp, ''-infinity''::timestamp}'),
	('misc', 'tm', 'timestamp', '''2024-03-31''::timestamp + trunc(random() * 300) * interval ''7 min''', NULL,
	 '{''2024-04-01''::date, ''2024-03-31 10:00+02''::timestamptz}'),
	('misc', 'dt', 'date', '''2024-02-27''::date + trunc(random() * 60)::int', NULL,
	 '{''2024-03-31 12:00''::timestamp, ''2024-03-31 23:30+02''::timestamptz, ''infinity''::timestamptz}'),
	('misc', 'iv', 'interval', '(ARRAY[''1 mon'', ''30 days'', ''720 hours'', ''1 day'', ''24:00'', ''-1 mon'', ''0''])[1 + trunc(random() * 7)::int]::interval + trunc(random() * 10) * interval ''1 hour''',
	 'extract(epoch FROM iv)', '{}'),
	('misc', 'e', 'diff.mood', '(enum_range(NULL::diff.mood))[1 + trunc(random() * 4)::int]', NULL, '{}'),
	('misc', 'arr', 'int[]', '(ARRAY[trunc(random() * 8)::int, trunc(random() * 3)::int, NULL])[1:trunc(random() * 4)::int]', NULL, '{}'),
	('misc', 'tags', 'text[]', '(ARRAY[''a'', ''B'', ''b'', '''', NULL, repeat(''c'', trunc(random() * 3)::int)])[1 + trunc(random() * 6)::int:trunc(random() * 7)::int]', NULL, '{}'),
	('misc', 'words', 'text[] COLLATE "C"', '(ARRAY[''a'', ''B'', '''', NULL, repeat(''c'', trunc(random() * 3)::int)])[1 + trunc(random() * 5)::int:trunc(random() * 6)::int]', NULL, '{}'),
	('misc', 'days', 'datemultirange', 'datemultirange(daterange(''2024-01-01''::date + trunc(random() * 9)::int, ''2024-01-10''::date + trunc(random() * 9)::int, ''[]''), daterange(CASE WHEN random() < 0.8 THEN ''2024-01-30''::date + trunc(random() * 3)::int END, NULL))', NULL, '{}'),
	('misc', 'ip', 'inet', '(''10.0.'' || trunc(random() * 4) || ''.'' || trunc(random() * 30) || ''/'' || 24 + trunc(random() * 9))::inet', NULL, '{}'),
	('misc', 'j', 'jsonb', 'jsonb_build_object(''k'', trunc(random() * 20), ''l'', CASE WHEN random() < 0.5 THEN to_jsonb(1.0) ELSE to_jsonb(1.00) END)', 'j->>''k'' || '' '' || trim_scale((j->>''l'')::numeric)', '{}'),
	('misc', 'r', 'int4range', 'int4range(trunc(random() * 10)::int, 10 + trunc(random() * 10)::int)', NULL, '{}'),
	('misc', 'note', 'text', 'NULL::text', NULL, '{}'),

	('dup', 'id', 'bigint', NULL, NULL, '{}'),
	('dup', 'few', 'integer', 'trunc(random() ^ 4 * 12)::int', NULL, '{11::int8, (-1)::int8}'),
	('dup', 'one', 'text COLLATE "C"', '''always the same''::text', NULL, '{}'),
	('dup', 'churn', 'bigint', 'trunc(random() * 50)::int8', NULL, '{}'),
	('dup', 'note', 'text', 'md5(random()::text)', NULL, '{}'),

	('parted', 'id', 'bigint', NULL, NULL, '{}'),
	('parted', 'a', 'integer', 'trunc(random() * 100)::int', NULL, '{}'),
	('parted', 'c', 'text COLLATE "C"', 'md5(trunc(random() * 300)::text)', NULL, '{}'),
	('parted', 'note', 'text', 'NULL::text', NULL, '{}'),

	-- Sparse, so that a statement for many rows often has no duplicate
	('uniq', 'id', 'bigint', NULL, NULL, '{}'),
	('uniq', 'k', 'bigint', 'trunc(random() * 100000)::int8', NULL, '{50000::int4, 7::int2}'),
	('uniq', 'n', 'interval', 'CASE WHEN random() < 0.5 THEN justify_hours(trunc(random() * 100000) * interval ''1 hour'') ELSE trunc(random() * 100000) * interval ''1 hour'' END',
	 'extract(epoch FROM n)', '{}'),
	('uniq', 'c', 'text COLLATE "C"', 'chr(97 + trunc(random() * 20)::int)', NULL, '{}'),
	('uniq', 'note', 'text', 'md5(random()::text)', NULL, '{}');

INSERT INTO diff.col (tab, name, type, generator, is_column) VALUES
	('num', '(i4 % 100)', 'integer', 'trunc(random() * 100)::int', false),
	('num', '(abs(i2))', 'smallint', 'trunc(random() * 20)::int2', false),
	('txt', 'lower(d)', 'text', '(ARRAY[''a'', ''b'', ''ä'', ''é'', ''ss''])[1 + trunc(random() * 5)::int] || trunc(random() * 30)', false),
	('txt', 'length(c)', 'integer', 'trunc(random() * 12)::int', false);

INSERT INTO diff.idx (name, tab, keys, orders, include, predicate, options) VALUES
	('x_num_i4', 'num', '{i4}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_num_i8', 'num', '{i8}', '{DESC NULLS FIRST}', '{f8,n}', '', 'WITH (fillfactor = 70)'),
	('x_num_f8', 'num', '{f8}', '{ASC NULLS FIRST}', '{}', '', ''),
	('x_num_f4', 'num', '{f4}', '{DESC NULLS LAST}', '{i2,note}', '', ''),
	('x_num_n', 'num', '{n,id}', '{ASC NULLS LAST,DESC NULLS FIRST}', '{}', '', ''),
	('x_num_multi', 'num', '{i2,i4,id}', '{ASC NULLS FIRST,DESC NULLS LAST,ASC NULLS LAST}', '{}', '', ''),
	('x_num_bool', 'num', '{b,i2,f4}', '{ASC NULLS LAST,ASC NULLS LAST,DESC NULLS FIRST}', '{}', '', ''),
	('x_num_expr', 'num', '{(i4 % 100),i8}', '{ASC NULLS LAST,ASC NULLS LAST}', '{}', '', ''),
	('x_num_part', 'num', '{i4}', '{ASC NULLS LAST}', '{i2}', 'b', ''),
	('x_num_expart', 'num', '{(abs(i2))}', '{DESC NULLS FIRST}', '{}', 'i4 IS NOT NULL', ''),

	('x_txt_c', 'txt', '{c}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_txt_c_id', 'txt', '{v,id}', '{DESC NULLS LAST,DESC NULLS LAST}', '{nm}', '', ''),
	('x_txt_d', 'txt', '{d}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_txt_icu', 'txt', '{icu}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_txt_nocase', 'txt', '{nocase,v}', '{DESC NULLS FIRST,ASC NULLS LAST}', '{}', '', ''),
	('x_txt_bp', 'txt', '{bp}', '{DESC NULLS FIRST}', '{}', '', ''),
	('x_txt_nm', 'txt', '{nm,bp}', '{ASC NULLS LAST,ASC NULLS FIRST}', '{}', '', ''),
	('x_txt_by', 'txt', '{by,c}', '{ASC NULLS FIRST,DESC NULLS LAST}', '{}', 'length(c) < 1000', ''),
	('x_txt_lower', 'txt', '{lower(d)}', '{ASC NULLS LAST}', '{d}', '', ''),
	('x_txt_len', 'txt', '{length(c),id}', '{ASC NULLS LAST,ASC NULLS LAST}', '{}', '', ''),

	('x_misc_u', 'misc', '{u}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_misc_ts', 'misc', '{ts,id}', '{DESC NULLS FIRST,ASC NULLS LAST}', '{}', '', ''),
	('x_misc_tm', 'misc', '{tm}', '{ASC NULLS LAST}', '{iv}', '', ''),
	('x_misc_dt', 'misc', '{dt,e}', '{ASC NULLS LAST,DESC NULLS LAST}', '{}', '', ''),
	('x_misc_iv', 'misc', '{iv}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_misc_e', 'misc', '{e,u}', '{DESC NULLS FIRST,ASC NULLS LAST}', '{}', '', ''),
	('x_misc_arr', 'misc', '{arr,id}', '{ASC NULLS FIRST,ASC NULLS LAST}', '{}', '', ''),
	('x_misc_ip', 'misc', '{ip}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_misc_tags', 'misc', '{tags,words}', '{ASC NULLS LAST,DESC NULLS FIRST}', '{}', '', ''),
	('x_misc_words', 'misc', '{words,days}', '{DESC NULLS LAST,ASC NULLS LAST}', '{tags}', '', ''),
	('x_misc_j', 'misc', '{j}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_misc_r', 'misc', '{e,r}', '{ASC NULLS LAST,DESC NULLS LAST}', '{arr}', 'id % 3 > 0', ''),

	('x_dup_few', 'dup', '{few}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_dup_one', 'dup', '{one}', '{DESC NULLS FIRST}', '{}', '', ''),
	('x_dup_fewid', 'dup', '{few,id}', '{ASC NULLS LAST,DESC NULLS FIRST}', '{}', '', ''),
	('x_dup_churn', 'dup', '{churn}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_dup_onefew', 'dup', '{one,few}', '{ASC NULLS LAST,ASC NULLS FIRST}', '{}', 'churn > 10', ''),

	('x_parted_a', 'parted', '{a}', '{ASC NULLS LAST}', '{}', '', ''),
	('x_parted_c', 'parted', '{c,id}', '{DESC NULLS LAST,ASC NULLS LAST}', '{}', '', '');

INSERT INTO diff.idx (name, tab, keys, orders, include, predicate, options, uniq) VALUES
	('x_uniq_k', 'uniq', '{k}', '{ASC NULLS LAST}', '{n}', '', '', true),
	('x_uniq_n', 'uniq', '{n}', '{DESC NULLS LAST}', '{}', 'c < ''p''', '', true),
	('x_uniq_ck', 'uniq', '{c,k}', '{DESC NULLS LAST,ASC NULLS FIRST}', '{}', '', '', true);

-- What is to be created and filled
CREATE FUNCTION diff.table_definition(t diff.tab) RETURNS text LANGUAGE sql AS
$$
	SELECT format('CREATE TABLE diff.%I (%s) %s', (t).name,
		string_agg(format('%I %s%s', c.name, c.type,
				CASE WHEN c.generator IS NULL THEN ' DEFAULT nextval(''diff.ids'')' ELSE '' END),
			', ' ORDER BY c.generator IS NOT NULL, c.name), (t).options)
	FROM diff.col c WHERE c.tab = (t).name AND c.is_column
$$;

CREATE FUNCTION diff.index_definition(x diff.idx, am text, how text DEFAULT '', prefix text DEFAULT '')
RETURNS text LANGUAGE sql AS
$$
	SELECT format('CREATE %s INDEX %s %I ON diff.%I USING %I (%s) %s %s %s',
		CASE WHEN (x).uniq THEN 'UNIQUE' END, how, prefix || (x).name, (x).tab, am,
		(SELECT string_agg(k || ' ' || o, ', ' ORDER BY n)
			FROM unnest((x).keys, (x).orders) WITH ORDINALITY AS u (k, o, n)),
		CASE WHEN (x).include <> '{}' THEN format('INCLUDE (%s)', array_to_string((x).include, ', ')) END,
		(x).options,
		CASE WHEN (x).predicate <> '' THEN 'WHERE ' || (x).predicate END)
$$;

CREATE FUNCTION diff.insertion(t name, count int) RETURNS text LANGUAGE sql AS
$$
	SELECT format('INSERT INTO diff.%I (%s) SELECT %s FROM generate_series(1, %s)', t,
		string_agg(quote_ident(c.name), ', ' ORDER BY c.name),
		string_agg(format('CASE WHEN random() < 0.08 THEN NULL ELSE %s END', c.generator),
			', ' ORDER BY c.name),
		count)
	FROM diff.col c WHERE c.tab = t AND c.is_column AND c.generator IS NOT NULL
$$;

CREATE TABLE diff.setting (am text);
INSERT INTO diff.setting VALUES (:'am');
CREATE SEQUENCE diff.ids;

\set QUIET on
SELECT diff.table_definition(t) FROM diff.tab t ORDER BY name \gexec
SELECT format('CREATE TABLE diff.parted%s PARTITION OF diff.parted FOR VALUES WITH (MODULUS 3, REMAINDER %s)', n, n)
	FROM generate_series(0, 2) n \gexec

-- Half of the rows are there before the indexes, so that both building and
-- inserting are tried; all where an insertion could be refused.
SELECT setseed(:seed % 1000003 / 1000003.0) \g /dev/null
SELECT diff.insertion(name, CASE name WHEN 'uniq' THEN rows ELSE rows / 2 END) FROM diff.tab ORDER BY name \gexec
DELETE FROM diff.uniq a USING diff.uniq b WHERE a.id > b.id AND (a.k = b.k OR a.n = b.n);
SELECT diff.index_definition(x, :'am') FROM diff.idx x ORDER BY name \gexec

-- Two thirds of the euno indexes are radix trees, one kind as many as the other,
-- if their keys allow it.
DO $$
DECLARE
	x record;
	kind text;
BEGIN
	FOR x IN SELECT name, row_number() OVER (ORDER BY name) AS n FROM diff.idx
		WHERE options = '' AND (SELECT am FROM diff.setting) = 'euno'
	LOOP
		CONTINUE WHEN x.n % 3 = 0;
		kind := format('(structure = art, sync = %s)', (ARRAY['olc', 'rowex'])[x.n % 3]);
		BEGIN
			EXECUTE format('ALTER INDEX diff.%I SET %s', x.name, kind);
			EXECUTE format('REINDEX INDEX diff.%I', x.name);
			UPDATE diff.idx SET options = 'WITH ' || kind WHERE name = x.name;
		EXCEPTION WHEN feature_not_supported OR wrong_object_type THEN
			-- no encoding as bytes; or partitioned
		END;
	END LOOP;
END $$;
SELECT diff.insertion(name, rows / 2) FROM diff.tab WHERE name <> 'uniq' ORDER BY name \gexec
