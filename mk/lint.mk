# Format and static checks.
#
# SPDX-License-Identifier: BSD-2-Clause

c_files := $(shell find libblkin tracepoints babeltrace-plugin tools examples tests bench \
	-name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp')
scripts := $(shell grep -lsE '^\#!.*\b(ba)?sh' scripts/* bench/* tests/* tests/*/* packaging/*/* .ci/run) \
	$(wildcard scripts/*.sh bench/*.sh tests/*.sh packaging/completion/*)
python_files := $(wildcard bench/*.py examples/*/*.py tests/*.py tests/*/*.py tests/agent/hosts/*.py tests/agent/parts/*.py scripts/*.py) $(addprefix scripts/,compile-commands figures links messages mutate reference rooms tables twice words) bench/bench
linted := $(filter libblkin/% tracepoints/% babeltrace-plugin/% tools/% examples/%,$(c_files))
linting = @printf '  LINT %s\n' $(1);
lint: include man $(texts) $(tool) $(lib) $(provider) $(preload) $(plugin_archives) $(tool_archives) ## check formatting, which room uses which, C, shell scripts, Python syntax, pages and man pages
	$(call linting,clang-format)$(CLANG_FORMAT) --dry-run -Werror $(c_files)
	$(call linting,rooms)scripts/rooms --objects=$(BUILD)/obj
	$(call linting,symbols)scripts/symbols $(BUILD)/obj
	$(call linting,messages)scripts/messages
	$(call linting,figures)scripts/figures
	$(call linting,pages)scripts/tables --check && scripts/words && scripts/links
	$(call linting,shellcheck)shellcheck -x -S warning $(sort $(scripts))
	$(call linting,python)scripts/twice $(python_files)
	$(call linting,cppcheck)cppcheck --quiet --enable=warning,performance,portability --std=c11 --error-exitcode=1 -j 2 \
		-D__x86_64__ -D__linux__ -D__LP64__ -D__GLIBC__ -D_GNU_SOURCE -UBLKIN_DISABLE -I. -I$(BUILD)/texts -Ilibblkin \
		--suppress=pointerOutOfBoundsCond:tracepoints/format/put.h --suppress=internalAstError:libblkin/preload/wrap_poll.c --include=tests/cppcheck.h $(sort $(dir $(linted)))
	$(call linting,clang-tidy)printf '%s\n' $(filter %.c,$(linted)) | xargs -P 2 -n 8 sh -c \
		'clang-tidy --quiet "$$@" -- -std=c11 -D_GNU_SOURCE $(has_optional) -DBLKIN_RELEASE=\"$(VERSION)\" -DPLUGIN_DIR=\"\" -DRULES_DIR=\"\" -DLIBRARY_DIR=\"\" -DPRELOAD_DIR=\"\" -iquote . -iquote $(BUILD)/texts -Ilibblkin $(public_flags) \
			-Itracepoints $(call pkg_cflags,$(tool_pkgs) lttng-ust nbdkit) 2>/dev/null' clang-tidy
	$(call linting,mandoc)mandoc -T lint -W warning $(BUILD)/man/*.[0-9]

format: ## format the C and C++ files
	$(CLANG_FORMAT) -i $(c_files)
