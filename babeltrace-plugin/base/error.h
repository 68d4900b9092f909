/*
 * One error message, owned by the caller. The function that finds the error writes the message,
 * callers pass the message on, and the component reports the message once.
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

/* Cuts a message that does not fit. */
__attribute__((format(printf, 2, 3))) static inline void error_print(struct error *error,
                                                                     const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, values);
    va_end(values);
}

/* Same as error_print(), with the value false: the result of a function that fails. Compilers do
 * not inline the variadic error_print(); error_false() shows compilers and checkers the value. */
#define error_set(...) (error_print(__VA_ARGS__), error_false())

static inline bool error_false(void)
{
    return false;
}

/* Same as error_set(), for a function that returns a pointer. */
#define error_null(...) (error_set(__VA_ARGS__), NULL)

#endif
