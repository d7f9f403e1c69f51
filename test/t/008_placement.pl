# Relation files that are moved without a word to the access method: tablespaces
# of indexes and of databases.  And databases that are dropped while an
# index is built in them, and what users may see and do.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $node = euno_node('placement', "allow_in_place_tablespaces = on\nmax_prepared_transactions = 1\neuno.naptime = 1s");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 3000) g;
CREATE INDEX t_a ON t USING euno (a);
CREATE INDEX t_b ON t USING euno (b);
SQL
$node->safe_psql('postgres', "CREATE TABLESPACE one LOCATION ''");
$node->safe_psql('postgres', "CREATE TABLESPACE two LOCATION ''");

my $by_a = 'SELECT a FROM t WHERE a > 2500 ORDER BY a';
my $by_b = "SELECT b FROM t WHERE b > 'b29' ORDER BY b";

sub right_and_rebuilt
{
	my ($dbname, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(by_index($node, $dbname, $by_a), by_seqscan($node, $dbname, $by_a), "$name: right before a rebuild");
	$node->safe_psql($dbname, "INSERT INTO t SELECT max(a) + 1, 'b3' FROM t; DELETE FROM t WHERE a = 2501; SELECT euno_rebuild('t_a'), euno_rebuild('t_b')");
	same_answers($node, $dbname, $by_a, "$name, t_a");
	same_answers($node, $dbname, $by_b, "$name, t_b");
	check_indexes($node, $dbname, $name);
	return;
}

my $used = used_bytes($node);
is($node->safe_psql('postgres', 'ALTER INDEX t_a SET TABLESPACE one; SELECT indexes FROM euno_memory'), '1', 'ALTER INDEX SET TABLESPACE gives memory back');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE');
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX t_a SET TABLESPACE two; INSERT INTO t VALUES (9000, $$x$$); ROLLBACK');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, rolled back');
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX t_a SET TABLESPACE two; INSERT INTO t VALUES (9001, $$x$$); SELECT euno_rebuild($$t_a$$); COMMIT');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, rebuilt in the same transaction');
$node->safe_psql('postgres', 'ALTER TABLE t SET TABLESPACE one');
right_and_rebuilt('postgres', 'ALTER TABLE SET TABLESPACE');
# What is inserted into the new file is not in the old one.
my $more = 'INSERT INTO t SELECT g, $$b3$$ || g FROM generate_series(20000, 25000) g';
for my $case ([ 'rolled back', 'ROLLBACK' ], [ 'rolled back to a savepoint', 'ROLLBACK TO s; COMMIT' ],
	[ 'prepared, rolled back', 'PREPARE TRANSACTION $$p$$' ])
{
	my ($name, $end) = @$case;

	$node->safe_psql('postgres', "BEGIN; SAVEPOINT s; ALTER TABLE t SET TABLESPACE two; $more; $end");
	$node->safe_psql('postgres', 'ROLLBACK PREPARED $$p$$') if $end =~ /PREPARE/;
	$node->safe_psql('postgres', 'INSERT INTO t SELECT g, $$a$$ || g FROM generate_series(1, 100) g');
	right_and_rebuilt('postgres', "ALTER TABLE SET TABLESPACE, $name");
}
$node->safe_psql('postgres', 'BEGIN; ALTER TABLE t ALTER a TYPE bigint; ROLLBACK');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ', ') FROM euno_stat_indexes}), 'ready', 'a rewrite that is rolled back costs no tree');
$node->safe_psql('postgres', 'ALTER INDEX t_a SET TABLESPACE pg_default');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, back');
$node->safe_psql('postgres', 'BEGIN; SAVEPOINT s; ALTER INDEX t_a SET TABLESPACE two; SELECT euno_rebuild($$t_a$$); ROLLBACK TO s; COMMIT; BEGIN; ALTER INDEX t_a SET TABLESPACE two; SELECT euno_rebuild($$t_a$$); ROLLBACK');
right_and_rebuilt('postgres', 'ALTER INDEX SET TABLESPACE, and a tree for the new file, rolled back');
is($node->safe_psql('postgres', 'SELECT indexes FROM euno_memory'), '2', 'nothing is left of old files');
cmp_ok(used_bytes($node), '<=', 2 * $used, 'and their memory');

# A session that has looked a tree up while it was dropped, and waited for its
# last reader, finds the one that is made in its place.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE before (a int);
CREATE INDEX before_a ON before USING euno (a);
CREATE TABLE s (a int);
INSERT INTO s SELECT generate_series(1, 1000);
CREATE INDEX s_a ON s USING euno (a);
CREATE TABLE h (a int);
INSERT INTO h SELECT generate_series(1, 100);
CREATE INDEX h_a ON h USING euno (a);
SELECT euno_evict('h_a');
SQL
my %session = map { $_ => $node->background_psql('postgres') } ('locker', 'builder', 'reader', 'mover');
$session{locker}->query_safe('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
$session{builder}->query_until(qr/begun/, "SET euno.debug_stop = 'build-page:1';\n\\echo begun\nSELECT euno_rebuild('h_a');\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
$session{reader}->query_until(qr/begun/, "SET euno.debug_stop = 'insert-aside:2';\n\\echo begun\nINSERT INTO h VALUES (5);\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
$session{mover}->query_safe('BEGIN; SELECT count(*) FROM s; SAVEPOINT p; ALTER TABLE s SET TABLESPACE two; ROLLBACK TO p; INSERT INTO s VALUES (-1)');
is(state_of($node, 's_a'), 'retiring', 'a tree waits for its last reader');
$session{locker}->query_safe('SELECT pg_advisory_unlock(1), pg_advisory_unlock(2)');
$session{$_}->query_safe('SELECT 1') for 'builder', 'reader';
$session{mover}->query_safe('COMMIT');
$node->safe_psql('postgres', "DROP TABLE before; SELECT euno_rebuild('s_a')");
$session{mover}->query_safe('INSERT INTO s VALUES (-2)');
same_answers($node, 'postgres', 'SELECT a FROM s WHERE a < 0 ORDER BY a', 'a tree made in place of one that was dropped');
$session{$_}->quit for keys %session;
$node->safe_psql('postgres', 'DROP TABLE s, h');

# A database moves: all its files do.
$node->safe_psql('postgres', 'CREATE DATABASE moved TEMPLATE postgres');
right_and_rebuilt('moved', 'a copied database');
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE two');
right_and_rebuilt('moved', 'ALTER DATABASE SET TABLESPACE');
right_and_rebuilt('postgres', 'its template meanwhile');

# It comes back, and so do the names of its files; a new database has those of
# one that was dropped, if it has the same OID.  The launcher sees nothing of it.
$node->safe_psql('postgres', $_) for "ALTER SYSTEM SET euno.naptime = '1h'", 'ALTER SYSTEM SET euno.auto_rebuild = off';
$node->reload;
$node->safe_psql('postgres', $_) for 'CREATE TABLESPACE three LOCATION $$$$', 'ALTER DATABASE moved SET TABLESPACE three';
$node->safe_psql('moved', 'INSERT INTO t SELECT max(a) + 1, $$b3$$ FROM t');
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE two');
right_and_rebuilt('moved', 'ALTER DATABASE SET TABLESPACE, back');

my $states = q{SELECT string_agg(indexrelname || ' ' || state, ', ' ORDER BY indexrelname) FROM euno_stat_indexes};
$node->safe_psql('moved', 'CREATE INDEX t_one ON t USING euno (a) TABLESPACE one');
$node->safe_psql('postgres', $_) for 'ALTER DATABASE moved RENAME TO other', 'ALTER DATABASE other RENAME TO moved', 'ALTER DATABASE moved CONNECTION LIMIT 50';
is($node->safe_psql('moved', $states), 't_a ready, t_b ready, t_one ready', 'renaming a database costs no tree');
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE three');
is($node->safe_psql('moved', $states), 't_a absent, t_b absent, t_one ready', 'moving it costs those that move');

$node->safe_psql('moved', 'DROP INDEX t_one');
$node->safe_psql('postgres', 'CREATE DATABASE again OID 90000 TEMPLATE moved');
right_and_rebuilt('again', 'a copy with an OID of its own');
$node->safe_psql('again', 'DELETE FROM t WHERE a > 2600');
$node->safe_psql('again', 'VACUUM t');
$node->safe_psql('postgres', $_) for 'DROP DATABASE again', 'CREATE DATABASE again OID 90000 TEMPLATE moved';
right_and_rebuilt('again', 'another one with the same OID');
$node->safe_psql('postgres', $_) for 'DROP DATABASE again', 'ALTER SYSTEM RESET ALL';
$node->reload;

# Each database sees its own indexes only; users see statistics, not content,
# and may not do things to them.
is($node->safe_psql('postgres', 'SELECT count(*) FROM euno_stat_get_indexes()'), '2', 'views show this database only');
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN');
is( $node->safe_psql('postgres', 'SET ROLE somebody; SELECT count(*) FROM euno_stat_indexes'),
	'2', 'everybody may see the statistics');
for my $call ("euno_evict('t_a')", "euno_rebuild('t_a')", "euno_index_check('t_a')")
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET ROLE somebody; SELECT $call");
	like($stderr, qr/permission denied for function/, "$call is not for everybody");
}

# A database is dropped while an index is built in it.  The builder is
# held at the end of the build by a lock of a session there.
$node->safe_psql('postgres', "ALTER DATABASE moved SET euno.debug_stop = 'build-end:1'");
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->restart;
my $holder = $node->background_psql('moved');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $builder = $node->background_psql('moved');
$builder->query_until(qr/started/, "\\echo started\nSELECT euno_rebuild('t_a');\n");
ok( $node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = 'moved' AND wait_event = 'advisory'"),
	'a build is under way');
$node->safe_psql('postgres', 'DROP DATABASE moved WITH (FORCE)');
pass('DROP DATABASE WITH (FORCE) during a build');
$_->{run}->finish for $holder, $builder;
ok($node->poll_query_until('postgres', 'SELECT used_bytes = 0 FROM euno_memory'), 'the unfinished tree is collected');
$node->safe_psql('postgres', "SELECT euno_rebuild('t_a'), euno_rebuild('t_b')");
right_and_rebuilt('postgres', 'afterwards');

$node->stop;
done_testing();
