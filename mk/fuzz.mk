# Fuzzers of the code that reads untrusted input: libFuzzer, each for FUZZ_RUNS executions. The corpus and the findings of
# each fuzzer stay in build/fuzz. FUZZERS=fuzz-json runs only this one.
#
# SPDX-License-Identifier: BSD-2-Clause

FUZZ_CC ?= clang
FUZZ_RUNS ?= 500000
FUZZERS ?= $(notdir $(basename $(wildcard tests/fuzz/*.c)))
fuzzers := $(FUZZERS:%=$(BUILD)/fuzz/%)

# Comparisons are reported to libFuzzer in fuzz-context only: the other fuzzers have the values that
# matter in tables of their own, and would spend half of their time on the reports.
fuzz_trace_cmp = -fno-sanitize-coverage=trace-cmp
$(BUILD)/fuzz/fuzz-context: fuzz_trace_cmp =
# libFuzzer chooses inputs by their coverage of the product, not of the fuzzer. (json and otlp include sources of the product: a pragma in them
# marks their own functions.)
fuzz_ignored = -fsanitize-coverage-ignorelist=tests/fuzz/parts/ignored
$(addprefix $(BUILD)/fuzz/fuzz-,context json otlp): fuzz_ignored =
fuzz_cflags = -std=c11 $(warnings) -g -O2 $(internal) $(has_optional) -Itests/plugin \
	-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -DPLUGIN_DIR='""' -DRULES_DIR='""' -DLIBRARY_DIR='""' -DPRELOAD_DIR='""' \
	-fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all $(fuzz_trace_cmp) \
	$(call pkg_cflags,$(tool_pkgs))

# The rooms, compiled once more with instrumentation.
fuzz_archive = $(patsubst %,$(BUILD)/fuzz/rooms/%.a,$(1))
fuzz_archives := $(call fuzz_archive,$(tool_rooms) $(plugin_rooms))
define fuzz_room_rule
$(call fuzz_archive,$(1)): $(patsubst %,$(BUILD)/fuzz/obj/%.o,$(call room_src,$(1)))
endef
$(foreach room,$(tool_rooms) $(plugin_rooms),$(eval $(call fuzz_room_rule,$(room))))
$(fuzz_archives):
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^
$(BUILD)/fuzz/obj/%.c.o: %.c $(makefiles) | $(BUILD)/deps.ok $(texts)
	@mkdir -p $(@D)
	$(call say,CC)$(FUZZ_CC) -MMD -MP $(fuzz_cflags) -fsanitize=fuzzer-no-link -c -o $@ $<

# Each fuzzer is a test, too, which is built like any other test, without libFuzzer: tests/fuzz/parts/replay.c.
fuzz_tests := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/*.c))
fuzz_both = $(foreach name,$(1),$(BUILD)/fuzz/$(name) $(BUILD)/tests/fuzz/$(name))

# Sources that a fuzzer compiles for itself, with smaller tables so that their limits are met.
fuzz_own =
$(call fuzz_both,fuzz-context): fuzz_own = $(wildcard libblkin/context/*.c)
small_spans := $(wildcard babeltrace-plugin/spans/*.c)
$(call fuzz_both,fuzz-assembler fuzz-packed fuzz-rules): fuzz_own = $(small_spans)
$(call fuzz_both,fuzz-assembler fuzz-packed fuzz-rules): fuzz_flags = \
	-DRECENT_SLOTS=16 -DRECENT_SHARED_SLOTS=16 -DSEQUENCE_SLOTS=16 -DOPEN_SAME_IDS_MAX=4
# with a clock of the fuzzer's own
$(call fuzz_both,fuzz-queue): fuzz_own = $(addprefix babeltrace-plugin/deliver/,queue.c batch.c)
$(call fuzz_both,fuzz-queue): fuzz_flags = -Dclock_gettime=fuzz_clock_gettime \
	-Dpthread_cond_wait=fuzz_cond_wait -Dpthread_cond_timedwait=fuzz_cond_timedwait
fuzz_flags =
$(fuzzers): $(BUILD)/fuzz/%: tests/fuzz/%.c tests/fuzz/parts/ignored $(wildcard tests/fuzz/*.h) tests/libblkin/context_model.h tests/rings/packed.h $(fuzz_archives)
	$(call say,FUZZ)$(FUZZ_CC) $(fuzz_cflags) $(fuzz_flags) $(fuzz_ignored) -fsanitize=fuzzer -o $@ $< $(fuzz_own) \
		$(fuzz_archives) -Wl,--as-needed $(call pkg_libs,$(tool_pkgs)) -lm
$(fuzz_tests): $(BUILD)/%: %.c tests/fuzz/parts/replay.c $(wildcard tests/fuzz/*.h tests/plugin/*.h tests/work/*.h) tests/libblkin/context_model.h tests/rings/packed.h $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(cppflags) $(cflags) -Wno-unknown-pragmas $(internal) $(has_optional) -Itests/plugin -UNDEBUG \
		-DPLUGIN_DIR='""' -DRULES_DIR='""' -DLIBRARY_DIR='""' -DPRELOAD_DIR='""' $(call pkg_cflags,$(tool_pkgs)) $(fuzz_flags) \
		$(ldflags) -o $@ $< tests/fuzz/parts/replay.c $(fuzz_own) $(tool_parts) -pthread $(tool_libs)

.PHONY: fuzz
fuzz: ## fuzz what reads untrusted input: FUZZ_RUNS executions each
	+@$(parallel) $(fuzzers)
	@tests/fuzz/run $(FUZZ_RUNS) $(fuzzers)

-include $(shell find $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)
