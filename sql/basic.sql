--
-- The first steps, and what the access method says of itself
--
CREATE TABLE book (id bigint, title text);
INSERT INTO book SELECT n, 'title ' || n FROM generate_series(1, 10000) n;
CREATE INDEX book_id ON book USING euno (id);
ANALYZE book;

EXPLAIN (COSTS OFF) SELECT title FROM book WHERE id = 4711;
SELECT title FROM book WHERE id = 4711;

-- Rows that come and go
INSERT INTO book VALUES (4711, 'another title 4711'), (-1, 'before all'), (NULL, 'nobody knows');
UPDATE book SET id = 20000 WHERE id = 4712;
DELETE FROM book WHERE id BETWEEN 4713 AND 4720;
SELECT * FROM book WHERE id BETWEEN 4710 AND 4722 ORDER BY id, title;
SELECT * FROM book WHERE id IS NULL;
SELECT min(id), max(id), count(*) FROM book WHERE id IS NOT NULL;

-- A transaction sees what it did, and nobody what it undid
BEGIN;
INSERT INTO book VALUES (30000, 'mine');
SAVEPOINT s;
INSERT INTO book VALUES (30001, 'not for long');
SELECT * FROM book WHERE id >= 30000 ORDER BY id;
ROLLBACK TO s;
SELECT * FROM book WHERE id >= 30000 ORDER BY id;
ROLLBACK;
SELECT * FROM book WHERE id >= 30000 ORDER BY id;

-- An index of an empty table
CREATE TABLE nobook (LIKE book);
CREATE INDEX ON nobook USING euno (id DESC) WITH (fillfactor = 70);
SET enable_seqscan = off;
SELECT * FROM nobook WHERE id > 0;
SELECT * FROM nobook ORDER BY id DESC;
INSERT INTO nobook VALUES (2, 'two'), (3, 'three'), (1, 'one');
EXPLAIN (COSTS OFF) SELECT * FROM nobook ORDER BY id DESC;
SELECT * FROM nobook ORDER BY id DESC;
RESET enable_seqscan;

SELECT relname, indexrelname, structure, state, entries >= 9995 OR entries = 3 AS entries, height > 0 AS height,
		bytes = euno_index_size(indexrelid) AND bytes > 0 AS bytes
	FROM euno_stat_indexes WHERE relname IN ('book', 'nobook') ORDER BY 1;
SELECT used_bytes > 0 AS used, peak_bytes >= used_bytes AS peak, idle_bytes <= reserved_bytes / 16 AS idle,
		reserved_bytes = pg_size_bytes(current_setting('euno.max_memory')) AS reserved,
		indexes >= 2 AS indexes, max_indexes = current_setting('euno.max_indexes')::int AS max_indexes
	FROM euno_memory;
SELECT euno_index_check('book_id');
SELECT euno_index_check('book_id', true);
SELECT pg_relation_size('book_id') AS on_disk;

-- What it can do
SELECT p, pg_indexam_has_property(a.oid, p)
	FROM pg_am a, unnest(ARRAY['can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include']) p
	WHERE amname = 'euno' ORDER BY p;
SELECT p, pg_index_has_property('book_id', p)
	FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) p ORDER BY p;
SELECT p, pg_index_column_has_property('nobook_id_idx', 1, p)
	FROM unnest(ARRAY['asc', 'desc', 'nulls_first', 'nulls_last', 'orderable', 'distance_orderable',
		'returnable', 'search_array', 'search_nulls']) p ORDER BY p;

DROP TABLE book, nobook;
