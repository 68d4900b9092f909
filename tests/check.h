/*
 * The whole test framework: CHECK() prints a failed condition, check_status() is main()'s result.
 *
 * TEST(NAME) begins a test. check_run() runs the tests of a file in their order. CHECK_MAIN makes a
 * main() that only runs the tests; CHECK_MAIN_WITH makes one with statements before and after them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MS     INT64_C(1000000) /* in nanoseconds */
#define SECOND INT64_C(1000000000)

static int check_failures;

/* Sets the user's locale, perhaps with a decimal comma, as a program that loads the sink may do. */
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

/* One of a program's tests, which the program's first argument selects. */
struct check_mode {
    const char *name;
    void (*run)(void);
};

/* Runs the mode with that name. The list ends with the name NULL. Returns the program's status. */
static inline int check_run_mode(const struct check_mode *modes, const char *name)
{
    for (; modes->name; modes++) {
        if (name && strcmp(modes->name, name) == 0) {
            modes->run();
            return check_status();
        }
    }
    return 2;
}

static void (*check_tests[64])(void);
static unsigned check_test_count;
static void (*check_before)(void), (*check_after)(void); /* called around each test; NULL: none */

static inline void check_add(void (*test)(void))
{
    check_tests[check_test_count++] = test;
}

static inline void check_run(void)
{
    for (unsigned i = 0; i < check_test_count; i++) {
        if (check_before)
            check_before();
        check_tests[i]();
        if (check_after)
            check_after();
    }
}

#define TEST(name)                                            \
    static void name(void);                                   \
    __attribute__((constructor)) static void name##_add(void) \
    {                                                         \
        check_add(name);                                      \
    }                                                         \
    static void name(void)

/* before, after: functions that are called around each test; NULL: none. */
#define CHECK_MAIN_EACH(before, after) \
    CHECK_MAIN_WITH((check_before = (before), check_after = (after)), (void)0)

/* before, after: statements around the tests of a file. */
#define CHECK_MAIN_WITH(before, after) \
    int main(void)                     \
    {                                  \
        before;                        \
        check_run();                   \
        after;                         \
        return check_status();         \
    }

#define CHECK_MAIN CHECK_MAIN_WITH((void)0, (void)0)

#endif
