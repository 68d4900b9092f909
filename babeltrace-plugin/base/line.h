/*
 * A line in an array, put together piece by piece: what does not fit is cut.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_LINE_H
#define BLKIN_CORE_LINE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Returns its new length. */
__attribute__((format(printf, 4, 0))) static inline size_t
line_add(char *line, size_t size, size_t length, const char *format, va_list values)
{
    const int wanted = vsnprintf(line + length, size - length, format, values);

    if (wanted <= 0)
        return length;
    return (size_t)wanted < size - length ? length + (size_t)wanted : size - 1;
}

#endif
