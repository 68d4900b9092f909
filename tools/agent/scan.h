/*
 * A scan: a thread walks over all rings, from their ends backward, and copies the records of wanted
 * traces.
 *
 * A program writes a span's record at the end of the span. So all records of a trace are after the
 * trace's begin. The walk of a ring ends at the newest place (places.h) that is
 * scan_order.early_ns or more before that begin. If a found record has an earlier begin, all walks
 * continue to that begin.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_H
#define BLKIN_TOOLS_SCAN_H

#include "scan_order.h"
#include "tools/rings/ring_read.h"

/* The found records and the samples of host metrics, in the order of their times. */
struct scan_records {
    struct buffer bytes;
    struct scan_record {
        int64_t time_ns; /* since 1970 */
        size_t at;       /* offset in `bytes` */
    } * list;
    size_t count, room;
};

/* Returns the record of that index. The payload is valid until the records are freed. */
struct ring_entry scan_entry(const struct scan_records *records, size_t index);
void scan_records_free(struct scan_records *records);

struct scan_result {
    struct error error;                  /* set if the scan fails */
    uint64_t records, bytes;             /* read from the rings */
    uint64_t records_found, bytes_found; /* without samples */
    uint64_t rings_damaged;              /* the walk has reached the damage */
    bool is_limited; /* max_bytes was reached: other wanted records were left out */
    /* CLOCK_MONOTONIC: the rings of each user have all records from then on. For a trace of which
     * this scan found records, scan_wanted.held_from_ns counts instead. Damaged rings count only in
     * a scan of a window. */
    int64_t held_from_ns;
    /* CLOCK_MONOTONIC: the time back to which the walks went; INT64_MIN: to the oldest records. The
     * scan has all records only from the later of reach_ns and held_from_ns on. */
    int64_t reach_ns;
    uint64_t from_place; /* the place of reach_ns; 0: none */
    int64_t cpu_ns;      /* CPU time of the thread */
};

/* Scans all rings of the order, and sets held_from_ns of its wanted traces. Closes each descriptor
 * of a memory that it takes, also if the mapping fails. Any thread may call this function, once for
 * an order. Returns false with the result's error set. The caller frees the records in any case. */
bool scan_run(const struct scan_order *order, struct scan_records *found,
              struct scan_result *result);

#endif
