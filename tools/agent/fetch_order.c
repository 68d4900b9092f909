/*
 * The order of the task that fetches, as bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetch_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of before the first trace, so that a counter has a value to begin with, and its name. */
#define FETCH_SAMPLES_LEAD_NS INT64_C(10000000000)

struct fetch_writing {
    FILE *file;
    struct fetch_order order;
    const struct fetch_source *source;
    struct fetch_wanted *wanted; /* of all requests, one after the other */
    uint64_t *row_places;        /* the place that each row is of */
};

/* ---- how far rings were read ----------------------------------------------------------------- */

/* From 1; 0: the place is forgotten. */
static uint64_t fetch_row(struct fetch_writing *writing, uint64_t place)
{
    const struct fetch_source *source = writing->source;
    uint64_t end;
    size_t row = 0;

    while (row < writing->order.row_count && writing->row_places[row] != place)
        row++;
    if (row < writing->order.row_count)
        return row + 1;
    if (!source->first || !places_find(source->places, place, source->first, 0, &end))
        return 0;
    writing->row_places[writing->order.row_count++] = place;
    return row + 1;
}

static void fetch_write_ends(struct fetch_writing *writing, uint64_t place)
{
    const struct fetch_source *source = writing->source;

    writing->order.rings = 0;
    for (const struct held *held = source->first; held; held = held->next) {
        for (uint32_t cpu = 0; cpu < held->memory.size.cpus; cpu++) {
            uint64_t end = 0;

            (void)places_find(source->places, place, held, cpu, &end);
            (void)fwrite(&end, sizeof(end), 1, writing->file);
            writing->order.rings++;
        }
    }
}

/* ---- which traces ---------------------------------------------------------------------------- */

static void fetch_want(struct fetch_writing *writing, const struct wanted *wanted)
{
    const struct fetched_trace *before = fetched_find(writing->source->fetched, wanted->id);

    writing->wanted[writing->order.wanted_count++] =
        (struct fetch_wanted){wanted->id.low, before ? fetch_row(writing, before->place) : 0};
    if (!wanted->begin_ns)
        writing->order.first_ns = INT64_MIN;
    else if (wanted->begin_ns < writing->order.first_ns)
        writing->order.first_ns = wanted->begin_ns;
}

/* Returns false when out of memory. */
static bool fetch_want_all(struct fetch_writing *writing)
{
    const struct request *requests = writing->source->requests;
    struct fetch_order *order = &writing->order;
    const size_t count = requests_traces(requests);

    writing->wanted = calloc(count + 1, sizeof(*writing->wanted));
    writing->row_places = calloc(count + 1, sizeof(*writing->row_places));
    if (!writing->wanted || !writing->row_places)
        return false;
    order->first_ns = INT64_MAX;
    for (const struct request *r = requests; r; r = r->next)
        for (size_t i = 0; i < r->count; i++)
            fetch_want(writing, &r->traces[i]);
    order->is_window = requests && requests->last_ms > 0;
    if (order->is_window) {
        order->window = requests_window(requests);
        order->first_ns = order->window.from_ns + order->offset_ns;
    }
    return true;
}

/* ---- the file "only" ------------------------------------------------------------------------- */

/* "ID FROM UNTIL WHY": what was sent before is not sent again, and where it is known how far the
 * rings were read before, it is not there. */
static void fetch_print_trace(const struct fetch_writing *writing, const struct wanted *wanted,
                              uint64_t row)
{
    const struct fetched_trace *before = fetched_find(writing->source->fetched, wanted->id);
    const int64_t from_ns = before && before->until_mono_ns && !row
                                ? before->until_mono_ns + writing->order.offset_ns
                                : 0;
    char text[TRACE_ID_TEXT];

    trace_id_text(wanted->id, text);
    (void)fprintf(writing->file, "%s %" PRId64 " 0 %s\n", text, from_ns,
                  wanted->why[0] ? wanted->why : "kept");
}

static void fetch_print_traces(const struct fetch_writing *writing)
{
    const struct fetch_wanted *known = writing->wanted;

    for (const struct request *r = writing->source->requests; r; r = r->next)
        for (size_t i = 0; i < r->count; i++)
            fetch_print_trace(writing, &r->traces[i], known++->row);
}

/* All of that time. */
static void fetch_print_window(const struct fetch_writing *writing, const struct request *request)
{
    const struct request_window window = request_window(request);
    const int64_t offset_ns = writing->order.offset_ns;
    char by_hand[WHY_MAX + 1];

    (void)snprintf(by_hand, sizeof(by_hand), "blkin keep --last %" PRId64 "ms", request->last_ms);
    (void)fprintf(writing->file, "* %" PRId64 " %" PRId64 " %s\n", window.from_ns + offset_ns,
                  window.until_ns + offset_ns, request->why[0] ? request->why : by_hand);
}

static void fetch_print_sent_trace(void *context, struct fetched_trace *trace)
{
    const struct fetch_writing *writing = context;
    char text[TRACE_ID_TEXT];

    trace_id_text(trace->id, text);
    if (trace->until_mono_ns > 0)
        (void)fprintf(writing->file, "-%s 0 %" PRId64 "\n", text,
                      trace->until_mono_ns + writing->order.offset_ns);
}

/* What all of a time would send once more. */
static void fetch_print_sent(struct fetch_writing *writing)
{
    const int64_t offset_ns = writing->order.offset_ns;
    const struct fetched *fetched = writing->source->fetched;
    size_t count;
    const struct fetched_window *windows = fetched_windows(fetched, &count);

    for (size_t i = 0; i < count; i++)
        (void)fprintf(writing->file, "-* %" PRId64 " %" PRId64 "\n", windows[i].from_ns + offset_ns,
                      windows[i].until_ns + offset_ns);
    if (writing->order.is_window)
        fetched_each(fetched, fetch_print_sent_trace, writing);
}

static void fetch_print_only(struct fetch_writing *writing)
{
    const struct request *first = writing->source->requests;

    (void)fprintf(writing->file, "clock %" PRId64 "\n", writing->order.offset_ns);
    for (const struct request *r = first; r && r->last_ms > 0; r = r->next)
        fetch_print_window(writing, r);
    if (!writing->order.is_window)
        fetch_print_traces(writing);
    if (first && !first->service[0]) /* which is only read for its list */
        fetch_print_sent(writing);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void fetch_print_requests(const struct fetch_writing *writing)
{
    json_t *list = json_array();

    for (const struct request *r = writing->source->requests; r; r = r->next)
        (void)json_array_append_new(list, request_json(r));
    (void)fputs("\"requests\": ", writing->file);
    (void)json_dumpf(list, writing->file, JSON_COMPACT);
    (void)fputs("}\n", writing->file);
    json_decref(list);
}

static void fetch_write_sample(void *context, const char *payload, size_t length)
{
    const struct fetch_writing *writing = context;
    const uint32_t bytes = (uint32_t)length;

    (void)fwrite(&bytes, sizeof(bytes), 1, writing->file);
    (void)fwrite(payload, 1, length, writing->file);
}

static void fetch_write_samples(struct fetch_writing *writing)
{
    const struct fetch_order *order = &writing->order;
    const int64_t from_ns = order->first_ns > INT64_MIN
                                ? order->first_ns - order->offset_ns - FETCH_SAMPLES_LEAD_NS
                                : INT64_MIN;

    (void)sampler_read(writing->source->sampler, 0, from_ns, fetch_write_sample, writing);
}

static size_t fetch_length(const struct fetch_writing *writing, long *at)
{
    const long before = *at;

    *at = ftell(writing->file);
    return (size_t)(*at - before);
}

/* What is read by numbers of 8 bytes comes first. */
static void fetch_write(struct fetch_writing *writing)
{
    const struct fetch_source *source = writing->source;
    struct fetch_order *order = &writing->order;
    long at;

    (void)fwrite(order, sizeof(*order), 1, writing->file);
    (void)fwrite(order->memories, sizeof(*order->memories), order->memory_count, writing->file);
    (void)fwrite(writing->wanted, sizeof(*order->wanted), order->wanted_count, writing->file);
    fetch_write_ends(writing, source->place);
    for (size_t row = 0; row < order->row_count; row++)
        fetch_write_ends(writing, writing->row_places[row]);
    if (order->foreign_bytes)
        (void)fwrite(source->foreign, 1, order->foreign_bytes, writing->file);
    at = ftell(writing->file);
    fetch_write_samples(writing);
    order->sample_bytes = fetch_length(writing, &at);
    fetch_print_only(writing);
    order->only_bytes = fetch_length(writing, &at);
    fetch_print_requests(writing);
    order->requests_bytes = fetch_length(writing, &at);
}

char *fetch_order_bytes(const struct fetch_order *order, const struct fetch_source *source,
                        size_t *size)
{
    char *bytes = NULL;
    struct fetch_writing writing = {
        .file = open_memstream(&bytes, size), .order = *order, .source = source};
    bool is_whole = writing.file && fetch_want_all(&writing);

    if (is_whole)
        fetch_write(&writing);
    if (writing.file)
        is_whole = !(ferror(writing.file) | fclose(writing.file)) && is_whole;
    free(writing.wanted);
    free(writing.row_places);
    if (is_whole) {
        memcpy(bytes, &writing.order, sizeof(writing.order));
        return bytes;
    }
    free(bytes);
    return NULL;
}

/* ---- in the task ----------------------------------------------------------------------------- */

/* What is at *at, which is after it then. */
static const void *fetch_take(const char **at, size_t count, size_t size)
{
    const void *array = *at;

    *at += count * size;
    return array;
}

void fetch_order_read(const char *bytes, struct fetch_order *order)
{
    const char *at = bytes + sizeof(*order);

    memcpy(order, bytes, sizeof(*order));
    order->memories = fetch_take(&at, order->memory_count, sizeof(*order->memories));
    order->wanted = fetch_take(&at, order->wanted_count, sizeof(*order->wanted));
    order->ends = fetch_take(&at, order->rings, sizeof(*order->ends));
    order->rows = fetch_take(&at, order->row_count * order->rings, sizeof(*order->rows));
    order->foreign = fetch_take(&at, order->foreign_bytes, 1);
    order->samples = fetch_take(&at, order->sample_bytes, 1);
    order->only = fetch_take(&at, order->only_bytes, 1);
    order->requests = fetch_take(&at, order->requests_bytes, 1);
}
