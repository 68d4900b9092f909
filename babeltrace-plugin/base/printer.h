/*
 * A text that grows. Whoever prints need not look whether there was memory: its end tells.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_PRINTER_H
#define BLKIN_ACCOUNT_PRINTER_H

#include "buffer.h"
#include "text.h"

struct printer {
    struct buffer buffer;
    bool has_failed;
};

void print_text(struct printer *printer, const char *text, size_t length);
void print_string(struct printer *printer, const char *string);

/* A printer into an array; what does not fit is left out, and all after it. */
#define PRINTER_INTO(array)                                   \
    {                                                         \
        .buffer = {(array), 0, sizeof(array), sizeof(array) } \
    }

void print(struct printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A label of Prometheus' text format, KEY="VALUE": of any bytes; the page is UTF-8. */
void print_label(struct printer *page, const char *key, struct text value);

/* All that was printed, for free(); NULL if there was not enough memory. */
char *print_end(struct printer *printer);

#endif
