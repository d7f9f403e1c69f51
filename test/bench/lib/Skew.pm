# Skew.pm: half inserts, half lookups, by Zipf's law, from one session to 64.
#
# By clients: each of both is a statement of its own, so what is measured is mostly
# the server and pgbench.  In the server: each statement does a hundred of them, so
# more of it is the index.  "none" is the control, a table without an index, whose
# rows are found by their ctid: what it loses with more sessions is not an index's.

package Skew;

use strict;
use warnings;
use IO::Handle;
use Bench;

my @ams = qw(none btree euno art);
my $n = int($run{rows} / 4);
my $per_page = 185;				# rows of two int8
my $batch = 100;				# inserts, or lookups, of one statement
my $draws = 2000;				# batches of keys that were drawn before

# What a session does until its plans are made is not counted among latencies.
my $first_transactions = 3;

# measure => [clients, theta, in the server?, what a transaction does, does somebody read the views?]
my %measure;
my @order;

sub add
{
	my ($name, @how) = @_;

	return unless wants_any($name, "$name, 99 of 100");
	$measure{$name} = \@how;
	push @order, $name;
	return;
}

sub choose
{
	for my $case ([0, 1, 64], [0.6, 1, 64], [0.9, 1, 64], [0.99, 1, 4, 8, 16, 32, 64])
	{
		my ($theta, @clients) = @$case;

		add("insert and lookup, skew $theta, $_ clients", $_, $theta, 0, 2) for @clients;
	}
	add('insert and lookup, skew 0.99, 16 clients, views read', 16, 0.99, 0, 2, 1);
	for my $theta (0, 0.6, 0.9, 0.99)
	{
		add("inserts and lookups in the server, skew $theta, $_ clients", $_, $theta, 1, 2 * $batch) for 1, 4, 16, 64;
	}
	return;
}

sub draws_of
{
	my ($theta) = @_;

	return 'draws_' . $theta =~ s/\W//r;
}

# Batches of keys by Zipf's law, frequent ones anywhere, and where their rows are.
sub draw
{
	my ($theta) = @_;
	my $rank = "floor(u * $n)";

	if ($theta > 0)
	{
		my ($zeta, $eta, $power) = zipf_numbers($n, $theta);
		$rank = "CASE WHEN u * $zeta < 1 THEN 0 WHEN u * $zeta < " . (1 + 0.5**$theta)
		  . " THEN 1 ELSE least($n - 1, floor($n * pow($eta * u - $eta + 1, $power))) END";
	}
	sql("CREATE TABLE " . draws_of($theta) . " AS SELECT batch, array_agg(id) AS ids,
			array_agg(format('(%s,%s)', (id - 1) / $per_page, (id - 1) % $per_page + 1)::tid) AS tids
		FROM (SELECT batch, 1 + ($rank)::int8 * 7919 % $n AS id
				FROM (SELECT i / $batch AS batch, random() AS u FROM generate_series(0, $batch * $draws - 1) i) x) y
		GROUP BY batch",
		'CREATE INDEX ON ' . draws_of($theta) . ' USING btree (batch)', 'VACUUM ANALYZE ' . draws_of($theta));
	return;
}

sub load
{
	my %drawn;

	choose();
	return unless @order;
	say_so('loading for skew');
	sql(map { "CREATE SCHEMA IF NOT EXISTS $_" } methods(@ams));
	for my $name (grep { $measure{$_}[2] } @order)
	{
		my $theta = $measure{$name}[1];
		draw($theta) unless $drawn{$theta}++;
	}
	return;
}

# Each run begins with the same table.
sub reload
{
	my ($am) = @_;

	sql('SET client_min_messages = warning', "DROP TABLE IF EXISTS $am.mixed",
		"CREATE TABLE $am.mixed AS SELECT i::int8 AS id, i::int8 AS v FROM generate_series(1, $n) i",
		$am eq 'none' ? () : 'CREATE INDEX ON ' . "$am.mixed " . index_on($am, 'id'), "VACUUM ANALYZE $am.mixed");
	die "there are not $per_page rows on a page\n"
	  unless $n <= $per_page || sql("SELECT ctid FROM $am.mixed WHERE id = $per_page + 1") eq '(1,1)';
	return;
}

sub script
{
	my ($am, $theta, $inside) = @_;
	my $where = $am eq 'none' ? "ctid = ('(' || :block::text || ',' || :item::text || ')')::tid" : 'id = :id';

	return zipf_lines('id', $n, $theta) . "\\set block (:id - 1) / $per_page\n\\set item (:id - 1) % $per_page + 1\n"
	  . "INSERT INTO $am.mixed VALUES (:id, :id);\nSELECT v FROM $am.mixed WHERE $where LIMIT 1;\n" unless $inside;
	my $draws_table = draws_of($theta);
	$where = $am eq 'none' ? 'm.ctid = k.tid' : 'm.id = k.id';
	return "\\set put random(0, $draws - 1)\n\\set get random(0, $draws - 1)\n"
	  . "INSERT INTO $am.mixed SELECT id, id FROM $draws_table, unnest(ids) id WHERE batch = :put;\n"
	  . "SELECT sum(f.v) FROM $draws_table, unnest(ids, tids) k(id, tid),"
	  . " LATERAL (SELECT v FROM $am.mixed m WHERE $where LIMIT 1) f WHERE batch = :get;\n";
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
			my (undef, $number, $latency) = split ' ', $line;
			push @latencies, $latency if $number >= $first_transactions;
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
		my ($clients, $theta, $inside, $operations, $watched) = @{ $measure{$name} };

		say_so("round $round: $name");
		for my $am (turns($round, @ams))
		{
			reload($am);
			my $stop = $watched ? watch() : sub { };
			my ($tps, $server) = pgbench($clients, [[1, script($am, $theta, $inside)]], '-l', "--log-prefix=$run{out}/latencies");
			$stop->();
			note($name, 'thousand/s', $am, $tps * $operations / 1000);
			note("$name, 99 of 100 within", 'us', $am, percentile(99));
			note("$name, processor time", 'us', $am, $server / $operations) if $tps > 0 && !$watched;
		}
	}
	return;
}

# What the most sessions keep of the best throughput, and what becomes of the latency.
sub conclude
{
	for my $set ('insert and lookup', 'inserts and lookups in the server')
	{
		my $value = sub {
			my ($am, $theta, $clients, $what) = @_;
			my $samples = $run{samples}{"$set, skew $theta, $clients clients$what"}{$am};
			return $samples ? median(@$samples) : undef;
		};
		my $late = ', 99 of 100 within';

		for my $am (methods(@ams))
		{
			my @clients = grep { defined $value->($am, 0.99, $_, '') } 1, 4, 8, 16, 32, 64;
			next unless @clients;
			my ($best) = sort { $b <=> $a } map { $value->($am, 0.99, $_, '') } @clients;
			my $most = $clients[-1];
			note("$set, skew 0.99: the most clients, of the best", 'share', $am, $best ? $value->($am, 0.99, $most, '') / $best : 0);
			for my $than ([0, $most, 'with skew 0'], [0.99, 1, 'alone'])
			{
				my $base = $value->($am, @$than[0, 1], $late);
				note("$set, skew 0.99: 99 of 100 of the most clients, of that $than->[2]", 'times', $am,
					$value->($am, 0.99, $most, $late) / $base) if $base;
			}
		}
	}
	return;
}

1;
