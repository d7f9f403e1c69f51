# One memory serves all databases and all users: nobody sees keys of others in
# views, functions, errors or the log.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('privacy', "euno.naptime = 1s\nlog_min_messages = debug1");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE stranger LOGIN; CREATE DATABASE hers');
for my $dbname ('postgres', 'hers')
{
	$node->safe_psql($dbname, <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE private (k text, n int);
INSERT INTO private SELECT 'topsecret' || g, g FROM generate_series(1, 3000) g;
CREATE UNIQUE INDEX private_k ON private USING euno (k);
CREATE INDEX private_n ON private USING euno (n, k);
REVOKE ALL ON private FROM PUBLIC;
SQL
}

# Everything a stranger can call and read.
sub stranger
{
	my ($dbname, $statement) = @_;
	my ($ret, $stdout, $stderr) = $node->psql($dbname, $statement, extra_params => [ '-U', 'stranger' ]);

	return "$stdout $stderr";
}

my $relations = $node->safe_psql('postgres',
	"SELECT c.relname FROM pg_class c JOIN pg_depend d ON d.objid = c.oid JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'euno_index' WHERE relkind = 'v'");
my $functions = $node->safe_psql('postgres',
	"SELECT p.proname || CASE WHEN pronargs = 0 THEN '()' ELSE '(''private_k'')' END FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'euno_index' WHERE proname <> 'eunohandler'");
my $all = '';
for my $what (map({"SELECT * FROM $_"} split(/\n/, $relations)), map({"SELECT $_"} split(/\n/, $functions)),
	'SELECT k FROM private', "INSERT INTO private VALUES ('topsecret7')")
{
	my $answer = stranger('postgres', $what);

	unlike($answer, qr/topsecret/, "$what shows no key");
	$all .= $answer;
}
for my $function ('euno_index_check', 'euno_evict', 'euno_rebuild')
{
	like($all, qr/permission denied for function $function/, "$function is not for everybody");
}

# Who may insert and not read does not learn which keys there are by the detail.
$node->safe_psql('postgres', 'GRANT INSERT ON private TO stranger');
my $error = stranger('postgres', "INSERT INTO private (n, k) SELECT 1, 'topsec' || 'ret7'");
like($error, qr/duplicate key value violates unique constraint "private_k"/, 'a duplicate key is refused');
unlike($error, qr/topsecret7\)/, 'without showing it');

# Another database's trees are not even counted in the view.
is($node->safe_psql('postgres', "SELECT count(*) FROM euno_stat_indexes"), '2', 'only trees of this database');
is($node->safe_psql('postgres', "SELECT count(*) FROM euno_stat_get_indexes()"), '2', 'in the function, too');

# Nothing of what is done in the background writes keys to the log: neither a
# rebuild after a crash nor its failure.
$node->stop('immediate');
$node->start;
ok(wait_for_state($node, $_, 'ready'), "rebuilt in $_") for 'postgres', 'hers';
$node->stop;
my @lines = grep { /topsecret/ && !/STATEMENT:|INSERT INTO private|already exists/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @lines), '', 'no key is in the log');
done_testing();
