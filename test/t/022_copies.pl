# Which domains have inner nodes of their own: by option, by use, within a budget;
# and how domains change when memory is short and when processes are killed.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

my $node = euno_node('copies', "euno.domains = 4\neuno.debug_copies = off\neuno.naptime = 1s\nmax_connections = 40\neuno.max_memory = 32MB");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a bigint, b bigint);
INSERT INTO t SELECT g, g FROM generate_series(1, 20000) g;
CREATE INDEX t_auto ON t USING euno (a);
CREATE INDEX t_on ON t USING euno (a, b) WITH (replicate = on);
CREATE INDEX t_off ON t USING euno (b) WITH (replicate = off);
CREATE TABLE other (a bigint);
CREATE INDEX other_a ON other USING euno (a);
ANALYZE t;
SQL

my $script = script_file($node, 'use', <<'SQL');
\set k random(1, 10000)
SET enable_seqscan = off;
SELECT sum(x.a) FROM generate_series(1, 200) g, LATERAL (SELECT a FROM t WHERE t.a = g + :k LIMIT 1) x;
INSERT INTO t SELECT g + 30000 + :k * 3, g FROM generate_series(1, 10) g;
SQL

# Of sessions in all domains, which use the indexes of t, until they are killed.
my @use = ('-c', '8', '-j', '2', '-T', '1000', '-f', $script);

sub copies
{
	my ($index) = @_;

	return $node->safe_psql('postgres', "SELECT copies FROM euno_stat_indexes WHERE indexrelname = '$index'");
}

# Do sessions that use the indexes bring so many copies about?
sub becomes
{
	my ($index, $copies, $name) = @_;
	my $use = start_pgbench($node, @use);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok( $node->poll_query_until('postgres',
			"SELECT copies = $copies FROM euno_stat_indexes WHERE indexrelname = '$index'"),
		$name) or diag copies($index);
	$use->kill_kill;
	return;
}

is(join(' ', map { copies($_) } 't_auto', 't_on', 't_off'), '0 3 0', 'at first there are the copies that are asked for');
becomes('t_auto', 3, 'an index that is used gets copies');
is(join(' ', map { copies($_) } 't_off', 'other_a'), '0 0', 'one that is not used gets none, nor one with replicate = off');
ok($node->wait_for_log(qr/LOG:  euno index with OID [0-9]+ in database with OID [0-9]+ has copies of its inner nodes in [123] domains/), 'the log says so');
is($node->safe_psql('postgres', 'SELECT min(copies), max(copies), min(copy_bytes) > 0 FROM euno_stat_domains WHERE domain > 0'), '2|2|t', 'domains show their copies');
is($node->safe_psql('postgres', 'SELECT copies, copy_bytes FROM euno_stat_domains WHERE domain = 0'), '0|0', 'the first domain has no copies');
ok($node->poll_query_until('postgres', 'SELECT copies_changed >= 3 FROM euno_stat_worker'), 'the launcher has made them');

# The option may be changed.
$node->safe_psql('postgres', 'ALTER INDEX t_auto SET (replicate = off)');
becomes('t_auto', 0, 'copies go with replicate = off');
$node->safe_psql('postgres', 'ALTER INDEX t_off SET (replicate = on)');
becomes('t_off', 3, 'copies come with replicate = on');
$node->safe_psql('postgres', 'ALTER INDEX t_auto RESET (replicate)');
becomes('t_auto', 3, 'and by use again with the default');

# A radix tree has maps of its upper nodes; from here on it is there with the others.
$node->safe_psql('postgres', 'CREATE INDEX t_art ON t USING euno (a, b) WITH (structure = art, replicate = on)');
is(copies('t_art'), 3, 'a radix tree has copies, too');

# Without a budget those are left that are asked for.
$node->append_conf('postgresql.conf', 'euno.replica_budget = 0');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT copies = 0 FROM euno_stat_indexes WHERE indexrelname = 't_auto'"), 'no budget, no copies');
is(join(' ', map { copies($_) } 't_on', 't_off'), '3 3', 'but those that are asked for');
$node->append_conf('postgresql.conf', 'euno.replica_budget = 10');
$node->reload;
check_indexes($node, 'postgres', 'after that');

# A directory that is given up leaves its memory to others: long separators make
# it large.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE wide (a text COLLATE "C");
INSERT INTO wide SELECT repeat(md5((g / 20)::text), 16) || repeat(md5(g::text), 16) FROM generate_series(1, 8000) g;
CREATE INDEX wide_a ON wide USING euno (a) WITH (replicate = on);
SQL
my $with = used_bytes($node);
my $copied = $node->safe_psql('postgres', 'SELECT sum(copy_bytes) FROM euno_stat_domains');
cmp_ok($copied, '>', 1_000_000, 'copies are large');
$node->safe_psql('postgres', "ALTER INDEX wide_a SET (replicate = off)");
$node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM wide WHERE a > ''");
ok($node->poll_query_until('postgres', "SELECT used_bytes < $with - 1000000 FROM euno_memory"),
	'memory of copies that are given up is there for others') or diag used_bytes($node) . " of $with";
check_indexes($node, 'postgres', 'after that');
$node->safe_psql('postgres', 'DROP TABLE wide');

# Memory is used up while domains come and go.
my $changes = script_file($node, 'change', "SET client_min_messages = error;\nSELECT euno_set_domains('1');\nSELECT euno_set_domains('4');\n");
my @change = ('-c', '2', '-T', '1000', '-f', $changes);
my $changing = start_pgbench($node, @change);
my $full = '';
for (my $n = 0; $n < 30 && $full eq ''; $n++)
{
	my ($code, $out, $err) = $node->psql('postgres', "INSERT INTO t SELECT random() * 1e9, random() * 1e9 FROM generate_series(1, 20000)");
	$full = $err if $code != 0;
}
like($full, qr/out of memory for euno index/, 'memory is used up');
$node->psql('postgres', "INSERT INTO other SELECT g FROM generate_series(1, 1000) g");
ok($changing->pumpable, 'domains change all the time');
$changing->kill_kill;
check_indexes($node, 'postgres', 'with memory used up');
same_answers($node, 'postgres', $_, 'with memory used up')
  for 'SELECT count(*), sum(a) FROM t WHERE a > 0', 'SELECT count(*), sum(b) FROM t WHERE b > 0';
$node->psql('postgres', "SELECT euno_set_domains('1')");
my ($code, $out, $err) = $node->psql('postgres', "SELECT euno_set_domains('4')");
is($out, '4', 'domains that find no memory for directories are there');
check_indexes($node, 'postgres', 'without all directories');

# Whoever changes domains is killed.
$node->safe_psql('postgres', 'DELETE FROM t WHERE a > 20000; VACUUM t');
for my $round (1 .. 3)
{
	my $use = start_pgbench($node, @use);

	$changing = start_pgbench($node, @change);
	my $pid = '';
	for (my $try = 0; $try < 1000 && $pid eq ''; $try++)
	{
		$pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query LIKE '%euno_set_domains%' AND pid <> pg_backend_pid() LIMIT 1");
	}
	select undef, undef, undef, 0.1 * $round;
	ok(kill_process($pid), "kill -9, round $round");
	$changing->kill_kill;
	$use->kill_kill;
	ok(wait_for_recovery($node), 'the server is back');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_domains'), '4', 'with four domains');
	ok(wait_for_state($node, 'postgres', 'ready'), 'all indexes are there');
	check_indexes($node, 'postgres', "after kill -9, round $round");
	same_answers($node, 'postgres', 'SELECT count(*), sum(a) FROM t WHERE a > 0', "after kill -9, round $round");
}
becomes('t_auto', 3, 'copies are made again');
is(copies('t_on'), 3, 'and those that are asked for are there');
$node->stop;
done_testing();
