# Man pages; what make install puts in place.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: man api
# `make api` and `make man` document these headers; blkin_inline.h is private
documented := libblkin/blkin.h $(filter-out %/blkin.h %/blkin_inline.h,$(headers))

api: ## write doc/api.html from the headers
	$(PYTHON) scripts/reference --html $(documented) >doc/api.html.new && mv doc/api.html.new doc/api.html

man_table = BUILD='$(BUILD)' $(PYTHON) scripts/tables --man=
man: $(BUILD)/man/made ## make the man pages: of the command, the headers and each function
$(BUILD)/man/made: scripts/reference scripts/tables tools/base/messages.def tools/config/texts.def $(headers) $(man_pages) Makefile mk/install.mk $(tool)
	@rm -rf $(@D)
	$(PYTHON) scripts/reference $(VERSION) $(RELEASED) $(@D) $(documented)
	@for page in $(man_pages); do \
		sed -e 's/@VERSION@/$(VERSION)/; s/@RELEASED@/$(RELEASED)/' \
			-e "s|^@MESSAGES@|$(man_table)messages|e" -e "s|^@METRICS@|$(man_table)metrics|e" \
			-e "s|^@KEYS \([a-z]*\)@|$(man_table)\1|e" $$page >$(@D)/$${page##*/}; done
	@touch $@

# the pages for users; design.md and words.md are for contributors
installed_docs := $(filter-out doc/design.md doc/words.md,$(wildcard doc/*.md)) packaging/prometheus/blkin.rules.yml \
	$(wildcard packaging/grafana/*.json packaging/mosquitto/*)
install: all man $(preload:$(BUILD)/lib/%=$(BUILD)/install/%) $(nbdkit_filter:$(BUILD)/examples/%=$(BUILD)/install/%) ## install below DESTDIR: PREFIX, LIBDIR, INCLUDEDIR, MANDIR
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PRELOADDIR) $(DESTDIR)$(INCLUDEDIR)/blkin \
		$(DESTDIR)$(PLUGINDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(DOCDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 \
		$(DESTDIR)$(MANDIR)/man5 $(DESTDIR)$(RULESDIR)
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
	$(INSTALL) -m 644 README.md LICENSE $(installed_docs) $(DESTDIR)$(DOCDIR)
	$(INSTALL) -m 644 rules/*.rules $(DESTDIR)$(RULESDIR)
ifneq ($(nbdkit_filter),)
	$(INSTALL) -d $(DESTDIR)$(FILTERDIR)
	$(INSTALL) -m 755 $(BUILD)/install/nbdkit-blkin-filter.so $(DESTDIR)$(FILTERDIR)
endif
	@$(if $(DESTDIR),,$(check_ld_cache))

# runs ldconfig if PREFIX is /usr or /usr/local; prints advice if the loader does not find the library
check_ld_cache = PATH="$$PATH:/usr/sbin:/sbin"; \
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
	rm -rf $(DESTDIR)$(INCLUDEDIR)/blkin $(DESTDIR)$(DOCDIR) $(DESTDIR)$(RULESDIR)
	@rmdir $(DESTDIR)$(dir $(RULESDIR)) 2>/dev/null || :
