/*
 * The log of a blkin:span or blkin:tag event, in the form that doc/format.md describes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_LOG_H
#define BLKIN_CORE_LOG_H

#include "babeltrace-plugin/base/text.h"
#include "span.h"

#include <stdint.h>

/* Members that the type does not have are not set. */
struct log_record {
    char type;         /* as in format.md, but that an annotation is 'a', whatever its severity,
                          and a number's tag is of a small letter, and '?' one that is not known */
    int64_t offset_ns; /* of 'a', '(' and ')': from the span's start, or from where 'T' says; of
                          't': to before where it was */
    uint64_t bits;     /* of 'i', 'u', 'd' and 'b'; of '(': its kind; of '#': the number */
    uint16_t port;     /* of 'r' and 'e' */
    struct text key;   /* of tags; of 'r' and 'e': the ip; of 'a': its severity, empty for info */
    struct text value; /* of 'a', 's', 'n' and '('; of 'r' and 'e': the service */
    struct span_link link; /* of 'l' */
};

/*
 * Takes the next record off the log. Returns false at its end, where log is empty, and at anything
 * that is not a record, where it is not.
 */
bool log_next(struct text *log, struct log_record *record);

#endif
