/*
 * The alarm: blkin:slow events, found in the packets of a snapshot by their mark. No metadata is
 * read, and nothing is decoded: this happens four times a second.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ALARM_H
#define BLKIN_TOOLS_ALARM_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts are cut, and without control characters. */
struct alarm {
    uint64_t trace_id_high, trace_id; /* both 0: it only tells of `dropped` */
    uint64_t span_id;
    uint64_t duration_ns;
    uint64_t monotonic_ns; /* the span's end */
    uint32_t pid, sequence, dropped;
    char why[128];
    char name[128];
    char service[80];
};

/* From file to file of a snapshot's folder, and from one snapshot to the next, which has most of it
 * again: an alarm is given once, known by pid and sequence. */
struct alarm_reader;

/* Returns NULL when out of memory. */
struct alarm_reader *alarm_reader_new(void);
void alarm_reader_free(struct alarm_reader *reader);

/*
 * Programs whose alarms another reader has seen, up to this sequence. A first one that comes when
 * we have read already would else tell that all before it are missing: where the ring is a new one,
 * or was read while it had nothing.
 */
void alarm_reader_knows(struct alarm_reader *reader, uint32_t pid, uint32_t sequence);

typedef void alarm_fn(void *context, const struct alarm *alarm);

/*
 * Reads all streams below the folder, and gives what is new. *lost: so many alarms were overwritten
 * before they were seen (gaps in the sequences of processes). What is no packet of LTTng's is
 * skipped. Returns false with error set if the folder cannot be read.
 */
bool alarm_read(struct alarm_reader *reader, const char *folder, alarm_fn *give, void *context,
                uint64_t *lost, struct error *error);

/* New ones of the last snapshot that was read, in a version that is not known here: not given. */
uint64_t alarm_reader_newer(const struct alarm_reader *reader);

#endif
