# The launcher and its workers: which index comes first, several at once in several
# databases, and in nobody's way.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('launcher', <<'CONF');
euno.rebuild_workers = 1
euno.naptime = 1s
max_worker_processes = 12
allow_in_place_tablespaces = on
CONF
$node->start;
$node->safe_psql('postgres', q{CREATE TABLESPACE elsewhere LOCATION ''});

for my $db ('one', 'two', 'three')
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b int, c int);
INSERT INTO t SELECT g, g, g FROM generate_series(1, 20000) g;
CREATE INDEX t_idle ON t USING euno (c);
CREATE INDEX t_used ON t USING euno (b);
CREATE UNIQUE INDEX t_unique ON t USING euno (a);
VACUUM ANALYZE t;
SQL
}
$node->safe_psql('one', 'SET enable_seqscan = off; SET enable_bitmapscan = off;' . 'SELECT count(*) FROM t WHERE b < 10;' x 3);

sub set_conf
{
	my (@settings) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $_") for @settings;
	$node->reload;
	return;
}

# The indexes that the log says were rebuilt since an offset, in order.
sub rebuilt
{
	my ($start) = @_;

	return join(' ', slurp_file($node->logfile, $start) =~ /euno index "(\w+)" of table "[\w.]+" rebuilt:/g);
}

my $log_start = -s $node->logfile;
$node->restart;
ok(wait_for_state($node, $_, 'ready'), "all indexes of $_ are rebuilt") for ('one', 'two', 'three');
my $order = rebuilt($log_start);
like($order, qr/t_unique t_used t_idle/, 'unique first, then the one that was used most') or note $order;

# With stop points: who builds when, and where.  A session in each database holds
# the lock that the workers there stop at.
set_conf('euno.auto_rebuild = off', 'euno.rebuild_workers = 2');
$node->restart;
my %holder;
for my $db ('one', 'two', 'three')
{
	$holder{$db} = $node->background_psql($db);
	$holder{$db}->query_safe('SELECT pg_advisory_lock(7)');
}
set_conf("euno.debug_stop = 'build-page:7'", 'euno.auto_rebuild = on');

my $stopped = "FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE backend_type = 'euno rebuild' AND locktype = 'advisory' AND NOT granted";
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 AND count(DISTINCT datname) = 2 $stopped"),
	'two workers build in two databases');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_progress_create_index'), '2', 'and show it');
my ($first, $second) = split /\n/, $node->safe_psql('postgres', "SELECT datname $stopped ORDER BY 1");
my ($third) = grep { $_ ne $first && $_ ne $second } ('one', 'two', 'three');
is($node->safe_psql($third, "SELECT count(*) FROM euno_stat_indexes WHERE state = 'building'"), '0',
	'there is no third');

# DDL on the table waits for deadlock_timeout, not for the rebuild.
$log_start = -s $node->logfile;
my ($ret, $stdout, $stderr) = $node->psql($first, 'ALTER TABLE t ADD COLUMN d int', timeout => $PostgreSQL::Test::Utils::timeout_default);
is("$ret $stderr", '0 ', 'DDL does not wait for a rebuild that has stopped');
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 AND count(DISTINCT datname) = 2 $stopped"),
	'the worker goes on with another index, or tries again');
like(slurp_file($node->logfile, $log_start), qr/rebuild of euno index with OID \d+ was interrupted/, 'the log says so');

# Who cannot go on without an index that is being built waits as for a lock.
my $db = $node->safe_psql('postgres', "SELECT max(datname) $stopped");
($ret, $stdout, $stderr) = $node->psql($db,
	"SET lock_timeout = 200; SELECT euno_rebuild(indexrelid) FROM euno_stat_indexes WHERE state = 'building'");
like($stderr, qr/canceling statement due to lock timeout/, 'who needs the tree waits for its builder');

$node->safe_psql('postgres', "ALTER SYSTEM SET euno.debug_stop = ''");
$node->reload;
$holder{$_}->query_safe('SELECT pg_advisory_unlock(7)') for ('one', 'two', 'three');
ok(wait_for_state($node, $_, 'ready'), "in the end all indexes of $_ are rebuilt") for ('one', 'two', 'three');
$holder{$_}->quit for ('one', 'two', 'three');

# Databases are dropped, copied, moved and renamed although workers are in them: their
# rebuilds do not get on as long as there is an advisory lock.
for my $db ('dropped', 'kept')
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, <<'SQL');
CREATE EXTENSION euno_index;
CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN WHILE EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory') LOOP PERFORM pg_catalog.pg_sleep(0.02); END LOOP; RETURN $1; END $$;
CREATE TABLE t (a int);
INSERT INTO t SELECT generate_series(1, 300);
CREATE INDEX t_slow ON t USING euno (slow(a));
SQL
}
set_conf('euno.auto_rebuild = off');
$node->restart;
my $lock = $node->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(8)');
set_conf('euno.auto_rebuild = on');
my $building = "FROM pg_stat_progress_create_index WHERE blocks_total > 0 AND datname";
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 $building IN ('dropped', 'kept')"),
	'workers build in two databases');
($ret, $stdout, $stderr) = $node->psql('postgres', 'CREATE DATABASE copy TEMPLATE kept');
is("$ret $stderr", '0 ', 'one is copied');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $building = 'kept'"), 'the worker comes back');
($ret, $stdout, $stderr) = $node->psql('postgres', 'ALTER DATABASE kept SET TABLESPACE elsewhere');
is("$ret $stderr", '0 ', 'one is moved');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $building = 'kept'"), 'the worker comes back');
($ret, $stdout, $stderr) = $node->psql('postgres', 'ALTER DATABASE kept RENAME TO renamed');
is("$ret $stderr", '0 ', 'one is renamed');
($ret, $stdout, $stderr) = $node->psql('postgres', 'DROP DATABASE dropped');
is("$ret $stderr", '0 ', 'one is dropped');
is($node->safe_psql('postgres', "SELECT count(*) $building = 'dropped'"), '0', 'and its worker is gone');
$lock->quit;
ok(wait_for_state($node, 'renamed', 'ready'), 'the other one is rebuilt in the end');

# Workers learn of a setting between two indexes.
set_conf('euno.auto_rebuild = off');
$node->restart;
my $one = $node->background_psql('one');
$one->query_safe('SELECT pg_advisory_lock(7)');
set_conf("euno.debug_stop = 'build-page:7'", 'euno.auto_rebuild = on');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $stopped"), 'a worker builds');
set_conf("euno.debug_stop = ''", 'euno.auto_rebuild = off');
ok($node->poll_query_until('postgres', 'SHOW euno.auto_rebuild', 'off'), 'it has been told');
$one->quit;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'euno rebuild'"), 'and ends');
is($node->safe_psql('one', "SELECT state, count(*) FROM euno_stat_indexes GROUP BY 1 ORDER BY 1"), "absent|2\nready|1",
	'when it has built that index');
set_conf('euno.auto_rebuild = on');
ok(wait_for_state($node, 'one', 'ready'), 'the others are built when they may be');
unlike(slurp_file($node->logfile), qr/database \d+ does not exist/, 'no worker is sent to a database that is gone');

# The launcher looks whether its workers are in somebody's way.  That fails if anybody
# has filled the table of locks; it goes on, and knows its workers.
set_conf('euno.auto_rebuild = off');
$node->restart;
$one = $node->background_psql('one');
$one->query_safe('SELECT pg_advisory_lock(7)');
set_conf("euno.debug_stop = 'build-page:7'", 'euno.auto_rebuild = on');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $stopped"), 'a worker builds');
my $launcher = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'euno launcher'};
my $pid = $node->safe_psql('postgres', $launcher);
my $worker = $node->safe_psql('postgres', "SELECT pid $stopped");
$log_start = -s $node->logfile;
$node->safe_psql('postgres', <<'SQL');
DO $$
BEGIN
	FOR i IN 1..100000 LOOP
		PERFORM pg_advisory_lock(i, 0);
	END LOOP;
EXCEPTION WHEN out_of_memory THEN
	PERFORM pg_sleep(2);
END $$;
SQL
like(slurp_file($node->logfile, $log_start), qr/ERROR:  out of shared memory/, 'there was no lock to be had');
is($node->safe_psql('postgres', $launcher), $pid, 'the launcher has gone on');
is($node->safe_psql('postgres', "SELECT pid $stopped"), $worker, 'and its worker');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker"),
	'when the launcher ends, its worker does');
set_conf("euno.debug_stop = ''");
$one->quit;
ok(wait_for_state($node, 'one', 'ready'), 'the next one has all indexes built');

# Most indexes have no place: each worker says so once.
$node->safe_psql('postgres', 'ALTER SYSTEM SET euno.max_indexes = 2');
$log_start = -s $node->logfile;
$node->restart;
ok($node->poll_query_until('one', 'SELECT errors >= 14 FROM euno_stat_worker'), 'seven indexes are not built');
my %said;
$said{$_}++ for slurp_file($node->logfile, $log_start) =~ /\[(\d+)\] \w+ ERROR:  cannot build euno index "[^"]*": too many euno indexes/g;
ok(%said && !(grep { $_ > 1 } values %said), 'and each worker says so once');

# Other limits have the same code, and are said of each index.
$node->safe_psql('postgres', 'ALTER SYSTEM RESET euno.max_indexes');
$node->restart;
$node->safe_psql('one', <<'SQL');
INSERT INTO t SELECT a, a, a FROM (SELECT 20000 + (g * 7919::bigint % 1000003)::int FROM generate_series(1, 150000) g) s (a);
ALTER SYSTEM SET temp_file_limit = '64kB';
ALTER SYSTEM SET maintenance_work_mem = '1MB';
SQL
$log_start = -s $node->logfile;
$node->stop('immediate');
$node->start;
ok($node->poll_query_until('one', 'SELECT errors >= 3 FROM euno_stat_worker'), 'the files of three indexes are too large');
%said = map { $_ => 1 } slurp_file($node->logfile, $log_start) =~ /ERROR:  temporary file size exceeds.*\n.*CONTEXT:  while building euno index "(\w+)"/g;
is(join(' ', sort keys %said), 't_idle t_unique t_used', 'and this is said of each of them');

$node->stop;
done_testing();
