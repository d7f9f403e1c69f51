# Leaves that become contended and calm all the time, in each session as it likes,
# while sessions scan, write, look keys up and vacuum, and are killed.  Each
# comparison is of an index and a sequential scan in one snapshot.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use EunoTest;

my $rows = 3000;
my $node = euno_node('modes', "euno.debug_modes = flapping\neuno.naptime = 1s\nmax_worker_processes = 8");
$node->start;
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION euno_index;
CREATE TABLE t (id int, k bigint, d date, pad text);
INSERT INTO t SELECT g, g % 1000, '2000-01-01'::date + g % 7, repeat('x', 50) FROM generate_series(1, $rows) g;
CREATE UNIQUE INDEX t_id ON t USING euno (id);
CREATE INDEX t_k ON t USING euno (k);
CREATE INDEX t_d ON t USING euno (d, k);
CREATE TABLE log (n bigint GENERATED ALWAYS AS IDENTITY, k bigint);
CREATE INDEX log_n ON log USING euno (n);
CREATE INDEX log_k ON log USING euno (k) INCLUDE (n);
SQL

# An answer that depends on order, planned in two ways.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION plan(index bool) RETURNS void LANGUAGE sql AS $$
SELECT set_config('enable_' || s, ((s IN ('indexscan', 'indexonlyscan')) = index)::text, true)
  FROM unnest('{seqscan,bitmapscan,sort,indexscan,indexonlyscan}'::text[]) s
$$;
CREATE FUNCTION same(what text, source text, place text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT count(*) || '' '' || coalesce(md5(string_agg((%1$s)::text, '','')), '''') FROM (SELECT %1$s FROM %2$s ORDER BY %3$s) x', what, source, place);
	by_index text;
	by_table text;
BEGIN
	PERFORM plan(true);
	EXECUTE query INTO by_index;
	PERFORM plan(false);
	EXECUTE query INTO by_table;
	IF by_index <> by_table THEN
		RAISE 'answers differ: % and %, of %', by_index, by_table, query;
	END IF;
	RETURN split_part(by_index, ' ', 1);
END $$;
SQL

my $mode = "\\set mode random(0, 2)\n\\if :mode = 0\nSET euno.debug_modes = calm;\n\\elif :mode = 1\nSET euno.debug_modes = contended;\n\\else\nSET euno.debug_modes = flapping;\n\\endif\n";
my %script = (
	'write@6' => "\\set id random(1, $rows)\n\\set k random(1, 1000)\nUPDATE t SET k = :k WHERE id = :id;\nUPDATE t SET d = d + 1 WHERE id = (SELECT id FROM t WHERE k = :k AND d < '2001-01-01' LIMIT 1);\n",
	'append@4' => "\\set k random(1, 200)\nINSERT INTO log (k) SELECT :k + g FROM generate_series(1, 20) g;\nDELETE FROM log WHERE k = :k AND n % 3 > 0;\n",
	'again@2' => "\\set id random(1, $rows)\nBEGIN;\nDELETE FROM t WHERE id = :id;\nINSERT INTO t VALUES (:id, :id, '2000-01-01');\nROLLBACK;\n",
	'scan@6' => "\\set low random(1, 1000)\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT same('k', 't WHERE k >= :low', 'k'), same('k', 't WHERE k < :low', 'k DESC'), same('n', 'log', 'n'), same('k, d', 't WHERE d > ''2000-01-03''', 'd, k');\nCOMMIT;\n",
	'find@6' => "\\set k random(1, 1000)\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT same('id', 't WHERE id = ANY (ARRAY[:k, :k + 1, :k + 7, :k + 900, 3 * :k])', 'id'), same('k', 't WHERE k = :k', 'k'), same('n', 'log WHERE k = :k', 'k, n');\nCOMMIT;\n",
	'vacuum@1' => "VACUUM (INDEX_CLEANUP on) log;\nVACUUM (INDEX_CLEANUP on) t;\n");

my @files;
for my $name (sort keys %script)
{
	my ($plain, $weight) = $name =~ /(.*)(\@.*)/;

	push @files, '-f', script_file($node, $plain, $mode . $script{$name}) . $weight;
}

# Sessions for some seconds, one of which is killed if so desired.
sub work
{
	my ($name, $seconds, $kill) = @_;
	my $log_start = -s $node->logfile;
	my $bench = IPC::Run::start(
		[ 'pgbench', '-n', '--max-tries=20', '-c', '6', '-j', '2', '-T', $seconds, @files, $node->connstr('postgres') . ' application_name=modes' ],
		'>', \my $stdout, '2>', \my $stderr);

	if ($kill)
	{
		my $killed = 0;

		sleep $kill;
		for (1 .. 50)
		{
			my ($ret, $pid) = $node->psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'modes' ORDER BY state = 'active' DESC, random() LIMIT 1");

			$killed = $pid && kill_process($pid);
			last if $killed;
			sleep 0.1;
		}
		ok($killed, "$name: a session is killed");
	}
	my $ended = $bench->finish;
	ok($kill || $ended, "$name: no session has failed") or diag $stderr;
	wait_for_recovery($node);
	wait_for_state($node, 'postgres', 'ready');
	unlike(slurp_file($node->logfile, $log_start), qr/answers differ|XX00|PANIC/, "$name: all answers are right");
	check_indexes($node, 'postgres', $name);
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM t'), "$rows|$rows", "$name: all rows are there");
	return $stdout;
}

# As often as it takes on a busy machine.
my $seen = '';
for my $turn (1 .. 10)
{
	note work('modes', 5) =~ /actually processed: (\d+)/;
	$seen = $node->safe_psql('postgres', 'SELECT count(*) FILTER (WHERE contended_writes > 0) >= 3, sum(splits) > 0 FROM euno_stat_indexes');
	last if $seen eq 't|t';
}
is($seen, 't|t', 'leaves were contended and written to, and leaves were split') or diag $node->safe_psql('postgres', 'SELECT * FROM euno_stat_indexes');
work("kill $_", 10, 0.5 + rand 1.5) for 1 .. 3;

# Each mode by itself.
for my $case ([ 'calm', '= 0' ], [ 'contended', '> 0' ])
{
	my ($forced, $expected) = @$case;

	is($node->safe_psql('postgres', "SET euno.debug_modes = $forced; UPDATE t SET k = k + 1; VACUUM t; UPDATE t SET k = k - 1;"
		  . " SELECT sum(contended_leaves) $expected FROM euno_stat_indexes WHERE indexrelname IN ('t_k', 't_d')"),
		't', "leaves are $forced when that is forced");
	same_answers($node, 'postgres', 'SELECT k FROM t ORDER BY k', $forced);
}
$node->stop;
done_testing();
