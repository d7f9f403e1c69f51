-- Indexes that are radix trees
CREATE FUNCTION try(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	d text;
	h text;
BEGIN
	EXECUTE q;
	RETURN 'ok';
EXCEPTION WHEN others THEN
	GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
	RETURN SQLSTATE || ': ' || SQLERRM || coalesce(E'\n' || nullif(d, ''), '') || coalesce(E'\n' || nullif(h, ''), '');
END $$;

CREATE TABLE art (id int8, few int, word text COLLATE "C", part numeric[], note text) WITH (autovacuum_enabled = false);
INSERT INTO art SELECT n, n % 7, 'word ' || n % 1000, ARRAY[n::numeric], repeat('x', n % 30) FROM generate_series(1, 20000) n;
INSERT INTO art VALUES (NULL, NULL, NULL, NULL, NULL), (20001, NULL, '', NULL, '');
CREATE INDEX art_id ON art USING euno (id) WITH (structure = art);
CREATE INDEX art_few ON art USING euno (few) WITH (structure = art, sync = rowex);
CREATE INDEX art_word ON art USING euno (word, few DESC NULLS LAST) INCLUDE (note) WITH (structure = art, sync = olc);
SELECT indexrelname, structure, state FROM euno_stat_indexes WHERE relname = 'art' ORDER BY 1;

-- The same answers by index and without
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION answer(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text;
	b text;
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		plan := plan || line;
	END LOOP;
	EXECUTE 'SELECT string_agg(x::text, '';'') FROM (' || q || ') x' INTO a;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	EXECUTE 'SELECT string_agg(x::text, '';'') FROM (' || q || ') x' INTO b;
	RESET enable_seqscan;
	RESET enable_indexscan;
	RESET enable_indexonlyscan;
	SET LOCAL enable_seqscan = off;
	RETURN CASE WHEN a IS DISTINCT FROM b THEN 'different'
		WHEN plan ~ 'Index.* Scan.* using art_' THEN 'same, ' || md5(coalesce(a, '')) ELSE plan END;
END $$;
CREATE VIEW questions AS SELECT * FROM (VALUES
	('SELECT id FROM art WHERE id = 777'),
	('SELECT id FROM art WHERE id BETWEEN 250 AND 1300 ORDER BY id'),
	('SELECT id FROM art WHERE id > 19990 ORDER BY id DESC'),
	('SELECT id FROM art WHERE id IN (5, 1, 4000000000, 19999) ORDER BY id'),
	('SELECT id, few FROM art WHERE id IS NULL'),
	('SELECT few, count(*) FROM art WHERE few >= 3 GROUP BY few ORDER BY few'),
	('SELECT count(*), sum(id) FROM art WHERE few = 6'),
	('SELECT word, few, note FROM art WHERE word = ''word 77'' ORDER BY word, few DESC NULLS LAST, note'),
	('SELECT word FROM art WHERE word >= ''word 99'' AND word < ''word 995'' ORDER BY word DESC'),
	('SELECT count(*) FROM art WHERE word LIKE ''word 12%'''),
	('SELECT id FROM art ORDER BY id NULLS LAST LIMIT 30'),
	('SELECT id FROM (SELECT id FROM art ORDER BY id DESC LIMIT 300) s ORDER BY id')) AS v (q);
SELECT q, answer(q) FROM questions;

-- Changes, and VACUUM
UPDATE art SET id = id + 100000, few = NULL WHERE id % 3 = 0;
DELETE FROM art WHERE id % 5 = 0;
SELECT q FROM questions WHERE answer(q) NOT LIKE 'same, %';
VACUUM art;
INSERT INTO art SELECT n, n % 3, 'word ' || n, ARRAY[n::numeric], 'new' FROM generate_series(1, 20000, 2) n;
SELECT q FROM questions WHERE answer(q) NOT LIKE 'same, %';
SELECT indexrelid::regclass, euno_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 'art'::regclass ORDER BY 1;
DELETE FROM art;
VACUUM art;
SELECT count(*) FROM art WHERE id >= 0;
SELECT indexrelname, entries FROM euno_stat_indexes WHERE relname = 'art' ORDER BY 1;
INSERT INTO art SELECT n, n, n::text FROM generate_series(1, 1000) n;
SELECT q FROM questions WHERE answer(q) NOT LIKE 'same, %';

-- A cursor in both directions
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM art WHERE id > 100 ORDER BY id;
FETCH 2 FROM c;
MOVE 500 FROM c;
FETCH BACKWARD 3 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;

-- The structure is chosen when the tree is built
ALTER INDEX art_id SET (structure = bptree);
REINDEX INDEX art_id;
ALTER INDEX art_few RESET (structure, sync);
REINDEX INDEX art_few;
SELECT indexrelname, structure, state FROM euno_stat_indexes WHERE relname = 'art' ORDER BY 1;

-- Left to us
CREATE INDEX art_auto ON art USING euno (id) WITH (structure = auto);
CREATE INDEX art_auto_rowex ON art USING euno (few DESC) WITH (structure = auto, sync = rowex);
CREATE INDEX art_auto_two ON art USING euno (id, few) WITH (structure = auto);
CREATE INDEX art_auto_include ON art USING euno (id) INCLUDE (few) WITH (structure = auto);
CREATE INDEX art_auto_text ON art USING euno (word) WITH (structure = auto, sync = rowex);
CREATE INDEX art_auto_part ON art USING euno (part) WITH (structure = auto);
SELECT indexrelname, structure FROM euno_stat_indexes WHERE indexrelname LIKE 'art_auto%' ORDER BY 1;
SELECT indexrelid::regclass, euno_index_check(indexrelid, true) FROM euno_stat_indexes WHERE indexrelname LIKE 'art_auto%' ORDER BY 1;

-- Where ANALYZE has seen that values repeat it is a B+tree, but for a unique index
CREATE TABLE again AS SELECT n AS id, n / 2 AS twice, CASE WHEN n % 50 = 0 THEN n END AS mostly_null FROM generate_series(1, 5000) n;
CREATE INDEX again_before ON again USING euno (twice) WITH (structure = auto);
CREATE INDEX again_twice ON again USING euno (twice) WITH (structure = auto);
CREATE INDEX again_few ON again USING euno ((id % 7)) WITH (structure = auto);
ANALYZE again;
REINDEX INDEX again_twice; REINDEX INDEX again_few;
CREATE INDEX again_id ON again USING euno (id DESC) WITH (structure = auto);
CREATE INDEX again_null ON again USING euno (mostly_null) WITH (structure = auto);
CREATE INDEX again_art ON again USING euno (twice) WITH (structure = art);
UPDATE again SET twice = id;
SET client_min_messages = error;
CREATE UNIQUE INDEX again_unique ON again USING euno (twice) WITH (structure = auto);
SELECT indexrelname, structure FROM euno_stat_indexes WHERE relname = 'again' ORDER BY 1;
RESET client_min_messages;
DROP TABLE again;

-- Keys that are not bytes
SELECT try('CREATE INDEX ON art USING euno (id, part) WITH (structure = art)');
CREATE INDEX art_part ON art USING euno (part);
SELECT try('ALTER INDEX art_part SET (structure = art)');
SELECT try('ALTER INDEX art_id SET (structure = bptree, sync = olc)');
SELECT try('ALTER TABLE art_word RESET (structure)');
SELECT try('ALTER INDEX art_word SET (structure = auto, fillfactor = 80)');
SELECT reloptions FROM pg_class WHERE relname IN ('art_part', 'art_id', 'art_word') ORDER BY relname;

-- Whatever has led to it, a rebuild takes the other structure
UPDATE pg_class SET reloptions = '{structure=art}' WHERE oid = 'art_part'::regclass;
SELECT try('REINDEX INDEX art_part');
SELECT euno_evict('art_part');
SELECT euno_rebuild('art_part');
SELECT structure, state FROM euno_stat_indexes WHERE indexrelname = 'art_part';
SELECT try('CREATE INDEX ON art USING euno (id) WITH (structure = trie)');

SELECT try('CREATE INDEX ON art USING euno (id) WITH (structure = art, sync = lock)');
SELECT try('CREATE INDEX art_sync ON art USING euno (id) WITH (sync = olc)');

DROP VIEW questions;
DROP TABLE art;
DROP FUNCTION answer(text), try(text);
