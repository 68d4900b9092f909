/*
 * How far each fetch has read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "places.h"

#include <stdlib.h>

#define PLACES 64 /* then a thread that was stopped is thought to have written its record */

/* Of a memory, which its user and number tell apart. */
struct place_memory {
    struct place_memory *next;
    uint64_t number;
    uint32_t user, cpus;
    uint64_t ends[];
};

struct places {
    uint64_t newest;
    struct place_memory *of[PLACES]; /* of number N at N % PLACES */
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
    for (size_t i = 0; places && i < PLACES; i++)
        place_free(places->of[i]);
    free(places);
}

static struct place_memory *place_of(const struct held *held)
{
    const uint32_t cpus = held->memory.size.cpus;
    struct place_memory *memory = malloc(sizeof(*memory) + cpus * sizeof(memory->ends[0]));

    if (!memory)
        return NULL;
    *memory = (struct place_memory){NULL, held->number, held->user, cpus};
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        memory->ends[cpu] = ring_end(memory_ring(&held->memory, cpu));
    return memory;
}

uint64_t places_take(struct places *places, const struct held *first)
{
    struct place_memory *list = NULL, *memory;

    for (const struct held *held = first; held; held = held->next) {
        memory = place_of(held);
        if (!memory) {
            place_free(list);
            return 0;
        }
        memory->next = list;
        list = memory;
    }
    places->newest++;
    place_free(places->of[places->newest % PLACES]);
    places->of[places->newest % PLACES] = list;
    return places->newest;
}

bool places_find(const struct places *places, uint64_t number, const struct held *held,
                 uint32_t cpu, uint64_t *end)
{
    const struct place_memory *memory;

    if (!number || number > places->newest || number + PLACES <= places->newest)
        return false;
    memory = places->of[number % PLACES];
    while (memory && (memory->user != held->user || memory->number != held->number))
        memory = memory->next;
    *end = memory && cpu < memory->cpus ? memory->ends[cpu] : 0;
    return true;
}
