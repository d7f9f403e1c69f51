# Copies of a data directory: an online base backup, a server that pg_rewind has
# turned into a standby, and a cold copy that is recovered to a point in time.
# None of them carries a tree that is behind its table.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $settings = "euno.snapshot_on_shutdown = on\neuno.auto_rebuild = off\nwal_log_hints = on\nwal_keep_size = 128MB";
my $old = euno_node('old', $settings, allows_streaming => 1, has_archiving => 1);
$old->start;
$old->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 5000) g;
CREATE INDEX t_a ON t USING euno (a);
SQL

# Is the answer right, with and without the index?  $expected: the newest row.
sub right
{
	my ($node, $expected, $name) = @_;
	my $query = 'SELECT count(*), max(a) FROM t WHERE a > 0';

	is($node->safe_psql('postgres', 'SELECT state FROM euno_stat_indexes'), 'absent', "$name: nothing is believed");
	ok(!-e $node->data_dir . '/euno_index.snapshot', "$name: the file is gone");
	is(by_index($node, 'postgres', $query), $expected, "$name: the answer");
	$node->safe_psql('postgres', "SELECT euno_rebuild('t_a')");
	same_answers($node, 'postgres', $query, $name);
	check_indexes($node, 'postgres', $name);
	return;
}

# The server has read a snapshot; a backup of it while it runs has none.
$old->restart;
is($old->safe_psql('postgres', 'SELECT state FROM euno_stat_indexes'), 'ready', 'the primary has read its file');
$old->backup('online');
ok(!-e $old->backup_dir . '/online/euno_index.snapshot', 'an online backup has no file');
$old->stop;
$old->backup_fs_cold('cold');
ok(-e $old->backup_dir . '/cold/euno_index.snapshot', 'a cold copy has');
$old->start;
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init_from_backup($old, 'online', has_streaming => 1);
$new->start;
$old->safe_psql('postgres', "DELETE FROM t WHERE a > 4000; INSERT INTO t VALUES (6000, 'streamed')");
$old->wait_for_catchup($new, 'replay', $old->lsn('insert'));
$new->promote;
right($new, '4001|6000', 'a promoted standby');

# Both go on for themselves; the old one is shut down with a snapshot of rows
# that will not have been.
$old->safe_psql('postgres', "VACUUM t; INSERT INTO t SELECT g, 'diverged' FROM generate_series(7001, 7500) g");
my $target_time = $old->safe_psql('postgres', 'SELECT now()');
$old->safe_psql('postgres', "DELETE FROM t WHERE a < 100; INSERT INTO t VALUES (9000, 'too late'); SELECT pg_switch_wal()");
$new->safe_psql('postgres', "INSERT INTO t VALUES (8000, 'after promotion'); CHECKPOINT");
$old->stop;
ok(-e $old->data_dir . '/euno_index.snapshot', 'the old primary leaves a file');
my $conf = slurp_file($old->data_dir . '/postgresql.conf');
command_ok([ 'pg_rewind', '--debug', '--source-server', $new->connstr('postgres'),
		'--target-pgdata', $old->data_dir, '--no-sync' ], 'pg_rewind');
unlink $old->data_dir . '/postgresql.conf';
append_to_file($old->data_dir . '/postgresql.conf', $conf);

# pg_rewind removes what the source has not; a file that it had missed is as bad.
copy_cold_file($old);
$old->enable_streaming($new);
$old->set_standby_mode;
$old->start;
$new->wait_for_catchup($old, 'replay', $new->lsn('insert'));
$old->promote;
right($old, '4002|8000', 'a rewound primary');

# To a point in time, from the cold copy, whose pg_control says "shut down".
my $pitr = PostgreSQL::Test::Cluster->new('pitr');
$pitr->init_from_backup($old, 'cold', has_restoring => 1, standby => 0);
$pitr->append_conf('postgresql.conf',
	"archive_mode = off\nrecovery_target_time = '$target_time'\nrecovery_target_action = promote\nrecovery_target_timeline = 'current'");
ok(-e $pitr->data_dir . '/euno_index.snapshot', 'recovery starts with a file');
$pitr->start;
wait_for_recovery($pitr);
like(slurp_file($pitr->logfile), qr/ignored "euno_index.snapshot"\n.*DETAIL:  The server is going to replay WAL/, 'which is ignored');
right($pitr, '4501|7500', 'recovery to a point in time');
$_->stop for $old, $new, $pitr;
done_testing();

sub copy_cold_file
{
	my ($node) = @_;

	PostgreSQL::Test::Utils::system_or_bail('cp', $node->backup_dir . '/cold/euno_index.snapshot', $node->data_dir);
	return;
}
