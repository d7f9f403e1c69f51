# Every kind of DDL while a tree is being rebuilt: the builder is stopped, the
# statement is begun, and the builder goes on.  Whichever waits for the other, both
# end, and the answers are right.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('ddl', "euno.auto_rebuild = off\nallow_in_place_tablespaces = on\ndeadlock_timeout = 100ms\neuno.naptime = 1s");
$node->start;
$node->safe_psql('postgres', q{CREATE TABLESPACE elsewhere LOCATION ''});
$node->safe_psql('postgres', q{CREATE EXTENSION euno_index; CREATE ROLE somebody});
$node->safe_psql('postgres', 'CREATE DATABASE other TEMPLATE template0');

my $holder = $node->background_psql('postgres');
my $builder = $node->background_psql('postgres', on_error_stop => 0);
my $again = 'CREATE TABLE t (a int, b varchar(10)); CREATE INDEX t_a ON t USING euno (a); INSERT INTO t VALUES (1)';
my @statements = (
	'TRUNCATE t',
	'BEGIN; TRUNCATE t; ROLLBACK',
	'BEGIN; SAVEPOINT s; TRUNCATE t; ROLLBACK TO s; INSERT INTO t VALUES (70001); COMMIT',
	'ALTER INDEX t_a SET TABLESPACE elsewhere',
	'ALTER TABLE t SET TABLESPACE elsewhere',
	'ALTER TABLE t ALTER b TYPE varchar(300)',
	'ALTER TABLE t ALTER a TYPE bigint',
	'BEGIN; ALTER TABLE t ALTER a TYPE bigint; ROLLBACK',
	'ALTER TABLE t ADD c timestamptz DEFAULT clock_timestamp()',
	'ALTER TABLE t SET UNLOGGED',
	'ALTER INDEX t_a SET (fillfactor = 60)',
	'ALTER TABLE t RENAME a TO d; ALTER TABLE t RENAME d TO a',
	'VACUUM t',
	'VACUUM FULL t',
	'REINDEX INDEX t_a',
	'REINDEX INDEX CONCURRENTLY t_a',
	'CREATE INDEX CONCURRENTLY t_more ON t USING euno (a DESC)',
	'BEGIN; CREATE INDEX t_more ON t USING euno (a DESC); ROLLBACK',
	'DROP INDEX t_a; CREATE INDEX t_a ON t USING euno (a)',
	'DROP INDEX CONCURRENTLY t_a; CREATE INDEX t_a ON t USING euno (a)',
	'BEGIN; DROP TABLE t; ROLLBACK',
	"DROP TABLE t; $again",
	"BEGIN; TRUNCATE t; INSERT INTO t VALUES (5); PREPARE TRANSACTION 'one'; COMMIT PREPARED 'one'",
	"BEGIN; DROP INDEX t_a; PREPARE TRANSACTION 'two'; ROLLBACK PREPARED 'two'",
	'ALTER TABLE t OWNER TO somebody; REASSIGN OWNED BY somebody TO postgres',
	'CLUSTER t USING t_a',
	'ALTER TABLE t SET (autovacuum_enabled = off); ANALYZE t',
	[ 'CREATE TABLE p (a int, b varchar(10)) PARTITION BY RANGE (a); CREATE INDEX p_a ON p USING euno (a)',
		'ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (100000)' ],
	[ 'CREATE TABLE p (a int, b varchar(10)) PARTITION BY RANGE (a); CREATE INDEX p_a ON p USING euno (a); ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (100000)',
		'ALTER TABLE p DETACH PARTITION t' ],
	[ 'CREATE TABLE p (a int, b varchar(10)) PARTITION BY RANGE (a); CREATE INDEX p_a ON p USING euno (a); ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (100000)',
		'ALTER TABLE p DETACH PARTITION t CONCURRENTLY' ],
	[ 'CREATE TABLE p (a int, b varchar(10)) PARTITION BY RANGE (a); ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (100000); CREATE INDEX p_a ON ONLY p USING euno (a)',
		'ALTER INDEX p_a ATTACH PARTITION t_a' ],
	[ 'CREATE TABLE p (a int, b varchar(10))', 'ALTER TABLE t INHERIT p; ALTER TABLE t NO INHERIT p' ],
	[ 'CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s', "DROP SCHEMA s CASCADE; $again" ],
	[ 'ALTER TABLE t OWNER TO somebody', "DROP OWNED BY somebody; $again" ],
	[ 'DROP TABLE t; CREATE MATERIALIZED VIEW t AS SELECT g AS a, g::text AS b FROM generate_series(1, 2000) g; CREATE INDEX t_a ON t USING euno (a)',
		"REFRESH MATERIALIZED VIEW t; DROP MATERIALIZED VIEW t; $again" ],
	'CREATE DATABASE copied TEMPLATE other STRATEGY wal_log; DROP DATABASE copied',
	'CREATE DATABASE copied TEMPLATE other STRATEGY file_copy; DROP DATABASE copied');

my $watch = $node->background_psql('postgres');
my $waited = 0;
for my $case (@statements)
{
	my ($before, $statement) = ref $case ? @$case : ('', $case);

	$node->safe_psql('postgres',
		"DROP TABLE IF EXISTS t, p CASCADE; CREATE TABLE t (a int, b varchar(10)); INSERT INTO t SELECT g, g FROM generate_series(1, 2000) g; CREATE INDEX t_a ON t USING euno (a); $before; SELECT euno_evict(indexrelid) FROM euno_stat_indexes");
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$builder->query_until(qr/begun/,
		"SET euno.debug_stop = 'build-loaded:1';\n\\echo begun\nSELECT euno_rebuild(indexrelid) FROM euno_stat_indexes;\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
	  or die 'the builder does not stop';
	is($watch->query_safe('SELECT tuples_done, tuples_total FROM pg_stat_progress_create_index'), '2000|2000', 'it shows how far it has come')
	  unless $before;

	my ($out, $err) = ('', '');
	my $ddl = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') . ' application_name=ddl',
			map { ('-c', $_) } "SET lock_timeout = '4min'", 'SET client_min_messages = warning', split(/; /, $statement) ],
		'<', '/dev/null', '>', \$out, '2>', \$err);

	# It waits for a lock of the builder's, or it does not and ends.
	for (1 .. 300)
	{
		$ddl->pump_nb;
		last unless $ddl->pumpable;
		last if $watch->query_safe("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ddl' AND wait_event_type = 'Lock'");
		select(undef, undef, undef, 0.05);
	}
	$waited += $ddl->pumpable ? 1 : 0;
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$ddl->finish;
	is($err, '', $statement);
	$builder->query("RESET euno.debug_stop");
	$builder->{stderr} = '';
	is($node->safe_psql('postgres',
			"SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT euno_rebuild(indexrelid) FROM euno_stat_indexes; SELECT euno_index_check(indexrelid, true) FROM euno_stat_indexes; SELECT count(*), sum(a) FROM t WHERE a > -1"),
		$node->safe_psql('postgres', 'SELECT repeat(chr(10), 2 * count(*)::int) FROM euno_stat_indexes')
		  . $node->safe_psql('postgres',
			'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(a) FROM t WHERE a > -1'),
		'and the answer is right');
}
$builder->quit;
$holder->quit;
$watch->quit;
note "$waited of ", scalar @statements, ' waited';
ok($waited > 10, 'most statements wait for the builder');

# VACUUM of any table that has such an index collects what is left.
$node->safe_psql('postgres', 'DROP TABLE t; CREATE TABLE k (a int); CREATE INDEX k_a ON k USING euno (a)');
$node->safe_psql('postgres', 'VACUUM k');
$node->safe_psql('postgres', 'DROP TABLE k');
is(used_bytes($node), '0', 'no tree is left behind');
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal|XX00/, 'nothing broke');
$node->stop;

# The machine does not give the address space (a limit of the process stands for
# vm.overcommit_memory = 2): the server says so and does not start.
$node->append_conf('postgresql.conf', 'euno.max_memory = 8GB');
my $log_start = -s $node->logfile;
system_log('sh', '-c', 'ulimit -v 3000000; exec pg_ctl -D "$0" -l "$1" -w -t 300 start', $node->data_dir, $node->logfile);
like(slurp_file($node->logfile, $log_start),
	qr/FATAL:  could not reserve 8192 MB of address space for euno indexes: Cannot allocate memory\n.*HINT:  Reduce "euno.max_memory"/,
	'too little address space is an error at start');
done_testing();
