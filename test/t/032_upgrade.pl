# pg_upgrade of a cluster with euno indexes: the relation files go over, trees do
# not, not even if somebody puts the old cluster's file into the new one.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use File::Copy;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $settings = "euno.snapshot_on_shutdown = on\neuno.auto_rebuild = off";
my $old = euno_node('old', $settings);
$old->start;
$old->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 5000) g;
CREATE INDEX t_a ON t USING euno (a) WITH (structure = art);
CREATE UNIQUE INDEX t_b ON t USING euno (b) INCLUDE (a) WHERE a > 10;
CREATE MATERIALIZED VIEW m AS SELECT a % 100 AS k, count(*) AS n FROM t GROUP BY k;
CREATE INDEX m_k ON m USING euno (k);
CREATE DATABASE other TEMPLATE template0;
SQL
$old->safe_psql('other', 'CREATE EXTENSION euno_index; CREATE TABLE o (x text COLLATE "C"); CREATE INDEX o_x ON o USING euno (x DESC); INSERT INTO o SELECT g::text FROM generate_series(1, 300) g');
$old->safe_psql('postgres', 'DELETE FROM t WHERE a % 10 = 0');
my $definitions = "SELECT string_agg(pg_get_indexdef(indexrelid), '; ' ORDER BY indexrelname) FROM euno_stat_indexes";
my $query = 'SELECT count(*), sum(a), max(a) FROM t WHERE a > 0';
my %expected = map { $_ => $old->safe_psql('postgres', $_) } $definitions, $query;
$old->stop;
ok(-e $old->data_dir . '/euno_index.snapshot', 'the old cluster leaves a file');
copy($old->data_dir . '/euno_index.snapshot', $old->basedir . '/snapshot') or die $!;

# pg_upgrade starts both servers with -b; its programs keep sockets where they run.
sub upgrade
{
	my ($name, @options) = @_;
	my $new = euno_node($name, $settings);
	my $bindir = $old->config_data('--bindir');

	chdir $new->basedir or die $!;
	command_ok(
		[ 'pg_upgrade', '--no-sync', '-b', $bindir, '-B', $bindir, '-d', $old->data_dir, '-D', $new->data_dir,
			'-s', $new->host, '-p', $old->port, '-P', $new->port, @options ],
		"$name: pg_upgrade");
	return $new;
}

sub right
{
	my ($new, $name) = @_;

	is($new->safe_psql('postgres', "SELECT count(*), string_agg(DISTINCT state, ' ') FROM euno_stat_indexes"), '3|absent', "$name: no tree came over");
	ok(!-e $new->data_dir . '/euno_index.snapshot', "$name: nor a file");
	is($new->safe_psql('postgres', $_), $expected{$_}, "$name: $_") for $definitions, $query;
	$new->safe_psql('postgres', "INSERT INTO t VALUES (7000, 'new'); DELETE FROM t WHERE a < 100");
	my ($ret, $stdout, $stderr) = $new->psql('postgres', "INSERT INTO t VALUES (7001, 'b4999')");
	like($stderr, qr/duplicate key value violates unique constraint "t_b"/, "$name: unique as before");
	$new->safe_psql($_, 'SELECT count(euno_rebuild(indexrelid)) FROM euno_stat_indexes') for 'postgres', 'other';
	same_answers($new, 'postgres', $query, "$name: t_a");
	same_answers($new, 'postgres', "SELECT b, a FROM t WHERE a > 10 AND b > 'b49' ORDER BY b", "$name: t_b");
	same_answers($new, 'postgres', 'SELECT k, n FROM m WHERE k > 5 ORDER BY k', "$name: m_k");
	same_answers($new, 'other', "SELECT x FROM o WHERE x < '5' ORDER BY x DESC", "$name: o_x");
	check_indexes($new, $_, "$name: $_") for 'postgres', 'other';
	return;
}

my $copied = upgrade('copied');
$copied->start;
right($copied, 'copied');
$copied->stop;

# By hard links, with the old cluster's file put into the new one.
my $linked = upgrade('linked', '--link');
copy($old->basedir . '/snapshot', $linked->data_dir . '/euno_index.snapshot') or die $!;
$linked->start;
like(slurp_file($linked->logfile), qr/euno_index\.snapshot/, 'a file of the old cluster is noticed');
right($linked, 'linked');
$linked->stop;
done_testing();
