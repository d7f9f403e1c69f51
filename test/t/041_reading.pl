# Who is waited for by others of its parallel query, and itself waits for pages that
# these read, or in a comparator's statement for other workers, will be done: that is
# no deadlock.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

my $node = euno_node('reading', <<'CONF');
shared_buffers = 1MB
deadlock_timeout = 1ms
max_worker_processes = 12
CONF
$node->start;

# Comparators that read a table larger than the buffers, all of them the same pages.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE large (a int, b text);
ALTER TABLE large ALTER b SET STORAGE PLAIN;
INSERT INTO large SELECT g, repeat('x', 1800) FROM generate_series(1, 4000) g;
CREATE FUNCTION reading_cmp(l int, r int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF random() < 0.05 THEN
		PERFORM count(*) FROM public.large;
	END IF;
	RETURN btint4cmp(l, r);
END $$;
CREATE TABLE t AS SELECT generate_series(0, 999) AS a;
CREATE TABLE other AS SELECT generate_series(0, 1999) AS a;
CREATE TABLE numbers WITH (parallel_workers = 3) AS SELECT generate_series(1, 300) AS a;
CREATE OPERATOR CLASS reading FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 reading_cmp(int, int);
CREATE INDEX t_a ON t USING euno (a reading);
CREATE INDEX other_a ON other USING euno (a);
SQL
$node->safe_psql('postgres', "VACUUM ANALYZE $_") for qw(large t other numbers);

my $query = 'SELECT count(*) FROM numbers n, t, other o WHERE t.a = n.a % 1000 AND o.a = n.a % 2000';
my $settings = <<'SQL';
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 3;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SQL
my $plan = $node->safe_psql('postgres', "$settings EXPLAIN (COSTS OFF) $query");
like($plan, qr/Gather.*Parallel Seq Scan on numbers.*using t_a on t.*using other_a on other/s, 'a parallel plan');

# Starts psql with these statements.
sub start_psql
{
	my ($statements, $out, $err) = @_;

	return IPC::Run::start(['psql', '-XqAt', '-d', $node->connstr('postgres'), '-c', $statements],
		'<', \undef, '>', $out, '2>', $err);
}

my $script = script_file($node, 'evict', "SELECT euno_evict('other_a');\n\\sleep 5 ms\n");
$node->safe_psql('postgres', "SELECT euno_rebuild('other_a')");

# The plan is made before the tree is evicted for the first time.
my ($out, $err, $evicted, $errors) = ('', '', '', '');
my $reader = start_psql($settings . $query, \$out, \$err);
until (!$reader->pumpable || $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'"))
{
	$reader->pump_nb;
}
my $evict = IPC::Run::start(['pgbench', '-n', '-T', 2, '-f', $script, $node->connstr('postgres')],
	'<', \undef, '>', \$evicted, '2>', \$errors);
$reader->finish;
is("$out$err", "300\n", 'the query has its answer while others read its pages');
$evict->finish;

# A comparator's statement is a parallel one itself, in the leader.  All wait until an
# advisory lock is free; but as the server knows nothing of that, nobody waits for it.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE pages (a int, b text) WITH (parallel_workers = 2);
ALTER TABLE pages ALTER b SET STORAGE PLAIN;
INSERT INTO pages SELECT g, repeat('x', 5000) FROM generate_series(0, 99) g;
CREATE TABLE small WITH (parallel_workers = 2) AS SELECT generate_series(0, 99) AS a;
CREATE FUNCTION free(l int, seconds float) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory') LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
	PERFORM pg_sleep(seconds);
	RETURN l;
END $$;
CREATE FUNCTION is_worker() RETURNS bool LANGUAGE sql STABLE PARALLEL SAFE AS $$
	SELECT backend_type = 'parallel worker' FROM pg_stat_activity WHERE pid = pg_backend_pid() $$;
CREATE FUNCTION free_in_worker(l int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	RETURN CASE WHEN public.is_worker() THEN public.free(l, 0) ELSE l END;
END $$;
CREATE FUNCTION parallel_cmp(l int, r int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET max_parallel_workers_per_gather = 2 SET parallel_leader_participation = off AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory') OR public.is_worker() THEN
		NULL;
	ELSIF current_setting('my.deadlock') = 'on' THEN
		PERFORM count(*) FROM public.small s, public.other o WHERE o.a = public.free(s.a, 0);
	ELSE
		PERFORM count(*) FROM public.small WHERE a = 0 AND public.free(a, 0.3) = a;
	END IF;
	RETURN btint4cmp(l, r);
END $$;
CREATE OPERATOR CLASS parallel FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 parallel_cmp(int, int);
CREATE TABLE few AS SELECT generate_series(0, 3) AS a;
CREATE INDEX few_a ON few USING euno (a parallel);
SQL
$node->safe_psql('postgres', "VACUUM ANALYZE $_") for qw(pages small few);

for my $deadlock ('off', 'on')
{
	($out, $err, $evicted, $errors) = ('', '', '', '');
	my $locker = $node->background_psql('postgres');
	$node->safe_psql('postgres', "SELECT euno_rebuild('other_a')");
	$locker->query_safe('SELECT pg_advisory_lock(1)');

	# In the second case the query has no other workers.
	$reader = start_psql("${settings}SET my.deadlock = $deadlock; SET statement_timeout = '180s';" .
			($deadlock eq 'on' ? 'SET max_parallel_workers_per_gather = 0;' : '') .
			'SELECT count(*) FROM pages p, few, other o WHERE few.a = p.a % 4 AND o.a = free_in_worker(few.a)',
		\$out, \$err);
	$node->poll_query_until('postgres', "SELECT count(*) FILTER (WHERE query ~ 'FROM public.small') > 0 AND count(*) FILTER (WHERE query ~ 'FROM pages') >= " .
			($deadlock eq 'on' ? 0 : 1) . " FROM pg_stat_activity WHERE backend_type = 'parallel worker'")
		or die 'no workers';
	$evict = start_psql("SELECT euno_evict('other_a')", \$evicted, \$errors);
	$node->poll_query_until('postgres', "SELECT state = 'retiring' FROM euno_stat_indexes WHERE indexrelname = 'other_a'")
		or die 'not evicted';
	$locker->query_safe('SELECT pg_advisory_unlock(1)');
	$reader->finish;
	if ($deadlock eq 'on')
	{
		like($err, qr/deadlock detected/, 'a worker that a comparator waits for waits for that');
	}
	else
	{
		is("$out$err", "100\n", 'a worker waits for a comparator that waits for others');
	}
	$evict->finish;
	$locker->quit;
}

# A build is an operation, too: its leader, which looks into an index meanwhile, waits in
# there for the comparator's workers, and not for those of the build.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION looked_up(l int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
	IF public.is_worker() THEN
		PERFORM FROM public.other o WHERE o.a = public.free(l, 0);
	ELSE
		PERFORM FROM public.few WHERE few.a = l % 4;
	END IF;
	RETURN l;
END $$;
ALTER FUNCTION parallel_cmp(int, int) SET enable_seqscan = on;
CREATE TABLE built (a int, b text) WITH (parallel_workers = 2);
ALTER TABLE built ALTER b SET STORAGE PLAIN;
INSERT INTO built SELECT g, repeat('x', 5000) FROM generate_series(0, 599) g;
SELECT euno_rebuild('other_a');
SQL
($out, $err, $evicted, $errors) = ('', '', '', '');
my $locker = $node->background_psql('postgres');
$locker->query_safe('SELECT pg_advisory_lock(1)');
my $builder = start_psql("${settings}SET my.deadlock = off; SET statement_timeout = '180s'; CREATE INDEX ON built USING euno (looked_up(a))", \$out, \$err);
$node->poll_query_until('postgres', "SELECT count(*) FILTER (WHERE query ~ 'FROM public.small') > 0 AND count(*) FILTER (WHERE query ~ 'CREATE INDEX' AND wait_event = 'PgSleep') = 2 FROM pg_stat_activity WHERE backend_type = 'parallel worker'")
	or die 'no workers';
my $last = start_psql("SELECT euno_evict('other_a')", \$evicted, \$errors);
$node->poll_query_until('postgres', "SELECT state = 'retiring' FROM euno_stat_indexes WHERE indexrelname = 'other_a'")
	or die 'not evicted';
$locker->query_safe('SELECT pg_advisory_unlock(1)');
$builder->finish;
is("$out$err", '', 'a worker of a build waits for a comparator that waits for others');
$last->finish;
$locker->quit;

# VACUUM waits for a hazard; whose it was then waits for VACUUM's lock.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE hazard (a int) WITH (autovacuum_enabled = off);
CREATE INDEX hazard_a ON hazard USING euno (a);
INSERT INTO hazard SELECT generate_series(1, 1000);
DELETE FROM hazard WHERE a < 5;
SQL
$locker = $node->background_psql('postgres');
$locker->query_safe('SELECT pg_advisory_lock(1)');
($out, $err, my $vacuumed) = ('', '', '');
$reader = start_psql("SET enable_seqscan = off; SET enable_bitmapscan = off; SET euno.debug_stop = 'scan-return:1';"
	  . 'SELECT a FROM hazard WHERE a = 3; LOCK TABLE hazard', \$out, \$err);
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
	or die 'no hazard';
my $vacuum = start_psql('VACUUM hazard', \$vacuumed, \$vacuumed);
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_vacuum WHERE phase = 'vacuuming indexes'")
	or die 'no VACUUM';
$locker->query_safe('SELECT pg_advisory_unlock(1)');
$_->finish for $vacuum, $reader;
is("$vacuumed$out$err", '', 'whose hazard is gone is waited for no more');
$locker->quit;

# What tells workers that is not to be set in a file, either.
$node->append_conf('postgresql.conf', 'euno.within_operations = 1');
$node->reload;
$node->wait_for_log(qr/parameter "euno.within_operations" cannot be changed/);
is($node->safe_psql('postgres', 'SHOW euno.within_operations'), '0', 'a setting that nobody may set');
$node->stop;
done_testing();
