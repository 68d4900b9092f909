/*
 * The macros of the original API: one statement each in every position, arguments evaluated once,
 * NULL values harmless. headers.c has those of blkin.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include "check.h"

static struct blkin_endpoint endpoint;
static struct blkin_trace trace;
static int evaluated;

static const char *count(const char *text)
{
    evaluated++;
    return text;
}

static void in_if_else(int condition)
{
    if (condition)
        BLKIN_TIMESTAMP(&trace, &endpoint, count("yes"));
    else
        BLKIN_KEYVAL_STRING(&trace, &endpoint, count("k"), count("no"));

    for (int i = 0; i < 3; i++)
        BLKIN_KEYVAL_INTEGER(&trace, NULL, count("i"), i);

    switch (condition) {
    case 0:
        BLKIN_TIMESTAMP(&trace, NULL, count("zero"));
        break;
    default:
        BLKIN_TIMESTAMP(&trace, NULL, count("other"));
    }
}

int main(void)
{
    /* names that a macro might use inside */
    int annotation = 1, __annot = 2;

    blkin_init_endpoint(&endpoint, "10.0.0.1", 1, "service");
    blkin_init_new_trace(&trace, "write", &endpoint);

    in_if_else(1);
    CHECK(evaluated == 5);
    in_if_else(0);
    CHECK(evaluated == 11);

    BLKIN_KEYVAL_STRING(&trace, &endpoint, "k", NULL);
    BLKIN_KEYVAL_STRING(&trace, &endpoint, NULL, "v");
    BLKIN_KEYVAL_INTEGER(&trace, &endpoint, NULL, annotation);
    BLKIN_TIMESTAMP(&trace, &endpoint, NULL);
    BLKIN_TIMESTAMP(NULL, &endpoint, "e");
    BLKIN_KEYVAL_INTEGER(&trace, &endpoint, "k", __annot);
    return check_status();
}
