/*
 * A page of Prometheus' text format, of lines that come in any order: they are sorted by the names
 * of their metrics and then by their labels, and each metric gets its head.
 *
 *     page_begin(&page, PAGE_GAUGE, "As the kernel has it.", "blkin_host_load", "");
 *     page_label(&page, "host", host);
 *     page_end(&page, 0.5);
 *
 * Whoever prints need not look whether there was memory: page_print() tells. All zeros are an empty
 * one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HOSTS_PAGE_H
#define BLKIN_HOSTS_PAGE_H

#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

enum page_type { PAGE_GAUGE, PAGE_COUNTER };

struct page_line;

struct page {
    struct printer text; /* of the lines, each of which ends in NUL */
    struct page_line *lines;
    size_t count, room;
    size_t labels; /* of the line that has begun */
};

/* A line of the metric that is called name and more. The help, a literal, is for its head. */
void page_begin(struct page *page, enum page_type type, const char *help, const char *name,
                const char *more);
void page_label(struct page *page, const char *key, struct text value);
void page_end(struct page *page, double value);

/* The same, to the last digit if it is not scaled. */
void page_end_whole(struct page *page, uint64_t value, double scale);

/*
 * Prints all lines, and frees the page. Of a name that is of counters and gauges, only those of the
 * first line's type. Without memory the printer has failed.
 */
void page_print(struct page *page, struct printer *to);

#endif
