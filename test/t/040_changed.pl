# What a session has found out does not hold any more when it goes on, for others
# have changed it; and others go on when a session ends where they wait for it.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

# The launcher and two workers of a query leave one process, for somebody who builds.
my $node = euno_node('changed', <<'CONF');
euno.debug_copies = off
euno.domains = 1
euno.max_memory = 8MB
euno.auto_rebuild = off
euno.naptime = 1h
max_worker_processes = 4
max_logical_replication_workers = 0
CONF
$node->start;
fill_procedures($node);
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (k text COLLATE "C");
CREATE INDEX t_k ON t USING euno (k);
CREATE TABLE other AS SELECT g AS a FROM generate_series(1, 20000) g;
CREATE TABLE another AS SELECT g AS a FROM generate_series(1, 1000) g;
CREATE INDEX other_a ON other USING euno (a);
CALL fill(200, 300, 1000);
CALL fill(1, 900, 6000);
CALL near(md5('k'));
SET enable_seqscan = off;
SELECT count((SELECT 1 FROM t WHERE k = g::text)) FROM generate_series(1, 1000) g;
SQL
my $insert = q{INSERT INTO t VALUES (md5('k') || repeat('x', 900))};
my $control = $node->background_psql('postgres');
my ($ret, $stdout, $stderr) = $node->psql('postgres', $insert);
like($stderr, qr/out of memory for euno index "t_k"/, 'there is no room for a row');

# Who waits for an advisory lock; are there so many, or will be soon?
my $waiters = q{FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid =};
sub waiting
{
	my ($key, $processes) = @_;

	return $node->poll_query_until('postgres', "SELECT count(*) >= $processes $waiters $key");
}

# Runs a statement in a session that stops somewhere, does something else meanwhile,
# and returns what the session said.
sub meanwhile
{
	my ($point, $statement, $do) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$control->query_safe('SELECT pg_advisory_lock(1)');
	$session->query_until(qr/begun/, "SET euno.debug_stop = '$point:1';\n\\echo begun\n$statement;\n");
	ok(waiting(1, 1), "a session is at $point");
	$do->();
	$control->query_safe('SELECT pg_advisory_unlock(1)');
	eval { $session->query('SELECT 1') };	# it may have been terminated
	eval { $session->quit };
	return $session->{stderr};
}

# Memory is chosen to be taken from an index, and the index goes; its place is another's.
is(meanwhile('full-chosen', "SET euno.on_full = evict; $insert",
		sub { $node->safe_psql('postgres', 'DROP TABLE other; CREATE INDEX another_a ON another USING euno (a)') }),
	'', 'an eviction is not reported for the index that has its place now');
is(state_of($node, 'another_a'), 'ready', 'which stays');
is($node->safe_psql('postgres', "SELECT count(*) FROM t WHERE k = md5('k') || repeat('x', 900)"), '1', 'there was room');

# An index that has no room for a row is given up by somebody else: it needs none.
$insert =~ s/'k'/'l'/;
$node->safe_psql('postgres', q{DROP TABLE another; CALL fill(200, 300, 1000); CALL fill(1, 900, 6000); CALL near(md5('l'))});
($ret, $stdout, $stderr) = $node->psql('postgres', $insert);
like($stderr, qr/out of memory for euno index "t_k"/, 'there is no room for a row again');
is(meanwhile('insert-full', $insert, sub { $node->safe_psql('postgres', q{SELECT euno_evict('t_k')}) }),
	'', 'an insert goes on without the index');
is(state_of($node, 't_k'), 'absent', 'which is absent');

# A session ends with the lock of a key.
$node->safe_psql('postgres', 'DROP TABLE t; CREATE TABLE t (a int); CREATE UNIQUE INDEX t_a ON t USING euno (a)');
for my $how ('cancel', 'terminate')
{
	my $next = $node->background_psql('postgres', on_error_stop => 0);

	$next->query_safe(q{SET statement_timeout = '20s'});
	meanwhile('unique-checked', 'INSERT INTO t VALUES (1)', sub {
		$next->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (1);\n");
		ok($node->poll_query_until('postgres',
				"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t%' AND state = 'active' AND pid NOT IN (SELECT pid FROM pg_locks WHERE NOT granted)"),
			'another one with its key waits');
		$node->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
		$next->query('SELECT 1');
		is($next->{stderr}, '', "and goes on after a $how");
	});
	$next->quit;
	is($node->safe_psql('postgres', 'DELETE FROM t RETURNING a'), '1', 'with its row');
}

# The processes of a parallel query all want an index that was given up.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE many AS SELECT g % 1000 + 1 AS a, repeat('x', 300) AS pad FROM generate_series(1, 5000) g;
ALTER TABLE many SET (parallel_workers = 2);
CREATE TABLE few AS SELECT g AS a FROM generate_series(1, 1000) g;
CREATE INDEX few_a ON few USING euno (a);
CREATE ROLE stranger;
CREATE FUNCTION same(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN $1; END';
CREATE INDEX few_same ON few USING euno (same(a)) INCLUDE (a);
GRANT SELECT ON many, few TO stranger;
SQL
$node->safe_psql('postgres', 'VACUUM ANALYZE many');
$node->safe_psql('postgres', 'VACUUM ANALYZE few');
my $parallel = q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_memoize = off; SET enable_material = off;};

for my $case ([ 'few_a', 'few.a', 'SELECT 1', 'build-page' ], [ 'few_same', 'same(few.a)', 'SET SESSION AUTHORIZATION stranger', 'worker-request' ])
{
	my ($index, $key, $as_whom, $point) = @$case;
	my $query = "SELECT count(*) FROM many JOIN few ON $key = many.a WHERE pad > 'a'";
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $log_start = -s $node->logfile;

	like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS OFF) $query"),
		qr/Gather.*Parallel Seq Scan on many.*Index Only Scan using $index/s, 'a parallel query');
	$control->query_safe('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
	$session->query_safe("$parallel SET euno.debug_stop = 'scan-return:1,$point:2'; $as_whom");
	$session->query_until(qr/begun/, "\\echo begun\n$query;\n");
	ok(waiting(1, 3), 'three processes use an index');
	$node->safe_psql('postgres', "SELECT euno_evict('$index')");
	$control->query_safe('SELECT pg_advisory_unlock(1)');
	ok(waiting(2, 1), "it is given up: one of them is at $point");
	sleep 1;
	is($node->safe_psql('postgres', "SELECT count(*) $waiters 2"), '1', 'the others wait for it');
	is(state_of($node, $index), $point eq 'build-page' ? 'building' : 'absent', 'and take nothing from it');
	$control->query_safe('SELECT pg_advisory_unlock(2)');
	is($session->query('SELECT 1'), "5000\n1", 'the answer is right');
	is($session->{stderr}, '', 'nothing has failed');
	is(() = slurp_file($node->logfile, $log_start) =~ /euno index "$index" of table .* rebuilt/g, 1, 'the index was built once');
	$session->quit;
}

# One of them builds, longer than lock_timeout: the others have no lock to wait for.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN PERFORM pg_sleep(0.001); RETURN $1; END';
CREATE FUNCTION nap(text) RETURNS bool LANGUAGE plpgsql COST 1 PARALLEL SAFE AS 'BEGIN PERFORM pg_sleep(0.001); RETURN true; END';
CREATE INDEX few_slow ON few USING euno (slow(a)) INCLUDE (a);
SQL
$node->safe_psql('postgres', 'VACUUM ANALYZE few');
{
	my $query = 'SELECT count(*) FROM many JOIN few ON slow(few.a) = many.a WHERE nap(pad)';
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS OFF) $query"),
		qr/Gather.*Parallel Seq Scan on many.*Index Only Scan using few_slow/s, 'a parallel query');
	$session->query_safe("$parallel SET lock_timeout = '100ms'");
	$session->query_until(qr/begun/, "\\echo begun\n$query;\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"),
		'its workers have begun');
	$node->safe_psql('postgres', q{SELECT euno_evict('few_slow')});
	is($session->query('SELECT 1'), "5000\n1", 'the answer is right');
	is($session->{stderr}, '', 'nothing has failed for lock_timeout');
	is(state_of($node, 'few_slow'), 'ready', 'the index was built');
	$session->quit;
}
$control->quit;
check_indexes($node, 'postgres', 'at the end');
$node->stop;

done_testing();
