# The plugin and the command. A room (see scripts/rooms) is an archive, $(BUILD)/rooms/FOLDER.a.
#
# SPDX-License-Identifier: BSD-2-Clause

# Each room stands before the rooms that it uses, in the linker's order. A cycle would not link.
plugin_rooms := babeltrace-plugin $(addprefix babeltrace-plugin/, \
	decode account rules stages deliver encode hosts model spans base)
tool_rooms := $(addprefix tools/,doctor work agent sampler live rules run keep report graph stat show ask \
	reader rings trace merged otlp cluster kafka config lttng base)

archive = $(patsubst %,$(BUILD)/rooms/%.a,$(1))
plugin_archives := $(call archive,$(plugin_rooms))
tool_archives := $(call archive,$(tool_rooms))

# Workers and their root are built only if librdkafka is there.
kafka_src := tools/kafka/topic.c $(patsubst %,tools/work/%.c,group input root root_deltas transaction worker)
# Only the plugin has plugin.c, which babeltrace2 looks for. Tests and the command link all other files.
room_src = $(filter-out babeltrace-plugin/plugin.c $(if $(kafka_pkg),,$(kafka_src)),$(wildcard $(1)/*.c))
define room_rule
$(call archive,$(1)): $(call obj,$(call room_src,$(1)))
endef
$(foreach room,$(plugin_rooms) $(tool_rooms),$(eval $(call room_rule,$(room))))
$(plugin_archives) $(tool_archives):
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# -fno-plt: every field of an event is two calls into libbabeltrace2. -fno-tree-slp-vectorize: two words that were just
# written one after the other are read in that way, too. A load of both words at once would wait for the stores.
plugin_src := $(wildcard babeltrace-plugin/*.c babeltrace-plugin/*/*.c)
$(call obj,$(plugin_src)): flags = $(internal) -DRULES_DIR='"$(RULESDIR)"' $(has_optional) $(steady) -fno-plt -fno-tree-slp-vectorize $(call pkg_cflags,$(plugin_pkgs))
plugin_parts := $(call obj,babeltrace-plugin/plugin.c) $(plugin_archives)
$(plugin): $(plugin_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(so_ldflags) -o $@ $^ $(call pkg_libs,$(plugin_pkgs)) -lm $(LDLIBS)

# Texts that sources include as strings, such as tools/graph/usage.txt as "tools/graph/usage.txt.inc".
texts := $(patsubst %,$(BUILD)/texts/%.inc,$(wildcard tools/*/*.txt tools/*/*.css))
$(BUILD)/texts/%.inc: % mk/rooms.mk
	@mkdir -p $(@D)
	@sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< >$@

# The help of the sink has the texts of its parameters.
plugin_help := $(BUILD)/texts/babeltrace-plugin/help.inc
$(plugin_help): scripts/tables babeltrace-plugin/params.c tools/config/texts.def
	@mkdir -p $(@D)
	@$(PYTHON) scripts/tables --plugin-help >$@.new && mv $@.new $@
$(call obj,babeltrace-plugin/plugin.c): | $(plugin_help)
texts += $(plugin_help)

# The command links the rooms of the plugin that it uses, among them the sink, and libblkin for the sampler.
tool_src := $(wildcard tools/*.c tools/*/*.c) libblkin/preload/config_text.c
tool_libs = $(call pkg_libs,$(tool_pkgs)) -lm
tool_parts := $(tool_archives) $(call obj,libblkin/preload/config_text.c) $(plugin_archives) $(lib_static)
$(call obj,$(tool_src)): | $(texts)
$(call obj,$(tool_src)): flags = $(internal) $(has_optional) -DPLUGIN_DIR='"$(PLUGINDIR)"' -DLIBRARY_DIR='"$(LIBDIR)"' \
	-DPRELOAD_DIR='"$(PRELOADDIR)"' $(call pkg_cflags,$(tool_pkgs)) \
	$(if $(shell $(PKG_CONFIG) --atleast-version=2.16 lttng-ctl && echo yes),-DLTTNG_HAS_TRACE_FORMATS)
$(tool): $(call obj,tools/blkin.c) $(tool_parts)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(ldflags) -o $@ $^ -pthread $(tool_libs) $(LDLIBS)
