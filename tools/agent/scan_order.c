/*
 * Makes the order of a scan: duplicates the memories' descriptors, collects the wanted traces and
 * the sent spans, and copies the host's samples.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "scan_order.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The scan also takes the samples of this time before the first trace, because they have the first
 * values and the names of counters. */
#define SCAN_SAMPLES_LEAD_NS INT64_C(10000000000)

/* ---- memories -------------------------------------------------------------------------------- */

/* Returns false with errno set. */
static bool scan_list_memories(struct scan_order *order)
{
    size_t count = 0;

    for (const struct held *held = order->first_held; held; held = held->next)
        count++;
    order->memories = calloc(count + 1, sizeof(*order->memories));
    for (const struct held *held = order->first_held; held && order->memories; held = held->next) {
        const int fd = fcntl(held->memory.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

        if (fd < 0)
            return false;
        order->memories[order->memory_count++] =
            (struct scan_memory){fd, held->user, held->number, held->memory};
    }
    return order->memories != NULL;
}

/* ---- wanted traces --------------------------------------------------------------------------- */

/* Lets the scan skip records of spans that were sent. */
static void scan_skip_sent(struct scan_order *order, const struct collected_trace *before,
                           struct scan_wanted *wanted)
{
    const struct places *places = order->places;

    if (places_has(places, before->place) &&
        (!before->from_place || places_has(places, before->from_place))) {
        wanted->from = before->from_place;
        wanted->until = before->place;
    } else if (before->until_mono_ns) {
        wanted->sent_from_ns = before->from_mono_ns;
        wanted->sent_until_ns = before->until_mono_ns;
    }
}

static void scan_want(struct scan_order *order, const struct request *request,
                      const struct wanted *wanted)
{
    const struct collected_trace *before = collected_find(order->collected, wanted->id);
    struct scan_wanted *made = &order->wanted[order->wanted_count++];

    *made = (struct scan_wanted){.id = wanted->id.low, .begin_ns = request_begin(request, wanted)};
    if (before)
        scan_skip_sent(order, before, made);
    if (made->begin_ns < order->begin_ns)
        order->begin_ns = made->begin_ns;
}

/* Returns false when out of memory. */
static bool scan_order_want_all(struct scan_order *order)
{
    const struct request *requests = order->requests;

    order->wanted = calloc(requests_traces(requests) + 1, sizeof(*order->wanted));
    if (!order->wanted)
        return false;
    order->begin_ns = INT64_MAX;
    for (const struct request *r = requests; r; r = r->next)
        for (size_t i = 0; i < r->count; i++)
            scan_want(order, r, &r->traces[i]);
    order->is_window = requests && requests->last_ms > 0;
    if (order->is_window) {
        order->is_look = requests->is_look;
        order->window = requests_window(requests);
        order->begin_ns = order->window.from_ns;
    }
    return true;
}

/* ---- the filter of spans: wanted traces, sent spans ------------------------------------------ */

static void scan_add_filter(struct scan_order *order, const struct trace_id *id, int64_t from_ns,
                            int64_t until_ns, const char *why)
{
    order->is_starved |= !selection_add(order->selection, id, from_ns, until_ns, why);
}

static void scan_add_traces(struct scan_order *order)
{
    for (const struct request *r = order->requests; r; r = r->next)
        for (size_t i = 0; i < r->count; i++)
            scan_add_filter(order, &r->traces[i].id, 0, 0,
                            r->traces[i].why[0] ? r->traces[i].why : "kept");
}

static void scan_add_windows(struct scan_order *order)
{
    const int64_t offset_ns = order->offset_ns;
    char by_hand[WHY_MAX + 1];

    for (const struct request *r = order->requests; r && r->last_ms > 0; r = r->next) {
        const struct request_window window = request_window(r);
        const bool is_in_s = r->last_ms % 1000 == 0;

        (void)snprintf(by_hand, sizeof(by_hand), "blkin keep --last=%" PRId64 "%s",
                       is_in_s ? r->last_ms / 1000 : r->last_ms, is_in_s ? "s" : "ms");
        scan_add_filter(order, NULL, window.from_ns + offset_ns, window.until_ns + offset_ns,
                        r->why[0] ? r->why : by_hand);
    }
}

/* Excludes sent spans, which would be sent again. */
static void scan_add_sent(struct scan_order *order)
{
    const int64_t offset_ns = order->offset_ns;
    const struct collected *collected = order->collected;
    const struct collected_trace *trace;
    size_t count;
    const struct collected_window *windows = collected_windows(collected, &count);

    for (size_t i = 0; i < count; i++)
        scan_add_filter(order, NULL, windows[i].from_ns + offset_ns,
                        windows[i].until_ns + offset_ns, NULL);
    if (!order->is_window)
        return;
    collected_for_each(trace, collected)
    {
        if (trace->until_mono_ns > 0)
            scan_add_filter(order, &trace->id, 0, trace->until_mono_ns + offset_ns, NULL);
    }
}

/* Returns false when out of memory. */
static bool scan_make_selection(struct scan_order *order)
{
    const struct request *first = order->requests;

    order->selection = selection_new();
    if (!order->selection)
        return false;
    if (order->is_window)
        scan_add_windows(order);
    else
        scan_add_traces(order);
    if (first && !request_is_list(first))
        scan_add_sent(order);
    return !order->is_starved;
}

/* ---- the order ------------------------------------------------------------------------------- */

static void scan_add_sample(void *context, const char *payload, size_t length)
{
    struct buffer *samples = context;
    const uint32_t bytes = (uint32_t)length;

    if (!buffer_reserve(samples, sizeof(bytes) + length))
        return;
    buffer_put(samples, (const char *)&bytes, sizeof(bytes));
    buffer_put(samples, payload, length);
}

static void scan_order_add_samples(struct scan_order *order)
{
    const int64_t from_ns =
        order->begin_ns > INT64_MIN ? order->begin_ns - SCAN_SAMPLES_LEAD_NS : INT64_MIN;

    (void)sampler_read(order->sampler, 0, from_ns, scan_add_sample, &order->samples);
}

bool scan_order_make(struct scan_order *order)
{
    const bool is_made =
        scan_list_memories(order) && scan_order_want_all(order) && scan_make_selection(order);

    if (is_made)
        scan_order_add_samples(order);
    return is_made;
}

void scan_order_free(struct scan_order *order)
{
    for (size_t i = 0; i < order->memory_count; i++)
        if (order->memories[i].fd >= 0)
            (void)close(order->memories[i].fd);
    free(order->memories);
    free(order->wanted);
    buffer_free(&order->samples);
    selection_free(order->selection);
    *order = (struct scan_order){.max_bytes = 0};
}
