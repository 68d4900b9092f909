/*
 * The order of the task that fetches, as bytes: its numbers and names, then what it points to.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fetch_head {
    char session[256], host_session[256], folder[4096];
    uint64_t number, max_bytes;
    int64_t ring_mono_ns;
    size_t requests, windows, traces;
};

/* What is known of a trace that was fetched before. */
struct fetch_known {
    struct trace_id id;
    int64_t until_ns, until_mono_ns;
};

struct fetch_writing {
    FILE *file;
    size_t traces;
};

static void fetch_write_known(void *context, struct fetched_trace *trace)
{
    struct fetch_writing *writing = context;
    const struct fetch_known known = {trace->id, trace->until_ns, trace->until_mono_ns};

    (void)fwrite(&known, sizeof(known), 1, writing->file);
    writing->traces++;
}

char *fetch_order_bytes(const struct fetch_order *order, size_t *size)
{
    struct fetch_head head = {.number = order->number,
                              .max_bytes = order->max_bytes,
                              .ring_mono_ns = order->ring_mono_ns};
    const struct fetched_window *windows = fetched_windows(order->fetched, &head.windows);
    char *bytes = NULL;
    struct fetch_writing writing = {open_memstream(&bytes, size), 0};

    if (!writing.file)
        return NULL;
    (void)snprintf(head.session, sizeof(head.session), "%s", order->session);
    (void)snprintf(head.host_session, sizeof(head.host_session), "%s",
                   order->host_session ? order->host_session : "");
    (void)snprintf(head.folder, sizeof(head.folder), "%s", order->folder);
    (void)fwrite(&head, sizeof(head), 1, writing.file);
    for (const struct request *r = order->requests; r; r = r->next) {
        (void)fwrite(r, sizeof(*r), 1, writing.file);
        (void)fwrite(r->traces, sizeof(*r->traces), r->count, writing.file);
        head.requests++;
    }
    (void)fwrite(windows, sizeof(*windows), head.windows, writing.file);
    fetched_each(order->fetched, fetch_write_known, &writing);
    head.traces = writing.traces;
    if (ferror(writing.file) | fclose(writing.file)) {
        free(bytes);
        return NULL;
    }
    memcpy(bytes, &head, sizeof(head));
    return bytes;
}

static struct request *fetch_read_request(const char **at)
{
    struct request *request = malloc(sizeof(*request));

    if (!request)
        return NULL;
    memcpy(request, *at, sizeof(*request));
    *at += sizeof(*request);
    request->next = NULL;
    request->traces = calloc(request->count + 1, sizeof(*request->traces));
    if (!request->traces) {
        free(request);
        return NULL;
    }
    memcpy(request->traces, *at, request->count * sizeof(*request->traces));
    *at += request->count * sizeof(*request->traces);
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

bool fetch_order_read(const char *bytes, struct fetch_order *order)
{
    const struct fetch_head *head = (const void *)bytes;
    const char *at = bytes + sizeof(*head);
    struct fetched *fetched = fetched_new();
    struct fetched_window window;
    struct fetch_known known;

    *order = (struct fetch_order){.session = head->session,
                                  .host_session = head->host_session[0] ? head->host_session : NULL,
                                  .folder = head->folder,
                                  .number = head->number,
                                  .max_bytes = head->max_bytes,
                                  .ring_mono_ns = head->ring_mono_ns,
                                  .requests = fetch_read_requests(&at, head->requests),
                                  .fetched = fetched};
    if (!fetched || (head->requests && !order->requests))
        return false;
    for (size_t i = 0; i < head->windows; i++, at += sizeof(window)) {
        memcpy(&window, at, sizeof(window));
        fetched_note_window(fetched, window);
    }
    for (size_t i = 0; i < head->traces; i++, at += sizeof(known)) {
        memcpy(&known, at, sizeof(known));
        fetched_note(fetched, known.id, known.until_ns, known.until_mono_ns);
    }
    return true;
}
