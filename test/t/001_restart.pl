# Restarts, clean and not.  Nothing of an index survives one; the worker builds
# all of them again without being asked, from the table.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('restart', "wal_writer_delay = 10s\nbgwriter_delay = 10s");
$node->start;

$node->safe_psql('postgres', $extension . <<'SQL');
CREATE ROLE owner;
GRANT CREATE ON SCHEMA public TO owner;
CREATE TABLE t (a int, b text, c numeric);
INSERT INTO t SELECT g, 'b' || g, g / 4.0 FROM generate_series(1, 20000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_bc ON t USING euno (b, c compared DESC) INCLUDE (a);
CREATE INDEX t_part ON t USING euno ((a % 100)) WHERE a > 10000;
CREATE UNLOGGED TABLE u (a int);
CREATE INDEX u_a ON u USING euno (a);
INSERT INTO u SELECT generate_series(1, 1000);
CREATE TABLE p (a int, note text);
CREATE INDEX p_a ON p USING euno (a);
INSERT INTO p SELECT g, 'old' FROM generate_series(1, 100) g;

-- Writes down who evaluates it, where the worker cannot show it to anybody.
CREATE FUNCTION who(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN RAISE LOG 'who(%) is evaluated by %', $1, current_user; RETURN $1; END $$;
CREATE TABLE w (a int);
ALTER TABLE w OWNER TO owner;
INSERT INTO w VALUES (7);
SET ROLE owner;
CREATE INDEX w_who ON w USING euno (who(a));
SQL

sub all_answers
{
	my ($name) = @_;

	same_answers($node, 'postgres', 'SELECT a FROM t WHERE a > 19990 ORDER BY a', "$name, t_a");
	same_answers($node, 'postgres',
		"SELECT b, c, a FROM t WHERE b BETWEEN 'b2' AND 'b201' ORDER BY b, c DESC",
		"$name, t_bc");
	same_answers($node, 'postgres',
		'SELECT count(*), sum(a) FROM t WHERE a % 100 = 17 AND a > 10000', "$name, t_part");
	same_answers($node, 'postgres', 'SELECT count(*), sum(a) FROM u WHERE a > 0', "$name, u_a");
	same_answers($node, 'postgres', 'SELECT a, note FROM p WHERE a > 95 ORDER BY a', "$name, p_a");
	check_indexes($node, 'postgres', $name);
	return;
}

all_answers('before');

# A prepared transaction goes over the restart, with rows that are in the table
# and in progress: the rebuild neither waits for it nor forgets its rows.
$node->safe_psql('postgres', <<'SQL');
BEGIN;
INSERT INTO p VALUES (1000, 'prepared');
UPDATE p SET a = a + 2000, note = 'moved' WHERE a = 50;
UPDATE p SET note = 'same key' WHERE a = 60;
DELETE FROM p WHERE a = 70;
PREPARE TRANSACTION 'one';
BEGIN;
INSERT INTO p VALUES (1001, 'prepared, to be rolled back');
DELETE FROM p WHERE a = 99;
CREATE TABLE made (a int);
CREATE INDEX made_a ON made USING euno (a);
INSERT INTO made VALUES (1), (2);
PREPARE TRANSACTION 'two';
SQL
my $log_start = -s $node->logfile;
$node->restart;
ok(wait_for_state($node, 'postgres', 'ready'), 'the worker builds all indexes after a restart');
like(slurp_file($node->logfile, $log_start),
	qr/who\(7\) is evaluated by owner/, "the worker evaluates expressions as the table's owner");
unlike(slurp_file($node->logfile, $log_start),
	qr/who\(7\) is evaluated by (?!owner)/, 'and as nobody else');
all_answers('after a restart');
$node->safe_psql('postgres', "COMMIT PREPARED 'one'");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'two'");
is(by_index($node, 'postgres', 'SELECT a, note FROM p WHERE a IN (50, 60, 70, 99) OR a > 999 ORDER BY a'),
	"60|same key\n99|old\n1000|prepared\n2050|moved", 'rows of prepared transactions');
all_answers('after COMMIT PREPARED');

# A table made in a prepared transaction is there after its commit.
$node->safe_psql('postgres', <<'SQL');
BEGIN;
CREATE TABLE made (a int);
CREATE INDEX made_a ON made USING euno (a);
INSERT INTO made VALUES (1), (2);
PREPARE TRANSACTION 'three';
SQL
$node->safe_psql('postgres', "COMMIT PREPARED 'three'");
same_answers($node, 'postgres', 'SELECT a FROM made WHERE a > 0 ORDER BY a', 'made in a prepared transaction');

# An index that is not built yet is not used, and queries are right meanwhile.
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->restart;
is($node->safe_psql('postgres', "SELECT DISTINCT state FROM euno_stat_indexes"),
	'absent', 'with euno.auto_rebuild = off nothing is built');
unlike(by_index($node, 'postgres', 'EXPLAIN SELECT a FROM t WHERE a = 1'),
	qr/t_a/, 'an absent index is not in plans');
is(by_index($node, 'postgres', 'SELECT count(*) FROM t WHERE a > 100'), '19900', 'a query while it is absent');
$node->safe_psql('postgres',
	"INSERT INTO t VALUES (30000, 'inserted while absent'); DELETE FROM t WHERE a = 1; UPDATE t SET a = 30001 WHERE a = 2");
$node->safe_psql('postgres', 'SELECT euno_rebuild(indexrelid) FROM euno_stat_indexes');
all_answers('rebuilt by hand');

# The server's processes are killed.  WAL that was not flushed is lost, so the
# table's TIDs are given to other rows; the arena's memory has survived in the
# postmaster, and nothing in it may be believed.
$node->safe_psql('postgres', "INSERT INTO p VALUES (2998, 'flushed'); CHECKPOINT;");
my $session = $node->background_psql('postgres');
my @stopped = split /\n/,
  $node->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE backend_type IN ('walwriter', 'background writer')");
kill 'STOP', @stopped;
my $ghost = $session->query("SET synchronous_commit = off; INSERT INTO p VALUES (2999, 'lost') RETURNING ctid");
is( $session->query(
		'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT a FROM p WHERE a = 2999'),
	'2999', 'the row is there before the crash');
kill_process($session->query('SELECT pg_backend_pid()'));
$session->{run}->finish;
kill 'CONT', @stopped;
wait_for_recovery($node);
is(by_seqscan($node, 'postgres', 'SELECT count(*) FROM p WHERE a = 2999'), '0', 'the row is lost in the crash');
is($node->safe_psql('postgres', "SELECT DISTINCT state FROM euno_stat_indexes"),
	'absent', 'all indexes are absent after a crash');
is($node->safe_psql('postgres', "INSERT INTO p VALUES (42042, 'new') RETURNING ctid"),
	$ghost, 'another row gets its TID');
$node->safe_psql('postgres', 'SELECT euno_rebuild(indexrelid) FROM euno_stat_indexes');
is(by_index($node, 'postgres', 'SELECT a FROM p WHERE a = 2999'), '', 'no ghost, index-only');
is(by_index($node, 'postgres', 'SELECT a, note FROM p WHERE a = 2999'), '', 'no ghost, plain');
is(by_index($node, 'postgres', 'SELECT a, note FROM p WHERE a = 42042'), '42042|new', 'the new row');
is(by_index($node, 'postgres', 'SELECT count(*) FROM u'), '0', 'an unlogged table is empty after a crash');
$node->safe_psql('postgres', 'INSERT INTO u SELECT generate_series(1, 500)');
all_answers('after a crash');

# Backends are killed under load.
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = on');
$node->reload;
my $script = script_file($node, 'load', <<'SQL');
\set k random(1, 20000)
\set d random(1, 100)
BEGIN;
UPDATE t SET a = a + :d WHERE a = :k;
UPDATE t SET c = c + 1 WHERE a = :k + 1;
INSERT INTO t VALUES (:k, 'load', :d);
DELETE FROM t WHERE a = :k + 7;
COMMIT;
SELECT count(a) FROM t WHERE a BETWEEN :k AND :k + 200;
SQL
for my $round (1 .. 2)
{
	my $bench = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-T', '60', '-f', $script, $node->connstr('postgres') . ' application_name=load' ],
		'>', '/dev/null', '2>', '/dev/null');
	my $victim = "SELECT pid FROM pg_stat_activity WHERE application_name = 'load'";
	$node->poll_query_until('postgres',
		"SELECT count(*) = 4 FROM pg_stat_activity WHERE application_name = 'load'");
	sleep 1;
	kill_process($node->safe_psql('postgres', "$victim LIMIT 1"));
	$bench->finish;
	wait_for_recovery($node);
	ok(wait_for_state($node, 'postgres', 'ready'), "all indexes are ready again after crash $round under load");
	$node->safe_psql('postgres', 'INSERT INTO u SELECT generate_series(1, 500)');
	all_answers("after crash $round under load");
}

$node->stop;
done_testing();
