/*
 * One error message, owned by the caller: who finds the error writes it, callers pass it on, and
 * the component reports it once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ERROR_H
#define BLKIN_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct error {
    char text[1024];
};

/* A message that does not fit is cut. */
__attribute__((format(printf, 2, 3))) static inline void error_print(struct error *error,
                                                                     const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, values);
    va_end(values);
}

/* The same; its value is false, which is what a function that fails returns. A call with variable
 * arguments is never inline: so compilers and checkers see that value. */
#define error_set(...) (error_print(__VA_ARGS__), error_is_set())

static inline bool error_is_set(void)
{
    return false;
}

/* The same, for a function that returns a pointer. */
#define error_null(...) (error_set(__VA_ARGS__), NULL)

#endif
