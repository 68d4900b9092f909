/*
 * A text that grows. Callers print without checks: print_end() reports a lack of memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_PRINTER_H
#define BLKIN_BASE_PRINTER_H

#include "buffer.h"
#include "text.h"

struct printer {
    struct buffer buffer;
    bool has_failed;
};

void print_text(struct printer *printer, const char *text, size_t length);
void print_string(struct printer *printer, const char *string);

/* A printer into an array, without print_end(). A text that does not fit is left out, and so are
 * all later texts. */
#define PRINTER_INTO(array)                                   \
    {                                                         \
        .buffer = {(array), 0, sizeof(array), sizeof(array) } \
    }

void print(struct printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a label in Prometheus' text format, KEY="VALUE". The value may be any bytes; the page is
 * UTF-8. */
void print_label(struct printer *page, const char *key, struct text value);

/* Prints the head of a metric, or a metric without labels. kind: "counter", "gauge" ... */
void print_metric_head(struct printer *page, const char *name, const char *kind, const char *help);
void print_metric(struct printer *page, const char *name, const char *kind, const char *help,
                  uint64_t value);

/* Returns the whole text, for free(); NULL if memory was short. */
char *print_end(struct printer *printer);

#endif
