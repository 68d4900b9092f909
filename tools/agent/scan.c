/* SPDX-License-Identifier: BSD-2-Clause */
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

/* Stands before the payload of each record in scan_records.bytes. Padding follows, to a multiple of
 * 8 bytes. */
struct scan_head {
    uint32_t pid, pid_namespace, event, length;
};

static size_t scan_padded(size_t length)
{
    return (length + 7) & ~(size_t)7;
}

struct scan_ring {
    struct ring_back back;
    const struct scan_memory *memory;
    struct scan_parts *parts; /* NULL: this scan reads everything */
    uint32_t cpu;
    bool is_stopped;   /* max_bytes was reached before or in the last walk of this ring */
    int64_t oldest_ns; /* the time of the oldest record read so far */
};

struct scan {
    const struct scan_order *order;
    struct ring_clock clock;
    struct scan_wanted *wanted; /* a hash table; id 0: a free slot */
    size_t mask;                /* number of slots, less one */
    bool *has_records;          /* for each slot and memory: the memory has records of the trace */
    int64_t begin_ns; /* the begin_ns of the order, or the earlier begin of a found record */
    int64_t from_ns, until_ns; /* the window: CLOCK_REALTIME */
    struct scan_records *found;
    bool is_starved, is_limited;
    struct memory *mapped; /* in the order of scan_order.memories */
    size_t mapped_count;
    struct scan_ring *rings; /* the rings of all memories */
    size_t ring_count;
    struct scan_ring *ring; /* the ring that is walked now */
    struct scan_part part;  /* the part that is read now */
    struct ring_back_copy copy;
};

/* ---- wanted traces --------------------------------------------------------------------------- */

/* Returns the slot of the trace, or the free slot for the trace. */
static struct scan_wanted *scan_slot(const struct scan *scan, uint64_t id)
{
    size_t at = hash_mix(id) & scan->mask;

    while (scan->wanted[at].id && scan->wanted[at].id != id)
        at = (at + 1) & scan->mask;
    return &scan->wanted[at];
}

static bool *scan_has_records(const struct scan *scan, const struct scan_wanted *slot,
                              size_t memory)
{
    return &scan->has_records[(size_t)(slot - scan->wanted) * scan->order->memory_count + memory];
}

static bool scan_want_all(struct scan *scan)
{
    const struct scan_order *order = scan->order;
    size_t slots = 16;

    while (slots < 2 * order->wanted_count)
        slots *= 2;
    scan->wanted = calloc(slots, sizeof(*scan->wanted));
    scan->has_records = calloc(slots, order->memory_count + 1);
    scan->mask = slots - 1;
    scan->begin_ns = order->begin_ns;
    for (size_t i = 0; i < order->wanted_count && scan->wanted; i++)
        *scan_slot(scan, order->wanted[i].id) = order->wanted[i];
    return scan->wanted && scan->has_records;
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Returns the lower half of the trace's id; 0: the record belongs to no trace. */
static uint64_t scan_trace_of(const struct ring_entry *entry)
{
    uint64_t id = 0;
    size_t at = 0; /* the id is the first member of all events of spans */

    if (entry->event >= RING_ORIGINAL && entry->event < RING_ORIGINAL + BLKIN_ORIGINAL_EVENTS)
        at = offsetof(struct ring_original, trace_id);
    else if (entry->event >= BLKIN_EVENTS || entry->event == BLKIN_EVENT_SLOW ||
             entry->event == BLKIN_EVENT_PROCESS || entry->event == BLKIN_EVENT_METRIC)
        return 0;
    if (entry->length >= at + sizeof(id))
        memcpy(&id, entry->payload + at, sizeof(id));
    return id;
}

/* Copies the record. Returns false, which ends the walk of this ring, if max_bytes is reached or
 * memory ran out. */
static bool scan_add(struct scan *scan, const struct ring_entry *entry, int64_t time_ns)
{
    const struct scan_head head = {entry->pid, entry->pid_namespace, entry->event,
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

/* Returns the record's time. A record that cannot be decoded gets the time of the record after it
 * in the ring. */
static int64_t scan_time(struct scan_ring *ring, const struct event *event, enum decoded decoded)
{
    if (decoded == DECODED)
        ring->oldest_ns = event->time_ns;
    return ring->oldest_ns;
}

static bool scan_is_half(const struct ring_entry *entry)
{
    return memmem(entry->payload, entry->length, JOIN_TAG, sizeof(JOIN_TAG) - 1) != NULL;
}

/* Adds the record if its time is in the window. An earlier record does not end the walk, as records
 * are not in the order of their times: a thread may be stopped before it writes its record. */
static bool scan_of_window(struct scan *scan, const struct ring_entry *entry)
{
    struct event event;
    const enum decoded decoded = ring_event(entry, &scan->clock, &event);
    const int64_t time_ns = scan_time(scan->ring, &event, decoded);

    if (time_ns < scan->from_ns || time_ns > scan->until_ns || !scan_trace_of(entry) ||
        (scan->order->is_look && !scan_is_half(entry)))
        return true;
    return scan_add(scan, entry, time_ns);
}

/* Returns true if an earlier scan of this trace has found the record. */
static bool scan_was_given(const struct scan *scan, const struct scan_wanted *wanted, uint64_t at,
                           int64_t time_ns)
{
    const struct places *places = scan->order->places;
    const struct scan_memory *memory = scan->ring->memory;
    const uint32_t cpu = scan->ring->cpu;

    if (!wanted->until) {
        time_ns -= scan->order->offset_ns;
        return time_ns >= wanted->sent_from_ns && time_ns < wanted->sent_until_ns;
    }
    return at < places_end(places, wanted->until, memory->user, memory->number, cpu) &&
           (!wanted->from ||
            at >= places_end(places, wanted->from, memory->user, memory->number, cpu));
}

/* Moves scan->begin_ns back if the event's span began earlier. */
static void scan_extend(struct scan *scan, const struct event *event)
{
    int64_t begin_ns = event->time_ns - scan->order->offset_ns - event->age_ns;

    if (event->kind == EVENT_SPAN &&
        __builtin_sub_overflow(begin_ns, event->duration_ns, &begin_ns))
        begin_ns = INT64_MIN;
    if (begin_ns < scan->begin_ns)
        scan->begin_ns = begin_ns;
}

static bool scan_record(void *context, const struct ring_entry *entry, uint64_t at)
{
    struct scan *scan = context;
    struct scan_wanted *wanted;
    struct event event;
    enum decoded decoded;
    int64_t time_ns;
    uint64_t id;

    if (scan->order->is_window)
        return scan_of_window(scan, entry);
    id = scan_trace_of(entry);
    scan_filter_add(&scan->part.filter, hash_mix(id));
    wanted = scan_slot(scan, id);
    if (!wanted->id)
        return true;
    *scan_has_records(scan, wanted, (size_t)(scan->ring->memory - scan->order->memories)) = true;
    decoded = ring_event(entry, &scan->clock, &event);
    time_ns = scan_time(scan->ring, &event, decoded);
    if (decoded == DECODED)
        scan_extend(scan, &event);
    if (scan_was_given(scan, wanted, at, time_ns))
        return true;
    wanted->is_found = true;
    return scan_add(scan, entry, time_ns);
}

/* ---- one ring -------------------------------------------------------------------------------- */

static bool scan_map(struct scan *scan, struct error *error)
{
    const struct scan_order *order = scan->order;
    size_t rings = 0;

    for (size_t i = 0; i < order->memory_count; i++)
        rings += order->memories[i].known.size.cpus;
    scan->mapped = calloc(order->memory_count + 1, sizeof(*scan->mapped));
    scan->rings = calloc(rings + 1, sizeof(*scan->rings));
    if (!scan->mapped || !scan->rings)
        return error_set(error, "out of memory");
    for (size_t i = 0; i < order->memory_count; i++) {
        struct scan_memory *of = &order->memories[i];
        const int fd = of->fd; /* memory_open_known() takes the descriptor, also if it fails */

        of->fd = -1;
        if (!memory_open_known(&scan->mapped[i], fd, &of->known, error))
            return false;
        scan->mapped_count++;
        for (uint32_t cpu = 0; cpu < of->known.size.cpus; cpu++) {
            struct scan_ring *ring = &scan->rings[scan->ring_count++];

            *ring =
                (struct scan_ring){.back = ring_back_begin(memory_ring(&scan->mapped[i], cpu),
                                                           places_end(order->places, order->place,
                                                                      of->user, of->number, cpu)),
                                   .memory = of,
                                   .cpu = cpu,
                                   .oldest_ns = order->until_mono_ns + order->offset_ns};
            if (order->index)
                ring->parts = scan_index_ring(order->index, of->user, of->number, cpu, &ring->back);
        }
    }
    if (order->index)
        scan_index_sweep(order->index);
    return true;
}

/* Passes over the part if none of the wanted traces has a record there. Returns false if the scan
 * has to read the part: a wanted trace may have a record there, or programs overwrite it soon. */
static bool scan_skip(const struct scan *scan, struct scan_ring *ring, const struct scan_part *part)
{
    const struct scan_order *order = scan->order;

    if (part->from < ring_back_oldest(&ring->back))
        return false;
    for (size_t i = 0; i < order->wanted_count; i++) {
        if (scan_filter_has(&part->filter, hash_mix(order->wanted[i].id)))
            return false;
    }
    ring->back.at = part->from;
    ring->oldest_ns = part->oldest_ns + order->offset_ns;
    return true;
}

/* Reads one piece of the ring, which does not cross the begin or the end of a known part. */
static void scan_piece(struct scan *scan, struct scan_ring *ring, uint64_t until)
{
    const struct scan_part *known =
        ring->parts ? scan_parts_find(ring->parts, ring->back.at) : NULL;
    const uint64_t to = ring->back.at;
    const bool is_new = !known || known->to < to;
    const uint64_t stop = !known ? 0 : is_new ? known->to : known->from;
    struct event event;

    if (!is_new && scan_skip(scan, ring, known))
        return;
    scan->part.filter = (struct scan_filter){{0}};
    ring_walk_piece(&ring->back, &scan->copy, stop > until ? stop : until, scan_record, scan);
    if (scan->copy.last.payload)
        (void)scan_time(ring, &event, ring_event(&scan->copy.last, &scan->clock, &event));
    if (!ring->parts || !is_new || ring->back.at == to)
        return;
    scan->part.from = ring->back.at;
    scan->part.to = to;
    scan->part.oldest_ns = ring->oldest_ns - scan->order->offset_ns;
    scan_parts_add(ring->parts, &scan->part);
}

/* Walks the ring back to the place; 0: to the oldest record. */
static void scan_ring(struct scan *scan, struct scan_ring *ring, uint64_t place)
{
    const struct scan_memory *memory = ring->memory;
    const uint64_t until =
        places_end(scan->order->places, place, memory->user, memory->number, ring->cpu);

    scan->ring = ring;
    while (ring->back.at > until && !ring->back.is_ended)
        scan_piece(scan, ring, until);
    ring->is_stopped = scan->is_limited;
}

/* Walks all rings. Sets the result's reach_ns, and returns the place at which the walks ended. */
static uint64_t scan_walk(struct scan *scan, struct scan_result *result)
{
    const struct scan_order *order = scan->order;
    uint64_t place;
    int64_t begin_ns;

    do {
        begin_ns = scan->begin_ns;
        if (__builtin_sub_overflow(begin_ns, order->early_ns, &result->reach_ns))
            result->reach_ns = INT64_MIN;
        place = places_before(order->places, result->reach_ns);
        for (size_t i = 0; i < scan->ring_count; i++)
            scan_ring(scan, &scan->rings[i], place);
    } while (place && scan->begin_ns < begin_ns && !scan->is_limited && !scan->is_starved);
    if (!place)
        result->reach_ns = INT64_MIN;
    return place;
}

struct scan_held {
    bool is_cut;             /* records before from_ns were lost or not read */
    int64_t from_ns;         /* CLOCK_MONOTONIC: the memory has all records from then on */
    int64_t damaged_from_ns; /* from_ns of the damaged rings; INT64_MIN: no ring is damaged */
};

static void scan_cut(struct scan_held *held, int64_t from_ns)
{
    if (!held->is_cut || from_ns > held->from_ns)
        held->from_ns = from_ns;
    held->is_cut = true;
}

/* Counts the records of a memory, and returns the time from which it has all records. */
static struct scan_held scan_memory_held(const struct scan *scan, size_t memory, uint64_t place,
                                         struct scan_result *result)
{
    const struct scan_memory *of = &scan->order->memories[memory];
    struct scan_held held = {false, (int64_t)of->known.created_ns, INT64_MIN};
    const int64_t missed_ns = memory_missed_until(&scan->mapped[memory]);

    if (missed_ns > held.from_ns) /* programs write it: it may be wrong */
        scan_cut(&held,
                 missed_ns < scan->order->until_mono_ns ? missed_ns : scan->order->until_mono_ns);
    for (size_t i = 0; i < scan->ring_count; i++) {
        const struct scan_ring *ring = &scan->rings[i];
        const int64_t oldest_ns = ring->oldest_ns - scan->order->offset_ns;

        if (ring->memory != of)
            continue;
        result->records += ring->back.records;
        result->bytes += ring->back.bytes;
        result->rings_damaged += ring->back.is_damaged;
        if (ring->back.is_damaged)
            held.damaged_from_ns =
                oldest_ns > held.damaged_from_ns ? oldest_ns : held.damaged_from_ns;
        else if (ring->is_stopped) /* a record of this time was left out */
            scan_cut(&held, oldest_ns + 1);
        else if (ring->back.at >
                 places_end(scan->order->places, place, of->user, of->number, ring->cpu))
            scan_cut(&held, oldest_ns);
    }
    return held;
}

/* ---- the time that the rings cover ----------------------------------------------------------- */

/* Returns the user's newest memory that is older than that number; NULL: none. */
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

/* Returns the time from which a user's memories have all records. Each memory continues the
 * memory before it. */
static const struct scan_held *scan_held_from(const struct scan_order *order,
                                              const struct scan_held *held, uint32_t user)
{
    const struct scan_memory *memory = scan_older(order, user, UINT64_MAX), *older;

    while (!held[memory - order->memories].is_cut &&
           (older = scan_older(order, user, memory->number)) != NULL)
        memory = older;
    return &held[memory - order->memories];
}

/* Judges each trace by the memories of the users that have records of the trace, and by the damage
 * of these memories. If max_bytes has ended the walk, any memory may have more records. */
static void scan_judge_traces(const struct scan *scan, const struct scan_held *held)
{
    const struct scan_order *order = scan->order;

    for (size_t i = 0; i < order->wanted_count; i++) {
        struct scan_wanted *wanted = &order->wanted[i];
        const struct scan_wanted *slot = scan_slot(scan, wanted->id);

        wanted->is_found = slot->is_found;
        wanted->held_from_ns = INT64_MIN;
        for (size_t k = 0; k < order->memory_count; k++) {
            const int64_t from_ns = scan_held_from(order, held, order->memories[k].user)->from_ns;
            const int64_t whole_ns =
                from_ns > held[k].damaged_from_ns ? from_ns : held[k].damaged_from_ns;

            if ((*scan_has_records(scan, slot, k) || scan->is_limited) &&
                whole_ns > wanted->held_from_ns)
                wanted->held_from_ns = whole_ns;
        }
    }
}

/* Sets the result's held_from_ns, which is for windows, and for traces without records here. A user
 * whose rings still have everything does not count: before its first memory, the user recorded
 * nothing. */
static void scan_set_held_from(const struct scan_order *order, const struct scan_held *held,
                               struct scan_result *result)
{
    int64_t first_ns = order->begun_mono_ns;

    result->held_from_ns = INT64_MIN;
    for (size_t i = 0; i < order->memory_count; i++) {
        const struct scan_held *whole = scan_held_from(order, held, order->memories[i].user);

        if (whole->is_cut && whole->from_ns > result->held_from_ns)
            result->held_from_ns = whole->from_ns;
        if (order->is_window && held[i].damaged_from_ns > result->held_from_ns)
            result->held_from_ns = held[i].damaged_from_ns;
        if (whole->from_ns < first_ns)
            first_ns = whole->from_ns;
    }
    if (first_ns > result->held_from_ns)
        result->held_from_ns = first_ns;
}

/* Adds the samples of the host, while max_bytes allows. Records of rings were added before. */
static void scan_add_samples(struct scan *scan)
{
    const char *at = scan->order->samples.data;
    const char *const end = at + scan->order->samples.length;
    uint32_t length;

    for (bool has_room = true; has_room && at < end; at += length) {
        struct ring_entry sample = {.event = BLKIN_EVENT_METRIC};
        struct event event = {.time_ns = 0};

        memcpy(&length, at, sizeof(length));
        at += sizeof(length);
        sample.payload = at;
        sample.length = length;
        has_room = ring_event(&sample, &scan->clock, &event) != DECODED ||
                   scan_add(scan, &sample, event.time_ns);
    }
}

/* ---- found records --------------------------------------------------------------------------- */

static int scan_by_time(const void *left, const void *right)
{
    const struct scan_record *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->at > b->at ? -1 : 1; /* a walk copies the newest record of a ring first */
}

struct ring_entry scan_entry(const struct scan_records *records, size_t index)
{
    const char *at = records->bytes.data + records->list[index].at;
    struct scan_head head;

    memcpy(&head, at, sizeof(head));
    return (struct ring_entry){head.event, head.pid, at + sizeof(head), head.length,
                               head.pid_namespace};
}

void scan_records_free(struct scan_records *records)
{
    buffer_free(&records->bytes);
    free(records->list);
    *records = (struct scan_records){.count = 0};
}

/* ---- the whole scan -------------------------------------------------------------------------- */

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
    is_well = is_well && scan_map(scan, &result->error);
    if (is_well) {
        result->from_place = scan_walk(scan, result);
        is_well = !scan->is_starved ||
                  error_set(&result->error, "out of memory for the records of the rings");
    }
    for (size_t i = 0; i < order->memory_count && is_well; i++)
        held[i] = scan_memory_held(scan, i, result->from_place, result);
    if (is_well) {
        scan_judge_traces(scan, held);
        scan_set_held_from(order, held, result);
    }
    for (size_t i = 0; i < scan->mapped_count; i++)
        memory_close(&scan->mapped[i]);
    free(scan->mapped);
    free(scan->rings);
    free(scan->wanted);
    free(scan->has_records);
    free(held);
    return is_well;
}

bool scan_run(const struct scan_order *order, struct scan_records *found,
              struct scan_result *result)
{
    const int64_t begun_ns = scan_cpu_ns();
    struct scan *scan = calloc(1, sizeof(*scan));
    bool is_well;

    if (!scan)
        return error_set(&result->error, "out of memory");
    scan->order = order;
    scan->found = found;
    scan->clock = (struct ring_clock){INT64_MIN / 2, order->until_mono_ns, order->offset_ns};
    scan->from_ns = order->window.from_ns + order->offset_ns;
    scan->until_ns = order->window.until_ns + order->offset_ns;
    is_well = scan_rings(scan, result);
    result->is_limited = scan->is_limited;
    result->bytes_found = found->bytes.length;
    result->records_found = found->count;
    if (is_well)
        scan_add_samples(scan);
    if (found->count)
        qsort(found->list, found->count, sizeof(*found->list), scan_by_time);
    free(scan);
    result->cpu_ns = scan_cpu_ns() - begun_ns;
    return is_well;
}
