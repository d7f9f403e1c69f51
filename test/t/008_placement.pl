# Relation files that are moved without a word to the access method: tablespaces
# of indexes and of databases.  And databases that are dropped while an
# index is built in them, and what users may see and do.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('placement', "allow_in_place_tablespaces = on\neuno.naptime = 1s");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 3000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_b ON t USING euno (b);
SQL
$node->safe_psql('postgres', "CREATE TABLESPACE one LOCATION ''");
$node->safe_psql('postgres', "CREATE TABLESPACE two LOCATION ''");

my $by_a = 'SELECT a FROM t WHERE a > 2500 ORDER BY a';
my $by_b = "SELECT b FROM t WHERE b > 'b29' ORDER BY b";

sub right_and_rebuilt
{
	my ($dbname, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(by_index($node, $dbname, $by_a), by_seqscan($node, $dbname, $by_a), "$name: right before a rebuild");
	$node->safe_psql($dbname, "INSERT INTO t SELECT max(a) + 1, 'b3' FROM t; DELETE FROM t WHERE a = 2501; SELECT euno_rebuild('t_a'), euno_rebuild('t_b')");
	same_answers($node, $dbname, $by_a, "$name, t_a");
	same_answers($node, $dbname, $by_b, "$name, t_b");
	check_indexes($node, $dbname, $name);
	return;
}

my $used = used_bytes($node);
$node->safe_psql('postgres', 'ALTER INDEX t_a SET TABLESPACE one');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE');
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX t_a SET TABLESPACE two; INSERT INTO t VALUES (9000, $$x$$); ROLLBACK');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, rolled back');
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX t_a SET TABLESPACE two; INSERT INTO t VALUES (9001, $$x$$); SELECT euno_rebuild($$t_a$$); COMMIT');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, rebuilt in the same transaction');
$node->safe_psql('postgres', 'ALTER TABLE t SET TABLESPACE one');
right_and_rebuilt('postgres', 'ALTER TABLE SET TABLESPACE');
$node->safe_psql('postgres', 'ALTER INDEX t_a SET TABLESPACE pg_default');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, back');
$node->safe_psql('postgres', 'VACUUM t');
is($node->safe_psql('postgres', 'SELECT indexes FROM euno_memory'), '2', 'VACUUM collects the trees of old files');
cmp_ok(used_bytes($node), '<=', 2 * $used, 'and their memory');

# A database moves: all its files do.
$node->safe_psql('postgres', 'CREATE DATABASE moved TEMPLATE postgres');
right_and_rebuilt('moved', 'a copied database');
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE two');
right_and_rebuilt('moved', 'ALTER DATABASE SET TABLESPACE');
right_and_rebuilt('postgres', 'its template meanwhile');

# Each database sees its own indexes only; users see statistics, not content,
# and may not do things to them.
is($node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_get_indexes()'), '2', 'views show this database only');
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN');
is( $node->safe_psql('postgres', 'SET ROLE somebody; SELECT count(*) FROM euno_stat_indexes'),
	'2', 'everybody may see the statistics');
for my $call ("euno_evict('t_a')", "euno_rebuild('t_a')", "euno_index_check('t_a')")
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET ROLE somebody; SELECT $call");
	like($stderr, qr/permission denied for function/, "$call is not for everybody");
}

# A database is dropped while an index is built in it.  The builder is
# held at the end of the build by a lock of a session there.
$node->safe_psql('postgres', "ALTER DATABASE moved SET euno.debug_stop = 'build-end:1'");
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->restart;
my $holder = $node->background_psql('moved');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $builder = $node->background_psql('moved');
$builder->query_until(qr/started/, "\\echo started\nSELECT euno_rebuild('t_a');\n");
ok( $node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = 'moved' AND wait_event = 'advisory'"),
	'a build is under way');
$node->safe_psql('postgres', 'DROP DATABASE moved WITH (FORCE)');
pass('DROP DATABASE WITH (FORCE) during a build');
$_->{run}->finish for $holder, $builder;
ok($node->poll_query_until('postgres', 'SELECT used_bytes = 0 FROM euno_memory'), 'the unfinished tree is collected');
$node->safe_psql('postgres', "SELECT euno_rebuild('t_a'), euno_rebuild('t_b')");
right_and_rebuilt('postgres', 'afterwards');

$node->stop;
done_testing();
