#!/usr/bin/perl
#
# test/bench/workloads.pl [PART...]: the parts of "make bench" on the running
# server that PGHOST and the like name; called by test/bench/server_bench from
# the top of the source tree, which says what the environment sets.
#
# Loads all parts first, then runs them in rounds.  Takes in what the standalone
# program measured.  Writes results.json, results.md and SVG plots to EUNO_OUT;
# what it is doing goes to standard error.

use strict;
use warnings;
use lib 'test/bench/lib';
use Bench;
use Report;
use Search;
use Plans;
use Insert;
use Clients;
use Skew;
use Tpcc;
use Sysbench;

my %part = (
	search => [\&Search::load, \&Search::run_round],
	plans => [\&Plans::load, \&Plans::run_round],
	insert => [\&Insert::load, \&Insert::run_round, \&Insert::check],
	clients => [\&Clients::load, \&Clients::run_round],
	skew => [\&Skew::load, \&Skew::run_round, \&Skew::conclude],
	tpcc => [\&Tpcc::load, \&Tpcc::run_round, \&Tpcc::check],
	sysbench => [\&Sysbench::load, \&Sysbench::run_round]);
my @parts = map { $part{$_} // die "no part $_\n" } @ARGV;

$_->[0]->() for @parts;
for my $round (1 .. $run{rounds})
{
	my $begun = time;

	$_->[1]->($round) for @parts;
	if ($run{limit} && time - $run{started} + (time - $begun) > $run{limit} && $round < $run{rounds})
	{
		say_so("another round would take too long: $round of $run{rounds}");
		$run{rounds} = $round;
		last;
	}
}
$_->[2]->() for grep { $_->[2] } @parts;
Report::read_samples("$run{out}/trees.tsv") if -e "$run{out}/trees.tsv";
print Report::write_all();
