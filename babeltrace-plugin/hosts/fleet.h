/*
 * What many hosts do: their metrics added up over groups of hosts.
 *
 * A row is a metric of an instance over a group of hosts. What is added to it is what happened
 * between two samples of one host; it is spread evenly over the windows of time that it touches. So
 * all of a row are sums (and a least and a most): what several have added up is added up, in any
 * order, and periods and throttles of hosts may differ.
 *
 *     rate of a counter, average of a gauge   amount / elapsed, of a host
 *     sum over hosts                          that, times hosts
 *     least, most                             of a host between two of its samples
 *
 * A window is shown when it is whole: when what began in it, and took as long to come as anything
 * did lately, has come.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_FLEET_H
#define BLKIN_ANALYSIS_FLEET_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/model/names.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define FLEET_ROWS_MAX    4096 /* with more, new ones are one, for all others */
#define FLEET_GROUPS_MAX  16
#define FLEET_NAME_MAX    255 /* of any name; what is longer is cut */
#define FLEET_WINDOWS     64  /* of a row, the latest */
#define FLEET_WINDOW_NS   (10 * INT64_C(1000000000))
#define FLEET_INTERVAL_NS (3600 * INT64_C(1000000000)) /* between two samples, at most */

/* One metric of one instance, between two samples of a host. */
struct fleet_point {
    struct text host;
    struct text metric;
    struct text unit;
    struct text instance; /* "redis-server[123]": the number is left out */
    bool is_counter;
    uint64_t value;   /* what a counter grew by; what a gauge was at the beginning */
    int64_t start_ns; /* since 1970 */
    int64_t end_ns;
};

struct fleet_window {
    bool is_there;
    int64_t number; /* start / FLEET_WINDOW_NS */
    uint64_t hosts; /* that were there when it began */
    uint64_t elapsed_ns;
    uint64_t increase; /* of a counter */
    double integral;   /* of a gauge: value x ns */
    double min, max;   /* of a counter by second */
    int64_t delay_ns;  /* from a beginning of what is in it until that came, at most */
};

struct fleet_row {
    uint32_t hosts; /* names: the group's */
    uint32_t metric;
    uint32_t instance;
    uint32_t unit;
    bool is_counter;
    struct table_link in_table;
    uint64_t samples; /* since it is there, as is increase; fleet_begin_period() sets both to 0 */
    uint64_t increase;
    struct fleet_window windows[FLEET_WINDOWS]; /* by number modulo */
};

struct fleet_counts {
    uint64_t points;
    uint64_t refused; /* no time between samples, or too much */
    uint64_t shifted; /* of a clock that is ahead: taken as of when they came */
};

struct fleet;

/*
 * groups: "NAME=GLOB,GLOB...", with ";" between, of host names; a host may be in several. A group
 * without a name ("=GLOB") makes each host one of its own. NULL or "": "all=*". Returns NULL with
 * error set.
 */
struct fleet *fleet_new(const char *groups, struct error *error);
void fleet_free(struct fleet *fleet); /* NULL is allowed */

/* now_ns: when it came, since 1970. Any values. Returns false when out of memory. */
bool fleet_add(struct fleet *fleet, const struct fleet_point *point, int64_t now_ns);

/* For who merges what others have added up. NULL: out of memory. */
struct fleet_row *fleet_row_of(struct fleet *fleet, struct text hosts, struct text metric,
                               struct text instance);
void fleet_set_unit(struct fleet *fleet, struct fleet_row *row, struct text unit, bool is_counter);
/* The one of this number, be it empty; NULL: there are FLEET_WINDOWS that are later. */
struct fleet_window *fleet_window_of(struct fleet_row *row, int64_t number);

/* Sums to 0, and no windows; rows stay. */
void fleet_begin_period(struct fleet *fleet);

/* In no order. */
size_t fleet_rows(const struct fleet *fleet);
const struct fleet_row *fleet_row(const struct fleet *fleet, size_t i);
const struct fleet_row *fleet_find(const struct fleet *fleet, uint32_t hosts, struct text metric,
                                   uint32_t instance);
const struct names *fleet_names(const struct fleet *fleet);
const struct fleet_counts *fleet_counts(const struct fleet *fleet);

/* The latest window that is whole at that time; NULL: none, or it is long ago. */
const struct fleet_window *fleet_shown(const struct fleet_row *row, int64_t now_ns);

/* Is it of anything? Of a message of anybody's only a part may have been there. */
static inline bool fleet_window_is_known(const struct fleet_window *window)
{
    return window->is_there && window->elapsed_ns && isfinite(window->min) &&
           isfinite(window->max) && isfinite(window->integral);
}

/* By second, or a gauge's average: of a host. */
static inline double fleet_average(const struct fleet_row *row, const struct fleet_window *window)
{
    return row->is_counter ? (double)window->increase * 1e9 / (double)window->elapsed_ns
                           : window->integral / (double)window->elapsed_ns;
}

#endif
