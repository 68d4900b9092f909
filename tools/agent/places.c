/* SPDX-License-Identifier: BSD-2-Clause */
#include "places.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <stdlib.h>

#define PLACES 256

/* The ends of one memory's rings. User and number identify the memory. */
struct place_memory {
    struct place_memory *next;
    uint64_t number;
    uint32_t user, cpus;
    uint64_t ends[];
};

struct ring_place {
    uint64_t number;
    int64_t mono_ns; /* read after the ends of the rings */
    struct place_memory *memories;
};

struct places {
    uint64_t newest;
    size_t count;
    struct ring_place list[PLACES]; /* the oldest first */
};

struct places *places_new(void)
{
    return calloc(1, sizeof(struct places));
}

static void place_free(struct place_memory *list)
{
    while (list) {
        struct place_memory *next = list->next;

        free(list);
        list = next;
    }
}

void places_free(struct places *places)
{
    for (size_t i = 0; places && i < places->count; i++)
        place_free(places->list[i].memories);
    free(places);
}

/* ---- new places ------------------------------------------------------------------------------ */

static struct place_memory *place_memory_new(const struct held *held)
{
    const uint32_t cpus = held->memory.size.cpus;
    struct place_memory *memory = malloc(sizeof(*memory) + cpus * sizeof(memory->ends[0]));

    if (!memory)
        return NULL;
    *memory = (struct place_memory){NULL, held->number, held->user, cpus};
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        memory->ends[cpu] = ring_committed(memory_ring(&held->memory, cpu));
    return memory;
}

/* Removes every other place of the older half. */
static void places_thin(struct places *places)
{
    size_t kept = 0;

    for (size_t i = 0; i < places->count; i++) {
        if (i < PLACES / 2 && i % 2 == 0)
            place_free(places->list[i].memories);
        else
            places->list[kept++] = places->list[i];
    }
    places->count = kept;
}

uint64_t places_take(struct places *places, const struct held *first)
{
    struct place_memory *list = NULL, *memory;

    for (const struct held *held = first; held; held = held->next) {
        memory = place_memory_new(held);
        if (!memory) {
            place_free(list);
            return 0;
        }
        memory->next = list;
        list = memory;
    }
    if (places->count == PLACES)
        places_thin(places);
    places->list[places->count++] = (struct ring_place){++places->newest, clock_ns(), list};
    return places->newest;
}

void places_look(struct places *places, const struct held *first)
{
    if (!places->count ||
        clock_ns() - places->list[places->count - 1].mono_ns >= PLACES_EACH_MS * INT64_C(1000000))
        (void)places_take(places, first);
}

/* ---- search ---------------------------------------------------------------------------------- */

/* Returns the newest place up to mono_ns and up to this number; NULL: there is none. */
static const struct ring_place *places_find(const struct places *places, int64_t mono_ns,
                                            uint64_t number)
{
    size_t from = 0, until = places->count;

    while (from < until) {
        const size_t middle = (from + until) / 2;
        const struct ring_place *place = &places->list[middle];

        if (place->mono_ns <= mono_ns && place->number <= number)
            from = middle + 1;
        else
            until = middle;
    }
    return from ? &places->list[from - 1] : NULL;
}

uint64_t places_before(const struct places *places, int64_t mono_ns)
{
    const struct ring_place *place = places_find(places, mono_ns, UINT64_MAX);

    return place ? place->number : 0;
}

static const struct ring_place *places_get(const struct places *places, uint64_t number)
{
    const struct ring_place *place = places_find(places, INT64_MAX, number);

    return place && place->number == number ? place : NULL;
}

bool places_has(const struct places *places, uint64_t number)
{
    return places_get(places, number) != NULL;
}

uint64_t places_end(const struct places *places, uint64_t number, uint32_t user, uint64_t memory,
                    uint32_t cpu)
{
    const struct ring_place *place = places_get(places, number);
    const struct place_memory *of = place ? place->memories : NULL;

    while (of && (of->user != user || of->number != memory))
        of = of->next;
    return of && cpu < of->cpus ? of->ends[cpu] : 0;
}
