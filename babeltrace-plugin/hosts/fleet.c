/*
 * Metrics of hosts, added up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fleet.h"

#include "babeltrace-plugin/base/hash.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>

#define NAMES_MAX     32768U
#define NAMES_BYTES   (4U << 20)
#define HOSTS_MAX     16384U
#define HOSTS_BYTES   (2U << 20)
#define AHEAD_NS      INT64_C(5000000000) /* so much a host's clock may be ahead */
#define GLOBS_MAX     64
#define SHOWN_WINDOWS 3 /* so many there may be without anything new */

struct group {
    const char *name; /* "": each host is one */
    const char *globs[GLOBS_MAX];
    size_t count;
};

struct fleet {
    char *text; /* of the groups, cut up */
    struct group groups[FLEET_GROUPS_MAX];
    size_t group_count;
    struct names *names; /* of rows */
    struct names *hosts;
    uint32_t masks[HOSTS_MAX]; /* by host: its groups, and IS_KNOWN */
    struct fleet_counts counts;
    struct table table;                     /* of rows */
    struct fleet_row *rows[FLEET_ROWS_MAX]; /* as they came; table.count of them */
};

#define IS_KNOWN (UINT32_C(1) << 31)

_Static_assert(FLEET_GROUPS_MAX < 31, "a mask has them all");

/* ---- groups ---------------------------------------------------------------------------------- */

static char *fleet_trim(char *text)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static bool read_group(struct group *group, char *text, struct error *error)
{
    char *globs = strchr(text, '='), *rest = NULL;

    if (globs)
        *globs++ = '\0';
    group->name = fleet_trim(text);
    for (char *glob = globs ? strtok_r(globs, ",", &rest) : NULL; glob;
         glob = strtok_r(NULL, ",", &rest)) {
        glob = fleet_trim(glob);
        if (*glob && group->count < GLOBS_MAX)
            group->globs[group->count++] = glob;
        else
            group->count = 0;
        if (group->count == 0)
            break;
    }
    if (group->count && strlen(group->name) <= FLEET_NAME_MAX)
        return true;
    return error_set(
        error, "\"%.100s\": expected NAME=GLOB[,GLOB]... of host names: store=store-*,osd-*", text);
}

static bool read_groups(struct fleet *fleet, const char *groups, struct error *error)
{
    char *rest = NULL;

    fleet->text = strdup(groups && *groups ? groups : "all=*");
    if (!fleet->text)
        return false;
    for (char *one = strtok_r(fleet->text, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        if (*fleet_trim(one) == '\0')
            continue;
        if (fleet->group_count == FLEET_GROUPS_MAX)
            return error_set(error, "expected %d groups at most", FLEET_GROUPS_MAX);
        if (!read_group(&fleet->groups[fleet->group_count++], one, error))
            return false;
    }
    if (fleet->group_count)
        return true;
    return error_set(error, "expected a group: all=*");
}

static uint32_t find_groups(const struct fleet *fleet, struct text host)
{
    char name[FLEET_NAME_MAX + 1];
    uint32_t mask = IS_KNOWN;

    *text_copy(name, host) = '\0';
    for (size_t i = 0; i < fleet->group_count; i++) {
        const struct group *group = &fleet->groups[i];

        for (size_t k = 0; k < group->count && !(mask >> i & 1); k++)
            mask |= (uint32_t)(fnmatch(group->globs[k], name, 0) == 0) << i;
    }
    return mask;
}

static uint32_t groups_of(struct fleet *fleet, struct text host)
{
    const uint32_t id = names_id(fleet->hosts, host);

    if (id == NAMES_OTHER)
        return find_groups(fleet, host);
    if (!fleet->masks[id])
        fleet->masks[id] = find_groups(fleet, host);
    return fleet->masks[id];
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static uint64_t fleet_hash(uint64_t seed, uint32_t hosts, uint32_t metric, uint32_t instance)
{
    return hash_mix(hash_mix(seed ^ ((uint64_t)hosts << 32 | metric)) ^ instance);
}

struct fleet *fleet_new(const char *groups, struct error *error)
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));

    error_set(error, "out of memory");
    if (!fleet)
        return NULL;
    fleet->names = names_new(NAMES_MAX, NAMES_BYTES);
    fleet->hosts = names_new(HOSTS_MAX, HOSTS_BYTES);
    if (table_init(&fleet->table) && fleet->names && fleet->hosts &&
        read_groups(fleet, groups, error))
        return fleet;
    fleet_free(fleet);
    return NULL;
}

void fleet_free(struct fleet *fleet)
{
    if (!fleet)
        return;
    for (size_t i = 0; i < fleet->table.count; i++)
        free(fleet->rows[i]);
    table_destroy(&fleet->table, NULL);
    names_free(fleet->names);
    names_free(fleet->hosts);
    free(fleet->text);
    free(fleet);
}

void fleet_begin_period(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->table.count; i++) {
        struct fleet_row *row = fleet->rows[i];

        if (row->samples)
            memset(row->windows, 0, sizeof(row->windows));
        row->samples = row->increase = 0;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct fleet_row *fleet_find_row(const struct fleet *fleet, uint32_t hosts, uint32_t metric,
                                        uint32_t instance)
{
    const uint64_t hash = fleet_hash(fleet->table.seed, hosts, metric, instance);
    struct fleet_row *row;

    table_find(row, &fleet->table, hash, in_table,
               row->hosts == hosts && row->metric == metric && row->instance == instance);
    return row;
}

/* Of names without room there is one row for all: that of "others" thrice. */
static struct fleet_row *row_of(struct fleet *fleet, uint32_t hosts, uint32_t metric,
                                uint32_t instance)
{
    struct fleet_row *row;

    if (hosts == NAMES_OTHER || metric == NAMES_OTHER || instance == NAMES_OTHER)
        hosts = metric = instance = NAMES_OTHER;
    row = fleet_find_row(fleet, hosts, metric, instance);
    if (!row && fleet->table.count >= FLEET_ROWS_MAX - 1) {
        hosts = metric = instance = NAMES_OTHER;
        row = fleet_find_row(fleet, hosts, metric, instance);
    }
    if (row)
        return row;
    row = calloc(1, sizeof(*row));
    if (!row)
        return NULL;
    row->hosts = hosts;
    row->metric = metric;
    row->instance = instance;
    fleet->rows[fleet->table.count] = row;
    table_add(&fleet->table, &row->in_table,
              fleet_hash(fleet->table.seed, hosts, metric, instance));
    return row;
}

static struct text cut(struct text text)
{
    text = text_cut(text, FLEET_NAME_MAX);
    return text_take(&text, '\0');
}

struct fleet_row *fleet_row_of(struct fleet *fleet, struct text hosts, struct text metric,
                               struct text instance)
{
    return row_of(fleet, names_id(fleet->names, cut(hosts)), names_id(fleet->names, cut(metric)),
                  names_id(fleet->names, cut(instance)));
}

const struct fleet_row *fleet_find(const struct fleet *fleet, uint32_t hosts, struct text metric,
                                   uint32_t instance)
{
    const uint32_t id = names_find(fleet->names, metric);

    return id == NAMES_NONE ? NULL : fleet_find_row(fleet, hosts, id, instance);
}

void fleet_set_unit(struct fleet *fleet, struct fleet_row *row, struct text unit, bool is_counter)
{
    row->unit = names_id(fleet->names, cut(unit));
    row->is_counter = is_counter;
}

size_t fleet_rows(const struct fleet *fleet)
{
    return fleet->table.count;
}

const struct fleet_row *fleet_row(const struct fleet *fleet, size_t i)
{
    return fleet->rows[i];
}

const struct names *fleet_names(const struct fleet *fleet)
{
    return fleet->names;
}

const struct fleet_counts *fleet_counts(const struct fleet *fleet)
{
    return &fleet->counts;
}

/* ---- windows --------------------------------------------------------------------------------- */

struct fleet_window *fleet_window_of(struct fleet_row *row, int64_t number)
{
    struct fleet_window *window = &row->windows[(uint64_t)number % FLEET_WINDOWS];

    if (window->is_there && window->number > number)
        return NULL; /* what is so old is in the sums only */
    if (!window->is_there || window->number < number)
        *window = (struct fleet_window){
            .is_there = true, .number = number, .min = HUGE_VAL, .max = -HUGE_VAL};
    return window;
}

/* value x part / whole, of part <= whole. */
static uint64_t share(uint64_t value, int64_t part, int64_t whole)
{
    return (uint64_t)((unsigned __int128)value * (uint64_t)part / (uint64_t)whole);
}

/* What is in all windows is what there is, to the last one. */
static void spread(struct fleet_row *row, const struct fleet_point *point, int64_t now_ns)
{
    const int64_t length = point->end_ns - point->start_ns;
    const double rate =
        point->is_counter ? (double)point->value * 1e9 / (double)length : (double)point->value;
    uint64_t given = 0;

    for (int64_t from = point->start_ns, to; from < point->end_ns; from = to) {
        const int64_t number = from / FLEET_WINDOW_NS, begin = number * FLEET_WINDOW_NS;
        struct fleet_window *window = fleet_window_of(row, number);
        uint64_t passed;

        to = begin + FLEET_WINDOW_NS < point->end_ns ? begin + FLEET_WINDOW_NS : point->end_ns;
        passed = share(point->value, to - point->start_ns, length);
        if (window) {
            window->hosts += point->start_ns <= begin;
            window->elapsed_ns += (uint64_t)(to - from);
            window->increase += point->is_counter ? passed - given : 0;
            window->integral += point->is_counter ? 0 : (double)point->value * (double)(to - from);
            window->min = fmin(window->min, rate);
            window->max = fmax(window->max, rate);
            if (now_ns - point->start_ns > window->delay_ns)
                window->delay_ns = now_ns - point->start_ns;
        }
        given = passed;
    }
}

/* "redis-server[123]" -> "redis-server" */
static struct text without_number(struct text instance)
{
    size_t length = instance.length;

    if (length == 0 || instance.data[--length] != ']')
        return instance;
    while (length && isdigit((unsigned char)instance.data[length - 1]))
        length--;
    return length && instance.data[length - 1] == '[' ? (struct text){instance.data, length - 1}
                                                      : instance;
}

bool fleet_add(struct fleet *fleet, const struct fleet_point *given, int64_t now_ns)
{
    struct fleet_point point = *given;
    const uint32_t groups = groups_of(fleet, point.host = cut(point.host));
    uint32_t metric, instance;

    fleet->counts.points++;
    if (point.start_ns <= 0 || point.end_ns <= point.start_ns ||
        point.end_ns - point.start_ns > FLEET_INTERVAL_NS) {
        fleet->counts.refused++;
        return true;
    }
    if (point.end_ns > now_ns + AHEAD_NS) {
        point.start_ns -= point.end_ns - now_ns;
        point.end_ns = now_ns;
        fleet->counts.shifted++;
        if (point.start_ns <= 0)
            return true;
    }
    metric = names_id(fleet->names, cut(point.metric));
    instance = names_id(fleet->names, cut(without_number(point.instance)));
    for (size_t i = 0; i < fleet->group_count; i++) {
        const char *name = fleet->groups[i].name;
        struct fleet_row *row;

        if (!(groups >> i & 1))
            continue;
        row = row_of(fleet, names_id(fleet->names, *name ? text_of(name) : point.host), metric,
                     instance);
        if (!row)
            return false;
        if (row->samples++ == 0)
            fleet_set_unit(fleet, row, point.unit, point.is_counter);
        if (row->metric == NAMES_OTHER || row->is_counter != point.is_counter)
            continue; /* nothing to add up but that there was one */
        if (point.is_counter)
            row->increase += point.value;
        spread(row, &point, now_ns);
    }
    return true;
}

/* ---- showing --------------------------------------------------------------------------------- */

const struct fleet_window *fleet_shown(const struct fleet_row *row, int64_t now_ns)
{
    const int64_t oldest = now_ns / FLEET_WINDOW_NS - FLEET_WINDOWS;
    const struct fleet_window *shown = NULL;
    int64_t delay_ns = 0, end;

    for (size_t i = 0; i < FLEET_WINDOWS; i++) {
        const struct fleet_window *window = &row->windows[i];

        if (window->is_there && window->number > oldest && window->delay_ns > delay_ns)
            delay_ns = window->delay_ns;
    }
    end = (now_ns - delay_ns) / FLEET_WINDOW_NS; /* the first one that is not whole */
    for (size_t i = 0; i < FLEET_WINDOWS; i++) {
        const struct fleet_window *window = &row->windows[i];

        if (fleet_window_is_known(window) && window->number > oldest && window->number < end &&
            (!shown || window->number > shown->number))
            shown = window;
    }
    return shown && shown->number >= end - SHOWN_WINDOWS ? shown : NULL;
}
