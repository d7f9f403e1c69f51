# Unique indexes under load: many sessions want the same new key at the same
# time, delete and insert old ones, and swap them, while VACUUM runs and trees
# are given up and built again.  Of each key there is one row in the end, and
# each refusal was right.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

my $node = euno_node('unique', "deadlock_timeout = 20ms\nclient_min_messages = error");
$node->start;

# b: in BYTES order; c: in COMPARE order, 1.0 and 1.00 are one key; a: in a radix
# tree; x: by an exclusion constraint, and with ON CONFLICT.
$node->safe_psql('postgres', $extension . <<'SQL');
CREATE TABLE b (k int8, v int);
CREATE UNIQUE INDEX b_k ON b USING euno (k) INCLUDE (v);
CREATE TABLE c (k numeric, v int);
CREATE UNIQUE INDEX c_k ON c USING euno (k compared);
CREATE TABLE a (k int8, v int);
CREATE UNIQUE INDEX a_k ON a USING euno (k) WITH (structure = art);
CREATE TABLE x (k int8, v int, CONSTRAINT x_k EXCLUDE USING euno (k WITH =));
CREATE TABLE outcome (what text);

-- A refused insert must have had a reason: with this key there is, or just was,
-- another row.  Nobody deletes keys below zero.
CREATE FUNCTION try(t text, key numeric, v int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
	BEGIN
		EXECUTE format('INSERT INTO %I VALUES ($1, $2)', t) USING key, v;
		RETURN 'inserted';
	EXCEPTION
		WHEN unique_violation OR exclusion_violation THEN
			IF key < 0 THEN
				EXECUTE format('SELECT count(*) FROM %I WHERE k = $1', t) USING key INTO n;
				IF n <> 1 THEN
					RETURN format('refused %s in %s, of which there are %s', key, t, n);
				END IF;
			END IF;
			RETURN 'refused';
		WHEN deadlock_detected THEN
			RETURN 'deadlock';
	END;
END $$;
SQL

my $new_key = '-floor(extract(epoch FROM clock_timestamp()) * 150)::numeric';
my @upserts = ($node->pg_version < 18 ? 'x' : qw(a b c x));
my %script = (
	'vacuum' => "VACUUM (INDEX_CLEANUP on) a, b, c, x;\n");

for my $t (qw(a b c x))
{
	# a new key every few milliseconds, which all want
	$script{"new_$t"} = "INSERT INTO outcome SELECT try('$t', $new_key, :client_id);\n";
	$script{"old_$t"} = <<"SQL";
\\set k random(1, 30)
DELETE FROM $t WHERE k = :k;
INSERT INTO outcome SELECT try('$t', round(:k, :client_id % 3), :client_id);
SQL
	$script{"change_$t"} = <<"SQL";
\\set k random(1, 30)
\\set end random(1, 3)
BEGIN;
DELETE FROM $t WHERE k = :k;
INSERT INTO outcome SELECT try('$t', :k, :client_id);
UPDATE $t SET v = v + 1 WHERE k = :k;
\\if :end = 1
ROLLBACK;
\\else
COMMIT;
\\endif
SQL
	$script{"upsert_$t"} = "INSERT INTO $t VALUES ($new_key, :client_id) ON CONFLICT DO NOTHING;\n";
	$script{"evict_$t"} = "SELECT euno_evict('${t}_k');\n\\sleep 100 ms\n";
}

my %file = map { $_ => script_file($node, $_, $script{$_}) } keys %script;

# Runs the sessions, with others beside them, for a few seconds.
sub load
{
	my ($name, @beside) = @_;
	my @others = map { start_pgbench($node, '-T', '5', '-f', $file{$_}) } @beside;
	my ($stdout, $stderr);
	my $result = IPC::Run::run([ 'pgbench', '-n', '-c', '10', '-j', '2', '-T', '5', '--max-tries=100',
			(map { ('-f', "$file{qq(upsert_$_)}\@4") } @upserts),
			(map { ('-f', "$file{qq(new_$_)}\@6", '-f', "$file{qq(old_$_)}\@2", '-f', "$file{qq(change_$_)}\@1") } qw(a b c x)),
			$node->connstr('postgres') ], '>', \$stdout, '2>', \$stderr);

	ok($result, "$name: nothing unexpected") or diag $stderr;
	ok($_->finish, "$name: nor beside it") for @others;
	for my $table (qw(a b c x))
	{
		is(by_seqscan($node, 'postgres', "SELECT count(*) FROM (SELECT FROM $table GROUP BY k HAVING count(*) > 1) d"),
			'0', "$name: no key is twice in $table");
	}
	check_indexes($node, 'postgres', $name);
	return;
}

load('sessions');
load('with VACUUM', 'vacuum');

# As often as it takes on a busy machine.
my %did;
for my $turn (1 .. 10)
{
	load('with evictions', 'vacuum', map { "evict_$_" } qw(a b c x));
	%did = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT what, count(*) FROM outcome GROUP BY what');
	last if 500 < ($did{inserted} // 0) && 500 < ($did{refused} // 0);
}

is($node->safe_psql('postgres', "SELECT DISTINCT what FROM outcome WHERE what NOT IN ('inserted', 'refused', 'deadlock') LIMIT 5"),
	'', 'no key is refused without a reason');
note "$_: $did{$_}" for sort keys %did;
cmp_ok($did{$_} // 0, '>', 500, "there was much to do: $_") for qw(inserted refused);

$node->stop;
done_testing();
