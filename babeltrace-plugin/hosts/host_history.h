/*
 * The samples of one group of a host's metrics (of a disk, of its CPUs), and what they tell of a
 * time.
 *
 * Samples are raw: counters and gauges. What was meanwhile is in two of them, as the views of
 * hosts/host_view.h have it, and is computed when somebody asks. There is room for
 * HISTORY_SAMPLES; when they are used up every second one of the older half goes, so that long ago
 * is known in coarser steps, and not less of it. A sample that is lost costs as little.
 *
 * Everything is from a trace, and untrusted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HOST_HISTORY_H
#define BLKIN_CORE_HOST_HISTORY_H

#include "babeltrace-plugin/spans/event.h"
#include "host_view.h"

#define HISTORY_SAMPLES    64
#define HISTORY_VALUES_MAX 32
#define HISTORY_VIEWS_MAX  4

/* ---- names ----------------------------------------------------------------------------------- */

struct sample_metric {
    struct text name;
    struct text unit;
    bool is_counter; /* else a gauge */
};

/* What the values are, in their order; kept once for all groups that have the same. */
struct group_layout {
    struct group_layout *next;
    uint32_t count;
    uint32_t counters; /* bit i: the i-th is one; else a gauge */
    struct {
        uint32_t offset;
        uint32_t length;
    } names[HISTORY_VALUES_MAX];
    uint32_t length;
    char text[]; /* as it came: NAME:UNIT:KIND NAME:UNIT:KIND */
};

/* Different ones that there may be: more are no room. */
#define LAYOUTS_MAX 256

struct layouts {
    struct group_layout *first;
    unsigned count;
};

void layouts_free(struct layouts *layouts);

/* ---- samples --------------------------------------------------------------------------------- */

struct history_sample {
    int64_t time_ns;
    bool is_anew; /* of the time before it nothing is known: who counts has begun anew */
    bool is_seen; /* `views` are computed */
    float views[HISTORY_VIEWS_MAX]; /* of the time since the sample before; NaN: not known */
    uint64_t values[];
};

struct history {
    const struct group_layout *layout;    /* NULL: its names have not come yet */
    const struct host_view *const *views; /* HISTORY_VIEWS_MAX of them; some may be NULL */
    uint64_t thread; /* of the last sample: who has recorded it, and its number */
    uint64_t sequence;
    uint64_t period_ns;
    uint32_t value_count;
    uint32_t count; /* of samples */
    uint32_t room;  /* bytes for samples */
    char *samples;  /* oldest first; times ascend */
};

enum history_added {
    HISTORY_ADDED,
    HISTORY_UNNAMED, /* added: it will be of use when the names come */
    HISTORY_ANEW,    /* added; a counter is smaller than before */
    HISTORY_TWICE,   /* another session has recorded it, too */
    HISTORY_INVALID, /* it makes no sense */
    HISTORY_NO_ROOM,
};

/* Into one that began as all zeros, but for `views`. */
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

/* The time of the last one; INT64_MIN: there is none. */
static inline int64_t history_last_ns(const struct history *history)
{
    return history->count ? history_at(history, history->count - 1)->time_ns : INT64_MIN;
}

/* ---- what they tell -------------------------------------------------------------------------- */

/* Of a view in a time, step by step from sample to sample. */
struct range {
    bool is_known;
    double least;
    double most;
    double mean;  /* over that time */
    double total; /* of all steps that are not over before that time or begin after it */
    int64_t from_ns;
    int64_t until_ns; /* those steps' */
};

/*
 * The i-th view in the time from start_ns to end_ns. Steps that are much longer than the period
 * tell nothing of it, unless it is as long itself: HISTORY_STEP_PERIODS.
 */
#define HISTORY_STEP_PERIODS 4
struct range history_range(struct history *history, unsigned view, int64_t start_ns,
                           int64_t end_ns);

#endif
