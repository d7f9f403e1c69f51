# Pages of the table that index scans pin where they remember them: with fewer
# buffers than pages, so that most of what is remembered is out of date, beside other
# sessions that evict these pages, and when statements end with a page pinned; and
# whether what a pin does besides is done: the page's use counted, its dead rows pruned.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('recent', "shared_buffers = 1MB\neffective_io_concurrency = 1");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
ALTER DATABASE postgres SET enable_seqscan = off;
ALTER DATABASE postgres SET enable_bitmapscan = off;
ALTER DATABASE postgres SET plan_cache_mode = force_generic_plan;

-- Reads the rows of a table one by one, and as a list; the index's column is a.
CREATE FUNCTION wrong(relation text, n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint := 0;
	list int[];
	found bigint;
	key int;
	value bigint;
BEGIN
	FOR turn IN 1..5 LOOP
		SELECT array_agg(DISTINCT 1 + (i * 7919 + turn) % n) INTO list FROM generate_series(1, 400) i;
		EXECUTE format('SELECT sum(v) FROM %I WHERE a = ANY ($1)', relation) INTO found USING list;
		result := result + (found IS DISTINCT FROM (SELECT sum(3 * k::bigint) FROM unnest(list) k))::int;
		FOREACH key IN ARRAY list LOOP
			EXECUTE format('SELECT v FROM %I WHERE a = $1', relation) INTO value USING key;
			result := result + (value IS DISTINCT FROM 3 * key)::int;
		END LOOP;
	END LOOP;
	RETURN result;
END $$;

CREATE TABLE t (a int, v bigint, pad text);
CREATE TABLE u (a int, v bigint, pad text);
INSERT INTO t SELECT g, 3 * g, repeat('x', 500) FROM generate_series(1, 8000) g ORDER BY hashint4(g);
INSERT INTO u SELECT * FROM t ORDER BY hashint4(-a);
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX u_a ON u USING euno (a) WITH (structure = art);
SQL
$node->safe_psql('postgres', 'VACUUM ANALYZE');

cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('t') / 8192"), '>', 3 * 128, 'more pages than buffers');
is($node->safe_psql('postgres', "SELECT wrong('t', 8000), wrong('u', 8000), wrong('t', 100), wrong('t', 8000)"),
	'0|0|0|0', 'two tables');
is($node->safe_psql('postgres', <<'SQL'), "0\n0\n0\n0", 'other pages in the same places');
SELECT wrong('t', 8000);
UPDATE t SET a = 8001 - a, v = 3 * (8001 - a);
VACUUM t;
SELECT wrong('t', 8000);
VACUUM FULL t;
SELECT wrong('t', 8000);
BEGIN;
CREATE TABLE s AS TABLE t;
TRUNCATE t;
INSERT INTO t SELECT * FROM s ORDER BY a;
SELECT wrong('t', 8000);
ROLLBACK;
SQL
is($node->safe_psql('postgres', "SELECT wrong('t', 8000)"), '0', 'after a rollback');

# Sessions that take the buffers from each other, while rows move.
my $script = script_file($node, 'evict', <<'SQL');
\set k random(1, 7000)
SELECT 1 / (wrong('t', 8000) = 0)::int;
SELECT 1 / (wrong('u', 8000) = 0)::int;
UPDATE t SET pad = pad WHERE a BETWEEN :k AND :k + 200;
SET enable_seqscan = on;
SELECT 1 / (sum(length(pad)) > 0)::int FROM u;
RESET enable_seqscan;
SQL
my ($out, $err) = run_command([ 'pgbench', '-n', '-c', '4', '-j', '2', '-t', '2', '-f', $script, $node->connstr('postgres') ]);
unlike($err, qr/ERROR|aborted/, 'right rows beside sessions that evict pages');

# Nobody has one of the table's pages pinned: a vacuum that must freeze rows on them
# waits for none.
sub unpinned
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my (undef, undef, $stderr) = $node->psql('postgres', "SET statement_timeout = '3min'; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) t");
	is($stderr, '', "$name: no page is pinned");
	return;
}

# Statements that end in the middle.
$node->safe_psql('postgres', 'UPDATE t SET pad = pad');
my ($canceled, $session) = ('');
$script = join '', map { sprintf "SET statement_timeout = %d;\nSELECT wrong('t', 8000);\n", 1 + rand 30 } 1 .. 40;
(undef, undef, $canceled) = $node->psql('postgres', $script, on_error_stop => 0);
like($canceled, qr/canceling statement/, 'some are canceled');
unlike($canceled, qr/ERROR:  (?!canceling)|leak/, 'and nothing else happens');
unpinned('canceled');

for my $how ('rollback of a savepoint', 'error', 'cancel', 'terminate')
{
	$node->safe_psql('postgres', 'UPDATE t SET pad = pad WHERE a BETWEEN 90 AND 110');
	$session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');
	$session->query("BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR SELECT v FROM t WHERE a > 100 ORDER BY a; FETCH 5 FROM c");
	(undef, undef, my $stderr) = $node->psql('postgres', "SET statement_timeout = '100ms'; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) t");
	like($stderr, qr/canceling statement/, "$how: a page is pinned");
	if ($how eq 'rollback of a savepoint') { $session->query('ROLLBACK TO s') }
	elsif ($how eq 'error') { $session->query('SELECT 1 / 0') }
	elsif ($how eq 'cancel')
	{
		$session->query_until(qr/started/, "\\echo started\nSELECT pg_sleep(100);\n");
		$node->poll_query_until('postgres', "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $pid");
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		$node->poll_query_until('postgres', "SELECT state LIKE 'idle in%' FROM pg_stat_activity WHERE pid = $pid");
	}
	else { $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 180000)") }
	$session->query('COMMIT') if $how eq 'rollback of a savepoint';
	unpinned($how);
	if ($how eq 'terminate') { $session->{run}->finish } else { $session->quit }
}
is($node->safe_psql('postgres', "SELECT wrong('t', 8000)"), '0', 'right rows afterwards');
unlike(slurp_file($node->logfile), qr/leak|PANIC|terminated by signal/, 'nothing leaked');

# What the statistics say must not depend on who has pinned a page.
my (%pages, %plan);
for my $am (qw(btree euno))
{
	my $pages = "SELECT heap_blks_hit + heap_blks_read FROM pg_statio_user_tables WHERE relname = 'few_$am'";

	$node->safe_psql('postgres', "CREATE TABLE few_$am AS SELECT * FROM t WHERE a <= 500; CREATE INDEX ON few_$am USING $am (a); ANALYZE few_$am; SELECT pg_stat_force_next_flush()");
	my $before = $node->safe_psql('postgres', $pages);
	$plan{$am} = $node->safe_psql('postgres', <<"SQL");
SELECT wrong('few_$am', 500);
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) SELECT v FROM few_$am WHERE a = 77;
SELECT pg_stat_force_next_flush();
SQL
	$pages{$am} = $node->safe_psql('postgres', $pages) - $before;
}
cmp_ok($pages{euno}, '>', 2000, 'pages are counted');
is($pages{euno}, $pages{btree}, 'as many as with btree');
like($plan{euno}, qr/Buffers: shared hit=1\n/, 'one page for one row');

# A page that is read all the time stays in its buffer.
SKIP:
{
	skip 'no pg_buffercache', 1
	  unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache'");
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');
	cmp_ok($node->safe_psql('postgres', <<'SQL'), '>=', 3, 'uses of a page are counted');
CREATE TABLE hot (a int, v int);
INSERT INTO hot VALUES (1, 1);
CREATE INDEX ON hot USING euno (a);
DO $$ BEGIN
	FOR i IN 1..500 LOOP PERFORM v FROM hot WHERE a = 1; PERFORM sum(v) FROM u WHERE a = i * 13; END LOOP;
	FOR i IN 1..10 LOOP PERFORM v FROM hot WHERE a = 1; END LOOP;
END $$;
SELECT usagecount FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('hot') AND relforknumber = 0 AND reldatabase = (SELECT oid FROM pg_database WHERE datname = 'postgres');
SQL
}

# Each update leaves a dead row; whoever comes to a full page by the index prunes it.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE pruned (a int, v int, pad text);
INSERT INTO pruned SELECT g, 0, repeat('y', 200) FROM generate_series(1, 10) g;
CREATE INDEX ON pruned USING euno (a);
CREATE PROCEDURE update_all(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP UPDATE pruned SET v = v + 1 WHERE a = 1 + i % 10; COMMIT; END LOOP;
END $$;
CALL update_all(2000);
SQL
is($node->safe_psql('postgres', 'SELECT min(v), max(v) FROM pruned'), '200|200', 'updates');
is($node->safe_psql('postgres', "SELECT pg_relation_size('pruned') / 8192"), '1', 'a page is pruned when it is full');

$node->stop;
done_testing();
