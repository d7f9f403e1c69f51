# What the tests that start their own servers share.

package EunoTest;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(euno_node fill_procedures $extension wait_for_state wait_for_recovery same_answers
  by_index by_seqscan check_indexes used_bytes kill_process script_file start_pgbench state_of for_all);

# A session of background_psql may take so long in all, not for a statement; some
# live as long as their test, which takes long on a busy machine.
$PostgreSQL::Test::Utils::timeout_default = 900
  if $PostgreSQL::Test::Utils::timeout_default < 900;

# How each of the two sides of a comparison is planned.
my $index_settings =
  "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;";
my $seqscan_settings =
  "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;";

# The extension, and an operator class for numeric whose comparator it does not know:
# with it an index is in COMPARE order, and 1.0 and 1.00 are one key but not one image.
our $extension = <<'SQL';
CREATE EXTENSION euno_index;
CREATE FUNCTION compared_cmp(numeric, numeric) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_cmp';
CREATE OPERATOR CLASS compared FOR TYPE numeric USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared_cmp(numeric, numeric);
SQL

# A server with euno_index preloaded, not started.  With EUNO_DOMAINS it has so many
# domains, and every B+tree inner nodes in each of them, unless the settings say
# otherwise.
sub euno_node
{
	my ($name, $settings, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $domains = $ENV{EUNO_DOMAINS} ?
	  "euno.domains = '$ENV{EUNO_DOMAINS}'\neuno.debug_copies = all" : '';

	$node->init(%params);
	$node->append_conf('postgresql.conf', <<"CONF");
shared_preload_libraries = 'euno_index'
autovacuum = off
restart_after_crash = on
log_statement = none
log_line_prefix = '%m [%p] %e %q%a '
euno.max_memory = 256MB
euno.snapshot_on_shutdown = off
max_connections = 40
max_prepared_transactions = 10
$domains
$settings
CONF
	return $node;
}

sub state_of
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres', "SELECT state FROM euno_stat_indexes WHERE indexrelname = '$index'");
}

# Settings of the sessions and workers that connect from now on; undef: no more.
sub for_all
{
	my ($node, %settings) = @_;

	$node->safe_psql('postgres', join(' ', map {
		'ALTER DATABASE postgres ' . (defined $settings{$_} ? "SET $_ = '$settings{$_}';" : "RESET $_;") } keys %settings));
}

# Waits until all euno indexes of a database are in a state; true if they are.
sub wait_for_state
{
	my ($node, $dbname, $state) = @_;

	return $node->poll_query_until($dbname,
		"SELECT count(*) > 0 AND bool_and(state = '$state') FROM euno_stat_indexes");
}

# Waits until the server accepts connections again after a crash.  A psql that is
# refused may be gone before it has been told what to ask: an error of its pipe.
sub wait_for_recovery
{
	my ($node) = @_;

	for (1 .. 100)
	{
		my $up = eval { $node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') };

		return $up if defined $up;
	}
	return 0;
}

sub by_index
{
	my ($node, $dbname, $query) = @_;

	return $node->safe_psql($dbname, "$index_settings $query");
}

sub by_seqscan
{
	my ($node, $dbname, $query) = @_;

	return $node->safe_psql($dbname, "$seqscan_settings $query");
}

# Does a query, planned with indexes, use one of ours, and is its answer that of
# a sequential scan?
sub same_answers
{
	my ($node, $dbname, $query, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like(by_index($node, $dbname, "EXPLAIN (COSTS OFF) $query"),
		qr/Index (Only )?Scan/, "$name: the index is used");
	is( by_index($node, $dbname, $query),
		by_seqscan($node, $dbname, $query),
		"$name: the answer is that of a sequential scan");
	return;
}

# Runs euno_index_check on every valid euno index of a database.
sub check_indexes
{
	my ($node, $dbname, $name) = @_;
	my ($ret, $stdout, $stderr) = $node->psql($dbname,
		"SELECT euno_index_check(indexrelid, true) FROM pg_index"
		  . " WHERE indisvalid AND indexrelid IN (SELECT indexrelid FROM euno_stat_indexes)");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("$ret $stderr", "0 ", "$name: euno_index_check is content");
	return;
}

# Kills a server process without mercy, and waits until its parent knows: before
# that, the server takes connections as if nothing had happened.
sub kill_process
{
	my ($pid) = @_;

	die "not the ID of a process: $pid" unless $pid =~ /^[0-9]+$/ && $pid > 1;
	my $killed = kill('KILL', $pid);
	for (1 .. 1800)
	{
		last unless kill 0, $pid;
		select(undef, undef, undef, 0.1 * ($_ > 10) + 0.01);
	}
	return $killed;
}

# For a table t (k text): fill(rows, length, times) fills the memory with leaves that are
# full; after near(key) the leaf of that key, with more x behind it, has no room either.
sub fill_procedures
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'SQL');
CREATE PROCEDURE fill(rows int, length int, times int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..times LOOP
		BEGIN
			INSERT INTO t SELECT md5(random()::text) || repeat('x', length) FROM generate_series(1, rows);
		EXCEPTION WHEN out_of_memory THEN
			EXIT WHEN rows > 1;
		END;
	END LOOP;
END $$;
CREATE PROCEDURE near(key text) LANGUAGE plpgsql AS $$
DECLARE
	refused int := 0;
BEGIN
	FOR i IN 1..10000 LOOP
		EXIT WHEN refused = 2;
		refused := 0;
		FOR j IN 0..1 LOOP
			BEGIN
				INSERT INTO t VALUES (key || repeat('x', 890) || CASE j WHEN 0 THEN 'a' || lpad(i::text, 9, '0')
					ELSE 'y' || lpad((10000 - i)::text, 9, '0') END);
			EXCEPTION WHEN out_of_memory THEN
				refused := refused + 1;
			END;
		END LOOP;
	END LOOP;
END $$;
SQL
	return;
}

# Writes a script for pgbench; its path.
sub script_file
{
	my ($node, $name, $text) = @_;
	my $file = $node->basedir . "/$name.sql";

	append_to_file($file, $text);
	return $file;
}

# pgbench in the background, of whom only the end is of interest.
sub start_pgbench
{
	my ($node, @options) = @_;

	return IPC::Run::start([ 'pgbench', '-n', @options, $node->connstr('postgres') ], '>', '/dev/null', '2>', '/dev/null');
}

sub used_bytes
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT used_bytes FROM euno_memory');
}

1;
