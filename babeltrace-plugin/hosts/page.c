/*
 * The lines of a page, and their order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "page.h"

#include "babeltrace-plugin/base/array.h"

#include <inttypes.h>
#include <stdlib.h>

struct page_line {
    size_t at; /* in the text */
    const char *text;
    size_t name_length;
    enum page_type type;
    const char *help;
};

void page_begin(struct page *page, enum page_type type, const char *help, const char *name,
                const char *more)
{
    if (!ARRAY_FITS(page->lines, page->room, page->count)) {
        page->text.has_failed = true;
        return;
    }
    page->lines[page->count++] = (struct page_line){
        .at = page->text.buffer.length,
        .name_length = strlen(name) + strlen(more),
        .type = type,
        .help = help,
    };
    page->labels = 0;
    print(&page->text, "%s%s{", name, more);
}

void page_label(struct page *page, const char *key, struct text value)
{
    if (page->labels++)
        print_string(&page->text, ",");
    print_label(&page->text, key, value);
}

void page_end(struct page *page, double value)
{
    print(&page->text, "} %.15g\n", value);
    print_text(&page->text, "", 1);
}

void page_end_whole(struct page *page, uint64_t value, double scale)
{
    if (scale != 1) {
        page_end(page, (double)value * scale);
        return;
    }
    print(&page->text, "} %" PRIu64 "\n", value);
    print_text(&page->text, "", 1);
}

static int page_compare(const void *one, const void *other)
{
    const struct page_line *a = one, *b = other;

    return strcmp(a->text, b->text);
}

static bool page_is_same(const struct page_line *a, const struct page_line *b)
{
    return a->name_length == b->name_length && memcmp(a->text, b->text, a->name_length) == 0;
}

/* A name's first line is its head's. */
static void page_print_sorted(const struct page *page, struct printer *to)
{
    const struct page_line *head = NULL;

    for (size_t i = 0; i < page->count; i++) {
        const struct page_line *line = &page->lines[i];

        if (!head || !page_is_same(head, line)) {
            const int length = (int)line->name_length;

            head = line;
            print(to, "# HELP %.*s %s\n", length, line->text, line->help);
            print(to, "# TYPE %.*s %s\n", length, line->text,
                  line->type == PAGE_COUNTER ? "counter" : "gauge");
        }
        if (line->type == head->type)
            print_string(to, line->text);
    }
}

void page_print(struct page *page, struct printer *to)
{
    for (size_t i = 0; i < page->count; i++)
        page->lines[i].text = page->text.buffer.data + page->lines[i].at;
    if (page->text.has_failed) {
        to->has_failed = true;
    } else if (page->count) {
        qsort(page->lines, page->count, sizeof(*page->lines), page_compare);
        page_print_sorted(page, to);
    }
    free(page->lines);
    free(page->text.buffer.data);
}
