# Pages of the table that index scans pin where they remember them: with fewer
# buffers than pages, so that most of what is remembered is out of date, and whether
# what a pin does besides is done: the page's use counted, its dead rows pruned.

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
