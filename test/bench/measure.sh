# Shared by test/demo/run and test/bench/server_bench: two schemas with the same
# tables, "btree" and "euno", and medians of rounds that take turns.  Needs
# test/lib.sh, $work, and a running server.

am=${EUNO_AM:-euno}

# The access method that schema $1 uses; EUNO_AM puts another one in the place
# of euno, to try the measurements themselves.
method()
{
	if [ "$1" = euno ]; then echo "$am"; else echo "$1"; fi
}

# sql STATEMENT...: unaligned result rows, or an error and a failure.
sql()
{
	local args=() statement

	for statement; do args+=(-c "$statement"); done
	"$bin/psql" -XAtq -v ON_ERROR_STOP=1 "${args[@]}"
}

# timed SCHEMA SETTINGS STATEMENT: milliseconds.
timed()
{
	local ms

	ms=$("$bin/psql" -XAtq -v ON_ERROR_STOP=1 -c "SET search_path = $1, public; $2" \
		-c '\timing on' -c "$3" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -n 1)
	[ -n "$ms" ] || { echo "failed: $3" >&2; return 1; }
	echo "$ms"
}

# must_use SCHEMA SETTINGS QUERY NODE: fails unless the plan has a line with
# NODE.  A measurement of another plan would be a number about nothing.
must_use()
{
	local plan

	plan=$(sql "SET search_path = $1, public; $2" "EXPLAIN (COSTS OFF) $3") || return 1
	case $plan in
		*"$4"*) ;;
		*) printf 'expected "%s" in schema %s, got this plan:\n%s\n' "$4" "$1" "$plan" >&2
			return 1 ;;
	esac
}

# Only the index named by its key can answer, in its order.
index_only_settings="SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off"

# Nested-loop lookups: no other join, no cache of inner results, one process.
lookup_settings="SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
	SET enable_bitmapscan = off; SET enable_material = off; SET max_parallel_workers_per_gather = 0"

# turns ROUND: the schemas, each first in every other round.
turns()
{
	if [ $(($1 % 2)) -eq 0 ]; then echo euno btree; else echo btree euno; fi
}

# note NAME SCHEMA VALUE: one round's result.  Fails on what is not a number, so
# that a measurement that went wrong does not become one.
note()
{
	case $3 in
		*[!0-9.-]*|"") echo "$1: not a number: \"$3\"" >&2
			return 1 ;;
	esac
	mkdir -p "$work/measured" && echo "$3" >>"$work/measured/$1.$2"
}

median()
{
	sort -n "$work/measured/$1.$2" | awk '{v[NR] = $1}
		END {if (NR % 2) print v[(NR + 1) / 2]; else print (v[NR / 2] + v[NR / 2 + 1]) / 2}'
}

calc()
{
	awk "BEGIN {printf \"%.6f\", $1}"
}

# wal_timed SCHEMA SETTINGS STATEMENT: "milliseconds bytes-of-WAL", the first
# touch of each page since a checkpoint included.
wal_timed()
{
	local before ms

	sql CHECKPOINT || return 1
	before=$(sql "SELECT pg_current_wal_insert_lsn()") || return 1
	ms=$(timed "$1" "$2" "$3") || return 1
	echo "$ms $(sql "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$before')")"
}

# index_bytes SCHEMA INDEX: INDEX may be in any schema, SCHEMA says what it is.
index_bytes()
{
	if [ "$1" = euno ] && [ "$am" = euno ]; then
		sql "SELECT euno_index_size('$2'::regclass)"
	else
		sql "SELECT pg_relation_size('$2'::regclass)"
	fi
}
