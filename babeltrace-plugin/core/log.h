/*
 * The log of a blkin:span or blkin:tag event, in the form that tracepoints/events.h describes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_LOG_H
#define BLKIN_CORE_LOG_H

#include "text.h"

#include <stdint.h>

/* Members that the type does not have are not set. */
struct log_record {
    char type;         /* 'a', 's', 'i', 'u', 'd', 'b' or 'r' */
    int64_t offset_ns; /* of 'a': from the span's start */
    uint64_t bits;     /* of 'i', 'u', 'd' and 'b' */
    uint16_t port;     /* of 'r' */
    struct text key;   /* of tags; of 'r': the ip; of 'a': its severity, empty for info */
    struct text value; /* of 'a' and 's'; of 'r': the service */
};

/*
 * Takes the next record off the log. Returns false at its end, where log is empty, and at anything
 * that is not a record, where it is not.
 */
bool log_next(struct text *log, struct log_record *record);

#endif
