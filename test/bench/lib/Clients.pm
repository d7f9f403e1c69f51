# Clients.pm: many sessions: skewed reads and writes, pgbench's own
# transactions, and YCSB (Cooper et al., SoCC 2010).
#
# Each access method has tables of its own, in a schema of its name.

package Clients;

use strict;
use warnings;
use IO::Handle;
use Bench;

my @ams = qw(btree euno art);
my $n = int($run{rows} / 4);

# measure => [clients, scripts, are latencies wanted?, does somebody read the views?]
my %measure;
my @order;

sub add
{
	my ($name, @how) = @_;

	$measure{$name} = \@how;
	push @order, $name if wants($name);
	return;
}

sub get_and_put
{
	my ($theta) = @_;

	return [[1, zipf_lines('id', $n, $theta) . "INSERT INTO {am}.mixed VALUES (:id, :id);\nSELECT v FROM {am}.mixed WHERE id = :id LIMIT 1;\n"]];
}

sub add_skews
{
	for my $theta (0, 0.5, 0.9, 0.99, 1.2, 1.5)
	{
		add("select, 4 clients, skew $theta", 4,
			[[1, zipf_lines('id', $n, $theta) . "SELECT v FROM {am}.acct WHERE id = :id;\n"]]) if wants("select, 4 clients, skew $theta");
	}
	for my $case ([0, 1, 64], [0.6, 1, 64], [0.9, 1, 64], [0.99, 1, 4, 8, 16, 32, 64])
	{
		my ($theta, @clients) = @$case;

		for my $clients (@clients)
		{
			my $name = "insert and lookup, skew $theta, $clients clients";
			add($name, $clients, get_and_put($theta), 1) if wants($name);
		}
	}
	my $watched = 'insert and lookup, skew 0.99, 16 clients, views read';
	add($watched, 16, get_and_put(0.99), 0, 1) if wants($watched);
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
		mixed => ["SELECT i::int8 AS id, i::int8 AS v", 'id'],
		accounts => ["SELECT i AS aid, i % 10 AS bid, i % 5000 AS abalance, repeat(' ', 84)::char(84) AS filler", 'aid', 'abalance'],
		usertable => ["SELECT i::int8 AS key, repeat(chr(65 + i % 26), 100) AS field", 'key']);

	say_so('loading for clients');
	for my $am (methods(@ams))
	{
		sql("CREATE SCHEMA $am", "CREATE SEQUENCE $am.newkey START " . ($n + 1),
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

# The latency, in microseconds, that so many percent of the transactions that pgbench
# has logged are within; the logs go away.
sub percentile
{
	my ($percent) = @_;
	my @latencies;

	for my $file (glob("$run{out}/latencies.*"))
	{
		open(my $f, '<', $file) or die "$file: $!\n";
		while (my $line = <$f>)
		{
			push @latencies, (split ' ', $line)[2];
		}
		close($f);
		unlink $file;
	}
	@latencies = sort { $a <=> $b } @latencies;
	return @latencies ? $latencies[ int($#latencies * $percent / 100) ] : 0;
}

# Reads all that there is to read about contention, ten times a second, until stopped.
sub watch
{
	my $pid = open(my $psql, '|-', "exec $run{bin}/psql -Xq -o /dev/null") or die "psql: $!\n";

	print $psql "SELECT count(*) FROM euno_stat_worker, (SELECT h.* FROM euno_stat_indexes i, euno_hot_leaves(i.indexrelid::regclass, 64) h) x \\watch 0.1\n";
	$psql->flush;
	return sub { kill 'TERM', $pid; close($psql); };
}

sub run_round
{
	my ($round) = @_;

	for my $name (@order)
	{
		my ($clients, $scripts, $latencies, $watched) = @{ $measure{$name} };

		say_so("round $round: $name");
		for my $am (turns($round, @ams))
		{
			my @log = $latencies ? ('-l', "--log-prefix=$run{out}/latencies") : ();
			my $stop = $watched ? watch() : sub { };
			note($name, 'tps', $am, pgbench($clients, [map { [$_->[0], $_->[1] =~ s/\{am\}/$am/gr] } @$scripts], @log));
			$stop->();
			note("$name, 99 of 100 within", 'us', $am, percentile(99)) if $latencies;
		}
	}
	return;
}

1;
