# Comparison functions that fail, take long, run queries or are canceled.  They
# run in the middle of a tree operation; nothing may stay locked or be half done
# when they leave it by an error.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run;
use Test::More;
use EunoTest;

my $node = euno_node('comparators', '');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;

-- An operator class whose comparison fails every "test.fail"th call, and runs a
-- query on another index of the same kind, within a subtransaction, when
-- "test.nest" says so.
CREATE SEQUENCE ncalls;
CREATE TABLE calls (a int);
INSERT INTO calls SELECT generate_series(1, 300);
CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	fail int := nullif(current_setting('test.fail', true), '');
	n int;
BEGIN
	IF fail IS NOT NULL THEN
		n := nextval('public.ncalls');
	END IF;
	IF n % fail = 0 THEN
		RAISE EXCEPTION 'comparison % fails', n USING ERRCODE = 'EU001';
	END IF;
	IF current_setting('test.nest', true) = 'on' THEN
		BEGIN
			PERFORM set_config('test.nest', 'off', true);
			IF NOT EXISTS (SELECT FROM calls WHERE a = 77) THEN
				RAISE EXCEPTION 'the nested query is wrong';
			END IF;
			RAISE EXCEPTION 'roll this back' USING ERRCODE = 'EU002';
		EXCEPTION WHEN SQLSTATE 'EU002' THEN
			NULL;
		END;
	END IF;
	RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END;
END $$;
CREATE OPERATOR CLASS failing FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 cmp(int, int);

-- One whose "<" the sort does not know: builds insert, and so call it.
CREATE FUNCTION lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 < $2';
CREATE OPERATOR <<< (FUNCTION = lt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS unsorted FOR TYPE int USING euno AS
	OPERATOR 1 <<<, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 cmp(int, int);
CREATE INDEX calls_a ON calls USING euno (a failing);

CREATE TABLE t (a int, b text);
CREATE INDEX t_a ON t USING euno (a failing);
CREATE INDEX t_b ON t USING euno (b);

-- Runs a statement until it has succeeded; returns how often it failed.
CREATE FUNCTION insist(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	failures int := 0;
BEGIN
	WHILE failures < 1000 LOOP
		BEGIN
			EXECUTE statement;
			RETURN failures;
		EXCEPTION WHEN SQLSTATE 'EU001' THEN
			failures := failures + 1;
		END;
	END LOOP;
	RAISE EXCEPTION 'it always fails: %', statement;
END $$;
SQL

sub answers
{
	my ($name) = @_;

	same_answers($node, 'postgres', 'SELECT a FROM t WHERE a BETWEEN 100 AND 250 ORDER BY a USING <', $name);
	check_indexes($node, 'postgres', $name);
	return;
}

$node->safe_psql('postgres', "INSERT INTO t SELECT g * 7919 % 1000, 'b' || g FROM generate_series(1, 1000) g");
answers('no failures');

# Inserts fail in the middle, again and again.
my $failures = $node->safe_psql('postgres',
	"SET test.fail = 53; SELECT sum(insist(format('INSERT INTO t VALUES (%s, %L)', g * 31 % 1500, 'i' || g))) FROM generate_series(1, 400) g");
cmp_ok($failures, '>', 20, 'inserts fail and are repeated');
is($node->safe_psql('postgres', "SELECT count(*) FROM t WHERE b LIKE 'i%'"), '400', 'each row is there once');
answers('failing inserts');

# Scans, updates, builds, VACUUM's merges.
$failures = $node->safe_psql('postgres', <<'SQL');
SET test.fail = 41;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT sum(insist(format('SELECT count(*) FROM t WHERE a > %s AND a < %s', g, g + 20))) FROM generate_series(1, 100) g;
SQL
cmp_ok($failures, '>', 10, 'scans fail and are repeated');
$node->safe_psql('postgres', "CREATE INDEX t_c ON t USING euno (a unsorted); SELECT euno_evict('t_c'), euno_evict('t_a')");
for_all($node, 'test.fail' => 5000);
my ($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT euno_rebuild('t_c')");
for_all($node, 'test.fail' => undef);
like($stderr, qr/comparison \d+ fails/, 'a rebuild fails');
is(state_of($node, 't_c'), 'absent', 'and leaves the index absent');
$node->safe_psql('postgres', "SELECT euno_rebuild('t_c'), euno_rebuild('t_a')");
check_indexes($node, 'postgres', 'after a failed rebuild');
$node->safe_psql('postgres', 'DROP INDEX t_c');
$node->safe_psql('postgres', 'DELETE FROM t WHERE a % 4 > 0');
($ret, $stdout, $stderr) = $node->psql('postgres', "SET test.fail = 11; VACUUM (INDEX_CLEANUP on) t");
note "VACUUM: $stderr";
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
answers('after VACUUM');

# Comparisons that use another index, and abort a subtransaction in it.
$node->safe_psql('postgres',
	"SET test.nest = 'on'; SET enable_seqscan = off; INSERT INTO t SELECT g * 37 % 1000, 'n' || g FROM generate_series(1, 50) g");
is($node->safe_psql('postgres', "SET test.nest = 'on'; SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM t WHERE a = 37"),
	by_seqscan($node, 'postgres', 'SELECT count(*) FROM t WHERE a = 37'), 'a scan whose comparisons use an index');
answers('nested queries');

# Cancels and terminations at any place.
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM pg_sleep(coalesce(nullif(current_setting('test.sleep', true), ''), '0')::float);
	RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END;
END $$;
SQL
for my $timeout (3, 7, 12, 18, 25)
{
	($ret, $stdout, $stderr) = $node->psql('postgres',
		"SET test.sleep = 0.001; SET statement_timeout = $timeout; INSERT INTO t VALUES (111, 'timeout')");
	like($stderr, qr/statement timeout/, "an insert is canceled after $timeout ms") if $timeout < 10;
}
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET test.sleep = 30');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->{stdin} .= "INSERT INTO t VALUES (222, 'terminated');\n";
$session->{run}->pump_nb;
$node->poll_query_until('postgres', "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $pid");
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 180000)"), 't', 'a backend is terminated in a comparison');
$session->{run}->finish;
$node->safe_psql('postgres', "INSERT INTO t VALUES (223, 'after')");
answers('after cancels and a termination');

# Many at once.
$node->safe_psql('postgres', 'DELETE FROM t');
my $script = script_file($node, 'many', <<'SQL');
\set k random(1, 100)
SELECT insist(format('INSERT INTO t VALUES (%s, %L)', :k, 'many'));
SELECT insist(format('SELECT count(*) FROM t WHERE a = %s', :k));
SQL
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF random() < 0.01 THEN RAISE EXCEPTION 'fails' USING ERRCODE = 'EU001'; END IF;
	RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END;
END $$;
ALTER DATABASE postgres SET enable_seqscan = off;
SQL
command_ok([ 'pgbench', '-n', '-c', '4', '-t', '150', '-f', $script, $node->connstr('postgres') ],
	'sessions whose comparisons fail, side by side');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET enable_seqscan');
$node->safe_psql('postgres',
	'CREATE OR REPLACE FUNCTION cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END $$');
is($node->safe_psql('postgres', "SELECT count(*) FROM t WHERE b = 'many'"), '600', 'each row is there once');
same_answers($node, 'postgres', 'SELECT a, count(*) FROM t WHERE a > 50 GROUP BY a ORDER BY a', 'side by side');
check_indexes($node, 'postgres', 'side by side');

# One that has put entries where they do not belong.  A scan that would never end
# finds out; the tree goes, cached plans with it, and is built again.
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->reload;
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION lie(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('test.lie', true) = 'on' THEN
		RETURN hashint4($1) % 1000 - hashint4($2) % 1000;
	END IF;
	RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END;
END $$;
CREATE OPERATOR CLASS lying FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 lie(int, int);
CREATE TABLE lies (a int);
INSERT INTO lies SELECT generate_series(1, 5000);
CREATE INDEX lies_a ON lies USING euno (a lying);
VACUUM ANALYZE lies;
SET test.lie = 'on';
INSERT INTO lies SELECT generate_series(1, 3000);
SQL
($ret, $stdout, $stderr) = $node->psql('postgres', <<'SQL', on_error_stop => 0);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
SET statement_timeout = '60s';
PREPARE q AS SELECT count(*) FROM lies WHERE a > 100;
EXPLAIN (COSTS OFF) EXECUTE q;
\echo VERBOSITY
\set VERBOSITY verbose
EXECUTE q;
EXPLAIN (COSTS OFF) EXECUTE q;
SELECT state, absent_reason, retry_at - now() BETWEEN '1 s' AND '1 day' FROM euno_stat_indexes WHERE indexrelname = 'lies_a';
EXECUTE q;
SELECT euno_rebuild('lies_a');
EXPLAIN (COSTS OFF) EXECUTE q;
EXECUTE q;
SQL
like($stderr, qr/XX002: euno index "lies_a" was found to be inconsistent in memory/, 'a scan that would go round in circles');
like($stdout, qr/Index Only.*VERBOSITY.*Seq Scan.*\nabsent\|failed\|t\n7800\n.*Index Only.*\n7800$/s,
	'the next one does without the index, which is built again, but not at once if not asked for');
check_indexes($node, 'postgres', 'after a rebuild');

# One that reads a table by an index that is evicted meanwhile: that waits for the
# operation that the comparison is part of, so the comparison must not wait for it.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE ranks (a int);
CREATE INDEX ranks_a ON ranks USING euno (a);
INSERT INTO ranks SELECT generate_series(1, 20000);
VACUUM ANALYZE ranks;
CREATE FUNCTION ranked(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	r record;
BEGIN
	IF current_setting('test.rank', true) = 'on' THEN
		FOR r IN SELECT a FROM ranks ORDER BY a LOOP
			IF r.a = 1 THEN
				PERFORM pg_advisory_lock_shared(1);
				PERFORM pg_advisory_unlock_shared(1);
			END IF;
		END LOOP;
	ELSIF current_setting('test.rank', true) = 'insert' THEN
		PERFORM set_config('test.rank', 'off', false);
		EXECUTE 'SELECT insert_number(' || -$1 || ')';
	ELSIF current_setting('test.rank', true) = 'evict' THEN
		PERFORM set_config('test.rank', 'off', false);
		PERFORM euno_evict('ranks_a');
	END IF;
	RETURN btint4cmp($1, $2);
END $$;
CREATE TABLE numbers (a int);
CREATE UNIQUE INDEX numbers_a ON numbers USING euno (a);
INSERT INTO numbers SELECT generate_series(1, 100);
CREATE FUNCTION insert_number(int) RETURNS void LANGUAGE sql AS 'INSERT INTO numbers VALUES ($1)';
CREATE OPERATOR CLASS ranked FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 ranked(int, int);
CREATE TABLE by_rank (a int);
INSERT INTO by_rank SELECT generate_series(1, 100);
CREATE INDEX by_rank_a ON by_rank USING euno (a ranked);
SQL
my $waiting = q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted};

# A session that holds an advisory lock, and one whose comparison waits for it.
sub begin_comparison
{
	my ($holder, $session) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$session->query_safe(q{SET enable_seqscan = off; SET test.rank = 'on'; SET statement_timeout = '60s'});
	$session->query_until(qr/begun/, "\\echo begun\nSELECT count(*) FROM by_rank WHERE a = 5;\n");
	ok($node->poll_query_until('postgres', $waiting), 'a comparison waits');
	return ($holder, $session);
}

my ($control, $compares) = begin_comparison();
my $evicts = $node->background_psql('postgres', on_error_stop => 0);
$evicts->query_until(qr/begun/, "\\echo begun\nSELECT euno_evict('ranks_a');\n");
ok($node->poll_query_until('postgres', q{SELECT state = 'retiring' FROM euno_stat_indexes WHERE indexrelname = 'ranks_a'}),
	'the index that it reads is given up');
$control->query_safe('SELECT pg_advisory_unlock(1)');
ok($node->poll_query_until('postgres', q{SELECT state = 'absent' FROM euno_stat_indexes WHERE indexrelname = 'ranks_a'}), 'and goes');
$_->quit for $control, $compares, $evicts;
my $given_up = qr/ERROR:  cannot use euno index "(\w+)" while it is being given up/;
like(slurp_file($node->logfile), $given_up, 'the comparison fails');

# Where nobody looks at it any more, there is nothing to wait for.
my $log_start = -s $node->logfile;
($control, $compares) = begin_comparison();
($ret, $stdout, $stderr) = $node->psql('postgres', q{SET statement_timeout = '1s'; SELECT euno_evict('numbers_a')});
like($stderr, qr/statement timeout/, 'who gives an index up does not wait for its memory for ever');
($ret, $stdout, $stderr) = $node->psql('postgres', q{SET statement_timeout = '60s'; SET lock_timeout = '300ms'; INSERT INTO numbers VALUES (102)});
like($stderr, qr/lock timeout/, 'nor does who needs it, for longer than lock_timeout');
$control->query_safe('SELECT pg_advisory_unlock(1)');
$compares->query_safe('SELECT 1');
is(state_of($node, 'numbers_a'), 'retiring', 'it is on its way out');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SET test.rank = 'insert'; SELECT count(*) FROM by_rank WHERE a = 5}), '1',
	'a comparison that needs it builds it');
is($node->safe_psql('postgres', q{SELECT state, entries FROM euno_stat_indexes WHERE indexrelname = 'numbers_a'}), 'ready|101', 'with all rows');
unlike(slurp_file($node->logfile, $log_start), $given_up, 'nothing is refused');
$_->quit for $control, $compares;

# A build that fails while a comparison waits for it, behind somebody who is going to
# build in its place, and so waits for the last look at what there is.
$log_start = -s $node->logfile;
$control = $node->background_psql('postgres');
my ($fails, $builds);
($fails, $builds, $compares) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
$control->query_safe(q{SELECT euno_evict('numbers_a'), pg_advisory_lock(1)});
$fails->query_safe(q{SET euno.debug_stop = 'build-page:1'});
$fails->query_until(qr/begun/, "\\echo begun\nINSERT INTO numbers VALUES (201);\n");
ok($node->poll_query_until('postgres', $waiting), 'somebody builds');
my $in_line = q{SELECT count(*) = %d FROM pg_locks WHERE locktype = 'object' AND NOT granted};
$builds->query_until(qr/begun/, "\\echo begun\nINSERT INTO numbers VALUES (202);\n");
ok($node->poll_query_until('postgres', sprintf($in_line, 1)), 'somebody else waits');
$compares->query_safe(q{SET enable_seqscan = off; SET test.rank = 'insert'});
$compares->query_until(qr/begun/, "\\echo begun\nSELECT count(*) FROM by_rank WHERE a = 6;\n");
ok($node->poll_query_until('postgres', sprintf($in_line, 2)), 'a comparison, too');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
ok($node->poll_query_until('postgres', q{SELECT state = 'ready' FROM euno_stat_indexes WHERE indexrelname = 'numbers_a'}),
	'whoever can go on does');
$_->quit for $control, $fails, $builds, $compares;
is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers WHERE a > 200'), '1', 'and inserts');

# One that itself gives an index up does not wait for the last look at it.
is($node->safe_psql('postgres', q{SELECT euno_rebuild('ranks_a'); SET statement_timeout = '60s'; SET enable_seqscan = off; SET test.rank = 'evict'; SELECT count(*) FROM by_rank WHERE a = 5}),
	"\n1", 'a comparison gives an index up');

# Many who need an index that is given up, and may not build it: they wait for the
# last look, and then have one worker build it, not one each.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE stranger LOGIN;
CREATE FUNCTION same(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE TABLE crowd (a int);
CREATE UNIQUE INDEX crowd_a ON crowd USING euno (same(a));
INSERT INTO crowd SELECT generate_series(-100, -1);
GRANT INSERT ON crowd TO stranger;
GRANT EXECUTE ON FUNCTION euno_rebuild TO stranger;
SQL
my $insert = script_file($node, 'insert', 'INSERT INTO crowd VALUES (:client_id);');
$log_start = -s $node->logfile;
($control, $compares) = begin_comparison();
($ret, $stdout, $stderr) = $node->psql('postgres', q{SET statement_timeout = '300ms'; SELECT euno_evict('crowd_a')});
like($stderr, qr/statement timeout/, 'an index is on its way out');
my $all = '';
my @strangers = map { IPC::Run::start($_, '>&', \$all) }
	[ 'pgbench', '-n', '-c', '12', '-j', '1', '-t', '1', '-U', 'stranger', '-f', $insert, $node->connstr('postgres') ],
	[ 'psql', '-XAtq', '-U', 'stranger', '-d', $node->connstr('postgres'), '-c', q{SELECT euno_rebuild('crowd_a')} ];
sleep 3;
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'stranger' AND state = 'active'}), '13',
	'all wait, for longer than deadlock_timeout');
$control->query_safe('SELECT pg_advisory_unlock(1)');
$_->finish for @strangers;
unlike(slurp_file($node->logfile, $log_start), qr/could not start a worker/, 'there were workers enough');
is($node->safe_psql('postgres', 'SELECT count(*) FROM crowd'), '112', 'and all have inserted');
is(state_of($node, 'crowd_a'), 'ready', 'the index is there');
$_->quit for $control, $compares;
check_indexes($node, 'postgres', 'after all of that');

# Inserts into leaves that are fought for, with all of the stack that there may be.
$log_start = -s $node->logfile;
$node->safe_psql('postgres', <<'SQL');
SET euno.debug_modes = contended;
CREATE TABLE deep (a text COLLATE "C", b int);
CREATE INDEX deep_a ON deep USING euno (a);
CREATE INDEX deep_b ON deep USING euno (b ranked);
INSERT INTO deep SELECT md5(g::text) || repeat('x', g % 7 * 20), g FROM generate_series(1, 5000) g;
CREATE FUNCTION deep(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO deep SELECT md5(n::text || g) || repeat('y', (n + g) % 150), n % 100 * 50 + g FROM generate_series(1, 5) g;
	EXCEPTION WHEN statement_too_complex THEN
		RETURN n;
	END;
	RETURN deep(n + 1);
END $$;
DO $$
BEGIN
	FOR i IN 20 .. 76 LOOP
		PERFORM set_config('max_stack_depth', i * 100 || 'kB', false);
	END LOOP;
EXCEPTION WHEN invalid_parameter_value THEN
	NULL;
END $$;
SELECT deep(0);
SQL
unlike(slurp_file($node->logfile, $log_start), qr/terminated by signal|terminating any other/, 'nobody runs out of the stack');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM deep'), '>', 5100, 'what was inserted deep in a recursion is there');
check_indexes($node, 'postgres', 'deep in a recursion');

$node->stop;
done_testing();
