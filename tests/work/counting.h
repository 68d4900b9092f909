/*
 * Made-up spans, which several workers count in parts, and a test counts as a whole: the sum of the
 * workers' deltas must equal the counts of the whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_WORK_COUNTING_H
#define TESTS_WORK_COUNTING_H

#include "seed.h"
#include "tools/merged/merged.h"

#include <math.h>
#include <stdlib.h>

#define COUNTED_SERVICES 7
#define COUNTED_SPANS    9 /* names of the spans of each service */

/* Returns a duration from 1 us to 100 s, equally many in each octave; 0 once in 50 times. */
static inline int64_t some_duration(void)
{
    const uint64_t kind = dice(50);

    return kind == 0 ? 0 : (int64_t)exp(6.9 + (double)dice(1000000) / 1e6 * 18.4);
}

static inline uint32_t some_name(struct names *names, const char *kind, uint64_t number)
{
    char text[64];

    /* valid characters only: test_page() of test-merged.c has invalid bytes */
    (void)snprintf(text, sizeof(text), number % 5 == 4 ? "%s \"%d\" \\ \xc3\xa9\n" : "%s-%d", kind,
                   (int)number);
    return names_id(names, text_of(text));
}

struct one_span {
    uint64_t service, name, client;
    int64_t duration, self;
    bool is_error;
};

static inline struct one_span some_span(void)
{
    struct one_span span = {dice(COUNTED_SERVICES), dice(COUNTED_SPANS), dice(COUNTED_SERVICES),
                            some_duration(),        some_duration(),     dice(20) == 0};

    return span;
}

static inline bool count_span(struct statistics *statistics, struct names *names,
                              const struct one_span *span)
{
    const uint32_t service = some_name(names, "service", span->service);
    struct statistics_row *row =
        statistics_add(statistics, STATISTICS_ROWS, service, some_name(names, "name", span->name));
    struct statistics_row *edge = statistics_add(
        statistics, STATISTICS_EDGES, some_name(names, "service", span->client), service);

    if (!row || !edge)
        return false;
    row->spans++;
    row->ever++;
    row->errors += span->is_error;
    edge->calls++;
    edge->errors += span->is_error;
    return histogram_add(&row->duration, span->duration) && histogram_add(&row->self, span->self) &&
           histogram_add(&edge->duration, span->duration);
}

#endif
