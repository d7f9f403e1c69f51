# Whose file of trees it is: one shutdown's, which no clone can have in common, and
# one set of locales', which may be replaced while the server runs.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use File::Path qw(make_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;
use EunoTest;

my $node = euno_node('identity', "euno.snapshot_on_shutdown = on\neuno.auto_rebuild = off\nrestart_after_crash = on");

# Locales of this server's own.
my $locales = $node->basedir . '/locales';
make_path("$locales/xx_XX");
my $locale = "$locales/xx_XX/LC_COLLATE";
append_to_file($locale, 'one order');
utime 1000, 1000, $locale or die $!;
local $ENV{LOCPATH} = "/nowhere:$locales";

$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g;
CREATE INDEX t_a ON t USING euno (a);
SQL

# What the file system says of pg_control is not when it was written: two servers may
# do that at the same tick of the clock.
$node->stop;
my ($changed, $written) = (Time::HiRes::stat($node->data_dir . '/global/pg_control'))[ 9, 10 ];
cmp_ok(abs($changed - $written), '>', 1e-6, 'a shutdown has a time of its own');
cmp_ok(abs($changed - $written), '<', 1.1, 'near the true one');
$node->start;
is(state_of($node, 't_a'), 'ready', 'the trees of the same shutdown are read');

$node->stop;
utime 2000, 2000, $locale or die $!;
$node->start;
is(state_of($node, 't_a'), 'absent', 'those of another locale are not');
like(slurp_file($node->logfile), qr/ignored "euno_index.snapshot"\n.*The server, the library or the collations have changed/,
	'and the log says why');

# A locale is replaced while the server has the old one in use; then a process
# crashes, and trees are built anew, in the old order.
utime 3000, 3000, $locale or die $!;
my $victim = $node->background_psql('postgres', on_error_stop => 0);
kill_process($victim->query_safe('SELECT pg_backend_pid()'));
$victim->{run}->finish;
wait_for_recovery($node);
$node->safe_psql('postgres', "SELECT euno_rebuild('t_a')");
is(state_of($node, 't_a'), 'ready', 'rebuilt after a crash');
$node->restart;
is(state_of($node, 't_a'), 'absent', 'trees of a locale that was replaced before the crash are not read');
$node->restart;
is($node->safe_psql('postgres', "SELECT euno_rebuild('t_a')") . state_of($node, 't_a'), 'ready', 'built for the new one');
$node->restart;
is(state_of($node, 't_a'), 'ready', 'and read again');
check_indexes($node, 'postgres', 'in the end');
$node->stop;
done_testing();
