# Which part of a table is in buffers decides between a plain scan of a few percent
# of its rows and a bitmap scan, of one index or of two.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use EunoTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = euno_node('buffered', "shared_buffers = 64MB\neuno.snapshot_on_shutdown = on");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION euno_index;
	CREATE TABLE t AS SELECT hashint4(n) % 20000 AS a, repeat('x', 50) AS pad, n AS id FROM generate_series(1, 100000) n;
	CREATE INDEX t_a ON t USING euno (a);
	CREATE INDEX t_half ON t USING euno ((id % 8));
	SET default_statistics_target = 1000;
	VACUUM ANALYZE t;
});

sub plan_is
{
	my ($least, $most, $like, $name, $and) = @_;

	like($node->safe_psql('postgres', "SET random_page_cost = " . ($and ? 1.1 : 4) . "; EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a BETWEEN $least AND $most " . ($and // '')), $like, $name);
	return;
}

plan_is(1, 1900, qr/^Index Scan/, 'all of the table is in buffers: a plain scan');
plan_is(1, 4000, qr/^Bitmap Heap Scan/, 'of a tenth of it a bitmap scan');
plan_is(1, 100, qr/^Index Scan/, 'of what two indexes have a plain scan', 'AND id % 8 = 3');
$node->restart;
is($node->safe_psql('postgres', q{SELECT DISTINCT state FROM euno_stat_indexes}), 'ready', 'the indexes are back');
plan_is(1, 30, qr/^Index Scan/, 'nothing is in buffers: a plain scan of a few rows');
plan_is(1, 1900, qr/^Bitmap Heap Scan/, 'of more a bitmap scan');
plan_is(1, 100, qr/^Bitmap Heap Scan.*BitmapAnd/s, 'of what two indexes have a bitmap scan of both', 'AND id % 8 = 3');
$node->safe_psql('postgres', q{SELECT sum(id) FROM t WHERE ctid < '(400,0)'});
plan_is(1, 1900, qr/^Bitmap Heap Scan/, 'a third of the table is in buffers: a bitmap scan');
$node->safe_psql('postgres', 'SELECT sum(id) FROM t');
plan_is(1, 1900, qr/^Index Scan/, 'all is again');
$node->stop;
done_testing();
