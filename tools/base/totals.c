/* SPDX-License-Identifier: BSD-2-Clause */
#include "totals.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/file.h"
#include "say.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the totals of a service ----------------------------------------------------------------- */

static uint64_t total_value(const struct total *total, const void *own)
{
    uint64_t value;

    memcpy(&value, (const char *)own + total->offset, sizeof(value));
    return value;
}

/* ---- the file -------------------------------------------------------------------------------- */

json_t *totals_own_json(const struct totals_table *table, const void *own)
{
    json_t *object = json_object();

    for (size_t i = 0; object && i < table->count; i++) {
        if (json_object_set_new(object, table->own[i].name,
                                json_integer((json_int_t)total_value(&table->own[i], own))) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

json_t *totals_json(const struct counts *sinks, const struct totals_table *table, const void *own)
{
    json_t *json = totals_own_json(table, own);
    json_t *more = json_pack("{so}", "counters", counts_json(sinks));

    if (!json || !more || json_object_update(json, more) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(more);
    return json;
}

bool totals_read(const json_t *json, struct counts *sinks, const struct totals_table *table,
                 void *own)
{
    const json_t *saved = json_object_get(json, "counters");
    const bool is_whole = json_is_object(saved);

    memset(sinks, 0, sizeof(*sinks));
    for (size_t i = 0; i < table->count; i++) {
        const json_t *member = is_whole ? json_object_get(json, table->own[i].name) : NULL;
        const uint64_t value = (uint64_t)json_integer_value(member);

        memcpy((char *)own + table->own[i].offset, &value, sizeof(value));
    }
    counts_read(saved, sinks);
    return is_whole;
}

char *json_text(const json_t *json, size_t *length)
{
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;

    *length = text ? strlen(text) : 0;
    return text;
}

static size_t json_read_piece(void *piece, size_t size, void *file)
{
    return fread(piece, 1, size, file);
}

json_t *json_read(const char *path)
{
    GUARD_FILE FILE *file = fopen(path, "re");

    return file ? json_load_callback(json_read_piece, file, 0, NULL) : NULL;
}

/* ---- for Prometheus -------------------------------------------------------------------------- */

void totals_own_print(struct printer *printer, const struct totals_table *table, const void *own)
{
    for (size_t i = 0; i < table->count; i++) {
        char name[96];

        (void)snprintf(name, sizeof(name), "blkin_%s_%s_total", table->service, table->own[i].name);
        print_metric(printer, name, "counter", table->own[i].help,
                     total_value(&table->own[i], own));
    }
}

void totals_say(const struct counts *sinks, const struct totals_table *table, const void *own)
{
    char line[COUNTS_LINE_MAX], *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    counts_line(sinks, LINE_WHOLE, line);
    for (size_t i = 0; file && i < table->count; i++) {
        const uint64_t value = total_value(&table->own[i], own);

        if (value)
            (void)fprintf(file, "; %s: %" PRIu64, table->own[i].name, value);
    }
    if (file && fclose(file) == 0)
        say_account(BK1002, "all runs so far: %s%s", line, text);
    free(text);
    if (!counts_add_up(sinks))
        say_account(BK1003, "the account does not add up: this is a bug of BlkKin");
}

/* ---- the accounts of readers ----------------------------------------------------------------- */

static void counter_set(const struct counter *counter, struct counts *counts, uint64_t value)
{
    memcpy((char *)counts + counter->offset, &value, sizeof(value));
}

static struct mark settled_at(const json_t *object)
{
    return (struct mark){
        .at = {json_integer_value(json_object_get(object, "time_ns")),
               (uint64_t)json_integer_value(json_object_get(object, "events"))},
        .sent = (uint64_t)json_integer_value(json_object_get(object, "sent")),
    };
}

void counts_read(const json_t *json, struct counts *counts)
{
    for (size_t i = 0; i < counters_count; i++)
        counter_set(&counters[i], counts,
                    (uint64_t)json_integer_value(json_object_get(json, counters[i].name)));
}

bool reader_account_read(const char *path, struct reader_account *account)
{
    json_t *json = json_load_file(path, 0, NULL);
    const json_t *values = json_object_get(json, "counters");
    const char *state = json_string_value(json_object_get(json, "state"));
    const bool is_whole = values && state;

    if (is_whole) {
        *account =
            (struct reader_account){.events_ns = json_time_in(json, "events_as_of"),
                                    .pid = (long)json_integer_value(json_object_get(json, "pid")),
                                    .has_ended = strcmp(state, "ended") == 0};
        counts_read(values, &account->counts);
        account->counts.input.trace_time_ns = json_time_in(json, "trace_time");
        account->settled = settled_at(json_object_get(json, "settled"));
    }
    json_decref(json);
    return is_whole;
}

json_t *reader_statistics(const char *path)
{
    char asked[4096 + sizeof(".asked")];
    GUARD_FD int fd = -1;

    (void)snprintf(asked, sizeof(asked), "%s.asked", path);
    fd = open(asked, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        (void)futimens(fd, NULL);
    return json_load_file(path, JSON_ALLOW_NUL, NULL);
}

void counts_add(struct counts *sum, const struct counts *part)
{
    const int64_t time_ns = part->input.trace_time_ns;
    int64_t *earliest = &sum->input.trace_time_ns;

    for (size_t i = 0; i < counters_count; i++)
        counter_set(&counters[i], sum,
                    counter_value(&counters[i], sum) + counter_value(&counters[i], part));
    if (time_ns && (*earliest == 0 || time_ns < *earliest))
        *earliest = time_ns;
    sum->output.spool.in_use |= sum->output.spool.spans != 0;
}

/* Spans that the next run does not find have left the spool after the last account, with an unknown
 * result. */
void counts_follow(struct counts *sum, const struct counts *part)
{
    const uint64_t left = sum->output.spool.waiting;
    const uint64_t found = part->output.spool.found;
    const uint64_t same = left < found ? left : found;

    counts_add(sum, part);
    sum->output.spool.spans -= same;
    sum->output.spool.found -= same;
    sum->output.spool.waiting -= left;
    sum->output.spool.unknown += left - same;
}

void counts_hand_over(struct counts *counts)
{
    const uint64_t in_spool = counts->output.spool.waiting;

    counts->output.spans -= counts->output.waiting + counts->output.held;
    counts->input.rules.begins -= counts->input.rules.open;
    counts->input.join.halves -= counts->input.join.waiting;
    /* after a kill, the next run may read these events again, or they may still arrive */
    counts->core.events_missing += counts->core.events_awaited;
    counts->core.events_unsure += counts->core.events_awaited;
    for (size_t i = 0; i < counters_count; i++) {
        if (counters[i].kind & METRIC_GAUGE)
            counter_set(&counters[i], counts, 0);
    }
    counts->output.spool.waiting = in_spool;
}

uint64_t counts_close(struct counts *counts)
{
    const uint64_t waited = counts->output.waiting;

    counts_hand_over(counts);
    counts->output.spans += waited;
    counts->output.outcome[OUTCOME_UNDELIVERED] += waited;
    counts->input.trace_time_ns = 0;
    return waited;
}
