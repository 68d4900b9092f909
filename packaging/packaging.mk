# Units, completion and configuration that make install installs; tarball and packages.
#
# SPDX-License-Identifier: BSD-2-Clause

# for PREFIX=/usr the folder that systemd names, else one below PREFIX
UNITDIR ?= $(or $(if $(filter /usr,$(PREFIX)),$(shell env -u PKG_CONFIG_SYSROOT_DIR $(PKG_CONFIG) \
	--variable=systemdsystemunitdir systemd 2>/dev/null)),$(PREFIX)/lib/systemd/system)
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),,$(PREFIX))/etc

units := $(notdir $(wildcard packaging/systemd/*.service))
# systemd before 254 does not know RestartSteps= and RestartMaxDelaySec=, and warns of them
backs_off = $(shell $(PKG_CONFIG) --atleast-version=254 systemd 2>/dev/null && echo yes)

.PHONY: units install-service uninstall-service
units: $(units:%=$(BUILD)/systemd/%)
# written by each make, because BINDIR may have changed
$(BUILD)/systemd/%.service: packaging/systemd/%.service FORCE
	@mkdir -p $(@D)
	@sed -e 's|@BINDIR@|$(BINDIR)|' $(if $(backs_off),,-e '/^Restart\(Steps\|MaxDelaySec\)=/d') $< > $@

install: install-service
install-service: units
	$(INSTALL) -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR) \
		$(DESTDIR)$(COMPLETIONDIR)
	$(INSTALL) -m 644 $(units:%=$(BUILD)/systemd/%) $(DESTDIR)$(UNITDIR)
	$(INSTALL) -m 644 packaging/systemd/blkin.sysusers $(DESTDIR)$(SYSUSERSDIR)/blkin.conf
	for name in blkin blkin-slow; do \
		$(INSTALL) -m 644 packaging/systemd/$$name.tmpfiles $(DESTDIR)$(TMPFILESDIR)/$$name.conf || exit; \
	done
	$(INSTALL) -m 644 packaging/completion/blkin $(DESTDIR)$(COMPLETIONDIR)
	@# an existing file belongs to the operator
	[ -e $(DESTDIR)$(SYSCONFDIR)/blkin/blkin.conf ] || \
		$(INSTALL) -D -m 644 packaging/blkin.conf $(DESTDIR)$(SYSCONFDIR)/blkin/blkin.conf

uninstall: uninstall-service
uninstall-service:
	rm -f $(units:%=$(DESTDIR)$(UNITDIR)/%) $(DESTDIR)$(SYSUSERSDIR)/blkin.conf \
		$(DESTDIR)$(TMPFILESDIR)/blkin.conf $(DESTDIR)$(TMPFILESDIR)/blkin-slow.conf \
		$(DESTDIR)$(COMPLETIONDIR)/blkin
	@cd $(DESTDIR)$(SYSCONFDIR)/blkin 2>/dev/null && cmp -s blkin.conf '$(SRC)/packaging/blkin.conf' && \
		rm blkin.conf && rmdir ../blkin || :

# ---------------------------------------------------------------------------------- packages

release := blkin-$(VERSION)
tarball := $(BUILD)/$(release).tar.xz
deb_version := $(shell sed -n '1s/.*(\(.*\)).*/\1/p' packaging/debian/changelog)
spec_version := $(shell sed -n 's/^Version: *//p' packaging/rpm/blkin.spec)

.PHONY: dist deb rpm check-packages
dist: ## make a tarball of this commit, the same each time
	@git -C '$(SRC)' rev-parse --verify -q HEAD >/dev/null && [ -e .git ] || \
		{ echo 'make dist: not a git checkout: only git knows the files of a release' >&2; exit 1; }
	@[ '$(deb_version)' != '$(deb_version:$(VERSION)-%=)' ] || \
		{ echo 'make dist: packaging/debian/changelog has $(deb_version), the headers have $(VERSION)' >&2; exit 1; }
	@[ '$(spec_version)' = '$(VERSION)' ] || \
		{ echo 'make dist: packaging/rpm/blkin.spec has $(spec_version), the headers have $(VERSION)' >&2; exit 1; }
	@git diff --quiet HEAD || echo 'make dist: the tarball lacks the changes that are not committed' >&2
	@mkdir -p $(dir $(tarball))
	@git archive --format=tar --prefix=$(release)/ HEAD >$(tarball).new && \
		xz -T1 -6 <$(tarball).new >$(tarball) && rm $(tarball).new
	@echo $(tarball)

# packages are built from the tarball that is released
unpack = rm -rf $(1) && mkdir -p $(1) && tar -xf $(tarball) -C $(1)
deb: ## build the Debian packages into build/deb; as root, it installs what the build needs
	@scripts/deps --install deb
	@$(MAKE) --no-print-directory dist
	@$(call unpack,$(BUILD)/deb)
	@cp $(tarball) $(BUILD)/deb/blkin_$(VERSION).orig.tar.xz
	@cp -r $(BUILD)/deb/$(release)/packaging/debian $(BUILD)/deb/$(release)/debian
	cd $(BUILD)/deb/$(release) && $(plain_make) dpkg-buildpackage -us -uc $(DEBFLAGS)
	@ls $(BUILD)/deb/*.deb

rpm: ## build the RPM packages into build/rpm; as root, it installs what the build needs
	@scripts/deps --install rpm
	@$(MAKE) --no-print-directory dist
	@rm -rf $(BUILD)/rpm
	$(plain_make) rpmbuild -ta --define '_topdir $(abspath $(BUILD))/rpm' $(RPMFLAGS) $(tarball)
	@find $(BUILD)/rpm -name '*.rpm'

# a make without the flags and variables of this one
plain_make = env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u SRC -u BUILD -u PYTHON

SUITES ?= bookworm trixie
check-packages: ## build the Debian packages on bare systems (SUITES), use, upgrade and purge them: as root, minutes
	@scripts/deps --install packages
	@$(mortal) tests/check-packages $(SUITES)
