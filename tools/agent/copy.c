/*
 * The pass over the rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "copy.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/hash.h"
#include "records.h"
#include "tools/rings/ring_back.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/provider_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Records of a ring are in the order of their times, but for those that were written late. */
#define COPY_LATE_NS INT64_C(2000000000)
#define COPY_PIECE   ((size_t)1 << 18) /* bytes that are written at once */

struct copy_record {
    int64_t time_ns;
    size_t at; /* in the bytes */
};

struct copy {
    const struct fetch_order *order;
    struct ring_clock clock;
    struct fetch_wanted *wanted; /* a hash table; id 0: this place is free */
    size_t mask;                 /* its places less one */
    int64_t from_ns, until_ns;   /* the window: CLOCK_REALTIME */
    /* what is copied */
    struct buffer bytes;
    struct copy_record *records;
    size_t count, records_room;
    bool is_starved, is_limited;
    /* of the ring that is read */
    size_t ring;
    int64_t oldest_ns; /* of its records so far */
    struct ring_entry last;
    char last_payload[RING_RECORD_MAX];
};

/* ---- what is wanted -------------------------------------------------------------------------- */

/* The place of that trace, or the one that it may have. */
static struct fetch_wanted *copy_place(const struct copy *copy, uint64_t id)
{
    size_t at = hash_mix(id) & copy->mask;

    while (copy->wanted[at].id && copy->wanted[at].id != id)
        at = (at + 1) & copy->mask;
    return &copy->wanted[at];
}

static bool copy_want_all(struct copy *copy)
{
    const struct fetch_order *order = copy->order;
    size_t places = 16;

    while (places < 2 * order->wanted_count)
        places *= 2;
    copy->wanted = calloc(places, sizeof(*copy->wanted));
    copy->mask = places - 1;
    for (size_t i = 0; i < order->wanted_count && copy->wanted; i++)
        *copy_place(copy, order->wanted[i].id) = order->wanted[i];
    return copy->wanted != NULL;
}

struct copy *copy_new(const struct fetch_order *order)
{
    struct copy *copy = calloc(1, sizeof(*copy));

    if (!copy)
        return NULL;
    copy->order = order;
    copy->clock = (struct ring_clock){INT64_MIN / 2, order->until_mono_ns, order->offset_ns};
    copy->from_ns = order->window.from_ns + order->offset_ns;
    copy->until_ns = order->window.until_ns + order->offset_ns;
    if (copy_want_all(copy))
        return copy;
    copy_free(copy);
    return NULL;
}

void copy_free(struct copy *copy)
{
    if (!copy)
        return;
    free(copy->wanted);
    buffer_free(&copy->bytes);
    free(copy->records);
    free(copy);
}

/* ---- record by record ------------------------------------------------------------------------ */

/* The lower half of its trace's id; 0: it is about no span. */
static uint64_t copy_trace_of(const struct ring_entry *entry)
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

static bool copy_reserve(struct copy *copy, size_t more)
{
    return buffer_reserve(&copy->bytes, more) &&
           ARRAY_FITS(copy->records, copy->records_room, copy->count);
}

/* Returns false to end the walk of this ring. */
static bool copy_add(struct copy *copy, const struct ring_entry *entry, int64_t time_ns)
{
    const struct records_record record = {entry->pid, entry->pid_ns, 0, (uint16_t)entry->event,
                                          (uint16_t)entry->length};
    const size_t size = sizeof(record) + records_padded(entry->length);

    if (copy->bytes.length + size > copy->order->max_bytes) {
        copy->is_limited = true;
        return false;
    }
    if (!copy_reserve(copy, size)) {
        copy->is_starved = true;
        return false;
    }
    copy->records[copy->count++] = (struct copy_record){time_ns, copy->bytes.length};
    memset(copy->bytes.data + copy->bytes.length + size - 8, 0, 8);
    memcpy(copy->bytes.data + copy->bytes.length, &record, sizeof(record));
    memcpy(copy->bytes.data + copy->bytes.length + sizeof(record), entry->payload, entry->length);
    copy->bytes.length += size;
    return true;
}

/*
 * The event's time. A record that is not ours, or cannot be read, has the time of the record after
 * it.
 */
static int64_t copy_time(struct copy *copy, const struct ring_entry *entry)
{
    struct event event;

    if (ring_event(entry, &copy->clock, &event) == DECODED)
        copy->oldest_ns = event.time_ns;
    return copy->oldest_ns;
}

static bool copy_of_window(struct copy *copy, const struct ring_entry *entry)
{
    const int64_t time_ns = copy_time(copy, entry);

    if (time_ns < copy->from_ns - COPY_LATE_NS)
        return false;
    if (time_ns < copy->from_ns || time_ns > copy->until_ns || !copy_trace_of(entry))
        return true;
    return copy_add(copy, entry, time_ns);
}

static bool copy_record(void *context, const struct ring_entry *entry, uint64_t at)
{
    struct copy *copy = context;
    const struct fetch_order *order = copy->order;
    const struct fetch_wanted *wanted;

    if (order->is_window)
        return copy_of_window(copy, entry);
    /* the oldest one's time is asked for at the end */
    copy->last = *entry;
    memcpy(copy->last_payload, entry->payload, entry->length);
    wanted = copy_place(copy, copy_trace_of(entry));
    if (!wanted->id ||
        (wanted->row && at < order->rows[(wanted->row - 1) * order->rings + copy->ring]))
        return true;
    return copy_add(copy, entry, copy_time(copy, entry));
}

/* ---- ring by ring ---------------------------------------------------------------------------- */

/* From when on a memory has all. */
struct copy_held {
    bool is_cut;
    int64_t from_ns;
};

static void copy_cut(struct copy_held *held, int64_t from_ns)
{
    if (!held->is_cut || from_ns > held->from_ns)
        held->from_ns = from_ns;
    held->is_cut = true;
}

/* damaged: as far as rings that a program has overwritten tell. */
static bool copy_ring(struct copy *copy, struct ring ring, struct copy_held *held,
                      struct copy_held *damaged, struct fetch_result *result)
{
    struct ring_back back;

    copy->oldest_ns = copy->order->until_mono_ns + copy->order->offset_ns;
    copy->last.payload = NULL;
    if (!ring_walk_back(ring, copy->order->ends[copy->ring], copy_record, copy, &back) ||
        copy->is_starved)
        return error_set(&result->error, "out of memory for what the rings have");
    if (copy->last.payload) {
        copy->last.payload = copy->last_payload;
        (void)copy_time(copy, &copy->last);
    }
    result->records += back.records;
    result->bytes += back.bytes;
    result->rings_damaged += back.is_damaged;
    if (back.is_damaged)
        copy_cut(damaged, copy->oldest_ns);
    else if (back.is_cut || copy->is_limited)
        copy_cut(held, copy->oldest_ns);
    return true;
}

/* Damage is its user's only: traces that have no record in a damaged memory are not incomplete. */
static bool copy_memory(struct copy *copy, const struct fetch_memory *wanted,
                        struct copy_held *held, struct fetch_result *result)
{
    const int64_t made_ns = (int64_t)wanted->known.made;
    struct copy_held damaged = {false, made_ns};
    const size_t count = copy->count;
    struct memory memory;
    bool is_well = true;

    *held = damaged;
    if (!memory_open_known(&memory, wanted->fd, &wanted->known, &result->error))
        return false;
    for (uint32_t cpu = 0; is_well && cpu < memory.size.cpus; cpu++, copy->ring++)
        is_well = copy_ring(copy, memory_ring(&memory, cpu), held, &damaged, result);
    memory_close(&memory);
    if (damaged.is_cut && (copy->order->is_window || copy->count > count))
        copy_cut(held, damaged.from_ns);
    return is_well;
}

/* ---- from when on there is all --------------------------------------------------------------- */

/* The newest of a user's memories that is older than that; NULL: there is none. */
static const struct fetch_memory *copy_older(const struct fetch_order *order, uint32_t user,
                                             uint64_t number)
{
    const struct fetch_memory *newest = NULL;

    for (size_t i = 0; i < order->memory_count; i++) {
        const struct fetch_memory *memory = &order->memories[i];

        if (memory->user == user && memory->number < number &&
            (!newest || memory->number > newest->number))
            newest = memory;
    }
    return newest;
}

/* One memory goes on where the one before was left. */
static int64_t copy_held_from(const struct fetch_order *order, const struct copy_held *held,
                              uint32_t user)
{
    const struct fetch_memory *memory = copy_older(order, user, UINT64_MAX), *older;

    while (!held[memory - order->memories].is_cut &&
           (older = copy_older(order, user, memory->number)) != NULL)
        memory = older;
    return held[memory - order->memories].from_ns;
}

static void copy_set_held_from(const struct fetch_order *order, const struct copy_held *held,
                               struct fetch_result *result)
{
    result->held_from_ns =
        order->memory_count ? INT64_MIN : order->begun_mono_ns + order->offset_ns;
    for (size_t i = 0; i < order->memory_count; i++) {
        const int64_t from_ns = copy_held_from(order, held, order->memories[i].user);

        if (from_ns > result->held_from_ns)
            result->held_from_ns = from_ns;
    }
}

/* As far as there is room beside what the rings have. */
static void copy_samples(struct copy *copy)
{
    const char *at = copy->order->samples;
    const char *const end = at + copy->order->sample_bytes;
    uint32_t length;

    for (bool has_room = true; has_room && at < end; at += length) {
        struct ring_entry sample = {.event = BLKIN_EVENT_METRIC};

        memcpy(&length, at, sizeof(length));
        at += sizeof(length);
        sample.payload = at;
        sample.length = length;
        has_room = copy_add(copy, &sample, copy_time(copy, &sample));
    }
}

bool copy_all(struct copy *copy, struct fetch_result *result)
{
    const struct fetch_order *order = copy->order;
    struct copy_held *held = calloc(order->memory_count + 1, sizeof(*held));
    bool is_well = held != NULL;

    if (!is_well)
        error_set(&result->error, "out of memory");
    for (size_t i = 0; is_well && i < order->memory_count; i++)
        is_well = copy_memory(copy, &order->memories[i], &held[i], result);
    if (is_well)
        copy_set_held_from(order, held, result);
    free(held);
    result->is_limited = copy->is_limited;
    result->bytes_kept = copy->bytes.length;
    result->records_kept = copy->count;
    copy_samples(copy);
    return is_well;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int copy_by_time(const void *left, const void *right)
{
    const struct copy_record *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->at > b->at ? -1 : 1; /* of a ring the newest is first */
}

bool copy_write(struct copy *copy, const char *path, struct fetch_result *result)
{
    const struct records_head head = {RECORDS_MARK, copy->clock.now_ns, copy->clock.offset_ns,
                                      copy->count};
    FILE *file = fopen(path, "we");

    if (copy->count)
        qsort(copy->records, copy->count, sizeof(*copy->records), copy_by_time);
    if (file) {
        (void)setvbuf(file, NULL, _IOFBF, COPY_PIECE); /* without memory for it as it is */
        (void)fwrite(&head, sizeof(head), 1, file);
        for (size_t i = 0; i < copy->count; i++) {
            const char *at = copy->bytes.data + copy->records[i].at;
            struct records_record record;

            memcpy(&record, at, sizeof(record));
            (void)fwrite(at, sizeof(record) + records_padded(record.length), 1, file);
        }
    }
    if (file && !(ferror(file) | fclose(file)))
        return true;
    return error_set(&result->error, "cannot write %s: %s", path, strerror(errno));
}
