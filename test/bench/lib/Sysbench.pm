# Sysbench.pm: the oltp_* tests of sysbench, if it is there.
#
# sysbench makes its tables with btree indexes; they are replaced.

package Sysbench;

use strict;
use warnings;
use Bench;

my @ams = qw(btree euno art);
my @tests = qw(point_select read_only read_write write_only update_index update_non_index insert delete);
my $size = int($run{rows} / 4);

sub measures
{
	return grep { wants($_) } map { ("sysbench oltp_$_", "sysbench oltp_$_, Zipf 0.99") } @tests;
}

sub present
{
	return `sysbench --version 2>/dev/null` ne '';
}

sub sysbench
{
	my ($am, $test, $command, @more) = @_;
	my $text = `EUNO_SYSBENCH=$test sysbench --db-driver=pgsql --pgsql-host=$ENV{PGHOST} --pgsql-port=$ENV{PGPORT} --pgsql-user=$ENV{PGUSER} --pgsql-db=sysbench_$am --tables=1 --table-size=$size --rand-type=uniform @more $command 2>&1`;

	die "sysbench, $am, $test $command: $text\n" if $? != 0;
	return $text;
}

# A database each, for sysbench knows no schemas.
sub load
{
	return unless measures();
	if (!present())
	{
		say_so('no sysbench: its tests are skipped');
		return;
	}
	for my $am (methods(@ams))
	{
		say_so("loading sysbench's table, $am");
		sql("CREATE DATABASE sysbench_$am");
		local $ENV{PGDATABASE} = "sysbench_$am";
		sql('CREATE EXTENSION euno_index');
		sysbench($am, 'read_write', 'prepare', 'oltp_read_write', '--create_secondary=off');
		sql('SET client_min_messages = error', 'ALTER TABLE sbtest1 DROP CONSTRAINT sbtest1_pkey', 'CREATE UNIQUE INDEX ON sbtest1 ' . index_on($am, 'id'),
			'CREATE INDEX ON sbtest1 ' . index_on($am, 'k'), 'VACUUM ANALYZE');
	}
	return;
}

# In turns of a second, as other clients (see Clients.pm).
sub run_round
{
	my ($round) = @_;

	return unless present();
	for my $name (measures())
	{
		my ($test) = $name =~ /oltp_(\w+)/;
		my $script = $name =~ /Zipf/ ? 'test/bench/zipf.lua' : "oltp_$test";

		say_so("round $round: $name");
		for my $turn (1 .. $run{seconds})
		{
			for my $am (turns($round + $turn, @ams))
			{
				my $before = server_time();
				my ($done, $tps) = sysbench($am, $test, 'run', $script, '--threads=4', '--time=1') =~ /transactions:\s+(\d+)\s+\(([0-9.]+) per sec/
					or die "sysbench, $am, $test: no figure\n";
				note_clients($name, $am, $tps, $done > 0 ? (server_time() - $before) * 1e6 / $done : undef);
			}
		}
	}
	return;
}

1;
