# CREATE INDEX that is canceled, ended or killed while it reads the table, sorts or
# loads, or finds no room: its memory comes back, and the next one works.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use EunoTest;

my $cancels = $ENV{EUNO_CANCELS} || 200;
my $node = euno_node('builds', "euno.debug_copies = off\neuno.max_memory = 16MB\neuno.naptime = 1s\nmaintenance_work_mem = '4MB'\nmax_parallel_maintenance_workers = 0");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t AS SELECT g * 7919 % 40000 AS a, md5(g::text) AS b FROM generate_series(1, 40000) g;
INSERT INTO t SELECT g, repeat(md5(g::text), 80) FROM generate_series(1, 50) g;
CREATE TABLE large AS SELECT g AS a, repeat(md5(g::text), 20) AS b FROM generate_series(1, 60000) g;
VACUUM t, large;
SQL

# Numbers, bytes; rows that are sorted by guesses, abbreviations, comparisons.
my @columns = ('a', 'b COLLATE "C"', 'b', q{('10.0.0.0'::inet + a), (ARRAY[a::numeric])}, '(ARRAY[a % 100, a]::numeric[])');

sub create
{
	my ($columns) = @_;

	return "CREATE INDEX t_index ON t USING euno ($columns)";
}

sub works
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($node->poll_query_until('postgres', 'SELECT used_bytes FROM euno_memory', '0'), "$name: all memory is given back");
	for my $columns (@columns)
	{
		my ($ret, undef, $stderr) = $node->psql('postgres',
			create($columns) . "; SELECT euno_index_check('t_index', true); DROP INDEX t_index");
		is("$ret $stderr", '0 ', "$name: then an index on $columns is built");
	}
	return;
}

# A session that creates an index, and stops on the way for another one, which comes
# first; and the process of the former.
sub start_build
{
	my ($settings, $then) = @_;
	my ($holder, $builder) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	my $pid = $builder->query('SELECT pg_backend_pid()');

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$builder->query_until(qr/started/, "$settings;\n\\echo started\n" . create('b') . ";\n" . ($then // ''));
	return ($holder, $builder, $pid);
}

# The statement is canceled, or the process terminated, or killed.
sub end_build
{
	my ($how, $holder, $builder, $pid) = @_;

	if ($how eq 'kill')
	{
		kill_process($pid);
		$_->{run}->finish for $holder, $builder;
		wait_for_recovery($node);
		return;
	}
	$node->safe_psql('postgres', "SELECT pg_${how}_backend($pid)");
	if ($how eq 'cancel') { $builder->quit } else { $builder->{run}->finish }
	$holder->quit;
	return;
}

works('at first');

# Canceled at random moments.
my $canceled = 0;
for my $columns (@columns)
{
	my $start = time;
	$node->safe_psql('postgres', create($columns) . '; DROP INDEX t_index');
	my $longest = 1 + int((time - $start) * 1000);
	my $script = "SET client_min_messages = error;\n";

	$script .= sprintf("SET statement_timeout = %d;\n%s;\nSET statement_timeout = 0;\nDROP INDEX IF EXISTS t_index;\n",
		1 + rand($longest), create($columns)) for 1 .. $cancels / @columns;
	my (undef, undef, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);
	is(join("\n", grep { /ERROR/ && !/canceling statement due to statement timeout/ } split /\n/, $stderr), '', "$columns: no other error");
	$canceled += () = $stderr =~ /canceling statement/g;
}
note("$canceled of $cancels were canceled");
ok($canceled > 0, 'some were canceled');
works('canceled at random moments');

# Canceled, terminated and killed at places in the middle.
for my $point ('build-page', 'build-sort', 'build-loaded')
{
	for my $how ('cancel', 'terminate', 'kill')
	{
		my ($holder, $builder, $pid) = start_build("SET euno.debug_stop = '$point:1'");

		ok($node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid"),
			"$how at $point: it is there");
		end_build($how, $holder, $builder, $pid);
		works("$how at $point");
	}
}

# There is no room for all of it.
for my $columns ('b COLLATE "C"', 'b')
{
	my (undef, undef, $stderr) = $node->psql('postgres', "CREATE INDEX ON large USING euno ($columns)");

	like($stderr, qr/ERROR:  out of memory for euno index/, "an index on $columns of the large table does not fit");
	works('no room');
}
$node->stop;

# What is idle is lent to sorts, and comes back after errors, in a subtransaction
# too.
$node = euno_node('loans', "euno.domains = 1\neuno.debug_copies = off\neuno.max_memory = 256MB\nmax_parallel_maintenance_workers = 0");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t AS SELECT g * 7919 % 100003 AS a, md5(g::text) AS b FROM generate_series(1, 100000) g;
VACUUM t;
SQL
for my $how ('idle', 'nothing idle', 'cancel', 'terminate', 'kill')
{
	my $least = $how eq 'nothing idle' ? 0 : 4;

	works("sorts, $how") if $least;
	if (!$least)
	{
		$node->restart;
		$node->poll_query_until('postgres', 'SELECT idle_bytes FROM euno_memory', '0');
	}
	my ($holder, $builder, $pid) = start_build("SET euno.debug_stop = 'build-sort:1'", "DROP INDEX t_index;\n");

	ok($node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid"), "$how: it sorts");
	is($node->safe_psql('postgres', 'SELECT used_bytes >= 4 << 20 FROM euno_memory'), $least ? 't' : 'f', "$how: what it sorts is lent");
	if ($how =~ /idle/) { $_->quit for $holder, $builder }
	else { end_build($how, $holder, $builder, $pid) }
	ok($node->poll_query_until('postgres', 'SELECT used_bytes FROM euno_memory', '0'), "$how: all memory is given back");
}
works('sorts');

# So does a worker, while the leader waits before it reads: the worker finds all.
# Killed, or not; then the leader has nothing of its own.
my $with_worker = 'SET max_parallel_maintenance_workers = 1; SET min_parallel_table_scan_size = 0';
for my $how ('killed', 'not killed')
{
	my ($holder, $builder, $pid) = start_build("$with_worker; SET euno.debug_stop = 'build-leader:1,build-sort:1'");
	my $stopped = 'FROM pg_stat_activity JOIN pg_locks USING (pid)'
	  . " WHERE locktype = 'advisory' AND NOT granted AND (pid = $pid OR leader_pid = $pid)";

	ok($node->poll_query_until('postgres', "SELECT count(*) = 2 AND count(leader_pid) = 1 $stopped"), "worker $how: it sorts, the leader waits");
	is($node->safe_psql('postgres', 'SELECT used_bytes >= 4 << 20 FROM euno_memory'), 't', "worker $how: what it sorts is lent");
	if ($how eq 'killed')
	{
		end_build('kill', $holder, $builder, $node->safe_psql('postgres', "SELECT pid $stopped AND leader_pid IS NOT NULL"));
	}
	else
	{
		$holder->quit;
		$builder->query_safe(q{SELECT euno_index_check('t_index', true); DROP INDEX t_index});
		$builder->quit;
	}
	works("worker $how");
}
is($node->safe_psql('postgres', <<'SQL'), '0', 'an error in a subtransaction');
BEGIN;
DO $$BEGIN
	CREATE INDEX ON t USING euno (b, (1 / (a - 50000)));
EXCEPTION WHEN division_by_zero THEN
	NULL;
END$$;
SELECT used_bytes FROM euno_memory;
COMMIT;
SQL
works("sorts, after the error");
$node->append_conf('postgresql.conf', "maintenance_work_mem = '4MB'");
$node->reload;
works('sorts in runs');

# As after a sequential scan, a table that is not large is in shared buffers.
$node->restart;
$node->safe_psql('postgres', create('a'));
like($node->safe_psql('postgres', 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) SELECT count(b) FROM t'),
	qr/Seq Scan on t [^\n]*\n\s+Buffers: shared hit=\d+\n/, 'what was read is cached');

# What workers have read counts as the statement's.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'euno_index, pg_stat_statements'\nmax_parallel_maintenance_workers = 2\nmaintenance_work_mem = '100MB'\nmin_parallel_table_scan_size = 0");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements; CREATE INDEX t_counted ON t USING euno (a)');
is($node->safe_psql('postgres', <<'SQL'), 't', 'what workers read is counted');
SELECT shared_blks_hit + shared_blks_read >= pg_relation_size('t') / 8192 FROM pg_stat_statements WHERE query LIKE 'CREATE INDEX t_counted%'
SQL

# VACUUM has workers of its own; not by default, for an index's file is one block.
$node->safe_psql('postgres', 'DELETE FROM t WHERE a % 10 = 1');
my (undef, undef, $launched) = $node->psql('postgres', 'SET min_parallel_index_scan_size = 0; VACUUM (PARALLEL 2, VERBOSE, INDEX_CLEANUP on) t');
like($launched, qr/launched [12] parallel vacuum workers? for index vacuuming/, 'VACUUM with workers');
check_indexes($node, 'postgres', 'VACUUM with workers');

# Without room for what workers share, the next rebuild has none; the one after that has.
$node->append_conf('postgresql.conf', "dynamic_shared_memory_type = mmap\neuno.auto_rebuild = off\nlog_temp_files = 0");
$node->restart;
sub rebuild
{
	my (undef, undef, $error) = $node->psql('postgres', q{SELECT euno_evict('t_counted'), euno_rebuild('t_counted')});

	return $error;
}
my $segments = $node->data_dir . '/pg_dynshmem';
my $log_start = -s $node->logfile;
chmod 0500, $segments;
for my $am (qw(btree euno))
{
	(undef, undef, my $error) = $node->psql('postgres', "CREATE INDEX ON t USING $am (a, b)");
	like($error, qr/ERROR:  could not open shared memory segment/, "there is no room for what workers share: CREATE INDEX, $am");
}
like(rebuild(), qr/ERROR:  could not open shared memory segment.*\nCONTEXT:  while building euno index/, 'a rebuild');
is(rebuild(), '', 'then it is built without workers');
unlike(slurp_file($node->logfile, $log_start), qr/\.fileset/, 'which is so');
chmod 0700, $segments;
is(rebuild(), '', 'there is room again');
like(slurp_file($node->logfile, $log_start), qr/\.fileset/, 'and workers');
check_indexes($node, 'postgres', 'with workers, and without');
$node->stop;

done_testing();
