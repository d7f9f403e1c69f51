# REPACK (CONCURRENTLY), from 19 on: the table and its indexes are copied while
# others write, by way of an index of ours, and then change places with the copies.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use Test::More;
use EunoTest;

my $node = euno_node('repack', "autovacuum = off\nwal_level = replica\nmax_wal_senders = 2");
plan skip_all => 'before 19' if $node->pg_version < '19beta1';
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE r (id int GENERATED ALWAYS AS IDENTITY, a int, b text COLLATE "C", c int8 NOT NULL);
INSERT INTO r (a, b, c) SELECT random() * 1e5, md5(g::text), g FROM generate_series(1, 20000) g;
CREATE UNIQUE INDEX r_c ON r USING euno (c) WITH (structure = art);
ALTER TABLE r REPLICA IDENTITY USING INDEX r_c;
CREATE INDEX r_a ON r USING euno (a) INCLUDE (c);
CREATE INDEX r_b ON r USING euno (b) WITH (structure = art);
CREATE INDEX r_few ON r USING euno (a) WHERE a < 1000;
CREATE INDEX r_upper ON r USING euno (upper(b));
SQL

my $script = script_file($node, 'repack', <<'SQL');
\set i random(1, 20000)
\set j random(1, 100000)
INSERT INTO r (a, b, c) VALUES (:i, md5(:j::text), :j) ON CONFLICT (c) DO UPDATE SET a = :j;
DELETE FROM r WHERE a = :j;
UPDATE r SET b = repeat(md5(:j::text), 1 + :j % 70) WHERE c = :i;
SQL
my $writers = start_pgbench($node, '-c', '3', '-T', '6', '-f', $script);
my $end = time + 5;
my $turns = 0;
while (time < $end)
{
	$node->safe_psql('postgres', 'REPACK (CONCURRENTLY) r');
	$node->safe_psql('postgres', "SELECT euno_evict('r_a')") if $turns++ % 3 == 0;
	check_indexes($node, 'postgres', "turn $turns");
}
ok($writers->finish, 'nothing unexpected beside it');
check_indexes($node, 'postgres', 'at the end');
same_answers($node, 'postgres', 'SELECT a, c FROM r WHERE a > 500 ORDER BY a, c', 'by a');
same_answers($node, 'postgres', 'SELECT b FROM r ORDER BY b', 'by b');
is(by_seqscan($node, 'postgres', 'SELECT count(*) - count(DISTINCT c) FROM r'), '0', 'no key is twice');

$node->stop;
done_testing();
