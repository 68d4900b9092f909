/*
 * A line that is put together piece by piece: what does not fit is cut.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_LINE_H
#define BLKIN_CORE_LINE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct line {
    size_t length;
    char text[400];
};

__attribute__((format(printf, 2, 3))) static inline void line_add(struct line *line,
                                                                  const char *format, ...)
{
    const size_t room = sizeof(line->text) - line->length;
    va_list values;
    int wanted;

    va_start(values, format);
    wanted = vsnprintf(line->text + line->length, room, format, values);
    va_end(values);
    if (wanted > 0)
        line->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

#endif
