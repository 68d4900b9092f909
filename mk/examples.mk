# The example programs and the nbdkit filter.
#
# SPDX-License-Identifier: BSD-2-Clause

# programs that use the public headers see them as a user does
public_flags = -I$(BUILD)/include -I$(BUILD)/include/blkin -pthread
link_lib = -pthread -L$(BUILD)/lib -lblkin -Wl,-rpath,'$$ORIGIN/../lib:$(built)/lib'
example_obj := $(call obj,$(wildcard examples/*.c examples/*.cpp))
$(example_obj): flags = $(public_flags)
# without the provider beside libblkin, LTTng would silently record nothing of a program
$(example_obj): | include $(provider)
$(filter-out %/gateway,$(examples)): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.c.o \
		$(call obj,$(example_common)) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(link_lib)
$(filter %/gateway,$(examples)): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.cpp.o \
		$(call obj,$(example_common)) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(CXX) $(ldflags) -o $@ $(filter %.o,$^) $(link_lib)

# nbdkit itself has the functions that a filter calls: no -z defs
link_filter = $(CC) $(ldflags) -shared -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblkin
filter_obj := $(call obj,$(nbdkit_src))
$(filter_obj): flags = $(public_flags) -D_GNU_SOURCE $(call pkg_cflags,nbdkit)
$(filter_obj): | include $(provider)
$(BUILD)/examples/nbdkit-blkin-filter.so: $(filter_obj) $(lib)
	@mkdir -p $(@D)
	$(call say,LD)$(link_filter) -Wl,-rpath,'$$ORIGIN/../lib:$(built)/lib'
# the filter as it is installed: linked each time, because LIBDIR may have changed
$(BUILD)/install/nbdkit-blkin-filter.so: $(filter_obj) $(lib) FORCE
	@mkdir -p $(@D)
	$(call say,LD)$(link_filter) $(if $(filter /usr,$(PREFIX)),,-Wl,-rpath,$(LIBDIR))

.PHONY: no-nbdkit
no-nbdkit:
	@echo '  SKIP examples/nbdkit-blkin-filter.so: no nbdkit-filter.h (package nbdkit-plugin-dev)'
