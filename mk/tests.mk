# The test programs.
#
# SPDX-License-Identifier: BSD-2-Clause

sink_bench_src := $(wildcard $(patsubst %,bench/%.c, \
	bench-drain bench-json bench-kafka bench-post null_server))
test_obj := $(call obj,$(wildcard tests/libblkin/*.c tests/plugin/*.c) $(sink_bench_src))
$(test_obj): flags = $(internal) $(has_optional) $(public_flags) -Itests -Itests/plugin -UNDEBUG \
	$(call pkg_cflags,$(plugin_pkgs) jansson)
$(test_obj): | include
$(BUILD)/tests/libblkin/%: $(BUILD)/obj/tests/libblkin/%.c.o $(lib) $(provider)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< -pthread $(link_lib)
# tests of hidden functions of libblkin
$(patsubst %,$(BUILD)/tests/libblkin/test-%,policy slow-rules): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib_static)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(LDLIBS)
$(BUILD)/tests/plugin/%: $(BUILD)/obj/tests/plugin/%.c.o $(call archive,tools/trace) $(plugin_archives)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(call pkg_libs,$(plugin_pkgs) jansson) -lm
# tests test-* link all objects of libblkin-preload.so except the wrappers; into the other programs, a test preloads it
preload_parts = $(filter-out $(BUILD)/obj/libblkin/preload/wrap_%,$(preload_obj))
$(call obj,$(wildcard tests/preload/*.c)): flags = $(internal) $(public_flags) -Itests -UNDEBUG
$(call obj,$(wildcard tests/preload/*.c)): | include
$(call obj,$(wildcard tests/preload/parts/*.c)): flags = $(internal) $(public_flags) -Itests -UNDEBUG
$(call obj,$(wildcard tests/preload/parts/*.c)): | include
$(BUILD)/tests/preload/tricks: $(call obj,$(wildcard tests/preload/parts/tricks_*.c))
$(filter $(BUILD)/tests/preload/test-%,$(test_programs)): $(preload_parts)
$(filter $(BUILD)/tests/preload/%,$(test_programs)): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib) $(provider) $(preload)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $(filter %.o,$^) -pthread $(link_lib) -ldl
# tests of hidden functions of libblkin, with the agent's side of the rings
ring_parts := $(call obj,tests/libblkin-ring/parts/rings.c)
ring_obj := $(ring_parts) $(call obj,babeltrace-plugin/base/unix_socket.c tools/rings/memory.c tools/rings/ring_read.c)
$(call obj,$(wildcard tests/libblkin-ring/*.c)) $(ring_parts): flags = $(internal) $(public_flags) -Itests -UNDEBUG
$(call obj,$(wildcard tests/libblkin-ring/*.c)) $(ring_parts): | include
$(patsubst %,$(BUILD)/tests/libblkin-ring/test-%,contained provider spans steps): $(call obj,tools/rings/ring_event.c babeltrace-plugin/spans/packed.c)
$(filter $(BUILD)/tests/libblkin-ring/%,$(test_programs)): $(BUILD)/%: $(BUILD)/obj/%.c.o $(ring_obj) $(lib_static) | $(provider)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(LDLIBS)
tool_tests := $(BUILD)/tests/cluster/peer $(BUILD)/tests/lttng/session
$(patsubst $(BUILD)/%,$(BUILD)/obj/%.c.o,$(tool_tests)): flags = $(internal) -Itests \
	$(call pkg_cflags,$(tool_pkgs))
$(tool_tests): $(BUILD)/%: $(BUILD)/obj/%.c.o $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs) $(LDLIBS)
# programs that load Kafka and workers
scale_load := $(if $(kafka_pkg),$(BUILD)/tests/scale/produce)
scale_obj := $(call obj,tests/scale/produce.c tests/scale/traces.c)
$(scale_obj): flags = -D_GNU_SOURCE -iquote . -Itests $(call pkg_cflags,rdkafka)
$(BUILD)/tests/scale/produce: $(scale_obj)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ $(call pkg_libs,rdkafka) -lm $(LDLIBS)
load_writers := $(BUILD)/tests/live/writer $(BUILD)/tests/agent/parts/mutate
$(patsubst $(BUILD)/%,$(BUILD)/obj/%.c.o,$(load_writers)): flags = $(internal) $(public_flags) -Itests
$(load_writers): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib) $(provider) | include
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< -pthread $(link_lib)
agent_load := $(patsubst %,$(BUILD)/tests/%,agent/parts/requests agent/hosts/load)
$(patsubst $(BUILD)/%,$(BUILD)/obj/%.c.o,$(agent_load)): flags = $(public_flags) -iquote . -Itests -D_GNU_SOURCE
$(agent_load): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib) $(provider) | include
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< $(link_lib)
$(BUILD)/tests/agent/parts/set_clock.so: $(call obj,tests/agent/parts/set_clock.c)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -shared -o $@ $^ $(LDLIBS)
$(call obj,tests/agent/parts/set_clock.c): flags = -D_GNU_SOURCE
agent_load += $(BUILD)/tests/agent/parts/set_clock.so
# tests of the command's rooms
tool_test_obj := $(call obj,$(wildcard tests/otlp/*.c tests/host/*.c tests/agent/*.c tests/rings/*.c tests/service/*.c tests/work/*.c))
$(tool_test_obj): flags = $(internal) $(has_optional) -Itests -UNDEBUG $(call pkg_cflags,$(tool_pkgs))
$(filter $(BUILD)/tests/otlp/% $(BUILD)/tests/host/% $(BUILD)/tests/agent/% $(BUILD)/tests/rings/% $(BUILD)/tests/service/% $(BUILD)/tests/work/%,$(test_programs)): $(BUILD)/%: $(BUILD)/obj/%.c.o $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs)

# these tests replace functions: of the clock, of the memory for OTLP spans, of signals, of sockets
$(BUILD)/tests/agent/test-late-spans: ldflags += -Wl,--wrap=otlp_in_memory,--wrap=sdk_memory_take,--wrap=sdk_memory_held,--wrap=clock_gettime,--wrap=agent_step
$(BUILD)/tests/agent/test-joined: ldflags += -Wl,--wrap=clock_gettime
$(BUILD)/tests/service/test-loop: ldflags += -Wl,--wrap=sigprocmask
$(BUILD)/tests/service/test-metrics: ldflags += -Wl,--wrap=accept4

# starve.c makes allocations fail in the objects that it is linked with
starve := $(call obj,tests/plugin/starvation/starve.c)
starve_wrap := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc reallocarray free strdup pwrite fsync)
starved_plugin := $(BUILD)/tests/plugin/starved/$(notdir $(plugin))
$(starve): flags = -Itests/plugin
$(starve): warnings_c =
starvation_tests := $(filter $(BUILD)/tests/plugin/test-starvation% %/agent/test-export %/agent/test-joined \
	%/agent/test-judge %/agent/test-scan %/agent/test-scan-queue %/agent/test-selection %/agent/test-watcher %/otlp/test-store,$(test_programs))
$(starvation_tests): $(starve)
$(starvation_tests): ldflags += $(starve_wrap)
$(starved_plugin): $(starve) $(plugin_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) $(starve_wrap) -o $@ $^ $(call pkg_libs,$(plugin_pkgs)) -lm $(LDLIBS)
# traces that LTTng-UST could write, and traces that it could not
made_traces := $(BUILD)/tests/plugin/traces/made
$(made_traces): $(addprefix tests/plugin/,make_traces.py trace_events.py ctf.py) tests/format/writer.py
	@rm -rf $(@D) && mkdir -p $(@D)
	$(call say,GEN)$(PYTHON) $< $(@D) && touch $@
# a sink that prints what the C reader makes of a trace
format_sink := $(BUILD)/tests/format/spans.so
$(call obj,tests/format/spans.c): flags = $(internal) $(call pkg_cflags,$(plugin_pkgs))
$(format_sink): $(call obj,tests/format/spans.c) $(plugin_archives)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -o $@ $^ $(call pkg_libs,$(plugin_pkgs)) -lm $(LDLIBS)
