#!/usr/bin/perl
#
# test/bench/workloads.pl DIRECTORY: the workloads of "make bench" on the running
# server that PGHOST and the like name; called by test/bench/server_bench.
#
# Each access method's index is built in its turn on one and the same table,
# searched and dropped, in every round in another order; so all of them meet the
# same disturbances.  Writes results.json, results.md and SVG plots to the
# directory; what it is doing goes to standard error.

use strict;
use warnings;
use JSON::PP;

my ($out) = @ARGV;
my $rows = $ENV{EUNO_ROWS} // 2_000_000;
my $rounds = $ENV{EUNO_ROUNDS} // 3;
my $seconds = $ENV{EUNO_SECONDS} // 4;
my $bin = $ENV{bin};
my $started = time;
my %all;			# measure => { access method => [values] }
my %unit;			# measure => unit
my @order;			# measures as they came up

my %with = (
	btree => 'USING btree (%s)', hash => 'USING hash (%s)', floor => 'USING floor (%s)',
	euno => 'USING euno (%s)', art => 'USING euno (%s) WITH (structure = art)');

sub say_so
{
	printf STDERR "%4d s  %s\n", time - $started, "@_";
	return;
}

# Runs statements in one session; what they print.
sub sql
{
	open(my $psql, '-|', "$bin/psql", '-XAtq', '-v', 'ON_ERROR_STOP=1', map { ('-c', $_) } @_)
		or die "psql: $!\n";
	local $/ = undef;
	my $answer = <$psql> // '';
	close($psql) or die "failed: @_\n";
	$answer =~ s{\n\z}{};
	return $answer;
}

# Milliseconds of the last statement, and its answer.
sub timed
{
	my (@statements) = @_;
	my $last = pop @statements;
	my $answer = sql(@statements, '\timing on', $last);

	$answer =~ s/\n?Time: ([0-9.]+) ms.*//s or die "no time: $answer\n";
	return ($1, $answer);
}

sub note
{
	my ($measure, $unit, $am, $value) = @_;

	push @order, $measure unless exists $unit{$measure};
	$unit{$measure} = $unit;
	push @{ $all{$measure}{$am} }, $value + 0;
	return;
}

sub median
{
	my @v = sort { $a <=> $b } @_;

	return @v % 2 ? $v[ $#v / 2 ] : ($v[ @v / 2 - 1 ] + $v[ @v / 2 ]) / 2;
}

# The methods of a round, each of them first in its turn.
sub turns
{
	my ($round, @ams) = @_;

	push @ams, splice(@ams, 0, $round % @ams);
	return $round % 2 ? reverse @ams : @ams;
}

my $nestloop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;'
  . ' SET enable_bitmapscan = off; SET enable_material = off; SET enable_seqscan = on;'
  . ' SET max_parallel_workers_per_gather = 0; SET jit = off';
my $indexed = "$nestloop; SET enable_seqscan = off; SET enable_sort = off; SET random_page_cost = 0.1";
my $probes = int($rows / 5);
my $texts = { text_c => 'text COLLATE "C"', text_icu => 'text COLLATE "und-x-icu"', text_libc => 'text' };

sub load
{
	my $locale = sql("SELECT collname FROM pg_collation WHERE collprovider = 'c'
		AND collname ~ '^en_US' LIMIT 1");

	$texts->{text_libc} = "text COLLATE \"$locale\"" if $locale ne '';
	delete $texts->{text_libc} if $locale eq '';
	delete $texts->{text_icu} if sql("SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu'") eq '0';
	my $columns = join(', ', map { "$_ $texts->{$_}" } sort keys %$texts);
	my $values = join(', ', map { "to_hex(hashint4(n)) || '.user' || n || '\@example.org'" } keys %$texts);
	sql('CREATE EXTENSION euno_index', "CREATE TABLE item (id int8, a int4, b int4, f float8, u uuid, v int4, $columns)",
		"INSERT INTO item SELECT n, n / 100, n % 100, hashint8(n)::float8 * 0.37 + n * 1e-9, md5(n::text)::uuid, n % 1000, $values
			FROM generate_series(1, $rows) n",
		"CREATE TABLE probe AS SELECT (random() * ($rows - 1))::int8 + 1 AS id FROM generate_series(1, $probes)",
		"CREATE TABLE wanted AS SELECT item.* FROM probe JOIN item USING (id)",
		'VACUUM FREEZE ANALYZE');
	return;
}

# [measure, settings, per, statement]; time is divided by "per".
sub id_queries
{
	my $lists = sub {
		my ($n) = @_;
		return "SELECT sum(x.s) FROM (SELECT array_agg(id) AS ids FROM (SELECT id, row_number() OVER () / $n AS g FROM probe LIMIT "
		  . ($n * int(200_000 / $n)) . ") p GROUP BY g) l, LATERAL (SELECT sum(v) AS s FROM item WHERE id = ANY (l.ids)) x";
	};
	my $ranges = sub {
		my ($n, $times) = @_;
		return "SELECT sum(x.s) FROM (SELECT id FROM probe WHERE id <= $rows - $n LIMIT $times) p, LATERAL (SELECT sum(v) AS s FROM item WHERE id BETWEEN p.id AND p.id + $n - 1) x";
	};
	my $long = $rows > 200_000 ? 100_000 : int($rows / 4);

	return (
		['lookup, int8', $nestloop, $probes, 'SELECT sum(v) FROM probe LEFT JOIN item USING (id)', 'any'],
		['lookup, int8, index only', $nestloop, $probes, 'SELECT count(i.id) FROM probe LEFT JOIN item i USING (id)', 'any'],
		['IN list of 10, a value', "$indexed; SET enable_bitmapscan = off", 200_000, $lists->(10)],
		['IN list of 1000, a value', "$indexed; SET enable_bitmapscan = off", 200_000, $lists->(1000)],
		['range of 10, a row', $indexed, 10 * 20_000, $ranges->(10, 20_000)],
		['range of 100, a row', $indexed, 100 * 5_000, $ranges->(100, 5_000)],
		["range of $long, a row", $indexed, $long * 5, $ranges->($long, 5)],
		['ORDER BY LIMIT 10, a query', $indexed, 20_000,
			'SELECT sum(x.v) FROM (SELECT id FROM probe LIMIT 20000) p, LATERAL (SELECT v FROM item WHERE id >= p.id ORDER BY id LIMIT 10) x'],
		['merge join, a row', "$indexed; SET enable_nestloop = off; SET enable_mergejoin = on", $rows,
			'SELECT count(*) FROM item x JOIN item y ON x.id = y.id'],
		['all rows in order, a row', "$indexed; SET enable_nestloop = off", $rows,
			'SELECT sum(v) FROM (SELECT v FROM item ORDER BY id OFFSET 0) x'],
	);
}

# The methods that can have an index on this, and its queries.
sub searches
{
	my @sets = (['int8', 'id', [qw(btree euno art hash floor)], id_queries()]);

	for my $column ('f', 'u', sort keys %$texts)
	{
		my $name = { f => 'float8', u => 'uuid' }->{$column} // $column;
		my @ams = $column =~ /icu|libc/ ? qw(btree euno hash) : qw(btree euno art hash);
		push @sets, [$name, $column, \@ams,
			["lookup, $name", $nestloop, $probes, "SELECT sum(i.v) FROM wanted w LEFT JOIN item i ON i.$column = w.$column", 'any']];
	}
	push @sets, ['int4, int4', 'a, b', [qw(btree euno art)],
		['lookup, two columns', $nestloop, $probes, 'SELECT sum(i.v) FROM wanted w LEFT JOIN item i ON i.a = w.a AND i.b = w.b', 'any']];
	return @sets;
}

sub index_bytes
{
	my ($am) = @_;

	return sql($am =~ /euno|art/ ? "SELECT euno_index_size('k')" : "SELECT pg_relation_size('k')");
}

sub run_searches
{
	my ($round) = @_;

	for my $set (searches())
	{
		my ($name, $columns, $ams, @queries) = @$set;
		my %answer;

		say_so("round $round: $name");
		for my $am (turns($round, @$ams))
		{
			my ($ms) = timed("SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 0",
				'CREATE INDEX k ON item ' . sprintf($with{$am}, $columns));
			note("build, $name", 's', $am, $ms / 1000) if $am ne 'floor';
			note("size of an entry, $name", 'bytes', $am, index_bytes($am) / $rows) if $am ne 'floor' && $round == 1;
			for my $query (@queries)
			{
				my ($measure, $settings, $per, $statement, $who) = @$query;
				my $answer;

				next if !$who && $am =~ /hash|floor/;
				my $plan = sql("$settings; EXPLAIN (COSTS OFF) $statement");
				if ($plan !~ /Index (?:Only )?Scan (?:Backward )?using k /)
				{
					die "$am, $measure: the index is not used:\n$plan\n" if $am =~ /btree|euno/;
					next;
				}
				die "$measure: another plan:\n$plan\n" if $measure =~ /^merge join/ && $plan !~ /Merge Join/;
				# the first run warms this backend up
				($ms, $answer) = timed($settings, $statement, $statement);
				$answer =~ s/^.*\n//;
				$answer{$measure} //= $answer;
				die "$am, $measure: $answer, but $answer{$measure} before\n" if $answer{$measure} ne $answer;
				note($measure, 'us', $am, $ms * 1000 / $per);
			}
			sql('DROP INDEX k');
		}
	}
	return;
}

# Inserts: "none" is the table alone.
my %insert = (
	'insert random int8' => ['id int8', ['id'], 'hashint8extended(n, FIRST)'],
	'insert random uuid' => ['id uuid', ['id'], 'gen_random_uuid()'],
	'insert ascending int8' => ['id int8', ['id'], 'n + FIRST'],
	'insert random, 5 indexes' => ['a int8, b int8, c int8, d int8, e int8', [qw(a b c d e)],
		join(', ', map { "hashint8extended(n, FIRST + $_)" } 1 .. 5)],
	'insert ascending, 5 indexes' => ['a int8, b int8, c int8, d int8, e int8', [qw(a b c d e)], join(', ', ('n + FIRST') x 5)]);

sub values_of
{
	my ($values, $first) = @_;

	return $values =~ s/FIRST/$first/gr;
}

sub run_inserts
{
	my ($round) = @_;
	my $batch = int($rows / 20);

	for my $measure (sort keys %insert)
	{
		my ($columns, $keys, $values) = @{ $insert{$measure} };

		say_so("round $round: $measure");
		for my $am (turns($round, qw(none btree euno art)))
		{
			my $table = "ins_$am";

			sql("CREATE TABLE $table ($columns, n int8)",
				"CREATE UNLOGGED TABLE source ($columns, n int8)",
				"INSERT INTO source SELECT " . values_of($values, $rows * $round) . ", n FROM generate_series(1, $batch) n",
				"INSERT INTO $table SELECT " . values_of($values, 0) . ", n FROM generate_series(" . (-int($rows / 4)) . ', 0) n',
				($am eq 'none' ? () : map { "CREATE INDEX ON $table " . sprintf($with{$am}, $_) } @$keys), 'CHECKPOINT');
			my $before = sql('SELECT pg_current_wal_insert_lsn()');
			my ($ms) = timed('SELECT 1', "INSERT INTO $table TABLE source");
			note("$measure, a row", 'us', $am, $ms * 1000 / $batch);
			note("WAL of $measure, a row", 'bytes', $am,
				sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$before')") / $batch);
			sql("DROP TABLE $table, source");
		}
	}
	return;
}

sub pgbench
{
	my ($clients, $script, @more) = @_;
	my $file = "$out/script.sql";

	open(my $f, '>', $file) or die "$file: $!\n";
	print $f $script;
	close($f);
	my $text = `$bin/pgbench -n -M prepared -c $clients -j 2 -T $seconds @more -f $file 2>&1`;
	$text =~ /tps = ([0-9.]+) \(without/ or die "pgbench: $text\n";
	return $1;
}

sub run_clients
{
	my ($round) = @_;
	my $n = int($rows / 4);
	my $select = "\\set id random_zipfian(1, $n, %s)\nSELECT v FROM acct WHERE id = 1 + :id * 7919 %% $n\n";
	my $update = "\\set id random(1, $n)\n\\set d random(1, 1000000)\nUPDATE acct SET v = :d WHERE id = :id\n";
	my $mixed = "\\set id random_zipfian(1, $n, 1.2)\nINSERT INTO acct VALUES (:id, :id);\nSELECT v FROM acct WHERE id = :id LIMIT 1\n";

	for my $am (turns($round, qw(btree euno art)))
	{
		say_so("round $round: clients, $am");
		sql('DROP TABLE IF EXISTS acct', "CREATE TABLE acct AS SELECT n::int8 AS id, n::int8 AS v FROM generate_series(1, $n) n",
			map({ "CREATE INDEX ON acct " . sprintf($with{$am}, $_) } 'id', 'v'), 'VACUUM ANALYZE acct');
		note("select, skew $_", 'tps', $am, pgbench(4, sprintf($select, $_))) for qw(1.001 1.2 1.5);
		note('update of an indexed column', 'tps', $am, pgbench(4, $update));
		note("skewed insert and lookup, $_ clients", 'tps', $am, pgbench($_, $mixed)) for 4, 16, 64;
	}
	return;
}

sub format_number
{
	my ($v) = @_;

	return $v >= 1000 ? sprintf('%.0f', $v) : $v >= 10 ? sprintf('%.1f', $v) : sprintf('%.2f', $v);
}

# A table of medians, each with its ratio to btree: above 1 is better.
sub markdown
{
	my ($machine) = @_;
	my @ams = qw(none floor btree hash euno art);
	my $text = "$machine->{server}, revision $machine->{revision}, $machine->{cpus} processors ($machine->{cpu}); "
	  . "$rows rows, medians of $rounds rounds in turns; spread: largest over smallest. x is how many times better than btree.\n\n"
	  . '| | unit | ' . join(' | ', @ams) . " | euno x | art x | spread |\n|---|---|" . '---:|' x (@ams + 3) . "\n";

	for my $measure (@order)
	{
		my $row = $all{$measure};
		my %m = map { $_ => median(@{ $row->{$_} }) } keys %$row;
		my $better = sub {
			my ($am) = @_;
			return '' unless defined $m{$am} && $m{$am} > 0 && $m{btree};
			return sprintf('%.2f', $unit{$measure} eq 'tps' ? $m{$am} / $m{btree} : $m{btree} / $m{$am});
		};
		my @spread = map { my @v = sort { $a <=> $b } @{ $row->{$_} // [] }; @v && $v[0] > 0 ? sprintf('%.2f', $v[-1] / $v[0]) : '-' } qw(btree euno);

		$text .= "| $measure | $unit{$measure} | " . join(' | ', map { defined $m{$_} ? format_number($m{$_}) : '' } @ams)
		  . ' | ' . $better->('euno') . ' | ' . $better->('art') . " | $spread[0], $spread[1] |\n";
		next unless defined $m{none} && $measure =~ /^insert/;
		my $share = sub { my ($am) = @_; return $m{btree} > $m{none} ? ($m{$am} - $m{none}) / ($m{btree} - $m{none}) : 0; };
		$text .= sprintf("| the indexes' share of it, of btree's | | | | 1 | | %.2f | %.2f | | | |\n", $share->('euno'), $share->('art'));
	}
	return $text;
}

# One plot: title, axis, and a line of [x label, value] for each method.
sub svg
{
	my ($file, $title, $unit, $lines) = @_;
	my %color = (btree => '#666666', euno => '#c03030', art => '#3060c0', hash => '#30a030', none => '#bbbbbb', floor => '#bbbbbb');
	my @labels = map { $_->[0] } @{ (values %$lines)[0] };
	my ($max) = sort { $b <=> $a } map { $_->[1] } map { @$_ } values %$lines;
	my $x = sub { return 70 + 480 * ($_[0] + 0.5) / @labels; };
	my $y = sub { return 300 - 240 * $_[0] / $max; };
	my $text = '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="350" font-family="sans-serif" font-size="12">'
	  . '<rect width="640" height="350" fill="white"/>' . "<text x=\"70\" y=\"30\" font-size=\"15\">$title ($unit)</text>"
	  . '<path d="M70 50V300H560" fill="none" stroke="black"/>';

	$text .= sprintf('<text x="%d" y="320" text-anchor="middle">%s</text>', $x->($_), $labels[$_]) for 0 .. $#labels;
	$text .= sprintf('<text x="64" y="%d" text-anchor="end">%s</text><path d="M66 %d H70" stroke="black"/>',
		$y->($max * $_ / 4) + 4, format_number($max * $_ / 4), $y->($max * $_ / 4)) for 0 .. 4;
	my $key = 60;
	for my $am (sort keys %$lines)
	{
		my @v = map { $_->[1] } @{ $lines->{$am} };
		$text .= sprintf('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/><text x="570" y="%d" fill="%s">%s</text>',
			$color{$am}, join(' ', map { sprintf('%d,%d', $x->($_), $y->($v[$_])) } 0 .. $#v), $key += 18, $color{$am}, $am);
	}
	open(my $f, '>', "$out/$file.svg") or die "$out/$file.svg: $!\n";
	print $f "$text</svg>\n";
	close($f);
	return;
}

# A plot of measures that a pattern picks; what it captures are the labels.
sub plot
{
	my ($file, $title, $pattern) = @_;
	my (%lines, $unit);

	for my $measure (grep { /$pattern/ } @order)
	{
		my ($label) = $measure =~ /$pattern/;
		$unit = $unit{$measure};
		push @{ $lines{$_} }, [$label, median(@{ $all{$measure}{$_} })] for keys %{ $all{$measure} };
	}
	return unless %lines;
	my ($most) = sort { $b <=> $a } map { scalar @$_ } values %lines;
	delete $lines{$_} for grep { @{ $lines{$_} } < $most } keys %lines;
	svg($file, $title, $unit, \%lines);
	return;
}

# The trees alone, by size: written by server_bench before.
sub growth
{
	open(my $f, '<', "$out/growth.txt") or return;
	while (<$f>)
	{
		note("tree alone, lookup among $2", 'ns', $1 eq 'bptree' ? 'euno' : 'art', $3) if /^(\S+) (\d+) ([0-9.]+)$/;
	}
	return;
}

load();
for my $round (1 .. $rounds)
{
	run_searches($round);
	run_inserts($round);
	run_clients($round);
}
growth();
my $machine = {
	server => 'PostgreSQL ' . sql('SHOW server_version'), revision => $ENV{revision} // 'unknown',
	cpus => `nproc` + 0, cpu => (map { /^model name\s*:\s*(.*)/ ? $1 : () } `cat /proc/cpuinfo`)[0] // 'unknown',
	kernel => `uname -r` =~ s/\n//r, rows => $rows, rounds => $rounds };
unlink "$out/script.sql";
open(my $json, '>', "$out/results.json") or die "$!\n";
print $json JSON::PP->new->pretty->canonical->encode({ machine => $machine, units => \%unit, values => \%all });
close($json);
plot('skew', 'select, 4 clients, by skew', qr/^select, skew (.*)/);
plot('clients', 'skewed insert and lookup, by clients', qr/^skewed insert and lookup, (\d+)/);
plot('growth', 'lookup in the tree alone, by entries', qr/^tree alone, lookup among (\d+)/);
plot('wal', 'WAL of inserts after a checkpoint, a row', qr/^WAL of insert (.*), a row/);
plot('memory', 'size of an entry', qr/^size of an entry, (.*)/);
my $markdown = markdown($machine);
open(my $md, '>', "$out/results.md") or die "$!\n";
print $md $markdown;
close($md);
print $markdown;
