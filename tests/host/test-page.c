/*
 * doc/host.md has each metric with its unit, kind and source, and each view.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "analysis/host_view.h"
#include "check.h"
#include "host/sample.h"

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

int main(void)
{
    const struct host_view *views;
    size_t count;
    char text[512];

    read_page();
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        const struct host_definition *definition = host_definition(kind);

        for (size_t i = 0; i < definition->count; i++) {
            const struct host_metric *metric = &definition->metrics[i];

            snprintf(text, sizeof(text), "\n| `%s` | %s | %s | %s |\n", metric->name, metric->unit,
                     metric->is_counter ? "counter" : "gauge", metric->source);
            check_has(text);
        }
    }
    views = host_views(&count);
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "\n| `%s.%s` | ", views[i].group, views[i].name);
        check_has(text);
    }
    return check_status();
}
