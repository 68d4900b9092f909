/*
 * doc/host.md has each view, and its example of filters is valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/hosts/host_view.h"
#include "check.h"
#include "tools/sampler/filter.h"

#include <stdlib.h>

static char page[256 * 1024];

static void read_page(void)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/doc/host.md", getenv("SRC") ? getenv("SRC") : ".");
    file = fopen(path, "r");
    CHECK(file != NULL);
    if (file) {
        page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
        fclose(file);
    }
}

static void check_has(const char *text)
{
    if (!strstr(page, text)) {
        fprintf(stderr, "doc/host.md does not have: %s\n", text);
        check_failures++;
    }
}

static void check_example(void)
{
    static const char key[] = "\n    host-filters = ";
    struct host_rules rules;
    struct error error = {""};
    char text[512];
    const char *at = strstr(page, key);

    CHECK(at != NULL);
    if (!at)
        return;
    at += strlen(key);
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\n"), at);
    (void)host_rules_parse(&rules, text, &error);
    CHECK_TEXT(error.text, "");
    CHECK(rules.count == 4);
}

int main(void)
{
    const struct host_view *views;
    size_t count;
    char text[1024];

    read_page();
    check_example();
    views = host_views(&count);
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "`%s.%s`", views[i].group, views[i].name);
        check_has(text);
    }
    return check_status();
}
