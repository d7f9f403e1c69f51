# Processes that do not run for a while: stopped by a signal in the middle of
# whatever they do, as a busy machine does it, only for longer.  The others wait
# for them if they have to; nobody gives up, and nothing breaks.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('stopped', '');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b int);
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_b ON t USING euno (b);
SQL

# All write to the right edge of one tree and to few keys of the other.
my $script = script_file($node, 'write', <<'SQL');
\set k random(1, 20)
INSERT INTO t SELECT :client_id + 10 * g, :k FROM generate_series(1, 50) g;
DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE b = :k AND a < 200 LIMIT 20);
SQL

# More sessions than processors, by far.
my $bench = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '20', '-j', '2', '-T', '8', '-f', $script, $node->connstr('postgres') . ' application_name=load' ],
	'>', \my $stdout, '2>', \my $stderr);
$node->poll_query_until('postgres', "SELECT count(*) = 20 FROM pg_stat_activity WHERE application_name = 'load'");
my $stops = 0;
for my $round (1 .. 12)
{
	my @pids = grep { /^[0-9]+$/ && $_ > 1 } split /\n/,
	  $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'load' ORDER BY random() LIMIT 6");

	$stops += kill 'STOP', @pids;
	select(undef, undef, undef, 0.3);
	kill 'CONT', @pids;
	select(undef, undef, undef, 0.05);
}
ok($bench->finish, 'all sessions end well') or diag $stderr;
# All twelve times, unless the sessions have ended before on a busy machine.
cmp_ok($stops, '>=', 6, 'processes were stopped');
my ($transactions) = $stdout =~ /transactions actually processed: (\d+)/;
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM t'), 't', 'they wrote something');
note "$transactions transactions, $stops stops";
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'nothing broke');
same_answers($node, 'postgres', 'SELECT count(*), sum(b) FROM t WHERE a > 100', 't_a');
same_answers($node, 'postgres', 'SELECT b, count(*) FROM t WHERE b > 5 GROUP BY b ORDER BY b', 't_b');
check_indexes($node, 'postgres', 'at the end');
$node->stop;
done_testing();
