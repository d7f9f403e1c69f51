# The simulated machine.  From the top:
#
#   make -f test/sim/sim.mk sim           runs it all; figures in test/sim
#   make -f test/sim/sim.mk sim-validate  measures this machine, holds the
#                                         simulation against it
#   make -f test/sim/sim.mk sim-smoke     a few seconds of it, as a test

SIM_CC ?= gcc
SIM_BUILD = build/sim
SIM_CFLAGS = -std=gnu11 -g -O2 -Wall -Wextra -Werror -pthread -MMD -MP \
	-Isrc -Itest/unit -Itest/sim

include test/unit/sources.mk
SIM_CORE = $(UNIT_CORE) test/unit/env.c
SIM_COMMON = $(addprefix test/sim/,workload.c subject_euno.c detector.c)
SIM_SIM = $(addprefix test/sim/,sim.c cache.c threads.c machine.c $(notdir $(wildcard test/sim/peer*.c)))
SIM_PROGRAMS = $(addprefix $(SIM_BUILD)/,calibrate native sim)

.PHONY: sim sim-validate sim-smoke sim-programs
sim-programs: $(SIM_PROGRAMS)
sim: sim-programs
	test/sim/figures $(SIM_BUILD)
sim-validate: sim-programs
	test/sim/validate $(SIM_BUILD)
sim-smoke: sim-programs
	@test/sim/smoke $(SIM_BUILD)

$(SIM_BUILD)/calibrate: $(addprefix $(SIM_BUILD)/plain/,test/sim/calibrate.o $(SIM_CORE:.c=.o))
	$(SIM_CC) -pthread -o $@ $^ -lm
$(SIM_BUILD)/native: $(addprefix $(SIM_BUILD)/plain/,test/sim/native.o $(SIM_COMMON:.c=.o) $(SIM_CORE:.c=.o))
	$(SIM_CC) -pthread -o $@ $^ -lm
$(SIM_BUILD)/sim: $(addprefix $(SIM_BUILD)/hook/,$(SIM_SIM:.c=.o) $(SIM_COMMON:.c=.o) $(SIM_CORE:.c=.o))
	$(SIM_CC) -pthread -o $@ $^ -lm

$(SIM_BUILD)/plain/%.o: %.c
	@mkdir -p $(@D)
	$(SIM_CC) $(SIM_CFLAGS) -c -o $@ $<
$(SIM_BUILD)/hook/%.o: %.c
	@mkdir -p $(@D)
	$(SIM_CC) $(SIM_CFLAGS) -DEUNO_TEST_HOOK -c -o $@ $<

.SECONDARY:
-include $(shell find $(SIM_BUILD) -name '*.d' 2>/dev/null)
