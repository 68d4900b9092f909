/*
 * The log of a blkin:span or blkin:tag event, in the form of doc/format.md.
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
    char type; /* as in format.md; an annotation of any severity is 'a', a number's tag has a small
                  letter, an unknown record is '?' */
    int64_t offset_ns; /* of 'a', '(' and ')': from the span's start, or from 'T'; of 't': before
                          the former start */
    uint64_t bits;     /* of 'i', 'u', 'd' and 'b'; of '(': its kind; of '#': the number */
    uint16_t port;     /* of 'r' and 'e' */
    struct text key;   /* of tags; of 'r' and 'e': the ip; of 'a': its severity, empty for info */
    struct text value; /* of 'a', 's', 'n' and '('; of 'r' and 'e': the service */
    struct span_link link; /* of 'l' */
};

/* Reads the next record, and removes it from the log. Returns false at the end of the log, which is
 * empty then, or at invalid bytes, which stay in the log. */
bool log_next(struct text *log, struct log_record *record);

#endif
