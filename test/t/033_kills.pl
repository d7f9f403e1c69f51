# Killed at the worst moment: the postmaster while it writes the trees to the file
# and while it reads them, a worker of a parallel scan and of a rebuild in its turn.
# And prepared serializable transactions, whose locks of leaves go over a restart.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use EunoTest;

my $node = euno_node('kills', "euno.snapshot_on_shutdown = on\neuno.max_memory = 400MB\nshared_buffers = 16MB\nmax_worker_processes = 12\nmin_parallel_table_scan_size = 0\neuno.rebuild_workers = 3");
my $file = $node->data_dir . '/euno_index.snapshot';
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text) WITH (parallel_workers = 2);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 100000) g;
CREATE INDEX t_a ON t USING euno (a) WITH (structure = art);
CREATE INDEX t_wide ON t USING euno (b, repeat(b, 60));
SQL
my $query = 'SELECT count(*), sum(a) FROM t WHERE a > 0';
my $rows = 100000;

# The ID of the server's first process.
sub postmaster
{
	return (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
}

# Polls for a moment, at most five minutes away, and kills the postmaster in it.
sub kill_when
{
	my ($moment) = @_;
	my $pid;
	my $end = time + 300;

	until ($moment->())
	{
		return 0 if time > $end;
		sleep 0.0002;
	}
	$pid = eval { postmaster() };
	return 0 unless defined $pid && $pid =~ /^[0-9]+$/ && $pid > 1 && kill('KILL', $pid);

	# Until somebody has taken note of its death, it seems to be there; in a
	# container nobody may.
	for (1 .. 200)
	{
		return 1 unless kill 0, $pid;
		sleep 0.05;
	}
	unlink $node->data_dir . '/postmaster.pid'
	  if slurp_file("/proc/$pid/stat") =~ /\) Z /;
	return 1;
}

# Its children may live a little longer, and so long nothing can be started.
sub start_again
{
	$node->_update_pid(-1);
	for (1 .. 600)
	{
		return if $node->start(fail_ok => 1);
		sleep 0.1;
	}
	$node->start;
	return;
}

# After a kill; the next start must find a table that has changed.
sub examine
{
	my ($name) = @_;

	start_again();
	ok(!-e $file && !-e "$file.tmp", "$name: no file is left");
	wait_for_state($node, 'postgres', 'ready');
	same_answers($node, 'postgres', $query, $name);
	is(by_index($node, 'postgres', $query), "$rows|" . $rows * ($rows + 1) / 2, "$name: all rows are there");
	check_indexes($node, 'postgres', $name);
	$rows++;
	$node->safe_psql('postgres', "INSERT INTO t VALUES ($rows, 'new')");
	return;
}

system_log('pg_ctl', '-D', $node->data_dir, '-m', 'fast', '-W', 'stop');
ok(kill_when(sub { -e "$file.tmp" || -e $file }), 'killed while it writes');
note -e $file ? 'the file was complete' : 'the file was not complete';
SKIP:
{
	skip 'the file was written faster than seen', 1 if -e $file;
	ok(-e "$file.tmp", 'a part of it is there');
}
unlink $file;
examine('killed while it wrote');

$node->stop;
ok(-s $file, 'a file to read');
note -s $file, ' bytes';
my $log_start = -s $node->logfile;
system_log('pg_ctl', '-D', $node->data_dir, '-l', $node->logfile, '-W', 'start');
ok(kill_when(sub { !-e $file }), 'killed while it reads');
note 'it was done' if slurp_file($node->logfile, $log_start) =~ /read \d+ euno indexes from/;
examine('killed while it read');

# A worker that has just taken its turn, and one that reads the table.
my $holder = $node->background_psql('postgres');
my $in_workers = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET parallel_leader_participation = off';
for my $case ([ 'scan-batch', $in_workers, $query ],
	[ 'scan-direct', $in_workers, $query ],
	[ 'build-page', "SELECT euno_evict('t_a')", "SELECT euno_rebuild('t_a')" ])
{
	my ($point, $settings, $statement) = @$case;

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	my $victim = $node->background_psql('postgres', on_error_stop => 0);
	$victim->query_until(qr/begun/, "$settings; SET euno.debug_stop = '$point:1';\n\\echo begun\n$statement;\n");
	my $worker = "SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE backend_type = 'parallel worker' AND locktype = 'advisory' AND NOT granted ORDER BY pid LIMIT 1";
	ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM ($worker) w"), "$point: a worker has stopped");
	kill_process($node->safe_psql('postgres', $worker));
	eval { $victim->quit };
	eval { $holder->quit };
	$holder = undef;
	wait_for_recovery($node);
	wait_for_state($node, 'postgres', 'ready');
	same_answers($node, 'postgres', $query, "$point: after a worker was killed");
	check_indexes($node, 'postgres', "$point: after a worker was killed");
	$holder = $node->background_psql('postgres');
}
$holder->quit;

# Each reads what the other writes, and one is prepared before the restart: with
# the trees from the file, and from the table.
for my $mode ('fast', 'immediate')
{
	$node->safe_psql('postgres', 'CREATE TABLE s (k int); CREATE INDEX s_k ON s USING euno (k); INSERT INTO s SELECT 10 * g FROM generate_series(1, 5000) g');
	my $sums = 'SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(k) FROM s WHERE k BETWEEN';

	$node->safe_psql('postgres', "$sums 101 AND 199; INSERT INTO s VALUES (40001); PREPARE TRANSACTION 'first'");
	$node->stop($mode);
	$node->start;
	wait_for_state($node, 'postgres', 'ready');
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sums 40001 AND 40099; INSERT INTO s VALUES (101); COMMIT");
	like($stderr, qr/ERROR:  40001/, "$mode: the second of two that need each other's absence fails");
	($ret, $stdout, $stderr) = $node->psql('postgres', "$sums 20001 AND 20099; INSERT INTO s VALUES (20001); COMMIT");
	is($stderr, '', "$mode: one that has nothing to do with it does not");
	$node->safe_psql('postgres', "COMMIT PREPARED 'first'; DROP TABLE s");
}
unlike(slurp_file($node->logfile), qr/PANIC|XX00/, 'nothing broke');
$node->stop;
done_testing();
