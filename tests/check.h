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

static struct check_test {
    const char *name;
    void (*run)(void);
} check_tests[64];
static unsigned check_test_count;
static void (*check_before)(void), (*check_after)(void); /* called around each test; NULL: none */

static inline void check_add(const char *name, void (*run)(void))
{
    check_tests[check_test_count].name = name;
    check_tests[check_test_count++].run = run;
}

static inline void check_run(void)
{
    for (unsigned i = 0; i < check_test_count; i++) {
        if (check_before)
            check_before();
        check_tests[i].run();
        if (check_after)
            check_after();
    }
}

/* Runs the test with that name, which is a program's first argument. Returns the program's status.
 */
static inline int check_run_mode(const char *name)
{
    for (unsigned i = 0; name && i < check_test_count; i++) {
        if (strcmp(check_tests[i].name, name) == 0) {
            check_tests[i].run();
            return check_status();
        }
    }
    return 2;
}

#define TEST(name)                                            \
    static void name(void);                                   \
    __attribute__((constructor)) static void name##_add(void) \
    {                                                         \
        check_add(#name, name);                               \
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
