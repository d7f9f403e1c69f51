--
-- Operator families: btree's, whole
--
-- Families and classes that came with the server, with all their members, must
-- be the same under both access methods.
CREATE VIEW opfamily_members AS
	SELECT a.amname, f.opfname, 'operator' AS kind, o.amopstrategy AS number,
		o.amopopr::regoperator::text AS member, o.amoplefttype::regtype,
		o.amoprighttype::regtype, o.amoppurpose::text AS detail
	FROM pg_amop o
		JOIN pg_opfamily f ON f.oid = o.amopfamily
		JOIN pg_am a ON a.oid = f.opfmethod
	UNION ALL
	SELECT a.amname, f.opfname, 'function', p.amprocnum,
		p.amproc::regprocedure::text, p.amproclefttype, p.amprocrighttype, ''
	FROM pg_amproc p
		JOIN pg_opfamily f ON f.oid = p.amprocfamily
		JOIN pg_am a ON a.oid = f.opfmethod
	UNION ALL
	SELECT a.amname, f.opfname, 'class', 0, c.opcname, c.opcintype, 0,
		CASE WHEN c.opcdefault THEN 'default' ELSE '' END
	FROM pg_opclass c
		JOIN pg_opfamily f ON f.oid = c.opcfamily
		JOIN pg_am a ON a.oid = f.opfmethod
	UNION ALL
	SELECT a.amname, f.opfname, 'family', 0, f.opfname, 0, 0, ''
	FROM pg_opfamily f
		JOIN pg_am a ON a.oid = f.opfmethod;
-- there is something to compare
SELECT kind, count(*) >= 30 AS enough
FROM opfamily_members WHERE amname = 'btree'
GROUP BY kind ORDER BY kind;
CREATE VIEW btree_members AS
	SELECT m.* FROM opfamily_members m
	WHERE amname = 'btree' AND opfname IN (
		SELECT f.opfname FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod
		WHERE a.amname = 'btree' AND f.oid < 16384);
SELECT 'euno lacks' AS difference, d.* FROM (
	SELECT opfname, kind, number, member, amoplefttype, amoprighttype, detail
	FROM btree_members
	EXCEPT
	SELECT opfname, kind, number, member, amoplefttype, amoprighttype, detail
	FROM opfamily_members WHERE amname = 'euno') d
UNION ALL
SELECT 'euno has', d.* FROM (
	SELECT opfname, kind, number, member, amoplefttype, amoprighttype, detail
	FROM opfamily_members WHERE amname = 'euno' AND NOT (amoplefttype = 'anyelement'::regtype AND amoprighttype = 'record'::regtype)
	EXCEPT
	SELECT opfname, kind, number, member, amoplefttype, amoprighttype, detail
	FROM btree_members) d
ORDER BY 1, 2, 3, 4, 5;
-- and each family has our own operators, for comparisons with rows
SELECT number, member, count(*) = (SELECT count(*) FROM opfamily_members WHERE amname = 'euno' AND kind = 'family') AS everywhere
FROM opfamily_members
WHERE amname = 'euno' AND amoplefttype = 'anyelement'::regtype AND amoprighttype = 'record'::regtype
GROUP BY number, member ORDER BY number;
-- nothing has another storage type
SELECT c.opcname FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'euno' AND c.opckeytype <> 0;
-- all of them are valid
SELECT c.opcname, f.opfname
FROM pg_opclass c
	JOIN pg_am a ON a.oid = c.opcmethod
	JOIN pg_opfamily f ON f.oid = c.opcfamily
WHERE a.amname = 'euno' AND NOT amvalidate(c.oid)
ORDER BY 1;
-- the extension owns them
SELECT 'class' AS kind, c.opcname AS name
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'euno' AND NOT EXISTS (
	SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	WHERE d.classid = 'pg_opclass'::regclass AND d.objid = c.oid
		AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND e.extname = 'euno_index')
UNION ALL
SELECT 'family', f.opfname
FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod
WHERE a.amname = 'euno' AND NOT EXISTS (
	SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	WHERE d.classid = 'pg_opfamily'::regclass AND d.objid = f.oid
		AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND e.extname = 'euno_index');
--
-- Dependencies: members of a class's own type go with the class, all others
-- are loose in the family
--
CREATE OPERATOR FAMILY test_ops USING euno;
CREATE OPERATOR CLASS test_int4_ops FOR TYPE int4 USING euno FAMILY test_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btint4cmp(int4, int4), FUNCTION 2 btint4sortsupport(internal);
ALTER OPERATOR FAMILY test_ops USING euno ADD
	OPERATOR 1 < (int4, int8), FUNCTION 1 (int4, int8) btint48cmp(int4, int8),
	OPERATOR 1 < (int8, int8), FUNCTION 1 (int8, int8) btint8cmp(int8, int8);
SELECT pg_describe_object(classid, objid, objsubid) COLLATE "C" AS member,
	deptype, pg_describe_object(refclassid, refobjid, refobjsubid) AS depends_on
FROM pg_depend
WHERE classid IN ('pg_amop'::regclass, 'pg_amproc'::regclass)
	AND refclassid IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass)
	AND pg_describe_object(classid, objid, objsubid) LIKE '%test_ops%'
ORDER BY 1, 2;
--
-- What amvalidate finds
--
\set VERBOSITY terse
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_int4_ops';
ALTER OPERATOR FAMILY test_ops USING euno ADD
	OPERATOR 2 <= (int4, int8), OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8), OPERATOR 5 > (int4, int8),
	OPERATOR 2 <= (int8, int8), OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8), OPERATOR 5 > (int8, int8);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_int4_ops';
ALTER OPERATOR FAMILY test_ops USING euno ADD
	OPERATOR 1 < (int8, int4), OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4), OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	FUNCTION 1 (int8, int4) btint84cmp(int8, int4);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_int4_ops';
-- a comparator that does not take the types it is registered for
ALTER OPERATOR FAMILY test_ops USING euno DROP FUNCTION 1 (int8, int4);
ALTER OPERATOR FAMILY test_ops USING euno ADD
	FUNCTION 1 (int8, int4) btint48cmp(int4, int8);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_int4_ops';
ALTER OPERATOR FAMILY test_ops USING euno DROP FUNCTION 1 (int8, int4);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_int4_ops';
-- a class without members
CREATE OPERATOR CLASS test_empty_ops FOR TYPE text USING euno AS STORAGE text;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_empty_ops';
-- strategies and support functions are btree's
ALTER OPERATOR FAMILY test_ops USING euno ADD OPERATOR 10 <> (int4, int4);
ALTER OPERATOR FAMILY test_ops USING euno ADD OPERATOR 6 <> (int4, int8);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'test_int4_ops';
ALTER OPERATOR FAMILY test_ops USING euno DROP OPERATOR 6 (int4, int8);
ALTER OPERATOR FAMILY test_ops USING euno ADD
	OPERATOR 1 <-> (point, point) FOR ORDER BY float_ops;
CREATE OPERATOR CLASS test_storage_ops FOR TYPE text USING euno AS STORAGE int4;
-- members go with the class
DROP OPERATOR CLASS test_int4_ops USING euno;
SELECT o.amopopr::regoperator AS member, o.amopstrategy
FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily
WHERE f.opfname = 'test_ops' AND o.amopstrategy = 1
ORDER BY o.amopopr;
DROP OPERATOR FAMILY test_ops USING euno;
DROP OPERATOR FAMILY test_empty_ops USING euno;
--
-- Types of extensions: euno_copy_opclasses makes what btree has for them
--
\set VERBOSITY default
CREATE SCHEMA "Odd";
CREATE EXTENSION isn SCHEMA "Odd";
CREATE EXTENSION citext SCHEMA "Odd";
CREATE VIEW copied AS
	SELECT amname, opfname, kind, count(*) AS members, sum(hashtext(format('%s %s %s %s %s',
		number, member, amoplefttype, amoprighttype, detail))::bigint) AS hash
	FROM opfamily_members
	WHERE opfname LIKE ANY (ARRAY['isn%', 'citext%']) AND amoprighttype <> 'record'::regtype
	GROUP BY amname, opfname, kind;
CREATE VIEW not_copied AS
	SELECT b.opfname, b.kind, e.members IS NULL AS all_of_them
	FROM copied b LEFT JOIN copied e ON e.amname = 'euno' AND e.opfname = b.opfname AND e.kind = b.kind
	WHERE b.amname = 'btree' AND (b.members, b.hash) IS DISTINCT FROM (e.members, e.hash)
	ORDER BY b.opfname, b.kind COLLATE "C";
SELECT * FROM not_copied;
SELECT euno_copy_opclasses('"Odd".isbn');
-- a class that somebody has made gets what it lacks
CREATE OPERATOR CLASS "Odd".citext_ops DEFAULT FOR TYPE "Odd".citext USING euno AS
	OPERATOR 1 "Odd".<, OPERATOR 3 "Odd".=, FUNCTION 1 "Odd".citext_cmp("Odd".citext, "Odd".citext);
SELECT euno_copy_opclasses('"Odd".citext'), euno_copy_opclasses('"Odd".citext');
SELECT * FROM not_copied;
SELECT opcname FROM pg_opclass WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'euno') AND opcname LIKE 'citext%' AND NOT amvalidate(oid);
-- what has moved is found, and a member that is gone comes back
SET search_path = public, "Odd"; SET enable_seqscan = off; SET enable_bitmapscan = off;
CREATE SCHEMA odder;
ALTER OPERATOR CLASS "Odd".citext_ops USING euno SET SCHEMA odder;
ALTER OPERATOR FAMILY "Odd".citext_ops USING euno SET SCHEMA odder;
ALTER OPERATOR FAMILY odder.citext_ops USING euno DROP OPERATOR 8 (anyelement, record);
SELECT euno_copy_opclasses('citext');
SELECT * FROM not_copied;
CREATE TABLE "Odd".t (c citext, i issn);
INSERT INTO "Odd".t SELECT 'Name ' || n % 7, '1436-4522' FROM generate_series(1, 100) n;
CREATE INDEX t_ci ON "Odd".t USING euno (c, i);
CREATE INDEX t_i ON "Odd".t USING euno (i);
EXPLAIN (COSTS OFF) SELECT c FROM t WHERE (c, i) >= ('NAME 5'::citext, '1436-4522'::issn);
SELECT count(*) FROM t WHERE (c, i) >= ('NAME 5'::citext, '1436-4522'::issn);
EXPLAIN (COSTS OFF) SELECT i FROM t WHERE i = '9771436452008'::issn13;
SELECT count(*) FROM t WHERE i = '9771436452008'::issn13;
RESET search_path; RESET enable_seqscan; RESET enable_bitmapscan;
\set VERBOSITY terse
-- a class in one of the server's families, and types without any
SET client_min_messages = warning;
CREATE TYPE "Odd".num;
CREATE FUNCTION "Odd".num_in(cstring) RETURNS "Odd".num LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION "Odd".num_out("Odd".num) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE "Odd".num (input = "Odd".num_in, output = "Odd".num_out, like = int4);
RESET client_min_messages;
CREATE FUNCTION "Odd".num_cmp("Odd".num, "Odd".num) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
SELECT euno_copy_opclasses('"Odd".num');
CREATE FUNCTION "Odd".num_lt("Odd".num, "Odd".num) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE OPERATOR "Odd".< (FUNCTION = "Odd".num_lt, LEFTARG = "Odd".num, RIGHTARG = "Odd".num);
CREATE OPERATOR CLASS "Odd".num_ops DEFAULT FOR TYPE "Odd".num USING btree FAMILY pg_catalog.integer_ops AS
	OPERATOR 1 "Odd".<, FUNCTION 1 "Odd".num_cmp("Odd".num, "Odd".num);
SELECT euno_copy_opclasses('"Odd".num');
SELECT opfname, kind, number, member, detail FROM opfamily_members WHERE amname = 'euno' AND opfname = 'integer_ops' AND
	(amoplefttype = '"Odd".num'::regtype OR member = 'num_ops') ORDER BY kind COLLATE "C", number;
SELECT euno_copy_opclasses('point');
-- only a superuser makes operator classes
DROP OPERATOR CLASS "Odd".num_ops USING euno;
CREATE ROLE regress_euno_user;
GRANT ALL ON SCHEMA "Odd" TO regress_euno_user;
SET ROLE regress_euno_user;
SELECT euno_copy_opclasses('"Odd".num');
RESET ROLE;
DROP OWNED BY regress_euno_user;
DROP ROLE regress_euno_user;
-- the extension goes, the families of its classes stay, and are used again
SET client_min_messages = warning;
DROP EXTENSION isn CASCADE;
CREATE EXTENSION isn SCHEMA "Odd";
RESET client_min_messages;
SELECT * FROM not_copied;
SELECT euno_copy_opclasses('"Odd".isbn');
SELECT * FROM not_copied;
DROP VIEW not_copied, copied;
DROP SCHEMA "Odd" CASCADE;
DROP SCHEMA odder CASCADE;
DROP VIEW btree_members, opfamily_members;
