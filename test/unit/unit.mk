# The trees alone, without a server.  From the top:
#
#   make -f test/unit/unit.mk unit        gcc, optimized
#   make -f test/unit/unit.mk unit-asan   AddressSanitizer, UBSan
#   make -f test/unit/unit.mk unit-tsan   ThreadSanitizer
#   make -f test/unit/unit.mk unit-arm64  on an emulated ARM64, within an hour;
#                                         needs the packages gcc-aarch64-linux-gnu
#                                         and qemu-user-static
#   make -f test/unit/unit.mk unit-s390x  the same, big endian: gcc-s390x-linux-gnu
#   make -f test/unit/unit.mk unit-fuzz   libFuzzer for EUNO_SECONDS, or 60 s
#   make -f test/unit/unit.mk unit-mutants  do the schedules find what is broken
#                                         on purpose?  Takes minutes
#   make -f test/unit/unit.mk bench-structures  which structure for which keys
#   make -f test/unit/unit.mk bench-domains  what domains cost on one node
#   make -f test/unit/unit.mk bench-skew  threads, skew, and what is against it
#   make -f test/unit/unit.mk bench-lines  the same: lines that writers take from
#                                         each other
#
# EUNO_SEED and EUNO_SECONDS make the tests try other things, and longer;
# EUNO_TREE names the one tree to run them over.

UNIT_CC ?= gcc
UNIT_CLANG ?= clang
UNIT_BUILD = build/unit
UNIT_CFLAGS = -std=gnu11 -g -Wall -Wextra -Werror -pthread -MMD -MP \
	-Isrc -Itest/unit -Itest/bench
UNIT_FLAGS_plain = -O2 $(UNIT_NO_DOUBTS) -DART_VISIT_FRAMES=2
UNIT_FLAGS_alone = -O2 -DEUNO_ALONE=1
UNIT_FLAGS_hook = -O2 -DEUNO_TEST_HOOK $(UNIT_EAGERLY) $(UNIT_NO_DOUBTS)
UNIT_FLAGS_model = -O2 $(UNIT_UNDEFINED) -fsanitize-undefined-trap-on-error -DEUNO_TEST_MODEL -DEUNO_LOCK_SPINS=1 -DBPT_PATIENCE=euno_model_patience -DBPT_VOTES=2 -DBPT_LOG_SIZE=3 -DBPT_LEAF_SIZE=256 -DBPT_FIXED_SIZE=256 -DBPT_INNER_SIZE=256 -DBPT_SEGMENTS=2 -DBPT_SEGMENT_SIZE=192 -DBPT_CLOSING_PAUSES=1 -DBPT_SEGMENT_PAUSES=1 -DBPT_SEGMENT_ROUNDS=1 \
	-DEUNO_QUEUES=1 -DEUNO_PATIENCE=1 -DEUNO_PATIENCE_LEAST=1 -DEUNO_LOOK_PAUSES=1 -DEUNO_LEADER_REQUESTS=1 $(UNIT_EAGERLY) -DBPT_CROWD=99 -DART_CROWD=99 -DART_STEPS=1 -DART_LONELY=0 -DART_COMPANY=0 -DART_GROWN=4,8,16,30,52,94,126,256 \
	-DEUNO_HEAT_SAMPLE=1 -DEUNO_HEAT_FIRST=1000 -DEUNO_HEAT_LEAVES=12 -DART_USES=4 -DART_LEAST_DRAWN=1 -DART_LEAST_READS=1
UNIT_FLAGS_eager = $(filter-out -DART_STEPS=1 -DART_LONELY=0,$(UNIT_FLAGS_model))
UNIT_FLAGS_fuzz = -O1 -fsanitize=fuzzer-no-link,address
UNIT_LINK_fuzz = -fsanitize=fuzzer,address
UNIT_FLAGS_asan = -O1 -fsanitize=address $(UNIT_UNDEFINED) \
	-fno-omit-frame-pointer $(UNIT_EAGERLY) $(UNIT_NO_DOUBTS)
UNIT_FLAGS_tsan = -O1 -fsanitize=thread $(UNIT_EAGERLY) $(UNIT_NO_DOUBTS)

# Most of what is undefined only happens to whoever reads what is being changed.
UNIT_UNDEFINED = -fsanitize=undefined -fno-sanitize-recover=all

# Memory is used again as soon as may be.
UNIT_EAGERLY = -DEUNO_EPOCH_BATCH=0

# Wrong approximations are asked for again and again.
UNIT_NO_DOUBTS = -DBPT_DOUBTS=UINT32_MAX

include test/unit/sources.mk
UNIT_SUPPORT = $(addprefix test/unit/,tap.c env.c universe.c shapes.c fixture.c check.c pools.c reference.c modes.c mob.c hook.c)
UNIT_TESTS = arena lists torn oracle alphabets forms visit nomem canceled callouts liars domains near heat art_heat crowd edge separators policy threads predicate epoch processes fuzz

# "hook" has somebody else take over, or a process stop, between any two steps.
# ThreadSanitizer has nothing to say about a single thread or other processes.
UNIT_plain = model/schedules-bptree model/schedules-art-olc model/schedules-art-rowex eager/schedules-art $(addprefix plain/,$(UNIT_TESTS)) hook/threads hook/predicate hook/processes model/litmus \
	$(addprefix plain/,oracle-flapping forms-contended nomem-flapping threads-contended \
	oracle-crowded threads-crowded) hook/threads-flapping hook/threads-crowded
UNIT_asan = $(addprefix asan/,$(UNIT_TESTS) oracle-flapping threads-contended threads-crowded)
UNIT_tsan = tsan/arena tsan/threads tsan/threads-contended tsan/threads-flapping tsan/threads-crowded tsan/predicate tsan/epoch

.PHONY: unit unit-asan unit-tsan unit-arm64 unit-s390x unit-programs mutants-programs bench-programs
unit-programs: $(addprefix $(UNIT_BUILD)/,$(UNIT_plain))
unit: unit-programs
	@test/unit/run $(UNIT_BUILD) $(UNIT_plain)
unit-asan: $(addprefix $(UNIT_BUILD)/,$(UNIT_asan))
	@test/unit/run $(UNIT_BUILD) $(UNIT_asan)
unit-tsan: $(addprefix $(UNIT_BUILD)/,$(UNIT_tsan))
	@test/unit/run $(UNIT_BUILD) $(UNIT_tsan)
unit-arm64: UNIT_MACHINE = aarch64
unit-s390x: UNIT_MACHINE = s390x
unit-arm64 unit-s390x:
	@EUNO_EMULATOR="qemu-$(UNIT_MACHINE)-static -L /usr/$(UNIT_MACHINE)-linux-gnu" $(MAKE) -f test/unit/unit.mk unit \
		UNIT_CC=$(UNIT_MACHINE)-linux-gnu-gcc UNIT_BUILD=$(UNIT_BUILD)$(@:unit%=%) UNIT_plain="$(addprefix plain/,$(UNIT_TESTS))"

$(UNIT_BUILD)/%/test/unit/fuzz.o: UNIT_DEFINES = -DFUZZ_REPLAY
$(UNIT_BUILD)/fuzz/%: UNIT_CC = $(UNIT_CLANG)
$(UNIT_BUILD)/fuzz/test/unit/fuzz.o: UNIT_DEFINES =

# New inputs go to the build directory; what fails is kept in the top one.
.PHONY: unit-fuzz
unit-fuzz: $(UNIT_BUILD)/fuzz/fuzz
	@mkdir -p $(UNIT_BUILD)/fuzz/corpus
	$< -max_total_time=$${EUNO_SECONDS:-60} -max_len=2048 -len_control=0 -timeout=20 \
		$(UNIT_BUILD)/fuzz/corpus test/unit/corpus

# Logical threads, and memory as the C11 model has it.
UNIT_SCHEDULES = $(addprefix test/unit/,schedules.c cases.c stage.c history.c coroutines.c memory.c tap.c env.c)

$(UNIT_BUILD)/model/schedules: $(patsubst %.c,$(UNIT_BUILD)/model/%.o,$(UNIT_SCHEDULES) $(UNIT_CORE))
	$(UNIT_CC) $(UNIT_CFLAGS) $(UNIT_FLAGS_model) -o $@ $^

# The same for one tree, so that two run at a time.
$(UNIT_BUILD)/model/schedules-%: $(UNIT_BUILD)/model/schedules
	@printf '#!/bin/sh\nEUNO_TREE=%s exec "$${0%%%%-*}"\n' $(subst -,/,$*) >$@
	@chmod +x $@

# The radix trees with as much done at once as in the server: nodes of ascending keys
# grow by steps, and removers replace small nodes.
UNIT_EAGER = src/core/art/art_insert.c src/core/art/art_compact.c
UNIT_EAGER_CASES = remove-insert remove-read split-merge merge-read merge-back merge-below \
	fan-2 fan-2-again fan-4 fan-verify grow-dead shrink-4 desert-2 desert-above desert-8 \
	desert-again prefix-copy prefix-back prefix-lift path-dead few row row-same row-grow \
	row-read row-path row-merge row-gone row-reuse wide-again wide-back

$(UNIT_BUILD)/eager/schedules: $(patsubst %.c,$(UNIT_BUILD)/model/%.o,$(filter-out $(UNIT_EAGER),$(UNIT_SCHEDULES) $(UNIT_CORE))) \
		$(patsubst %.c,$(UNIT_BUILD)/eager/%.o,$(UNIT_EAGER))
	$(UNIT_CC) $(UNIT_CFLAGS) $(UNIT_FLAGS_eager) -o $@ $^

$(UNIT_BUILD)/eager/schedules-art: $(UNIT_BUILD)/eager/schedules
	@printf '#!/bin/sh\nEUNO_TREE=art EUNO_CASES="%s" exec "$${0%%%%-*}"\n' "$(UNIT_EAGER_CASES)" >$@
	@chmod +x $@

# A program run over the B+tree with its leaves forced into modes.
define unit_mode
$$(UNIT_BUILD)/%-$(1): $$(UNIT_BUILD)/%
	@printf '#!/bin/sh\nEUNO_TREE=$(1) exec "$$$${0%%%%-*}"\n' >$$@
	@chmod +x $$@
endef
$(foreach mode,contended flapping crowded,$(eval $(call unit_mode,$(mode))))

$(UNIT_BUILD)/model/litmus: $(patsubst %.c,$(UNIT_BUILD)/model/%.o,$(addprefix test/unit/,litmus.c coroutines.c memory.c tap.c env.c) $(UNIT_CORE))
	$(UNIT_CC) $(UNIT_CFLAGS) $(UNIT_FLAGS_model) -o $@ $^

# The programs that the list names instead of a tree.
UNIT_MUTATED = $(sort $(shell sed -n 's/.*| program:\([a-z_]*\) .*/\1/p' test/unit/mutants/list))

.PHONY: unit-mutants
mutants-programs: $(UNIT_BUILD)/model/schedules $(addprefix $(UNIT_BUILD)/plain/,$(UNIT_MUTATED))
unit-mutants: mutants-programs
	@SCHEDULES="$(UNIT_SCHEDULES) $(UNIT_CORE)" SUPPORT="$(UNIT_SUPPORT) $(UNIT_CORE)" \
		PLAIN_FLAGS="-std=gnu11 -O1 -w -pthread $(UNIT_FLAGS_plain)" test/unit/mutants/run $(UNIT_BUILD)/model $(UNIT_CC) \
		"-std=gnu11 -O1 -w -pthread $(UNIT_FLAGS_model)" $(MUTANTS)

bench-programs: $(patsubst %,$(UNIT_BUILD)/plain/%_bench,core skew structure domain calm)

.PHONY: bench-skew
bench-skew: $(UNIT_BUILD)/plain/skew_bench
	EUNO_RESULTS=$(UNIT_BUILD)/skew.tsv $<
	@perl test/sim/plot $(UNIT_BUILD)/skew.tsv $(UNIT_BUILD)

.PHONY: bench-lines
bench-lines: $(UNIT_BUILD)/hook/skew_bench
	@for only in "theta 0.99" ascending; do EUNO_THREADS=16 EUNO_ONLY="$$only" $< || exit 1; done

.PHONY: bench-domains
bench-domains: $(UNIT_BUILD)/plain/domain_bench
	@test/bench/domain_cost $<

.PHONY: bench-structures
bench-structures: $(UNIT_BUILD)/plain/structure_bench
	$<

# A published tree to measure beside ours, for who has Rust: EUNO_CONGEE=1.
UNIT_CONGEE = $(if $(EUNO_CONGEE),$(UNIT_BUILD)/congee/release/libeuno_congee.a)
$(UNIT_BUILD)/congee/release/libeuno_congee.a: test/bench/congee/Cargo.toml test/bench/congee/lib.rs
	CARGO_TARGET_DIR=$(abspath $(UNIT_BUILD)/congee) cargo build -q --release --manifest-path $<

# "hook" counts lines that are written.
define unit_bench
$$(UNIT_BUILD)/$(1)/%_bench: $$(UNIT_BUILD)/$(1)/test/bench/%_bench.o $$(UNIT_BUILD)/alone.o \
		$$(patsubst %.c,$$(UNIT_BUILD)/$(1)/%.o,$$(addprefix test/bench/,subject.c array.c keys.c lines.c $$(if $$(EUNO_CONGEE),congee.c)) test/unit/env.c $$(UNIT_CORE)) \
		$$(UNIT_CONGEE)
	$$(UNIT_CC) $$(UNIT_CFLAGS) $$(UNIT_FLAGS_$(1)) -o $$@ $$^ -lm
endef
$(foreach flavor,plain hook,$(eval $(call unit_bench,$(flavor))))

# The trees without synchronization, to go into one program with those that
# have it: only their tables of functions are seen, by other names.
UNIT_ALONE = bptree_ops art_olc_ops
$(UNIT_BUILD)/alone.o: $(patsubst %.c,$(UNIT_BUILD)/alone/%.o,$(filter src/core/%,$(UNIT_CORE)))
	$(LD) -r -o $@.all $^
	objcopy $(foreach ops,$(UNIT_ALONE),--redefine-sym euno_$(ops)=alone_$(ops)) $@.all $@.renamed
	objcopy $(UNIT_ALONE:%=--keep-global-symbol=alone_%) $@.renamed $@
	@rm -f $@.all $@.renamed

# One set of rules for each flavor.
define unit_flavor
$$(UNIT_BUILD)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(UNIT_CC) $$(UNIT_CFLAGS) $$(UNIT_FLAGS_$(1)) $$(UNIT_DEFINES) -c -o $$@ $$<

$$(UNIT_TESTS:%=$$(UNIT_BUILD)/$(1)/%): $$(UNIT_BUILD)/$(1)/%: \
		$$(UNIT_BUILD)/$(1)/test/unit/%.o \
		$$(patsubst %.c,$$(UNIT_BUILD)/$(1)/%.o,$$(UNIT_SUPPORT) $$(UNIT_CORE))
	$$(UNIT_CC) $$(UNIT_CFLAGS) $$(UNIT_FLAGS_$(1)) $$(UNIT_LINK_$(1)) -o $$@ $$^
endef
$(foreach flavor,plain alone hook model eager asan tsan fuzz,$(eval $(call unit_flavor,$(flavor))))

.SECONDARY:
-include $(shell find $(UNIT_BUILD) -name '*.d' 2>/dev/null)
