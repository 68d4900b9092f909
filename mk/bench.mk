# Benchmarks: their programs, and what runs them.
#
# SPDX-License-Identifier: BSD-2-Clause

# the anchors are built as an LTTng user builds tracepoints: of our flags, only with the warnings
bench_programs := $(patsubst %,$(BUILD)/bench/bench-%,lib load ring ring-count)
sink_bench_programs := $(patsubst %.c,$(BUILD)/%,$(sink_bench_src))
bench_obj := $(call obj,$(filter-out $(sink_bench_src),$(wildcard bench/*.c)))
$(bench_obj): flags = $(public_flags) -iquote . -D_GNU_SOURCE -Ibench
$(bench_obj): common = $(warnings)
$(bench_obj): warnings_c =
$(bench_obj): | include
$(call obj,bench/bench-lib.c): flags += $(steady)
$(filter-out %/bench-ring %/bench-ring-count,$(bench_programs)): $(BUILD)/bench/%: $(BUILD)/obj/bench/%.c.o $(lib) $(provider)
	@mkdir -p $(@D)
	$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(link_lib) $(bench_libs)
$(BUILD)/bench/bench-lib: $(call obj,$(addprefix bench/,batch.c threads.c anchor_events.c) \
	$(addprefix libblkin/base/,thread.c clock.c) tracepoints/format/digits.c)
$(BUILD)/bench/bench-load: $(call obj,bench/batch.c)
$(BUILD)/bench/bench-lib: bench_libs = $(call pkg_libs,lttng-ust)

# bench-ring uses hidden functions of libblkin. bench-ring-count replaces the kernel's restartable sequences, which valgrind
# does not have.
$(call obj,bench/bench-ring.c): flags = $(internal) $(steady) $(public_flags) -Ibench -Itests
$(BUILD)/bench/bench-ring $(BUILD)/bench/bench-ring-count: $(BUILD)/obj/bench/bench-ring.c.o \
		$(call obj,bench/batch.c) $(ring_obj) $(lib_static)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(lib_static) -pthread
$(BUILD)/bench/bench-ring-count: ldflags += -rdynamic
$(BUILD)/bench/bench-ring-count: $(call obj,tests/libblkin-ring/parts/sequence.c)
$(call obj,tests/libblkin-ring/parts/sequence.c): flags = $(internal)

# an anchor: the library without usage
without := $(BUILD)/bench/without/$(notdir $(lib))
$(call obj,bench/without/blkin.c): flags = $(internal) $(steady)
$(without): $(call obj,bench/without/blkin.c $(filter-out libblkin/blkin.c,$(lib_src))) libblkin/libblkin.map
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -Wl,-soname,$(@F) -Wl,--version-script,libblkin/libblkin.map \
		-o $@ $(filter %.o,$^) $(LDLIBS)
	@ln -sf ../../lib/$(notdir $(provider)) $(@D)
$(bench_programs): | $(without)

$(patsubst %,$(BUILD)/bench/bench-%,json kafka post): $(call obj,bench/batch.c)
$(sink_bench_programs): $(BUILD)/bench/%: $(BUILD)/obj/bench/%.c.o $(plugin_archives)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(call pkg_libs,$(plugin_pkgs)) -lm

# a source of events for measuring memory
bench_source := $(BUILD)/bench/plugins/babeltrace-plugin-bench.so
$(call obj,bench/source/plugin.c): flags = -iquote . $(call pkg_cflags,babeltrace2)
$(bench_source): $(call obj,bench/source/plugin.c)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -o $@ $^ $(call pkg_libs,babeltrace2) $(LDLIBS)

.PHONY: bench bench-publish bench-kafka bench-otel bench-ring bench-agent bench-zero bench-scale bench-sink bench-memory bench-overload bench-work
# the benchmarks that take less than 12 minutes together
QUICK := lib ring sink live
bench: ## measure what tracing costs, on a machine that does nothing else: build/performance.md, build/bench.json; 12 minutes
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@$(PYTHON) bench/bench $(QUICK)

RUN ?=
bench-publish: ## make doc/performance.md of what make bench measured: RUN='what run it was'
	@$(PYTHON) bench/bench --publish '$(RUN)'
	@scripts/figures --fill

bench-sink: ## measure the sink only
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@$(PYTHON) bench/bench sink live

bench-kafka: ## what sending to a broker costs the sink
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(sink_bench_programs)
	@$(PYTHON) bench/bench kafka

bench-memory: ## measure the sink's memory over 10^8 events: takes some minutes
	@$(MAKE) --no-print-directory all $(sink_bench_programs) $(bench_source)
	@$(PYTHON) bench/bench memory

RUNS ?= 50
bench-overload: ## overload the sink RUNS times: is every span delivered or counted? takes some minutes
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@RUNS=$(RUNS) $(PYTHON) bench/bench overload

bench-agent: ## measure the agent: nbdkit's cost, then four hosts: an hour (less: HOSTS_PARTS=planted PLANTED=100)
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs) $(agent_load)
	@BENCH_NBD='$(BENCH_NBD)' $(PYTHON) bench/bench nbd
	@$(PYTHON) bench/bench hosts

bench-scale: ## workers of Kafka: their rate
	@scripts/deps --install
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(scale_load)
	@$(PYTHON) bench/bench scale

.PHONY: bench-servers
bench-servers: ## servers that nobody instrumented: three hosts, the dispatcher: seven minutes
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@$(PYTHON) bench/bench three-hosts dispatch

bench-zero: ## what `blkin run` costs redis and nbdkit: half an hour (less: BENCH_ZERO='--rounds 2')
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@BENCH_ZERO='$(BENCH_ZERO)' $(PYTHON) bench/bench zero

.PHONY: bench-host
bench-host: ## what a sample of `blkin agent` costs, beside node_exporter: a minute
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(BUILD)/tests/host/sample-cost
	@$(PYTHON) bench/bench host

bench-work: ## what a span costs a worker, beside an OpenTelemetry collector (built with go): ten minutes (less: TURNS=2)
	@scripts/deps --install
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(scale_load)
	@$(PYTHON) bench/bench work

.PHONY: bench-foreign
bench-foreign: ## spans of OpenTelemetry's SDKs, beside a collector with tail_sampling (built with go): 25 minutes (less: TURNS=1)
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@tests/otlp/load/build >/dev/null
	@scripts/fetch-otelcol >/dev/null
	@$(PYTHON) bench/bench foreign

.PHONY: bench-rules
bench-rules: ## measure what spans by rules cost the sink: 5 minutes (instructions: bench/bench-rules --count)
	@$(MAKE) --no-print-directory all
	@$(PYTHON) bench/bench rules

bench-ring: ## measure what the agent's ring adds to a span
	@$(MAKE) --no-print-directory all $(bench_programs)
	@$(PYTHON) bench/bench ring

bench-otel: ## measure the span API beside OpenTelemetry's SDK for Go; needs go
	@$(MAKE) --no-print-directory all $(bench_programs)
	@$(PYTHON) bench/bench otel
