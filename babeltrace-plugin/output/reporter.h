/*
 * Messages about the delivery, for the operator: each kind of trouble once a minute at most.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_REPORTER_H
#define BLKIN_OUTPUT_REPORTER_H

#include <stdint.h>

enum report {
    REPORT_UNREACHED, /* trying again */
    REPORT_BACK,
    REPORT_UNDELIVERED,
    REPORT_REFUSED,
    REPORT_INVALID,
    REPORT_TOO_LARGE,
    REPORT_DROPPED,
    REPORTS
};

typedef void exporter_report_fn(void *context, const char *message);

struct reporter {
    exporter_report_fn *report;
    void *context;
    int64_t next_ms[REPORTS]; /* not before */
};

__attribute__((format(printf, 3, 4))) void reporter_say(struct reporter *reporter, enum report kind,
                                                        const char *format, ...);

#endif
