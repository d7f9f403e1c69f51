# pg_dump and restore; and a restore into a server that cannot build the indexes.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('dump', '');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text COLLATE "C", c numeric, EXCLUDE USING euno (a WITH =));
INSERT INTO t SELECT g, 'b' || g, g / 4.0 FROM generate_series(1, 2000) g;
CREATE INDEX t_bc ON t USING euno (b DESC NULLS LAST, c) INCLUDE (a) WITH (fillfactor = 70);
CREATE INDEX t_part ON t USING euno ((a % 100)) WHERE a > 1000;
CREATE TABLE part (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (100) TO (200);
CREATE INDEX part_b ON part USING euno (b);
INSERT INTO part SELECT g, 'p' || g FROM generate_series(0, 199) g;
CREATE EXTENSION citext;
SELECT euno_copy_opclasses('citext');
CREATE TABLE ci (c citext, a int);
INSERT INTO ci SELECT 'Name ' || g % 100, g FROM generate_series(1, 1000) g;
CREATE INDEX ci_c ON ci USING euno (c, a);
CREATE DATABASE sql_copy TEMPLATE template0;
CREATE DATABASE custom_copy TEMPLATE template0;
SQL

my $file = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-f', "$file.sql", 'postgres' ], 'pg_dump');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$file.sql", 'sql_copy' ], 'restored by psql');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$file.custom", 'postgres' ], 'pg_dump -Fc');
$node->command_ok([ 'pg_restore', '-e', '-j', '2', '-d', 'custom_copy', "$file.custom" ], 'restored by pg_restore, in parallel');

my $definitions = 'SELECT pg_get_indexdef(indexrelid) FROM euno_stat_indexes ORDER BY 1';
my $members = "SELECT f.opfname, o.amopstrategy, o.amopopr::regoperator FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily
	WHERE f.opfmethod = (SELECT oid FROM pg_am WHERE amname = 'euno') AND f.opfname LIKE 'citext%' ORDER BY 1, 2";
my $expected = $node->safe_psql('postgres', $definitions);
is(scalar(split /\n/, $expected), 6, 'there are six indexes');
for my $copy ('sql_copy', 'custom_copy')
{
	is($node->safe_psql($copy, $definitions), $expected, "$copy: the definitions");
	is($node->safe_psql($copy, 'SELECT DISTINCT state FROM euno_stat_indexes'), 'ready', "$copy: the indexes are ready");
	same_answers($node, $copy, "SELECT b, c, a FROM t WHERE b > 'b99' ORDER BY b DESC NULLS LAST, c", "$copy, t_bc");
	same_answers($node, $copy, 'SELECT count(*) FROM t WHERE a % 100 = 3 AND a > 1000', "$copy, t_part");
	same_answers($node, $copy, "SELECT b FROM part WHERE b > 'p5' ORDER BY b", "$copy, part_b");
	same_answers($node, $copy, "SELECT a FROM ci WHERE (c, a) > ('NAME 7', 500) ORDER BY c, a", "$copy, ci_c");
	is($node->safe_psql($copy, $members), $node->safe_psql('postgres', $members), "$copy: copied operator classes are whole");
	check_indexes($node, $copy, $copy);
}

# Without the library preloaded, the tables are restored and the indexes refused.
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
$node->command_ok([ 'pg_dump', '-f', "$file.again", 'sql_copy' ], 'pg_dump without the library preloaded');
$node->safe_psql('postgres', 'CREATE DATABASE refused TEMPLATE template0');
my ($stdout, $stderr) = run_command([ 'psql', '-X', '-q', '-f', "$file.again", '-d', $node->connstr('refused') ]);
like($stderr, qr/cannot use euno index "t_bc"/, 'an index is refused');
is($node->safe_psql('refused', 'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM part)'), '2000|200', 'the tables are there');
$node->stop;
done_testing();
