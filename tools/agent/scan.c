/*
 * The walk over the rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "scan.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "tools/rings/ring_back.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/join.h"
#include "tracepoints/format/provider_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A ring has its records in the order of their times. A record may come late, by so much. */
#define SCAN_LATE_NS INT64_C(2000000000)

/* In the bytes of the records: followed by the payload, and padded to a multiple of 8. */
struct scan_head {
    uint32_t pid, pid_ns, event, length;
};

static size_t scan_padded(size_t length)
{
    return (length + 7) & ~(size_t)7;
}

struct scan {
    const struct scan_order *order;
    struct ring_clock clock;
    struct scan_wanted *wanted; /* a hash table; id 0: this place is free */
    size_t mask;                /* its places less one */
    int64_t from_ns, until_ns;  /* the window: CLOCK_REALTIME */
    struct scan_records *found;
    bool is_starved, is_limited;
    /* of the ring that is read */
    size_t ring;
    int64_t oldest_ns; /* of its records so far */
    struct ring_entry last;
    char last_payload[RING_RECORD_MAX];
};

/* ---- what is wanted -------------------------------------------------------------------------- */

/* The place of that trace, or the one that it may have. */
static struct scan_wanted *scan_place(const struct scan *scan, uint64_t id)
{
    size_t at = hash_mix(id) & scan->mask;

    while (scan->wanted[at].id && scan->wanted[at].id != id)
        at = (at + 1) & scan->mask;
    return &scan->wanted[at];
}

static bool scan_want_all(struct scan *scan)
{
    const struct scan_order *order = scan->order;
    size_t places = 16;

    while (places < 2 * order->wanted_count)
        places *= 2;
    scan->wanted = calloc(places, sizeof(*scan->wanted));
    scan->mask = places - 1;
    for (size_t i = 0; i < order->wanted_count && scan->wanted; i++)
        *scan_place(scan, order->wanted[i].id) = order->wanted[i];
    return scan->wanted != NULL;
}

/* ---- record by record ------------------------------------------------------------------------ */

/* The lower half of its trace's id; 0: it is about no span. */
static uint64_t scan_trace_of(const struct ring_entry *entry)
{
    uint64_t id = 0;
    size_t at = 0; /* the first member of all events of spans */

    if (entry->event >= RING_ORIGINAL && entry->event < RING_ORIGINAL + BLKIN_ORIGINAL_EVENTS)
        at = offsetof(struct ring_original, trace_id);
    else if (entry->event >= BLKIN_EVENTS || entry->event == BLKIN_EVENT_SLOW ||
             entry->event == BLKIN_EVENT_PROCESS || entry->event == BLKIN_EVENT_METRIC)
        return 0;
    if (entry->length >= at + sizeof(id))
        memcpy(&id, entry->payload + at, sizeof(id));
    return id;
}

/* Returns false to end the walk of this ring. */
static bool scan_add(struct scan *scan, const struct ring_entry *entry, int64_t time_ns)
{
    const struct scan_head head = {entry->pid, entry->pid_ns, entry->event,
                                   (uint32_t)entry->length};
    const size_t size = sizeof(head) + scan_padded(head.length);
    struct scan_records *found = scan->found;

    if (found->bytes.length + size > scan->order->max_bytes) {
        scan->is_limited = true;
        return false;
    }
    if (!buffer_reserve(&found->bytes, size) ||
        !ARRAY_FITS(found->list, found->room, found->count)) {
        scan->is_starved = true;
        return false;
    }
    found->list[found->count++] = (struct scan_record){time_ns, found->bytes.length};
    buffer_put(&found->bytes, (const char *)&head, sizeof(head));
    memcpy(found->bytes.data + found->bytes.length, entry->payload, entry->length);
    found->bytes.length += size - sizeof(head);
    return true;
}

/*
 * The event's time. A record that is not ours, or cannot be read, has the time of the record after
 * it.
 */
static int64_t scan_time(struct scan *scan, const struct ring_entry *entry)
{
    struct event event;

    if (ring_event(entry, &scan->clock, &event) == DECODED)
        scan->oldest_ns = event.time_ns;
    return scan->oldest_ns;
}

static bool scan_is_half(const struct ring_entry *entry)
{
    return memmem(entry->payload, entry->length, JOIN_TAG, sizeof(JOIN_TAG) - 1) != NULL;
}

static bool scan_of_window(struct scan *scan, const struct ring_entry *entry)
{
    const int64_t time_ns = scan_time(scan, entry);

    if (time_ns < scan->from_ns - SCAN_LATE_NS)
        return false;
    if (time_ns < scan->from_ns || time_ns > scan->until_ns || !scan_trace_of(entry) ||
        (scan->order->is_look && !scan_is_half(entry)))
        return true;
    return scan_add(scan, entry, time_ns);
}

static bool scan_record(void *context, const struct ring_entry *entry, uint64_t at)
{
    struct scan *scan = context;
    const struct scan_order *order = scan->order;
    const struct scan_wanted *wanted;

    if (order->is_window)
        return scan_of_window(scan, entry);
    /* the oldest one's time is asked for at the end */
    scan->last = *entry;
    memcpy(scan->last_payload, entry->payload, entry->length);
    wanted = scan_place(scan, scan_trace_of(entry));
    if (!wanted->id ||
        (wanted->row && at < order->rows[(wanted->row - 1) * order->rings + scan->ring]))
        return true;
    return scan_add(scan, entry, scan_time(scan, entry));
}

/* ---- ring by ring ---------------------------------------------------------------------------- */

/* From when on a memory has all. */
struct scan_held {
    bool is_cut;
    int64_t from_ns;
};

static void scan_cut(struct scan_held *held, int64_t from_ns)
{
    if (!held->is_cut || from_ns > held->from_ns)
        held->from_ns = from_ns;
    held->is_cut = true;
}

/* damaged: as far as rings that a program has overwritten tell. */
static bool scan_ring(struct scan *scan, struct ring ring, struct scan_held *held,
                      struct scan_held *damaged, struct scan_result *result)
{
    struct ring_back back;

    scan->oldest_ns = scan->order->until_mono_ns + scan->order->offset_ns;
    scan->last.payload = NULL;
    if (!ring_walk_back(ring, scan->order->ends[scan->ring], scan_record, scan, &back) ||
        scan->is_starved)
        return error_set(&result->error, "out of memory for what the rings have");
    if (scan->last.payload) {
        scan->last.payload = scan->last_payload;
        (void)scan_time(scan, &scan->last);
    }
    result->records += back.records;
    result->bytes += back.bytes;
    result->rings_damaged += back.is_damaged;
    if (back.is_damaged)
        scan_cut(damaged, scan->oldest_ns);
    else if (back.is_cut || scan->is_limited)
        scan_cut(held, scan->oldest_ns);
    return true;
}

/* Damage is its user's only: traces that have no record in a damaged memory are not incomplete. */
static bool scan_memory(struct scan *scan, struct scan_memory *wanted, struct scan_held *held,
                        struct scan_result *result)
{
    const int fd = wanted->fd; /* the mapping takes it */
    const int64_t made_ns = (int64_t)wanted->known.made;
    struct scan_held damaged = {false, made_ns};
    const size_t count = scan->found->count;
    struct memory memory;
    bool is_well = true;

    *held = damaged;
    wanted->fd = -1;
    if (!memory_open_known(&memory, fd, &wanted->known, &result->error))
        return false;
    for (uint32_t cpu = 0; is_well && cpu < memory.size.cpus; cpu++, scan->ring++)
        is_well = scan_ring(scan, memory_ring(&memory, cpu), held, &damaged, result);
    memory_close(&memory);
    if (damaged.is_cut && (scan->order->is_window || scan->found->count > count))
        scan_cut(held, damaged.from_ns);
    return is_well;
}

/* ---- from when on there is all --------------------------------------------------------------- */

/* The newest of a user's memories that is older than that; NULL: there is none. */
static const struct scan_memory *scan_older(const struct scan_order *order, uint32_t user,
                                            uint64_t number)
{
    const struct scan_memory *newest = NULL;

    for (size_t i = 0; i < order->memory_count; i++) {
        const struct scan_memory *memory = &order->memories[i];

        if (memory->user == user && memory->number < number &&
            (!newest || memory->number > newest->number))
            newest = memory;
    }
    return newest;
}

/* One memory goes on where the one before was left. */
static int64_t scan_held_from(const struct scan_order *order, const struct scan_held *held,
                              uint32_t user)
{
    const struct scan_memory *memory = scan_older(order, user, UINT64_MAX), *older;

    while (!held[memory - order->memories].is_cut &&
           (older = scan_older(order, user, memory->number)) != NULL)
        memory = older;
    return held[memory - order->memories].from_ns;
}

static void scan_set_held_from(const struct scan_order *order, const struct scan_held *held,
                               struct scan_result *result)
{
    result->held_from_ns =
        order->memory_count ? INT64_MIN : order->begun_mono_ns + order->offset_ns;
    for (size_t i = 0; i < order->memory_count; i++) {
        const int64_t from_ns = scan_held_from(order, held, order->memories[i].user);

        if (from_ns > result->held_from_ns)
            result->held_from_ns = from_ns;
    }
}

/* As far as there is room beside what the rings have. */
static void scan_add_samples(struct scan *scan)
{
    const char *at = scan->order->samples.data;
    const char *const end = at + scan->order->samples.length;
    uint32_t length;

    for (bool has_room = true; has_room && at < end; at += length) {
        struct ring_entry sample = {.event = BLKIN_EVENT_METRIC};

        memcpy(&length, at, sizeof(length));
        at += sizeof(length);
        sample.payload = at;
        sample.length = length;
        has_room = scan_add(scan, &sample, scan_time(scan, &sample));
    }
}

/* ---- the records that were found ------------------------------------------------------------- */

static int scan_by_time(const void *left, const void *right)
{
    const struct scan_record *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->at > b->at ? -1 : 1; /* of a ring the newest is first */
}

struct ring_entry scan_entry(const struct scan_records *records, size_t index)
{
    const char *at = records->bytes.data + records->list[index].at;
    struct scan_head head;

    memcpy(&head, at, sizeof(head));
    return (struct ring_entry){head.event, head.pid, at + sizeof(head), head.length, head.pid_ns};
}

void scan_records_free(struct scan_records *records)
{
    buffer_free(&records->bytes);
    free(records->list);
    *records = (struct scan_records){.count = 0};
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int64_t scan_cpu_ns(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool scan_rings(struct scan *scan, struct scan_result *result)
{
    const struct scan_order *order = scan->order;
    struct scan_held *held = calloc(order->memory_count + 1, sizeof(*held));
    bool is_well = held && scan_want_all(scan);

    if (!is_well)
        error_set(&result->error, "out of memory");
    for (size_t i = 0; is_well && i < order->memory_count; i++)
        is_well = scan_memory(scan, &order->memories[i], &held[i], result);
    if (is_well)
        scan_set_held_from(order, held, result);
    free(held);
    free(scan->wanted);
    return is_well;
}

bool scan_run(const struct scan_order *order, struct scan_records *found,
              struct scan_result *result)
{
    const int64_t begun_ns = scan_cpu_ns();
    struct scan scan = {.order = order,
                        .found = found,
                        .clock = {INT64_MIN / 2, order->until_mono_ns, order->offset_ns},
                        .from_ns = order->window.from_ns + order->offset_ns,
                        .until_ns = order->window.until_ns + order->offset_ns};
    const bool is_well = scan_rings(&scan, result);

    result->is_limited = scan.is_limited;
    result->bytes_found = found->bytes.length;
    result->records_found = found->count;
    if (is_well)
        scan_add_samples(&scan);
    if (found->count)
        qsort(found->list, found->count, sizeof(*found->list), scan_by_time);
    result->cpu_ns = scan_cpu_ns() - begun_ns;
    return is_well;
}
