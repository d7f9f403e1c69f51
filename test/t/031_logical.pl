# Logical replication into tables with euno indexes, unique and not, with and
# without a replica identity, while the subscriber crashes and its indexes are
# absent: what is applied is in the table and in its indexes, and is what the
# publisher has.

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
my @tables = ('keyed', 'whole', 'plain');
my $schema = <<'SQL';
CREATE EXTENSION euno_index;
CREATE TABLE keyed (id int PRIMARY KEY, a int, b text);
CREATE TABLE whole (a int, b text);
CREATE TABLE plain (a int, b text);
SQL

$publisher->start;
$subscriber->start;
$publisher->safe_psql('postgres', <<"SQL");
$schema
ALTER TABLE whole REPLICA IDENTITY FULL;
INSERT INTO keyed SELECT g, g, 'k' || g FROM generate_series(1, 2000) g;
INSERT INTO whole SELECT g, 'w' || g FROM generate_series(1, 500) g;
CREATE INDEX keyed_a ON keyed USING euno (a);
CREATE PUBLICATION everything FOR TABLE keyed, whole, plain;
SQL
$subscriber->safe_psql('postgres', <<"SQL");
$schema
CREATE INDEX keyed_a ON keyed USING euno (a);
CREATE UNIQUE INDEX keyed_b ON keyed USING euno (b);
CREATE UNIQUE INDEX whole_a ON whole USING euno (a);
CREATE INDEX whole_b ON whole USING euno (b);
CREATE INDEX plain_a ON plain USING euno (a) WITH (structure = art);
SQL
my $conninfo = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION all_of_it CONNECTION '$conninfo' PUBLICATION everything");
$subscriber->wait_for_subscription_sync($publisher, 'all_of_it');

sub compare
{
	my ($name) = @_;

	$publisher->wait_for_catchup('all_of_it');
	for my $table (@tables)
	{
		my $query = "SELECT count(*), sum(a), md5(string_agg(b, ',' ORDER BY a, b)) FROM $table WHERE a > 0";
		my $expected = by_seqscan($publisher, 'postgres', $query);

		$subscriber->safe_psql('postgres', "SELECT count(euno_rebuild(indexrelid)) FROM euno_stat_indexes WHERE relid = '$table'::regclass AND state <> 'ready'");
		same_answers($subscriber, 'postgres', $query, "$name: $table");
		is(by_index($subscriber, 'postgres', $query), $expected, "$name: $table is as on the publisher");
	}
	check_indexes($subscriber, 'postgres', $name);
	return;
}

my $changes = <<'SQL';
UPDATE keyed SET a = a + 10000, b = b || 'u' WHERE id % 3 = 0;
DELETE FROM keyed WHERE id % 5 = 0;
INSERT INTO keyed SELECT g, g, 'n' || g FROM generate_series((SELECT max(id) + 1 FROM keyed), (SELECT max(id) + 100 FROM keyed)) g;
UPDATE whole SET b = b || 'u' WHERE a % 7 = 0;
DELETE FROM whole WHERE a % 11 = 3;
INSERT INTO whole SELECT g, 'n' || g FROM generate_series((SELECT max(a) + 1 FROM whole), (SELECT max(a) + 50 FROM whole)) g;
INSERT INTO plain SELECT g % 10, 'p' || g FROM generate_series(1, 200) g;
SQL

compare('the first copy');
$publisher->safe_psql('postgres', $changes);
compare('after changes');
$publisher->safe_psql('postgres', "BEGIN; $changes ROLLBACK; BEGIN; SAVEPOINT s; $changes ROLLBACK TO s; $changes COMMIT");
compare('after rollbacks');

# Up to 15 the rows of a table without identity are looked for without an index,
# later only by a btree or hash index, from 18 by any that can say what is equal.
my $scans = "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname IN ('whole_a', 'whole_b')";
SKIP:
{
	skip 'any index may be used', 1 if $subscriber->pg_version >= 16;

	# What sessions have counted is there when they are gone.
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'");
	$subscriber->safe_psql('postgres', 'SELECT pg_stat_reset()');
	$publisher->safe_psql('postgres', "UPDATE whole SET b = b || 'x' WHERE a < 100");
	$publisher->wait_for_catchup('all_of_it');
	is($subscriber->safe_psql('postgres', $scans), '0', 'no index of ours finds rows for a full identity');
}

# The subscriber crashes, its indexes are absent, and apply goes on.
$publisher->safe_psql('postgres', $changes);
$subscriber->stop('immediate');
$publisher->safe_psql('postgres', "$changes VACUUM keyed");
$subscriber->start;
$publisher->wait_for_catchup('all_of_it');
is($subscriber->safe_psql('postgres', "SELECT string_agg(indexrelname || ' ' || state, ', ' ORDER BY indexrelname) FROM euno_stat_indexes"),
	'keyed_a absent, keyed_b ready, plain_a absent, whole_a ready, whole_b absent',
	'after a crash, inserts have built the unique indexes only');
compare('after a crash');
$publisher->safe_psql('postgres', $changes);
$subscriber->safe_psql('postgres', 'SELECT count(euno_evict(indexrelid)) FROM euno_stat_indexes');
$publisher->safe_psql('postgres', $changes);
compare('after an eviction');

# A duplicate stops apply, as with btree, until it is out of the way.
$subscriber->safe_psql('postgres', "INSERT INTO whole VALUES (1000000, 'in the way')");
my $log_start = -s $subscriber->logfile;
$publisher->safe_psql('postgres', "INSERT INTO whole VALUES (1000000, 'published')");
ok($subscriber->wait_for_log(qr/(duplicate key value violates unique constraint|already exists in unique index) "whole_a"/, $log_start), 'a duplicate is refused');
$subscriber->safe_psql('postgres', 'DELETE FROM whole WHERE a = 1000000');
compare('after a duplicate');
unlike(slurp_file($subscriber->logfile), qr/did not find row|conflict=(update|delete)_missing/, 'each row to change was found');
$subscriber->stop;
$publisher->stop;
done_testing();
