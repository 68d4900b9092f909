/*
 * The order of the task that fetches, as bytes: its numbers and folder, then what it points to.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetch_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fetch_head {
    struct fetch_order order; /* the pointers are of the other process */
    char folder[4096];
    size_t requests, windows, traces, rows;
};

/* What is known of a trace that was fetched before. */
struct fetch_known {
    struct trace_id id;
    int64_t until_mono_ns;
    uint64_t row; /* from 1; 0: only the time is known */
};

struct fetch_writing {
    FILE *file;
    const struct fetch_order *order;
    const struct places *places;
    const struct held *first;
    uint64_t *row_places; /* the place that each row is of */
    size_t traces, rows, room;
};

/* From 1; 0: the place is forgotten. */
static uint64_t fetch_row(struct fetch_writing *writing, uint64_t place)
{
    uint64_t *list, end;
    size_t row = 0;

    while (row < writing->rows && writing->row_places[row] != place)
        row++;
    if (row < writing->rows)
        return row + 1;
    if (!writing->first || !places_find(writing->places, place, writing->first, 0, &end))
        return 0;
    list = reallocarray(writing->row_places, row + 1, sizeof(*list));
    if (!list)
        return 0;
    writing->row_places = list;
    list[writing->rows++] = place;
    return row + 1;
}

static void fetch_write_known(void *context, struct fetched_trace *trace)
{
    struct fetch_writing *writing = context;
    const struct fetch_known known = {trace->id, trace->until_mono_ns,
                                      fetch_row(writing, trace->place)};

    (void)fwrite(&known, sizeof(known), 1, writing->file);
    writing->traces++;
}

static void fetch_write_rows(struct fetch_writing *writing)
{
    for (size_t row = 0; row < writing->rows; row++) {
        for (const struct held *held = writing->first; held; held = held->next) {
            for (uint32_t cpu = 0; cpu < held->memory.size.cpus; cpu++) {
                uint64_t end = 0;

                (void)places_find(writing->places, writing->row_places[row], held, cpu, &end);
                (void)fwrite(&end, sizeof(end), 1, writing->file);
            }
        }
    }
}

/* What is read by numbers of 8 bytes comes first. */
static void fetch_write(struct fetch_writing *writing, struct fetch_head *head)
{
    const struct fetch_order *order = writing->order;
    const struct fetched_window *windows = fetched_windows(order->fetched, &head->windows);
    FILE *file = writing->file;

    (void)fwrite(head, sizeof(*head), 1, file);
    (void)fwrite(order->ends, sizeof(*order->ends), order->rings, file);
    (void)fwrite(order->memories, sizeof(*order->memories), order->memory_count, file);
    (void)fwrite(windows, sizeof(*windows), head->windows, file);
    fetched_each(order->fetched, fetch_write_known, writing);
    fetch_write_rows(writing);
    if (order->foreign_bytes)
        (void)fwrite(order->foreign, 1, order->foreign_bytes, file);
    for (const struct request *r = order->requests; r; r = r->next) {
        (void)fwrite(r, sizeof(*r), 1, file);
        (void)fwrite(r->traces, sizeof(*r->traces), r->count, file);
        head->requests++;
    }
    head->traces = writing->traces;
    head->rows = writing->rows;
}

char *fetch_order_bytes(const struct fetch_order *order, const struct places *places,
                        const struct held *first, size_t *size)
{
    struct fetch_head head = {.order = *order};
    char *bytes = NULL;
    struct fetch_writing writing = {
        .file = open_memstream(&bytes, size), .order = order, .places = places, .first = first};

    if (!writing.file)
        return NULL;
    (void)snprintf(head.folder, sizeof(head.folder), "%s", order->folder);
    fetch_write(&writing, &head);
    free(writing.row_places);
    if (ferror(writing.file) | fclose(writing.file)) {
        free(bytes);
        return NULL;
    }
    memcpy(bytes, &head, sizeof(head));
    return bytes;
}

/* ---- in the task ----------------------------------------------------------------------------- */

/* An array of the order; *at is after it. */
static const void *fetch_take(const char **at, size_t count, size_t size)
{
    const void *array = *at;

    *at += count * size;
    return array;
}

static struct request *fetch_read_request(const char **at)
{
    struct request *request = malloc(sizeof(*request));

    if (!request)
        return NULL;
    memcpy(request, fetch_take(at, 1, sizeof(*request)), sizeof(*request));
    request->next = NULL;
    request->traces = calloc(request->count + 1, sizeof(*request->traces));
    if (!request->traces) {
        free(request);
        return NULL;
    }
    memcpy(request->traces, fetch_take(at, request->count, sizeof(*request->traces)),
           request->count * sizeof(*request->traces));
    return request;
}

/* The list; *at is after it. NULL: there is none, or out of memory. */
static struct request *fetch_read_requests(const char **at, size_t count)
{
    struct request *list = NULL, **end = &list;

    for (size_t i = 0; i < count; i++) {
        *end = fetch_read_request(at);
        if (!*end) {
            requests_free(list);
            return NULL;
        }
        end = &(*end)->next;
    }
    return list;
}

static void fetch_read_known(const char **at, const struct fetch_head *head,
                             struct fetched *fetched)
{
    for (size_t i = 0; i < head->windows; i++) {
        struct fetched_window window;

        memcpy(&window, fetch_take(at, 1, sizeof(window)), sizeof(window));
        fetched_note_window(fetched, window);
    }
    for (size_t i = 0; i < head->traces; i++) {
        struct fetch_known known;

        memcpy(&known, fetch_take(at, 1, sizeof(known)), sizeof(known));
        fetched_note(fetched, known.id, known.until_mono_ns, known.row);
    }
}

bool fetch_order_read(const char *bytes, struct fetch_order *order)
{
    const struct fetch_head *head = (const void *)bytes;
    const char *at = bytes + sizeof(*head);
    struct fetched *fetched = fetched_new();

    if (!fetched)
        return false;
    fetched_keep_all(fetched);
    *order = head->order;
    order->folder = head->folder;
    order->fetched = fetched;
    order->ends = fetch_take(&at, order->rings, sizeof(*order->ends));
    order->memories = fetch_take(&at, order->memory_count, sizeof(*order->memories));
    fetch_read_known(&at, head, fetched);
    order->rows = fetch_take(&at, head->rows * order->rings, sizeof(*order->rows));
    order->foreign = fetch_take(&at, 1, order->foreign_bytes);
    order->requests = fetch_read_requests(&at, head->requests);
    if (head->requests && !order->requests) {
        fetched_free(fetched);
        return false;
    }
    return true;
}

void fetch_order_free(struct fetch_order *order)
{
    fetched_free((struct fetched *)(uintptr_t)order->fetched);
    requests_free((struct request *)(uintptr_t)order->requests);
}
