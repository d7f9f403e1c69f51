# The system's clock is set back: the launcher goes its rounds all the same, and what
# could not be built, or had no room, is not put off until the clock has caught up.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use EunoTest;

# A clock that is as many seconds late as a file says.
my $dir = PostgreSQL::Test::Utils::tempdir;
$ENV{EUNO_CLOCK} = "$dir/late";
append_to_file("$dir/clock.c", <<'C');
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int
gettimeofday(struct timeval *tv, void *tz)
{
	char		late[16] = "";
	int			fd = open(getenv("EUNO_CLOCK"), O_RDONLY);
	struct timespec now;

	(void) tz;
	if (fd >= 0)
	{
		if (read(fd, late, sizeof(late) - 1) < 0)
			late[0] = '\0';
		close(fd);
	}
	clock_gettime(CLOCK_REALTIME, &now);
	tv->tv_sec = now.tv_sec - atol(late);
	tv->tv_usec = now.tv_nsec / 1000;
	return 0;
}
C
system_or_bail('gcc', '-shared', '-fPIC', '-o', "$dir/clock.so", "$dir/clock.c");

my $node = euno_node('clock', "euno.naptime = 1s\neuno.max_memory = 8MB\neuno.on_full = evict\neuno.debug_copies = off");
sub start_node
{
	local $ENV{LD_PRELOAD} = "$dir/clock.so";
	$node->start;
}
start_node();

# Is an index built, if queries want it?
sub comes_back
{
	my ($index, $query) = @_;

	for (1 .. 600)
	{
		by_index($node, 'postgres', $query);
		return 1 if state_of($node, $index) eq 'ready';
		sleep 0.1;
	}
	return 0;
}

# One index cannot be built, and one has no room.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a; END';
CREATE TABLE t AS SELECT generate_series(1, 1000) AS a;
CREATE INDEX t_a ON t USING euno (f(a));
CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'no'; END $$;
SQL
$node->stop('immediate');
start_node();
my $why = q{SELECT coalesce((SELECT absent_reason FROM euno_stat_indexes WHERE indexrelname = '%s'), '')};
ok($node->poll_query_until('postgres', sprintf($why, 't_a'), 'failed'), 'an index that cannot be built');
$node->psql('postgres', <<'SQL');
CREATE TABLE idle AS SELECT md5(g::text) AS a FROM generate_series(1, 20000) g;
CREATE INDEX idle_a ON idle USING euno (a);
CREATE TABLE grows (a text);
CREATE UNIQUE INDEX grows_a ON grows USING euno (a);
INSERT INTO grows SELECT md5(g::text) FROM generate_series(1, 200000) g;
SQL
is($node->safe_psql('postgres', sprintf($why, 'idle_a')), 'memory', 'one that has no room');
$node->safe_psql('postgres', 'DROP TABLE grows');
my ($before, $rounds) = split /\|/, $node->safe_psql('postgres', 'SELECT now(), rounds FROM euno_stat_worker');
append_to_file($ENV{EUNO_CLOCK}, '3600');
is($node->safe_psql('postgres', "SELECT now() < '$before'"), 't', 'the clock has been set back');
ok($node->poll_query_until('postgres', "SELECT rounds > $rounds + 3 FROM euno_stat_worker"), 'the launcher goes on with its rounds');
$node->safe_psql('postgres', "CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a; END'");
ok(comes_back('t_a', 'SELECT FROM t WHERE f(a) = 5'), 'what can be built now is built');
ok(comes_back('idle_a', "SELECT FROM idle WHERE a = 'b'"), 'what has room now, too');
check_indexes($node, 'postgres', 'after all that');
$node->stop;

done_testing();
