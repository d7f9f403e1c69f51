# DDL while a worker rebuilds an index of the table: none fails, none waits for the
# rebuild, and whatever becomes of table and index, the answers are right.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('ddl', <<'CONF');
euno.naptime = 1s
deadlock_timeout = 100ms
allow_in_place_tablespaces = on
CONF
$node->start;
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION ''");
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;

-- In the workers, and nowhere else, a row waits as long as there is an advisory lock:
-- who waits for a rebuild meanwhile waits for ever.
CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_stat_activity WHERE pid = pg_backend_pid() AND backend_type = 'euno rebuild') THEN
		WHILE EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory') LOOP
			PERFORM pg_catalog.pg_sleep(0.02);
		END LOOP;
	END IF;
	RETURN $1;
END $$;
SQL

my $working = "SELECT count(*) > 0 FROM pg_stat_progress_create_index p"
  . " JOIN pg_stat_activity a USING (pid) WHERE backend_type = 'euno rebuild' AND blocks_total > 0";

my $holder = $node->background_psql('postgres');

# Runs statements while a worker is at it; they may say what is left of the table.
sub while_rebuilding
{
	my ($what, $ddl, $left) = @_;

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$node->safe_psql('postgres', <<'SQL');
DROP TABLE IF EXISTS t, moved;
CREATE TABLE t (a int, b int, c text);
INSERT INTO t SELECT g, g, 'c' || g FROM generate_series(1, 200) g;
CREATE INDEX t_slow ON t USING euno (slow(a));
CREATE INDEX t_b ON t USING euno (b);
ANALYZE t;
ALTER INDEX t_slow SET TABLESPACE elsewhere;
EXPLAIN SELECT FROM t WHERE slow(a) = 1;
SQL
	ok($node->poll_query_until('postgres', $working), "$what: a worker rebuilds the index");
	$node->safe_psql('postgres', "INSERT INTO t SELECT g, g, 'new' FROM generate_series(1001, 1010) g; UPDATE t SET a = a + 500 WHERE b % 50 = 0");
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $ddl, on_error_stop => 1, timeout => $PostgreSQL::Test::Utils::timeout_default);
	is("$ret $stderr", '0 ', "$what: does not wait for the rebuild");
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	return if $left eq '';

	$node->safe_psql('postgres', "INSERT INTO $left (a, b) VALUES (2000, 2000)");
	$node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM pg_stat_progress_create_index)');
	$node->safe_psql('postgres', "SELECT euno_rebuild(indexrelid) FROM euno_stat_indexes WHERE relname = '$left'");
	for my $query ("SELECT count(*), sum(a) FROM $left WHERE slow(a) > 0", "SELECT count(*), sum(b) FROM $left WHERE b > 0")
	{
		is(by_index($node, 'postgres', $query), by_seqscan($node, 'postgres', $query), "$what: $query");
	}
	check_indexes($node, 'postgres', $what);
	return;
}

while_rebuilding('TRUNCATE', 'TRUNCATE t', 't');
while_rebuilding('TRUNCATE, rolled back', 'BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 1); ROLLBACK', 't');
while_rebuilding('VACUUM FULL', 'VACUUM FULL t', 't');
while_rebuilding('REINDEX', 'REINDEX TABLE t', 't');
while_rebuilding('ALTER TYPE with a rewrite', 'ALTER TABLE t ALTER b TYPE bigint', 't');
while_rebuilding('ALTER TYPE without', 'ALTER TABLE t ALTER c TYPE varchar', 't');
while_rebuilding('SET TABLESPACE', 'ALTER TABLE t SET TABLESPACE elsewhere; ALTER INDEX t_slow SET TABLESPACE pg_default', 't');
while_rebuilding('SET UNLOGGED', 'ALTER TABLE t SET UNLOGGED; ALTER TABLE t SET LOGGED', 't');
while_rebuilding('RENAME', 'ALTER TABLE t RENAME TO moved; ALTER INDEX t_slow RENAME TO moved_slow', 'moved');
while_rebuilding('CLUSTER', 'CLUSTER t USING t_b', 't');
while_rebuilding('ATTACH and DETACH PARTITION', <<'SQL', 't');
CREATE TABLE p (a int, b int, c text) PARTITION BY RANGE (b);
ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (100000);
ALTER TABLE p DETACH PARTITION t CONCURRENTLY;
DROP TABLE p;
SQL
while_rebuilding('DROP INDEX, rolled back', 'BEGIN; DROP INDEX t_slow; DELETE FROM t WHERE b = 7; ROLLBACK', 't');
while_rebuilding('DROP INDEX', 'DROP INDEX t_slow', 't');
while_rebuilding('DROP OWNED', 'CREATE ROLE somebody; ALTER TABLE t OWNER TO somebody; DROP OWNED BY somebody', '');
while_rebuilding('DROP TABLE', 'DROP TABLE t', '');
$holder->quit;
ok($node->poll_query_until('postgres', 'SELECT used_bytes = 0 FROM euno_memory'), 'nothing is left');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|inconsistent/, 'and nothing was inconsistent');

# An index of which nobody knows yet, after a crash, is built while DROP INDEX
# CONCURRENTLY waits.
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT generate_series(1, 1000) a; CREATE INDEX t_a ON t USING euno (a)');
$node->stop('immediate');
$node->start;
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; LOCK TABLE t IN ACCESS SHARE MODE');
my $dropper = $node->background_psql('postgres');
$dropper->query_until(qr/begun/, "\\echo begun\nDROP INDEX CONCURRENTLY t_a;\n");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'virtualxid' AND NOT granted");
$reader->query_safe("SELECT euno_rebuild('t_a')");
is($node->safe_psql('postgres', 'SELECT indexes FROM euno_memory'), '1', 'the tree of an index that is being dropped');
$reader->quit;
$dropper->quit;
is($node->safe_psql('postgres', "SELECT indexes, used_bytes, to_regclass('t_a') IS NULL FROM euno_memory"), '0|0|t', 'goes with the index');

$node->stop;
done_testing();
