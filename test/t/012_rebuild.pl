# Rebuilds with workers: what they show of themselves, what others write meanwhile,
# and how they end.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

# A worker that a session asks for waits for locks no longer than deadlock_timeout.
my $node = euno_node('rebuild', <<'CONF');
deadlock_timeout = 1min
euno.rebuild_workers = 3
maintenance_work_mem = 100MB
min_parallel_table_scan_size = 0
max_worker_processes = 12
max_parallel_workers = 8
CONF
$node->start;
$node->safe_psql('postgres', $extension . <<'SQL');
CREATE TABLE t (a int, b text, c numeric) WITH (parallel_workers = 8);
INSERT INTO t SELECT g, 'b' || g, g / 4.0 FROM generate_series(1, 30000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_c ON t USING euno (c compared) INCLUDE (b);
CREATE INDEX t_art ON t USING euno (b COLLATE "C") WITH (structure = art);
CREATE INDEX t_part ON t USING euno (a, b) WHERE a % 2 = 0;
SQL

my %queries = (
	t_a => 'SELECT count(*), sum(a) FROM t WHERE a > 100',
	t_c => 'SELECT count(*), sum(c), max(b) FROM t WHERE c > 100',
	t_art => 'SELECT count(*), max(b COLLATE "C") FROM t WHERE b COLLATE "C" > \'b2\'',
	t_part => 'SELECT count(*), max(b) FROM t WHERE a > 100 AND a % 2 = 0');

# Waits until the builder and its workers stand at a stop point.
sub wait_for_stop
{
	my ($workers) = @_;

	return $node->poll_query_until('postgres',
		"SELECT count(*) FILTER (WHERE backend_type = 'parallel worker') = $workers AND count(*) = $workers + 1"
		  . " FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'");
}

my $holder = $node->background_psql('postgres');
my $next = 50000;
for my $index (sort keys %queries)
{
	$node->safe_psql('postgres', "SELECT euno_evict('$index')");
	my $log_start = -s $node->logfile;
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	for_all($node, 'euno.debug_stop' => 'build-page:1');
	my $builder = $node->background_psql('postgres');
	$builder->query_until(qr/started/, "\\echo started\nSELECT euno_rebuild('$index');\n");
	ok(wait_for_stop(2), "$index: the rebuild has two workers");
	for_all($node, 'euno.debug_stop' => undef);
	is( $node->safe_psql('postgres',
			"SELECT command, relid::regclass, index_relid::regclass, phase, blocks_total > 100"
			  . " FROM pg_stat_progress_create_index"),
		"REINDEX|t|$index|building index: scanning table|t",
		"$index: it shows itself in pg_stat_progress_create_index");

	# What has been read and what has not: all of it is written to.
	$node->safe_psql('postgres',
		"INSERT INTO t SELECT g, 'x' || g, g FROM generate_series($next, $next + 500) g;"
		  . "UPDATE t SET a = a + 100000, b = 'y' || b, c = c + 0.5 WHERE a % 100 = 7;"
		  . "UPDATE t SET c = c WHERE a % 100 = 8; DELETE FROM t WHERE a % 100 = 9");
	$next += 1000;
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$builder->quit;
	same_answers($node, 'postgres', $queries{$index}, $index);
	check_indexes($node, 'postgres', $index);
	like(slurp_file($node->logfile, $log_start),
		qr/euno index "$index" of table "postgres\.public\.t" rebuilt: \d+ rows, \d+ bytes, \d+\.\d+ s/,
		"$index: one line in the log");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_progress_create_index'),
		'0', "$index: and no progress afterwards");
}

# Without workers, if there may be none.
$node->safe_psql('postgres', "SELECT euno_evict('t_a')");
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $alone = $node->background_psql('postgres');
$alone->query_until(qr/started/, "SET max_parallel_maintenance_workers = 0;\nSET euno.debug_stop = 'build-page:1';\n\\echo started\nSELECT euno_rebuild('t_a');\n");
ok(wait_for_stop(0), 'max_parallel_maintenance_workers = 0');
$holder->query_safe('SELECT pg_advisory_unlock(1)');
$alone->quit;

# A row that comes while the table is read has one entry, that of whoever has
# inserted it, though a worker makes another key of it.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE floats (f float8);
CREATE INDEX floats_f ON floats USING euno ((f::text));
INSERT INTO floats SELECT generate_series(1, 10);
SELECT euno_evict('floats_f');
SQL
$holder->query_safe('SELECT pg_advisory_lock(1)');
for_all($node, 'euno.debug_stop' => 'build-nblocks:1');
my $asker = $node->background_psql('postgres');
$asker->query_until(qr/started/, "\\echo started\nSELECT euno_rebuild('floats_f');\n");
ok($node->poll_query_until('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'euno rebuild' AND wait_event = 'advisory'", '1'),
	'a worker builds');
for_all($node, 'euno.debug_stop' => undef);
$node->safe_psql('postgres', 'SET extra_float_digits = -15; INSERT INTO floats VALUES (0.1::float8 + 0.2)');
$holder->query_safe('SELECT pg_advisory_unlock(1)');
$asker->quit;
same_answers($node, 'postgres', "SELECT count(*), sum(f) FROM floats WHERE f::text > ''", 'one entry for each row');
$node->safe_psql('postgres', 'DROP TABLE floats');

# Canceled and terminated while its workers are at it.
for my $how ('cancel', 'terminate')
{
	$node->safe_psql('postgres', "SELECT euno_evict(indexrelid) FROM euno_stat_indexes");
	is(used_bytes($node), 0, 'no trees');
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	my $builder = $node->background_psql('postgres', on_error_stop => 0);
	$builder->query_until(qr/started/,
		"SET euno.debug_stop = 'build-page:1';\n\\echo started\nSELECT euno_rebuild('t_a');\n");
	ok(wait_for_stop(2), "$how: the rebuild has two workers");
	$node->safe_psql('postgres',
		"INSERT INTO t VALUES ($next, '$how', 1);"
		  . "SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE query LIKE '%euno_rebuild%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()");
	ok($node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'", '0'),
		"$how: the workers end too");
	ok($node->poll_query_until('postgres', 'SELECT used_bytes FROM euno_memory', '0'), "$how: all memory is given back");
	is($node->safe_psql('postgres', "SELECT DISTINCT state FROM euno_stat_indexes"), 'absent', "$how: the index is absent");
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	if ($how eq 'cancel') { $builder->quit } else { $builder->{run}->finish }
	$node->safe_psql('postgres', "SELECT euno_rebuild('t_a')");
	same_answers($node, 'postgres', 'SELECT count(*), sum(a) FROM t WHERE a > 100', "$how, then rebuilt");
}
$holder->quit;

# A session that has locked everybody out builds for itself.
$node->safe_psql('postgres', 'CREATE TABLE own (a int) WITH (parallel_workers = 8); INSERT INTO own SELECT generate_series(1, 5000); CREATE UNIQUE INDEX own_a ON own USING euno (a)');
my ($ret, $stdout, $stderr) = $node->psql('postgres', <<'SQL', timeout => $PostgreSQL::Test::Utils::timeout_default);
SELECT euno_evict('own_a');
BEGIN;
ALTER TABLE own ADD COLUMN b int;
INSERT INTO own VALUES (5001);
INSERT INTO own VALUES (77);
SQL
like($stderr, qr/duplicate key value violates unique constraint "own_a"/, 'in a transaction that has altered the table');
is($node->safe_psql('postgres', 'SELECT count(*) FROM own'), '5000', 'which is rolled back');
check_indexes($node, 'postgres', 'after that');

# A function in an index expression that needs the index itself: an error, in the
# leader and in a worker, instead of waiting for itself.  (With the table locked, the
# session builds.)
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION selfish(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF current_setting('my.selfish', true) = 'leader' AND current_setting('my.leader', true) = pg_backend_pid()::text OR
     current_setting('my.selfish', true) = 'worker' AND current_setting('my.leader', true) <> pg_backend_pid()::text THEN
    PERFORM public.euno_rebuild('public.t_selfish');
  ELSIF current_setting('my.selfish', true) = 'evicting' AND a % 10000 = 0 THEN
    PERFORM public.euno_evict('public.t_selfish');
  ELSIF current_setting('my.selfish', true) = 'worker' AND a % 1000 = 0 THEN
    PERFORM pg_sleep(10); -- until the worker's error
  END IF;
  RETURN a;
END $$;
CREATE INDEX t_selfish ON t USING euno (selfish(a));
SQL
for my $who ('leader', 'worker')
{
	($ret, $stdout, $stderr) = $node->psql('postgres',
		"SELECT euno_evict('t_selfish'); SELECT set_config('my.leader', pg_backend_pid()::text, false); SET my.selfish = '$who'; SET statement_timeout = '4min'; BEGIN; LOCK TABLE t; SELECT euno_rebuild('t_selfish')");
	like($stderr, qr/cannot use euno index "t_selfish" while this session is building it/, "a function that needs the index: an error in the $who");
	is($stderr =~ /parallel worker/ ? 'worker' : 'leader', $who, "in that process");
	$node->safe_psql('postgres', "SELECT euno_rebuild('t_selfish')");
}

# A worker that needs what its leader builds further out, around the build it works for.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION around(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF current_setting('my.around', true) = 'on' THEN
    PERFORM public.euno_rebuild('public.t_inner');
  END IF;
  RETURN a;
END $$;
CREATE FUNCTION inside(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF current_setting('my.around', true) = 'on' THEN
    IF current_setting('my.leader') <> pg_backend_pid()::text THEN
      PERFORM public.euno_rebuild('public.outer_a');
    ELSIF a % 1000 = 0 THEN
      PERFORM pg_sleep(10);
    END IF;
  END IF;
  RETURN a;
END $$;
CREATE TABLE outermost AS SELECT 1 AS a;
CREATE INDEX outer_a ON outermost USING euno (around(a));
CREATE INDEX t_inner ON t USING euno (inside(a));
SELECT euno_evict('outer_a'), euno_evict('t_inner');
SQL
($ret, $stdout, $stderr) = $node->psql('postgres', <<'SQL');
SELECT set_config('my.leader', pg_backend_pid()::text, false);
SELECT set_config('my.around', 'on', false);
SET statement_timeout = '1min';
BEGIN;
LOCK TABLE outermost, t;
SELECT euno_rebuild('outer_a');
SQL
like($stderr, qr/cannot use euno index "outer_a" while this session is building it.*parallel worker/s, 'a worker that needs what is built around its build: an error');
$node->safe_psql('postgres', 'DROP INDEX outer_a, t_inner');
($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT euno_evict('t_selfish'); SET my.selfish = 'evicting'; SET statement_timeout = '4min'; BEGIN; LOCK TABLE t; SELECT euno_rebuild('t_selfish')");
like($stderr, qr/cannot use euno index "t_selfish" while this session is building it/, 'a function that evicts the index: an error, too');
$node->safe_psql('postgres', "SELECT euno_rebuild('t_selfish')");
($ret, $stdout, $stderr) = $node->psql('postgres', "SET my.selfish = 'evicting'; SET statement_timeout = '4min'; SELECT euno_index_check('t_selfish', true)");
unlike($stderr, qr/timeout/, 'in a check it does not wait for the check');
$node->safe_psql('postgres', "SELECT euno_rebuild('t_selfish')");

# The same of a comparator, which meets a row that was inserted meanwhile when all
# others have been loaded.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION selfish_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF current_setting('my.selfish', true) = 'merging' AND greatest(a, b) = 1000000 THEN
    PERFORM public.euno_evict('public.merged_a');
  END IF;
  RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS selfish_ops FOR TYPE int4 USING euno AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 selfish_cmp(int, int);
CREATE TABLE merged (a int);
INSERT INTO merged SELECT generate_series(1, 50);
CREATE INDEX merged_a ON merged USING euno (a selfish_ops);
SELECT euno_evict('merged_a');
SQL
$holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my %settings = ('my.selfish' => 'merging', statement_timeout => '1min', 'euno.debug_stop' => 'build-loaded:1');
for_all($node, %settings);
my $merger = $node->background_psql('postgres', on_error_stop => 0);
$merger->query_until(qr/begun/, "\\echo begun\nSELECT euno_rebuild('merged_a');\n");
ok(wait_for_stop(0), 'all is loaded');
for_all($node, map { $_ => undef } keys %settings);
$node->safe_psql('postgres', 'INSERT INTO merged VALUES (1000000)');
$holder->query_safe('SELECT pg_advisory_unlock(1)');
$merger->query('SELECT 1');
like($merger->{stderr}, qr/cannot use euno index "merged_a" while this session is building it/, 'a comparator that evicts the index when it merges: an error');
$merger->quit;
$holder->quit;
$node->safe_psql('postgres', "SELECT euno_rebuild('merged_a')");
check_indexes($node, 'postgres', 'after such errors');

# A tree from a file: nobody builds another one by the old function while a transaction
# is prepared that has changed it, and made keys by it.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION code(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN CASE WHEN $1 < 5000 THEN $1 END; END';
CREATE TABLE codes AS SELECT generate_series(1, 100) AS a;
CREATE INDEX codes_a ON codes USING euno (code(a));
SQL
$node->append_conf('postgresql.conf', "euno.snapshot_on_shutdown = on\neuno.auto_rebuild = off");
$node->reload;
$node->restart;
is(state_of($node, 'codes_a'), 'ready', 'an index from a file');
($ret, $stdout, $stderr) = $node->psql('postgres', <<'SQL', on_error_stop => 0);
BEGIN;
CREATE OR REPLACE FUNCTION code(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN CASE WHEN $1 < 10000 THEN $1 END; END';
INSERT INTO codes VALUES (5000);
PREPARE TRANSACTION 'new code';
SET lock_timeout = '1s';
SELECT euno_evict('codes_a');
SELECT euno_rebuild('codes_a');
COMMIT PREPARED 'new code';
SQL
like($stderr, qr/canceling statement due to lock timeout/, 'is not given up while new definitions are prepared');
same_answers($node, 'postgres', 'SELECT a FROM codes WHERE code(a) = 5000', 'after COMMIT PREPARED');
$node->safe_psql('postgres', 'DROP TABLE codes');

# Without a postmaster there are no workers, and nobody to ask for them.
$node->stop;
my $answer = '';
IPC::Run::run([ 'postgres', '--single', '-j', '-D', $node->data_dir, 'postgres' ],
	'<', \"SELECT euno_rebuild('t_a');\n\nSET enable_seqscan = off; SET enable_bitmapscan = off;\n\nINSERT INTO t VALUES (777777, 'single', 0);\n\nEXPLAIN SELECT b FROM t WHERE a = 777777;\n\nSELECT b FROM t WHERE a = 777777;\n\nSELECT euno_index_check('t_a', true);\n\n",
	'>', \$answer, '2>', \my $errors);
like($answer, qr/Index Scan using t_a/, 'single-user mode: the index is rebuilt') or note $errors;
like($answer, qr/b = "single"/, 'and used');
unlike($errors, qr/ERROR|PANIC|FATAL/, 'without an error');

done_testing();
