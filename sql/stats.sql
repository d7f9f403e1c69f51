--
-- What the views and functions tell of indexes and of the launcher
--
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN others THEN
	RETURN sqlstate || ' ' || sqlerrm;
END $$;
CREATE TABLE st (id bigint, t text);
INSERT INTO st SELECT g, 'name ' || g FROM generate_series(1, 3000) g;
CREATE INDEX st_id ON st USING euno (id);
CREATE INDEX st_art ON st USING euno (id) WITH (structure = art);
CREATE INDEX st_t ON st USING euno (t);

-- Counters are those of the statement before, once its transaction has ended
SELECT indexrelname, inserts, removals FROM euno_stat_indexes WHERE relname = 'st' ORDER BY 1;
INSERT INTO st SELECT g, 'name ' || g FROM generate_series(3001, 3100) g;
SELECT indexrelname, inserts, removals, descents >= inserts AS descents FROM euno_stat_indexes WHERE relname = 'st' ORDER BY 1;
DELETE FROM st WHERE id <= 1000;
VACUUM st;
SELECT indexrelname, entries, removals, merges > 0 AS merged, contended_leaves, contended_writes, annex_skips, parted_leaves, delegated_writes FROM euno_stat_indexes WHERE relname = 'st' ORDER BY 1;
SELECT indexrelname, right_moves >= 0 AS right_moves, copies IS NOT NULL AS copies FROM euno_stat_indexes WHERE relname = 'st' ORDER BY 1;
SELECT sum(conflicts_locked + conflicts_changed + conflicts_same_key + conflicts_other_key + conflicts_split + coalesce(conflicts_directory, 0)) FROM euno_stat_indexes WHERE relname = 'st';

SELECT max(stats_since) AS before, count(stats_since) FROM euno_stat_indexes WHERE relname = 'st' \gset
SELECT euno_stat_reset();
SELECT count(*) FROM euno_stat_indexes WHERE relname = 'st' AND stats_since > :'before' AND stats_since <= clock_timestamp();
SELECT indexrelname, inserts, removals, restarts FROM euno_stat_indexes WHERE relname = 'st' ORDER BY 1;

-- An index is known by its file: in which tablespace, and temporary or not
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE euno_stats LOCATION '';
ALTER INDEX st_t SET TABLESPACE euno_stats;
SELECT euno_rebuild('st_t');
CREATE TEMP TABLE mine (id bigint);
INSERT INTO mine SELECT generate_series(1, 10);
CREATE INDEX mine_id ON mine USING euno (id);
SELECT indexrelname, state, entries FROM euno_stat_indexes WHERE relname IN ('st', 'mine') ORDER BY 1;
SELECT count(*) = count(DISTINCT indexrelid) AS once FROM euno_stat_indexes;
ALTER INDEX st_t SET TABLESPACE pg_default;
DROP TABLESPACE euno_stats;

-- Nobody is in anybody's way here
SELECT count(*) FROM euno_hot_leaves('st_id');
SELECT count(*) FROM euno_hot_leaves('st_art', 3);
SELECT try($$SELECT * FROM euno_hot_leaves('st_id', 0)$$);
SELECT try($$SELECT * FROM euno_hot_leaves('st')$$);
CREATE ROLE euno_stats_reader;
SET ROLE euno_stats_reader;
SELECT try($$SELECT * FROM euno_hot_leaves('st_id')$$);
SELECT count(*) FROM euno_stat_indexes WHERE relname = 'st';

-- The launcher
SELECT pid > 0 AS pid, started < now() AS started, rounds >= 0 AS rounds, last_round_ms >= 0 IS NOT FALSE AS ms, hot_leaves, leaves_contended, leaves_calmed, leaves_merged >= 0 AS merged, copies_changed >= 0 AS copies, trees_collected >= 0 AS collected, (errors = 0) = (last_error_at IS NULL) AS errors, last_error FROM euno_stat_worker;
RESET ROLE;
DROP ROLE euno_stats_reader;
DROP TABLE st, mine;
DROP FUNCTION try;
