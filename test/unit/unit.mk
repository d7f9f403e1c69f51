# The trees alone, without a server.  From the top:
#
#   make -f test/unit/unit.mk unit        gcc, optimized
#   make -f test/unit/unit.mk unit-asan   AddressSanitizer, UBSan
#   make -f test/unit/unit.mk unit-tsan   ThreadSanitizer
#   make -f test/unit/unit.mk unit-fuzz   libFuzzer for EUNO_SECONDS, or 60 s
#   make -f test/unit/unit.mk bench-core  the benchmark of the trees
#
# EUNO_SEED and EUNO_SECONDS make the tests try other things, and longer;
# EUNO_TREE names the one tree to run them over.

UNIT_CC ?= gcc
UNIT_CLANG ?= clang
UNIT_BUILD = build/unit
UNIT_CFLAGS = -std=gnu11 -g -Wall -Wextra -Werror -pthread -MMD -MP \
	-Isrc -Itest/unit -DEUNO_TEST
UNIT_FLAGS_plain = -O2
UNIT_FLAGS_asan = -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
UNIT_FLAGS_tsan = -O1 -fsanitize=thread

UNIT_CORE = $(wildcard src/core/*.c src/core/*/*.c) src/mem/euno_arena.c
UNIT_SUPPORT = $(addprefix test/unit/,tap.c env.c universe.c shapes.c fixture.c check.c reference.c mob.c hook.c)
UNIT_TESTS = arena oracle forms nomem threads epoch

.PHONY: unit unit-asan unit-tsan
unit: UNIT_RUN = $(UNIT_BUILD)/plain
unit-asan: UNIT_RUN = $(UNIT_BUILD)/asan
unit-tsan: UNIT_RUN = $(UNIT_BUILD)/tsan
unit: $(UNIT_TESTS:%=$(UNIT_BUILD)/plain/%)
unit-asan: $(UNIT_TESTS:%=$(UNIT_BUILD)/asan/%)
unit-tsan: $(UNIT_TESTS:%=$(UNIT_BUILD)/tsan/%)
unit unit-asan unit-tsan:
	@test/unit/run $(UNIT_RUN) $(UNIT_TESTS)

# One set of rules for each flavor.
define unit_flavor
$$(UNIT_BUILD)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(UNIT_CC) $$(UNIT_CFLAGS) $$(UNIT_FLAGS_$(1)) -c -o $$@ $$<

$$(UNIT_TESTS:%=$$(UNIT_BUILD)/$(1)/%): $$(UNIT_BUILD)/$(1)/%: \
		$$(UNIT_BUILD)/$(1)/test/unit/%.o \
		$$(patsubst %.c,$$(UNIT_BUILD)/$(1)/%.o,$$(UNIT_SUPPORT) $$(UNIT_CORE))
	$$(UNIT_CC) $$(UNIT_CFLAGS) $$(UNIT_FLAGS_$(1)) -o $$@ $$^
endef
$(foreach flavor,plain asan tsan,$(eval $(call unit_flavor,$(flavor))))

.SECONDARY:
-include $(shell find $(UNIT_BUILD) -name '*.d' 2>/dev/null)
