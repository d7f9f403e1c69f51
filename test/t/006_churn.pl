# Connections that come and go while others scan, write and vacuum.  Each takes
# over the slot of a process that is gone, with its epoch and its hazard, and
# each transaction compares an index-only scan with a sequential scan of the
# same snapshot.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

# Fewer connections than clients ask for in a row: slots are used again at once.
# On a busy machine those of sessions that have gone are still taken for a while.
my $node = euno_node('churn', "max_connections = 30\nsuperuser_reserved_connections = 2\nmax_worker_processes = 4\nmax_wal_senders = 0");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, pad text);
INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 3000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE TABLE compared (n bigint);
SQL
$node->safe_psql('postgres', 'VACUUM FREEZE t');

my %script = (
	'read' => <<'SQL',
\set low random(1, 3000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT count(*) AS n_index, coalesce(sum(a), 0) AS sum_index FROM t WHERE a BETWEEN :low AND :low + 300 \gset
SET LOCAL enable_seqscan = on;
SET LOCAL enable_indexscan = off;
SET LOCAL enable_indexonlyscan = off;
SELECT count(*) AS n_seq, coalesce(sum(a), 0) AS sum_seq FROM t WHERE a BETWEEN :low AND :low + 300 \gset
COMMIT;
\if :n_index <> :n_seq or :sum_index <> :sum_seq
DO $$ BEGIN RAISE 'index: :n_index :sum_index, table: :n_seq :sum_seq, from :low'; END $$;
\endif
INSERT INTO compared VALUES (:n_index);
SQL
	'write' => <<'SQL',
\set k random(1, 3000)
\set l random(1, 3000)
DELETE FROM t WHERE a BETWEEN :k AND :k + 4;
INSERT INTO t SELECT :l + g, repeat('y', 500) FROM generate_series(0, 4) g;
SQL
	'vacuum' => "VACUUM (INDEX_CLEANUP on) t;\n");

my %file = map { $_ => script_file($node, $_, $script{$_}) } keys %script;

# Leaves in the middle of a scan and of a transaction.
my $leave = <<'SQL';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
BEGIN;
CREATE TEMP TABLE left_behind (a int);
CREATE INDEX ON left_behind USING euno (a);
DECLARE c CURSOR FOR SELECT a FROM t WHERE a >= 1000 ORDER BY a;
FETCH 3 FROM c;
SQL

sub churn
{
	my ($seed, @others) = @_;
	my $bench = IPC::Run::start(
		[ 'pgbench', '-n', '-C', '-c', '6', '-j', '2', '-T', '6', "--random-seed=$seed",
			'-f', $file{read}, '-f', $file{write}, $node->connstr('postgres') ],
		'>', \my $stdout, '2>', \my $stderr);
	my $until = time + 5;
	my $left = 0;

	while (time < $until)
	{
		$left++ if $node->psql('postgres', $leave) == 0;
	}
	my $result = $bench->finish;
	note $stderr;
	note "$left sessions left in the middle";
	return $result && $left > 0;
}

ok(churn(1), 'index-only scans agree with sequential scans while connections come and go');
my $vacuum = start_pgbench($node, '-T', '8', '-f', $file{vacuum});
ok(churn(2), 'and with VACUUM running all the time');
ok($vacuum->finish, 'VACUUM does not fail');
my $compared = 0;
for my $seed (3 .. 10)
{
	$compared = $node->safe_psql('postgres', 'SELECT count(*) FROM compared WHERE n > 0');
	last if $compared > 20;
	churn($seed);				# a busy machine
}
note "$compared scans compared";
cmp_ok($compared, '>', 20, 'there was something to compare');

# Processes that are killed leave their slots behind until the server has
# restarted; processes that are terminated do not.
my (@sessions, @pids);
for (1 .. 6)
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	push @pids, $session->query_safe('SELECT pg_backend_pid()');
	$session->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN; DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 0 ORDER BY a; FETCH 3 FROM c');
	push @sessions, $session;
}
$node->safe_psql('postgres', 'DELETE FROM t WHERE a % 2 = 0');
is($node->safe_psql('postgres',
		"SELECT count(*) FROM (SELECT pg_terminate_backend(pid, 180000) AS done FROM unnest('{" . join(',', @pids) . "}'::int[]) pid) s WHERE done"),
	'6', 'sessions are terminated inside index-only scans');
$_->{run}->finish for @sessions;
$node->safe_psql('postgres', "SET statement_timeout = '3min'; VACUUM (INDEX_CLEANUP on) t");
same_answers($node, 'postgres', 'SELECT count(*), sum(a) FROM t WHERE a > 0', 'at the end');
check_indexes($node, 'postgres', 'at the end');
ok($node->poll_query_until('postgres', 'SELECT indexes FROM euno_memory', '1'), 'trees of temporary tables are gone');

# A tree is given up again and again while the workers of a parallel query use
# it: a worker, or the leader, builds it again and goes on.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE outer_rows AS SELECT g % 5000 AS a, repeat('x', 300) AS pad FROM generate_series(1, 60000) g;
CREATE TABLE inner_rows AS SELECT g AS a, g AS b FROM generate_series(1, 5000) g;
CREATE INDEX inner_a ON inner_rows USING euno (a);
SQL
$node->safe_psql('postgres', 'VACUUM ANALYZE outer_rows');
$node->safe_psql('postgres', 'VACUUM ANALYZE inner_rows');
my $evict = script_file($node, 'evict', "SELECT euno_evict('inner_a');\n\\sleep 40 ms\n");
my $parallel = <<'SQL';
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
SQL
my $join = "SELECT count(*), sum(b) FROM outer_rows JOIN inner_rows USING (a) WHERE pad > 'a'";
like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS OFF) $join"),
	qr/Gather.*Index Scan using inner_a/s, 'a parallel query with the index on its inner side');
my $evictions = start_pgbench($node, '-T', '5', '-f', $evict);
my %answers;
for (1 .. 10)
{
	$answers{ $node->safe_psql('postgres', "$parallel SELECT euno_rebuild('inner_a') AS built \\g /dev/null\n$join") }++;
}
ok($evictions->finish, 'its tree is given up again and again');
is(join(' ', keys %answers), '59988|149970000', 'its answers are right');
check_indexes($node, 'postgres', 'after evictions');

$node->stop;
done_testing();
