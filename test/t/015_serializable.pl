# Serializable transactions under load.  Each counts the rows of two ranges and
# inserts one if there are fewer than ten: there are never more, unless two have
# missed each other.  Meanwhile other rows come and go in the same leaves, which
# split and merge, and trees are given up.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

my $node = euno_node('serializable', "deadlock_timeout = 20ms\nclient_min_messages = error\nmax_pred_locks_per_transaction = 1000\nmax_connections = 200");
$node->start;
$node->safe_psql('postgres', $extension);

# Table e: euno; c: euno in COMPARE order; r: a radix tree; b: btree, a control.
my %key = (e => 'k', c => '(k::numeric)', r => 'k', b => 'k');
for my $t (qw(e c r b))
{
	my $using = $t eq 'b' ? "btree" : 'euno';
	my $class = $t eq 'c' ? 'compared' : '';
	my $with = $t eq 'r' ? 'WITH (structure = art)' : '';

	$node->safe_psql('postgres', <<"SQL");
CREATE TABLE $t (k int, mine bool);
CREATE INDEX ${t}_k ON $t USING $using (($key{$t}) $class) $with;
INSERT INTO $t SELECT random() * 40000, false FROM generate_series(1, 5000);
CREATE FUNCTION add_$t(pair int) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	first int := (SELECT count(*) FROM $t WHERE $key{$t} BETWEEN pair * 1000 AND pair * 1000 + 99 AND mine);
	second int := (SELECT count(*) FROM $t WHERE $key{$t} BETWEEN pair * 1000 + 800 AND pair * 1000 + 899 AND mine);
BEGIN
	IF first + second > 10 THEN
		RAISE 'more than ten: %', first + second;
	ELSIF first + second = 10 THEN
		DELETE FROM $t WHERE $key{$t} BETWEEN pair * 1000 AND pair * 1000 + 899 AND mine AND random() < 0.4;
		RETURN 'full';
	END IF;
	INSERT INTO $t VALUES (pair * 1000 + (random() * 99)::int + CASE WHEN random() < 0.5 THEN 0 ELSE 800 END, true);
	RETURN 'added';
END \$\$;
SQL
}

my %file;
for my $t (qw(e c r b))
{
	$file{"add_$t"} = script_file($node, "add_$t", "\\set pair random(0, 39)\nBEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT add_$t(:pair);\nCOMMIT;\n");
	$file{"come_$t"} = script_file($node, "come_$t", "\\set k random(0, 39000)\nINSERT INTO $t SELECT :k + random() * 1000, false FROM generate_series(1, 400);\n");
	$file{"go_$t"} = script_file($node, "go_$t", "\\set k random(0, 39000)\nDELETE FROM $t WHERE $key{$t} BETWEEN :k AND :k + 1500 AND NOT mine;\n");
	$file{"vacuum_$t"} = script_file($node, "vacuum_$t", "VACUUM (INDEX_CLEANUP on) $t;\n\\sleep 20 ms\n");
	$file{"evict_$t"} = script_file($node, "evict_$t", "SELECT euno_evict('${t}_k');\n\\sleep 5 ms\nSELECT euno_rebuild('${t}_k');\n\\sleep 200 ms\n");
}
local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off';

# Runs the load on a table, with others beside it.  How much was done, and tried again.
sub load_once
{
	my ($t, $name, @beside) = @_;
	my @others = map { start_pgbench($node, '-T', '6', '-f', $file{"${_}_$t"}) } @beside;
	my ($stdout, $stderr);
	my $result = IPC::Run::run([ 'pgbench', '-n', '-c', '8', '-j', '2', '-T', '6', '--max-tries=0', '-f', $file{"add_$t"},
			$node->connstr('postgres') ], '>', \$stdout, '2>', \$stderr);

	ok($result, "$name: nothing unexpected") or diag $stderr;
	ok($_->finish, "$name: nor beside it") for @others;
	return $stdout =~ /transactions actually processed: (\d+)/, $stdout =~ /total number of retries: (\d+)/;
}

# As often as it takes on a busy machine.
sub load
{
	my ($t, $name, @beside) = @_;
	my ($done, $retries) = (0, 0);

	for (my $turn = 0; $turn < 10 && $done <= 10; $turn++)
	{
		my ($more, $again) = load_once($t, $name, @beside);

		$done += $more // 0;
		$retries += $again // 0;
	}
	cmp_ok($done, '>', 10, "$name: something was done");
	note sprintf('%s: %d transactions, %d retries', $name, $done, $retries);
	is($node->safe_psql('postgres',
			"SELECT k / 1000, count(*) FROM $t WHERE mine GROUP BY 1 HAVING count(*) > 10"),
		'', "$name: never more than ten rows");
	return;
}

load('b', 'btree');
load('e', 'euno');
load('c', 'comparators');
load('b', 'btree, with splits and merges', qw(come go vacuum));
load('e', 'euno, with splits and merges', qw(come go vacuum));
load('c', 'comparators, with splits and merges', qw(come go vacuum));
load('e', 'euno, with evictions', qw(come go vacuum evict));
load('r', 'radix tree', qw(come go vacuum evict));
check_indexes($node, 'postgres', 'at the end');

$node->stop;
done_testing();
