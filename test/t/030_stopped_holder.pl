# A process that is stopped for long while it holds what others need.  Those who
# wait for a rebuild can be timed out, canceled and terminated; those who wait
# for a node sleep, as they do for a page of a btree; and all goes on when the
# stopped one does.  Then many more sessions than processors, on one key and at
# the right edge.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use EunoTest;

my $node = euno_node('holder', "max_connections = 80\neuno.max_memory = 1500MB\neuno.auto_rebuild = off");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE u (a int, note text);
INSERT INTO u SELECT g, 'old' FROM generate_series(1, 500) g;
CREATE UNIQUE INDEX u_a ON u USING euno (a);
CREATE UNLOGGED TABLE hot (a int, client int, pad text DEFAULT repeat('x', 200));
CREATE INDEX hot_a ON hot USING euno (a);
CREATE INDEX hot_wide ON hot USING euno (a) INCLUDE (pad);
CREATE INDEX hot_descending ON hot USING euno (a DESC) INCLUDE (pad);
SELECT euno_evict('u_a');
SQL

# The builder of a unique index is stopped; inserts need the index.
my $gate = $node->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(1)');
my $builder = $node->background_psql('postgres', on_error_stop => 0);
my $builder_pid = $builder->query_safe("SET euno.debug_stop = 'build-page:1'; SELECT pg_backend_pid()");
$builder->{stdin} .= "SELECT euno_rebuild('u_a');\n\\echo built\n";
$builder->{run}->pump_nb;
ok($node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $builder_pid"), 'a rebuild has begun');
is($node->safe_psql('postgres', "SELECT state FROM euno_stat_indexes WHERE indexrelid = 'u_a'::regclass"), 'building', 'and is seen');
is(kill('STOP', $builder_pid), 1, 'its process is stopped');
$gate->quit;
my $stopped = time;

my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = 700; INSERT INTO u VALUES (1001, 'timed out')");
like($stderr, qr/canceling statement due to statement timeout/, 'a waiter times out');
($ret, $stdout, $stderr) = $node->psql('postgres', "SET lock_timeout = 700; INSERT INTO u VALUES (1002, 'timed out')");
like($stderr, qr/canceling statement due to lock timeout/, 'another, by lock_timeout');

# Starts an insert that waits, and returns when it does.
sub waiter
{
	my ($name, $key) = @_;
	my %waiter = (out => '', err => '');

	$waiter{run} = IPC::Run::start(
		[ 'psql', '-X', '-q', '-d', $node->connstr('postgres') . " application_name=$name", '-c', "INSERT INTO u VALUES ($key, '$name')" ],
		'<', '/dev/null', '>', \$waiter{out}, '2>', \$waiter{err});
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$name' AND wait_event_type = 'Lock'"), "$name waits");
	return \%waiter;
}
my $told = waiter('canceled', 1003);
my $terminated = waiter('terminated', 1004);
my $patient = waiter('patient', 1005);
my $duplicate = waiter('duplicate', 7);
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'canceled'");
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'terminated'");
$_->{run}->finish for $told, $terminated;
like($told->{err}, qr/canceling statement due to user request/, 'one is canceled');
like($terminated->{err}, qr/terminating connection due to administrator command/, 'one is terminated');
is($node->safe_psql('postgres', 'SELECT count(*) FROM u WHERE a > 0'), '500', 'reads go on meanwhile');
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE application_name IN ('patient', 'duplicate') AND wait_event_type = 'Lock'"), 'the others still wait');
note sprintf '%.1f s stopped', time - $stopped;
is(kill('CONT', $builder_pid), 1, 'the builder goes on');
ok($patient->{run}->finish, 'so does one who waited');
$duplicate->{run}->finish;
like($duplicate->{err}, qr/duplicate key value violates unique constraint "u_a"/, 'and one whose key was there');
$builder->quit;
is($node->safe_psql('postgres', "SELECT count(*), string_agg(note, ' ') FILTER (WHERE a > 500) FROM u"), '501|patient', 'the rows are those that were acknowledged');
check_indexes($node, 'postgres', 'after a stopped builder');

# Sessions that insert one key and at the right edge.
my $script = script_file($node, 'hot', "INSERT INTO hot (a, client) SELECT CASE WHEN g % 2 = 0 THEN 7 ELSE (extract(epoch FROM clock_timestamp()) * 100)::bigint % 1000000000 END, :client_id FROM generate_series(1, 20) g;\n");

sub load
{
	my ($clients, $seconds, $out, $err) = @_;

	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', $clients, '-j', '2', '-T', $seconds, '-f', $script, $node->connstr('postgres') . ' application_name=hot options=-ceuno.debug_stop=count-nodes' ],
		'>', $out, '2>', $err);
}

# Stops one after the other until one is hit that holds a node, so that others
# sleep for it, in one statement and as long as it is stopped.  Then ends those.
# (Some may wait for memory of the tree, or while they hold a node themselves: then
# the next one is tried.)
my $bench = load(12, 60, \$stdout, \$stderr);
$node->poll_query_until('postgres', "SELECT count(*) = 12 FROM pg_stat_activity WHERE application_name = 'hot'");
my @pids = grep { /^[0-9]+$/ && $_ > 1 } split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'hot'");
my ($stops, $catches, $held, $canceled, $vacuum, $shown) = (0, 0, 0, 0);
my $watch = $node->background_psql('postgres');
my $sleeping = "application_name = 'hot' AND state = 'active' AND wait_event_type = 'Extension'";
my $sleepers = "SELECT pid || ' ' || query_start FROM pg_stat_activity WHERE $sleeping AND pid <> ";
my $until = time + 30;

# Those of a list, by process and statement, who sleep now.
sub still_asleep
{
	my ($stopped_pid, @before) = @_;
	my %now = map { $_ => 1 } split /\n/, $watch->query_safe($sleepers . $stopped_pid);

	return grep { $now{$_} } @before;
}

while (time < $until && !$canceled)
{
	my $pid = $pids[ $stops++ % @pids ];

	# It may hold something of the server that the next query waits for.
	local $SIG{ALRM} = sub { kill 'CONT', $pid };
	alarm(180 + ($ENV{EUNO_STOP_SECONDS} || 3));
	kill 'STOP', $pid;
	sleep 0.02;
	my @patient = split /\n/, $watch->query_safe($sleepers . $pid);
	for (1 .. 5)
	{
		last unless @patient;
		sleep 0.08;
		@patient = still_asleep($pid, @patient);
	}
	my $served = '';
	if (@patient)
	{
		$served = $watch->query_safe('SELECT count(*) > 0 FROM u WHERE a > 0');
		sleep($ENV{EUNO_STOP_SECONDS} || 3);
		@patient = still_asleep($pid, @patient);
	}
	$held = @patient > 0;
	if ($held)
	{
		$catches++;
		is($served, 't', 'others are served while a node is held');

		# It may get to the node in time, or not; it must not wait for it for ever.
		# (When it frees nodes, in the end, it may have to wait for a mutex.)
		my ($vacuum_error, $phase, $merging) = ('', '', 0);
		$vacuum = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'),
				map { ('-c', $_) } "DELETE FROM hot WHERE ctid = '(0,1)'", 'SET statement_timeout = 2000', 'VACUUM (INDEX_CLEANUP on) hot' ],
			'<', '/dev/null', '>', '/dev/null', '2>', \$vacuum_error);
		$shown = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SET statement_timeout = 500',
				map { ('-c', "SELECT count(*) FROM euno_hot_leaves('hot_$_')") } qw(a wide descending) ],
			'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
		for (my $end = time + 120; time < $end && $merging < 10; sleep 0.5)
		{
			$vacuum->pump_nb;
			last unless $vacuum->pumpable;
			$phase = $watch->query_safe('SELECT phase FROM pg_stat_progress_vacuum');
			$merging += $phase eq 'cleaning up indexes';
		}
		ok($merging == 10 || !$vacuum->pumpable, 'VACUUM ends, or can be canceled')
		  or diag "$phase; ", $watch->query('SELECT pid, state, wait_event_type, wait_event, left(query, 60) FROM pg_stat_activity');
		note $merging == 10 ? 'VACUUM waits' : $vacuum_error eq '' ? 'VACUUM has ended' : $vacuum_error;
		is($watch->query_safe("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%euno_hot_leaves(%' AND pid <> pg_backend_pid() AND wait_event_type = 'Extension' AND now() - query_start > '1.5s'"), '0', 'whoever shows hot leaves does not wait longer than he may');
		my @sleeping = map { /^(\d+)/ } still_asleep($pid, @patient);
		my $half = int(@sleeping / 2);
		$watch->query_safe("SELECT pg_cancel_backend($_)") for @sleeping[ $half .. $#sleeping ];
		$watch->query_safe("SELECT pg_terminate_backend($_)") for @sleeping[ 0 .. $half - 1 ];
		for (1 .. @sleeping ? 100 : 0)
		{
			sleep 0.1;
			my $left = $watch->query_safe('SELECT count(*) FROM pg_stat_activity WHERE pid IN (' . join(',', @sleeping) . ") AND $sleeping");
			$canceled = @sleeping - $left;
			last if $left == 0;
		}
		note scalar @sleeping, " slept, $canceled of them were ended";
	}
	kill 'CONT', $pid;
	alarm(0);
	$_->finish for $held ? ($vacuum, $shown) : ();
}
note $stops, ' stops, ', $held ? 'the last one of' : 'none of', ' a process that held a node';

# Meanwhile sessions tell what has become of them.
for (1 .. 20)
{
	last unless $bench->pumpable;
	$bench->pump_nb;
	sleep 0.1;
}
$bench->kill_kill;
SKIP:
{
	# Those whose writes it was about to perform cannot be ended; but not all are that
	skip 'no process was stopped that held a node', 2 unless $canceled || $catches > 2;
	like($stderr, qr/canceling statement due to user request|terminating connection due to administrator command/, 'those who sleep can be canceled and terminated');
	unlike($stderr, qr/(ERROR|FATAL):  (?!canceling statement due to user request|terminating connection due to administrator command)/, 'and nothing else happens to them')
	  or diag $stderr;
}
$watch->quit;
check_indexes($node, 'postgres', 'after a stopped writer');

# Who holds the lock of a key is stopped.
$node->safe_psql('postgres', 'CREATE TABLE k (a bigint); CREATE UNIQUE INDEX k_a ON k USING euno (a); INSERT INTO k VALUES (1)');
$gate = $node->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(1)');
my $owner = $node->background_psql('postgres');
my $owner_pid = $owner->query_safe("SET euno.debug_stop = 'unique-checked:1'; SELECT pg_backend_pid()");
$owner->{stdin} .= "INSERT INTO k VALUES (7);\n\\echo inserted\n";
$owner->{run}->pump_nb;
ok($node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $owner_pid"), 'an insert has checked its key');
kill 'STOP', $owner_pid;
$gate->quit;
($ret, $stdout, $stderr) = $node->psql('postgres', 'SET statement_timeout = 500; INSERT INTO k VALUES (7)');
like($stderr, qr/canceling statement due to statement timeout/, 'another one with this key times out');
($ret, $stdout, $stderr) = $node->psql('postgres',
	"BEGIN; SAVEPOINT s; SET LOCAL statement_timeout = 300;\nINSERT INTO k VALUES (7);\nROLLBACK TO s; INSERT INTO k VALUES (9); COMMIT", on_error_stop => 0);
like($stderr, qr/canceling statement due to statement timeout/, 'and one within a savepoint');
is($node->safe_psql('postgres', 'SELECT string_agg(a::text, $$ $$ ORDER BY a) FROM k'), '1 9', 'and its transaction goes on');
kill 'CONT', $owner_pid;
$owner->query_until(qr/inserted/, '');
$owner->quit;
($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO k VALUES (7)');
like($stderr, qr/duplicate key value/, 'the key is there when the stopped one has gone on');
check_indexes($node, 'postgres', 'after a stopped owner of a key');

# 64 sessions.
$node->safe_psql('postgres', 'TRUNCATE hot; DROP INDEX hot_wide');
$bench = load(64, 7, \$stdout, \$stderr);
ok($bench->finish, '64 sessions end well') or diag $stderr;
my ($transactions) = $stdout =~ /transactions actually processed: (\d+)/;
note "$transactions transactions";
is($node->safe_psql('postgres', 'SELECT count(DISTINCT client) FROM hot'), '64', 'and each of them got on');
same_answers($node, 'postgres', 'SELECT a, count(*), sum(client) FROM hot WHERE a >= 0 GROUP BY a ORDER BY a', 'hot_a');
check_indexes($node, 'postgres', 'at the end');
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'nothing broke');
$node->stop;
done_testing();
