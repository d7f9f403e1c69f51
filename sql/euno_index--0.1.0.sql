/* euno_index: an index access method that lives in shared memory */

-- complain if the script is run by psql and not by CREATE EXTENSION
\echo Use "CREATE EXTENSION euno_index" to load this file. \quit

CREATE FUNCTION eunohandler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C;

CREATE ACCESS METHOD euno TYPE INDEX HANDLER eunohandler;

COMMENT ON ACCESS METHOD euno IS 'ordered index access method in shared memory';

-- What makes an end of a range of a row: a column, and those behind it, against
-- ROW(...).  The planner puts them into plans for row comparisons; a query cannot
-- use them.
CREATE FUNCTION euno_row_bound_support(internal)
RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION euno_row_bound(anyelement, record)
RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE
SUPPORT euno_row_bound_support;

GRANT EXECUTE ON FUNCTION euno_row_bound(anyelement, record) TO PUBLIC;

CREATE OPERATOR #<# (
	FUNCTION = euno_row_bound, LEFTARG = anyelement, RIGHTARG = record);
CREATE OPERATOR #<=# (
	FUNCTION = euno_row_bound, LEFTARG = anyelement, RIGHTARG = record);
CREATE OPERATOR #>=# (
	FUNCTION = euno_row_bound, LEFTARG = anyelement, RIGHTARG = record);
CREATE OPERATOR #># (
	FUNCTION = euno_row_bound, LEFTARG = anyelement, RIGHTARG = record);

-- Operator families and classes: those of btree, whole.  A family that lacked a
-- cross-type operator or a support function would change plans of queries that
-- never touch a euno index.
--
-- Adds what euno lacks of the families in which the type has a class; of NULL, all
-- families that came with the server, with what did (whose OIDs are below 16384):
-- the rest belongs to somebody else.  Copies of the server's are in the extension's
-- schema, others where btree's are.
CREATE FUNCTION euno_copy_opclasses(type regtype)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	btree CONSTANT oid := (SELECT oid FROM pg_am WHERE amname = 'btree');
	euno CONSTANT oid := (SELECT oid FROM pg_am WHERE amname = 'euno');
	extension CONSTANT oid := (SELECT oid FROM pg_extension WHERE extname = 'euno_index');
	home CONSTANT oid := (SELECT extnamespace FROM pg_extension WHERE oid = extension);
	below CONSTANT oid := CASE WHEN type IS NULL THEN 16384 ELSE 4294967295 END;
	family record;
	class record;
	members text;
	copy oid;
	copy_name text;
BEGIN
	IF type IS NOT NULL AND NOT EXISTS (
		SELECT FROM pg_opclass WHERE opcmethod = btree AND opcintype = type) THEN
		RAISE EXCEPTION 'data type % has no operator class for access method "btree"', type
			USING ERRCODE = 'undefined_object',
				HINT = 'For a domain, name the type that it is based on.';
	END IF;

	FOR family IN
		SELECT f.oid, format('%s.%I', CASE WHEN f.oid < 16384 THEN home ELSE f.opfnamespace END::regnamespace,
							 f.opfname) AS name
		FROM pg_opfamily f
		WHERE f.opfmethod = btree AND f.oid < below AND (type IS NULL OR EXISTS (
			SELECT FROM pg_opclass o WHERE o.opcfamily = f.oid AND o.opcintype = type))
		ORDER BY f.opfname
	LOOP
		-- Its copy, known by a class, for either may have moved to another schema
		SELECT f.oid, format('%s.%I', f.opfnamespace::regnamespace, f.opfname)
		INTO copy, copy_name
		FROM pg_opclass o
			JOIN pg_opclass c
				ON c.opcmethod = euno AND c.opcname = o.opcname AND c.opcintype = o.opcintype
			JOIN pg_opfamily f ON f.oid = c.opcfamily
		WHERE o.opcfamily = family.oid
		ORDER BY f.oid LIMIT 1;
		-- It has lost its classes when their type was dropped, with its extension.
		IF copy IS NULL THEN
			copy_name := family.name;
			SELECT f.oid INTO copy
			FROM pg_opfamily f
			WHERE f.opfmethod = euno AND
				format('%s.%I', f.opfnamespace::regnamespace, f.opfname) = copy_name;
		END IF;
		IF copy IS NULL THEN
			EXECUTE format('CREATE OPERATOR FAMILY %s USING euno', copy_name);
		END IF;

		-- A class must have an item.  Naming its own type as the storage type
		-- is one that says nothing.
		FOR class IN
			SELECT format('%s.%I', CASE WHEN o.oid < 16384 THEN home ELSE o.opcnamespace END::regnamespace,
						  o.opcname) AS name, o.opcdefault, o.opcintype::regtype AS intype
			FROM pg_opclass o
			WHERE o.opcfamily = family.oid AND o.oid < below AND NOT EXISTS (
				SELECT FROM pg_opclass c
				WHERE c.opcmethod = euno AND c.opcname = o.opcname AND c.opcintype = o.opcintype)
			ORDER BY o.opcname
		LOOP
			EXECUTE format('CREATE OPERATOR CLASS %s %s FOR TYPE %s USING euno FAMILY %s AS STORAGE %s',
						   class.name, CASE WHEN class.opcdefault THEN 'DEFAULT' END,
						   class.intype, copy_name, class.intype);
		END LOOP;

		-- Members that belong to the type of a class get tied to that class
		SELECT string_agg(m.item, ', ' ORDER BY m.item)
		INTO members
		FROM (
			SELECT format('OPERATOR %s %s', o.amopstrategy, o.amopopr::regoperator) AS item
			FROM pg_amop o
			WHERE o.amopfamily = family.oid AND o.oid < below AND NOT EXISTS (
				SELECT FROM pg_amop c
				WHERE c.amopfamily = copy AND c.amopstrategy = o.amopstrategy AND
					c.amoplefttype = o.amoplefttype AND c.amoprighttype = o.amoprighttype)
			UNION ALL
			SELECT format('FUNCTION %s (%s, %s) %s', p.amprocnum, p.amproclefttype::regtype,
						  p.amprocrighttype::regtype, p.amproc::oid::regprocedure)
			FROM pg_amproc p
			WHERE p.amprocfamily = family.oid AND p.oid < below AND NOT EXISTS (
				SELECT FROM pg_amproc c
				WHERE c.amprocfamily = copy AND c.amprocnum = p.amprocnum AND
					c.amproclefttype = p.amproclefttype AND c.amprocrighttype = p.amprocrighttype)
			UNION ALL
			SELECT format('OPERATOR %s %s', strategy, d.objid::regoperator)
			FROM pg_depend d
				JOIN pg_operator o ON o.oid = d.objid
				JOIN (VALUES ('#<#', 6), ('#<=#', 7), ('#>=#', 8), ('#>#', 9)) s (name, strategy)
					ON o.oprname = s.name
			WHERE d.classid = 'pg_operator'::regclass AND d.deptype = 'e' AND
				d.refclassid = 'pg_extension'::regclass AND d.refobjid = extension
				AND NOT EXISTS (
					SELECT FROM pg_amop c WHERE c.amopfamily = copy AND c.amopopr = o.oid)
		) m;
		IF members IS NOT NULL THEN
			EXECUTE format('ALTER OPERATOR FAMILY %s USING euno ADD %s', copy_name, members);
		END IF;
	END LOOP;
END
$$;

SELECT euno_copy_opclasses(NULL);

-- Functions and views.

CREATE FUNCTION euno_index_check(index regclass, heapallindexed boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION euno_index_size(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION euno_evict(index regclass)
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION euno_rebuild(index regclass)
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

REVOKE ALL ON FUNCTION euno_index_check(regclass, boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION euno_evict(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION euno_rebuild(regclass) FROM PUBLIC;

CREATE FUNCTION euno_stat_get_indexes(
    OUT reltablespace oid, OUT relfilenode oid, OUT temporary boolean,
    OUT state text, OUT absent_reason text, OUT retry_at timestamptz,
    OUT structure text,
    OUT entries bigint, OUT bytes bigint, OUT height integer,
    OUT leaves bigint, OUT splits bigint, OUT merges bigint,
    OUT descents bigint, OUT inserts bigint, OUT removals bigint,
    OUT restarts bigint, OUT right_moves bigint, OUT lock_waits bigint,
    OUT conflicts_locked bigint, OUT conflicts_changed bigint,
    OUT conflicts_same_key bigint, OUT conflicts_other_key bigint,
    OUT conflicts_split bigint, OUT conflicts_directory bigint,
    OUT contended_leaves bigint, OUT contended_writes bigint,
    OUT annex_skips bigint, OUT copies integer, OUT parted_leaves bigint,
    OUT delegated_writes bigint, OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION euno_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

REVOKE ALL ON FUNCTION euno_stat_reset() FROM PUBLIC;

CREATE FUNCTION euno_stat_get_domains(
    OUT domain integer, OUT cpus text, OUT node integer, OUT bytes bigint,
    OUT lag bigint, OUT descents bigint, OUT remote_descents bigint,
    OUT inner_nodes bigint, OUT remote_inner_nodes bigint,
    OUT copies bigint, OUT copy_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION euno_set_domains(domains text)
RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION euno_numa_pages(
    index regclass, OUT domain integer, OUT node integer, OUT pages bigint,
    OUT bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

REVOKE ALL ON FUNCTION euno_set_domains(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION euno_numa_pages(regclass) FROM PUBLIC;

CREATE FUNCTION euno_hot_leaves(
    index regclass, n integer DEFAULT 10, OUT leaf bigint,
    OUT first_key text, OUT last_key text, OUT entries integer,
    OUT mode text, OUT domain integer, OUT conflicts_per_second double precision,
    OUT locked bigint, OUT changed bigint, OUT same_key bigint,
    OUT other_key bigint, OUT split bigint, OUT delegated bigint,
    OUT parted boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

REVOKE ALL ON FUNCTION euno_hot_leaves(regclass, integer) FROM PUBLIC;

CREATE FUNCTION euno_stat_get_worker(
    OUT pid integer, OUT started timestamptz, OUT rounds bigint,
    OUT last_round timestamptz, OUT last_round_ms double precision,
    OUT hot_leaves integer, OUT leaves_contended bigint,
    OUT leaves_calmed bigint, OUT leaves_merged bigint,
    OUT copies_changed bigint, OUT trees_collected bigint,
    OUT leaves_moved bigint, OUT errors bigint, OUT last_error text, OUT last_error_at timestamptz)
RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION euno_stat_get_memory(
    OUT reserved_bytes bigint, OUT used_bytes bigint, OUT peak_bytes bigint,
    OUT idle_bytes bigint, OUT indexes integer, OUT max_indexes integer)
RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

-- A tree is known by its relation file, whose number is unique in a tablespace,
-- among temporary and among other relations.  Of an index without a tree it is
-- said what it would get.
CREATE VIEW euno_stat_indexes AS
SELECT i.indrelid AS relid, i.indexrelid,
       n.nspname AS schemaname, t.relname, c.relname AS indexrelname,
       coalesce(s.structure, CASE o.structure
           WHEN 'art' THEN 'art/' || coalesce(o.sync, 'olc')
           ELSE coalesce(o.structure, 'bptree') END) AS structure,
       CASE WHEN pg_is_in_recovery() THEN 'hidden'
            WHEN u.unsafe THEN 'absent'
            ELSE coalesce(s.state, 'absent') END AS state,
       CASE WHEN NOT pg_is_in_recovery()
            THEN CASE WHEN u.unsafe THEN 'old_snapshot_threshold'
                      WHEN s.state <> 'absent' THEN NULL
                      WHEN (SELECT reserved_bytes FROM euno_stat_get_memory()) = 0 THEN 'not preloaded'
                      WHEN s.state IS NULL THEN 'unused'
                      ELSE s.absent_reason END
            END AS absent_reason,
       s.retry_at,
       s.entries, coalesce(s.bytes, 0) AS bytes, s.height, s.leaves,
       s.splits, s.merges, s.descents, s.inserts, s.removals,
       s.restarts, s.right_moves, s.lock_waits,
       s.conflicts_locked, s.conflicts_changed, s.conflicts_same_key,
       s.conflicts_other_key, s.conflicts_split, s.conflicts_directory,
       s.contended_leaves, s.contended_writes, s.annex_skips,
       s.copies, s.parted_leaves, s.delegated_writes, s.stats_since
  FROM pg_catalog.pg_index i
       JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
       JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'euno'
       JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
       JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
       JOIN pg_catalog.pg_database d ON d.datname = current_database()
       CROSS JOIN LATERAL (
           SELECT max(lower(x.option_value)) FILTER (WHERE x.option_name = 'structure') AS structure,
                  max(lower(x.option_value)) FILTER (WHERE x.option_name = 'sync') AS sync
             FROM pg_catalog.pg_options_to_table(c.reloptions) x) o
       CROSS JOIN (SELECT coalesce(current_setting('old_snapshot_threshold', true) <> '-1', false)) u (unsafe)
       LEFT JOIN euno_stat_get_indexes() s
           ON s.relfilenode = c.relfilenode
              AND s.reltablespace = CASE c.reltablespace WHEN 0 THEN d.dattablespace
                                         ELSE c.reltablespace END
              AND CASE WHEN c.relpersistence = 't'
                       THEN s.temporary AND c.relnamespace = pg_my_temp_schema()
                       ELSE NOT s.temporary END
 WHERE c.relkind = 'i' AND NOT pg_is_other_temp_schema(c.relnamespace);

CREATE VIEW euno_memory AS
SELECT * FROM euno_stat_get_memory();

CREATE VIEW euno_stat_domains AS
SELECT * FROM euno_stat_get_domains();

CREATE VIEW euno_stat_worker AS
SELECT * FROM euno_stat_get_worker();

GRANT SELECT ON euno_stat_indexes, euno_memory, euno_stat_domains,
    euno_stat_worker TO PUBLIC;

-- As \df+ and \d+ show them.

COMMENT ON FUNCTION euno_row_bound(anyelement, record) IS 'behind the operators by which an index on several columns finds a row comparison';
COMMENT ON FUNCTION euno_row_bound_support(internal) IS 'support of euno_row_bound';
COMMENT ON FUNCTION euno_copy_opclasses(regtype) IS 'gives euno the operator classes that btree has for the type, with their families';
COMMENT ON FUNCTION euno_index_check(regclass, boolean) IS 'raises an error if the index is inconsistent, or, if told so, lacks a row of its table; builds it first if it is absent';
COMMENT ON FUNCTION euno_index_size(regclass) IS 'bytes of memory that the index uses';
COMMENT ON FUNCTION euno_evict(regclass) IS 'gives the index''s memory back; it is absent until it is built again, see euno_rebuild';
COMMENT ON FUNCTION euno_rebuild(regclass) IS 'builds the index from the table now, if it is absent';
COMMENT ON FUNCTION euno_hot_leaves(regclass, integer) IS 'the leaves, or nodes of a radix tree, with the most conflicts lately';
COMMENT ON FUNCTION euno_set_domains(text) IS 'divides the processors among domains anew';
COMMENT ON FUNCTION euno_numa_pages(regclass) IS 'on which NUMA nodes the pages of an index are';
COMMENT ON FUNCTION euno_stat_reset() IS 'sets the counters of euno_stat_indexes to zero, in this database';
COMMENT ON FUNCTION euno_stat_get_indexes() IS 'what euno_stat_indexes shows of the trees that are there';
COMMENT ON FUNCTION euno_stat_get_memory() IS 'the row of euno_memory';
COMMENT ON FUNCTION euno_stat_get_domains() IS 'the rows of euno_stat_domains';
COMMENT ON FUNCTION euno_stat_get_worker() IS 'the row of euno_stat_worker';

COMMENT ON VIEW euno_stat_indexes IS 'euno indexes of this database';
COMMENT ON COLUMN euno_stat_indexes.relid IS 'OID of the table';
COMMENT ON COLUMN euno_stat_indexes.indexrelid IS 'OID of the index';
COMMENT ON COLUMN euno_stat_indexes.schemaname IS 'schema of both';
COMMENT ON COLUMN euno_stat_indexes.relname IS 'name of the table';
COMMENT ON COLUMN euno_stat_indexes.indexrelname IS 'name of the index';
COMMENT ON COLUMN euno_stat_indexes.structure IS 'bptree, art/olc or art/rowex; auto: shows when it is built';
COMMENT ON COLUMN euno_stat_indexes.state IS 'ready; absent: not built yet, or evicted; building, merging: being built; retiring: given up; hidden: on a standby';
COMMENT ON COLUMN euno_stat_indexes.absent_reason IS 'evicted: by euno_evict; memory: it did not fit; failed: its build raised an error or was canceled, or it was found to be inconsistent, see the log; wanted: to be built in the background, see euno.auto_rebuild; unused: not wanted yet, or without a place, see euno.max_indexes; not preloaded: see shared_preload_libraries; old_snapshot_threshold: is set';
COMMENT ON COLUMN euno_stat_indexes.retry_at IS 'it is not built unasked before that';
COMMENT ON COLUMN euno_stat_indexes.entries IS 'rows that have an entry, with dead ones that are still there';
COMMENT ON COLUMN euno_stat_indexes.bytes IS 'memory that it uses';
COMMENT ON COLUMN euno_stat_indexes.height IS 'levels, 1: a single leaf';
COMMENT ON COLUMN euno_stat_indexes.leaves IS 'leaves of a B+tree; of a radix tree, entries';
COMMENT ON COLUMN euno_stat_indexes.splits IS 'leaves that were split; of a radix tree, nodes put in';
COMMENT ON COLUMN euno_stat_indexes.merges IS 'leaves that were merged; of a radix tree, nodes taken out';
COMMENT ON COLUMN euno_stat_indexes.descents IS 'searches from the root to a leaf, but for upkeep: those that remove entries, merge leaves, or end a build';
COMMENT ON COLUMN euno_stat_indexes.inserts IS 'of these, by inserts';
COMMENT ON COLUMN euno_stat_indexes.removals IS 'entries removed';
COMMENT ON COLUMN euno_stat_indexes.restarts IS 'searches begun again because something had changed';
COMMENT ON COLUMN euno_stat_indexes.right_moves IS 'steps to the next leaf because the inner nodes did not know it yet';
COMMENT ON COLUMN euno_stat_indexes.lock_waits IS 'waits for a leaf or node that another session had locked';
COMMENT ON COLUMN euno_stat_indexes.conflicts_locked IS 'a leaf was locked by another session';
COMMENT ON COLUMN euno_stat_indexes.conflicts_changed IS 'a leaf had been changed by another session';
COMMENT ON COLUMN euno_stat_indexes.conflicts_same_key IS 'estimate: conflicts about one key';
COMMENT ON COLUMN euno_stat_indexes.conflicts_other_key IS 'estimate: conflicts about different keys of a leaf';
COMMENT ON COLUMN euno_stat_indexes.conflicts_split IS 'estimate: conflicts because a leaf was split or merged';
COMMENT ON COLUMN euno_stat_indexes.conflicts_directory IS 'conflicts at inner nodes';
COMMENT ON COLUMN euno_stat_indexes.contended_leaves IS 'leaves whose writers of different keys do not wait for each other';
COMMENT ON COLUMN euno_stat_indexes.contended_writes IS 'writes to such leaves';
COMMENT ON COLUMN euno_stat_indexes.annex_skips IS 'lookups that needed to look at no more than the sorted part of such a leaf';
COMMENT ON COLUMN euno_stat_indexes.copies IS 'domains that have a copy of its inner nodes';
COMMENT ON COLUMN euno_stat_indexes.parted_leaves IS 'leaves that were split between keys that sessions fought for';
COMMENT ON COLUMN euno_stat_indexes.delegated_writes IS 'writes that another session made for the one that wanted them';
COMMENT ON COLUMN euno_stat_indexes.stats_since IS 'when the counters were last zero';

COMMENT ON VIEW euno_memory IS 'memory of all euno indexes';
COMMENT ON COLUMN euno_memory.reserved_bytes IS 'euno.max_memory';
COMMENT ON COLUMN euno_memory.used_bytes IS 'used by indexes';
COMMENT ON COLUMN euno_memory.peak_bytes IS 'used at most since the start';
COMMENT ON COLUMN euno_memory.idle_bytes IS 'not used, but not given back to the system';
COMMENT ON COLUMN euno_memory.indexes IS 'places of euno.max_indexes that are taken';
COMMENT ON COLUMN euno_memory.max_indexes IS 'euno.max_indexes';

COMMENT ON VIEW euno_stat_domains IS 'domains, and what they have and do';
COMMENT ON COLUMN euno_stat_domains.domain IS 'number, from 0';
COMMENT ON COLUMN euno_stat_domains.cpus IS 'its processors';
COMMENT ON COLUMN euno_stat_domains.node IS 'NUMA node to which its memory is bound; null: to none';
COMMENT ON COLUMN euno_stat_domains.bytes IS 'memory that indexes have taken in it';
COMMENT ON COLUMN euno_stat_domains.lag IS 'leaves that its inner nodes may not know yet';
COMMENT ON COLUMN euno_stat_domains.descents IS 'searches from a root to a leaf by its sessions';
COMMENT ON COLUMN euno_stat_domains.remote_descents IS 'estimate: of these, to leaves in memory of other domains';
COMMENT ON COLUMN euno_stat_domains.inner_nodes IS 'estimate: inner nodes that its sessions visited';
COMMENT ON COLUMN euno_stat_domains.remote_inner_nodes IS 'estimate: of these, in memory of other domains';
COMMENT ON COLUMN euno_stat_domains.copies IS 'indexes of whose inner nodes it has a copy';
COMMENT ON COLUMN euno_stat_domains.copy_bytes IS 'what these take';

COMMENT ON VIEW euno_stat_worker IS 'what euno launchers have done since the server started';
COMMENT ON COLUMN euno_stat_worker.pid IS 'its process; null: there is none';
COMMENT ON COLUMN euno_stat_worker.started IS 'when the present launcher began';
COMMENT ON COLUMN euno_stat_worker.rounds IS 'one every euno.naptime';
COMMENT ON COLUMN euno_stat_worker.last_round IS 'when it began';
COMMENT ON COLUMN euno_stat_worker.last_round_ms IS 'how long it took';
COMMENT ON COLUMN euno_stat_worker.hot_leaves IS 'leaves that were hot in the last round';
COMMENT ON COLUMN euno_stat_worker.leaves_contended IS 'leaves made contended';
COMMENT ON COLUMN euno_stat_worker.leaves_calmed IS 'leaves made calm again';
COMMENT ON COLUMN euno_stat_worker.leaves_merged IS 'underfull leaves merged';
COMMENT ON COLUMN euno_stat_worker.copies_changed IS 'copies of inner nodes made for domains, or given up';
COMMENT ON COLUMN euno_stat_worker.trees_collected IS 'indexes of dropped databases freed';
COMMENT ON COLUMN euno_stat_worker.leaves_moved IS 'leaves moved to the domain that uses them';
COMMENT ON COLUMN euno_stat_worker.errors IS 'steps of the launcher, and rebuilds in the background, that failed';
COMMENT ON COLUMN euno_stat_worker.last_error IS 'the last error that was met, to those who may read all statistics';
COMMENT ON COLUMN euno_stat_worker.last_error_at IS 'when';
