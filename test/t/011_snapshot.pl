# Trees that go over a clean restart in a file, and all the ways in which such a
# file must not be believed.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use File::Copy;
use EunoTest;

# With auto_rebuild off, a tree that is ready was read from the file.
my $settings = "euno.snapshot_on_shutdown = on\neuno.auto_rebuild = off\nwal_keep_size = 64MB";
my $node = euno_node('snapshot', $settings, allows_streaming => 1);
my $file = $node->data_dir . '/euno_index.snapshot';
$node->start;
$node->safe_psql('postgres', $extension . <<'SQL');
CREATE TABLE t (a int, b text, c numeric);
INSERT INTO t SELECT g, 'b' || g, g / 4.0 FROM generate_series(1, 20000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_art ON t USING euno (a) WITH (structure = art);
CREATE INDEX t_bc ON t USING euno (b, c compared DESC) INCLUDE (a);
CREATE UNIQUE INDEX t_c ON t USING euno (c compared);
CREATE INDEX t_part ON t USING euno ((a % 100)) WHERE a > 10000;
CREATE UNLOGGED TABLE u (a int, p numeric(10, 2) GENERATED ALWAYS AS (a / 4.0) STORED);
CREATE INDEX u_a ON u USING euno (a);
CREATE INDEX u_p ON u USING euno (p);
INSERT INTO u SELECT generate_series(1, 1000);
CREATE DATABASE other;
SQL
$node->safe_psql('other',
	'CREATE EXTENSION euno_index; CREATE TABLE o (a int); INSERT INTO o SELECT generate_series(1, 3000); CREATE INDEX o_a ON o USING euno (a)');

# What the log says since the last call.
my $seen = 0;

sub log_since
{
	my $text = slurp_file($node->logfile, $seen);

	$seen = -s $node->logfile;
	return $text;
}

sub states
{
	my ($dbname) = @_;

	return $node->safe_psql($dbname // 'postgres',
		"SELECT string_agg(DISTINCT state, ' ') FROM euno_stat_indexes");
}

sub all_answers
{
	my ($name) = @_;

	same_answers($node, 'postgres', 'SELECT a FROM t WHERE a > 19000 ORDER BY a', "$name, t_a");
	same_answers($node, 'postgres',
		"SELECT b, c, a FROM t WHERE b BETWEEN 'b2' AND 'b201' ORDER BY b, c DESC",
		"$name, t_bc");
	same_answers($node, 'postgres', 'SELECT c FROM t WHERE c > 4900 ORDER BY c', "$name, t_c");
	same_answers($node, 'postgres',
		'SELECT count(*), sum(a) FROM t WHERE a % 100 = 17 AND a > 10000', "$name, t_part");
	same_answers($node, 'postgres', 'SELECT count(*), sum(a) FROM u WHERE a > 0', "$name, u_a");
	same_answers($node, 'postgres', 'SELECT p FROM u WHERE p > 0 ORDER BY p', "$name, u_p");
	check_indexes($node, 'postgres', $name);
	check_indexes($node, 'other', "$name, other");
	return;
}

# Each round changes the table, with everything that changes a tree.
my $next = 30000;

sub change
{
	$node->safe_psql('postgres', <<"SQL");
INSERT INTO t SELECT g, 'n' || g, g FROM generate_series($next, $next + 500) g;
UPDATE t SET a = a + 100000 WHERE a % 50 = 7;
DELETE FROM t WHERE a % 20 = 3;
INSERT INTO u SELECT generate_series($next, $next + 50);
SQL
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t') if $next % 2000 == 0;
	$next += 1000;
	return;
}

# The launcher removes the file, if the trees were taken from it.
sub discarded
{
	for (1 .. 1800)
	{
		return 1 unless -e $file;
		select(undef, undef, undef, 0.1);
	}
	return 0;
}

# Restarts after which the trees must be there, and match.
for my $mode ('fast', 'smart')
{
	change();
	all_answers('before a restart');
	my $entries = $node->safe_psql('postgres',
		'SELECT indexrelname, entries, bytes FROM euno_stat_indexes ORDER BY 1');
	$node->stop($mode);
	ok(-s $file, "a $mode shutdown leaves a file");
	append_to_file("$file.tmp", 'what a shutdown that was killed has left');
	$node->start;
	ok(discarded() && !-e "$file.tmp", 'which is gone when the server runs');
	like(log_since(), qr/wrote 8 euno indexes to .*read 8 euno indexes from/s, 'written and read');
	is(states() . states('other'), 'readyready', "after a $mode restart all trees are ready");
	is($node->safe_psql('postgres',
			'SELECT indexrelname, entries, bytes FROM euno_stat_indexes ORDER BY 1'),
		$entries, 'and what they were');
	all_answers("after a $mode restart");
}

# A start that fails, before anything could be written, does not cost the file.
change();
$node->stop;
my $hba = slurp_file($node->data_dir . '/pg_hba.conf');
$node->append_conf('pg_hba.conf', 'no such line');
log_since();
is($node->start(fail_ok => 1), 0, 'a start that fails');
like(log_since(), qr/read 8 euno indexes from.*could not load .*pg_hba\.conf/s, 'when the file has been read');
ok(-s $file, 'leaves it');
{
	open my $fh, '>', $node->data_dir . '/pg_hba.conf' or die $!;
	print $fh $hba;
	close $fh or die $!;
}
$node->start;
like(log_since(), qr/read 8 euno indexes from/, 'to the next one');
is(states() . states('other'), 'readyready', 'which has all trees');
all_answers('after a start that failed');
ok(discarded(), 'and no use for the file');

# One that is killed while it reads the file has given it another name.
$node->stop;
rename($file, "$file.read") or die $!;
log_since();
$node->start;
like(log_since(), qr/ignored "euno_index.snapshot"\n.*DETAIL:  An earlier start ended before it had read it/, 'a file that was being read when a start was killed is not read again');
ok(!-e $file && !-e "$file.read", 'and gone');
is(states(), 'absent', 'so nothing is believed');
rebuild();

# What is of no use is free after a restart as well: of one tree what a VACUUM that
# was canceled had not come to, of another what a pin kept from being free.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE swept AS SELECT g AS a, repeat(md5(g::text), 5) COLLATE "C" AS b FROM generate_series(1, 80000) g;
CREATE TABLE pinned AS SELECT * FROM swept WHERE a <= 40000;
CREATE FUNCTION waiting_cmp(l int, r int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('my.wait', true) = 'on' THEN
		PERFORM pg_advisory_lock(1);
	END IF;
	RETURN btint4cmp(l, r);
END $$;
CREATE OPERATOR CLASS waiting FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 waiting_cmp(int, int);
CREATE TABLE waited AS SELECT generate_series(1, 10) AS a;
CREATE INDEX waited_a ON waited USING euno (a waiting);
CREATE INDEX swept_b ON swept USING euno (b);
CREATE INDEX pinned_b ON pinned USING euno (b);
CREATE INDEX pinned_art ON pinned USING euno (b) WITH (structure = art);
DELETE FROM swept WHERE a > 100;
DELETE FROM pinned WHERE a > 100;
SQL
my $most = 1048576;
my $large = "SELECT string_agg(indexrelname, ' ' ORDER BY indexrelname) FROM euno_stat_indexes WHERE bytes > $most AND relname IN ('swept', 'pinned')";
(undef, undef, my $error) = $node->psql('postgres', "SET euno.debug_stop = 'cleanup-trim:error';\nVACUUM swept");
like($error, qr/stop point "cleanup-trim" was reached/, 'a VACUUM that ends while it looks for what is free');
my $owner = $node->background_psql('postgres');
$owner->query_safe('SELECT pg_advisory_lock(1)');
my $waiter = $node->background_psql('postgres', on_error_stop => 0);
$waiter->query_until(qr/begun/, "SET enable_seqscan = off; SET my.wait = 'on';\n\\echo begun\nSELECT * FROM waited WHERE a = 5;\n");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
$node->safe_psql('postgres', 'VACUUM pinned');
is($node->safe_psql('postgres', $large), 'pinned_art pinned_b swept_b', 'memory that is not given back yet');
$node->stop('fast');
$_->{run}->finish for $owner, $waiter;
$node->start;
is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT state, ' ') FROM euno_stat_indexes"), 'ready', 'after a restart they are ready');
$node->safe_psql('postgres', "DELETE FROM $_ WHERE a > 50; VACUUM (INDEX_CLEANUP on) $_") for qw(swept pinned);
is($node->safe_psql('postgres', $large), '', 'and give it back after it');
check_indexes($node, 'postgres', 'what was given back');
$node->safe_psql('postgres', 'DROP TABLE swept, pinned, waited; DROP FUNCTION waiting_cmp CASCADE');

# A prepared transaction goes over the restart with its rows, and with what it drops.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE going (a int);
CREATE INDEX ON going USING euno (a);
BEGIN;
DROP TABLE going;
PREPARE TRANSACTION 'three';
BEGIN;
INSERT INTO t VALUES (500001, 'prepared', 500001);
UPDATE t SET a = 500002 WHERE a = 30001;
DELETE FROM t WHERE a = 30002;
PREPARE TRANSACTION 'one';
BEGIN;
CREATE TABLE made (a int);
INSERT INTO made SELECT generate_series(1, 100);
CREATE INDEX made_a ON made USING euno (a);
PREPARE TRANSACTION 'two';
SQL
$node->restart;
is($node->safe_psql('postgres', "SELECT count(*) FROM t WHERE b = 'prepared' OR a = 500002"),
	'0', 'prepared, not committed');
$node->safe_psql('postgres', "COMMIT PREPARED 'one'; COMMIT PREPARED 'two'");
is(by_index($node, 'postgres', 'SELECT a, b FROM t WHERE a IN (500001, 500002) ORDER BY a'),
	"500001|prepared\n500002|n30001", 'committed after the restart');
same_answers($node, 'postgres', 'SELECT count(*) FROM made WHERE a > 0', 'made and indexed in a prepared transaction')
  if $node->safe_psql('postgres', "SELECT euno_rebuild('made_a')") eq '';
my $trees = $node->safe_psql('postgres', 'SELECT indexes FROM euno_memory');
$node->safe_psql('postgres', "COMMIT PREPARED 'three'");
is($node->safe_psql('postgres', 'SELECT indexes FROM euno_memory'), $trees - 1, 'whose tree goes at once');
check_indexes($node, 'postgres', 'after COMMIT PREPARED');
log_since();

# From here on no file may be believed.  What is changed in between makes an
# answer from it wrong.
sub rejected
{
	my ($name, $reason) = @_;

	like(log_since(), qr/ignored "euno_index.snapshot"\n.*DETAIL:  $reason/, "$name: the log says why");
	is(states(), 'absent', "$name: nothing is believed");
	ok(!-e $file, "$name: the file is gone");
	is($node->safe_psql('postgres', 'SELECT used_bytes FROM euno_memory'), '0', "$name: no memory is used");
	rebuild();
	check_indexes($node, 'postgres', $name);
	return;
}

sub rebuild
{
	for my $dbname ('postgres', 'other')
	{
		$node->safe_psql($dbname, 'SELECT euno_rebuild(indexrelid) FROM euno_stat_indexes');
	}
	return;
}

# An old file, put back after the server has run in between.
$node->stop;
copy($file, "$file.old") or die $!;
$node->start;
change();
$node->stop;
copy("$file.old", $file) or die $!;
log_since();
$node->start;
rejected('an old file', 'It belongs to another shutdown');

# The same after a crash.
change();
$node->stop('immediate');
copy("$file.old", $file) or die $!;
log_since();
$node->start;
rejected('a crash', 'The server was not shut down cleanly');

# A crash restart, where the postmaster goes on.
copy("$file.old", $file) or die $!;
change();
log_since();
my $victim = $node->background_psql('postgres');
kill_process($victim->query('SELECT pg_backend_pid()'));
$victim->{run}->finish;
wait_for_recovery($node);
rejected('a crash restart', 'The server was not shut down cleanly');

# Damage anywhere in the file: in each record's header, in extents, at the end.
sub damaged
{
	my ($name, $damage) = @_;

	change();
	$node->stop;
	open(my $handle, '+<:raw', $file) or die $!;
	$damage->($handle, -s $file);
	close($handle) or die $!;
	log_since();
	$node->start;
	rejected($name, 'It is damaged');
	return;
}

sub flip
{
	my ($handle, $at) = @_;
	my $byte;

	sysseek($handle, $at, 0) or die $! if $at > 0;
	sysread($handle, $byte, 1) == 1 or die $!;
	sysseek($handle, $at, 0) or die $!;
	syswrite($handle, chr(ord($byte) ^ 1)) or die $!;
	return;
}

damaged('a bit of the first record', sub { flip($_[0], 30) });
damaged('a bit of an extent', sub { flip($_[0], int($_[1] / 2)) });
damaged('a bit of the last record', sub { flip($_[0], $_[1] - 10) });
damaged('a truncated file', sub { truncate($_[0], $_[1] - 48) });

# All of its records, but the first, are those of an older file, as they are: what a
# power failure may leave of one that was not flushed.
damaged('records of an older file', sub {
	my ($handle) = @_;
	my ($size, $old);

	sysseek($handle, 24, 0) or die $!;
	sysread($handle, $size, 8) == 8 or die $!;
	my $begin = 48 + unpack('Q', $size);
	open(my $from, '<:raw', "$file.old") or die $!;
	sysseek($from, $begin, 0) or die $!;
	sysread($from, $old, -s $from) > 0 or die $!;
	sysseek($handle, $begin, 0) or die $!;
	syswrite($handle, $old) == length($old) or die $!;
	truncate($handle, $begin + length($old)) or die $!;
});

# A file that cannot be opened.
change();
$node->stop;
chmod(0, $file) or die $!;
log_since();
$node->start;
ok(!-e $file, 'a file that cannot be opened is gone when the server runs');
like(log_since(), qr/could not open file "[^"]*": Permission denied/, 'and the log says so');
rebuild();
all_answers('after a file that could not be opened');

# Single-user mode writes to the table in between; without the preload, and with
# it.  So does a server without the preload.
my @single = ('postgres', '--single', '-D', $node->data_dir);
for my $preload ('', 'euno_index')
{
	change();
	$node->stop;
	run_log([ @single, '-c', "shared_preload_libraries=$preload", 'postgres' ],
		'<', \"DELETE FROM u WHERE a = 1000; INSERT INTO u VALUES (-$next);\n");
	log_since();
	$node->start;
	rejected("single-user mode, preload '$preload'", 'It belongs to another shutdown');
	is($node->safe_psql('postgres', "SELECT count(*) FROM u WHERE a = -$next"), '1', 'which did write');
}
change();
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
ok(-e $file, 'a server without the library leaves the file alone');
$node->safe_psql('postgres', "INSERT INTO u VALUES (123456)");
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'euno_index'");
log_since();
$node->start;
rejected('a server without the library', 'It belongs to another shutdown');

# A cold copy that is told to replay WAL: pg_control is as it was at the
# shutdown, and the table is not.
change();
$node->stop;
$node->backup_fs_cold('cold');
$node->start;
change();
$node->safe_psql('postgres', 'DELETE FROM t WHERE a BETWEEN 19000 AND 19500; VACUUM t; SELECT pg_switch_wal()');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'cold', has_streaming => 1);
ok(-e $standby->data_dir . '/euno_index.snapshot', 'a standby starts with a file');
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
like(slurp_file($standby->logfile), qr/ignored "euno_index.snapshot"\n.*DETAIL:  The server is going to replay WAL/,
	'which is ignored');
$standby->promote;
is($standby->safe_psql('postgres', "SELECT string_agg(DISTINCT state, ' ') FROM euno_stat_indexes"),
	'absent', 'and does not believe it');
is(by_index($standby, 'postgres', 'SELECT count(*) FROM t WHERE a BETWEEN 19000 AND 19500'), '0', 'it answers right');
$standby->stop;

# The memory has another size: more of it is as good, too little is not.  Where it
# is divided into several domains, neither is.
my $divided = ($ENV{EUNO_DOMAINS} // 1) ne '1';
change();
$node->append_conf('postgresql.conf', 'euno.max_memory = 300MB');
$node->restart;
is(states(), $divided ? 'absent' : 'ready', 'more memory');
check_indexes($node, 'postgres', 'more memory');
$node->append_conf('postgresql.conf', 'euno.max_memory = 1MB');
$node->stop;
log_since();
$node->start;
like(log_since(), $divided ? qr/ignored.*another address or shape/s : qr/ignored.*holds more than "euno.max_memory"/s, 'less memory than the trees take');
is(by_index($node, 'postgres', 'SELECT count(*) FROM t WHERE c = -1'), '0', 'the server runs');
$node->append_conf('postgresql.conf', 'euno.max_memory = 256MB');
$node->restart;
rebuild();

# Replicas of the inner nodes come back too, in as many domains.
$node->append_conf('postgresql.conf', 'euno.domains = 2');
$node->stop;
log_since();
$node->start;
like(log_since(), qr/ignored.*another address or shape/s, 'other domains');
rebuild();
change();
$node->restart;
is(states(), 'ready', 'two domains');
check_indexes($node, 'postgres', 'two domains');

# Nothing is written if that is not wanted, or has not been done cleanly.  A postmaster
# that is told to stop in the same moment does not read the file any more.
$node->append_conf('postgresql.conf', 'euno.snapshot_on_shutdown = off');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('euno.snapshot_on_shutdown') = 'off'")
	or die 'the file is not read';
$node->stop;
ok(!-e $file, 'no file if it is not wanted');
$node->start;
$node->append_conf('postgresql.conf', 'euno.snapshot_on_shutdown = on');
$node->reload;
$node->stop('immediate');
ok(!-e $file, 'no file after an immediate shutdown');

# One that cannot get its place.
$node->start;
rebuild();
mkdir $file;
log_since();
$node->stop;
like(log_since(), qr/could not write euno indexes to "euno_index.snapshot"/, 'no file where there is a directory, and why');
rmdir $file;

done_testing();
