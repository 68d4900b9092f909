/*
 * The traces of one partition.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "partition.h"

#include "babeltrace-plugin/base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_PLACES 256U
#define SLAB_BYTES   (UINT32_C(1) << 20)

/* ---- places ---------------------------------------------------------------------------------- */

void place_write(const struct place *place, char text[PLACE_TEXT_MAX])
{
    (void)snprintf(text, PLACE_TEXT_MAX, "blkin1 %" PRId64 " %" PRId64 " %" PRId64,
                   place->read_back, place->read_to, place->time_ms);
}

struct place place_read(int64_t watermark, struct text text)
{
    struct place place = {watermark, watermark, watermark, 0};
    char copy[PLACE_TEXT_MAX] = "";
    int64_t read_back, read_to, time_ms = 0;

    if (text.length >= sizeof(copy))
        return place;
    (void)text_copy(copy, text);
    if (sscanf(copy, "blkin1 %20" SCNd64 " %20" SCNd64 " %20" SCNd64, &read_back, &read_to,
               &time_ms) >= 2 &&
        read_back >= 0 && read_back <= watermark && read_to >= watermark) {
        place.read_back = read_back;
        place.read_to = read_to;
        place.time_ms = time_ms > 0 ? time_ms : 0;
    }
    return place;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct place place_cut(const struct place *place, int64_t low, int64_t cut)
{
    struct place left = *place;

    left.read_to = cut;
    left.watermark = smaller(place->watermark, cut);
    left.read_back = smaller(place->read_back, left.watermark);
    if (left.watermark < low)
        left.watermark = low;
    if (left.read_back < low)
        left.read_back = low;
    return left;
}

/* ---- memory: traces and spans, in slabs that are used again -------------------------------------
 */

struct slab {
    struct slab *next;
    union {
        struct held_trace traces[1];
        struct held_span spans[1];
    } items;
};

static struct slab *new_slab(struct assembly *assembly)
{
    struct slab *slab = malloc(SLAB_BYTES);

    assembly->is_starved |= !slab;
    if (slab) {
        slab->next = assembly->slabs;
        assembly->slabs = slab;
    }
    return slab;
}

#define SLAB_ITEMS(type) ((SLAB_BYTES - offsetof(struct slab, items)) / sizeof(type))

static void add_traces(struct assembly *assembly)
{
    struct slab *slab = new_slab(assembly);

    for (size_t i = slab ? SLAB_ITEMS(struct held_trace) : 0; i; i--) {
        slab->items.traces[i - 1].next = assembly->free_traces;
        assembly->free_traces = &slab->items.traces[i - 1];
    }
}

static void add_spans(struct assembly *assembly)
{
    struct slab *slab = new_slab(assembly);

    for (size_t i = slab ? SLAB_ITEMS(struct held_span) : 0; i; i--) {
        slab->items.spans[i - 1].next = assembly->free_spans;
        assembly->free_spans = &slab->items.spans[i - 1];
    }
}

static struct held_trace *new_trace(struct assembly *assembly)
{
    struct held_trace *trace;

    if (!assembly->free_traces)
        add_traces(assembly);
    trace = assembly->free_traces;
    if (trace) {
        assembly->free_traces = trace->next;
        assembly->counts->open_bytes += sizeof(*trace);
    }
    return trace;
}

static void free_trace(struct assembly *assembly, struct held_trace *trace)
{
    trace->next = assembly->free_traces;
    assembly->free_traces = trace;
    assembly->counts->open_bytes -= sizeof(*trace);
}

static struct held_span *new_span(struct assembly *assembly)
{
    struct held_span *span;

    if (!assembly->free_spans)
        add_spans(assembly);
    span = assembly->free_spans;
    if (span) {
        assembly->free_spans = span->next;
        assembly->counts->open_bytes += sizeof(*span);
    }
    return span;
}

/* All at once. */
static void free_spans(struct assembly *assembly, struct held_trace *trace)
{
    if (!trace->first)
        return;
    trace->last->next = assembly->free_spans;
    assembly->free_spans = trace->first;
    assembly->counts->open_bytes -= trace->spans * sizeof(*trace->first);
    trace->first = trace->last = NULL;
}

void assembly_open(struct assembly *assembly)
{
    assembly->seed = hash_seed(assembly);
}

void assembly_close(struct assembly *assembly)
{
    struct slab *next;

    for (struct slab *slab = assembly->slabs; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    assembly->slabs = NULL;
}

/* ---- the table: open addressing, at most half full ------------------------------------------- */

struct table_place {
    uint64_t hash; /* of the trace's id: so few traces are looked at */
    struct held_trace *trace;
};

static uint64_t hash_of(const struct partition *partition, uint64_t high, uint64_t low)
{
    return hash_mix(low ^ hash_mix(high ^ partition->assembly->seed));
}

/* Where it is first looked for. */
static struct table_place *home_of(const struct partition *partition, uint64_t hash)
{
    return &partition->table[(uint32_t)hash & partition->table_mask];
}

static bool has_ids(const struct held_trace *trace, uint64_t high, uint64_t low)
{
    return trace->low == low && trace->high == high;
}

/* Where it is, or would be. */
static struct table_place *find(const struct partition *partition, uint64_t hash, uint64_t high,
                                uint64_t low)
{
    uint32_t i = (uint32_t)hash & partition->table_mask;

    while (partition->table[i].trace &&
           (partition->table[i].hash != hash || !has_ids(partition->table[i].trace, high, low)))
        i = (i + 1) & partition->table_mask;
    return &partition->table[i];
}

/* A free one, for one that is not there. */
static struct table_place *find_free(const struct partition *partition, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & partition->table_mask;

    while (partition->table[i].trace)
        i = (i + 1) & partition->table_mask;
    return &partition->table[i];
}

static bool set_table(struct partition *partition, uint32_t places)
{
    struct table_place *old = partition->table;
    const uint32_t old_places = old ? partition->table_mask + 1 : 0;

    partition->table = calloc(places, sizeof(*partition->table));
    if (!partition->table) {
        partition->table = old;
        return false;
    }
    partition->table_mask = places - 1;
    for (uint32_t i = 0; i < old_places; i++) {
        if (old[i].trace)
            *find_free(partition, old[i].hash) = old[i];
    }
    free(old);
    return true;
}

/* Closes the gap that one leaves. */
static void remove_place(struct partition *partition, struct table_place *place)
{
    uint32_t gap = (uint32_t)(place - partition->table);

    partition->table_used--;
    for (uint32_t i = gap;;) {
        uint32_t home;

        i = (i + 1) & partition->table_mask;
        if (!partition->table[i].trace)
            break;
        home = (uint32_t)partition->table[i].hash & partition->table_mask;
        /* does it lie between the gap and here, where it is found from? */
        if (((i - home) & partition->table_mask) < ((i - gap) & partition->table_mask))
            continue;
        partition->table[gap] = partition->table[i];
        gap = i;
    }
    partition->table[gap].trace = NULL;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void append(struct held_traces *list, struct held_trace *trace)
{
    trace->next = NULL;
    if (list->last)
        list->last->next = trace;
    else
        list->first = trace;
    list->last = trace;
}

static struct held_trace *take_first(struct held_traces *list)
{
    struct held_trace *trace = list->first;

    list->first = trace->next;
    if (!list->first)
        list->last = NULL;
    return trace;
}

/* ---- the log's time -------------------------------------------------------------------------- */

static struct log_time *time_at(struct partition *partition, uint32_t i)
{
    return &partition->times[i % LOG_TIMES];
}

/* For how long after its last span a closed trace is known. */
static int64_t memory_ms(const struct partition *partition)
{
    return 2 * partition->assembly->wait_ms;
}

/* A note now and then. In a ring that is full the last one is taken back: so more is read back. */
static void note_time(struct partition *partition, int64_t offset)
{
    const int64_t step = partition->assembly->wait_ms / 32 + 1;
    const uint32_t used = partition->next_time - partition->first_time;

    if (used && partition->time_ms < time_at(partition, partition->next_time - 1)->ms + step)
        return;
    if (used == LOG_TIMES)
        partition->next_time--;
    *time_at(partition, partition->next_time++) = (struct log_time){partition->time_ms, offset};
}

/* The time that the watermark has, or that comes before it. */
static int64_t watermark_ms(const struct partition *partition)
{
    return partition->open_traces.first ? partition->open_traces.first->first_ms
                                        : partition->time_ms;
}

/* Keeps the last note of before what is remembered at the watermark. */
static void forget_times(struct partition *partition)
{
    const int64_t from_ms = watermark_ms(partition) - memory_ms(partition);

    while (partition->next_time - partition->first_time > 1 &&
           time_at(partition, partition->first_time + 1)->ms <= from_ms)
        partition->first_time++;
}

/* ---- closing --------------------------------------------------------------------------------- */

static int64_t watermark(const struct partition *partition)
{
    return partition->open_traces.first ? partition->open_traces.first->first_offset
                                        : partition->next;
}

static uint64_t origins_bytes(const struct held_message *message)
{
    return message->origins_room * sizeof(*message->origins);
}

static void release_messages(struct partition *partition)
{
    const int64_t needed = watermark(partition);
    struct held_message *message;

    while ((message = partition->first_message) && message->offset < needed) {
        partition->first_message = message->next;
        if (!message->next)
            partition->last_message = NULL;
        partition->assembly->counts->open_bytes -= message->length;
        partition->assembly->counts->open_bytes -= origins_bytes(message);
        partition->assembly->messages--;
        free(message->origins);
        free(message);
    }
}

static void decide(struct partition *partition, struct held_trace *trace)
{
    trace->is_decided = true;
    trace->queued_ms = partition->time_ms;
    append(&partition->decided, trace);
}

static void close_first(struct partition *partition)
{
    struct held_trace *trace = take_first(&partition->open_traces);
    const struct held_trace *next = partition->open_traces.first;
    struct work_counts *counts = partition->assembly->counts;

    if (next) { /* it is closed soon, and the one after it */
        __builtin_prefetch(next->first);
        __builtin_prefetch(next->next, 1);
    }
    partition->assembly->close(partition->assembly->context, trace);
    counts->traces_closed++;
    counts->spans_counted += trace->spans;
    counts->spans_over += trace->over;
    counts->spans_open -= trace->spans + trace->over;
    counts->traces_open--;
    partition->open--;
    free_spans(partition->assembly, trace);
    decide(partition, trace);
}

/* What is forgotten next was last touched long ago, as was the one after it. */
static void fetch_forgotten(const struct partition *partition, const struct held_trace *trace)
{
    if (!trace)
        return;
    __builtin_prefetch(trace->next, 1);
    __builtin_prefetch(home_of(partition, hash_of(partition, trace->high, trace->low)), 1);
}

static void forget_first(struct partition *partition)
{
    struct held_trace *trace = take_first(&partition->decided);

    fetch_forgotten(partition, trace->next);
    if (!trace->is_forgotten)
        remove_place(partition, find(partition, hash_of(partition, trace->high, trace->low),
                                     trace->high, trace->low));
    free_trace(partition->assembly, trace);
}

static bool is_remembered(const struct partition *partition, const struct held_trace *trace,
                          int64_t time_ms)
{
    return trace->last_ms + memory_ms(partition) > time_ms;
}

/* Those that something came of since they were queued are queued once more. */
static void forget(struct partition *partition, int64_t time_ms)
{
    struct held_trace *trace;

    while ((trace = partition->decided.first) &&
           trace->queued_ms + memory_ms(partition) <= time_ms) {
        if (trace->is_forgotten || !is_remembered(partition, trace, time_ms)) {
            forget_first(partition);
        } else {
            trace->queued_ms = time_ms;
            append(&partition->decided, take_first(&partition->decided));
        }
    }
}

void partition_pass(struct partition *partition, int64_t time_ms)
{
    while (partition_due_ms(partition) <= time_ms)
        close_first(partition);
    forget(partition, time_ms);
    forget_times(partition);
    release_messages(partition);
}

bool partition_relieve(struct partition *partition)
{
    if (partition->open_traces.first) {
        partition->assembly->counts->traces_early++;
        close_first(partition);
        release_messages(partition);
        return true;
    }
    if (!partition->decided.first)
        return false;
    partition->assembly->counts->traces_forgotten += !partition->decided.first->is_forgotten;
    forget_first(partition);
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * Traces are all over the memory: their places are fetched into the cache while the spans before
 * are still at work, of so many spans at once.
 */
#define WAITING    32U
#define CACHE_LINE 64

struct waiting {
    struct otlp_span span;
    uint64_t hash;
};

struct reading {
    struct partition *partition;
    struct held_message *message;
    struct text scope;
    uint64_t origin_number;
    uint32_t service;
    bool is_back;             /* before the watermark: only to know which traces there were */
    bool is_again;            /* the worker before has read it, too */
    struct held_trace *trace; /* of the span before: mostly the next one's */
    uint32_t count;
    struct waiting waiting[WAITING];
};

static struct held_trace *begin_trace(const struct reading *reading, struct table_place *place,
                                      const struct waiting *waiting)
{
    struct partition *partition = reading->partition;
    struct held_trace *trace = new_trace(partition->assembly);

    if (!trace)
        return NULL;
    *trace = (struct held_trace){
        .high = waiting->span.trace_id_high,
        .low = waiting->span.trace_id,
        .first_offset = reading->message->offset,
        .first_ms = partition->time_ms,
    };
    if (place->trace)
        place->trace->is_forgotten = true;
    else
        partition->table_used++;
    *place = (struct table_place){waiting->hash, trace};
    if (reading->is_back) {
        decide(partition, trace);
    } else {
        append(&partition->open_traces, trace);
        partition->open++;
        partition->assembly->counts->traces_open++;
    }
    return trace;
}

static struct held_trace *find_trace(const struct reading *reading, const struct waiting *waiting)
{
    const uint64_t high = waiting->span.trace_id_high, low = waiting->span.trace_id;
    struct partition *partition = reading->partition;
    struct table_place *place;

    if (reading->trace && has_ids(reading->trace, high, low))
        return reading->trace;
    if (2 * (partition->table_used + 1) > partition->table_mask &&
        !set_table(partition, 2 * (partition->table_mask + 1)) &&
        partition->table_used >= partition->table_mask)
        return NULL;
    place = find(partition, waiting->hash, high, low);
    if (!place->trace ||
        (place->trace->is_decided && !is_remembered(partition, place->trace, partition->time_ms)))
        return begin_trace(reading, place, waiting);
    return place->trace;
}

static uint32_t name_id(const struct reading *reading, struct text name)
{
    if (name.length > WORK_NAME_MAX)
        name.length = WORK_NAME_MAX;
    return names_id(reading->partition->assembly->names, name);
}

/* Most spans are of the origin of the one before. */
static bool is_same_origin(const struct reading *reading, const struct otlp_origin *origin)
{
    return origin->number == reading->origin_number &&
           origin->scope.length == reading->scope.length &&
           (origin->scope.data == reading->scope.data || text_equal(origin->scope, reading->scope));
}

static bool take_origin(struct reading *reading, const struct otlp_origin *origin)
{
    struct held_message *message = reading->message;
    struct held_origin *origins = message->origins;

    if (origin->number != reading->origin_number)
        reading->service = name_id(reading, origin->service);
    if (message->origins_count == message->origins_room) {
        const uint32_t room = message->origins_room ? 2 * message->origins_room : 4;

        origins = realloc(origins, room * sizeof(*origins));
        if (!origins)
            return false;
        message->origins = origins;
        message->origins_room = room;
    }
    origins[message->origins_count++] =
        (struct held_origin){origin->resource, origin->scope, origin->service};
    reading->origin_number = origin->number;
    reading->scope = origin->scope;
    return true;
}

/* Field by field, here and below: as one it becomes a loop, which takes longer than all of these.
 */
static void describe(const struct reading *reading, const struct otlp_span *span,
                     struct trace_span *described)
{
    described->id = span->id;
    described->parent_id = span->parent_id;
    described->start_ns = span->start_ns;
    described->duration_ns = span->end_ns - span->start_ns;
    described->service = reading->service;
    described->name = name_id(reading, span->name);
    described->remote_service =
        span->peer_service.length ? name_id(reading, span->peer_service) : NAMES_NONE;
    described->kind = (uint8_t)span->kind;
    described->is_error = span->is_error;
    described->is_shared = false;
    described->of = NULL;
}

static void hold(struct reading *reading, struct held_trace *trace, const struct otlp_span *span)
{
    struct assembly *assembly = reading->partition->assembly;
    struct held_span *held = NULL;

    if (trace->spans < TRACE_SPANS_MAX)
        held = new_span(assembly);
    if (!held) {
        trace->over++;
        return;
    }
    describe(reading, span, &held->span);
    held->span.of = held;
    held->next = NULL;
    held->message = reading->message;
    held->raw = span->raw.data;
    held->raw_length = (uint32_t)span->raw.length;
    held->origin = reading->message->origins_count - 1;
    if (trace->last)
        trace->last->next = held;
    else
        trace->first = held;
    trace->last = held;
    trace->spans++;
}

static void count_in(const struct reading *reading)
{
    struct work_counts *counts = reading->partition->assembly->counts;

    if (reading->is_again)
        counts->spans_taken_over++;
    else
        counts->spans_in++;
}

/* Of a trace that is decided: counted before, or late. */
static void take_decided(const struct reading *reading, const struct held_trace *trace,
                         const struct otlp_span *span)
{
    struct assembly *assembly = reading->partition->assembly;
    struct trace_span described;

    if (reading->is_again && trace->first_offset < reading->partition->start.watermark) {
        assembly->counts->spans_read_back++;
        return;
    }
    describe(reading, span, &described);
    count_in(reading);
    assembly->counts->spans_late++;
    assembly->late(assembly->context, &described);
}

static void take_one(struct reading *reading, const struct waiting *waiting)
{
    struct held_trace *trace = find_trace(reading, waiting);
    const struct otlp_span *span = &waiting->span;

    reading->trace = trace;
    if (!trace) {
        reading->partition->assembly->is_starved = true;
        return;
    }
    trace->last_ms = reading->partition->time_ms;
    if (trace->is_decided) {
        take_decided(reading, trace, span);
        return;
    }
    count_in(reading);
    reading->partition->assembly->counts->spans_open++;
    hold(reading, trace, span);
}

static void take_waiting(struct reading *reading)
{
    const struct partition *partition = reading->partition;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct held_trace *trace = home_of(partition, reading->waiting[i].hash)->trace;

        __builtin_prefetch(trace, 1);
        __builtin_prefetch((const char *)trace + CACHE_LINE, 1);
    }
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct held_trace *trace = home_of(partition, reading->waiting[i].hash)->trace;

        if (trace)
            __builtin_prefetch(trace->last, 1);
    }
    for (uint32_t i = 0; i < reading->count; i++)
        take_one(reading, &reading->waiting[i]);
    reading->count = 0;
}

static void take_span(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    struct reading *reading = context;
    const struct partition *partition = reading->partition;
    struct waiting *waiting;

    if (!is_same_origin(reading, origin)) {
        take_waiting(reading);
        if (!take_origin(reading, origin)) {
            partition->assembly->is_starved = true;
            return;
        }
    }
    waiting = &reading->waiting[reading->count++];
    waiting->span = *span;
    waiting->hash = hash_of(partition, span->trace_id_high, span->trace_id);
    __builtin_prefetch(home_of(partition, waiting->hash), 1);
    if (reading->count == WAITING)
        take_waiting(reading);
}

static void count_message(const struct reading *reading, const struct otlp_decoded *decoded)
{
    struct work_counts *counts = reading->partition->assembly->counts;

    if (reading->is_again)
        return;
    counts->messages++;
    counts->bytes += reading->message->length;
    counts->spans_in += decoded->invalid;
    counts->spans_invalid += decoded->invalid;
    counts->messages_broken += decoded->is_broken;
}

/* What was read before was looked at before. */
static void count_gap(const struct partition *partition, int64_t offset)
{
    const int64_t expected =
        partition->next > partition->start.read_to ? partition->next : partition->start.read_to;

    if (offset > expected)
        partition->assembly->counts->offsets_missing += (uint64_t)(offset - expected);
}

/* Theirs may be a part of something much larger. Returns NULL when out of memory. */
static struct held_message *copy_message(struct partition *partition,
                                         const struct log_message *message)
{
    struct held_message *copy = malloc(sizeof(*copy) + message->bytes.length);

    if (!copy)
        return NULL;
    *copy = (struct held_message){.offset = message->offset, .length = message->bytes.length};
    (void)text_copy(copy->bytes, message->bytes);
    if (partition->last_message)
        partition->last_message->next = copy;
    else
        partition->first_message = copy;
    partition->last_message = copy;
    partition->assembly->messages++;
    partition->assembly->counts->open_bytes += copy->length;
    return copy;
}

static void decode(struct partition *partition, struct held_message *message)
{
    struct otlp_decoded decoded;
    struct reading reading;

    reading.partition = partition;
    reading.message = message;
    reading.scope = (struct text){"", 0};
    reading.origin_number = 0;
    reading.service = NAMES_NONE;
    reading.is_back = message->offset < partition->start.watermark;
    reading.is_again = message->offset < partition->start.read_to;
    reading.trace = NULL;
    reading.count = 0;
    decoded = otlp_decode((struct text){message->bytes, message->length}, take_span, &reading);
    take_waiting(&reading);
    count_message(&reading, &decoded);
    partition->assembly->counts->open_bytes += origins_bytes(message);
}

void partition_read(struct partition *partition, const struct log_message *message)
{
    struct held_message *copy;

    count_gap(partition, message->offset);
    if (message->time_ms > partition->time_ms)
        partition->time_ms = message->time_ms;
    else if (message->time_ms < partition->time_ms && message->offset >= partition->start.read_to)
        partition->assembly->counts->messages_skewed++;
    if (message->time_ms > partition->message_ms)
        partition->message_ms = message->time_ms;
    note_time(partition, message->offset);
    partition->next = message->offset; /* what is closed now began before it */
    partition_pass(partition, partition->time_ms);
    copy = copy_message(partition, message);
    partition->assembly->is_starved |= !copy;
    if (copy)
        decode(partition, copy);
    partition->next = message->offset + 1;
    if (!partition->open_traces.first)
        release_messages(partition);
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool partition_open(struct partition *partition, struct assembly *assembly, struct place start)
{
    *partition = (struct partition){
        .assembly = assembly,
        .start = start,
        .next = start.read_back,
        .time_ms = INT64_MIN / 2,
        .message_ms = start.time_ms,
    };
    return set_table(partition, FIRST_PLACES);
}

void partition_close(struct partition *partition)
{
    struct assembly *assembly = partition->assembly;

    while (partition->open_traces.first) {
        struct held_trace *trace = take_first(&partition->open_traces);
        const uint32_t spans = trace->spans + trace->over;

        assembly->counts->spans_open -= spans;
        assembly->counts->spans_handed_over += spans;
        assembly->counts->traces_open--;
        free_spans(assembly, trace);
        free_trace(assembly, trace);
    }
    while (partition->decided.first)
        free_trace(assembly, take_first(&partition->decided));
    release_messages(partition);
    free(partition->table);
    partition->table = NULL;
}

struct place partition_place(const struct partition *partition)
{
    const int64_t from_ms = watermark_ms(partition) - memory_ms(partition);
    struct place place = {
        .watermark = watermark(partition),
        .read_to = partition->next,
        .time_ms = partition->message_ms,
    };

    /* while what was read before is read once more, that is what holds */
    if (place.watermark < partition->start.watermark)
        place.watermark = partition->start.watermark;
    if (place.read_to < partition->start.read_to)
        place.read_to = partition->start.read_to;
    place.read_back = partition->start.read_back;
    for (uint32_t i = partition->first_time; i != partition->next_time; i++) {
        const struct log_time *time = &partition->times[i % LOG_TIMES];

        if (i != partition->first_time && time->ms > from_ms)
            break;
        if (time->from > place.read_back)
            place.read_back = time->from;
    }
    if (place.read_back > place.watermark)
        place.read_back = place.watermark;
    return place;
}
