-- Enums whose labels come and go: keys are made of their places
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TYPE state AS ENUM ('new', 'paid', 'sent');
CREATE DOMAIN known_state AS state CHECK (VALUE IS NOT NULL);
CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY, s state, d known_state) WITH (autovacuum_enabled = off);
CREATE INDEX orders_s ON orders USING euno (s) WITH (structure = bptree);
CREATE INDEX orders_desc ON orders USING euno (s DESC NULLS LAST, id) WITH (structure = art);
CREATE INDEX orders_id ON orders USING euno (id, s);
CREATE INDEX orders_domain ON orders USING euno (d, id);
CREATE INDEX orders_opaque ON orders USING euno (s, (ARRAY[id::numeric]));
CREATE INDEX orders_included ON orders USING euno (id) INCLUDE (s);

-- What is wrong with this query's answer, by index, if it uses that index, beside a sort of the table?
CREATE FUNCTION check_query(i text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
	others regclass[];
	by_index text;
	by_sort text;
BEGIN
	SELECT array_agg(indexrelid) INTO others FROM pg_index WHERE indrelid = 'orders'::regclass AND indexrelid <> i::regclass;
	UPDATE pg_index SET indisvalid = false WHERE indexrelid = ANY (others);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP plan := plan || line; END LOOP;
	EXECUTE format('SELECT string_agg(q::text, '' '') FROM (%s) q', query) INTO by_index;
	UPDATE pg_index SET indisvalid = false WHERE indexrelid = i::regclass;
	EXECUTE format('SELECT string_agg(q::text, '' '') FROM (%s) q', query) INTO by_sort;
	UPDATE pg_index SET indisvalid = true WHERE indexrelid = ANY (others || i::regclass::oid);
	RETURN CASE WHEN plan !~ ('using ' || i || ' ') THEN plan WHEN by_index IS DISTINCT FROM by_sort THEN by_index || ' but ' || by_sort ELSE 'right' END;
END $$;
CREATE VIEW wrong AS
	WITH results AS MATERIALIZED (SELECT i, query, check_query(i, query) AS result FROM (VALUES
		('orders_s', 'SELECT s FROM orders ORDER BY s'),
		('orders_s', 'SELECT s, count(*) FROM orders WHERE s > ''paid'' GROUP BY s ORDER BY s DESC'),
		('orders_s', 'SELECT count(*) FROM orders WHERE s = ANY (enum_range(''new'', ''paid''::state))'),
		('orders_s', 'SELECT count(*) FROM orders WHERE s IS NULL'),
		('orders_desc', 'SELECT s, id FROM orders ORDER BY s DESC NULLS LAST, id'),
		('orders_desc', 'SELECT s, id FROM orders WHERE s <= ''sent'' AND id > 5 ORDER BY s, id DESC'),
		('orders_desc', 'SELECT id FROM orders WHERE s = ''paid'' AND id BETWEEN 2 AND 20 ORDER BY id'),
		('orders_id', 'SELECT id, s FROM orders WHERE id < 30 ORDER BY id, s'),
		('orders_domain', 'SELECT d, id FROM orders WHERE d::state >= ''paid'' ORDER BY d, id'),
		('orders_opaque', 'SELECT s, ARRAY[id::numeric] FROM orders WHERE s > ''new'' ORDER BY s, ARRAY[id::numeric]'),
		('orders_included', 'SELECT id, s FROM orders WHERE id > 10 ORDER BY id')) q (i, query))
	SELECT * FROM results WHERE result <> 'right';
INSERT INTO orders (s, d) SELECT s, s FROM unnest(enum_range(NULL::state)) s, generate_series(1, 4);
VACUUM orders;
TABLE wrong;

-- labels everywhere
ALTER TYPE state ADD VALUE 'draft' BEFORE 'new';
ALTER TYPE state ADD VALUE 'lost';
ALTER TYPE state ADD VALUE 'packed' AFTER 'paid';
ALTER TYPE state ADD VALUE 'billed' BEFORE 'paid';
INSERT INTO orders (s, d) SELECT s, s FROM unnest(enum_range(NULL::state)) s, generate_series(1, 3);
INSERT INTO orders (s, d) VALUES (NULL, 'new');
VACUUM orders;
TABLE wrong;
ALTER TYPE state RENAME VALUE 'packed' TO 'wrapped';
TABLE wrong;
-- one that is rolled back, and another at its place
BEGIN;
ALTER TYPE state ADD VALUE 'gone' AFTER 'wrapped';
ROLLBACK;
ALTER TYPE state ADD VALUE 'weighed' AFTER 'wrapped';
INSERT INTO orders (s, d) SELECT s, s FROM unnest(enum_range(NULL::state)) s;
TABLE wrong;

-- as many as there are places for, at one place
CREATE PROCEDURE add_labels(how_many int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..how_many LOOP
		EXECUTE format('ALTER TYPE state ADD VALUE %L AFTER ''wrapped''', 'l' || i);
		COMMIT;
		EXECUTE format('INSERT INTO orders (s, d) VALUES (%1$L, %1$L)', 'l' || i);
		COMMIT;
	END LOOP;
END $$;
\set VERBOSITY terse
CALL add_labels(30);
\set VERBOSITY default
SELECT count(*) FROM pg_enum WHERE enumtypid = 'state'::regtype;
TABLE wrong;
-- elsewhere there is room
ALTER TYPE state ADD VALUE 'shipped' AFTER 'sent';
ALTER TYPE state ADD VALUE 'ancient' BEFORE 'draft';
INSERT INTO orders (s, d) VALUES ('shipped', 'shipped'), ('ancient', 'ancient');
TABLE wrong;

-- whatever name the type has
CREATE SCHEMA other;
CREATE TYPE other.state AS ENUM ('first', 'second');
CREATE FUNCTION another_path() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', 'public', false); END $$;
CREATE EVENT TRIGGER another_path ON ddl_command_start EXECUTE FUNCTION another_path();
SET search_path = other, public;
\set VERBOSITY terse
ALTER TYPE state ADD VALUE 'more' AFTER 'wrapped';
\set VERBOSITY default
DROP EVENT TRIGGER another_path;
RESET search_path;
DROP SCHEMA other CASCADE;

-- without the indexes there is room, and what has been moved back is where it was
BEGIN;
DROP INDEX orders_s, orders_desc, orders_id, orders_domain, orders_opaque;
ALTER TYPE state ADD VALUE 'more' AFTER 'wrapped';
CREATE INDEX orders_s ON orders USING euno (s);
EXPLAIN (COSTS OFF) SELECT count(*) FROM orders WHERE s < 'new';
SELECT count(*) FROM orders WHERE s < 'new';
SELECT max(enumsortorder) FROM pg_enum WHERE enumtypid = 'state'::regtype;
ROLLBACK;
TABLE wrong;
BEGIN;
SAVEPOINT a;
DROP INDEX orders_s, orders_desc, orders_id, orders_domain, orders_opaque;
ALTER TYPE state ADD VALUE 'more' AFTER 'wrapped';
ROLLBACK TO a;
TABLE wrong;
COMMIT;
BEGIN;
DROP INDEX orders_s, orders_desc, orders_id, orders_domain, orders_opaque;
ALTER TYPE state ADD VALUE 'more' AFTER 'wrapped';
CREATE INDEX orders_s ON orders USING euno (s);
CREATE INDEX orders_desc ON orders USING euno (s DESC NULLS LAST, id) WITH (structure = art);
CREATE INDEX orders_id ON orders USING euno (id, s);
CREATE INDEX orders_domain ON orders USING euno (d, id);
CREATE INDEX orders_opaque ON orders USING euno (s, (ARRAY[id::numeric]));
COMMIT;
INSERT INTO orders (s, d) VALUES ('more', 'more');
VACUUM orders;
TABLE wrong;
SELECT relname, euno_index_check(oid, true) FROM pg_class WHERE relname ~ '^orders_' AND relkind = 'i' ORDER BY 1;
DROP TABLE orders CASCADE;
DROP TYPE state CASCADE;
