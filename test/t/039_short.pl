# Memory is short: nobody waits for a statement that fails because of it, what others
# have just given up is found, and what was evicted comes back.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

my $settings = "euno.debug_copies = off\neuno.domains = 1\neuno.max_memory = 8MB\neuno.auto_rebuild = on\n";
my $node = euno_node('short', "$settings euno.naptime = 1s");
$node->start;
fill_procedures($node);

# A unique index whose leaves are full, in all of the memory.  This row never fits: neither
# does one of its length just before it, nor one just behind it.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE TABLE t (k text COLLATE "C");
CREATE UNIQUE INDEX t_k ON t USING euno (k);
CALL fill(200, 300, 1000);
CALL fill(1, 900, 6000);
CALL near(md5('k'));
CREATE FUNCTION try() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t VALUES (md5('k') || repeat('x', 900));
	RETURN 'inserted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $$;
SQL
my $insert = q{INSERT INTO t VALUES (md5('k') || repeat('x', 900))};
my $refused = qr/out of memory for euno index "t_k"/;
my ($ret, $stdout, $stderr) = $node->psql('postgres', $insert);
like($stderr, $refused, 'there is no room for a row');

# Whoever looks for memory may have to wait for the catalog, and keeps nobody with the
# same key waiting meanwhile, who may have locked the catalog.
my $first = $node->background_psql('postgres', on_error_stop => 0);
my $second = $node->background_psql('postgres');
$_->query_safe('SELECT try()') for $first, $second;
$second->query_safe(q{SET statement_timeout = '20s'});
$second->query_safe('BEGIN');
$second->query_safe('LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE');
$first->query_until(qr/begun/, "\\echo begun\n$insert;\n");
sleep 2;
like($second->query_safe('SELECT try()'), $refused, 'who waits for the catalog holds no lock of the key');
$second->query_safe('ROLLBACK');
$_->quit for $first, $second;

# Nor does a client that does not read what it is told.
my $deaf = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "no connection: $!";
my $startup = pack('N', 196608) . "user\0" . getpwuid($>) . "\0database\0postgres\0application_name\0deaf\0\0";
my $query = "$insert\0";
$deaf->syswrite(pack('N', 4 + length $startup) . $startup);
$deaf->sysread(my $greeting, 65536);
$deaf->blocking(0);
for (1 .. 600)
{
	$deaf->syswrite('Q' . pack('N', 4 + length $query) . $query) or select(undef, undef, undef, 0.02);
	last if $_ % 50 == 0 && $node->safe_psql('postgres',
		q{SELECT wait_event FROM pg_stat_activity WHERE application_name = 'deaf'}) eq 'ClientWrite';
}
is($node->safe_psql('postgres', q{SELECT wait_event FROM pg_stat_activity WHERE application_name = 'deaf'}),
	'ClientWrite', 'a client does not read its errors');
($ret, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = '20s'; $insert");
like($stderr, $refused, 'others with its key do not wait for it');
close $deaf;

# Who is evicted without a name that can be seen.
$node->safe_psql('postgres', <<'SQL');
DROP TABLE t;
CREATE TABLE other AS SELECT g AS a FROM generate_series(1, 300000) g;
CREATE TABLE t (a int);
CREATE UNIQUE INDEX t_a ON t USING euno (a);
SQL
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN');
$session->query_safe('CREATE INDEX other_a ON other USING euno (a)');
($ret, $stdout, $stderr) = $node->psql('postgres',
	'SET euno.on_full = evict; INSERT INTO t SELECT g FROM generate_series(1, 800000) g');
like($stderr, qr/WARNING:  evicted euno index "\d+": "euno.max_memory" is used up/, 'an index that is not committed yet has a number');
$session->query_safe('COMMIT');
$session->quit;

# An index that took nearly all of the memory, and whose table is small now.  It is not
# tried before that, for after each attempt in vain it would be left alone for longer.
$node->safe_psql('postgres', <<'SQL');
ALTER SYSTEM SET euno.auto_rebuild = off;
SELECT pg_reload_conf();
DROP TABLE t, other;
CREATE TABLE t (k text COLLATE "C");
CREATE INDEX t_k ON t USING euno (k);
INSERT INTO t SELECT md5(g::text) FROM generate_series(1, 30000) g;
SQL
($ret, $stdout, $stderr) = $node->psql('postgres',
	'SET euno.on_full = evict; INSERT INTO t SELECT md5(g::text) FROM generate_series(30001, 400000) g');
my ($kilobytes) = $stderr =~ /evicted euno index "t_k".*It took (\d+) kB/s;
cmp_ok($kilobytes, '>', 8192 * 8 / 9, 'an index that took nearly all is evicted');
$node->safe_psql('postgres', q{DELETE FROM t WHERE ctid >= '(30,0)'});
$node->safe_psql('postgres', 'VACUUM ANALYZE t');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE other (a int);
CREATE UNIQUE INDEX other_a ON other USING euno (a);
INSERT INTO other SELECT generate_series(1, 15000);
SQL
my $free = 8192 - used_bytes($node) / 1024;
ok($free >= 8192 * 15 / 16 && $free < $kilobytes + 8192 / 32, 'most of what it took is free, but less than it took and a little');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET euno.auto_rebuild; SELECT pg_reload_conf()');
my $plan = '';
for (1 .. 600)
{
	$plan = $node->safe_psql('postgres', q{SET enable_seqscan = off; EXPLAIN SELECT count(*) FROM t WHERE k = 'x'});
	last if $plan =~ /t_k/;
	select(undef, undef, undef, 0.1);
}
like($plan, qr/t_k/, 'it comes back when its table is small');
$node->stop;

# What was dropped while somebody read it, and has not been freed yet when somebody
# else needs it.  The launcher does not come by.
$node = euno_node('retiring', "$settings euno.naptime = 1h");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION euno_index;
CREATE FUNCTION slow_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF current_setting('my.slow', true) = 'on' THEN
		PERFORM pg_advisory_lock_shared(1);
		PERFORM pg_advisory_unlock_shared(1);
	END IF;
	RETURN btint4cmp($1, $2);
END $$;
CREATE OPERATOR CLASS slow_ops FOR TYPE int USING euno AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 slow_cmp(int, int);
CREATE TABLE slow (a int);
INSERT INTO slow SELECT generate_series(1, 50);
CREATE INDEX slow_a ON slow USING euno (a slow_ops);
CREATE TABLE big (a bigint);
INSERT INTO big SELECT (random() * 1e15)::bigint FROM generate_series(1, 300000);
CREATE INDEX big_a ON big USING euno (a);
CREATE TABLE t (a bigint);
CREATE INDEX t_a ON t USING euno (a);
SQL
my $control = $node->background_psql('postgres');
my $reader = $node->background_psql('postgres');
my $waits = q{SELECT count(*) = %d FROM pg_locks WHERE locktype = 'advisory' AND NOT granted};
my $writes = 'INSERT INTO t SELECT (random() * 1e15)::bigint FROM generate_series(1, 250000)';
my $reads = 'SELECT count(*) FROM slow WHERE a = 17';
$control->query_safe('SELECT pg_advisory_lock(1)');
$reader->query_safe('SET enable_seqscan = off; SET my.slow = on');
$reader->query_until(qr/begun/, "\\echo begun\n$reads;\n");
$node->poll_query_until('postgres', sprintf($waits, 1));
$node->safe_psql('postgres', 'DROP INDEX big_a');
$control->query_safe('SELECT pg_advisory_unlock(1)');
$reader->query_safe('SELECT 1');
cmp_ok(used_bytes($node), '>', 4 * 1024 * 1024, 'memory of an index that was dropped is not free yet');
($ret, $stdout, $stderr) = $node->psql('postgres', $writes);
is("$ret $stderr", '0 ', 'an insert that needs it finds it');

# Who reads what was dropped is not done when it is needed, but is a moment later.  More
# than once, for the moment may be a long one on a busy machine.
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_safe("SET euno.debug_stop = 'insert-full:2'");
for (1 .. 5)
{
	$node->safe_psql('postgres', 'TRUNCATE t');
	$node->safe_psql('postgres', 'CREATE INDEX big_a ON big USING euno (a)');
	$control->query_safe('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
	$reader->query_until(qr/begun/, "\\echo begun\n$reads;\n");
	$node->poll_query_until('postgres', sprintf($waits, 1));
	$node->safe_psql('postgres', 'DROP INDEX big_a');
	$writer->query_until(qr/begun/, "\\echo begun\n$writes;\n");
	$node->poll_query_until('postgres', sprintf($waits, 2));
	$control->query_safe('SELECT pg_advisory_unlock(2), pg_sleep(0.02), pg_advisory_unlock(1)');
	$reader->query_safe('SELECT 1');
	$writer->query('SELECT 1');	# which may have failed
	last if $node->safe_psql('postgres', 'SELECT count(*) FROM t');
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 250000, 'an insert that needs it waits for it');
$writer->quit;
$_->quit for $control, $reader;
$node->stop;

done_testing();
