# Memory is short: with euno.on_full = evict writes go on without the index that is
# missed least, and it comes back when there is room.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

# Copies take 64 kB of an empty index in each domain, more than is kept of so little.
my $node = euno_node('full', "euno.debug_copies = off\neuno.max_memory = 8MB\neuno.on_full = evict\neuno.naptime = 1s");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE used (a int, b text);
INSERT INTO used SELECT g, 'b' || g FROM generate_series(1, 30000) g;
CREATE INDEX used_a ON used USING euno (a);
CREATE TABLE idle (a int, b text);
INSERT INTO idle SELECT g, 'b' || g FROM generate_series(1, 30000) g;
CREATE INDEX idle_b ON idle USING euno (b, a);
CREATE TABLE keys (k text);
CREATE UNIQUE INDEX keys_k ON keys USING euno (k);
INSERT INTO keys SELECT 'k' || g FROM generate_series(1, 5000) g;
CREATE TABLE grow (a int, b text);
CREATE INDEX grow_b ON grow USING euno (b);
ANALYZE;
CREATE DATABASE other;
SQL

# Makes an index useful.
sub search
{
	my ($table, $column, $times) = @_;
	my $key = $column eq 'a' ? 'g' : 'g::text';

	$node->safe_psql('postgres',
		"SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count((SELECT 1 FROM $table WHERE $column = $key LIMIT 1)) FROM generate_series(1, $times) g");
	return;
}

# A session builds an index of t until it waits for lock 1; inserts into t, which take
# all memory, have it given up.  What the builder says then.
sub given_up
{
	my ($index, %settings) = @_;
	my $holder = $node->background_psql('postgres');

	# Of a worker, too, if one is to build it.
	for_all($node, %settings);
	my $builder = $node->background_psql('postgres', on_error_stop => 0);

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$builder->query_until(qr/begun/, "\\set VERBOSITY verbose\n\\echo begun\nSELECT euno_rebuild('$index');\n");
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}), "$index is built");
	for_all($node, map { $_ => undef } keys %settings);
	$node->safe_psql('postgres', 'INSERT INTO t SELECT 100000 + g FROM generate_series(1, 400000) g');
	is(state_of($node, $index), 'retiring', "$index is given up");
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$builder->query('SELECT 1');
	my $said = $builder->{stderr};
	$_->quit for $holder, $builder;
	return $said;
}

# A prepared plan with the index that is going to be evicted, and an open cursor.
my $session = $node->background_psql('postgres');
$session->query_safe(
	'SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM idle WHERE b > $1');
is($session->query_safe("EXECUTE q('')"), '30000', 'a prepared query');
search('used', 'a', 20000);

# Room is made by the tree that nobody searches, not by those in use.
my ($ret, $stdout, $stderr);
for my $round (1 .. 40)
{
	search('grow', 'b', 4000);
	($ret, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nINSERT INTO grow SELECT g, md5(g || '/' || random()) FROM generate_series(1, 4000) g");
	last if $ret != 0 || $stderr ne '';
}
is($ret, 0, 'the insert that found no room goes on');
like($stderr, qr/WARNING:  01000: evicted euno index "idle_b": "euno.max_memory" is used up/, 'and says at whose cost');
is(() = $stderr =~ /WARNING/g, 1, 'once');
is(state_of($node, 'idle_b'), 'absent', 'the idle index is gone');
is($node->safe_psql('postgres', "SELECT absent_reason, retry_at > stats_since FROM euno_stat_indexes WHERE indexrelname = 'idle_b'"),
	'memory|t', 'why, and until when at least');
is(state_of($node, 'used_a'), 'ready', 'the one in use is not');
is($session->query_safe("EXECUTE q('')"), '30000', 'the prepared query is planned anew');
unlike($session->query_safe("EXPLAIN EXECUTE q('')"), qr/idle_b/, 'without the index');
is(state_of($node, 'idle_b'), 'absent', 'and does not build it');
same_answers($node, 'postgres', 'SELECT count(*), min(b), max(b) FROM grow WHERE b > $$$$', 'the index that grew');
is($node->safe_psql('postgres', "SELECT euno_index_check('grow_b', true), euno_index_check('used_a', true)"),
	'|', 'both are whole');

# It grows on, and goes in the end; the table's writers do not notice.
for my $round (1 .. 60)
{
	($ret, $stdout, $stderr) = $node->psql('postgres',
		"INSERT INTO grow SELECT g, md5(g || '/' || random()) FROM generate_series(1, 4000) g");
	last if $ret != 0 || state_of($node, 'grow_b') eq 'absent';
}
is($ret, 0, 'inserts go on');
is(state_of($node, 'grow_b'), 'absent', 'without the index that grew');
is(state_of($node, 'keys_k'), 'ready', 'a unique index is never evicted');
is(by_index($node, 'postgres', "SELECT count(*) FROM grow WHERE b < '5'"),
	by_seqscan($node, 'postgres', "SELECT count(*) FROM grow WHERE b < '5'"), 'queries are right');

# It wants to come back, but does not fit beside another unique index: no build is
# begun, nothing is evicted for it.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE more AS SELECT 'm' || g AS k FROM generate_series(1, 40000) g;
CREATE UNIQUE INDEX more_k ON more USING euno (k);
SQL
my $log_start = -s $node->logfile;
for my $round (1 .. 4)
{
	$node->safe_psql('postgres', "SELECT count(*) FROM grow WHERE b < '5'");
	sleep 1;
}
unlike(slurp_file($node->logfile, $log_start), qr/grow_b|used_a/, 'what does not fit is left alone');
$node->safe_psql('postgres', 'DROP TABLE more');

# A unique index takes all room there is, then its inserts fail.
for my $round (1 .. 60)
{
	($ret, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nINSERT INTO keys SELECT 'r' || $round || repeat('x', 50) || g FROM generate_series(1, 3000) g");
	last if $ret != 0 || $stderr =~ /ERROR/;
}
like($stderr, qr/ERROR:  53200: out of memory for euno index "keys_k"/, 'a unique index that does not fit is an error');
is(state_of($node, 'used_a'), 'absent', 'after all others have gone');
is($node->safe_psql('postgres', "SELECT euno_index_check('keys_k', true)"),
	'', 'and is as it was');

# There is room again.
$node->safe_psql('postgres', 'TRUNCATE grow, keys');
ok( $node->poll_query_until('postgres',
		"SELECT count(*) FROM idle WHERE b = 'b7' UNION ALL SELECT count(*) FROM used WHERE a = 7; "
		  . "SELECT bool_and(state = 'ready') FROM euno_stat_indexes WHERE indexrelname IN ('idle_b', 'used_a')",
		"1\n1\nt"), 'indexes come back when there is room');
same_answers($node, 'postgres', 'SELECT a, b FROM idle WHERE b > $$b2999$$ ORDER BY b, a', 'rebuilt');
check_indexes($node, 'postgres', 'rebuilt');

# In another database: its plans are invalidated, and nobody here learns its name.
$node->safe_psql('other',
	"CREATE EXTENSION euno_index; CREATE TABLE secret (a text); INSERT INTO secret SELECT 'secret' || g FROM generate_series(1, 20000) g; CREATE INDEX secret_a ON secret USING euno (a)");
my $other = $node->background_psql('other');
$other->query_safe(
	'SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM secret WHERE a > $1');
is($other->query_safe("EXECUTE q('')"), '20000', 'a prepared query in another database');
search('used', 'a', 20000);
search('idle', 'b', 20000);
search('grow', 'b', 20000);
my $all = '';
for my $round (1 .. 40)
{
	($ret, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nINSERT INTO grow SELECT g, md5(g || '/' || random()) FROM generate_series(1, 4000) g");
	$all .= $stderr;
	last if $ret != 0 || $stderr ne '';
}
like($all, qr/WARNING:  01000: evicted a euno index of another database/, 'an index of another database goes');
unlike($all, qr/secret/, 'without telling its name');
is($node->safe_psql('other', 'SELECT state FROM euno_stat_indexes'), 'absent', 'it is gone there');
is($other->query_safe("EXECUTE q('')"), '20000', 'the prepared query there is planned anew');
is($node->safe_psql('other', 'SELECT state FROM euno_stat_indexes'), 'absent', 'without the index');
$other->quit;
$session->quit;

# Many writers run out at once.
$node->safe_psql('postgres', 'TRUNCATE grow');
for my $t (1 .. 6)
{
	$node->safe_psql('postgres', "CREATE TABLE w$t (a int, b text); CREATE INDEX w${t}_b ON w$t USING euno (b)");
}
my $script = script_file($node, 'write', <<'SQL');
\set t 1 + :client_id % 6
INSERT INTO w:t SELECT g, md5((random() * 100000)::int::text) FROM generate_series(1, 200) g;
SELECT count(*) FROM w:t WHERE b = md5('77');
DELETE FROM w:t WHERE ctid IN (SELECT ctid FROM w:t LIMIT 20);
SQL
my ($out, $err) = run_command([ 'pgbench', '-n', '-c', '12', '-j', '2', '-t', '150', '-f', $script, $node->connstr('postgres') ]);
unlike($err, qr/ERROR|aborted/, 'no write fails');
like($err, qr/evicted euno index/, 'trees were evicted meanwhile');
# First those that are there, or soon come back; then there is room for one of the others.
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM euno_stat_indexes WHERE relname LIKE 'w_' AND state = 'ready'"), 'but not all, or not for long');
my @there = split /\n/, $node->safe_psql('postgres', "SELECT substr(relname, 2) FROM euno_stat_indexes WHERE relname LIKE 'w_' AND state = 'ready'");
my %is_there = map { $_ => 1 } @there;
for my $t (@there, grep { !$is_there{$_} } 1 .. 6)
{
	$node->safe_psql('postgres', "SELECT euno_evict(indexrelid) FROM euno_stat_indexes WHERE relname LIKE 'w_' AND relname <> 'w$t' AND state = 'ready'")
	  unless $is_there{$t};
	is($node->safe_psql('postgres', "SELECT euno_index_check('w${t}_b', true)"), '', "index of table $t");
	is( by_index($node, 'postgres', "SELECT count(*), min(b), max(b) FROM w$t WHERE b > ''"),
		by_seqscan($node, 'postgres', "SELECT count(*), min(b), max(b) FROM w$t WHERE b > ''"), "answers of table $t");
}

# A unique index that is absent is needed by the next insert: others make room.
$node->safe_psql('postgres', 'DROP TABLE w1, w2, w3, w4, w5, w6; TRUNCATE grow, keys');
for my $structure ('bptree', 'art', 'compared')
{
	my $keys = $structure eq 'compared' ? 'USING euno ((k COLLATE "und-x-icu"))' : "USING euno ((k::bigint)) WITH (structure = $structure)";

	# Text in such a collation has no byte encoding.
	$node->safe_psql('postgres',
		"TRUNCATE keys; DROP INDEX keys_k; CREATE UNIQUE INDEX keys_k ON keys $keys; INSERT INTO keys SELECT g * 1000003::bigint FROM generate_series(1, 40000) g; SELECT euno_evict('keys_k')");
	for my $round (1 .. 60)
	{
		($ret, $stdout, $stderr) = $node->psql('postgres',
			"SET euno.on_full = error; INSERT INTO grow SELECT g, md5(g || '/' || random()) FROM generate_series(1, 3000) g");
		last if $stderr ne '';
	}
	like($stderr, qr/out of memory for euno index "grow_b"/, "$structure: there is no room");
	($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO keys VALUES (7)');
	is($ret, 0, "$structure: an insert builds the unique index") or diag $stderr;
	like($stderr, qr/WARNING:  evicted euno index "(grow_b|idle_b|used_a)"/, "$structure: at others' cost");
	is(state_of($node, 'keys_k'), 'ready', "$structure: it is there");
	($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO keys VALUES (7)');
	like($stderr, qr/duplicate key/, "$structure: and is unique");
	is($node->safe_psql('postgres', "SELECT euno_index_check('keys_k', true)"), '', "$structure: and whole");
	$node->safe_psql('postgres', 'TRUNCATE grow');
}

# A comparison that builds another unique index while the first is loaded: each makes
# room in its own name, the first one also afterwards.  Many small indexes are in the
# way, so that room has to be made again and again.
$node->safe_psql('postgres', <<'SQL');
DROP TABLE keys, grow, idle, used;
CREATE SEQUENCE ncalls;
CREATE TABLE inner_keys AS SELECT g AS k, md5(g::text) AS b FROM generate_series(1, 10000) g;
CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF nextval('public.ncalls') = current_setting('test.nest')::int THEN
		CREATE UNIQUE INDEX inner_k ON public.inner_keys USING euno (b);
	END IF;
	RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END;
END $$;
CREATE OPERATOR CLASS nesting FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 cmp(int, int);
CREATE TABLE outer_keys AS SELECT g * 7919 % 12000 AS k, repeat('x', 150) AS b FROM generate_series(1, 12000) g;
CREATE FUNCTION fill_with_small_indexes() RETURNS int LANGUAGE plpgsql SET euno.on_full = error AS $$
BEGIN
	FOR i IN 1..60 LOOP
		BEGIN
			EXECUTE format('CREATE TABLE s%s AS SELECT md5(g::text) AS b FROM generate_series(1, 4000) g; CREATE INDEX ON s%s USING euno (b)', i, i);
		EXCEPTION WHEN out_of_memory THEN
			RETURN i;
		END;
	END LOOP;
END $$;
ALTER DATABASE postgres SET maintenance_work_mem = '1MB';
ALTER DATABASE postgres SET max_parallel_maintenance_workers = 0;
SQL
my $create = 'INDEX outer_k ON outer_keys USING euno (k nesting, b)';
$node->safe_psql('postgres', "SET test.nest = 0; CREATE $create; DROP INDEX outer_k");
my $calls = $node->safe_psql('postgres', 'SELECT last_value FROM ncalls');
my $n = $node->safe_psql('postgres', 'SELECT fill_with_small_indexes()');
cmp_ok($n, '>', 20, 'small indexes take all room');
$node->safe_psql('postgres', 'ALTER SEQUENCE ncalls RESTART');
($ret, $stdout, $stderr) = $node->psql('postgres', sprintf "SET test.nest = %d; CREATE UNIQUE $create", $calls - 3000);
is($ret, 0, 'a unique index is built within the building of another') or diag $stderr;
cmp_ok(scalar(() = $stderr =~ /WARNING:  evicted euno index "s/g), '>', 5, 'at the cost of several');
is(state_of($node, 'outer_k') . ' ' . state_of($node, 'inner_k'), 'ready ready', 'both are there');
is($node->safe_psql('postgres', "SET test.nest = 0; SELECT euno_index_check('outer_k', true), euno_index_check('inner_k', true)"),
	'|', 'and whole');

# The same while the finished tree is looked at for duplicates: what would be given up
# could not be freed before that look ends, so nothing is.  Half of the comparisons there
# are between the looks at one leaf and the next.
for my $later (map { 7 * $_ } 1 .. 12)
{
	$node->safe_psql('postgres', 'ALTER SEQUENCE ncalls RESTART; DROP INDEX IF EXISTS outer_k, inner_k; DROP TABLE IF EXISTS ' . join(', ', map { "s$_" } 1 .. 60));
	$node->safe_psql('postgres', 'SELECT fill_with_small_indexes()');
	($ret, $stdout, $stderr) = $node->psql('postgres', sprintf "SET test.nest = %d; CREATE UNIQUE $create", $calls + 3000 + $later);
	last if $stderr =~ /out of memory for euno index "inner_k"/;
}
like($stderr, qr/out of memory for euno index "inner_k"/, 'within a look at a tree no room is made');
cmp_ok(scalar(() = $stderr =~ /WARNING:  evicted/g), '<', 20, 'and nothing is given up in vain');

# As many empty indexes as there is room for take what is kept for such, too.  A new one
# takes the place of another.
$node->safe_psql('postgres', 'DROP TABLE outer_keys, inner_keys; DROP TABLE IF EXISTS ' . join(', ', map { "s$_" } 1 .. 60));
my $empty = <<'SQL';
DO $$ BEGIN FOR i IN 1..200 LOOP
	EXECUTE format('CREATE TABLE e%s (a int); INSERT INTO e%s VALUES (1); CREATE INDEX e%s_a ON e%s USING euno (a)', i, i, i, i);
END LOOP; END $$
SQL
($ret, $stdout, $stderr) = $node->psql('postgres', "SET euno.on_full = error; $empty");
like($stderr, qr/out of memory for euno index "e\d+_a"/, 'there is not room for all');
($ret, $stdout, $stderr) = $node->psql('postgres', $empty);
is($ret, 0, 'each new one has room') or diag $stderr;
cmp_ok(scalar(() = $stderr =~ /WARNING:  evicted euno index "e/g), '>', 50, 'at the cost of others');
$node->safe_psql('postgres', 'TRUNCATE e1; REINDEX INDEX e2_a; INSERT INTO e1 SELECT generate_series(1, 100)');
is($node->safe_psql('postgres', "SELECT euno_index_check('e1_a', true), euno_index_check('e2_a', true)"), '|', 'TRUNCATE and REINDEX, too');
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal|XX00/, 'nothing broke');

$node->stop;
# An index of a temporary table, which nobody would build again, is not given up.  (The
# worker that builds another one below waits for locks as long as deadlock_timeout says.)
$node = euno_node('temporary', "deadlock_timeout = 60s\neuno.debug_copies = off\neuno.max_memory = 8MB\neuno.on_full = evict\neuno.naptime = 1h\neuno.snapshot_on_shutdown = on");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION euno_index');
my ($code, $state, $said) = $node->psql('postgres', <<'SQL');
CREATE TEMP TABLE own AS SELECT md5(g::text) AS b FROM generate_series(1, 60000) g;
CREATE INDEX own_b ON own USING euno (b);
CREATE TABLE idle AS SELECT md5(g::text) AS b FROM generate_series(1, 10000) g;
CREATE INDEX idle_b ON idle USING euno (b);
CREATE TABLE grows (b text);
CREATE UNIQUE INDEX grows_b ON grows USING euno (b);
INSERT INTO grows SELECT md5(g::text) FROM generate_series(1, 60000) g;
SELECT state FROM euno_stat_indexes WHERE indexrelname = 'own_b';
SQL
like($said, qr/WARNING:  evicted euno index "idle_b"/, 'an index is given up');
is($state, 'ready', 'but not the temporary one');

# Nor is a unique index, which writes depend on, when it comes from a file.
$node->restart;
$node->safe_psql('postgres', 'CREATE TABLE more AS SELECT g::text AS b FROM generate_series(1, 1000) g; CREATE INDEX more_b ON more USING euno (b)');
search('more', 'b', 4000);
($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO more SELECT md5(g::text) FROM generate_series(1, 90000) g');
is($ret, 0, 'room is made after a restart');
like($stderr, qr/WARNING:  evicted euno index "more_b"/, 'by the index that is searched');
is(state_of($node, 'grows_b'), 'ready', 'not by the unique one that is not');
$node->safe_psql('postgres', 'DROP TABLE more');

# An index that is given up while it is built, by those who write to its table: a
# function of its expression that needs it must not wait for the builder, itself.
$node->safe_psql('postgres', <<'SQL');
DROP TABLE grows, idle;
CREATE TABLE filler (a text);
CREATE UNIQUE INDEX filler_a ON filler USING euno (a);
INSERT INTO filler SELECT md5(g::text) FROM generate_series(1, 90000) g;
CREATE TABLE t (a int) WITH (parallel_workers = 0);
INSERT INTO t SELECT generate_series(1, 3000);
CREATE FUNCTION selfish(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF a = 1000 AND current_setting('my.selfish', true) = 'on' THEN
		PERFORM pg_advisory_lock_shared(1);
		PERFORM public.euno_rebuild('public.t_selfish');
	END IF;
	RETURN a;
END $$;
CREATE INDEX t_selfish ON t USING euno (selfish(a));
SELECT euno_evict('t_selfish');
SQL
like(given_up('t_selfish', 'my.selfish' => 'on', statement_timeout => '60s'),
	qr/cannot use euno index "t_selfish" while this session is building it/, 'its builder does not wait for itself');

# One that waits for something else then says that there is no memory.
$node->safe_psql('postgres', <<'SQL');
DROP TABLE t;
CREATE TABLE t (a int) WITH (parallel_workers = 0);
CREATE INDEX t_a ON t USING euno (a);
SELECT euno_evict('t_a');
SQL
like(given_up('t_a', 'euno.debug_stop' => 'build-loaded:1'), qr/ERROR:  53200: out of memory for euno index "t_a"/,
	'its builder says why');

# What removes entries is no search: of indexes that nobody searches rows are
# updated, so that inserts remove old versions, and VACUUM the rest.
$node->safe_psql('postgres', <<'SQL');
CREATE DATABASE upkeep;
\c upkeep
CREATE EXTENSION euno_index;
CREATE TABLE churn (a int, b int, c int) WITH (autovacuum_enabled = off);
CREATE INDEX churn_a ON churn USING euno (a);
CREATE INDEX churn_b ON churn USING euno (b) WITH (structure = art);
CREATE INDEX churn_c ON churn USING euno (c);
INSERT INTO churn SELECT g, g, g FROM generate_series(1, 1000) g;
SQL
$node->safe_psql('upkeep', join(';', ('UPDATE churn SET c = c + 1') x 30, 'DELETE FROM churn WHERE a % 2 = 0', 'VACUUM churn')
	=~ s/;/;\n/gr);
is($node->safe_psql('upkeep', "SELECT indexrelname, removals > 500, descents - inserts < removals / 2 FROM euno_stat_indexes WHERE relname = 'churn' AND indexrelname <> 'churn_c' ORDER BY 1"),
	"churn_a|t|t\nchurn_b|t|t", 'removals do not count as searches');

# Nor do those of a VACUUM that fails, of a unique index's inserts, which look for their
# key first, or the inserts that a build makes up for.
$node->safe_psql('upkeep', <<'SQL');
CREATE TABLE failed (a int) WITH (autovacuum_enabled = off);
CREATE INDEX failed_a ON failed USING euno (a) WITH (structure = art);
INSERT INTO failed SELECT generate_series(1, 20000);
DELETE FROM failed;
CREATE TABLE again (a int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX again_a ON again USING euno (a);
INSERT INTO again SELECT generate_series(1, 2000);
DELETE FROM again;
INSERT INTO again SELECT generate_series(1, 2000);
CREATE TABLE built (a int) WITH (autovacuum_enabled = off);
CREATE INDEX built_a ON built USING euno (a) WITH (structure = art);
CREATE INDEX built_b ON built USING euno (a) WITH (structure = bptree);
SELECT euno_evict('built_a'), euno_evict('built_b');
SQL
($ret, $stdout, $stderr) = $node->psql('upkeep', "SET euno.debug_stop = 'bulkdelete-removed:error';\nVACUUM failed");
like($stderr, qr/"bulkdelete-removed" was reached/, 'VACUUM fails');
my $holder = $node->background_psql('upkeep');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my @builders = map { $node->background_psql('upkeep') } 'a', 'b';
$builders[$_]->query_until(qr/begun/, "SET euno.debug_stop = 'build-loaded:1';\n\\echo begun\nSELECT euno_rebuild('built_" . ('a', 'b')[$_] . "');\n") for 0, 1;
ok($node->poll_query_until('upkeep', q{SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}), 'two indexes are built');
$node->safe_psql('upkeep', 'INSERT INTO built SELECT generate_series(1, 1000)');
$_->quit for $holder, @builders;
is($node->safe_psql('upkeep', <<'SQL'), "again_a|2000|t\nbuilt_a|0|t\nbuilt_b|0|t\nfailed_a|256|t", 'nor do removals by others, nor merges');
SELECT indexrelname, removals, descents - inserts * CASE relname WHEN 'again' THEN 2 ELSE 1 END < 200
FROM euno_stat_indexes WHERE relname IN ('failed', 'again', 'built') ORDER BY 1
SQL
$node->stop;

done_testing();
