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
	my ($dbname, $statement, $role) = @_;
	my ($ret, $stdout, $stderr) = $node->psql($dbname, $statement, extra_params => [ '-U', $role // 'stranger' ]);

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

# An insert builds a unique index that is absent, and so runs its functions for the
# rows of others, as the table's owner: not with what the inserting session has for
# names that these use, whether the functions set the search_path or not.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE thief LOGIN;
CREATE SCHEMA app;
CREATE TABLE app.names AS SELECT 'name' || g AS k, 'value' || g AS v FROM generate_series(1, 100) g;
CREATE FUNCTION app.norm(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN lower(t); END $$;
CREATE FUNCTION app.pinned(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = app AS $$ BEGIN RETURN (SELECT v FROM names WHERE k = t); END $$;
CREATE TABLE app.t AS SELECT k AS a FROM app.names WHERE k <> 'name7';
CREATE UNIQUE INDEX t_norm ON app.t USING euno (app.norm(a));
CREATE UNIQUE INDEX t_pinned ON app.t USING euno (app.pinned(a));
CREATE TABLE app.x (a text, EXCLUDE USING euno (app.norm(a) WITH =));
INSERT INTO app.x SELECT a FROM app.t;
CREATE TABLE app.plain (a text);
CREATE UNIQUE INDEX plain_a ON app.plain USING euno (lower(a)) WHERE a <> 'none';
INSERT INTO app.plain SELECT a FROM app.t;
CREATE FUNCTION app.inlined(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT t || '!' $$;
CREATE TABLE app.s (a text);
CREATE UNIQUE INDEX s_inlined ON app.s USING euno (app.inlined(a));
INSERT INTO app.s SELECT a FROM app.t;
CREATE FUNCTION app.inserts(t text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ INSERT INTO app.t VALUES (t) $$;
GRANT USAGE ON SCHEMA app TO thief;
GRANT INSERT ON app.t, app.x, app.plain, app.s TO thief;
GRANT SELECT ON app.names TO thief;
CREATE SCHEMA thiefs AUTHORIZATION thief;
SQL
my $thief = <<'SQL';
CREATE OR REPLACE FUNCTION thiefs.lower(t text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
	IF current_user <> 'thief' OR t <> 'name7' THEN RAISE WARNING 'stolen: % as %', t, current_user; END IF; RETURN pg_catalog.lower(t); END $$;
DO $$ BEGIN IF to_regoperator('thiefs.||(text, text)') IS NULL THEN
	CREATE OPERATOR thiefs.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.text_smaller); END IF; END $$;
SET search_path = thiefs, pg_catalog, app;
CREATE FUNCTION pg_temp.f() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
	IF current_user <> 'thief' THEN RAISE WARNING 'stolen as %', current_user; END IF; RETURN true; END $$;
CREATE TEMP VIEW names AS SELECT k, v FROM app.names WHERE pg_temp.f();
SQL
for my $statement ("INSERT INTO app.t VALUES ('name7')", "INSERT INTO app.x VALUES ('name7')", "INSERT INTO app.plain VALUES ('name7')", "INSERT INTO app.s VALUES ('name7')",
	"SELECT app.inserts('name7')")
{
	$node->safe_psql('postgres', "SELECT count(euno_evict(indexrelid)) FROM euno_stat_indexes WHERE schemaname = 'app'");
	my $answer = stranger('postgres', "$thief $statement", 'thief');

	unlike($answer, $statement =~ /inserts/ ? qr/stolen.*name[1-689]/ : qr/stolen/, "$statement: the rows of others are not shown, nor code run by others");
	# His own row may have another key by his names: then it is refused, once.
	unlike($answer, qr/ERROR(?!.*with another key for the new row)/, 'and the index is built') unless $statement =~ /inserts/;
}
$node->safe_psql('postgres', "SELECT count(euno_rebuild(indexrelid)) FROM euno_stat_indexes");
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT a) FROM app.t'), '100|100', 'the row is there once');
# His own row may have any key, as with btree.
$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM app.s WHERE a = 'name7'");
$node->safe_psql('postgres', 'VACUUM app.s');
check_indexes($node, 'postgres', 'built for a thief');
# Nor does a check run them for somebody else.
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION euno_index_check TO thief');
like(stranger('postgres', "SELECT euno_index_check('app.t_norm', true)", 'thief'), qr/must be owner of table "t" to check euno index "t_norm"/, 'only the owner checks what runs functions');
unlike(stranger('postgres', "SELECT euno_index_check('private_n', true)", 'thief'), qr/ERROR/, 'whoever may, the others');

# Whoever waits for the worker may hold what its functions want: a deadlock that
# the server does not see.  And one that nobody waits for ends.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE app.wanted (a int);
CREATE FUNCTION app.wants(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN a + (SELECT count(*) FROM app.wanted); END $$;
CREATE FUNCTION app.sleeps(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM pg_sleep(0.02); RETURN a; END $$;
CREATE TABLE app.w (a int);
CREATE UNIQUE INDEX w_wants ON app.w USING euno (app.wants(a));
INSERT INTO app.w SELECT generate_series(1, 500);
CREATE TABLE app.z AS TABLE app.w;
GRANT ALL ON app.w, app.z, app.wanted TO thief;
SELECT euno_evict('app.w_wants');
SQL
like(stranger('postgres', "SET statement_timeout = '60s'; BEGIN; LOCK TABLE app.wanted; INSERT INTO app.w VALUES (1000)", 'thief'),
	qr/could not build euno index "w_wants"/, 'a worker that waits for whoever waits for it gives up');
like(slurp_file($node->logfile), qr/canceling statement due to lock timeout/, 'and says why');
$node->safe_psql('postgres', "CREATE UNIQUE INDEX z_sleeps ON app.z USING euno (app.sleeps(a)); SELECT euno_evict('app.z_sleeps')");
like(stranger('postgres', "SET statement_timeout = '1s'; INSERT INTO app.z VALUES (1000)", 'thief'), qr/canceling statement due to statement timeout/, 'a session that waits for a worker can be canceled');
my $canceled = time;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'euno rebuild'"), 'the worker ends');
cmp_ok(time - $canceled, '<', 7, 'before it is done');

# Of many who want the index one's worker builds it, whoever else is canceled.
$node->safe_psql('postgres', "DELETE FROM app.z WHERE a > 100");
my @waiting = map { $node->background_psql('postgres', extra_params => [ '-U', 'thief' ], on_error_stop => 0) } 1 .. 4;
for my $i (0 .. 3)
{
	$waiting[$i]->query_safe("SET statement_timeout = '" . ($i == 0 ? '1s' : '60s') . "'");
	$waiting[$i]->query_until(qr/started/, "\\echo started\nINSERT INTO app.z VALUES (2000 + $i);\n");
}
$_->quit for @waiting;
is($node->safe_psql('postgres', 'SELECT string_agg(a::text, $$ $$ ORDER BY a) FROM app.z WHERE a >= 2000'), '2001 2002 2003', 'the others wait for it');

# Whoever waits for another builder, one of the launcher's, is seen to do so.
$node->append_conf('postgresql.conf', 'euno.auto_rebuild = off');
$node->stop('immediate');
$node->start;
my $locker = $node->background_psql('postgres', extra_params => [ '-U', 'thief' ], on_error_stop => 0);
$locker->query_safe("SET statement_timeout = '60s'; BEGIN; LOCK TABLE app.wanted");
$node->safe_psql('postgres', $_)
  for 'EXPLAIN SELECT FROM app.w WHERE app.wants(a) = 1', 'ALTER SYSTEM SET euno.auto_rebuild = on', 'SELECT pg_reload_conf()';
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'app.wanted'::regclass"),
	'a worker builds, and waits for a lock');
$locker->query('INSERT INTO app.w VALUES (1001)');
like($locker->{stderr} . slurp_file($node->logfile), qr/ERROR:  deadlock detected/, 'whoever waits for another builder is seen to do so');
$locker->query('ROLLBACK');
$locker->quit;

$node->safe_psql('postgres', 'DROP TABLE app.w, app.z');

$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
$node->safe_psql('postgres', "SELECT euno_evict('app.t_norm')");
like(stranger('postgres', "INSERT INTO app.t VALUES ('name8')", 'thief'), qr/could not start a worker to build euno index "t_norm"/, 'without a worker nothing is built');

# With one for two indexes, one is built after the other.
$node->append_conf('postgresql.conf', "max_worker_processes = 2\nmax_logical_replication_workers = 0\ndeadlock_timeout = 100ms\neuno.auto_rebuild = off");
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$node->restart;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE app.z1 AS SELECT generate_series(1, 100) AS a;
CREATE TABLE app.z2 AS TABLE app.z1;
GRANT ALL ON app.z1, app.z2 TO thief;
CREATE UNIQUE INDEX z1_sleeps ON app.z1 USING euno (app.sleeps(a));
CREATE UNIQUE INDEX z2_sleeps ON app.z2 USING euno (app.sleeps(a));
SELECT euno_evict('app.z1_sleeps'), euno_evict('app.z2_sleeps');
SQL
@waiting = map { $node->background_psql('postgres', extra_params => [ '-U', 'thief' ], on_error_stop => 0) } 1 .. 2;
$waiting[$_ - 1]->query_until(qr/started/, "\\echo started\nINSERT INTO app.z$_ VALUES (2000);\n") for 1 .. 2;
is(join('', map { $_->query('SELECT 1'); $_->{stderr} =~ s/background_psql.*\n//gr } @waiting), '', 'who finds no place for a worker waits while others build');
$_->quit for @waiting;

# So it does while a parallel query has the place, but not if that waits for its locks.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE app.few WITH (parallel_workers = 2) AS SELECT generate_series(1, 3) AS a;
CREATE TABLE app.many WITH (parallel_workers = 2) AS SELECT generate_series(1, 100000) AS a;
SELECT euno_evict('app.z1_sleeps');
SQL
my $query = $node->background_psql('postgres');
$query->query(<<'SQL');
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
SQL
sub await_worker
{
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker'")
		or die 'no parallel worker';
}
$query->query_until(qr/started/, "\\echo started\nSELECT count(*) FROM app.few WHERE pg_sleep(1.5)::text = '';\n");
await_worker();
is(stranger('postgres', 'INSERT INTO app.z1 VALUES (2001)', 'thief'), ' ', 'who finds no place for a worker waits for a parallel query');
$query->query('SELECT 1');
$node->safe_psql('postgres', "SELECT euno_evict('app.z1_sleeps')");
$locker = $node->background_psql('postgres', extra_params => [ '-U', 'thief' ], on_error_stop => 0);
$locker->query('BEGIN; SELECT pg_advisory_xact_lock(7)');
$query->query_until(qr/started/, "\\echo started\nSELECT pg_advisory_xact_lock(7), a FROM app.many;\n");
await_worker();
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
	or die 'nobody waits for the lock';
$locker->query('INSERT INTO app.z1 VALUES (2002)');
like($locker->{stderr}, qr/could not start a worker to build euno index "z1_sleeps"/, 'but not for one that waits for it');
$locker->query('ROLLBACK');
$_->quit for $locker, $query;
$node->safe_psql('postgres', 'DROP TABLE app.few, app.many, app.z1, app.z2');
$node->append_conf('postgresql.conf', "max_worker_processes = 8\ndeadlock_timeout = 1s\neuno.auto_rebuild = on");
$node->restart;

# A comparator of users that the server's own calls, for what is made of their
# type: nor is that run with the owner's rights in the session of somebody else.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE comp_owner;
CREATE ROLE comp_writer;
CREATE TYPE comp AS (a int);
CREATE FUNCTION comp_cmp(comp, comp) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE WARNING 'compared as %', current_user; RETURN btint4cmp($1.a, $2.a); END $$;
CREATE FUNCTION comp_lt(comp, comp) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a < ($2).a';
CREATE FUNCTION comp_eq(comp, comp) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT ($1).a = ($2).a';
CREATE OPERATOR <! (FUNCTION = comp_lt, LEFTARG = comp, RIGHTARG = comp);
CREATE OPERATOR =! (FUNCTION = comp_eq, LEFTARG = comp, RIGHTARG = comp);
CREATE OPERATOR CLASS comp_ops DEFAULT FOR TYPE comp USING btree AS OPERATOR 1 <!, OPERATOR 3 =!, FUNCTION 1 comp_cmp(comp, comp);
CREATE TYPE comp_range AS RANGE (subtype = comp);
CREATE TYPE comp_row AS (c comp, b int);
CREATE DOMAIN comp_domain AS comp[];
SQL
my %made_of = (
	'comp[]' => ['k', 'ARRAY[row(%s)::comp]'],
	'comp_domain' => ['k', 'ARRAY[row(%s)::comp]'],
	'comp_range' => ['k', 'comp_range(row(%1$s)::comp, row(%1$s + 1)::comp)'],
	'comp_multirange' => ['k', 'comp_multirange(comp_range(row(%1$s)::comp, row(%1$s + 1)::comp))'],
	'comp_row' => ['k', 'row(row(%s)::comp, 1)::comp_row'],
	'comp' => ['((GREATEST(k, k)).a)', 'row(%s)::comp'],
	'int' => ['((ARRAY[row(k)::comp] < ARRAY[row(2)::comp])::int + 2 * k)', '%s'],
);
for my $type (sort keys %made_of)
{
	my ($key, $value) = @{ $made_of{$type} };
	my ($some, $one) = (sprintf($value, 'g'), sprintf($value, '10'));
	my ($ret, $out, $err) = $node->psql('postgres', <<SQL);
CREATE TABLE made_of (k $type);
ALTER TABLE made_of OWNER TO comp_owner;
INSERT INTO made_of SELECT $some FROM generate_series(1, 3) g;
CREATE UNIQUE INDEX made_of_k ON made_of USING euno ($key);
GRANT SELECT, INSERT ON made_of TO comp_writer;
SELECT euno_evict('made_of_k');
SET SESSION AUTHORIZATION comp_writer;
DO \$\$ BEGIN RAISE WARNING 'now'; END \$\$;
INSERT INTO made_of VALUES ($one);
SQL
	is($ret, 0, "$type, $key: the index is built") or diag $err;
	like($err, qr/now.*compared as comp_writer/s, "$type, $key: a writer compares");
	unlike($err, qr/now.*compared as comp_owner/s, "$type, $key: but does not build");
	$node->safe_psql('postgres', 'DROP TABLE made_of');
}

# Who may not alter a table waits for no lock on its index: that would say that
# there is one, and be in the way of others.
$node->safe_psql('postgres', 'CREATE TABLE identity (k int NOT NULL); CREATE UNIQUE INDEX identity_k ON identity USING euno (k)');
$locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE identity; DROP INDEX identity_k');
my (undef, undef, $refused) = $node->psql('postgres', "SET statement_timeout = '20s'; SET ROLE stranger; ALTER TABLE identity REPLICA IDENTITY USING INDEX identity_k");
like($refused, qr/must be owner of table identity/, 'REPLICA IDENTITY of a table of somebody else');
$locker->query_safe('ROLLBACK');
$locker->quit;
$node->safe_psql('postgres', 'DROP TABLE identity');

# Nothing of what is done in the background writes keys to the log: neither a
# rebuild after a crash nor its failure.
$node->stop('immediate');
$node->start;
ok(wait_for_state($node, $_, 'ready'), "rebuilt in $_") for 'postgres', 'hers';
$node->stop;
my @lines = grep { /topsecret/ && !/STATEMENT:|INSERT INTO private|already exists/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @lines), '', 'no key is in the log');
done_testing();
