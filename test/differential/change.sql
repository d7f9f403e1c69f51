-- Makes random changes.  Functions here return statements, which psql runs
-- one by one (\gexec): a function can not end its own transaction, let alone
-- prepare it, and CONCURRENTLY wants no transaction around it.

-- Which rows a statement is about: some by number, or by a condition on the
-- keys of an index
CREATE FUNCTION diff.some_rows(t name, n int) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	x diff.idx;
BEGIN
	SELECT * INTO x FROM diff.idx WHERE tab = t ORDER BY random() LIMIT 1;
	RETURN format('id IN (SELECT id FROM diff.%I WHERE %s ORDER BY id LIMIT %s)', t,
		CASE WHEN random() < 0.5 THEN diff.conditions(x)
			ELSE format('id %% %s = %s', 20 + diff.upto(100), diff.upto(20)) END,
		n);
END
$$;

CREATE FUNCTION diff.change(t name) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	p float8 := random();
	c diff.col;
	d diff.col;
	excess int;
BEGIN
	SELECT * INTO c FROM diff.col WHERE tab = t AND generator IS NOT NULL AND is_column ORDER BY random() LIMIT 1;
	SELECT * INTO d FROM diff.col WHERE tab = t AND generator IS NOT NULL AND is_column AND name <> c.name
		ORDER BY random() LIMIT 1;
	EXECUTE format('SELECT count(*) - (SELECT rows FROM diff.tab WHERE name = %L) FROM diff.%I', t, t)
		INTO excess;
	RETURN CASE
		WHEN p < 0.30 THEN diff.insertion(t, greatest(1, diff.upto(25) - excess / 200))
		WHEN p < 0.45 THEN		-- cannot be HOT
			format('UPDATE diff.%I SET %I = %s, %I = %s WHERE %s', t, c.name, c.generator,
				d.name, d.generator, diff.some_rows(t, 40))
		WHEN p < 0.55 THEN		-- one column of many: the others get new entries with old keys
			format('UPDATE diff.%I SET %I = %s WHERE %s', t, c.name, c.generator, diff.some_rows(t, 100))
		WHEN p < 0.70 THEN		-- HOT where there is room
			format('UPDATE diff.%I SET note = %L || note WHERE %s', t, diff.upto(9), diff.some_rows(t, 60))
		WHEN p < 0.75 THEN		-- nothing changes
			format('UPDATE diff.%I SET %I = %2$I WHERE %s', t, c.name, diff.some_rows(t, 60))
		WHEN p < 0.80 THEN
			format('SELECT count(*) FROM (SELECT FROM diff.%I WHERE %s FOR UPDATE) s', t, diff.some_rows(t, 20))
		ELSE
			format('DELETE FROM diff.%I WHERE %s', t,
				diff.some_rows(t, greatest(1, diff.upto(40) + excess / 10)))
	END;
END
$$;

-- One transaction
CREATE FUNCTION diff.transaction(worker int, number int, prepare bool) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	t name := (SELECT name FROM diff.tab ORDER BY random() LIMIT 1);
	p float8 := random();
	gid text := format('euno %s %s', worker, number);
	depth int := 0;
BEGIN
	IF p < 0.25 THEN
		RETURN NEXT diff.change(t);
		RETURN;
	ELSIF p < 0.35 THEN
		-- Versions of the same rows, one transaction each
		p := diff.upto(19);
		FOR i IN 1..25 LOOP
			RETURN NEXT format('UPDATE diff.dup SET churn = churn + 1 WHERE id %% 400 = %s', p);
		END LOOP;
		RETURN;
	END IF;

	RETURN NEXT 'BEGIN';
	FOR i IN 1..1 + diff.upto(6) LOOP
		IF random() < 0.4 THEN
			RETURN NEXT 'SAVEPOINT s';
			depth := depth + 1;
		END IF;
		RETURN NEXT diff.change(t);
		IF depth > 0 AND random() < 0.4 THEN
			RETURN NEXT 'ROLLBACK TO s';
			IF random() < 0.5 THEN
				RETURN NEXT 'RELEASE s';
				depth := depth - 1;
			END IF;
		END IF;
		IF random() < 0.1 THEN
			t := (SELECT name FROM diff.tab ORDER BY random() LIMIT 1);
		END IF;
	END LOOP;
	p := random();
	IF p < 0.15 AND prepare THEN
		RETURN NEXT format('PREPARE TRANSACTION %L', gid);
		IF random() < 0.5 THEN
			RETURN NEXT format('SELECT pg_sleep(%s)', random() * 0.2);
		END IF;
		RETURN NEXT format('%s PREPARED %L', diff.pick('COMMIT', 'ROLLBACK'), gid);
	ELSIF p < 0.35 THEN
		RETURN NEXT 'ROLLBACK';
	ELSE
		RETURN NEXT 'COMMIT';
	END IF;
END
$$;

-- The indexes themselves, those of partitions too
CREATE VIEW diff.index AS
	SELECT c.relname AS name, t.relname AS tab, i.indisvalid AS valid,
		format('%I.%I', n.nspname, c.relname) AS qualified
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
		JOIN pg_class t ON t.oid = i.indrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'diff'
		JOIN pg_am a ON a.oid = c.relam AND a.amname = (SELECT am FROM diff.setting);

-- What an administrator does
CREATE FUNCTION diff.maintenance(number int) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	am text := (SELECT diff.setting.am FROM diff.setting);
	t name := (SELECT name FROM diff.tab ORDER BY random() LIMIT 1);
	x diff.idx := (SELECT idx FROM diff.idx WHERE tab <> 'parted' ORDER BY random() LIMIT 1);
	some_index text := (SELECT qualified FROM diff.index WHERE valid ORDER BY random() LIMIT 1);
	what int := 5 + diff.upto(11);
BEGIN
	-- CONCURRENTLY waits for old snapshots; that hinders nobody.  Everybody
	-- else queues up behind who waits for an exclusive lock.
	RETURN NEXT format('SET lock_timeout = %L', CASE WHEN what BETWEEN 8 AND 10 THEN '20s' ELSE '0.5s' END);
	CASE what
		WHEN 5, 6, 7 THEN RETURN NEXT format('REINDEX INDEX %s', some_index);
		WHEN 8 THEN RETURN NEXT format('REINDEX INDEX CONCURRENTLY %s', some_index);
		WHEN 9 THEN
			IF t <> 'parted' THEN
				RETURN NEXT format('REINDEX TABLE CONCURRENTLY diff.%I', t);
			END IF;
		WHEN 10 THEN
			-- Another one like it; perhaps not for long
			RETURN NEXT diff.index_definition(x, am, 'CONCURRENTLY', 'extra_');
			RETURN NEXT diff.index_definition(x, am, '', 'plain_');
			RETURN NEXT format('DROP INDEX IF EXISTS diff.extra_%s', x.name);
			RETURN NEXT format('DROP INDEX CONCURRENTLY IF EXISTS diff.plain_%s', x.name);
		WHEN 11 THEN
			RETURN NEXT 'BEGIN';
			RETURN NEXT format('TRUNCATE diff.%I', t);
			RETURN NEXT diff.insertion(t, (SELECT rows FROM diff.tab WHERE name = t));
			RETURN NEXT diff.pick('COMMIT', 'ROLLBACK');
		WHEN 12 THEN RETURN NEXT format('VACUUM FULL diff.%I', t);
		WHEN 13 THEN
			RETURN NEXT 'BEGIN';
			RETURN NEXT diff.index_definition(x, am, '', 'plain_');
			RETURN NEXT diff.change(x.tab);
			RETURN NEXT format('DROP INDEX diff.%I', x.name);
			RETURN NEXT 'ROLLBACK';
		WHEN 14 THEN
			RETURN NEXT 'BEGIN';
			RETURN NEXT format('ALTER TABLE diff.%I ALTER note TYPE text USING note || ''''', t);
			RETURN NEXT diff.pick('COMMIT', 'ROLLBACK');
		ELSE
			IF am = 'euno' THEN
				RETURN QUERY SELECT format('SELECT euno_evict(%L)', qualified)
					FROM diff.index WHERE tab LIKE t || '%';
				RETURN NEXT format('SELECT pg_sleep(%s)', random() * 0.3);
				RETURN QUERY SELECT format('SELECT euno_rebuild(%L)', qualified)
					FROM diff.index WHERE tab LIKE t || '%';
			END IF;
	END CASE;

	-- What a canceled REINDEX CONCURRENTLY has left
	RETURN QUERY SELECT format('DROP INDEX IF EXISTS %s', qualified) FROM diff.index
		WHERE NOT valid AND random() < 0.3;
END
$$;
