/*
 * A text that grows. Whoever prints need not look whether there was memory: its end tells.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_PRINTER_H
#define BLKIN_ACCOUNT_PRINTER_H

#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>

struct printer {
    struct buffer buffer;
    bool has_failed;
};

static inline void print_text(struct printer *printer, const char *text, size_t length)
{
    if (!printer->has_failed && buffer_reserve(&printer->buffer, length)) {
        memcpy(printer->buffer.data + printer->buffer.length, text, length);
        printer->buffer.length += length;
    } else {
        printer->has_failed = true;
    }
}

static inline void print_string(struct printer *printer, const char *string)
{
    print_text(printer, string, strlen(string));
}

/* For short texts. */
__attribute__((format(printf, 2, 3))) static inline void print(struct printer *printer,
                                                               const char *format, ...)
{
    char text[512];
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (length >= 0 && (size_t)length < sizeof(text))
        print_text(printer, text, (size_t)length);
    else
        printer->has_failed = true;
}

/* All that was printed, for free(); NULL if there was not enough memory. */
static inline char *print_end(struct printer *printer)
{
    print_text(printer, "", 1);
    if (!printer->has_failed)
        return printer->buffer.data;
    free(printer->buffer.data);
    return NULL;
}

#endif
