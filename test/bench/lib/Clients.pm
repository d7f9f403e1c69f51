# Clients.pm: some sessions: skewed reads, pgbench's own transactions, and YCSB (Cooper et al., SoCC 2010).
#
# Each access method has tables of its own, in a schema of its name.

package Clients;

use strict;
use warnings;
use Bench;

my @ams = qw(btree euno art);
my $n = int($run{rows} / 4);

# measure => [clients, scripts]
my %measure;
my @order;

sub add
{
	my ($name, @how) = @_;

	$measure{$name} = \@how;
	push @order, $name if wants($name);
	return;
}

sub add_skews
{
	for my $theta (0, 0.5, 0.9, 0.99, 1.2, 1.5)
	{
		add("select, 4 clients, skew $theta", 4,
			[[1, zipf_lines('id', $n, $theta) . "SELECT v FROM {am}.acct WHERE id = :id;\n"]]) if wants("select, 4 clients, skew $theta");
	}
	return;
}

# pgbench's select-only and simple-update, the balance indexed as well.
sub add_pgbench
{
	for my $law ('', ', Zipf 0.99')
	{
		my $aid = zipf_lines('aid', $n, $law eq '' ? 0 : 0.99);

		add("pgbench select-only$law", 4, [[1, $aid . "SELECT abalance FROM {am}.accounts WHERE aid = :aid;\n"]])
			if wants("pgbench select-only$law");
		add("pgbench simple-update, balance indexed$law", 4, [[1, $aid . "\\set delta random(-5000, 5000)\nBEGIN;
UPDATE {am}.accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM {am}.accounts WHERE aid = :aid;
INSERT INTO {am}.history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;\n"]]) if wants("pgbench simple-update, balance indexed$law");
	}
	return;
}

# Workloads A to F: what they read, update, insert, scan and modify, percent.
my %ycsb = (
	A => [50, 50, 0, 0, 0], B => [95, 5, 0, 0, 0], C => [100, 0, 0, 0, 0],
	D => [95, 0, 5, 0, 0], E => [0, 0, 5, 95, 0], F => [50, 0, 0, 0, 50]);

sub add_ycsb
{
	my @statements = (
		"SELECT field FROM {am}.usertable WHERE key = :key;\n",
		"UPDATE {am}.usertable SET field = repeat(chr(65 + (:key % 26)::int), 100) WHERE key = :key;\n",
		"INSERT INTO {am}.usertable VALUES (nextval('{am}.newkey'), 'new');\n",
		"\\set length random(1, 100)\nSELECT count(field) FROM (SELECT field FROM {am}.usertable WHERE key >= :key ORDER BY key LIMIT :length) x;\n",
		"BEGIN;\nSELECT field FROM {am}.usertable WHERE key = :key FOR UPDATE;\nUPDATE {am}.usertable SET field = repeat('m', 100) WHERE key = :key;\nEND;\n");

	for my $workload (sort keys %ycsb)
	{
		for my $law ('', ', Zipf 0.99')
		{
			my $name = "YCSB $workload$law";
			next unless wants($name);
			my $key = zipf_lines('key', $n, $law eq '' ? 0 : 0.99);

			# D reads what came last
			$key =~ s/1 \+ permute\(:rank, $n\)/$n - :rank/ if $workload eq 'D';
			add($name, 4, [map { [$ycsb{$workload}[$_], $key . $statements[$_]] } grep { $ycsb{$workload}[$_] > 0 } 0 .. $#statements]);
		}
	}
	return;
}

sub load
{
	add_skews();
	add_pgbench();
	add_ycsb();
	return unless @order;
	my $scripts = join('', map { $_->[1] } map { @{ $measure{$_}[1] } } @order);
	my %table = (
		acct => ["SELECT i::int8 AS id, i::int8 AS v", 'id'],
		accounts => ["SELECT i AS aid, i % 10 AS bid, i % 5000 AS abalance, repeat(' ', 84)::char(84) AS filler", 'aid', 'abalance'],
		usertable => ["SELECT i::int8 AS key, repeat(chr(65 + i % 26), 100) AS field", 'key']);

	say_so('loading for clients');
	for my $am (methods(@ams))
	{
		sql("CREATE SCHEMA IF NOT EXISTS $am", "CREATE SEQUENCE $am.newkey START " . ($n + 1),
			"CREATE TABLE $am.history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))");
		for my $name (grep { $scripts =~ /\{am\}\.$_\b/ } sort keys %table)
		{
			my ($select, @columns) = @{ $table{$name} };

			sql("CREATE TABLE $am.$name AS $select FROM generate_series(1, $n) i",
				(map { "CREATE INDEX ON $am.$name " . index_on($am, $_) } @columns), "VACUUM ANALYZE $am.$name");
		}
	}
	return;
}

# In turns of a second.  Clients and server do not share processors: which of them did
# would be settled when they start, and make half of the time of a short transaction.
sub run_round
{
	my ($round) = @_;

	keep_apart(1);
	for my $name (@order)
	{
		my ($clients, $scripts) = @{ $measure{$name} };

		say_so("round $round: $name");
		for my $turn (1 .. $run{seconds})
		{
			local $run{seconds} = 1;
			for my $am (turns($round + $turn, @ams))
			{
				note_clients($name, $am, pgbench($clients, [map { [$_->[0], $_->[1] =~ s/\{am\}/$am/gr] } @$scripts]));
			}
		}
	}
	keep_apart(0);
	return;
}

1;
