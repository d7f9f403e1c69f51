# What needs no PostgreSQL: the sources of all programs without a server.

UNIT_CORE = $(wildcard src/core/*.c src/core/*/*.c) \
	$(addprefix src/mem/,euno_arena.c euno_extents.c euno_cache.c euno_pool.c) \
	$(addprefix src/worker/,euno_policy.c euno_policy_copies.c)
