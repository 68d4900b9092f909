# BlkKin: everything is built into build/. "make help" lists the targets.
#
# SPDX-License-Identifier: BSD-2-Clause

# that of the headers: 1.0.0
VERSION := $(shell printf '%s.%s.%s' $$(sed -n 's/^.define BLKIN_VERSION_[MP][A-Z]* //p' libblkin/blkin_base.h))
RELEASED := 2026-11-21
SO_VERSION := 1

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
DOCDIR ?= $(PREFIX)/share/doc/blkin
MANDIR ?= $(PREFIX)/share/man
# not for the linker: it is preloaded by its path
PRELOADDIR ?= $(LIBDIR)/blkin
# where nbdkit looks for filters; of another PREFIX than the system's, as if nbdkit were there too.
# A path of the machine that runs it: without the sysroot that pkg-config may put before it.
FILTERDIR ?= $(shell env -u PKG_CONFIG_SYSROOT_DIR $(PKG_CONFIG) --variable=filterdir \
	$(if $(filter-out /usr /usr/local,$(PREFIX)),--define-variable=prefix=$(PREFIX)) nbdkit)
# where babeltrace2 looks for plugins, in the same way
PLUGINDIR ?= $(if $(filter-out /usr /usr/local,$(PREFIX)),$(LIBDIR),$(shell \
	env -u PKG_CONFIG_SYSROOT_DIR $(PKG_CONFIG) --variable=libdir babeltrace2))/babeltrace2/plugins

# SANITIZE=address,undefined (or thread) makes another build, best with its own BUILD=build/asan
BUILD ?= build
SANITIZE ?=
PKG_CONFIG ?= pkg-config
CLANG_FORMAT ?= clang-format
INSTALL ?= install

# make V=1 shows whole commands
V ?=
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-4s %s\n' $(1) $(patsubst $(BUILD)/%,%,$@);)

SRC := $(CURDIR)
# Debian's own Python: another one on the PATH does not see Debian's packages
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
export SRC PYTHON
# The paths of targets are relative, for the checkout's may have a blank in it.
override BUILD := $(subst $(CURDIR)/,,$(BUILD))
built := $(if $(filter /%,$(firstword $(BUILD))),,$(CURDIR)/)$(BUILD)
export BUILD

# ---------------------------------------------------------------------------------- flags

hardening := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIC
sanitizers := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
warnings := -Wall -Wextra -Wshadow -Wpointer-arith -Wvla -Wundef $(if $(CI)$(WERROR),-Werror)
warnings_c := -Wstrict-prototypes -Wmissing-prototypes

CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g
cppflags = -MMD -MP $(CPPFLAGS)
internal = -D_GNU_SOURCE -DBLKIN_RELEASE='"$(VERSION)"' -iquote . -Ilibblkin
common = $(warnings) $(if $(SANITIZE),-fPIC,$(hardening)) $(sanitizers) -fvisibility=hidden
cflags = -std=c11 $(common) $(warnings_c) $(CFLAGS)
cxxflags = -std=c++11 $(common) $(CXXFLAGS)
ldflags = -Wl,-z,relro,-z,now -Wl,--as-needed $(sanitizers) $(LDFLAGS)
so_ldflags = $(ldflags) -shared $(if $(SANITIZE),,-Wl,-z,defs)

# asked when a rule needs them, so that "make deps" works without pkg-config
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(1))
pkg_libs = $(shell $(PKG_CONFIG) --libs $(1))

# ---------------------------------------------------------------------------------- what is built

lib := $(BUILD)/lib/libblkin.so.$(SO_VERSION)
lib_static := $(BUILD)/lib/libblkin.a
provider := $(BUILD)/lib/libblkin-lttng.so.$(SO_VERSION)
preload := $(BUILD)/lib/libblkin-preload.so
plugin := $(BUILD)/plugins/babeltrace-plugin-blkin.so
tool := $(BUILD)/bin/blkin
headers := $(patsubst %,libblkin/%,zipkin_c.h ztracer.hpp blkin.h blkin.hpp blkin_base.h \
	blkin_context.h)
# as the original installs it: for programs that record its events by LTTng's own macros
lttng_header := tracepoints/zipkin_trace.h

# how LTTng starts concerns who loads it, and the provider, which starts it again in children
start_src := $(wildcard tracepoints/start/*.c)
lib_src := $(filter-out libblkin/preload/%,$(wildcard libblkin/*.c libblkin/*/*.c)) \
	$(wildcard tracepoints/format/*.c) $(start_src)
provider_src := $(wildcard tracepoints/*.c) $(start_src)
preload_src := $(wildcard libblkin/preload/*.c)
core_src := $(wildcard babeltrace-plugin/core/*.c)
output_src := $(wildcard babeltrace-plugin/output/*.c)
account_src := $(wildcard babeltrace-plugin/account/*.c)
analysis_src := $(wildcard babeltrace-plugin/analysis/*.c)
plugin_src := $(wildcard babeltrace-plugin/*.c) $(core_src) $(output_src) $(account_src) $(analysis_src)
tool_src := $(wildcard tools/*.c tools/*/*.c) libblkin/preload/config_text.c
man_pages := $(wildcard tools/*.1 tools/*/*.[15])
example_programs := client gateway mapper store
example_common := $(filter-out $(example_programs:%=examples/%.c),$(wildcard examples/*.c))
examples := $(example_programs:%=$(BUILD)/examples/%)
dispatcher := $(BUILD)/examples/dispatcher
nbdkit_src := $(wildcard examples/nbdkit-filter/*.c)
# optional: for who has no nbdkit, all else is built
nbdkit_filter := $(if $(shell $(PKG_CONFIG) --exists nbdkit 2>/dev/null && echo yes), \
	$(BUILD)/examples/nbdkit-blkin-filter.so)
test_programs := $(patsubst %,$(BUILD)/%, \
	$(basename $(wildcard tests/libblkin/*.c tests/plugin/*.c tests/preload/*.c tests/host/*.c tests/record/*.c tests/service/*.c tests/work/*.c)))
unit_tests := $(foreach program,$(test_programs), \
	$(if $(filter test-%,$(notdir $(program))),$(program)))
script_tests := $(wildcard tests/*/test-*.sh tests/*/test-*.py)

# optional, too: who has no Kafka needs no librdkafka
kafka_pkg := $(shell $(PKG_CONFIG) --exists rdkafka 2>/dev/null && echo rdkafka)
has_kafka := $(if $(kafka_pkg),-DHAS_KAFKA)
plugin_pkgs := babeltrace2 libcurl jansson liburcu libzstd zlib $(kafka_pkg)
tool_pkgs := $(plugin_pkgs) gnutls inih libmicrohttpd lttng-ctl

comma := ,
obj = $(patsubst %,$(BUILD)/obj/%.o,$(1))

.PHONY: all deps demo check check-servers check-asan check-fresh check-tsan install uninstall lint format clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(lib) $(lib_static) $(provider) $(preload) $(plugin) $(tool) $(examples) \
	$(or $(nbdkit_filter),no-nbdkit) include pc ## build all

$(BUILD)/deps.ok: scripts/deps
	@scripts/deps --check build
	@mkdir -p $(@D) && touch $@

$(BUILD)/obj/%.c.o: %.c Makefile | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cppflags) $(cflags) $(flags) -c -o $@ $<

$(BUILD)/obj/%.cpp.o: %.cpp Makefile | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,C++)$(CXX) $(cppflags) $(cxxflags) $(flags) -c -o $@ $<

# A function of some ns costs half as much again where a branch happens to lie on a boundary of 32
# bytes, on Intel processors up to 2020: keep them off it. Found out once, when needed.
steady = $(eval steady := -falign-functions=64 $(shell \
	for flag in -Wa,-mbranches-within-32B-boundaries -mbranches-within-32B-boundaries; do \
		$(CC) -Werror $$flag -c -x c /dev/null -o /dev/null 2>/dev/null && echo $$flag && break; \
	done))$(steady)

# libblkin: libc only; the provider is opened at run time
$(call obj,$(lib_src)): flags = $(internal) $(steady)
# the room metric is the command's alone
$(lib): $(call obj,$(filter-out libblkin/metric/%,$(lib_src))) libblkin/libblkin.map
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -Wl,-soname,$(@F) -Wl,--version-script,libblkin/libblkin.map \
		-o $@ $(filter %.o,$^) $(LDLIBS)
	@ln -sf $(@F) $(@D)/libblkin.so

# a new archive: one that is there may have members whose sources have moved
$(lib_static): $(call obj,$(lib_src))
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

$(call obj,$(provider_src)): flags = $(internal) $(steady) -Itracepoints -Wno-missing-prototypes \
	$(call pkg_cflags,lttng-ust)
# pthread_cancel(3), which LTTng calls at exit, loads libgcc_s: too late after chroot(2)
link_gcc_s = -Wl,--push-state,--no-as-needed -lgcc_s -Wl,--pop-state
$(provider): $(call obj,$(provider_src))
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -Wl,-soname,$(@F) -o $@ $^ $(call pkg_libs,lttng-ust) -llttng-ust-common \
		$(link_gcc_s) $(LDLIBS)

# what `blkin run` puts into servers: over libblkin, which a program may have, too. Of that, the part that
# watches a file is in it once more. Not fortified, as it defines what the checked headers define; with
# -fexceptions, as threads are cancelled in the calls that it wraps.
preload_obj := $(call obj,$(preload_src) libblkin/policy/policy.c libblkin/base/debug.c)
$(call obj,$(preload_src)): flags = $(internal) $(steady) -U_FORTIFY_SOURCE -fexceptions
link_preload = $(CC) $(so_ldflags) -Wl,-soname,$(@F) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblkin
$(preload): $(preload_obj) $(lib) | $(provider)
	@mkdir -p $(@D)
	$(call say,LD)$(link_preload) -Wl,-rpath,'$$ORIGIN' $(LDLIBS)
# the same as it is installed: always anew, for LIBDIR may be another one
$(BUILD)/install/libblkin-preload.so: $(preload_obj) $(lib) FORCE
	@mkdir -p $(@D)
	$(call say,LD)$(link_preload) $(if $(filter /usr,$(PREFIX)),,-Wl,-rpath,$(LIBDIR)) $(LDLIBS)

# -fno-plt: every field of an event is two calls into libbabeltrace2
$(call obj,$(plugin_src)): flags = $(internal) $(has_kafka) $(steady) -fno-plt $(call pkg_cflags,$(plugin_pkgs))
$(plugin): $(call obj,$(plugin_src))
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -o $@ $^ $(call pkg_libs,$(plugin_pkgs)) -lm $(LDLIBS)

tool_libs = $(call pkg_libs,$(tool_pkgs)) -lm
# the command links what it uses of the plugin; the sink itself comes with the plugin
plugin_parts := $(BUILD)/obj/plugin.a
$(plugin_parts): $(call obj,$(filter-out %/plugin.c,$(plugin_src)))
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# and libblkin for `blkin host`, which records
tool_parts := $(plugin_parts) $(lib_static)

$(call obj,$(tool_src)): flags = $(internal) $(has_kafka) -DPLUGIN_DIR='"$(PLUGINDIR)"' -DLIBRARY_DIR='"$(LIBDIR)"' -DPRELOAD_DIR='"$(PRELOADDIR)"' -iquote tools -Ibabeltrace-plugin $(call pkg_cflags,$(tool_pkgs)) \
	$(if $(shell $(PKG_CONFIG) --atleast-version=2.16 lttng-ctl && echo yes),-DLTTNG_HAS_TRACE_FORMATS)
$(tool): $(call obj,$(tool_src)) $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs) $(LDLIBS)

# what tests call of it; -iquote, as LTTng has a <lttng/session.h> too
tool_obj := $(call obj,$(filter-out tools/blkin.c,$(tool_src)))

# the headers as they are installed: <zipkin_c.h> and <blkin/zipkin_c.h>
.PHONY: include pc FORCE
include: $(patsubst %,$(BUILD)/include/blkin/%,$(notdir $(headers) $(lttng_header)))
$(BUILD)/include/blkin/%: libblkin/%
	@mkdir -p $(@D)
	@ln -sf '$(SRC)/$<' $@
$(BUILD)/include/blkin/%: tracepoints/%
	@mkdir -p $(@D)
	@ln -sf '$(SRC)/$<' $@

.PHONY: man
man: $(BUILD)/man/made ## make the man pages: of the command, the headers and each function
$(BUILD)/man/made: scripts/reference $(headers) $(man_pages) Makefile
	@rm -rf $(@D)
	$(PYTHON) scripts/reference $(VERSION) $(RELEASED) $(@D) $(headers)
	@for page in $(man_pages); do \
		sed 's/@VERSION@/$(VERSION)/; s/@RELEASED@/$(RELEASED)/' $$page >$(@D)/$${page##*/}; done
	@touch $@

pc: $(BUILD)/blkin.pc
# always anew: PREFIX may be another one than at the last make
$(BUILD)/blkin.pc: libblkin/blkin.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@

# what uses the public headers sees them as a user does
public_flags = -I$(BUILD)/include -I$(BUILD)/include/blkin -pthread
link_lib = -pthread -L$(BUILD)/lib -lblkin -Wl,-rpath,'$$ORIGIN/../lib:$(built)/lib'
example_obj := $(call obj,$(wildcard examples/*.c examples/*.cpp))
$(example_obj): flags = $(public_flags)
# a program without the provider beside libblkin would silently trace nothing
$(example_obj): | include $(provider)
$(filter-out %/gateway,$(examples)): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.c.o \
		$(call obj,$(example_common)) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(link_lib)
$(filter %/gateway,$(examples)): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.cpp.o \
		$(call obj,$(example_common)) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(CXX) $(ldflags) -o $@ $(filter %.o,$^) $(link_lib)

# records nothing itself
all: $(dispatcher)
dispatcher_obj := $(call obj,$(wildcard examples/dispatcher/*.c))
$(dispatcher_obj): flags = $(call pkg_cflags,jansson) -pthread
$(dispatcher): $(dispatcher_obj) $(call obj,examples/net.c)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(call pkg_libs,jansson) $(LDLIBS)

# nbdkit itself has the functions that a filter calls: no -z defs
link_filter = $(CC) $(ldflags) -shared -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblkin
filter_obj := $(call obj,$(nbdkit_src))
$(filter_obj): flags = $(public_flags) -D_GNU_SOURCE $(call pkg_cflags,nbdkit)
$(filter_obj): | include $(provider)
$(BUILD)/examples/nbdkit-blkin-filter.so: $(filter_obj) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(link_filter) -Wl,-rpath,'$$ORIGIN/../lib:$(built)/lib'
# the same as it is installed: always anew, for LIBDIR may be another one
$(BUILD)/install/nbdkit-blkin-filter.so: $(filter_obj) $(lib) FORCE
	@mkdir -p $(@D)
	$(call say,LD)$(link_filter) $(if $(filter /usr,$(PREFIX)),,-Wl,-rpath,$(LIBDIR))

.PHONY: no-nbdkit
no-nbdkit:
	@echo '  SKIP examples/nbdkit-blkin-filter.so: no nbdkit-filter.h (package nbdkit-plugin-dev)'

# ---------------------------------------------------------------------------------- tests

sink_bench_src := $(wildcard $(patsubst %,tests/bench/%.c, \
	bench-drain bench-json bench-kafka bench-post nbd_client null_server))
test_obj := $(call obj,$(wildcard tests/libblkin/*.c tests/plugin/*.c) $(sink_bench_src))
$(test_obj): flags = $(internal) $(has_kafka) $(public_flags) -Itests -Itests/plugin -Ibabeltrace-plugin -UNDEBUG \
	$(call pkg_cflags,$(plugin_pkgs) jansson)
$(test_obj): | include
$(BUILD)/tests/libblkin/%: $(BUILD)/obj/tests/libblkin/%.c.o $(lib) $(provider)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< -pthread $(link_lib)
$(BUILD)/tests/plugin/%: $(BUILD)/obj/tests/plugin/%.c.o $(call obj,$(core_src) $(output_src) $(account_src) $(analysis_src))
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(call pkg_libs,$(plugin_pkgs) jansson $(extra_pkgs)) -lm
# a test of parts has all of them but the wrappers; the others are programs to be preloaded
preload_parts = $(filter-out $(BUILD)/obj/libblkin/preload/wrap_%,$(preload_obj))
$(call obj,$(wildcard tests/preload/*.c)): flags = $(internal) $(public_flags) -Itests -UNDEBUG
$(call obj,$(wildcard tests/preload/*.c)): | include
$(filter $(BUILD)/tests/preload/test-%,$(test_programs)): $(preload_parts)
$(filter $(BUILD)/tests/preload/%,$(test_programs)): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib) $(provider) $(preload)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $(filter %.o,$^) -pthread $(link_lib) -ldl
tool_tests := $(BUILD)/tests/hub/peer $(BUILD)/tests/lttng/session
$(patsubst $(BUILD)/%,$(BUILD)/obj/%.c.o,$(tool_tests)): flags = $(internal) -iquote tools -Ibabeltrace-plugin \
	$(call pkg_cflags,$(tool_pkgs))
$(tool_tests): $(BUILD)/%: $(BUILD)/obj/%.c.o $(tool_obj) $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs) $(LDLIBS)
kafka_tests := $(if $(kafka_pkg),$(BUILD)/tests/kafka/topic)
$(kafka_tests:$(BUILD)/%=$(BUILD)/obj/%.c.o): flags = $(internal) $(call pkg_cflags,$(kafka_pkg))
$(kafka_tests): $(BUILD)/%: $(BUILD)/obj/%.c.o
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< $(call pkg_libs,$(kafka_pkg))
# the load of Kafka and workers
scale_load := $(if $(kafka_pkg),$(BUILD)/tests/scale/produce $(BUILD)/tests/scale/slow.so)
scale_obj := $(call obj,tests/scale/produce.c tests/scale/traces.c)
$(scale_obj) $(call obj,tests/scale/slow.c): flags = -D_GNU_SOURCE $(call pkg_cflags,rdkafka)
$(BUILD)/tests/scale/produce: $(scale_obj)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ $(call pkg_libs,rdkafka) -lm $(LDLIBS)
# what a worker does without Kafka, fed with the same load
stage_bench := $(BUILD)/tests/scale/bench-stage
$(call obj,tests/scale/bench-stage.c): flags = $(internal) $(has_kafka) -Itools -Ibabeltrace-plugin $(call pkg_cflags,$(tool_pkgs))
$(stage_bench): $(call obj,tests/scale/bench-stage.c tests/scale/traces.c $(filter-out tools/blkin.c,$(tool_src))) $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs)
# finds librdkafka in the program that it is loaded into
$(BUILD)/tests/scale/slow.so: $(call obj,tests/scale/slow.c)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -shared -o $@ $^ $(LDLIBS)
rotate_writers := $(patsubst %,$(BUILD)/tests/%,join/halves rotate/writer rotate/crossing)
$(patsubst $(BUILD)/%,$(BUILD)/obj/%.c.o,$(rotate_writers)): flags = $(internal) $(public_flags)
$(rotate_writers): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib) $(provider) | include
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< -pthread $(link_lib)
record_load := $(patsubst %,$(BUILD)/tests/%,host/parts/causes record/agent/requests record/hosts/load)
$(patsubst $(BUILD)/%,$(BUILD)/obj/%.c.o,$(record_load)): flags = $(public_flags) -D_GNU_SOURCE
$(record_load): $(BUILD)/%: $(BUILD)/obj/%.c.o $(lib) $(provider) | include
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $< $(link_lib)
$(BUILD)/tests/plugin/old_events: extra_pkgs = lttng-ust
$(BUILD)/tests/plugin/test-only: $(call obj,$(wildcard babeltrace-plugin/only*.c))
# what the command is made of
tool_test_obj := $(call obj,$(wildcard tests/host/*.c tests/record/*.c tests/service/*.c tests/work/*.c))
$(tool_test_obj): flags = $(internal) $(has_kafka) -Itests -Itools -Ibabeltrace-plugin -UNDEBUG $(call pkg_cflags,$(tool_pkgs))
$(filter $(BUILD)/tests/host/% $(BUILD)/tests/record/% $(BUILD)/tests/service/% $(BUILD)/tests/work/%,$(test_programs)): $(BUILD)/%: $(BUILD)/obj/%.c.o $(call obj,$(filter-out tools/blkin.c,$(tool_src))) $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs)

# with snapshots of its own
$(BUILD)/tests/record/test-fetch: ldflags += -Wl,--wrap=session_snapshot,--wrap=fsync,--wrap=rename
$(BUILD)/tests/record/keeping: ldflags += -Wl,--wrap=session_snapshot

# what makes allocations of the objects it is linked with fail
starve := $(call obj,tests/plugin/starvation/starve.c)
starve_wrap := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc reallocarray free strdup pwrite fsync)
starved_plugin := $(BUILD)/tests/plugin/starved/$(notdir $(plugin))
$(starve): flags = -Itests/plugin
$(starve): warnings_c =
starvation_tests := $(filter $(BUILD)/tests/plugin/test-starvation%,$(test_programs))
$(starvation_tests): $(starve)
$(starvation_tests): ldflags += $(starve_wrap)
$(starved_plugin): $(call obj,$(plugin_src)) $(starve)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) $(starve_wrap) -o $@ $^ $(call pkg_libs,$(plugin_pkgs)) -lm $(LDLIBS)

# the anchors are built as an LTTng user builds tracepoints: no flags of ours but the warnings
bench_programs := $(patsubst %,$(BUILD)/tests/bench/bench-%,lib ids load \
	$(if $(filter x86_64,$(shell uname -m)),free))
sink_bench_programs := $(patsubst %.c,$(BUILD)/%,$(sink_bench_src))
bench_obj := $(call obj,$(filter-out $(sink_bench_src),$(wildcard tests/bench/*.c)))
$(bench_obj): flags = $(public_flags) -D_GNU_SOURCE -iquote . -Itests/bench
$(bench_obj): common = $(warnings)
$(bench_obj): warnings_c =
$(bench_obj): | include
$(call obj,tests/bench/bench-lib.c): flags += $(steady)
$(bench_programs): $(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.c.o $(lib) $(provider)
	@mkdir -p $(@D)
	$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(link_lib) $(bench_libs)
$(BUILD)/tests/bench/bench-lib: $(call obj,tests/bench/batch.c tests/bench/anchor_events.c \
	$(addprefix libblkin/base/,thread.c clock.c) tracepoints/format/digits.c)
$(BUILD)/tests/bench/bench-lib: bench_libs = $(call pkg_libs,lttng-ust)

# an anchor: the library without usage
without := $(BUILD)/tests/bench/without/$(notdir $(lib))
$(call obj,tests/bench/without/blkin.c): flags = $(internal) $(steady)
$(without): $(call obj,tests/bench/without/blkin.c $(filter-out libblkin/blkin.c,$(lib_src))) libblkin/libblkin.map
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -Wl,-soname,$(@F) -Wl,--version-script,libblkin/libblkin.map \
		-o $@ $(filter %.o,$^) $(LDLIBS)
	@ln -sf ../../../lib/$(notdir $(provider)) $(@D)
$(bench_programs): | $(without)

$(sink_bench_programs): $(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.c.o \
		$(call obj,$(core_src) $(analysis_src) $(output_src))
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(call pkg_libs,$(plugin_pkgs)) -lm

# what the application benchmark compares the nbdkit filter with: the same without tracing
disabled_filter := $(if $(nbdkit_filter),$(BUILD)/tests/bench/nbdkit-disabled-filter.so)
disabled_obj := $(patsubst %,$(BUILD)/obj/disabled/%.o,$(nbdkit_src))
$(disabled_obj): flags = $(public_flags) -D_GNU_SOURCE -DBLKIN_DISABLE $(call pkg_cflags,nbdkit)
$(disabled_obj): $(BUILD)/obj/disabled/%.c.o: %.c Makefile | include
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cppflags) $(cflags) $(flags) -c -o $@ $<
$(BUILD)/tests/bench/nbdkit-disabled-filter.so: $(disabled_obj) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(link_filter) -Wl,-rpath,'$(built)/lib'

# a source of events for measuring memory
bench_source := $(BUILD)/tests/bench/plugins/babeltrace-plugin-bench.so
$(call obj,tests/bench/source/plugin.c): flags = $(call pkg_cflags,babeltrace2)
$(bench_source): $(call obj,tests/bench/source/plugin.c)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -o $@ $^ $(call pkg_libs,babeltrace2) $(LDLIBS)

# What a make that is killed has started ends with it.
mortal = exec setpriv --pdeathsig TERM

# "make check" and its like build on all processors, unless -j says otherwise
parallel = $(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

# what a user types does all its own set-up
demo: ## run the example storage stack and show its trace in Zipkin; FAULT=slow-journal: find it; RECORD=1: recorder; SCALE=1: cluster; SERVERS=1: servers as they are
	@scripts/deps --install demo
	@$(MAKE) --no-print-directory all $(if $(SCALE),$(kafka_tests))
	@$(mortal) env FAULT='$(FAULT)' RECORD='$(RECORD)' SCALE='$(SCALE)' SERVERS='$(SERVERS)' scripts/demo

check: ## run all tests (sets itself up)
	@scripts/deps --install
	@scripts/fetch-zipkin >/dev/null
	@scripts/fetch-servers redis-server redis-tools nginx >/dev/null || : # their test is skipped without
	+@$(parallel) all tests
	@$(mortal) scripts/isolate tests/run $(TESTS)

.PHONY: tests
tests: $(test_programs) $(tool_tests) $(rotate_writers) $(record_load) $(kafka_tests) $(scale_load) $(starved_plugin) $(bench_programs) $(sink_bench_programs) \
		$(bench_source) $(disabled_filter) ## build the test programs
TESTS ?= $(unit_tests) $(script_tests)

.PHONY: bench bench-ids bench-kafka bench-otel bench-app bench-record bench-zero bench-scale bench-sink bench-memory bench-day bench-overload bench-work
bench: ## measure what tracing costs: prints a table, writes build/bench.json and doc/performance.md
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@$(PYTHON) tests/bench/bench lib sink live

bench-sink: ## the sink's part of it only
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@$(PYTHON) tests/bench/bench sink live

bench-kafka: ## what sending to a broker costs the sink
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(sink_bench_programs) $(kafka_tests)
	@$(PYTHON) tests/bench/bench kafka

bench-memory: ## measure the sink's memory over 10^8 events: takes some minutes
	@$(MAKE) --no-print-directory all $(sink_bench_programs) $(bench_source)
	@$(PYTHON) tests/bench/bench memory

bench-day: ## run `blkin rotate` and `blkin live` for 10^8 events each: does anything grow? half an hour
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@$(PYTHON) tests/bench/bench day

RUNS ?= 50
bench-overload: ## overload the sink RUNS times: is every span delivered or counted? takes some minutes
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs)
	@RUNS=$(RUNS) $(PYTHON) tests/bench/bench overload

bench-record: ## measure the recorder: nbdkit's cost, then four hosts: an hour (less: HOSTS_PARTS=planted PLANTED=100)
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(bench_programs) $(sink_bench_programs) $(record_load)
	@BENCH_NBD='$(BENCH_NBD)' $(PYTHON) tests/bench/bench nbd
	@$(PYTHON) tests/bench/bench hosts

bench-scale: ## workers of a cluster: their rate, a day, 60 runs with kills: an hour and a half (less: SCALE_PARTS=rate)
	@scripts/deps --install
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(scale_load) $(kafka_tests)
	@SCALE_PARTS='$(SCALE_PARTS)' $(PYTHON) tests/bench/bench scale

.PHONY: bench-fleet
bench-fleet: ## metrics of 3 to 1000 hosts through Kafka: packets and bytes; 50 runs with kills: 40 minutes (less: RUNS=4 NODES='3 30')
	@scripts/deps --install
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(BUILD)/tests/work/nodes $(kafka_tests)
	@$(PYTHON) tests/bench/bench fleet

.PHONY: bench-sysprof
bench-sysprof: ## servers that nobody instrumented: where time goes, with pictures, three hosts, the dispatcher: ten minutes
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tests/bench/bench sysprof three-hosts dispatch

.PHONY: bench-host-cost
bench-host-cost: ## what `blkin host` takes from busy servers: 20 minutes (less: BENCH_HOST_COST='--rounds 2')
	@$(MAKE) --no-print-directory all $(BUILD)/tests/host/sample-cost
	@BENCH_HOST_COST='$(BENCH_HOST_COST)' $(PYTHON) tests/bench/bench host-cost

bench-zero: ## what `blkin run` costs redis, nginx and nbdkit: half an hour (less: BENCH_ZERO='--rounds 2')
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@BENCH_ZERO='$(BENCH_ZERO)' $(PYTHON) tests/bench/bench zero

.PHONY: bench-host
bench-host: ## what `blkin host` reads and what that costs, beside node_exporter and sysstat: three minutes
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(BUILD)/tests/host/sample-cost
	@$(PYTHON) tests/bench/bench host

bench-work: ## what a span costs a worker, beside an OpenTelemetry collector (built with go): ten minutes (less: RUNS=1 SPANS=1000000)
	@scripts/deps --install
	@scripts/fetch-kafka >/dev/null
	@$(MAKE) --no-print-directory all $(scale_load) $(kafka_tests) $(stage_bench)
	@$(PYTHON) tests/bench/bench work

bench-ids: ## look for a duplicate in 10^9 ids: takes minutes, and 9 GB of memory
	@$(MAKE) --no-print-directory all $(bench_programs)
	@$(PYTHON) tests/bench/bench ids

bench-otel: ## measure the span API beside OpenTelemetry's SDK for Go; needs go
	@$(MAKE) --no-print-directory all $(bench_programs)
	@$(PYTHON) tests/bench/bench otel

bench-app: ## measure what tracing costs nbdkit under fio: ten minutes (less: BENCH_APP='--pairs 3')
	@scripts/deps --install
	@$(MAKE) --no-print-directory all $(disabled_filter)
	@BENCH_APP='$(BENCH_APP)' $(PYTHON) tests/bench/bench app

WORLDS ?= bookworm trixie sid
check-fresh: ## what a new user does, on bare Debian systems (WORLDS), as root with debootstrap: half an hour
	@$(mortal) tests/check-fresh $(WORLDS)

MATRIX ?= --rounds 25
SERVICES ?=
check-servers: ## servers as Debian has them, under `blkin run`: each request counted, their own test suites: an hour
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@status=0; ($(mortal) tests/zero/matrix $(MATRIX)) || status=1; \
	($(mortal) tests/zero/matrix --connections 10000 --requests 20000 redis memcached nginx) || status=1; \
	($(mortal) tests/zero/sshd) || status=1; \
	($(mortal) tests/zero/services $(SERVICES)) || status=1; \
	($(mortal) tests/zero/suites $(SERVER_SUITES)) || status=1; exit $$status

check-asan: ## run the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	+@$(parallel) BUILD=build/asan SANITIZE=address,undefined build-unit-tests
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address,undefined run-unit-tests

# The library's threads meet under ThreadSanitizer in tests/libblkin/test-threads.sh; here is what the
# sink's do.
tsan_tests = $(filter %/test-account-parts %/test-starvation-http,$(unit_tests)) tests/plugin/test-away.py \
	tests/plugin/test-http.py tests/plugin/test-http-tls.py tests/plugin/test-spool.py tests/stat/test-tap.py
check-tsan: ## run the tests of the sink's threads under ThreadSanitizer
	+@$(parallel) BUILD=build/tsan SANITIZE=thread build-tsan-tests
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread run-tsan-tests

.PHONY: build-unit-tests build-tsan-tests run-unit-tests run-tsan-tests
build-unit-tests: $(unit_tests) $(plugin)
build-tsan-tests: $(filter $(BUILD)/%,$(tsan_tests)) $(BUILD)/tests/plugin/exporter-driver
run-unit-tests:
	@$(mortal) env LANES=$${LANES:-2} scripts/isolate tests/run $(unit_tests)
run-tsan-tests:
	@$(mortal) env LANES=$${LANES:-2} TSAN_OPTIONS=halt_on_error=1 scripts/isolate tests/run $(tsan_tests)

# libFuzzer, each target for FUZZ_RUNS executions; what it learns and finds stays in build/fuzz.
# A few of them only: FUZZERS=fuzz-json
FUZZ_CC ?= clang
FUZZ_RUNS ?= 500000
FUZZERS ?= $(notdir $(basename $(wildcard tests/fuzz/*.c)))
fuzzers := $(FUZZERS:%=$(BUILD)/fuzz/%)

# Comparisons are reported to libFuzzer in fuzz-context only: the others have the values that matter
# in tables of their own, and would spend half of their time on the reports.
fuzz_flags = -fno-sanitize-coverage=trace-cmp
$(BUILD)/fuzz/fuzz-context: fuzz_flags =
$(BUILD)/fuzz/fuzz-context: $(wildcard libblkin/context/*.c)
$(BUILD)/fuzz/fuzz-assembler $(BUILD)/fuzz/fuzz-checkpoint $(BUILD)/fuzz/fuzz-host $(BUILD)/fuzz/fuzz-packed: $(core_src) \
	babeltrace-plugin/analysis/host_view.c
$(BUILD)/fuzz/fuzz-checkpoint: $(wildcard babeltrace-plugin/checkpoint*.c)
$(BUILD)/fuzz/fuzz-checkpoint: fuzz_pkgs = liburcu zlib
# tables that are large so that hardly anything meets in them: small, so that things do meet, and
# because to zero 590 KiB would take most of the time
$(BUILD)/fuzz/fuzz-assembler $(BUILD)/fuzz/fuzz-checkpoint $(BUILD)/fuzz/fuzz-packed: fuzz_flags += -DRECENT_PLACES=16 -DRECENT_SHARED_PLACES=16 \
	-DSEQUENCE_PLACES=16 -DALIKE_MAX=4
# windows and tables that are small, so that their borders are met
$(BUILD)/fuzz/fuzz-alarm: $(addprefix tools/record/,alarm.c packets.c)
$(BUILD)/fuzz/fuzz-pick: $(addprefix tools/record/,packets.c pick.c ring.c)
$(BUILD)/fuzz/fuzz-alarm $(BUILD)/fuzz/fuzz-pick: tests/fuzz/ctf_streams.h $(wildcard tools/record/*.h)
$(BUILD)/fuzz/fuzz-alarm $(BUILD)/fuzz/fuzz-pick: fuzz_flags += -Itools -DWINDOW_BYTES=512 -DALARM_BYTES=256 \
	-DPROCESSES=8
protocol_src := $(patsubst %,babeltrace-plugin/output/%.c,json otlp protobuf protocol resource tag_keys utf8 zipkin_json)
$(BUILD)/fuzz/fuzz-json $(BUILD)/fuzz/fuzz-otlp: tests/fuzz/fuzz_span.h babeltrace-plugin/core/span.c $(protocol_src)
$(BUILD)/fuzz/fuzz-otlp: babeltrace-plugin/output/body.c
$(BUILD)/fuzz/fuzz-otlp: included = %/otlp.c
$(BUILD)/fuzz/fuzz-json: included = %/zipkin_json.c
$(BUILD)/fuzz/fuzz-json: fuzz_pkgs = jansson
$(BUILD)/fuzz/fuzz-config $(BUILD)/fuzz/fuzz-pushed: $(addprefix babeltrace-plugin/,params.c output/http_url.c output/kafka_url.c) $(protocol_src) \
	$(addprefix tools/config/,config.c file.c keys.c) tools/duration.c \
	babeltrace-plugin/analysis/host_view.c $(addprefix tools/host/,definitions.c filter_rule.c settings.c)
$(BUILD)/fuzz/fuzz-config $(BUILD)/fuzz/fuzz-pushed: included = %/config.c
$(BUILD)/fuzz/fuzz-config $(BUILD)/fuzz/fuzz-pushed: fuzz_flags += -Itools
$(BUILD)/fuzz/fuzz-config $(BUILD)/fuzz/fuzz-pushed: fuzz_pkgs = $(tool_pkgs)
$(BUILD)/fuzz/fuzz-pushed: tools/config/pushed.c
# the whole sink, in traces of its own
$(BUILD)/fuzz/fuzz-ctf: $(filter-out babeltrace-plugin/plugin.c,$(plugin_src))
$(BUILD)/fuzz/fuzz-ctf: fuzz_pkgs = $(plugin_pkgs)
$(BUILD)/fuzz/fuzz-decode: $(addprefix babeltrace-plugin/,decode.c streams.c only.c only_found.c \
	core/packed.c core/table.c)
$(BUILD)/fuzz/fuzz-decode: fuzz_pkgs = babeltrace2 liburcu
$(BUILD)/fuzz/fuzz-otlp-decode: $(core_src) babeltrace-plugin/analysis/host_view.c $(protocol_src) \
	$(addprefix babeltrace-plugin/output/,otlp_decode.c otlp_decode_span.c)
$(BUILD)/fuzz/fuzz-only: $(addprefix babeltrace-plugin/,only.c only_found.c core/table.c)
$(BUILD)/fuzz/fuzz-join: $(addprefix babeltrace-plugin/core/,join.c span.c table.c)
$(BUILD)/fuzz/fuzz-only: fuzz_pkgs = jansson liburcu
$(BUILD)/fuzz/fuzz-tail $(BUILD)/fuzz/fuzz-trace-model: $(analysis_src) babeltrace-plugin/core/table.c
$(BUILD)/fuzz/fuzz-fleet: $(analysis_src) babeltrace-plugin/core/table.c tools/work/fleet_deltas.c \
	$(patsubst %,babeltrace-plugin/%.c,account/fleet_page account/host_board account/label) \
	$(patsubst %,babeltrace-plugin/output/%.c,json otlp_names otlp_points protobuf utf8)
$(BUILD)/fuzz/fuzz-fleet: fuzz_flags += -Itools
$(BUILD)/fuzz/fuzz-fleet: fuzz_pkgs = $(tool_pkgs)
$(BUILD)/fuzz/fuzz-message: $(patsubst %,tools/%.c,hub/board exchange/cap exchange/message exchange/seen)
$(BUILD)/fuzz/fuzz-message: fuzz_flags += -Itools
$(BUILD)/fuzz/fuzz-message: fuzz_pkgs = $(tool_pkgs)
# with a clock of the fuzzer's own
$(BUILD)/fuzz/fuzz-outbox: $(wildcard $(patsubst %,babeltrace-plugin/output/%.c,outbox queue batch))
$(BUILD)/fuzz/fuzz-outbox: fuzz_flags += -Dclock_gettime=fuzz_clock_gettime \
	-Dpthread_cond_wait=fuzz_cond_wait -Dpthread_cond_timedwait=fuzz_cond_timedwait
$(BUILD)/fuzz/fuzz-params: babeltrace-plugin/params.c babeltrace-plugin/output/kafka_url.c
$(BUILD)/fuzz/fuzz-params: fuzz_pkgs = babeltrace2
$(BUILD)/fuzz/fuzz-http-reply: babeltrace-plugin/output/http_reply.c $(protocol_src)
$(BUILD)/fuzz/fuzz-metrics-request: babeltrace-plugin/account/metrics_request.c
$(BUILD)/fuzz/fuzz-spool: $(patsubst %,babeltrace-plugin/output/%.c,spool_record body)
$(BUILD)/fuzz/fuzz-spool: fuzz_pkgs = liburcu zlib
fuzz_pkgs = liburcu
$(fuzzers): $(BUILD)/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.h tests/plugin/zipkin_rules.h \
		$(wildcard libblkin/*.h libblkin/*/*.h tracepoints/format/*.h babeltrace-plugin/*.h babeltrace-plugin/*/*.h) Makefile
	@mkdir -p $(@D)
	$(FUZZ_CC) -std=c11 $(warnings) -g -O2 $(internal) -Ibabeltrace-plugin -Itests/plugin \
		-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION \
		-fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		$(fuzz_flags) \
		$(call pkg_cflags,$(fuzz_pkgs)) -o $@ $(filter-out $(included),$(filter %.c,$^)) \
		$(call pkg_libs,$(fuzz_pkgs))

.PHONY: fuzz
fuzz: ## fuzz what reads untrusted input: FUZZ_RUNS executions each
	+@$(parallel) $(fuzzers)
	@tests/fuzz/run $(FUZZ_RUNS) $(fuzzers)

FOR ?= check
deps: ## install the packages that the tests need (Debian; else: list them); FOR=build or demo: fewer; FOR=deb or rpm: those to make packages
	@scripts/deps --install $(FOR)
	@[ $(FOR) != demo ] && [ $(FOR) != check ] || scripts/fetch-zipkin
	@[ $(FOR) != check ] || scripts/fetch-kafka

c_files := $(shell find libblkin tracepoints babeltrace-plugin tools examples tests \
	-name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp')
scripts := $(shell grep -lsE '^\#!.*\b(ba)?sh' scripts/* tests/* tests/*/* packaging/*/* .ci/run) \
	$(wildcard scripts/*.sh tests/*.sh packaging/completion/*)
python_files := $(wildcard tests/*.py tests/*/*.py tests/record/hosts/*.py scripts/*.py) scripts/reference
linted := $(filter libblkin/% tracepoints/% babeltrace-plugin/% tools/% examples/%,$(c_files))
linting = @printf '  LINT %s\n' $(1);
lint: include man ## check formatting, C, shell scripts, Python syntax and man pages
	$(call linting,clang-format)$(CLANG_FORMAT) --dry-run -Werror $(c_files)
	$(call linting,shellcheck)shellcheck -x -S warning $(sort $(scripts))
	$(call linting,python)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -c \
		"import ast, sys; [ast.parse(open(f).read(), f) for f in sys.argv[1:]]" $(python_files)
	$(call linting,cppcheck)cppcheck --quiet --enable=warning,performance,portability --std=c11 --error-exitcode=1 -j 2 \
		-D__x86_64__ -D__linux__ -D__LP64__ -D__GLIBC__ -D_GNU_SOURCE -UBLKIN_DISABLE -I. -Ilibblkin -Ibabeltrace-plugin \
		--suppress=pointerOutOfBoundsCond:tracepoints/format/put.h --suppress=internalAstError:libblkin/preload/wrap_poll.c --include=tests/cppcheck.h $(sort $(dir $(linted)))
	$(call linting,clang-tidy)printf '%s\n' $(filter %.c,$(linted)) | xargs -P 2 -n 8 sh -c \
		'clang-tidy --quiet "$$@" -- -std=c11 -D_GNU_SOURCE $(has_kafka) -DBLKIN_RELEASE=\"$(VERSION)\" -DPLUGIN_DIR=\"\" -DLIBRARY_DIR=\"\" -DPRELOAD_DIR=\"\" -iquote . -Ilibblkin $(public_flags) \
			-Ibabeltrace-plugin -Itracepoints -iquote tools $(call pkg_cflags,$(tool_pkgs) lttng-ust nbdkit) 2>/dev/null' clang-tidy
	$(call linting,mandoc)mandoc -T lint -W warning $(BUILD)/man/*.[0-9]

format: ## format the C and C++ files
	$(CLANG_FORMAT) -i $(c_files)

# ---------------------------------------------------------------------------------- install

install: all man $(preload:$(BUILD)/lib/%=$(BUILD)/install/%) $(nbdkit_filter:$(BUILD)/examples/%=$(BUILD)/install/%) ## install below DESTDIR: PREFIX, LIBDIR, INCLUDEDIR, MANDIR
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PRELOADDIR) $(DESTDIR)$(INCLUDEDIR)/blkin \
		$(DESTDIR)$(PLUGINDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(DOCDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 \
		$(DESTDIR)$(MANDIR)/man5
	$(INSTALL) -m 755 $(lib) $(provider) $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(BUILD)/install/$(notdir $(preload)) $(DESTDIR)$(PRELOADDIR)
	$(INSTALL) -m 644 $(lib_static) $(DESTDIR)$(LIBDIR)
	ln -sf $(notdir $(lib)) $(DESTDIR)$(LIBDIR)/libblkin.so
	$(INSTALL) -m 644 $(BUILD)/blkin.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(INSTALL) -m 644 $(headers) $(lttng_header) $(DESTDIR)$(INCLUDEDIR)/blkin
	$(INSTALL) -m 755 $(plugin) $(DESTDIR)$(PLUGINDIR)
	$(INSTALL) -m 755 $(tool) $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 644 $(BUILD)/man/*.3 $(DESTDIR)$(MANDIR)/man3
	$(INSTALL) -m 644 $(BUILD)/man/*.1 $(DESTDIR)$(MANDIR)/man1
	$(INSTALL) -m 644 $(BUILD)/man/*.5 $(DESTDIR)$(MANDIR)/man5
	$(INSTALL) -m 644 README.md LICENSE doc/host.md doc/library.md doc/recorder.md doc/scale.md doc/sink.md doc/zero-code.md $(DESTDIR)$(DOCDIR)
ifneq ($(nbdkit_filter),)
	$(INSTALL) -d $(DESTDIR)$(FILTERDIR)
	$(INSTALL) -m 755 $(BUILD)/install/nbdkit-blkin-filter.so $(DESTDIR)$(FILTERDIR)
endif
	@$(if $(DESTDIR),,$(refresh_ld_cache))

# so that programs find the library: the machine's cache if it is the machine's library
refresh_ld_cache = PATH="$$PATH:/usr/sbin:/sbin"; \
	$(if $(filter /usr /usr/local,$(PREFIX)),ldconfig 2>/dev/null;) \
	ldconfig -p | sed -n 's/.*$(notdir $(lib)) .*=> //p' | xargs -r readlink -f | \
		grep -qxF "$$(readlink -f $(LIBDIR)/$(notdir $(lib)))" || \
	echo 'Programs do not find $(LIBDIR)/$(notdir $(lib)) yet: run ldconfig as root, with $(LIBDIR)' \
		'named in /etc/ld.so.conf.d/, or link them with -Wl,-rpath,$(LIBDIR)'

uninstall: man ## remove what install has installed
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,$(notdir $(lib) $(provider) $(lib_static)) libblkin.so \
		pkgconfig/blkin.pc) $(DESTDIR)$(PLUGINDIR)/$(notdir $(plugin)) $(DESTDIR)$(BINDIR)/blkin \
		$(if $(nbdkit_filter),$(DESTDIR)$(FILTERDIR)/nbdkit-blkin-filter.so) $(DESTDIR)$(PRELOADDIR)/$(notdir $(preload))
	@rmdir $(DESTDIR)$(PRELOADDIR) 2>/dev/null || :
	@for page in $(BUILD)/man/*.[135]; do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done
	rm -rf $(DESTDIR)$(INCLUDEDIR)/blkin $(DESTDIR)$(DOCDIR)

include packaging/packaging.mk

clean: ## remove build/
	rm -rf $(BUILD)

help: ## list the targets
	@sed -n -e ':line' -e '/\\$$/{N;s/\\\n//;b line' -e '}' \
		-e 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile packaging/packaging.mk | expand -t 22

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
