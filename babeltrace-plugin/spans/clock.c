/*
 * Filters the wall clock samples of process events, and counts the votes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"

#include <stddef.h>

static bool is_full(const struct clock_voice *voice)
{
    return voice->count >= CLOCK_SAMPLES;
}

static const struct clock_sample *largest(const struct clock_voice *voice)
{
    const struct clock_sample *most = &voice->samples[0];

    for (unsigned i = 1; i < voice->count && i < CLOCK_SAMPLES; i++) {
        if (voice->samples[i].offset_ns > most->offset_ns)
            most = &voice->samples[i];
    }
    return most;
}

/* The begin of the last CLOCK_SAMPLES samples: a step back happened there. */
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
        const struct clock_sample *said = largest(voice);
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
    offset_ns = largest(voice)->offset_ns;
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
