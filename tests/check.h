/*
 * The whole test framework: CHECK() says what did not hold, check_status() is main()'s result.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <locale.h>
#include <stdio.h>
#include <string.h>

static int check_failures;

/* As a program of others that the sink is in: a decimal comma, where the user's locale has one. */
__attribute__((constructor)) static void check_set_locale(void)
{
    (void)setlocale(LC_NUMERIC, "");
}

#define CHECK(condition)                                                                  \
    ((condition) ? (void)0                                                                \
                 : (check_failures++, (void)fprintf(stderr, "%s:%d: does not hold: %s\n", \
                                                    __FILE__, __LINE__, #condition)))

#define CHECK_TEXT(actual, expected)                                                             \
    (strcmp((actual), (expected)) == 0                                                           \
         ? (void)0                                                                               \
         : (check_failures++, (void)fprintf(stderr, "%s:%d: %s\n  is       %s\n  expected %s\n", \
                                            __FILE__, __LINE__, #actual, (actual), (expected))))

static inline int check_status(void)
{
    return check_failures ? 1 : 0;
}

#endif
