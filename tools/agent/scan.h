/*
 * A scan: a thread walks all rings once, from their ends backward, and copies the records of wanted
 * traces.
 *
 * A span's record is written at its end, so all records of a trace lie after the trace's begin, and
 * the walk of a ring ends at the place where the ring ended then. Where a record tells of an
 * earlier begin, all rings are walked on to that.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_H
#define BLKIN_TOOLS_SCAN_H

#include "scan_order.h"
#include "tools/rings/ring_read.h"

/* Records of rings and samples of the host, in the order of their times. */
struct scan_records {
    struct buffer bytes;
    struct scan_record {
        int64_t time_ns; /* since 1970 */
        size_t at;       /* in the bytes */
    } * list;
    size_t count, room;
};

/* The entry lives as long as the records. */
struct ring_entry scan_entry(const struct scan_records *records, size_t index);
void scan_records_free(struct scan_records *records);

struct scan_result {
    struct error error;                  /* if the scan fails */
    uint64_t records, bytes;             /* that the rings had */
    uint64_t records_found, bytes_found; /* without samples */
    uint64_t rings_damaged;
    bool is_limited;      /* max_bytes: the oldest records were left out */
    int64_t held_from_ns; /* since 1970: from then on the rings have all */
    /* CLOCK_MONOTONIC: of the wanted traces, what was written before was not read; INT64_MIN: the
     * rings were read to their oldest records */
    int64_t reach_ns;
    uint64_t from_place; /* of that time; 0: none */
    bool is_bounded;     /* held_from_ns is that time: the rings may have what is before, too */
    int64_t cpu_ns;      /* of the thread */
};

/* Scans all rings of the order. Returns false with the result's error set. The caller frees the
 * records in any case. Closes the order's descriptors. Any thread may call this function, once for
 * an order. */
bool scan_run(const struct scan_order *order, struct scan_records *found,
              struct scan_result *result);

#endif
