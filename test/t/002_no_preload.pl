# A server that does not preload the library.  Everything that needs a tree says
# what is missing, and everything else works: the handler never raises.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('no_preload', '');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 1000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE TABLE excluded (a int, EXCLUDE USING euno (a WITH =));
INSERT INTO excluded VALUES (1), (2);
CREATE TABLE plain (a int);
CREATE DATABASE other;
SQL
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;

# The planner loads the library, with what it does in utility statements.
is($node->safe_psql('postgres', "EXPLAIN SELECT FROM t WHERE a = 3; BEGIN; INSERT INTO plain VALUES (0); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'; SELECT count(*) FROM plain") =~ s/.*\n//sr,
	'1', 'prepared transactions end');

# The statement must fail, with SQLSTATE 55000 and a hint, and no connection may
# be lost.
sub refused
{
	my ($dbname, $statement, $what) = @_;
	my ($ret, $stdout, $stderr) =
	  $node->psql($dbname, "\\set VERBOSITY verbose\n$statement");

	like($stderr, qr/ERROR:  55000: cannot use euno index/, "$what is refused");
	like($stderr, qr/HINT:  Add "euno_index" to "shared_preload_libraries" and restart the server\./,
		"$what: the hint");
	return;
}

unlike(by_index($node, 'postgres', 'EXPLAIN SELECT a FROM t WHERE a = 5'), qr/t_a/, 'the index is not used');
my ($ret, $stdout, $stderr) = $node->psql('postgres', 'SELECT b FROM t WHERE a = 5');
is("$stdout $stderr", 'b5 ', 'queries work, without a word about settings that are not known now');
is(by_index($node, 'postgres', 'SELECT count(*) FROM (SELECT DISTINCT a FROM t ORDER BY a) d'),
	'1000', 'sorting by an indexed column works');
is($node->safe_psql('postgres',
		"INSERT INTO t VALUES (1001, 'new'); UPDATE t SET a = 1002 WHERE a = 1; DELETE FROM t WHERE a = 2; SELECT count(*) FROM t WHERE a > 0"),
	'1000', 'writes work');
$node->safe_psql('postgres', 'VACUUM t; ANALYZE t');
pass('VACUUM and ANALYZE work');
is($node->safe_psql('postgres', 'INSERT INTO plain VALUES (1); SELECT * FROM plain WHERE a = 1'),
	'1', 'tables without a euno index work');
is($node->safe_psql('postgres', 'SELECT DISTINCT state, absent_reason FROM euno_stat_indexes'), 'absent|not preloaded', 'indexes are absent, and it is said why');
is($node->safe_psql('postgres', 'SELECT reserved_bytes, used_bytes FROM euno_memory'), '0|0', 'there is no memory');
is($node->safe_psql('postgres', "SELECT euno_index_size('t_a')"), '0', 'the size of an index is 0');

refused('postgres', 'CREATE INDEX t_b ON t USING euno (b)', 'CREATE INDEX');
refused('postgres', 'REINDEX INDEX t_a', 'REINDEX');
refused('postgres', "SELECT euno_rebuild('t_a')", 'euno_rebuild');
refused('postgres', "SELECT euno_evict('t_a')", 'euno_evict');
refused('postgres', "SELECT euno_index_check('t_a')", 'euno_index_check');
refused('postgres', 'INSERT INTO excluded VALUES (3)', 'an insert that has an exclusion constraint to check');
is($node->safe_psql('postgres', 'SELECT count(*) FROM excluded'), '2', 'the refused row is not there');
$node->safe_psql('other', 'CREATE EXTENSION euno_index; CREATE TABLE t (a int); INSERT INTO t VALUES (1)');
pass('CREATE EXTENSION works');
refused('other', 'CREATE INDEX ON t USING euno (a)', 'CREATE INDEX in a session that loads the library itself');
$node->safe_psql('other', 'DROP EXTENSION euno_index');
pass('DROP EXTENSION works');

# With it again, everything that was done meanwhile is in the indexes.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'euno_index'\neuno.snapshot_on_shutdown = on");
$node->restart;
ok(wait_for_state($node, 'postgres', 'ready'), 'preloaded again, all indexes are built');
same_answers($node, 'postgres', 'SELECT a FROM t WHERE a > 995 ORDER BY a', 'high keys');
same_answers($node, 'postgres', 'SELECT a FROM t WHERE a < 5 ORDER BY a', 'low keys');
check_indexes($node, 'postgres', 'preloaded again');
($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO excluded VALUES (2)');
like($stderr, qr/conflicting key value violates exclusion constraint/, 'the exclusion constraint works');

# old_snapshot_threshold lets rows go that a snapshot needs; an index cannot
# notice that.  It is not used.
SKIP:
{
	skip 'old_snapshot_threshold is gone', 7 if $node->pg_version >= 17;

	my $log_start = -s $node->logfile;
	$node->append_conf('postgresql.conf', 'old_snapshot_threshold = 0');
	$node->restart;
	like(slurp_file($node->logfile, $log_start),
		qr/WARNING:  euno indexes are not used while "old_snapshot_threshold" is set/, 'the server warns');
	unlike(by_index($node, 'postgres', 'EXPLAIN SELECT a FROM t WHERE a = 5'), qr/t_a/, 'the index is not used');
	is($node->safe_psql('postgres', "SELECT DISTINCT state, absent_reason FROM euno_stat_indexes"), 'absent|old_snapshot_threshold', 'nor said to be, though its tree has come from the file');
	is(by_index($node, 'postgres', 'SELECT b FROM t WHERE a = 5'), 'b5', 'queries work');
	($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT euno_rebuild('t_a')");
	like($stderr, qr/Euno indexes cannot be used with "old_snapshot_threshold"/, 'nothing is built');
	$node->safe_psql('postgres', "INSERT INTO t VALUES (1003, 'newer'); VACUUM t");
	is(by_index($node, 'postgres', 'SELECT b FROM t WHERE a = 1003'), 'newer', 'writes and VACUUM work');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'euno%'"), '0', 'nobody tries to rebuild');
}

$node->stop;
done_testing();
