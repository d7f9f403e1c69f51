# Several domains on a machine that has one node: each has a directory of its
# own, they may lag as far as they can, and come and go.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;
use IPC::Run;

my $node = euno_node('domains', "euno.domains = 4\neuno.naptime = 1s\nmax_connections = 30");
$node->start;
$node->safe_psql('postgres', $extension . <<'SQL');
CREATE TABLE t (id bigint, a uuid, b text COLLATE "C", n numeric);
INSERT INTO t SELECT g, gen_random_uuid(), 'key ' || g % 1000, g % 5000 FROM generate_series(1, 20000) g;
CREATE INDEX t_a ON t USING euno (a) WITH (replicate = on);
CREATE INDEX t_b ON t USING euno (b, id);
CREATE INDEX t_n ON t USING euno (n compared);
CREATE INDEX t_off ON t USING euno (id) WITH (replicate = off);
SQL

is($node->safe_psql('postgres', 'SELECT count(*), count(cpus), count(node) FROM euno_stat_domains'),
	'4|4|0', 'four domains, none bound to a node');

# Sessions are spread over all domains; every one inserts, deletes and reads.
my $script = script_file($node, 'mixed', <<'SQL');
\set k random(1, 1000)
\set i random(1, 1000000)
BEGIN;
INSERT INTO t SELECT :i + g, gen_random_uuid(), 'key ' || :k, :k FROM generate_series(1, 50) g;
DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE b = 'key ' || :k::text ORDER BY id LIMIT 30);
SELECT count(*) FROM t WHERE n = :k;
COMMIT;
SQL

sub mixed
{
	my ($name, @options) = @_;

	local $ENV{PGOPTIONS} = join ' ', map { "-c $_" } @options;
	my $result = IPC::Run::run(
		[ 'pgbench', '-n', '-c', '8', '-j', '2', '-T', '4', '-f', $script, $node->connstr('postgres') ],
		'>', \my $stdout, '2>', \my $stderr);
	ok($result, "$name: sessions in all domains") or diag $stderr;
	same_answers($node, 'postgres', $_, $name)
	  for 'SELECT count(*), sum(id) FROM t WHERE b > \'\'',
	  'SELECT count(*), sum(id) FROM t WHERE n >= 0',
	  'SELECT count(a) FROM t WHERE a > \'00000000-0000-0000-0000-000000000000\'',
	  'SELECT count(*), sum(id) FROM t WHERE id > 0';
	check_indexes($node, 'postgres', $name);
}

mixed('directories up to date');
$node->safe_psql('postgres', 'VACUUM ANALYZE t');
ok($node->poll_query_until('postgres', 'SELECT (SELECT sum(bytes) FROM euno_stat_domains) = (SELECT sum(bytes) FROM euno_stat_indexes)'),
	'domains have the memory of the indexes');

# Short transactions are sampled as long ones are.
my $short = script_file($node, 'short', "\\set i random(1, 20000)\nSELECT n FROM t WHERE id = :i AND b > '';\n");
my $counts = 'SELECT sum(descents), sum(remote_descents), sum(inner_nodes) FROM euno_stat_domains';
my @before = split /\|/, $node->safe_psql('postgres', $counts);
ok(start_pgbench($node, '-c', '8', '-j', '2', '-t', '2500', '-f', $short)->finish, 'short transactions');
my @after = split /\|/, $node->safe_psql('postgres', $counts);
my ($descents, $remote, $inner) = map { $after[$_] - $before[$_] } 0 .. 2;
cmp_ok($descents, '>=', 20000, 'descents are counted');
ok($remote > $descents / 4 && $remote < $descents * 1.2, 'and about how many are remote') or diag "$remote of $descents";
ok($inner > $descents / 2 && $inner < $descents * 4, 'and about how many inner nodes are visited') or diag "$inner of $descents";

is($node->safe_psql('postgres', 'SELECT bool_and(remote_descents BETWEEN 1 AND descents * 2 AND remote_inner_nodes <= inner_nodes) FROM euno_stat_domains'),
	't', 'operations are counted') or diag $node->safe_psql('postgres', 'TABLE euno_stat_domains');
is($node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_domains WHERE descents > 0'), '4',
	'all domains have been at work');

# As far behind as can be: nobody posts what others made.
$node->append_conf('postgresql.conf', 'euno.debug_copies = lagging');
$node->reload;
my $lag = 0;
for (my $turn = 0; $turn < 10 && $lag == 0; $turn++)
{
	mixed('directories lag');
	$lag = $node->safe_psql('postgres', 'SELECT sum(lag) FROM euno_stat_domains');
}
cmp_ok($lag, '>', 0, 'they do lag');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 10 <> 0; VACUUM t');
check_indexes($node, 'postgres', 'after merges of leaves that directories did not know');
mixed('directories lag after merges');

$node->append_conf('postgresql.conf', 'euno.debug_copies = off');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT sum(lag) = 0 FROM euno_stat_domains",
	't'), 'the launcher brings directories up to date') or diag $node->safe_psql('postgres', 'TABLE euno_stat_domains');

# Directories come and go while others are at work.
my $changes = script_file($node, 'change', "SELECT euno_set_domains('1');\nSELECT euno_set_domains('3');\nSELECT euno_set_domains('0;1');\nSELECT euno_set_domains('4');\nVACUUM t;\n");
my $changing = start_pgbench($node, '-T', '5', '-f', $changes);
mixed('domains change');
ok($changing->finish, 'domains change again and again');
is($node->safe_psql('postgres', q(SELECT euno_set_domains('2'))), '2', 'two domains are left');
is($node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_domains'), '2', 'and shown');
mixed('two of four domains');

for my $wrong ('5', '0', 'none', '0;0', '0-', '3-1')
{
	my ($code) = $node->psql('postgres', "SELECT euno_set_domains('$wrong')");
	isnt($code, 0, "\"$wrong\" is refused");
}
my ($code, $pages, $stderr) = $node->psql('postgres', "SELECT sum(bytes) = euno_index_size('t_a') FROM euno_numa_pages('t_a')");
if ($code == 0)
{
	is($pages, 't', 'all pages are on some node');

	# Whoever looks where they are keeps the tree.
	my ($found, $errors) = ('', '');
	my @psql = ('psql', '-XqAt', '-d', $node->connstr('postgres'), '-c');
	my $locker = $node->background_psql('postgres');
	$locker->query_safe('SELECT pg_advisory_lock(1)');
	my $look = IPC::Run::start([ @psql, "SET euno.debug_stop = 'numa-pages:1'; SELECT sum(bytes) > 0 FROM euno_numa_pages('t_a')" ],
		'>', \$found, '2>', \$errors);
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
		or die 'not stopped';
	my $evict = IPC::Run::start([ @psql, "SELECT euno_evict('t_a')" ], '>', \my $nothing, '2>', \$errors);
	ok($node->poll_query_until('postgres', "SELECT state = 'retiring' FROM euno_stat_indexes WHERE indexrelname = 't_a'"),
		'an eviction waits for who looks at pages');
	$locker->query_safe('SELECT pg_advisory_unlock(1)');
	$look->finish;
	$evict->finish;
	is("$found$errors", "t\n", 'who finds them');
	$locker->quit;
}
else
{
	like($stderr, qr/NUMA is not supported|built without libnuma/, 'it is said that pages cannot be found');
}

# After a crash the configured number is back.
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_domains'), '4', 'four domains after a crash');
mixed('after a crash');
$node->stop;
done_testing();
