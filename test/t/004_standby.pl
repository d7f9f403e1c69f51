# A standby has no trees: nothing of them is in the WAL.  Its indexes are hidden
# and its answers right; after promotion the worker builds them.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

# The launcher has to notice by itself: it would not look again for an hour.
my $primary = euno_node('primary', 'euno.naptime = 1h', allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 2000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_shout ON t USING euno (upper(b));
ANALYZE t;
CREATE UNLOGGED TABLE u (a int);
CREATE INDEX u_a ON u USING euno (a);
INSERT INTO u VALUES (1);
SQL
$primary->backup('copy');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

$primary->safe_psql('postgres', <<'SQL');
INSERT INTO t SELECT g, 'late' FROM generate_series(2001, 3000) g;
DELETE FROM t WHERE a <= 10;
CREATE INDEX t_b ON t USING euno (b);
CREATE TABLE made (a int);
CREATE INDEX made_a ON made USING euno (a);
INSERT INTO made SELECT generate_series(1, 100);
SQL
$primary->safe_psql('postgres', 'VACUUM t');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

is($standby->safe_psql('postgres', 'SELECT string_agg(DISTINCT state, $$,$$) FROM euno_stat_indexes'),
	'hidden', 'indexes are hidden on a standby');
unlike(by_index($standby, 'postgres', 'EXPLAIN SELECT a FROM t WHERE a = 2500'), qr/t_a/, 'and not in plans');
is(by_index($standby, 'postgres', "SELECT count(*), min(a), max(a) FROM t WHERE a > 0"),
	'2990|11|3000', 'a query');
is(by_index($standby, 'postgres', "SELECT count(*) FROM t WHERE b = 'late'"), '1000', 'another query');
for my $call ("euno_rebuild('t_a')", "euno_evict('t_a')")
{
	my ($ret, $stdout, $stderr) = $standby->psql('postgres', "SELECT $call");
	like($stderr, qr/Euno indexes are not available during recovery/, "$call is refused");
}
like($standby->safe_psql('postgres', "EXPLAIN SELECT * FROM t WHERE upper(b) = 'B77'"), qr/rows=1\b/,
	'their statistics are not');
is($standby->safe_psql('postgres', 'SELECT used_bytes FROM euno_memory'), '0', 'no memory is used');

# A session that was there before the promotion goes on, with a cached plan.
my $session = $standby->background_psql('postgres');
$session->query_safe(
	'SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*), min(a), max(a) FROM t WHERE a > $1');
is($session->query_safe('EXECUTE q(0)'), '2990|11|3000', 'a prepared query before the promotion');

# So does one whose transaction has begun before; its snapshot is older than the
# tree it will read.
my $old = $standby->background_psql('postgres');
$old->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
is($old->query_safe('SELECT count(*), min(a), max(a) FROM t WHERE a > 0'), '2990|11|3000', 'a snapshot from before the promotion');

like(($standby->psql('postgres', "SELECT euno_index_check('t_a')"))[2], qr/cannot use euno index "t_a"\nDETAIL:  Euno indexes are not available during recovery/, 'there is nothing to check');
$standby->promote;
$standby->safe_psql('postgres', "DELETE FROM t WHERE a BETWEEN 500 AND 599; UPDATE t SET b = 'new' WHERE a = 600; UPDATE t SET a = a + 5000 WHERE a = 601");
ok(wait_for_state($standby, 'postgres', 'ready'), 'the worker builds all indexes after the promotion');
like($old->query_safe('EXPLAIN SELECT count(*), min(a), max(a) FROM t WHERE a > 0'), qr/t_a/, 'the old snapshot reads the new tree');
is($old->query_safe('SELECT count(*), min(a), max(a) FROM t WHERE a > 0'), '2990|11|3000', 'and sees what it saw');
is($old->query_safe('SELECT a, b FROM t WHERE a BETWEEN 598 AND 601 ORDER BY a'), "598|b598\n599|b599\n600|b600\n601|b601", 'row by row');
$old->quit;
is($session->query_safe('EXECUTE q(0)'), '2890|11|5601', 'the prepared query after the promotion');
like($session->query_safe('EXPLAIN EXECUTE q(0)'), qr/t_a/, 'uses the index now');
is($session->query_safe("INSERT INTO t VALUES (5000, 'new'); EXECUTE q(2999)"), '3|3000|5601', 'and sees what the session writes');
$session->quit;
same_answers($standby, 'postgres', 'SELECT a FROM t WHERE a < 50 ORDER BY a', 't_a');
same_answers($standby, 'postgres', "SELECT b FROM t WHERE b > 'b9' ORDER BY b", 't_b');
same_answers($standby, 'postgres', 'SELECT a FROM made WHERE a > 0 ORDER BY a', 'made_a');
is(by_index($standby, 'postgres', 'INSERT INTO u VALUES (7); SELECT a FROM u WHERE a > 0'), '7', 'an unlogged table starts empty');
check_indexes($standby, 'postgres', 'after the promotion');

$standby->stop;
$primary->stop;
done_testing();
