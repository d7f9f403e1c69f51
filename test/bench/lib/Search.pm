# Search.pm: lookups, lists, ranges, order and joins on one table.
#
# Each access method's index is built in its turn on one and the same table,
# searched and dropped, in every round in another order; so all of them meet the
# same disturbances.

package Search;

use strict;
use warnings;
use Bench;

my $probes = int($run{rows} / 5);
my $few = $probes < 20_000 ? $probes : 20_000;
my $nestloop = 'enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;'
  . ' SET enable_bitmapscan = off; SET enable_material = off; SET max_parallel_workers_per_gather = 0';
my $indexed = "$nestloop; SET enable_seqscan = off; SET enable_sort = off; SET random_page_cost = 0.1";
my $string = "to_hex(hashint4(n)) || '.user' || n || '\@example.org'";
my %wide;

# What a column is called where it is measured.  Enums are too few for an index
# of their own.
sub name_of
{
	my ($column) = @_;

	return { f => 'float8', u => 'uuid', enum => 'enum and int8', ints => 'array' }->{$column} // $column =~ tr/_/ /r;
}

# Columns that are there only if they are asked for: [type, value].  Text in
# collations, as far as the server has them.
sub find_wide
{
	%wide = (
		numeric => ['numeric(18,2)', 'hashint8(n)::numeric * 1000000 + n + 0.01 * (n % 100)'],
		interval => ['interval', "make_interval(days => hashint4(n::int) % 100000, secs => n)"],
		inet => ['inet', "'10.0.0.0'::inet + n"],
		jsonb => ['jsonb', 'to_jsonb(hashint8(n))'],
		ints => ['int4[]', 'ARRAY[hashint8(n), n]'],
		range => ['int4range', 'int4range(n::int4, n::int4 + 5)'],
		enum => ['weekday', '(enum_range(NULL::weekday))[n % 7 + 1]'],
		text_c => ['text COLLATE "C"', $string]);
	$wide{text_libc} = ['text COLLATE en_us', $string] if sql("SELECT count(*) FROM pg_collation WHERE collname = 'en_us'");
	$wide{text_icu} = ['text COLLATE "und-x-icu"', $string] if sql("SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu'");
	say_so('no collation of en_US.UTF-8') unless $wide{text_libc};
	say_so('no collation of ICU') unless $wide{text_icu};
	for my $column (keys %wide)
	{
		my $name = name_of($column);
		delete $wide{$column} unless wants_any("build, $name", "size of an entry, $name", "lookup, $name", "lookup, $name, Zipf 0.99", "count, $name, a row", "columns read, $name, a row");
	}
	return;
}

# Rows wanted by uniform and by Zipf's law, in random order, and a few of each
# to warm a session up.
sub load
{
	my $rows = $run{rows};
	my $u = '(1 - random())';

	say_so("loading $rows rows");
	find_wide();
	sql("CREATE TYPE weekday AS ENUM ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')") if $wide{enum};
	my $columns = join('', map { ", $_ $wide{$_}[0]" } sort keys %wide);
	my $values = join('', map { ", $wide{$_}[1]" } sort keys %wide);
	sql("CREATE TABLE item (id int8, s int8, a int4, b int4, f float8, u uuid, v int4, g int4$columns)",
		"INSERT INTO item SELECT n, hashint8(n)::int8 << 32 | n, n / 100, n % 100, hashint8(n)::float8 * 0.37 + n * 1e-9, md5(n::text)::uuid, n % 1000, (hashint4(n) & 2147483647) % ($rows / 6)$values
			FROM generate_series(1, $rows) n",
		"CREATE TABLE probe AS SELECT (random() * ($rows - 1))::int8 + 1 AS id FROM generate_series(1, $probes)",
		# theta 0.99: the continuous law, and popular numbers anywhere
		"CREATE TABLE probe_zipf AS SELECT (rank * 7919 % $rows) + 1 AS id FROM
			(SELECT floor(($u * ($rows ^ 0.01 - 1) + 1) ^ 100)::int8 - 1 AS rank FROM generate_series(1, $probes)) r");
	for my $law ('', (grep { $_->[0] =~ /Zipf/ } wanted_queries(map { @$_[3 .. $#$_] } sets())) ? '_zipf' : ())
	{
		sql("CREATE TABLE wanted$law AS SELECT item.* FROM probe$law JOIN item USING (id) ORDER BY random()",
			"CREATE TABLE probe${law}_warm AS SELECT * FROM probe$law LIMIT $probes / 10",
			"CREATE TABLE wanted${law}_warm AS SELECT * FROM wanted$law LIMIT $probes / 10");
	}
	sql('VACUUM FREEZE ANALYZE');
	return;
}

# [measure, settings, what time is divided by, statement, who is there besides
# btree and euno]; "probe" and "wanted" stand for tables of either law.
sub id_queries
{
	my $rows = $run{rows};
	my $lists = sub {
		my ($n) = @_;
		return "SELECT sum(x.s) FROM (SELECT array_agg(id) AS ids FROM (SELECT id, row_number() OVER () / $n AS g FROM {probe} LIMIT "
		  . ($n * int(200_000 / $n)) . ") p GROUP BY g) l, LATERAL (SELECT sum(v) AS s FROM item WHERE id = ANY (l.ids)) x";
	};
	my $ranges = sub {
		my ($n, $times) = @_;
		return "SELECT sum(x.s) FROM (SELECT id FROM {probe} WHERE id <= $rows - $n LIMIT $times) p,
			LATERAL (SELECT sum(v) AS s FROM item WHERE id BETWEEN p.id AND p.id + $n - 1) x";
	};
	my $listed = $probes < 200_000 ? 1000 * int($probes / 1000) : 200_000;
	my $long = $rows > 200_000 ? 100_000 : int($rows / 4);

	return (
		['lookup, int8', $nestloop, $probes, 'SELECT sum(v) FROM {probe} LEFT JOIN item USING (id)', 'hash floor'],
		['lookup, int8, index only', $nestloop, $probes, 'SELECT count(i.id) FROM {probe} LEFT JOIN item i USING (id)', 'floor'],
		['IN list of 10, a value', $indexed, $listed, $lists->(10), 'floor'],
		['IN list of 1000, a value', $indexed, $listed, $lists->(1000), 'floor'],
		['range of 10, a row', $indexed, 10 * $few, $ranges->(10, $few), 'floor'],
		['range of 100, a row', $indexed, 100 * $few / 4, $ranges->(100, $few / 4), 'floor'],
		["range of $long, a row", $indexed, $long * 5, $ranges->($long, 5), 'floor'],
		['ORDER BY LIMIT 10, a query', $indexed, $few,
			"SELECT sum(x.v) FROM (SELECT id FROM {probe} LIMIT $few) p, LATERAL (SELECT v FROM item WHERE id >= p.id ORDER BY id LIMIT 10) x", 'floor'],
		['merge join, a row', "$indexed; SET enable_nestloop = off; SET enable_mergejoin = on", $rows,
			'SELECT count(*) FROM item x JOIN item y ON x.id = y.id', 'floor'],
		['all rows in order, a row', "$indexed; SET enable_nestloop = off", $rows,
			'SELECT sum(v) FROM (SELECT v FROM item ORDER BY id OFFSET 0) x', 'floor'],
	);
}

# All rows, by the index alone: counted, and with the columns read.
sub all_rows
{
	my ($name, $columns) = @_;
	my $counts = join(', ', map { "count($_)" } split(/, /, $columns));

	return (
		["count, $name, a row", $indexed, $run{rows}, 'SELECT count(*) FROM item', ''],
		["columns read, $name, a row", $indexed, $run{rows}, "SELECT $counts FROM item", '']);
}

# [name, columns, methods, queries]: an index and what is asked of it.
sub sets
{
	my @sets = (['int8', 'id', [qw(btree euno art hash floor)], id_queries(), all_rows('int8', 'id')]);

	push @sets, ['int8 sparse', 's', [qw(btree euno art hash)],
		['lookup, int8 sparse', $nestloop, $probes, 'SELECT sum(i.v) FROM {wanted} w LEFT JOIN item i ON i.s = w.s', 'hash'],
		['lookup, int8 sparse, index only', $nestloop, $probes, 'SELECT count(i.s) FROM {wanted} w LEFT JOIN item i ON i.s = w.s', ''],
		all_rows('int8 sparse', 's')];
	for my $column ('f', 'u', sort keys %wide)
	{
		my $name = name_of($column);
		my $others = $column eq 'enum' ? '' : $column =~ /^(f|u|text_.*)$/ ? 'hash floor' : 'hash';
		my @ams = (qw(btree euno), $column =~ /icu|libc|jsonb/ ? () : 'art', split(' ', $others));
		my ($columns, $more) = $column eq 'enum' ? ('enum, id', 'AND i.id = w.id') : ($column, '');
		push @sets, [$name, $columns, \@ams,
			["lookup, $name", $nestloop, $probes, "SELECT sum(i.v) FROM {wanted} w LEFT JOIN item i ON i.$column = w.$column $more", $others],
			all_rows($name, $columns)];
	}
	push @sets, ['int4, int4', 'a, b', [qw(btree euno art)],
		['lookup, two columns', $nestloop, $probes, 'SELECT sum(i.v) FROM {wanted} w LEFT JOIN item i ON i.a = w.a AND i.b = w.b', ''],
		all_rows('two columns', 'a, b')];
	push @sets, ['int4 of 100 values', 'b', [qw(btree euno art)],
		['count, one of 100 values, a row', $indexed, int($run{rows} / 100), 'SELECT count(*) FROM item WHERE b = 55', '']];
	push @sets, ['int4 of 1000 values', 'v', [qw(btree euno art)],
		['equal keys, index only, a row', $indexed, int($run{rows} / 10), 'SELECT count(*) FROM item WHERE v < 100', ''],
		['count, groups of 1000 values, a row', $indexed, $run{rows}, 'SELECT count(n) FROM (SELECT v, count(*) AS n FROM item GROUP BY v) x', '']];
	push @sets, ['int4 of six rows each', 'g', [qw(btree euno art)],
		['six rows of a key, as planned, a query', 'max_parallel_workers_per_gather = 0', $few,
			"SELECT sum(x.s) FROM (SELECT g FROM {wanted} LIMIT $few) w, LATERAL (SELECT sum(v) AS s FROM item i WHERE i.g = w.g) x", ''],
		['count, a third of values of six rows each, a row', $indexed, int($run{rows} / 3), "SELECT count(*) FROM item WHERE g < $run{rows} / 18", '']];
	push @sets, ['int4 of 1000 values, int8', 'v, id', [qw(btree euno art)],
		['page of 20 by a row comparison, a query', $indexed, $few,
			"SELECT sum(x.id) FROM (SELECT v, id FROM {wanted} LIMIT $few) w,
				LATERAL (SELECT i.id, i.u FROM item i WHERE (i.v, i.id) > (w.v, w.id) ORDER BY i.v, i.id LIMIT 20) x", ''],
		['count, by both of 1000 values and int8, a row', $indexed, int($run{rows} / 20), "SELECT count(*) FROM item WHERE v < 100 AND id > $run{rows} / 2", '']];
	return @sets;
}

# The queries of a set that are asked for, each by both laws, as [measure,
# settings, divisor, statement to warm up, statement, who].
sub wanted_queries
{
	my @wanted;

	for my $query (@_)
	{
		my ($measure, $settings, $per, $statement, $who) = @$query;
		for my $law ($statement =~ /\{/ ? ('', '_zipf') : (''))
		{
			my $name = $law eq '' ? $measure : "$measure, Zipf 0.99";
			next unless wants($name);
			push @wanted, [$name, $settings, $per,
				$statement =~ s/\{(\w+)\}/$1${law}_warm/gr, $statement =~ s/\{(\w+)\}/$1$law/gr, $who];
		}
	}
	return @wanted;
}

sub build
{
	my ($am, $name, $columns) = @_;
	my $create = 'CREATE INDEX k ON item ' . index_on($am, $columns);
	my ($plain, $parallel) = ("build, $name", "build, $name, default parallelism");

	# several processes have no one's processor time
	if ($name eq 'int8' && $run{clock} eq 'wall' && wants($parallel) && $am ne 'floor' && $am ne 'hash')
	{
		my @results = session("SET maintenance_work_mem = '512MB'", $create);
		note($parallel, 's', $am, $results[1][0] / 1000);
		sql('DROP INDEX k');
	}
	my @results = session("SET maintenance_work_mem = '512MB'", 'SET max_parallel_maintenance_workers = 0', $create);
	note($plain, 's', $am, $results[2][0] / 1000) if wants($plain) && $am ne 'floor';
	my $size = "size of an entry, $name";
	note($size, 'bytes', $am, index_bytes($am, 'k') / $run{rows}) if wants($size) && $am ne 'floor';
	return;
}

sub run_set
{
	my ($round, $set) = @_;
	my ($name, $columns, $ams, @queries) = @$set;
	my %answers;

	@queries = wanted_queries(@queries);
	return unless @queries || wants_any("build, $name", "size of an entry, $name");
	say_so("round $round: $name");
	for my $am (turns($round, @$ams))
	{
		build($am, $name, $columns);
		my @mine = grep { $am !~ /hash|floor/ || $_->[5] =~ /$am/ } @queries;
		my @results = session('SELECT count(v) FROM item',
			map { ('RESET ALL', "SET $_->[1]", "EXPLAIN (COSTS OFF) $_->[4]", $_->[3], $_->[4]) } @mine);
		shift @results;
		for my $query (@mine)
		{
			my ($measure, undef, $per) = @$query;
			my (undef, undef, $plan, undef, $result) = splice(@results, 0, 5);
			my ($ms, $answer) = @$result;

			my $used = $measure =~ /as planned/ ? qr/Index Scan using k |Bitmap Index Scan on k/ :
			  qr/Index (?:Only )?Scan (?:Backward )?using k /;
			if ($plan->[1] !~ $used)
			{
				die "$am, $measure: the index is not used:\n$plan->[1]\n" if $am =~ /btree|euno/;
				next;
			}
			die "$measure: another plan:\n$plan->[1]\n" if $measure =~ /^merge join/ && $plan->[1] !~ /Merge Join/;
			$answers{$measure} //= $answer;
			die "$am, $measure: $answer, but $answers{$measure} before\n" if $answers{$measure} ne $answer;
			note($measure, 'us', $am, $ms * 1000 / $per);
		}
		sql('DROP INDEX k');
	}
	return;
}

sub run_round
{
	my ($round) = @_;

	run_set($round, $_) for sets();
	return;
}

1;
