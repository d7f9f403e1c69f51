# Sessions that are in each other's way: counted by cause, shown with the leaf
# where it happens, forgotten when it is over.  The launcher merges what removals
# leave, and an error does not end it.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('heat', "euno.naptime = 1s\neuno.hot_leaf_conflicts = 1\nmax_connections = 30\neuno.auto_rebuild = off");
$node->start;
$node->safe_psql('postgres', $extension . <<'SQL');
CREATE TABLE t (id bigint, n numeric, filler text);
INSERT INTO t SELECT g * 100, g FROM generate_series(1, 50000) g;
CREATE INDEX t_id ON t USING euno (id);
CREATE INDEX t_n ON t USING euno (n compared);
CREATE INDEX t_art ON t USING euno (id) WITH (structure = art);
CREATE UNLOGGED TABLE h AS SELECT id FROM t;
SET euno.debug_modes = stalling;
CREATE INDEX h_id ON h USING euno (id);
SQL

# All write between two neighbors of the table, and now and then one keeps a leaf locked:
# so they meet on any machine, and some of their writes are delegated.
my $script = script_file($node, 'hot', "INSERT INTO h SELECT 2500000 + g % 4 * 10 FROM generate_series(1, 500) g;\n");

sub fight
{
	my ($seconds, $writes) = @_;
	local $ENV{PGOPTIONS} = '-c euno.debug_modes=stalling';
	my $result = IPC::Run::run(
		[ 'pgbench', '-n', '-c', '16', '-j', '2', '-T', $seconds, '-f', $writes // $script, $node->connstr('postgres') ],
		'>', \my $stdout, '2>', \my $stderr);

	ok($result, 'sessions write to one place') or diag $stderr;
	return;
}

my $hot = "FROM euno_hot_leaves('h_id') WHERE first_key ~ '^\\(id\\)=\\(2[45]' AND last_key ~ '^\\(id\\)=\\(25' AND entries > 0 AND mode <> ''";

# As often as it takes on a machine that is busy.
my @causes = qw(splits restarts lock_waits conflicts_locked conflicts_changed conflicts_same_key conflicts_other_key conflicts_split
  delegated_writes);
my ($found, $missing) = ('', '');
for my $try (1 .. 20)
{
	fight(2);
	$found = $node->safe_psql('postgres', "SELECT count(*) > 0, (SELECT count(*) FROM euno_hot_leaves('h_id', 1)) $hot AND locked + changed > 0 AND conflicts_per_second > 0") if $found ne 't|1';
	$missing = $node->safe_psql('postgres', 'SELECT ' . join(' || ', map { "CASE WHEN $_ > 0 THEN '' ELSE ' $_' END" } @causes)
		  . " FROM euno_stat_indexes WHERE indexrelname = 'h_id'");
	last if $found eq 't|1' && $missing eq '';
}
is($found, 't|1', 'the hot leaf is shown, and no more leaves than asked for') or diag $node->safe_psql('postgres', "SELECT * FROM euno_hot_leaves('h_id')");
is($missing, '', 'restarts, waits and conflicts are counted by cause, and writes that others perform')
  or diag $node->safe_psql('postgres', 'SELECT * FROM euno_stat_indexes');

# Few processors have so many conflicts about different keys before a leaf is full;
# when to split one between its keys is shown by unit/heat.c and in simulation.
# By force it is shown here.  Such a leaf may be contended the next moment.
$node->safe_psql('postgres', 'SET euno.debug_modes = flapping; CREATE INDEX t_forced ON t USING euno (id)');
my $oid = $node->safe_psql('postgres', "SELECT 't_forced'::regclass::oid");
my ($parted, $told) = (0, 0);
for my $try (1 .. 200)
{
	$parted += $node->safe_psql('postgres', <<'SQL');
SET euno.debug_modes = flapping;
INSERT INTO t SELECT random() * 5000000, g FROM generate_series(1, 500) g;
SELECT parted_leaves FROM euno_stat_indexes WHERE indexrelname = 't_forced';
SQL
	$told = slurp_file($node->logfile) =~ /LOG:  leaves of euno index with OID $oid in database with OID [0-9]+ were split between their keys/;
	last if $told && $parted > 0;
}
cmp_ok($parted, '>', 0, 'leaves are split between their keys')
  or diag $node->safe_psql('postgres', 'SELECT * FROM euno_stat_indexes');
ok($told, 'the log says so');

# Who asks a contended leaf for a key that nobody has put there need not look at it.
# The launcher may come in between and make it calm.
my $hits = 0;
$node->safe_psql('postgres', 'CREATE TABLE f AS SELECT g * 2::bigint AS id FROM generate_series(1, 100) g');
for my $try (1 .. 100)
{
	($hits) = (split /\n/, $node->safe_psql('postgres', <<'SQL'))[-1];
SET client_min_messages = warning;
SET euno.debug_modes = contended;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DROP INDEX IF EXISTS f_id;
CREATE INDEX f_id ON f USING euno (id);
SELECT count(*) FROM generate_series(1, 100) g, LATERAL (SELECT 1 FROM f WHERE id = g * 2 + 1 LIMIT 1) x;
SELECT annex_skips FROM euno_stat_indexes WHERE indexrelname = 'f_id';
SQL
	last if $hits > 0;
}
cmp_ok($hits, '>', 0, 'lookups that a filter answers are counted');
check_indexes($node, 'postgres', 'with such leaves');
$node->safe_psql('postgres', 'DROP INDEX t_forced; DROP TABLE f');
$node->safe_psql('postgres', "SELECT * FROM euno_hot_leaves('t_n')");
is($node->safe_psql('postgres', "SELECT count(*) FROM euno_hot_leaves('t_art')"), '0', 'nobody writes to the radix tree');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM euno_hot_leaves('h_id')"), 'and forgotten when it is over');
ok($node->poll_query_until('postgres', "SELECT hot_leaves = 0 FROM euno_stat_worker"), 'no leaf is hot any more');
ok($node->poll_query_until('postgres', "SELECT sum(contended_leaves) = 0 FROM euno_stat_indexes"), 'and none contended')
  or diag $node->safe_psql('postgres', "SELECT indexrelname, contended_leaves FROM euno_stat_indexes");
# Keys are for those who may read them.
fight(2);
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE watcher LOGIN;
GRANT EXECUTE ON FUNCTION euno_hot_leaves(regclass, integer) TO watcher;
SQL
is($node->safe_psql('postgres', "SELECT count(first_key) + count(last_key) FROM euno_hot_leaves('h_id')", extra_params => [ '-U', 'watcher' ]),
	'0', 'without the right to read the table, no keys are shown');
$node->safe_psql('postgres', 'GRANT SELECT ON h TO watcher; ALTER TABLE h ENABLE ROW LEVEL SECURITY');
is($node->safe_psql('postgres', "SELECT count(first_key) + count(last_key) FROM euno_hot_leaves('h_id')", extra_params => [ '-U', 'watcher' ]),
	'0', 'nor where there are policies for rows');
$node->safe_psql('postgres', 'DROP TABLE h');

# A superuser who looks does not run the comparators of others with his own rights.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE owner LOGIN;
CREATE FUNCTION cmp_as(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('test.looking', true) = 'on' AND current_user <> 'owner' THEN
		RAISE EXCEPTION 'compared by %', current_user;
	END IF;
	RETURN btint4cmp($1, $2);
END $$;
CREATE OPERATOR CLASS compared_as FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cmp_as(int, int);
CREATE UNLOGGED TABLE o AS SELECT g * 100 AS id FROM generate_series(1, 5000) g;
SET euno.debug_modes = stalling;
CREATE INDEX o_id ON o USING euno (id compared_as);
ALTER TABLE o OWNER TO owner;
SQL
my $compared = script_file($node, 'compared', "INSERT INTO o SELECT 250000 + g % 4 * 10 FROM generate_series(1, 100) g;\n");
my $seen = 0;
for my $try (1 .. 20)
{
	fight(2, $compared);
	$seen = $node->safe_psql('postgres', "SET test.looking = on; SELECT count(first_key) FROM euno_hot_leaves('o_id')");
	last if $seen > 0;
}
cmp_ok($seen, '>', 0, 'a hot leaf is looked up with the rights of its owner');
$node->safe_psql('postgres', 'DROP TABLE o');

# Entries that scans remove leave underfull leaves.
$node->safe_psql('postgres', 'DROP INDEX t_art');
my $before = $node->safe_psql('postgres', "SELECT leaves FROM euno_stat_indexes WHERE indexrelname = 't_id'");
$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 1600 <> 0');
$node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM t WHERE id >= 0')
  for 1 .. 2;
ok($node->poll_query_until('postgres', "SELECT leaves_merged > 0 FROM euno_stat_worker"), 'the launcher merges leaves');
ok($node->poll_query_until('postgres', "SELECT leaves < $before / 4 FROM euno_stat_indexes WHERE indexrelname = 't_id'"),
	'as many as it can') or diag $node->safe_psql('postgres', "SELECT * FROM euno_stat_indexes WHERE indexrelname = 't_id'");
like(slurp_file($node->logfile), qr/LOG:  merged [0-9]+ leaves of euno index with OID/, 'and says so');
check_indexes($node, 'postgres', 'after merging');

# An error in a round.
my $pid = $node->safe_psql('postgres', 'SELECT pid FROM euno_stat_worker');
$node->append_conf('postgresql.conf', "euno.debug_stop = 'worker-step:error'");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT errors >= 2 FROM euno_stat_worker"), 'errors in actions are counted');
is($node->safe_psql('postgres', "SELECT last_error FROM euno_stat_worker"), 'stop point "worker-step" was reached', 'and shown');
is($node->safe_psql('postgres', "SELECT last_error IS NULL AND last_error_at IS NOT NULL FROM euno_stat_worker", extra_params => [ '-U', 'watcher' ]),
	't', 'not to everybody');
$node->append_conf('postgresql.conf', "euno.debug_stop = ''");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT rounds > 0 AND last_round > last_error_at + '2 s' FROM euno_stat_worker"), 'the launcher goes on, without errors');
is($node->safe_psql('postgres', "SELECT pid FROM euno_stat_worker"), $pid, 'and is the same process');
$node->safe_psql('postgres', 'SELECT euno_evict(indexrelid) FROM euno_stat_indexes');
ok($node->poll_query_until('postgres', 'SELECT used_bytes = 0 FROM euno_memory'), 'nothing that it held has been left behind');
$node->safe_psql('postgres', 'CREATE INDEX t_art ON t USING euno (id) WITH (structure = art, sync = rowex)');

# Of an index without a tree it is said what it would get.
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT string_agg(indexrelname || ' ' || structure || ' ' || state, ', ' ORDER BY indexrelname) FROM euno_stat_indexes"),
	't_art art/rowex absent, t_id bptree absent, t_n bptree absent', 'structures of absent trees');
$node->stop;
done_testing();
