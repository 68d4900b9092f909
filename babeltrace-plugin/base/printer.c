/* SPDX-License-Identifier: BSD-2-Clause */
#include "printer.h"

#include "duration.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void print_text(struct printer *printer, const char *text, size_t length)
{
    if (!printer->has_failed && buffer_reserve(&printer->buffer, length))
        buffer_put(&printer->buffer, text, length);
    else
        printer->has_failed = true;
}

void print_string(struct printer *printer, const char *string)
{
    print_text(printer, string, strlen(string));
}

void print(struct printer *printer, const char *format, ...)
{
    const locale_t theirs = uselocale(real_locale());
    char text[512], *long_text = NULL;
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (length >= (int)sizeof(text)) {
        va_start(values, format);
        length = vasprintf(&long_text, format, values);
        va_end(values);
    }
    (void)uselocale(theirs);
    if (length >= 0)
        print_text(printer, length < (int)sizeof(text) ? text : long_text, (size_t)length);
    else
        printer->has_failed = true;
    if (length >= (int)sizeof(text))
        free(long_text);
}

void print_label(struct printer *page, const char *key, struct text value)
{
    print(page, "%s=\"", key);
    for (size_t i = 0, taken; i < value.length; i += taken) {
        char character[4], *end = character;

        taken = utf8_put(&end, value.data + i, value.length - i);
        if (*character == '\n')
            print_string(page, "\\n");
        else if (*character == '\\' || *character == '"')
            print(page, "\\%c", *character);
        else
            print_text(page, character, (size_t)(end - character));
    }
    print_string(page, "\"");
}

void print_metric_head(struct printer *page, const char *name, const char *kind, const char *help)
{
    print(page, "# HELP %s %s\n", name, help);
    print(page, "# TYPE %s %s\n", name, kind);
}

void print_metric(struct printer *page, const char *name, const char *kind, const char *help,
                  uint64_t value)
{
    print_metric_head(page, name, kind, help);
    print(page, "%s %" PRIu64 "\n", name, value);
}

char *print_end(struct printer *printer)
{
    print_text(printer, "", 1);
    if (!printer->has_failed)
        return printer->buffer.data;
    free(printer->buffer.data);
    return NULL;
}
