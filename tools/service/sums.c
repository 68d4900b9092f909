/*
 * The account of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void set_value(struct counts *counts, const struct counter *counter, uint64_t value)
{
    memcpy((char *)counts + counter->offset, &value, sizeof(value));
}

json_t *sums_json(const struct counts *counts)
{
    json_t *object = json_object();

    for (size_t i = 0; i < counters_count && object; i++) {
        json_t *value = json_integer((json_int_t)counter_value(&counters[i], counts));

        if (json_object_set_new(object, counters[i].name, value) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static void read_counters(struct counts *counts, const json_t *object)
{
    memset(counts, 0, sizeof(*counts));
    for (size_t i = 0; i < counters_count; i++) {
        const json_int_t value = json_integer_value(json_object_get(object, counters[i].name));

        set_value(counts, &counters[i], value < 0 ? 0 : (uint64_t)value);
    }
}

bool sums_read_run(const char *path, struct sums_run *run)
{
    json_error_t ignored;
    json_t *json = json_load_file(path, 0, &ignored);
    const json_t *object = json_object_get(json, "counters");
    const char *started = json_string_value(json_object_get(json, "started"));
    const char *state = json_string_value(json_object_get(json, "state"));
    const bool is_one = json_is_object(object) && started && state;

    if (is_one) {
        read_counters(&run->counts, object);
        run->has_ended = strcmp(state, "ended") == 0;
        (void)snprintf(run->id, sizeof(run->id), "%lld@%s",
                       (long long)json_integer_value(json_object_get(json, "pid")), started);
    }
    json_decref(json);
    return is_one;
}

/* The first of a section is its total; in no other section is a total. */
static bool begins_sum(size_t i)
{
    const enum section section = counters[i].section;

    return (section == SECTION_EVENTS || section == SECTION_SPANS) &&
           (i == 0 || counters[i - 1].section != section);
}

void sums_end_run(struct counts *counts)
{
    size_t total = 0;

    for (size_t i = 0; i < counters_count; i++) {
        if (begins_sum(i))
            total = i;
        if (counters[i].kind != GAUGE)
            continue;
        if (counters[i].section == counters[total].section)
            set_value(counts, &counters[total],
                      counter_value(&counters[total], counts) -
                          counter_value(&counters[i], counts));
        set_value(counts, &counters[i], 0);
    }
}

void sums_add(struct counts *sums, const struct counts *counts)
{
    for (size_t i = 0; i < counters_count; i++)
        set_value(sums, &counters[i],
                  counter_value(&counters[i], sums) + counter_value(&counters[i], counts));
    if (counts->input.trace_time_ns > sums->input.trace_time_ns)
        sums->input.trace_time_ns = counts->input.trace_time_ns;
}

bool sums_load(struct sums *sums, const char *path)
{
    json_error_t ignored;
    json_t *json = json_load_file(path, 0, &ignored);
    const json_t *object = json_object_get(json, "counters");
    const char *last = json_string_value(json_object_get(json, "last"));
    const bool is_one = json_is_object(object) && last;

    memset(sums, 0, sizeof(*sums));
    if (is_one) {
        read_counters(&sums->counts, object);
        (void)snprintf(sums->last, sizeof(sums->last), "%s", last);
    }
    json_decref(json);
    return is_one || access(path, F_OK) != 0;
}

bool sums_save(const struct sums *sums, const char *path, struct error *error)
{
    char beside[4200];
    json_t *json = json_pack("{ss, so}", "last", sums->last, "counters", sums_json(&sums->counts));
    int fd;
    bool is_written;

    (void)snprintf(beside, sizeof(beside), "%s.new", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    is_written = fd >= 0 && json && json_dumpfd(json, fd, JSON_INDENT(2)) == 0;
    if (fd >= 0 && close(fd) != 0)
        is_written = false;
    is_written = is_written && rename(beside, path) == 0;
    if (!is_written)
        error_set(error, "cannot write %s: %s", path, errno ? strerror(errno) : "out of memory");
    json_decref(json);
    return is_written;
}

bool sums_fold(struct sums *sums, const struct sums_run *run, const char *path, struct error *error)
{
    struct counts counts = run->counts;

    if (strcmp(sums->last, run->id) == 0)
        return true;
    sums_end_run(&counts);
    sums_add(&sums->counts, &counts);
    (void)snprintf(sums->last, sizeof(sums->last), "%s", run->id);
    return sums_save(sums, path, error);
}
