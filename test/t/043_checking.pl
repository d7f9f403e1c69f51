# A unique check that fails takes back what it has announced a moment after its
# transaction is no longer in progress.  If VACUUM gives the row's place to
# another row in this moment, the announcement is not about that one.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

my $node = euno_node('checking', 'autovacuum = off');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE u (k int, v text);
CREATE UNIQUE INDEX u_k ON u USING euno (k);
INSERT INTO u VALUES (1, 'first');
SQL

my $refused = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $refused->query_safe('SELECT pg_backend_pid()');
my $xid = $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
$refused->{stdin} .= "BEGIN; SET LOCAL euno.debug_stop = 'end-transaction:sleep'; INSERT INTO u VALUES (1, 'refused');\n";
$refused->{run}->pump_nb;
ok( $node->poll_query_until(
		'postgres',
		"SELECT pg_snapshot_xmax(s) > '$xid' AND pg_snapshot_xmin(s) = pg_snapshot_xmax(s) FROM pg_current_snapshot() s"),
	'a transaction is refused, and over');

$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) u');
my $inserter = $node->background_psql('postgres');
is($inserter->query_safe("BEGIN; INSERT INTO u VALUES (7, 'open') RETURNING ctid"), '(0,2)', 'another row has its place');
is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $pid"), 'active', 'its announcement is still there');
my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = 500; INSERT INTO u VALUES (7, 'waits')");
like($stderr, qr/canceling statement due to statement timeout/, 'the same key waits for the inserter');
$inserter->query_safe('COMMIT');
($ret, $stdout, $stderr) = $node->psql('postgres', "INSERT INTO u VALUES (7, 'too late')");
like($stderr, qr/duplicate key value violates unique constraint "u_k"/, 'and is refused when that has committed');

$inserter->quit;
$refused->quit;
is(by_seqscan($node, 'postgres', 'SELECT string_agg(k || v, $$ $$ ORDER BY k, v) FROM u'), '1first 7open', 'each key is there once');
check_indexes($node, 'postgres', 'at the end');

$node->stop;
done_testing();
