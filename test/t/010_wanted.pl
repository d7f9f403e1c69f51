# A tree that is absent after the server has started comes back by itself once a
# query could have used it; one that was evicted by hand does not.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use EunoTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = euno_node('wanted', "allow_in_place_tablespaces = on\neuno.naptime = 1s");
$node->start;

$node->safe_psql('postgres', q{CREATE TABLESPACE elsewhere LOCATION ''});
$node->safe_psql('postgres', q{
	CREATE EXTENSION euno_index;
	CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10000) g;
	CREATE INDEX t_a ON t USING euno (a);
	CREATE TABLE u AS SELECT g AS a FROM generate_series(1, 10000) g;
	CREATE INDEX u_a ON u USING euno (a);
	ANALYZE t, u;
});

my $state = q{SELECT state FROM euno_stat_indexes WHERE indexrelname = };
my $why = q{SELECT absent_reason, retry_at IS NOT NULL FROM euno_stat_indexes WHERE indexrelname = };

# Both are absent now; nobody has asked for either.
$node->safe_psql('postgres', 'ALTER INDEX t_a SET TABLESPACE elsewhere');
$node->safe_psql('postgres', q{SELECT euno_evict('u_a')});
is($node->safe_psql('postgres', "$state 't_a'"), 'absent', 'absent in a new place');
is($node->safe_psql('postgres', "$why 't_a'"), 'unused|f', 'and nobody has wanted it');
is($node->safe_psql('postgres', "$why 'u_a'"), 'evicted|f', 'the other one was evicted');

my $plan = $node->safe_psql('postgres', 'EXPLAIN SELECT * FROM t WHERE a = 5');
unlike($plan, qr/t_a/, 'planning does not build it');
$node->safe_psql('postgres', 'SELECT * FROM u WHERE a = 5');

ok($node->poll_query_until('postgres', "$state 't_a'", 'ready'),
	'but the launcher has it built');
like($node->safe_psql('postgres', 'EXPLAIN SELECT * FROM t WHERE a = 5'),
	qr/t_a/, 'and then it is used');
is($node->safe_psql('postgres', "$why 't_a'"), '|f', 'and not absent for any reason');
is($node->safe_psql('postgres', "$state 'u_a'"), 'absent',
	'an evicted one is left alone');

$node->safe_psql('postgres', q{SELECT euno_rebuild('u_a')});
is($node->safe_psql('postgres', "$state 'u_a'"), 'ready', 'until it is asked for');

# What fails in the background is seen without the log, which names the index.
$node->safe_psql('postgres', q{
	CREATE FUNCTION breaks(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / ($1 - 1); END $$;
	CREATE TABLE b AS SELECT 0 AS a;
	CREATE INDEX b_a ON b USING euno (breaks(a));
	ALTER INDEX b_a SET TABLESPACE elsewhere;
	CREATE OR REPLACE FUNCTION breaks(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / $1; END $$;
	SELECT * FROM b WHERE breaks(a) = 1 AND false;
});
$node->psql('postgres', 'SELECT * FROM b WHERE breaks(a + 1) = 1 AND breaks(a) = 1');
ok($node->poll_query_until('postgres', q{SELECT last_error = 'division by zero' FROM euno_stat_worker}), 'a rebuild that failed is counted');
ok($node->poll_query_until('postgres', "$why 'b_a'", 'failed|t'), 'why it is absent, and until when, is shown');
like(slurp_file($node->logfile), qr/division by zero\n.*CONTEXT: (.|\n)*?while building euno index "b_a" of table "postgres\.public\.b"/, 'the log says which');
like(slurp_file($node->logfile), qr/euno index "t_a" of table "postgres\.public\.t" rebuilt: 10000 rows/, 'the log says whose index was rebuilt');

# And what fails in the foreground: the error names the index.
$node->safe_psql('postgres', q{
	CREATE OR REPLACE FUNCTION breaks(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1; END $$;
	CREATE TABLE f AS SELECT 0 AS a;
	CREATE UNIQUE INDEX f_a ON f USING euno (breaks(a));
	ALTER INDEX f_a SET TABLESPACE elsewhere;
	CREATE OR REPLACE FUNCTION breaks(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / $1; END $$;
});
my $failures = $node->safe_psql('postgres', 'SELECT errors FROM euno_stat_worker');
$node->psql('postgres', 'INSERT INTO f VALUES (1)', stderr => \my $stderr);
like($stderr, qr/division by zero\n.*while building euno index "f_a" of table "postgres\.public\.f"/s, 'whose index a statement could not build is in its error');
is($node->safe_psql('postgres', "$why 'f_a'"), 'failed|f', 'and shown, and does not keep the launcher from it');
is($node->safe_psql('postgres', "SELECT errors > $failures, last_error FROM euno_stat_worker"), 't|division by zero', 'and counted, for a worker has built it');
$node->safe_psql('postgres', 'DROP TABLE f');

# So that it sleeps when it is told to end.
$node->append_conf('postgresql.conf', 'euno.naptime = 1h');
$node->reload;
my $sleeps = "SELECT current_setting('euno.naptime') = '1h' AND count(*) = 1 FROM pg_stat_activity
	WHERE backend_type LIKE 'euno%' AND wait_event IN ('Extension', 'EunoLauncherMain')";
ok($node->poll_query_until('postgres', $sleeps), 'the launcher sleeps');

# Whoever wants a tree wakes it; if it cannot be built, not again for a naptime.
$node->safe_psql('postgres', q{
	CREATE TABLE w AS SELECT g AS a FROM generate_series(1, 1000) g;
	CREATE INDEX w_a ON w USING euno (a);
	ALTER INDEX w_a SET TABLESPACE elsewhere;
	EXPLAIN SELECT * FROM w WHERE a = 5;
});
ok($node->poll_query_until('postgres', "$state 'w_a'", 'ready'), 'a tree that is wanted is built at once');
ok($node->poll_query_until('postgres', $sleeps), 'and the launcher sleeps again');
my $errors = 'SELECT errors FROM euno_stat_worker';
my $before = $node->safe_psql('postgres', $errors);
$node->safe_psql('postgres', q{CREATE OR REPLACE FUNCTION breaks(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$});
$node->safe_psql('postgres', "CREATE TABLE c$_ AS SELECT 0 AS a; CREATE INDEX c${_}_a ON c$_ USING euno (breaks(a)); ALTER INDEX c${_}_a SET TABLESPACE elsewhere")
	for 1 .. 3;
$node->safe_psql('postgres', q{CREATE OR REPLACE FUNCTION breaks(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / $1; END $$});
for my $new (1 .. 3)
{
	$node->safe_psql('postgres', "EXPLAIN SELECT * FROM c$_ WHERE breaks(a) = 1") for 1 .. $new;
	ok($node->poll_query_until('postgres', "SELECT ($errors) >= $before + $new"), 'one that cannot be built is tried at once');
	ok($node->poll_query_until('postgres', $sleeps), 'the launcher sleeps');
}
$node->safe_psql('postgres', "EXPLAIN SELECT * FROM c$_ WHERE breaks(a) = 1") for 1 .. 3;
sleep 0.5;

# Who wants it while a worker is at it may have it tried once more.
cmp_ok($node->safe_psql('postgres', $errors), '<=', $before + 4, 'but not again and again, nor with others');

# However long it takes to fail: not again within half a naptime.
$node->append_conf('postgresql.conf', 'euno.naptime = 2s');
$node->reload;
$node->safe_psql('postgres', q{
	CREATE FUNCTION breaks_late(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
	CREATE TABLE l AS SELECT 0 AS a;
	CREATE INDEX l_a ON l USING euno (breaks_late(a));
	ALTER INDEX l_a SET TABLESPACE elsewhere;
	CREATE OR REPLACE FUNCTION breaks_late(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
		RAISE LOG 'begins at % ms', (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
		PERFORM pg_sleep(1.5);
		RAISE LOG 'fails at % ms', (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
		RETURN 1 / $1; END $$;
});
my @attempts;
for my $try (1 .. 300)
{
	$node->safe_psql('postgres', 'EXPLAIN SELECT * FROM l WHERE breaks_late(a) = 1 AND a > 5');
	@attempts = slurp_file($node->logfile) =~ /(begins|fails) at (\d+) ms/g;
	last if @attempts > 8;
	sleep 0.1;
}
my $shortest = 1e9;
for (my $i = 2; $i + 3 < @attempts; $i += 4)
{
	$shortest = $attempts[ $i + 3 ] - $attempts[ $i + 1 ] if $shortest > $attempts[ $i + 3 ] - $attempts[ $i + 1 ];
}
cmp_ok($shortest, '>=', 1000, 'after a late failure there is a pause, too');
cmp_ok($shortest, '<', 1e9, 'and then another attempt');
$node->safe_psql('postgres', 'DROP TABLE l');
$node->append_conf('postgresql.conf', 'euno.naptime = 1h');
$node->reload;

# A database's settings for its sessions are not for the workers.
$node->safe_psql('postgres', q{
	CREATE TABLE s (a int);
	INSERT INTO s VALUES (1);
	ALTER DATABASE postgres SET default_transaction_isolation = serializable;
	ALTER DATABASE postgres SET default_transaction_read_only = on;
	ALTER DATABASE postgres SET default_transaction_deferrable = on;
	ALTER DATABASE postgres SET statement_timeout = 1;
	ALTER DATABASE postgres SET lock_timeout = 1;
});
$ENV{PGOPTIONS} = '-c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off';
my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; UPDATE s SET a = 2');
$node->safe_psql('postgres', "ALTER INDEX w_a SET TABLESPACE pg_default; EXPLAIN SELECT * FROM w WHERE a = 5");
my $found = '';
for my $try (1 .. 100)
{
	$found = $node->safe_psql('postgres', "$state 'w_a'");
	last if $found eq 'ready';
	sleep 0.1;
}
is($found, 'ready', 'a worker waits for no safe snapshot');
$writer->query_safe('ROLLBACK');
$writer->quit;
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET ALL');
delete $ENV{PGOPTIONS};

# Where nobody may connect to, no worker is sent.
$node->safe_psql('postgres', 'CREATE DATABASE closed');
$node->safe_psql('closed', q{
	CREATE EXTENSION euno_index;
	CREATE TABLE w AS SELECT g AS a FROM generate_series(1, 1000) g;
	CREATE INDEX w_a ON w USING euno (a);
});
my $open = $node->background_psql('closed');
$open->query_safe('SELECT 1');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS false');
$open->query_safe('ALTER INDEX w_a SET TABLESPACE elsewhere; EXPLAIN SELECT * FROM w WHERE a = 5');
sleep 0.5;
$open->quit;

# An index of a temporary table is its session's own to build.
my $temporary = $node->background_psql('postgres');
$temporary->query_safe('CREATE TEMP TABLE w2 AS SELECT g AS a FROM generate_series(1, 1000) g; CREATE INDEX w2_a ON w2 USING euno (a)');
$temporary->query_safe('ALTER INDEX w2_a SET TABLESPACE elsewhere; EXPLAIN SELECT * FROM w2 WHERE a = 5');
is($temporary->query_safe("SELECT count(*) FROM euno_stat_indexes WHERE indexrelname = 'w2_a' AND state = 'absent'"), '1', 'a temporary one stays absent');
my $w2 = $temporary->query_safe("SELECT relnamespace::regnamespace || '.w2' FROM pg_class WHERE relname = 'w2'");
my $others = $node->safe_psql('postgres', "EXPLAIN SELECT * FROM $w2 WHERE a = 5; SELECT count(*) FROM euno_stat_get_indexes() WHERE temporary");
is((split /\n/, $others)[-1], '0', 'for another session there is none');
$temporary->query_safe("SELECT euno_rebuild('w2_a')");
is($temporary->query_safe("$state 'w2_a'"), 'ready', 'until its session builds it');
$temporary->quit;

# What is not built yet does not look like the index whose place it has.
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->reload;
$node->poll_query_until('postgres', 'SHOW euno.auto_rebuild', 'off');
$node->safe_psql('postgres', q{
	CREATE TABLE arts (a int);
	DO $$ BEGIN FOR i IN 1 .. 30 LOOP CREATE INDEX ON arts USING euno (a) WITH (structure = art); END LOOP; END $$;
	CREATE INDEX t_b ON t USING euno (a);
	DROP TABLE arts;
	ALTER INDEX t_b SET TABLESPACE elsewhere;
	EXPLAIN SELECT * FROM t WHERE a = 5;
});
is($node->safe_psql('postgres', q{SELECT structure, state FROM euno_stat_indexes WHERE indexrelname = 't_b'}), 'bptree|absent', 'structure of an index that took the place of another one');

# A table that somebody has locked does not keep others waiting for their indexes.
$node->safe_psql('postgres', q{
	CREATE TABLE l (a int); INSERT INTO l SELECT generate_series(1, 1000); CREATE UNIQUE INDEX l_a ON l USING euno (a);
	CREATE TABLE m (a int); INSERT INTO m SELECT generate_series(1, 1000); CREATE INDEX m_a ON m USING euno (a);
	ALTER INDEX l_a SET TABLESPACE elsewhere;
	ALTER INDEX m_a SET TABLESPACE elsewhere;
	EXPLAIN SELECT * FROM l WHERE a = 5;
	EXPLAIN SELECT * FROM m WHERE a = 5;
});
$node->safe_psql('postgres', 'DROP INDEX t_b');
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE l');
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = on');
$node->reload;
my $waiters = q{SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND locktype = 'relation' AND backend_type LIKE 'euno%'};
ok($node->poll_query_until('postgres', "SELECT ($state 'm_a') = 'ready' OR ($waiters) > 0"), 'a worker has come by a table that is locked');
is($node->safe_psql('postgres', "$state 'm_a'"), 'ready', 'and not waited for it');
is($node->safe_psql('postgres', "$state 'l_a'"), 'absent', 'but left its index for later');
$locker->quit;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'euno rebuild'}), 'and ended');

# Without a place for a worker, the launcher says so once and not in each round.
$node->append_conf('postgresql.conf', "max_worker_processes = 1\nmax_logical_replication_workers = 0\neuno.naptime = 1s");
my $log_start = -s $node->logfile;
$node->restart;
$node->safe_psql('postgres', 'ALTER INDEX m_a SET TABLESPACE pg_default; EXPLAIN SELECT * FROM m WHERE a = 5');
is($node->safe_psql('postgres', "$why 'm_a'"), 'wanted|f', 'an index is wanted, and there is no place for a worker');
my $rounds = $node->safe_psql('postgres', 'SELECT rounds FROM euno_stat_worker');
ok($node->poll_query_until('postgres', "SELECT rounds >= $rounds + 3 FROM euno_stat_worker"), 'three rounds later');
is(scalar(() = slurp_file($node->logfile, $log_start) =~ /could not start a worker/g) . '|' . $node->safe_psql('postgres', 'SELECT errors, last_error FROM euno_stat_worker'),
	'1|1|could not start a worker', 'that has been said once');
$node->stop;
# (A session whose psql has gone may be told to end, too: its lines have its name.)
unlike(slurp_file($node->logfile), qr/^(?!.* 010_wanted\.pl ).*FATAL/m, 'the launcher ends in peace');
done_testing();
