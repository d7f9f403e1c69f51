# Memory: what makes trees go gives it back, running out of it is an error and
# nothing else, and an idle reader does not keep it.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('memory', 'euno.naptime = 1s');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE FUNCTION make(name text, persistence text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE %s TABLE %I (a int, b text)', persistence, name);
	EXECUTE format('INSERT INTO %I SELECT g, repeat(g::text, 5) FROM generate_series(1, 5000) g', name);
	EXECUTE format('CREATE INDEX ON %I USING euno (a)', name);
	EXECUTE format('CREATE INDEX ON %I USING euno (b)', name);
END $$;
CREATE DATABASE copied;
SQL

is(used_bytes($node), 0, 'nothing is used at first');

# Each of these leaves nothing behind, when its session has ended at the latest
# or, as "at once" says, within it.
sub gives_back
{
	my ($statements, $what) = @_;

	my $answer = $node->safe_psql('postgres', "$statements; SELECT used_bytes, indexes FROM euno_memory");
	is((split /\n/, $answer)[-1], '0|0', "$what, at once");
	is(used_bytes($node), 0, $what);
	return;
}

gives_back("SELECT make('t'); DROP TABLE t", 'DROP TABLE');
gives_back("SELECT make('t'); DROP INDEX t_a_idx, t_b_idx; DROP TABLE t", 'DROP INDEX');
gives_back("BEGIN; SELECT make('t'); ROLLBACK", 'ROLLBACK');
gives_back("BEGIN; SAVEPOINT s; SELECT make('t'); ROLLBACK TO s; COMMIT", 'ROLLBACK TO');
gives_back("CREATE SCHEMA s; SET search_path = s, public; SELECT make('t'); DROP SCHEMA s CASCADE", 'DROP SCHEMA');
gives_back("SELECT make('t', 'UNLOGGED'); DROP TABLE t", 'an unlogged table');
gives_back("SELECT make('t', 'TEMP'); DROP TABLE t", 'a temporary table');
gives_back("BEGIN; CREATE TEMP TABLE t (a int) ON COMMIT DROP; CREATE INDEX ON t USING euno (a); INSERT INTO t VALUES (1); COMMIT",
	'ON COMMIT DROP');
gives_back("SELECT make('t'); ALTER TABLE t ALTER b TYPE varchar; DROP TABLE t", 'ALTER TYPE, then DROP');
for my $replace ('TRUNCATE t', 'VACUUM FULL t', 'REINDEX TABLE t')
{
	gives_back("SELECT make('t', 'TEMP'); ALTER TABLE t ALTER b TYPE varchar(200); BEGIN; ALTER TABLE t ALTER b TYPE varchar(300); ROLLBACK; $replace; DROP TABLE t",
		"ALTER TYPE, rolled back, then $replace");
}
gives_back("SELECT make('t', 'TEMP'); ALTER TABLE t ALTER b TYPE varchar(200); BEGIN; SAVEPOINT s; ALTER TABLE t ALTER b TYPE varchar(300); ROLLBACK TO s; REINDEX TABLE t; COMMIT; DROP TABLE t",
	'ALTER TYPE, rolled back to a savepoint, then REINDEX');
gives_back("SELECT make('t', 'TEMP'); ALTER TABLE t ALTER b TYPE varchar(200); BEGIN; ALTER TABLE t ALTER b TYPE varchar(300); SAVEPOINT s; ALTER TABLE t ALTER b TYPE varchar(400); ROLLBACK TO s; COMMIT; SELECT 1; SELECT 2; SELECT 3; TRUNCATE t; DROP TABLE t",
	'ALTER TYPE, a second one rolled back, then TRUNCATE');
gives_back("SELECT make('t'); ALTER TABLE t ALTER b TYPE varchar(200); BEGIN; ALTER TABLE t ALTER b TYPE varchar(300); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'; REINDEX TABLE t; DROP TABLE t",
	'ALTER TYPE, prepared, then REINDEX');
gives_back("SELECT make('t'); ALTER TABLE t ALTER b TYPE varchar(200); BEGIN; ALTER TABLE t ALTER b TYPE varchar(300); ALTER TABLE t ALTER b TYPE varchar(400); PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'; REINDEX TABLE t; DROP TABLE t",
	'ALTER TYPE twice, prepared and rolled back, then REINDEX');
gives_back("SELECT make('t'); REINDEX TABLE t; BEGIN; TRUNCATE t; ROLLBACK; VACUUM FULL t; DROP TABLE t",
	'new files, then DROP');
gives_back("SELECT make('t'); DROP INDEX CONCURRENTLY t_a_idx; DROP INDEX CONCURRENTLY t_b_idx; DROP TABLE t", 'DROP INDEX CONCURRENTLY');
gives_back("SELECT make('t'); BEGIN; DROP TABLE t; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'", 'DROP TABLE, prepared');
gives_back("BEGIN; SELECT make('t'); PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'", 'CREATE INDEX, prepared and rolled back');
gives_back("SELECT make('t'); BEGIN; TRUNCATE t; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'; BEGIN; REINDEX TABLE t; PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'; DROP TABLE t",
	'new files, prepared, then DROP');

# The session ends some time after psql has.
$node->safe_psql('postgres', "SELECT make('t', 'TEMP')");
ok($node->poll_query_until('postgres', 'SELECT used_bytes FROM euno_memory', '0'),
	'a temporary table whose session ends');

$node->safe_psql('postgres', "SELECT make('t')");
is($node->safe_psql('postgres', 'SELECT sum(bytes) = sum(euno_index_size(indexrelid)) FROM euno_stat_indexes'),
	't', 'euno_stat_indexes and euno_index_size agree');
my $full = used_bytes($node);
is($node->safe_psql('postgres', 'SELECT sum(bytes) FROM euno_stat_indexes'), $full, 'and so does euno_memory');
$node->safe_psql('postgres', 'TRUNCATE t');
cmp_ok(used_bytes($node), '<', $full, 'TRUNCATE');
$node->safe_psql('postgres', "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5000) g; SELECT euno_evict('t_a_idx'), euno_evict('t_b_idx')");
is(used_bytes($node), 0, 'eviction');
$node->safe_psql('postgres', 'DROP TABLE t');

# Transactions that are prepared and committed by others.
$node->safe_psql('postgres', "SELECT make('kept'); BEGIN; SELECT make('t'); PREPARE TRANSACTION 'one'");
$full = used_bytes($node);
$node->safe_psql('postgres', "ROLLBACK PREPARED 'one'");
cmp_ok(used_bytes($node), '<', $full, 'ROLLBACK PREPARED');
$full = used_bytes($node);
$node->safe_psql('postgres', "SELECT make('t'); BEGIN; DROP TABLE t; PREPARE TRANSACTION 'two'");
cmp_ok(used_bytes($node), '>', $full, 'a prepared DROP has not happened yet');
$node->safe_psql('postgres', "COMMIT PREPARED 'two'");
is(used_bytes($node), $full, 'COMMIT PREPARED of a DROP');

# Who ends one that somebody else has prepared does not wait for pg_class.
my $catalog = $node->background_psql('postgres');
my $ender = $node->background_psql('postgres', on_error_stop => 0);
$node->safe_psql('postgres', "BEGIN; TRUNCATE kept; PREPARE TRANSACTION 'three'");
$catalog->query_safe('BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE');
$ender->query("SET statement_timeout = '20s'; COMMIT PREPARED 'three'");
is($ender->{stderr}, '', 'COMMIT PREPARED while pg_class is locked');
$catalog->query_safe('ROLLBACK');
$_->quit for $catalog, $ender;
$node->safe_psql('postgres', $_) for "BEGIN; TRUNCATE kept; PREPARE TRANSACTION 'four'", "COMMIT PREPARED 'four'";
is($node->safe_psql('postgres', 'SELECT indexes FROM euno_memory'), '2', 'the next one finds what that has left');

# VACUUM's snapshots do not keep pg_class's rows: it must not judge by them.
my $looker = $node->background_psql('postgres');
$looker->query_safe('SELECT pg_advisory_lock(1)');
my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = '20s'; SET euno.debug_stop = 'gc-look:1';\nVACUUM kept");
is($stderr, '', 'VACUUM does not look for what may go');
$looker->quit;
$node->safe_psql('postgres', 'DROP TABLE kept');
is(used_bytes($node), 0, 'all is given back');

# A database that is a copy has its own trees, though its files have the same
# numbers; and they go with it.
$node->safe_psql('copied',
	"CREATE EXTENSION euno_index; CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000); CREATE INDEX t_a ON t USING euno (a)");
my $one = used_bytes($node);
for my $strategy ('wal_log', 'file_copy')
{
	$node->safe_psql('postgres', "CREATE DATABASE copy_$strategy TEMPLATE copied STRATEGY $strategy");
	$node->safe_psql('copied', 'INSERT INTO t VALUES (2000)');
	is($node->safe_psql("copy_$strategy", "SELECT pg_relation_filenode('t_a')"),
		$node->safe_psql('copied', "SELECT pg_relation_filenode('t_a')"),
		"$strategy: the copy's file has the same number");
	is(by_index($node, "copy_$strategy", 'SELECT count(*), max(a) FROM t WHERE a > 999'),
		($strategy eq 'wal_log' ? '1|1000' : '2|2000'), "$strategy: a query in the copy");
	$node->safe_psql("copy_$strategy", "SELECT euno_rebuild('t_a'); DELETE FROM t WHERE a < 1000; INSERT INTO t VALUES (3000)");
	same_answers($node, "copy_$strategy", 'SELECT a FROM t WHERE a > 0 ORDER BY a', "$strategy: the copy");
	same_answers($node, 'copied', 'SELECT count(*), max(a) FROM t WHERE a > 0', "$strategy: the original");
	check_indexes($node, "copy_$strategy", "$strategy: the copy");
	$node->safe_psql('postgres', "DROP DATABASE copy_$strategy");
	ok($node->poll_query_until('postgres', "SELECT used_bytes = $one FROM euno_memory"),
		"$strategy: DROP DATABASE");
}
check_indexes($node, 'copied', 'the original');
$node->safe_psql('postgres', 'DROP DATABASE copied');
ok($node->poll_query_until('postgres', 'SELECT used_bytes = 0 FROM euno_memory'), 'all databases are gone');

# An idle transaction with an open index-only scan keeps neither VACUUM nor
# memory: churn reaches a plateau.  Each domain has free memory of its own, and
# sessions are in this one or that.
$node->safe_psql('postgres',
	"CREATE TABLE t (a int, b text); INSERT INTO t SELECT g, repeat('x', 30) || g FROM generate_series(1, 30000) g;"
	  . "CREATE INDEX t_ab ON t USING euno (a, b)");
$node->safe_psql('postgres', 'VACUUM t');
my $idle = $node->background_psql('postgres');
$idle->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN; DECLARE c CURSOR FOR SELECT a, b FROM t WHERE a > 0 ORDER BY a, b; FETCH 2 FROM c');
my @used;
for my $round (1 .. 12)
{
	# Keys move on, so that leaves become empty on one side and full on the other.
	$node->safe_psql('postgres',
		"DELETE FROM t WHERE a > 100 AND a <= 100 + 5000 * $round; INSERT INTO t SELECT g, repeat('y', 30) || g FROM generate_series(30000 + 5000 * ($round - 1), 30000 + 5000 * $round - 1) g");
	if ($round == 6)
	{
		is((split /\n/, $idle->query_safe('FETCH 2 FROM c; COMMIT; BEGIN; DECLARE c CURSOR FOR SELECT a, b FROM t WHERE a > 0 ORDER BY a, b; FETCH 1 FROM c'))[0],
			'3|' . 'x' x 30 . '3', 'the idle cursor goes on');
	}
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	push @used, used_bytes($node);
}
note "used: @used";
is((split /\n/, $idle->query_safe('FETCH 1 FROM c; COMMIT'))[0], '2|' . 'x' x 30 . '2', 'the idle cursor goes on');
$idle->quit;
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
my $domains = $node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_domains');
cmp_ok(used_bytes($node), '<=', 2 * $used[0] * $domains, 'memory does not grow with churn');
check_indexes($node, 'postgres', 'after churn');
same_answers($node, 'postgres', 'SELECT count(*), min(a), max(b) FROM t WHERE a > 0', 'after churn');

# What deletions leave nothing of is for other indexes; not all of it at once, while
# somebody is in an epoch, or the launcher merges leaves.
my $before = used_bytes($node);
$node->safe_psql('postgres',
	"CREATE TABLE d AS SELECT g AS a FROM generate_series(1, 200000) g; CREATE INDEX d_a ON d USING euno (a); CREATE INDEX d_r ON d USING euno (a) WITH (structure = art)");
$full = used_bytes($node);
$node->safe_psql('postgres', 'DELETE FROM d WHERE a <= 180000');
for (1 .. 100)
{
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) d');
	last if used_bytes($node) - $before < ($full - $before) / 2;
	select undef, undef, undef, 0.1;
}
cmp_ok(used_bytes($node) - $before, '<', ($full - $before) / 2, 'VACUUM gives back what a deleted range took');
check_indexes($node, 'postgres', 'after that');
same_answers($node, 'postgres', 'SELECT count(*), min(a), max(a) FROM d WHERE a > 0', 'after that');
$node->safe_psql('postgres', 'DROP TABLE d');

# Version churn: an indexed column changes back and forth, with nobody looking.
$before = used_bytes($node);
$node->safe_psql('postgres',
	"CREATE TABLE v (a int, n int); INSERT INTO v SELECT g, 0 FROM generate_series(1, 2000) g; CREATE INDEX v_a ON v USING euno (a); CREATE INDEX v_n ON v USING euno (n)");
$node->safe_psql('postgres', "UPDATE v SET n = n + 1") for 1 .. 30;
cmp_ok($node->safe_psql('postgres', "SELECT entries FROM euno_stat_indexes WHERE indexrelname = 'v_a'"),
	'<', 40000, 'of 62,000 versions with unchanged keys, many are deleted bottom-up');
check_indexes($node, 'postgres', 'after version churn');
$node->safe_psql('postgres', 'DROP TABLE v, t');
is(used_bytes($node), 0, 'all is given back at the end');
$node->stop;

# The arena is full: the statement fails, nothing else does.
$node = euno_node('small', 'euno.max_memory = 4MB');
$node->start;
$node->safe_psql('postgres',
	'CREATE EXTENSION euno_index; CREATE TABLE t (a int, b text); CREATE INDEX t_a ON t USING euno (a, b); INSERT INTO t SELECT g, g::text FROM generate_series(1, 1000) g');
my $cursor = $node->background_psql('postgres');
$cursor->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN; DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 0 ORDER BY a; FETCH 1 FROM c');
($ret, $stdout, $stderr) = $node->psql('postgres',
	"\\set VERBOSITY verbose\nINSERT INTO t SELECT g, repeat('z', 200) || g FROM generate_series(1001, 200000) g");
like($stderr, qr/ERROR:  53200: out of memory for euno index "t_a"/, 'the error says what happened');
like($stderr, qr/DETAIL:  No more of "euno.max_memory" \(4 MB\) is available/, 'and how much there is');
like($stderr, qr/HINT:  Increase "euno.max_memory"/, 'and what to do');
is($node->safe_psql('postgres', 'SELECT count(*), max(a) FROM t'), '1000|1000', 'the table is as it was');
same_answers($node, 'postgres', 'SELECT count(*), max(a) FROM t WHERE a > 0', 'after running out of memory');
is((split /\n/, $cursor->query_safe('FETCH ALL FROM c'))[-1], '1000', 'a cursor goes on');
$cursor->query_safe('COMMIT');
$cursor->quit;
check_indexes($node, 'postgres', 'after running out of memory');
($ret, $stdout, $stderr) = $node->psql('postgres',
	"CREATE TABLE big AS SELECT g AS a, repeat('z', 200) || g AS b FROM generate_series(1, 50000) g; CREATE INDEX big_b ON big USING euno (b)");
like($stderr, qr/out of memory for euno index "big_b"/, 'CREATE INDEX fails');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'big_b'"), '0', 'and leaves nothing');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
$node->safe_psql('postgres', "INSERT INTO t SELECT g, g::text FROM generate_series(1001, 1200) g");
is(by_index($node, 'postgres', 'SELECT count(*), max(a) FROM t WHERE a > 0'), '1200|1200', 'what fits is inserted');
check_indexes($node, 'postgres', 'after a failed CREATE INDEX');

# A rebuild that does not fit leaves the index absent.
$node->safe_psql('postgres', "SELECT euno_evict('t_a'); INSERT INTO t SELECT g, repeat('z', 200) || g FROM generate_series(1201, 40000) g");
($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT euno_rebuild('t_a')");
like($stderr, qr/out of memory for euno index "t_a"/, 'a rebuild that does not fit fails');
is($node->safe_psql('postgres', 'SELECT state FROM euno_stat_indexes'), 'absent', 'and leaves the index absent');
is(used_bytes($node), 0, 'with no memory');
is(by_index($node, 'postgres', 'SELECT count(*), max(a) FROM t WHERE a > 0'), '40000|40000', 'queries are right');
$node->safe_psql('postgres', "DELETE FROM t WHERE a > 1100");
$node->safe_psql('postgres', "VACUUM t");
$node->safe_psql('postgres', "SELECT euno_rebuild('t_a')");
same_answers($node, 'postgres', 'SELECT count(*), max(a) FROM t WHERE a > 0', 'rebuilt when it fits');
$node->stop;

# A tree whose end nobody has noticed goes when memory is short.  No worker comes to
# rebuild, who would notice.
$node = euno_node('unnoticed', "euno.max_memory = 16MB\neuno.max_indexes = 20\neuno.naptime = 1h\neuno.auto_rebuild = off\neuno.snapshot_on_shutdown = on");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t AS SELECT repeat(md5(g::text), 2) AS b FROM generate_series(1, 120000) g;
CREATE INDEX t_b ON t USING euno (b);
BEGIN;
DROP INDEX t_b;
PREPARE TRANSACTION 'p';
BEGIN;
CREATE TABLE made AS SELECT generate_series(1, 100) AS a;
CREATE INDEX made_a ON made USING euno (a);
PREPARE TRANSACTION 'q';
SQL
$node->restart;
$_ = $node->background_psql('postgres') for $catalog, $ender;
$catalog->query_safe('BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE');
$ender->query_safe("COMMIT PREPARED 'p'");
$catalog->query_safe('ROLLBACK');
$_->quit for $catalog, $ender;
cmp_ok(used_bytes($node), '>', 8 << 20, 'an index that was dropped before a restart is still there');
$node->safe_psql('postgres', 'CREATE INDEX t_b ON t USING euno (b)');
check_indexes($node, 'postgres', 'made in its place');
$node->safe_psql('postgres', "COMMIT PREPARED 'q'");
is(state_of($node, 'made_a'), 'ready', 'one whose maker was prepared before that is there');
$node->safe_psql('postgres', 'DROP TABLE made');

# But not one that a rollback brings back.
for my $statements (
	'TRUNCATE t; INSERT INTO t SELECT repeat(md5(g::text), 2) FROM generate_series(1, 120000) g',
	'CREATE TABLE t2 AS TABLE t; DROP INDEX t_b; CREATE INDEX t2_b ON t2 USING euno (b)',
	'CREATE TABLE t2 AS TABLE t; SAVEPOINT s; DROP INDEX t_b; RELEASE s; CREATE INDEX t2_b ON t2 USING euno (b)')
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "BEGIN; $statements; COMMIT");

	like($stderr, qr/out of memory for euno index/, 'both do not fit');
	is($node->safe_psql('postgres', 'SELECT state FROM euno_stat_indexes'), 'ready', 'and the old one is still there');
	check_indexes($node, 'postgres', 'after that');
}
# When there are no more places for indexes, what the transaction has made and dropped
# makes room, and nothing else.
is($node->safe_psql('postgres', <<'SQL'), 'ready', 'many tables in one transaction');
BEGIN;
CREATE TABLE fresh (v varchar(20) COLLATE "C");
CREATE INDEX fresh_v ON fresh USING euno (v);
ALTER TABLE fresh ALTER v TYPE varchar(50) COLLATE "C";
SAVEPOINT s;
TRUNCATE fresh;
DO $$
BEGIN
	FOR i IN 1..50 LOOP
		CREATE TABLE l (a int);
		CREATE INDEX ON l USING euno (a);
		CREATE TEMP TABLE l2 (a int);
		CREATE INDEX ON l2 USING euno (a);
		DROP TABLE l, l2;
	END LOOP;
END $$;
ROLLBACK TO s;
COMMIT;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'fresh_v';
SQL
$node->stop;

# While a build sorts, memory is made ready for the tree; if it is canceled, what is
# more than may be idle goes back.
$node = euno_node('ready', "euno.max_memory = 64MB\nmax_parallel_maintenance_workers = 0");
$node->start;
$node->safe_psql('postgres',
	'CREATE EXTENSION euno_index; CREATE TABLE t AS SELECT repeat(md5(g::text), 4) AS b FROM generate_series(1, 80000) g');
my $holder = $node->background_psql('postgres');
my $builder = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $builder->query('SELECT pg_backend_pid()');
$holder->query_safe('SELECT pg_advisory_lock(1)');
$builder->query_until(qr/started/, "SET euno.debug_stop = 'build-sort:1';\n\\echo started\nCREATE INDEX ON t USING euno (b);\n");
ok($node->poll_query_until('postgres', 'SELECT idle_bytes >= 8 << 20 FROM euno_memory'), 'memory is made ready for a build');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$_->quit for $builder, $holder;
ok($node->poll_query_until('postgres', 'SELECT idle_bytes <= 4 << 20 AND used_bytes = 0 FROM euno_memory'), 'what it did not take goes back');
$node->safe_psql('postgres', 'CREATE INDEX ON t USING euno (b)');
check_indexes($node, 'postgres', 'after that');
$node->stop;

done_testing();
