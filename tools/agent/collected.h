/*
 * The traces and times that this host has collected from its rings, and the found spans, so that no
 * span is sent twice. Two files store them for the next process: a file of all traces, which is
 * written every COLLECTED_ALL_MS, and a file of the traces that have changed since. The oldest
 * entries are removed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_COLLECTED_H
#define BLKIN_TOOLS_COLLECTED_H

#include "babeltrace-plugin/base/table.h"
#include "tools/otlp/sdk_store.h"
#include "trace_id.h"

#include <urcu/list.h>

struct collected_trace {
    struct trace_id id;
    int64_t until_mono_ns; /* CLOCK_MONOTONIC: records up to then were collected; 0: none were */
    int64_t from_mono_ns;  /* records from this time on were collected; INT64_MIN: all records */
    uint64_t place;        /* of until_mono_ns, see places.h; 0: not known, or of an earlier run */
    uint64_t from_place;   /* the place of from_mono_ns; 0: all records, or of an earlier run */
    bool is_open;          /* requested by this host, and not judged yet */
    bool is_asked;         /* requested by this process */
    bool is_ours;          /* requested by this host, until it is judged and settled */
    bool was_judged;       /* an earlier process judged the trace, but did not settle the spans */
    bool is_unsent; /* an earlier process collected the trace, but did not settle the spans */
    uint64_t given; /* settled when export_settled() reaches this number; 0: settled */
    int64_t asked_begin_ns; /* since 1970: the trace's begin by the request; 0: not known */
    char why[201];
    struct trace_spans found;
    unsigned deaths; /* crashes of agents while the trace was open or unsent: see deaths.h */
    /* CLOCK_MONOTONIC; 0: not known. At one of the fetches, the rings of the trace's users had all
     * records from held_from_ns on. At the last, the store had all spans of SDKs from otlp_from_ns
     * on. */
    int64_t held_from_ns, otlp_from_ns;
    char *line; /* the line of the files; NULL: the trace has changed */
    size_t line_length;
    struct collected *collected;
    uint64_t change;                 /* the number of the last change among all changes */
    struct cds_list_head in_changed; /* empty: the file of all traces has the trace as it is */
    /* late_spans.c: */
    struct sdk_wanted sdk;        /* the spans of SDKs that were given */
    int64_t watched_ms;           /* the begin of the watch for late spans; 0: not watched */
    unsigned reads;               /* of the rings, for late spans */
    uint64_t sdk_take, sdk_after; /* the last late_spans_take(), and sdk.after before it */
    char request[192], host[256]; /* the request that began the watch, and its host */
    struct table_link in_table;
};

struct collected;

/* Returns NULL when out of memory. */
struct collected *collected_new(void);
void collected_free(struct collected *collected);

/* Returns NULL if the trace is not known. */
struct collected_trace *collected_find(const struct collected *collected, struct trace_id id);

/* Returns the known trace, or a new one. Returns NULL when out of memory or at the limit. */
struct collected_trace *collected_get(struct collected *collected, struct trace_id id);

/* Marks the trace as requested by this host. asked_begin_ns: the trace's begin; 0: not known. */
void collected_open(struct collected_trace *trace, int64_t asked_begin_ns, const char *why);
void collected_close(struct collected_trace *trace);
/* Counts crashes. */
void collected_note_deaths(struct collected_trace *trace, unsigned count);
/* The trace is not fetched again: it is neither open nor unsent. */
void collected_skip(struct collected_trace *trace);

/* The time and the places of a fetch: see the members of struct collected_trace. */
struct collected_fetch {
    int64_t from_mono_ns, until_mono_ns;
    uint64_t from_place, place;
};
void collected_note(struct collected *collected, struct trace_id id,
                    const struct collected_fetch *fetch);

/* Notes that the export got spans of the trace, or the span "incomplete". given: export_given(). */
void collected_note_given(struct collected *collected, struct trace_id id, uint64_t given);

/* Returns true if spans of a trace or of a window were not settled at the last collected_text(), or
 * were given to the export since. */
bool collected_waits(const struct collected *collected);

/* Note the times held_from_ns and otlp_from_ns of struct collected_trace. INT64_MIN: the rings have
 * nothing of the trace. */
void collected_note_held(struct collected *collected, struct trace_id id, int64_t held_from_ns);
void collected_note_otlp_held(struct collected *collected, struct trace_id id, int64_t from_ns);

/* A period of CLOCK_MONOTONIC of which all records were collected. */
struct collected_window {
    int64_t from_ns, until_ns;
    uint64_t given; /* as in struct collected_trace */
};
void collected_note_window(struct collected *collected, struct collected_window window);
const struct collected_window *collected_windows(const struct collected *collected, size_t *count);

/* Returns true if the records of the trace up to this time were collected, or may have been:
 * removed traces are not known. Adds a second to the time, for late writers. */
bool collected_has(const struct collected *collected, struct trace_id id, uint64_t mono_ns);

/* Adds found spans: {"id": ..., "begin": ..., "spans": ..., "have": [...], "want": [...]}, see
 * selection.h. */
void collected_add(struct collected *collected, const json_t *found);

/* Returns such an object for all collected spans of the trace; NULL: no spans. "held_from": the
 * time of CLOCK_MONOTONIC from which this host has the whole trace. */
json_t *collected_json(const struct collected_trace *trace);
/* Returns a copy of `found`, with "held_from" if that time is known. */
json_t *collected_copy(const struct collected *collected, const json_t *found);

/* Visits all traces. The body must add and remove none. */
#define collected_for_each(trace, collected) \
    table_for_each(trace, collected_traces(collected), in_table)
const struct table *collected_traces(const struct collected *collected);

/* Returns the text of the file of changes; NULL: out of memory. settled: export_settled(). Saves a
 * trace with unsettled spans as not collected, and leaves out a window with such spans. So the next
 * process sends them again. */
char *collected_text(struct collected *collected, uint64_t settled, size_t *length);

/* Returns the text of the file of all traces; NULL: out of memory. Removes closed and settled
 * traces ten minutes after their last fetch. Sets *changes to the number of changes that the text
 * has: when it is on the disk, collected_saved_all(). */
#define COLLECTED_ALL_MS 10000
char *collected_text_of_all(struct collected *collected, uint64_t settled, size_t *length,
                            uint64_t *changes);
/* Takes the traces out of the file of changes that have not changed since. */
void collected_saved_all(struct collected *collected, uint64_t changes);

/* Reads a file: first that of all traces. From a file of an earlier boot, only open traces are
 * read: they wait for a verdict. A damaged file is ignored. */
void collected_load(struct collected *collected, const char *path);

#endif
