/*
 * The tags that describe a span's host: doc/host.md lists them. The tag blkin.host has the findings
 * as text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HOSTS_HOST_TAGS_H
#define BLKIN_HOSTS_HOST_TAGS_H

#include "babeltrace-plugin/spans/event.h"
#include "babeltrace-plugin/spans/span.h"
#include "host_view.h"

/* ---- histories ------------------------------------------------------------------------------- */

/*
 * The samples of one group of a host's metrics (of a disk, of its CPUs), and their views over a
 * time.
 *
 * Samples are raw: counters and gauges. The views of hosts/host_view.h compare two samples, and are
 * computed on demand. The history has HISTORY_SAMPLES samples. When it is full, every second sample
 * of the older half is removed: old times have coarser steps, but no gaps. A lost sample only makes
 * one step longer.
 *
 * All input comes from a trace, and is untrusted.
 */
#define HISTORY_SAMPLES    64
#define HISTORY_VALUES_MAX 32
#define HISTORY_VIEWS_MAX  4

/* ---- names ----------------------------------------------------------------------------------- */

struct sample_metric {
    struct text name;
    struct text unit;
    bool is_counter; /* false: a gauge */
};

/* The names of values, in order; stored once for all groups with the same names. */
struct group_layout {
    struct group_layout *next;
    uint32_t count;
    uint32_t counters; /* bit i: value i is a counter */
    struct {
        uint32_t offset;
        uint32_t length;
    } names[HISTORY_VALUES_MAX];
    uint32_t length;
    char text[]; /* as received: NAME:UNIT:KIND NAME:UNIT:KIND */
};

/* The most different layouts. */
#define LAYOUTS_MAX 256

struct layouts {
    struct group_layout *first;
    unsigned count;
};

void layouts_free(struct layouts *layouts);

/* ---- samples --------------------------------------------------------------------------------- */

struct history_sample {
    int64_t time_ns;
    bool is_reset;                  /* a counter began again: the time before is unknown */
    bool is_seen;                   /* `views` are computed */
    float views[HISTORY_VIEWS_MAX]; /* of the time since the last sample; NaN: not known */
    uint64_t values[];
};

struct history {
    const struct group_layout *layout;    /* NULL: the names have not arrived yet */
    const struct host_view *const *views; /* HISTORY_VIEWS_MAX of them; some may be NULL */
    uint64_t thread; /* the recording thread and the number of the last sample */
    uint64_t sequence;
    uint64_t period_ns;
    uint32_t value_count;
    uint32_t count; /* of samples */
    uint32_t room;  /* bytes for samples */
    char *samples;  /* in ascending order of time */
};

enum history_added {
    HISTORY_ADDED,
    HISTORY_UNNAMED, /* added: usable when the names arrive */
    HISTORY_RESET,   /* added: a counter is smaller than before */
    HISTORY_TWICE,   /* another session has recorded the sample, too */
    HISTORY_INVALID, /* the sample is invalid */
    HISTORY_NO_ROOM,
};

/* Adds a sample. A new history is all zeros except `views`. */
enum history_added history_add(struct history *history, struct layouts *layouts,
                               const struct event *event, int64_t time_ns);
void history_free(struct history *history);

static inline size_t history_sample_size(const struct history *history)
{
    return sizeof(struct history_sample) + history->value_count * sizeof(uint64_t);
}

static inline struct history_sample *history_at(const struct history *history, uint32_t i)
{
    return (struct history_sample *)(void *)(history->samples + i * history_sample_size(history));
}

/* Returns the time of the last sample; INT64_MIN: none. */
static inline int64_t history_last_ns(const struct history *history)
{
    return history->count ? history_at(history, history->count - 1)->time_ns : INT64_MIN;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* The values of a view in a time, one per step between two samples. */
struct range {
    bool is_known;
    double least;
    double most;
    double mean;      /* over the whole time */
    double total;     /* of all steps that overlap the time */
    int64_t from_ns;  /* the begin of the first such step */
    int64_t until_ns; /* the end of the last such step */
};

/* Reads the view with this index from start_ns to end_ns. A step that is much longer than the
 * period is ignored, unless the time is as long: HISTORY_STEP_PERIODS. */
#define HISTORY_STEP_PERIODS 4
struct range history_range(struct history *history, unsigned view, int64_t start_ns,
                           int64_t end_ns);

/* The groups that give tags. Other groups are dropped. */
enum host_group {
    GROUP_DISK,
    HOST_GROUP_CPU,
    GROUP_PRESSURE,
    GROUP_RUN_QUEUE,
    HOST_GROUP_MEMORY,
    GROUP_TCP,
    HOST_GROUPS
};

/* No span waits for a group with a longer period. */
#define HOST_WAIT_PERIOD_NS INT64_C(5000000000)

/* Finds the group by its name. A group of the whole host has no instances. */
bool host_group_find(struct text group, struct text instance, enum host_group *found);

/* Sets the views to compute for a group; NULL: no further view. */
void host_group_views(enum host_group group, const struct host_view *views[HISTORY_VIEWS_MAX]);

/* An instance of a group. */
struct host_part {
    struct host_part *next; /* of the host and the group, in order of creation */
    enum host_group group;
    struct history history;
    int64_t heard_ns; /* trace time of the last sample */
    uint32_t instance_length;
    char instance[];
};

/* Tags the span with the state of the host during the span. The span's log must be from malloc().
 * Returns how many tags found no room. *is_tagged: the state was known. */
unsigned host_tag(struct span *span, struct host_part *const parts[HOST_GROUPS], bool *is_tagged);

#endif
