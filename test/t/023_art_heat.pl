# Sessions that are in each other's way in a radix tree: counted by cause, shown with
# the range of keys where it happens, forgotten when it is over.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('art_heat', "euno.naptime = 1s\neuno.hot_leaf_conflicts = 1\neuno.max_memory = 1GB\neuno.auto_rebuild = off");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (id bigint);
INSERT INTO t SELECT g * 100 FROM generate_series(1, 50000) g;
CREATE INDEX t_art ON t USING euno (id) WITH (structure = art);
SQL

# All write to few keys between two neighbors of the table, and every conflict is
# noted.  What is over is soon forgotten, so it is looked for while they are at it, as
# long as it takes on a machine that is busy, or has one processor.
my $script = script_file($node, 'hot', "INSERT INTO t SELECT 2500000 + (random() * 5)::int FROM generate_series(1, 500);\n");
my $bench;
{
	local $ENV{PGOPTIONS} = '-c euno.debug_stop=count-nodes';
	$bench = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '16', '-j', '2', '-T', '120', '-f', $script, $node->connstr('postgres') ],
		'>', \my $stdout, '2>', \my $stderr);
}
my $hot = "FROM euno_hot_leaves('t_art')";
my $found = '';
while ($found ne 't' && $bench->pumpable)
{
	$found = $node->safe_psql('postgres', "SELECT count(*) > 0 $hot WHERE first_key ~ '^\\(id\\)=\\(2[45]' AND last_key ~ '^\\(id\\)=\\(25' AND entries > 0 AND locked + changed > 0 AND conflicts_per_second > 0 AND mode IN ('calm', 'delegated') AND domain = 0 AND leaf IS NULL AND parted IS NULL");
	$bench->pump_nb;
}
is($found, 't', 'the hot place is shown') or diag $node->safe_psql('postgres', "SELECT * $hot");
cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM euno_hot_leaves('t_art', 1)"), '<=', 1, 'no more than asked for');
$bench->signal('TERM');
$bench->finish;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"), 'all sessions end');
is($node->safe_psql('postgres', "SELECT conflicts_locked + conflicts_changed > 0 FROM euno_stat_indexes WHERE indexrelname = 't_art'"),
	't', 'conflicts are counted');
check_indexes($node, 'postgres', 'afterwards');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 $hot"), 'forgotten when it is over');
is($node->safe_psql('postgres', 'SELECT hot_leaves + leaves_contended + leaves_calmed FROM euno_stat_worker'),
	'0', 'the launcher does nothing that a radix tree does not have');
unlike(slurp_file($node->logfile), qr/contended|split between/, 'and says nothing of it');
$node->stop;
done_testing();
