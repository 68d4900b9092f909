# BlkKin: everything is built into build/. "make help" lists the targets.
#
# SPDX-License-Identifier: BSD-2-Clause

# the version in the headers, such as 0.9.0
VERSION := $(shell printf '%s.%s.%s' $$(sed -n 's/^.define BLKIN_VERSION_[MP][A-Z]* //p' libblkin/blkin_base.h))
RELEASED := 2026-11-21
SO_VERSION := 1

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
DOCDIR ?= $(PREFIX)/share/doc/blkin
RULESDIR ?= $(PREFIX)/share/blkin/rules
MANDIR ?= $(PREFIX)/share/man
# the folder of libblkin-preload.so, which is preloaded by its path: no linker looks there
PRELOADDIR ?= $(LIBDIR)/blkin
# The folder where nbdkit looks for filters; below a PREFIX that is not the system's, the folder of an nbdkit with that PREFIX.
# A path of the machine that runs nbdkit: without the sysroot that pkg-config may put before it.
FILTERDIR ?= $(shell env -u PKG_CONFIG_SYSROOT_DIR $(PKG_CONFIG) --variable=filterdir \
	$(if $(filter-out /usr /usr/local,$(PREFIX)),--define-variable=prefix=$(PREFIX)) nbdkit)
# the folder where babeltrace2 looks for plugins, found in the same way
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
# The paths of targets are relative, because the path of the checkout may have a blank in it.
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
internal = -D_GNU_SOURCE -DBLKIN_RELEASE='"$(VERSION)"' -iquote . -iquote $(BUILD)/texts -Ilibblkin
common = $(warnings) $(if $(SANITIZE),-fPIC,$(hardening)) $(sanitizers) -fvisibility=hidden
cflags = -std=c11 $(common) $(warnings_c) $(CFLAGS)
cxxflags = -std=c++11 $(common) $(CXXFLAGS)
ldflags = -Wl,-z,relro,-z,now -Wl,--as-needed $(sanitizers) $(LDFLAGS)
so_ldflags = $(ldflags) -shared $(if $(SANITIZE),,-Wl,-z,defs)

# pkg-config runs only when a rule needs these, so that "make deps" works without pkg-config
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
	blkin_context.h blkin_inline.h)
# as the original installs it: for programs that record its events by LTTng's own macros
lttng_header := tracepoints/zipkin_trace.h

lib_src := $(filter-out libblkin/preload/%,$(wildcard libblkin/*.c libblkin/*/*.c)) \
	$(wildcard tracepoints/format/*.c)
provider_src := $(wildcard tracepoints/*.c)
preload_src := $(wildcard libblkin/preload/*.c)
man_pages := $(wildcard tools/*.1 tools/*/*.[15])
example_programs := client gateway mapper store
example_common := $(filter-out $(example_programs:%=examples/%.c) examples/hello.c,$(wildcard examples/*.c))
examples := $(example_programs:%=$(BUILD)/examples/%)
nbdkit_src := $(wildcard examples/nbdkit-filter/*.c)
# optional: without nbdkit, all other targets are built
nbdkit_filter := $(if $(shell $(PKG_CONFIG) --exists nbdkit 2>/dev/null && echo yes), \
	$(BUILD)/examples/nbdkit-blkin-filter.so)
test_programs := $(patsubst %,$(BUILD)/%, \
	$(basename $(wildcard tests/libblkin/*.c tests/plugin/*.c tests/preload/*.c tests/libblkin-ring/*.c tests/otlp/*.c tests/host/*.c tests/agent/*.c tests/rings/*.c \
	tests/service/*.c tests/work/*.c)))
unit_tests := $(foreach program,$(test_programs), \
	$(if $(filter test-%,$(notdir $(program))),$(program))) $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/*.c))
script_tests := $(wildcard tests/*/test-*.sh tests/*/test-*.py)

# optional, too: librdkafka, which only users of Kafka need
kafka_pkg := $(shell $(PKG_CONFIG) --exists rdkafka 2>/dev/null && echo rdkafka)
# optional, too: libmosquitto, which only a cluster of several hosts needs
mosquitto_pkg := $(shell $(PKG_CONFIG) --exists libmosquitto 2>/dev/null && echo libmosquitto)
has_optional := $(if $(kafka_pkg),-DHAS_KAFKA) $(if $(mosquitto_pkg),-DHAS_MOSQUITTO)
plugin_pkgs := babeltrace2 libcurl jansson libmicrohttpd liburcu libzstd libdeflate zlib $(kafka_pkg)
tool_pkgs := $(plugin_pkgs) gnutls lttng-ctl $(mosquitto_pkg)

comma := ,
makefiles := Makefile $(wildcard mk/*.mk)
obj = $(patsubst %,$(BUILD)/obj/%.o,$(1))

.PHONY: all deps demo check check-servers check-asan check-unit check-odd check-fresh check-tsan install uninstall lint format clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(lib) $(lib_static) $(provider) $(preload) $(plugin) $(tool) $(examples) \
	$(or $(nbdkit_filter),no-nbdkit) include pc ## build all

$(BUILD)/deps.ok: scripts/deps
	@scripts/deps --check build
	@mkdir -p $(@D) && touch $@

$(BUILD)/obj/%.c.o: %.c $(makefiles) | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cppflags) $(cflags) $(flags) -c -o $@ $<

$(BUILD)/obj/%.cpp.o: %.cpp $(makefiles) | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,C++)$(CXX) $(cppflags) $(cxxflags) $(flags) -c -o $@ $<

include mk/library.mk mk/rooms.mk mk/examples.mk

# the headers as they are installed: <zipkin_c.h> and <blkin/zipkin_c.h>
.PHONY: include pc FORCE
include: $(patsubst %,$(BUILD)/include/blkin/%,$(notdir $(headers) $(lttng_header)))
$(BUILD)/include/blkin/%: libblkin/%
	@mkdir -p $(@D)
	@ln -sf '$(SRC)/$<' $@
$(BUILD)/include/blkin/%: tracepoints/%
	@mkdir -p $(@D)
	@ln -sf '$(SRC)/$<' $@

pc: $(BUILD)/blkin.pc
# written each time, because PREFIX may have changed since the last make
$(BUILD)/blkin.pc: libblkin/blkin.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@

include mk/tests.mk mk/bench.mk mk/fuzz.mk mk/lint.mk mk/install.mk mk/doc.mk packaging/packaging.mk

# A command that make has started ends with make, even if make is killed.
mortal = exec setpriv --pdeathsig TERM

# "make check" and similar targets build on all processors, unless make has the option -j
parallel = $(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

# the targets that users type install the packages that they need
demo: ## run the example storage stack and show its trace in Zipkin; FAULT=slow-journal: find it; AGENT=1: the slow ones only; SCALE=1: Kafka and workers; SERVERS=1: servers as they are
	@scripts/deps --install demo
	@$(MAKE) --no-print-directory all
	@$(mortal) env FAULT='$(FAULT)' AGENT='$(AGENT)' SCALE='$(SCALE)' SERVERS='$(SERVERS)' scripts/demo

check: ## run all tests (sets itself up)
	@scripts/deps --install
	@scripts/fetch-zipkin >/dev/null
	@scripts/fetch-servers redis-server redis-tools nginx >/dev/null || : # their test is skipped without
	+@$(parallel) all tests
	@$(mortal) scripts/isolate tests/run $(TESTS)

.PHONY: tests
tests: $(test_programs) $(fuzz_tests) $(tool_tests) $(load_writers) $(agent_load) $(scale_load) $(starved_plugin) $(format_sink) $(made_traces) $(bench_programs) $(sink_bench_programs) \
		$(bench_source) ## build the test programs
TESTS ?= $(unit_tests) $(script_tests)

WORLDS ?= bookworm trixie sid
check-fresh: ## what a new user does, on bare Debian systems (WORLDS), as root with debootstrap: half an hour
	@$(mortal) tests/check-fresh $(WORLDS)

MATRIX ?= --rounds 25
SERVICES ?=
check-servers: ## servers as Debian has them, under `blkin run`: each request counted: half an hour
	@scripts/deps --install
	@$(MAKE) --no-print-directory all
	@status=0; ($(mortal) tests/zero/matrix $(MATRIX)) || status=1; \
	($(mortal) tests/zero/matrix --connections 10000 --requests 20000 redis memcached nginx) || status=1; \
	($(mortal) env SRC='$(CURDIR)' BUILD='$(abspath $(BUILD))' scripts/isolate bash tests/zero/joined-servers.sh) || status=1; \
	($(mortal) tests/zero/services $(SERVICES)) || status=1; exit $$status

check-unit: ## run the unit tests: C, no daemon
	+@$(parallel) build-unit-tests
	@$(MAKE) --no-print-directory run-unit-tests

check-odd: ## run the unit tests and two end-to-end tests in odd surroundings: locale, time zone, umask, user, no /dev/shm, a blank in a path
	+@$(parallel) build-unit-tests all $(agent_load)
	@$(mortal) env BUILD='$(BUILD)' tests/odd $(unit_tests) tests/agent/test-slow.sh tests/e2e/test-stack.sh

# For each room, the end-to-end tests that run most of its code. babeltrace2, which loads the plugin, is Debian's: it gets
# the sanitizer preloaded. A report goes to a file, also from a process whose exit status nobody reads. Only unit tests look
# for leaks.
asan_tests := $(addprefix tests/,agent/test-slow.sh agent/test-otlp.sh live/test-live.sh agent/test-all.sh \
	otlp/test-as-it-came.py otlp/test-receive.py work/test-work.py)
asan_programs = all $(agent_load) $(load_writers) $(scale_load) \
	$(BUILD)/tests/libblkin/wanders
check-asan: ## run the unit tests, and end-to-end tests of each room, under AddressSanitizer and UndefinedBehaviorSanitizer
	+@$(parallel) BUILD=build/asan SANITIZE=address,undefined build-unit-tests build-asan-tests
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address,undefined run-unit-tests run-asan-tests

# Tests of the sink's threads. tests/libblkin/test-threads.sh runs the library's threads under ThreadSanitizer.
tsan_tests = $(filter %/test-account-parts %/test-starvation-http,$(unit_tests)) tests/plugin/test-away.py \
	tests/plugin/test-http.py tests/plugin/test-http-tls.py tests/plugin/test-spool.py tests/plugin/test-spool-bounds.py
check-tsan: ## run the tests of the sink's threads under ThreadSanitizer
	+@$(parallel) BUILD=build/tsan SANITIZE=thread build-tsan-tests
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread run-tsan-tests

.PHONY: build-unit-tests build-asan-tests build-tsan-tests run-unit-tests run-asan-tests run-tsan-tests
build-unit-tests: $(unit_tests) $(plugin)
build-asan-tests: $(asan_programs)
build-tsan-tests: $(filter $(BUILD)/%,$(tsan_tests)) $(BUILD)/tests/plugin/exporter-driver
run-unit-tests:
	@$(mortal) env LANES=$${LANES:-2} scripts/isolate tests/run $(unit_tests)
run-asan-tests: asan = $(built)/tests/asan
run-asan-tests:
	@rm -rf '$(asan)' && mkdir -p '$(asan)/bin' '$(asan)/reports'
	@printf '#!/bin/sh\nLD_PRELOAD=%s exec %s "$$@"\n' "$$($(CC) -print-file-name=libasan.so)" \
		"$$(command -v babeltrace2)" >'$(asan)/bin/babeltrace2' && chmod +x '$(asan)/bin/babeltrace2'
	@status=0; ($(mortal) env LANES=$${LANES:-2} PATH='$(asan)/bin':"$$PATH" UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0:quarantine_size_mb=16:log_path='$(asan)/reports/asan'" \
		scripts/isolate tests/run $(asan_tests)) || status=1; \
	! cat '$(asan)'/reports/* 2>/dev/null || status=1; exit $$status
run-tsan-tests:
	@$(mortal) env LANES=$${LANES:-2} TSAN_OPTIONS=halt_on_error=1 scripts/isolate tests/run $(tsan_tests)

# counts of a test that is killed are lost; threads count atomically
coverage_build = BUILD=build/coverage CFLAGS='-O1 -g --coverage -fprofile-update=atomic' LDFLAGS=--coverage
.PHONY: coverage
coverage: ## lines and branches that the unit tests run, by room
	+@$(parallel) $(coverage_build) build-unit-tests
	@$(mortal) env BUILD=build/coverage $(PYTHON) scripts/unit_coverage.py

FOR ?= check
deps: ## install the packages that the tests need (Debian; else: list them); FOR=build or demo: fewer; FOR=deb or rpm: those to make packages
	@scripts/deps --install $(FOR)
	@[ $(FOR) != demo ] && [ $(FOR) != check ] || scripts/fetch-zipkin
	@[ $(FOR) != check ] || scripts/fetch-kafka

clean: ## remove build/
	rm -rf $(BUILD)

help: ## list the targets
	@sed -n -e ':line' -e '/\\$$/{N;s/\\\n//;b line' -e '}' \
		-e 's/^\([a-z_.-]*\):.*## \(.*\)/  make \1\t\2/p' $(filter-out %.d,$(MAKEFILE_LIST)) | expand -t 22

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
