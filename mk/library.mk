# libblkin, the LTTng provider, and the preload library.
#
# SPDX-License-Identifier: BSD-2-Clause

# On Intel processors up to 2020, a function of some ns takes half as long again if a branch lies on a boundary of 32 bytes.
# These flags keep branches off such boundaries. make tests once, at the first use, which flags the compiler has.
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

# removes the old archive first, because it may have members of sources that have moved
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

# The library that `blkin run` preloads into servers. It links libblkin, which the program may link, too, and has a copy of
# libblkin's code that watches a file. It is not fortified, because it defines functions that the fortified headers define.
# It needs -fexceptions, because threads are cancelled in the calls that it wraps.
preload_obj := $(call obj,$(preload_src) libblkin/policy/policy.c libblkin/base/debug.c)
$(call obj,$(preload_src)): flags = $(internal) $(steady) -U_FORTIFY_SOURCE -fexceptions
link_preload = $(CC) $(so_ldflags) $(dense) -Wl,-soname,$(@F) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblkin
$(preload): $(preload_obj) $(lib) | $(provider)
	@mkdir -p $(@D)
	$(call say,LD)$(link_preload) -Wl,-rpath,'$$ORIGIN' $(LDLIBS)
# the library as it is installed: linked each time, because LIBDIR may have changed
$(BUILD)/install/libblkin-preload.so: $(preload_obj) $(lib) FORCE
	@mkdir -p $(@D)
	$(call say,LD)$(link_preload) $(if $(filter /usr,$(PREFIX)),,-Wl,-rpath,$(LIBDIR)) $(LDLIBS)
