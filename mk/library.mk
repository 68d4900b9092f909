# libblkin, the LTTng provider, and the preload library.
#
# SPDX-License-Identifier: BSD-2-Clause

# A function of some ns costs half as much again where a branch happens to lie on a boundary of 32
# bytes, on Intel processors up to 2020: keep them off it. Found out once, when needed.
steady = $(eval steady := -falign-functions=64 $(shell \
	for flag in -Wa,-mbranches-within-32B-boundaries -mbranches-within-32B-boundaries; do \
		$(CC) -Werror $$flag -c -x c /dev/null -o /dev/null 2>/dev/null && echo $$flag && break; \
	done))$(steady)

# each mapping, and each part of 64 KiB that is used, costs a server that forks for each connection
dense = -Wl,-z,noseparate-code

# libblkin: libc only; the provider is opened at run time
$(call obj,$(lib_src)): flags = $(internal) $(steady)
# the room metric is the command's alone
$(lib): $(call obj,$(filter-out libblkin/metric/%,$(lib_src))) libblkin/libblkin.map
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) $(dense) -Wl,-soname,$(@F) \
		-Wl,--version-script,libblkin/libblkin.map -o $@ $(filter %.o,$^) $(LDLIBS)
	@ln -sf $(@F) $(@D)/libblkin.so

# a new archive: one that is there may have members whose sources have moved
$(lib_static): $(call obj,$(lib_src))
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# LTTng reads a variable of a thread by a type that asks for more alignment than the variable has
$(call obj,$(provider_src)): sanitizers += $(if $(SANITIZE),-fno-sanitize=alignment)
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
link_preload = $(CC) $(so_ldflags) $(dense) -Wl,-soname,$(@F) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblkin
$(preload): $(preload_obj) $(lib) | $(provider)
	@mkdir -p $(@D)
	$(call say,LD)$(link_preload) -Wl,-rpath,'$$ORIGIN' $(LDLIBS)
# the same as it is installed: always anew, for LIBDIR may be another one
$(BUILD)/install/libblkin-preload.so: $(preload_obj) $(lib) FORCE
	@mkdir -p $(@D)
	$(call say,LD)$(link_preload) $(if $(filter /usr,$(PREFIX)),,-Wl,-rpath,$(LIBDIR)) $(LDLIBS)
