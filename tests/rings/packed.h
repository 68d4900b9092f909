/*
 * Packed texts of events, as libblkin writes them, for thread 0x1234 and span 42.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_PACKED_H
#define TESTS_RINGS_PACKED_H

#include "tracepoints/format/events.h"

#ifndef BLKIN_PORTABLE
#define BLKIN_PORTABLE
#endif
#include "tracepoints/format/digits.h"

#include <string.h>

/* Makes the packed text of a whole span or of blkin:begin, at that time. */
static inline const char *packed_whole(char version, uint64_t time, const char *log)
{
    static char text[300];
    char *at = text;

    *at++ = version;
    at = blkin_put_length(blkin_put_word(at, 0x1234), 0);           /* thread */
    at = blkin_put_word(blkin_put_word(at, 9), UINT64_C(5) << 16);  /* high, sequence */
    at = blkin_put_word(blkin_put_word(at, 42), UINT64_C(3) << 36); /* span, dropped */
    at = blkin_put_word(at, time);
    at = stpcpy(stpcpy(at, log), "10.0.0.1");
    at = blkin_put_length(blkin_put_short(at, 6789), 8);
    *at = '\0';
    return text;
}

static inline const char *packed_detail(uint64_t time, const char *log)
{
    static char text[300];
    char *at = text;

    *at++ = '0' + BLKIN_FORMAT_VERSION;
    at = blkin_put_length(blkin_put_word(at, 0x1234), 0);
    at = blkin_put_word(blkin_put_word(at, 42), UINT64_C(6) << 16);
    at = blkin_put_word(at, time);
    (void)strcpy(at, log);
    return text;
}

#endif
