# Pages: their tables, pictures and words, and the site.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: tables pictures
tables: $(tool) ## write the tables of the pages from the code
	scripts/tables

pictures: all ## take the screenshots of the README again: of a real trace, in Chromium
	tests/run tests/e2e/test-browser.sh
	cp $(BUILD)/tests/trace.png $(BUILD)/tests/trace-dark.png doc

.PHONY: compile_commands.json
compile_commands.json: include $(texts) ## what clangd and other editors read: how each file is compiled
	@$(MAKE) --always-make --dry-run --no-print-directory V=1 all tests 2>/dev/null | scripts/compile-commands >$@.new
	@mv $@.new $@

.PHONY: site
site: man ## build the pages, manual pages and API reference as HTML in build/site/html (make deps FOR=site)
	@scripts/deps --check site
	scripts/site $(BUILD)/man $(BUILD)/site
