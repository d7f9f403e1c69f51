# Plans.pm: an application's queries (plans.sql), as the planner plans them.
#
# Each access method has the same tables (shop.sql) in a schema of its name, with the same
# statistics: so the planner differs by the index alone.

package Plans;

use strict;
use warnings;
use Bench;

my @ams = qw(btree euno art);
my %size = (users => int($run{rows} / 10), products => int($run{rows} / 40), orders => int($run{rows} * 3 / 4), items => $run{rows});
my @settings = (['random_page_cost 4', 'random_page_cost = 4; SET max_parallel_workers_per_gather = 0'],
	['random_page_cost 1.1', 'random_page_cost = 1.1; SET max_parallel_workers_per_gather = 0'],
	['random_page_cost 1.1, 2 workers', 'random_page_cost = 1.1; SET max_parallel_workers_per_gather = 2']);

# What {some users} and the like stand for.
my %conditions = (
	'some users' => ['u.id = 777', 'u.id BETWEEN 1000 AND 1100', (map { "u.score < $_" } 50, 100, 500, 1000, 2000), 'u.id < {users/10}'],
	'some orders' => ['o.id = 777', (map { "o.r < $_" } 650, 10_000, 20_000, 50_000, 100_000, 200_000),
		(map { "o.created >= '2023-$_'" } '05-28', '05-08', '04-12')],
	'few users' => ['u.id = 777', 'u.city = 55', 'u.country = 150', 'u.score < 50'],
	'share' => [map { "r < $_" } 100, 1000, 10_000, 50_000, 100_000, 200_000, 500_000],
	'date' => [map { "'2022-$_'" } '01-06', '02-22', '04-15', '09-15']);

my @queries;					# [name, statement]

# A query for each of the conditions that one stands for.
sub each_condition
{
	my ($query) = @_;

	return $query unless $query =~ /\{(some users|some orders|few users|share|date)\}/;
	my $what = $1;
	return map { $query =~ s/\{$what\}/$_/r } @{ $conditions{$what} };
}

# Numbers from 1 to the last, in no order.
sub list
{
	my ($n, $last) = @_;

	return join(', ', map { 1 + $_ * 7919 * 104_729 % $last } 1 .. $n);
}

sub read_queries
{
	open(my $f, '<', 'test/bench/plans.sql') or die "plans.sql: $!\n";
	while (my $line = <$f>)
	{
		next unless $line =~ s/;\n\z//;
		for my $query (map { s/\{(\w+)\/(\d+)\}/int($size{$1} \/ $2)/ger } each_condition($line))
		{
			push @queries, [$query, $query =~ s/\{(\d+) of (\w+)\}/list($1, $size{$2})/ger] if grep { wants(measure($_, $query)) } @settings;
		}
	}
	close($f);
	return;
}

sub measure
{
	my ($setting, $query) = @_;

	return "plans, $setting->[0]: $query";
}

# The indexes that shop.sql tells of, by an access method.
sub indexes
{
	my ($am, $text) = @_;
	my @statements;

	while ($text =~ /^-- indexes on (\w+): (.*)/mg)
	{
		my ($table, $list) = ($1, $2);
		for my $index (split /; /, $list)
		{
			my ($unique, $columns, $where) = $index =~ /^(unique |)(.*?)( where .*|)$/;
			my $name = join('_', $table, $columns =~ /(\w+)/g) . ($where ? '_part' : '');
			push @statements, "CREATE $unique INDEX $name ON $table " . index_on($am, $columns) . $where;
		}
	}
	return @statements;
}

# Tables of every schema with the statistics of the first one's.
sub copy_statistics
{
	my $columns = sql("SELECT string_agg('s.' || attname, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'pg_statistic'::regclass AND attnum > 1");
	my $copies = "pg_class c JOIN pg_class first ON first.relname = c.relname AND first.relnamespace = 'plans_btree'::regnamespace"
	  . " WHERE c.relnamespace IN (" . join(', ', map { "'plans_$_'::regnamespace" } grep { $_ ne 'btree' } methods(@ams)) . ")";

	sql("DELETE FROM pg_statistic WHERE starelid IN (SELECT c.oid FROM $copies)",
		"INSERT INTO pg_statistic SELECT x.oid, $columns FROM (SELECT c.oid, first.oid AS first FROM $copies) x JOIN pg_statistic s ON s.starelid = x.first",
		"UPDATE pg_class c SET reltuples = x.reltuples FROM (SELECT c.oid, first.reltuples FROM $copies) x WHERE c.oid = x.oid AND c.relkind = 'r'");
	return;
}

# Names are of the C collation, which a radix tree needs, on all sides.
sub load
{
	read_queries();
	return unless @queries;
	my $text = do { local (@ARGV, $/) = ('test/bench/shop.sql'); <> };
	$text =~ s/:(users|products|orders|items)\b/$size{$1}/g;
	$text =~ s/\btext (?=NOT)/text COLLATE "C" /g;
	for my $am ('btree', grep { $_ ne 'btree' } methods(@ams))
	{
		my $file = "$run{out}/shop.sql";

		say_so("loading for plans, $am");
		open(my $f, '>', $file) or die "$file: $!\n";
		print $f "SET client_min_messages = error;\nCREATE SCHEMA plans_$am;\nSET search_path = plans_$am;\n\\o /dev/null\n$text",
		  map { "$_;\n" } indexes($am, $text), 'VACUUM ANALYZE';
		close($f);
		sql("\\i $file");
		unlink $file;
	}
	copy_statistics();
	return;
}

# Indexes must not differ in what they find; where ties may be broken in two ways,
# in how many rows they find.
sub check_answers
{
	my ($setting, $query) = @_;
	my %answers;

	return unless $query->[1] =~ /^SELECT/;
	my $rows = $query->[1] =~ /LIMIT/ ? 'count(*)' : 'count(*), sum(hashtext(x::text)::int8)';
	for my $am (methods(@ams))
	{
		push @{ $answers{sql("SET search_path = plans_$am", "SET $setting->[1]", "SELECT $rows FROM ($query->[1]) x")} }, $am;
	}
	die "$query->[0]: " . join(' and ', map { "@{ $answers{$_} }" } sort keys %answers) . " differ\n" if keys %answers > 1;
	return;
}

# The least time of some runs, after one that fills the session's caches, and the plan.
sub run_query
{
	my ($am, $setting, $query) = @_;
	my $explain = "EXPLAIN (ANALYZE, TIMING OFF) $query->[1]";
	my $writes = $query->[1] !~ /^SELECT/;

	$explain = "BEGIN; $explain; ROLLBACK" if $writes;
	my (undef, $plan, undef, @results) = map { $_->[1] } session("SET search_path = plans_$am; SET $setting->[1]",
		"EXPLAIN (COSTS OFF) $query->[1]", ($explain) x ($writes ? 3 : 4));
	sql("VACUUM plans_$am.upd") if $writes;
	my ($least) = sort { $a <=> $b } map { /Execution Time: ([0-9.]+)/ ? $1 : die "$query->[0]: $_\n" } @results;
	return ($least, $plan);
}

sub run_round
{
	my ($round) = @_;
	my $turn = $round;

	for my $setting (@settings)
	{
		say_so("round $round: plans, $setting->[0]");
		for my $query (grep { wants(measure($setting, $_->[0])) } @queries)
		{
			check_answers($setting, $query) if $round == 1;
			for my $am (turns(++$turn, @ams))
			{
				my ($ms, $plan) = run_query($am, $setting, $query);
				note(measure($setting, $query->[0]), 'ms', $am, $ms);
				$run{plan}{ measure($setting, $query->[0]) }{$am} = $plan;
			}
		}
	}
	return;
}

1;
