# euno_index: build, install, test.
#
#   make                    build euno_index.so
#   make install            install it (as root, or with DESTDIR)
#   make installcheck       SQL and isolation tests on a running server (PGXS's rule)
#   make prove_installcheck tests that start servers of their own
#   make check              everything, from scratch; needs nothing running
#   make unit               the trees alone, without a server (also unit-asan,
#                           unit-tsan, unit-arm64, unit-s390x, unit-fuzz,
#                           unit-mutants)
#   make check-numa         in emulated machines with 2 and 4 NUMA nodes
#   make check-asserts      on a PostgreSQL with assertions, built of Debian's source
#   make check-core         PostgreSQL's own tests, with euno for btree, on that one
#   make sim                the trees on simulated machines of up to 192 cores
#                           (also sim-validate, sim-smoke)
#   make demo, make bench   euno beside btree on this machine; bench-quick in some
#                           ten minutes, bench-core the trees alone;
#                           bench-rebuild measures what follows a restart,
#                           bench-moving whether the launcher follows a hot spot
#
# PG_CONFIG, CC and COPT mean what they mean to PGXS.  WERROR= builds with a
# compiler that knows warnings this code has not met.

EXTVERSION = 0.1.0
EXTENSION = euno_index
MODULE_big = euno_index
DATA = $(wildcard sql/$(EXTENSION)--*.sql)
PGFILEDESC = "euno_index - index access method in shared memory"

SRCS = $(wildcard src/*.c src/*/*.c src/*/*/*.c)
HDRS = $(wildcard src/*.h src/*/*.h src/*/*/*.h)
OBJS = $(SRCS:.c=.o)

REGRESS = $(sort $(filter-out $(EXTENSION)--%,$(basename $(notdir $(wildcard sql/*.sql)))))
REGRESS_OPTS = --load-extension=$(EXTENSION)
ISOLATION = $(sort $(basename $(notdir $(wildcard test/specs/*.spec))))
ISOLATION_OPTS = --inputdir=test --outputdir=output_iso --load-extension=$(EXTENSION)
PROVE_TESTS = $(sort $(wildcard test/t/*.pl))

PG_CONFIG ?= pg_config
WERROR ?= -Werror

# Goals that must work before PostgreSQL's development files are there, or
# that PGXS has a rule of its own for (its "check" only says that it does
# nothing).  When one of them is asked for, the rest goes to a second make.
ALONE = check check-numa check-asserts check-core demo \
	bench bench-quick bench-core bench-rebuild bench-moving \
	unit unit-asan unit-tsan unit-arm64 unit-s390x unit-fuzz unit-mutants \
	sim sim-validate sim-smoke
OTHERS = $(filter-out $(ALONE),$(MAKECMDGOALS))

.PHONY: $(ALONE) syntax

ifneq ($(filter $(ALONE),$(MAKECMDGOALS)),)

export PG_CONFIG

check:
	@EXTVERSION=$(EXTVERSION) exec test/check/run $(SUITES)

check-numa:
	@exec test/numa/run

check-asserts:
	@EXTVERSION=$(EXTVERSION) exec test/check/asserts $(SUITES)

check-core:
	@exec test/check/core

demo:
	@exec test/demo/run

bench:
	@exec test/bench/server_bench

bench-quick:
	@EUNO_QUICK=1 exec test/bench/server_bench

bench-core:
	@EUNO_PARTS=trees exec test/bench/server_bench

bench-moving:
	@exec test/bench/moving_bench

bench-rebuild:
	@exec test/bench/rebuild_bench

unit unit-asan unit-tsan unit-arm64 unit-s390x unit-fuzz unit-mutants:
	$(MAKE) -f test/unit/unit.mk $@

sim sim-validate sim-smoke:
	$(MAKE) -f test/sim/sim.mk $@

ifneq ($(OTHERS),)
.PHONY: $(OTHERS)
$(OTHERS):
	$(MAKE) $@
$(filter $(ALONE),$(MAKECMDGOALS)): | $(OTHERS)
endif

else

PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(wildcard $(PGXS)),)
$(error $(PG_CONFIG) does not lead to PGXS: install postgresql-server-dev-15 (or your version's), or set PG_CONFIG)
endif

# The server's headers are system headers to us: their warnings are not ours.
PG_CPPFLAGS = -Isrc -isystem $(shell $(PG_CONFIG) --includedir-server) -DEUNO_VERSION='"$(EXTVERSION)"'

# Callbacks have the signature that PostgreSQL gives them, used or not.  No
# function of ours is ever replaced by another module's, so calls between our
# files may be direct; the export list below does the rest.
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter $(WERROR) -fno-semantic-interposition

# Domains on several NUMA nodes need libnuma; without it memory is not bound.
ifneq ($(shell printf '\043include <numaif.h>\n' | $(CC) -E - 2>/dev/null | grep -c mbind),0)
SHLIB_LINK += -lnuma
endif

# clang is handed the flags of the compiler that built PostgreSQL.
ifneq ($(findstring clang,$(CC)),)
PG_CFLAGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument
endif

# Bitcode would let the server's JIT inline our functions into expressions.
# Only euno_row_bound is called from one, and that is true always.
override with_llvm := no

# What the server looks up by name, SQL functions and what is declared with
# PGDLLEXPORT, and nothing else: modules are loaded with RTLD_GLOBAL, and
# PostgreSQL 15 does not hide symbols by itself.
SHLIB_EXPORTS = build/exports.txt

EXTRA_CLEAN = build output_iso tmp_check tmp_demo

include $(PGXS)

$(OBJS): $(HDRS) Makefile

build/exports.txt: $(SRCS) $(HDRS) Makefile
	@mkdir -p $(@D)
	@( echo Pg_magic_func; echo _PG_init; \
	   sed -n 's/^PG_FUNCTION_INFO_V1(\(.*\));.*/\1\npg_finfo_\1/p' $(SRCS); \
	   sed -n 's/^extern PGDLLEXPORT .*[ *]\([a-z0-9_]*\)(.*/\1/p' $(HDRS) ) >$@

# Warnings only, nothing kept: make syntax CC=clang
syntax:
	@for f in $(SRCS); do $(CC) $(CFLAGS) $(CPPFLAGS) -fsyntax-only $$f || exit 1; done

# The recipe is PGXS's, of what REGRESS and ISOLATION name.
installcheck:

prove_installcheck:
	$(prove_installcheck)

endif
