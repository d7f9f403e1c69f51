# Who is waited for by others of its parallel query, and itself waits for pages that
# these read, or in a comparator's statement for other workers, will be done: that is
# no deadlock.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
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

my $script = PostgreSQL::Test::Utils::tempdir() . '/evict.sql';
append_to_file($script, "SELECT euno_evict('other_a');\n\\sleep 5 ms\n");
for my $round (1 .. 4)
{
	# A comparator's statement is a parallel one itself, in the leader.
	my $workers = $round <= 2 ? 0 : 2;
	$node->safe_psql('postgres', "ALTER FUNCTION reading_cmp SET max_parallel_workers_per_gather = $workers");
	$node->safe_psql('postgres', "SELECT euno_rebuild('other_a')");

	# The plan is made before the tree is evicted for the first time.
	my ($out, $err) = ('', '');
	my $reader = IPC::Run::start(['psql', '-XqAt', '-d', $node->connstr('postgres'), '-c', $settings, '-c', $query],
		'<', \undef, '>', \$out, '2>', \$err);
	until (!$reader->pumpable || $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'"))
	{
		$reader->pump_nb;
	}
	my ($evicted, $errors) = ('', '');
	my $evict = IPC::Run::start(['pgbench', '-n', '-T', 2, '-f', $script, $node->connstr('postgres')],
		'<', \undef, '>', \$evicted, '2>', \$errors);
	$reader->finish;
	is("$out$err", "300\n", "round $round, $workers more workers: the query has its answer");
	$evict->finish;
}
$node->stop;
done_testing();
