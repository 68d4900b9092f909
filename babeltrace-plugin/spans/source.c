/* SPDX-License-Identifier: BSD-2-Clause */
#include "source.h"

#include "babeltrace-plugin/base/hash.h"

#include <stddef.h>
#include <stdlib.h>
#include <urcu/compiler.h>

/* ---- sources --------------------------------------------------------------------------------- */

#define RECENT 16 /* a power of two */

struct source_table {
    struct table sources;
    struct event_source *recent[RECENT]; /* by the address of a trace's host name */
    struct event_source overflow;
};

static bool is_source_of(const struct event_source *source, const struct origin *origin)
{
    return source->clock == origin->clock && text_equal(source->host, origin->host);
}

static void free_source(struct table_link *link)
{
    struct event_source *source = caa_container_of(link, struct event_source, in_table);

    free(source->losses.ring);
    free(source->gaps.ring);
    free(source);
}

struct source_table *source_table_new(void)
{
    struct source_table *table = calloc(1, sizeof(*table));

    if (!table || !table_init(&table->sources)) {
        free(table);
        return NULL;
    }
    table->overflow.losses = table->overflow.gaps = (struct losses){.last_end_ns = INT64_MIN};
    table->overflow.is_overflow = true;
    return table;
}

void source_table_free(struct source_table *table)
{
    if (!table)
        return;
    table_destroy(&table->sources, free_source);
    free(table);
}

static struct event_source *source_new(const struct origin *origin)
{
    struct event_source *source = calloc(1, sizeof(*source) + origin->host.length);

    if (!source)
        return NULL;
    source->losses = source->gaps = (struct losses){.last_end_ns = INT64_MIN};
    source->host = (struct text){(char *)(source + 1), origin->host.length};
    (void)text_copy((char *)(source + 1), origin->host);
    source->clock = origin->clock;
    source->host_hash = hash_text(0, source->host);
    return source;
}

struct event_source *source_get(struct source_table *table, const struct origin *origin)
{
    const uintptr_t address = (uintptr_t)origin->host.data;
    struct event_source **recent = &table->recent[(address >> 4 ^ address >> 12) & (RECENT - 1)];
    struct event_source *source;
    uint64_t hash;

    if (*recent && is_source_of(*recent, origin))
        return *recent;
    hash = hash_text(table->sources.seed ^ hash_mix((uint64_t)origin->clock), origin->host);
    table_find(source, &table->sources, hash, in_table, is_source_of(source, origin));
    if (!source) {
        source = table->sources.count < SOURCES_MAX ? source_new(origin) : NULL;
        if (!source)
            return &table->overflow;
        table_add(&table->sources, &source->in_table, hash);
    }
    *recent = source;
    return source;
}

/* ---- losses: a ring of intervals ------------------------------------------------------------- */

struct loss_ring {
    unsigned next;
    unsigned count;
    struct loss_interval intervals[LOSSES_MAX];
};

static void losses_forget(struct losses *losses, const struct loss_interval *interval)
{
    if (!losses->has_forgotten || interval->begin_ns < losses->forgotten_begin_ns)
        losses->forgotten_begin_ns = interval->begin_ns;
    if (!losses->has_forgotten || interval->end_ns > losses->forgotten_end_ns)
        losses->forgotten_end_ns = interval->end_ns;
    losses->has_forgotten = true;
}

static void losses_store(struct losses *losses, const struct loss_interval *interval)
{
    struct loss_ring *ring = losses->ring;
    struct loss_interval *slot = &ring->intervals[ring->next];

    if (ring->count == LOSSES_MAX)
        losses_forget(losses, slot);
    else
        ring->count++;
    ring->next = (ring->next + 1) % LOSSES_MAX;
    *slot = *interval;
}

bool losses_add(struct losses *losses, const struct loss_interval *added)
{
    struct loss_interval interval = *added;

    if (interval.end_ns < interval.begin_ns)
        interval.end_ns = interval.begin_ns;
    if (interval.end_ns > losses->last_end_ns)
        losses->last_end_ns = interval.end_ns;
    if (!losses->ring)
        losses->ring = calloc(1, sizeof(*losses->ring));
    if (losses->ring)
        losses_store(losses, &interval);
    else
        losses_forget(losses, &interval);
    return losses->ring != NULL;
}

/* Saturates: a trace may contain any number. */
static uint64_t loss_add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool losses_overlap(const struct losses *losses, int64_t start_ns, int64_t end_ns, uint64_t process,
                    struct loss_sum *sum)
{
    const struct loss_ring *ring = losses->ring;
    bool found;

    *sum = (struct loss_sum){.packets = 0};
    found = sum->is_more = losses->has_forgotten && losses->forgotten_begin_ns <= end_ns &&
                           losses->forgotten_end_ns >= start_ns;
    for (unsigned i = 0; ring && i < ring->count; i++) {
        const struct loss_interval *interval = &ring->intervals[i];

        if (interval->begin_ns > end_ns || interval->end_ns < start_ns ||
            (interval->process && process && interval->process != process))
            continue;
        sum->process = !found || sum->process == interval->process ? interval->process : 0;
        found = true;
        sum->events = loss_add_up(sum->events, interval->events);
        sum->packets = loss_add_up(sum->packets, interval->packets);
        sum->is_more |= !interval->events && !interval->packets;
    }
    return found;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static bool is_full(const struct clock_voice *voice)
{
    return voice->count >= CLOCK_SAMPLES;
}

static const struct clock_sample *largest_sample(const struct clock_voice *voice)
{
    const struct clock_sample *most = &voice->samples[0];

    for (unsigned i = 1; i < voice->count && i < CLOCK_SAMPLES; i++) {
        if (voice->samples[i].offset_ns > most->offset_ns)
            most = &voice->samples[i];
    }
    return most;
}

/* Returns the time of the oldest stored sample: a step back happened there. */
static int64_t oldest_ns(const struct clock_voice *voice)
{
    return voice->samples[is_full(voice) ? voice->next : 0].time_ns;
}

static bool is_step(int64_t from_ns, int64_t to_ns)
{
    int64_t difference;

    return __builtin_sub_overflow(to_ns, from_ns, &difference) || difference >= CLOCK_NOISE_NS ||
           difference <= -CLOCK_NOISE_NS;
}

static bool is_heard(const struct clock_voice *voice, int64_t now_ns)
{
    return voice->count && now_ns - voice->last_ns < CLOCK_MEMORY_NS;
}

/* Returns the process's voice, or a free or old one. NULL: all voices are in use. */
static struct clock_voice *voice_of(struct clock *clock, uint64_t process, int64_t now_ns)
{
    struct clock_voice *free_voice = NULL;

    for (unsigned i = 0; i < CLOCK_VOICES; i++) {
        struct clock_voice *voice = &clock->voices[i];

        if (voice->count && voice->process == process)
            return voice;
        if (!free_voice && !is_heard(voice, now_ns))
            free_voice = voice;
    }
    if (free_voice)
        *free_voice = (struct clock_voice){.process = process};
    return free_voice;
}

struct vote {
    unsigned agree;
    unsigned differ;
    int64_t since_ns; /* when the value was seen first */
};

/* Counts the voices for this offset. */
static struct vote vote_on(const struct clock *clock, int64_t offset_ns, bool is_forward,
                           int64_t now_ns)
{
    struct vote vote = {.since_ns = now_ns};

    for (unsigned i = 0; i < CLOCK_VOICES; i++) {
        const struct clock_voice *voice = &clock->voices[i];
        const struct clock_sample *said = largest_sample(voice);
        int64_t seen_ns;

        if (!is_heard(voice, now_ns))
            continue;
        if (is_step(offset_ns, said->offset_ns)) {
            vote.differ++;
            continue;
        }
        seen_ns = is_forward ? said->time_ns : oldest_ns(voice);
        if (seen_ns < vote.since_ns)
            vote.since_ns = seen_ns;
        vote.agree++;
    }
    return vote;
}

/* No offset is INT64_MIN: offsets are differences of times since the epoch. */
static int64_t clock_distance(int64_t offset_ns)
{
    return offset_ns < 0 ? -offset_ns : offset_ns;
}

/* Sets the base offset, from the first event on. The base ends if the trace's own offset proves
 * right. */
static void find_base(struct clock *clock, const struct clock_voice *voice, int64_t offset_ns)
{
    clock->is_settled = !is_step(0, offset_ns) || voice->count > CLOCK_SAMPLES;
    if (!is_step(0, offset_ns))
        clock->base_ns = 0;
    else if (clock->base_ns == 0 || offset_ns > clock->base_ns)
        clock->base_ns = offset_ns;
}

bool clock_note(struct clock *clock, uint64_t process, int64_t time_ns, uint64_t realtime_ns)
{
    struct clock_voice *voice;
    struct vote vote;
    int64_t offset_ns, correction_ns;
    bool is_right;

    if (time_ns < 0 || realtime_ns == 0 || realtime_ns > INT64_MAX)
        return false;
    voice = voice_of(clock, process, time_ns);
    if (!voice)
        return false;
    voice->samples[voice->next] = (struct clock_sample){time_ns, (int64_t)realtime_ns - time_ns};
    voice->next = (voice->next + 1) % CLOCK_SAMPLES;
    if (voice->count <= CLOCK_SAMPLES)
        voice->count++;
    voice->last_ns = time_ns;
    offset_ns = largest_sample(voice)->offset_ns;
    if (!clock->is_settled) {
        find_base(clock, voice, offset_ns);
        return false;
    }
    is_right = !is_step(0, offset_ns);
    correction_ns = offset_ns;
    if (!is_right && __builtin_sub_overflow(offset_ns, clock->base_ns, &correction_ns))
        return false;
    if (!(is_right && clock->base_ns) && !is_step(clock->offset_ns, correction_ns))
        return false;
    if (!is_full(voice) && correction_ns < clock->offset_ns)
        return false;
    vote = vote_on(clock, offset_ns, correction_ns > clock->offset_ns, time_ns);
    if (vote.agree < vote.differ ||
        (vote.agree == vote.differ &&
         clock_distance(correction_ns) >= clock_distance(clock->offset_ns)))
        return false;
    if (is_right)
        clock->base_ns = 0; /* the trace's own offset was right */
    if (!is_step(clock->offset_ns, correction_ns))
        return false;
    clock->since_ns = vote.since_ns;
    clock->before_offset_ns = clock->offset_ns;
    clock->offset_ns = correction_ns;
    return true;
}
