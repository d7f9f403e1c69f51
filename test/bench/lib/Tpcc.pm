# Tpcc.pm: a mix after TPC-C, its transactions as functions (tpcc.sql).

package Tpcc;

use strict;
use warnings;
use Bench;

my @ams = qw(btree euno art);
my $warehouses = int($run{rows} / 1_000_000) + 1;
my $customers = $run{rows} >= 1_000_000 ? 3000 : 1000;
my $items = $run{rows} >= 1_000_000 ? 100_000 : 10_000;
my @unique = (
	'warehouse (w_id)', 'district (d_w_id, d_id)', 'customer (c_w_id, c_d_id, c_id)', 'orders (o_w_id, o_d_id, o_id)',
	'new_order (no_w_id, no_d_id, no_o_id)', 'order_line (ol_w_id, ol_d_id, ol_o_id, ol_number)', 'item (i_id)', 'stock (s_w_id, s_i_id)');
my @others = ('customer (c_w_id, c_d_id, c_last, c_first)', 'orders (o_w_id, o_d_id, o_c_id, o_id)');

# Names are of the C collation, which a radix tree needs, on all sides.
sub load
{
	return unless wants_any(measures());
	for my $am (methods(@ams))
	{
		say_so("loading TPC-C, $am");
		my $text = do { local (@ARGV, $/) = ('test/bench/tpcc.sql'); <> };
		$text =~ s/:(warehouses|customers|items)\b/{ warehouses => $warehouses, customers => $customers, items => $items }->{$1}/ge;
		my $on = sub { my ($unique, $table, $columns) = $_[0] =~ /^(UNIQUE |)(\w+) \((.*)\)/; return "CREATE ${unique}INDEX ON $table " . index_on($am, $columns); };
		sql('SET client_min_messages = error', "CREATE SCHEMA tpcc_$am", "SET search_path = tpcc_$am", $text =~ s/^--.*\n//mgr =~ s/\btext\b/text COLLATE "C"/gr,
			(map { $on->("UNIQUE $_") } @unique), (map { $on->($_) } @others), 'VACUUM ANALYZE');
	}
	return;
}

sub measures
{
	return map { 'TPC-C mix' . $_ } '', ', Zipf 0.99';
}

sub run_round
{
	my ($round) = @_;

	for my $name (grep { wants($_) } measures())
	{
		say_so("round $round: $name");
		my $c = zipf_lines('c', $customers, $name =~ /Zipf/ ? 0.99 : 0);
		my $who = "\\set w random(1, $warehouses)\n\\set d random(1, 10)\n$c";
		my @scripts = (
			[45, "$who\\set lines random(5, 15)\nSELECT new_order(:w, :d, :c, :lines);\n"],
			[43, "$who\\set amount random(1, 5000)\nSELECT payment(:w, :d, :c, :amount);\n"],
			[4, "$who SELECT order_status(:w, :d, :c);\n"], [4, "$who SELECT delivery(:w);\n"], [4, "$who SELECT stock_level(:w, :d);\n"]);
		for my $am (turns($round, @ams))
		{
			local $ENV{PGOPTIONS} = "-c search_path=tpcc_$am -c tpcc.items=$items";
			note_clients($name, $am, pgbench(4, \@scripts));
		}
	}
	return;
}

# Every order has its lines, and no undelivered one is missing.
sub check
{
	return unless wants_any(measures());
	for my $am (methods(@ams))
	{
		my $wrong = sql("SET search_path = tpcc_$am", 'SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off',
			'SELECT count(*) FROM orders o WHERE (o_carrier IS NULL) <> EXISTS
				(SELECT FROM new_order WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id)');
		die "TPC-C, $am: $wrong orders are neither new nor delivered\n" if $wrong != 0;
	}
	return;
}

1;
