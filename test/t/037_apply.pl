# An apply worker looks for the row to be changed with a dirty snapshot, and from
# version 18 on through a euno index: replica identity or, with the full one, the
# first index that will do.  Others delete, move and lock that row meanwhile, VACUUM
# gives its place to another, the tree goes while the worker waits, the worker is
# killed.  Before 18 it comes by a btree or none, and writes to ours all the same.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $publisher = euno_node('publisher', 'wal_level = logical', allows_streaming => 'logical');
my $subscriber = euno_node('subscriber', "euno.auto_rebuild = off\nwal_retrieve_retry_interval = 200ms\nlog_min_messages = debug1", allows_streaming => 'logical');
my $identity = $publisher->pg_version >= 18 ? 'euno' : 'btree';
my %key = (nulls => 'a, b', moods => 'c', lowered => 'a, lower(b)', radix => 'a');
my @kinds = sort keys %key;
my @tables = ('known', @kinds);
my $schema = "CREATE EXTENSION euno_index;\nCREATE TYPE mood AS ENUM ('sad', 'happy');\nALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy';\n"
  . "CREATE TABLE known (a int NOT NULL, b text, c int);\nCREATE UNIQUE INDEX known_a ON known USING $identity (a);\n"
  . "ALTER TABLE known REPLICA IDENTITY USING INDEX known_a;\n"
  . join('', map { "CREATE TABLE $_ (a int, b text, c mood);\nALTER TABLE $_ REPLICA IDENTITY FULL;\n" } @kinds);

$publisher->start;
$subscriber->start;
$publisher->safe_psql('postgres', "$schema CREATE PUBLICATION everything FOR ALL TABLES; INSERT INTO known SELECT g, 'k' || g, g FROM generate_series(1, 200) g");
for my $table (@kinds)
{
	$publisher->safe_psql('postgres', "INSERT INTO $table SELECT nullif(g % 30, 7), nullif('B' || g % 4, 'B1'), (enum_range(NULL::mood))[g % 4] FROM generate_series(1, 300) g");
}
$subscriber->safe_psql('postgres', $schema . "CREATE UNIQUE INDEX known_c ON known USING euno (c);\nCREATE INDEX known_b ON known USING euno (b);\n"
	. join('', map { "CREATE INDEX ${_}_i ON $_ USING euno ($key{$_})" . ($_ eq 'radix' ? ' WITH (structure = art)' : '') . ";\n" } @kinds)
	. "CREATE ROLE applier SUPERUSER LOGIN;\nCREATE SUBSCRIPTION all_of_it CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION everything;\nALTER SUBSCRIPTION all_of_it OWNER TO applier");
$subscriber->wait_for_subscription_sync($publisher, 'all_of_it');

sub compare
{
	my ($name) = @_;

	$publisher->wait_for_catchup('all_of_it');
	$subscriber->safe_psql('postgres', "SELECT count(euno_rebuild(indexrelid)) FROM euno_stat_indexes WHERE state <> 'ready'");
	for my $table (@tables)
	{
		my $query = "SELECT md5(string_agg(t::text, ',' ORDER BY a, b, c)) FROM $table t";
		my $keys = "SELECT count(*), sum(a) FROM $table WHERE a >= 0";

		is($subscriber->safe_psql('postgres', $query), $publisher->safe_psql('postgres', $query), "$name: $table is as on the publisher");
		same_answers($subscriber, 'postgres', $keys, "$name: $table") if $key{$table} && $key{$table} =~ /a/;
	}
	check_indexes($subscriber, 'postgres', $name);
	return;
}

# The apply worker starts anew, and stops at a point while $holder has lock 1.
my $holder = $subscriber->background_psql('postgres');

sub stop_apply_at
{
	my ($points) = @_;

	$holder->query_safe('SELECT pg_advisory_lock(1)') if $points;
	$publisher->wait_for_catchup('all_of_it');
	$subscriber->safe_psql('postgres', "ALTER ROLE applier SET euno.debug_stop = '$points'; ALTER SUBSCRIPTION all_of_it DISABLE");
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type ~ '^logical replication.*worker'");
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION all_of_it ENABLE');
	return;
}

# Waits until the apply worker does, for a lock of this type.
sub apply_waits
{
	my ($type, $name) = @_;

	ok($subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE backend_type ~ '^logical replication.*worker' AND l.locktype = '$type' AND NOT granted"), $name);
	return;
}

# A row is dead, and by the time the worker comes to its place another is there.
SKIP:
{
	skip 'no index of ours is a replica identity', 20 if $subscriber->pg_version < 18;

	$publisher->safe_psql('postgres', "UPDATE $_ SET b = 'first' WHERE a = 5 OR c = 'ok'") for @kinds;
	stop_apply_at('scan-batch:1');
	is($subscriber->safe_psql('postgres', "SELECT string_agg(indexrelname, ', ' ORDER BY indexrelname) FROM pg_stat_user_indexes WHERE idx_scan > 0"), join(', ', map { "${_}_i" } @kinds), 'rows are found by our indexes');
	my $place = $subscriber->safe_psql('postgres', 'DELETE FROM known WHERE a = 200 RETURNING ctid');
	$publisher->safe_psql('postgres', "UPDATE known SET b = 'changed' WHERE a = 200");
	apply_waits('advisory', 'it has found an entry');
	$subscriber->safe_psql('postgres', 'VACUUM known');
	is($subscriber->safe_psql('postgres', "INSERT INTO known VALUES (1200, 'other', 1200) RETURNING ctid"), $place, 'its place is taken');
	my $log_start = -s $subscriber->logfile;
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$publisher->wait_for_catchup('all_of_it');
	like(slurp_file($subscriber->logfile, $log_start), qr/conflict=update_missing/, 'the row is missed');
	is($subscriber->safe_psql('postgres', "SELECT a, b, c FROM known WHERE a = 1200 OR b = 'changed'"), '1200|other|1200', 'the other row is as it was');
	$subscriber->safe_psql('postgres', "DELETE FROM known WHERE a = 1200; INSERT INTO known VALUES (200, 'changed', 200)");

	# A row that is announced keeps its place until it has been looked at.
	stop_apply_at('scan-return:1');
	$subscriber->safe_psql('postgres', 'DELETE FROM known WHERE a = 199');
	$publisher->safe_psql('postgres', "UPDATE known SET b = 'again' WHERE a = 199");
	apply_waits('advisory', 'it has announced an entry');
	my $vacuum = $subscriber->background_psql('postgres');
	$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM known;\n");
	ok($subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_vacuum WHERE phase = 'vacuuming indexes'"), 'VACUUM has come to the indexes');
	$log_start = -s $subscriber->logfile;
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$publisher->wait_for_catchup('all_of_it');
	like(slurp_file($subscriber->logfile, $log_start), qr/conflict=update_missing/, 'it is missed, too');
	$vacuum->quit;
	$subscriber->safe_psql('postgres', "INSERT INTO known VALUES (199, 'again', 199)");
	stop_apply_at('');
	compare('after missed rows');
}

# It waits for one who moves the row's keys away and back; the trees go and come.
$holder->query_safe(join('', "BEGIN;\n", map { "UPDATE $_ SET a = a + 1000, b = b || 'x';\nUPDATE $_ SET a = a - 1000, b = left(b, -1);\n" } @tables));
$publisher->safe_psql('postgres', "UPDATE known SET b = 'moved', c = c + 1000 WHERE a <= 3; UPDATE $_ SET b = 'moved' WHERE a = 3") for @kinds;
$publisher->safe_psql('postgres', "DELETE FROM $_ WHERE a IS NULL") for @kinds;
apply_waits('transactionid', 'it waits for who moves the row');
$subscriber->safe_psql('postgres', 'SELECT count(euno_evict(indexrelid)), count(euno_rebuild(indexrelid)) FROM euno_stat_indexes');
$holder->query_safe('COMMIT');
compare('after keys moved away and back');

# And for one who inserts the key that it inserts, into an index of ours.
$holder->query_safe("BEGIN;\nINSERT INTO known VALUES (500, 'local', 5000)");
$publisher->safe_psql('postgres', "INSERT INTO known VALUES (501, 'published', 5000)");
apply_waits('transactionid', 'it waits for who inserts the same key');
$subscriber->safe_psql('postgres', 'SELECT count(euno_evict(indexrelid)) FROM euno_stat_indexes');
$holder->query_safe('ROLLBACK');
compare('after the same key was inserted in vain');

# The worker is killed between changes, under such load as leaves rows as they are.
# Who moves keys and commits would not do: a dirty snapshot may miss a row that comes
# to lie behind the scan, with btree as well.
my $load = join('', map { "BEGIN; UPDATE $_ SET a = a + 1000; ROLLBACK; BEGIN; DELETE FROM $_ WHERE a < 20; ROLLBACK; BEGIN; SELECT count(*) FROM (SELECT a FROM $_ FOR UPDATE) s; COMMIT; VACUUM $_;\n" } @tables)
  . "SELECT count(euno_evict(indexrelid)), count(euno_rebuild(indexrelid)) FROM euno_stat_indexes;\n";
$load = "SET deadlock_timeout = '10ms';\n" . $load x 5;
my $changes = join('', map { "UPDATE $_ SET b = upper(b) WHERE a % 4 = 1; UPDATE $_ SET a = a + 1, b = NULL WHERE a % 7 = 2; DELETE FROM $_ WHERE a % 9 = 4; INSERT INTO $_ SELECT a + 3, 'y', NULL FROM $_ WHERE a < 8;\n" } @kinds);
$publisher->safe_psql('postgres', $changes);
kill_process($subscriber->safe_psql('postgres', "SELECT pid FROM pg_stat_subscription WHERE pid IS NOT NULL"));
$publisher->safe_psql('postgres', "UPDATE known SET b = 'late' WHERE a % 2 = 0");
ok(wait_for_recovery($subscriber), 'the server is there again');
my $local = $subscriber->background_psql('postgres', on_error_stop => 0);
$local->query_until(qr/begun/, "\\echo begun\n$load\\echo all done\n");
$publisher->safe_psql('postgres', "$changes TRUNCATE moods; INSERT INTO moods VALUES (1, 'c', 'ok'), (1, 'c', 'ok'), (NULL, NULL, NULL); $changes DELETE FROM moods WHERE b IS NULL");
$local->query_until(qr/all done/, '');
$local->quit;
compare('after a kill, under load');
is(() = slurp_file($subscriber->logfile) =~ /did not find row|conflict=(update|delete)_missing/g, $identity eq 'euno' ? 2 : 0, 'each other row to change was found');

# Where NULLs are not distinct, a second one is refused.
$_->safe_psql('postgres', 'CREATE TABLE once (a int PRIMARY KEY, b int)') for $publisher, $subscriber;
$subscriber->safe_psql('postgres', 'CREATE UNIQUE INDEX once_b ON once USING euno (b) NULLS NOT DISTINCT; ALTER SUBSCRIPTION all_of_it REFRESH PUBLICATION');
$subscriber->wait_for_subscription_sync($publisher, 'all_of_it');
my $start = -s $subscriber->logfile;
$publisher->safe_psql('postgres', "INSERT INTO once VALUES (1, NULL);\nINSERT INTO once VALUES (2, NULL);");
ok(eval { $subscriber->wait_for_log(qr/conflict=insert_exists|duplicate key value violates unique constraint "once_b"/, $start); 1 }, 'a second NULL is a conflict');
is($subscriber->safe_psql('postgres', 'SELECT a, b FROM once'), '1|', 'and is not there');
check_indexes($subscriber, 'postgres', 'after a conflict');

$subscriber->stop;
$publisher->stop;
done_testing();
