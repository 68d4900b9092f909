/*
 * The ids of steps. No event contains them: libblkin and the readers of its events derive them from
 * the span's id and the step's number.
 *
 * The ids of a thread are a bijection of a counter with the constant increment of splitmix64: see
 * libblkin/base/thread.h. The id of step n is the id that the thread will get n * 2^44 ids later.
 * So a thread gets no id twice within 2^44 ids, and all steps of a span differ.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STEP_ID_H
#define BLKIN_STEP_ID_H

#include <stdbool.h>
#include <stdint.h>

#define BLKIN_ID_INCREMENT UINT64_C(0x9e3779b97f4a7c15)
#define BLKIN_ID_FACTOR    UINT64_C(0xbf58476d1ce4e5b9)

/* Steps of one span are numbered from 1 to this, in the order of their begin. */
#define BLKIN_STEPS_MAX 0xfffff

/* Returns the id for a value of the counter. */
static inline uint64_t blkin_id_of_counter(uint64_t counter)
{
    const uint64_t id = (counter ^ (counter >> 32)) * BLKIN_ID_FACTOR;

    return id ^ (id >> 29);
}

/* The inverse of blkin_id_of_counter(), operation by operation. */
static inline uint64_t blkin_counter_of_id(uint64_t id)
{
    id ^= (id >> 29) ^ (id >> 58);
    id *= UINT64_C(0x96de1b173f119089); /* the factor's inverse modulo 2^64 */
    return id ^ (id >> 32);
}

/* Returns the id of another step of the same span. number: its number minus that of `id`, modulo
 * 2^64. The number of the span itself is 0. */
static inline uint64_t blkin_step_id(uint64_t id, uint64_t number)
{
    const uint64_t step_id =
        blkin_id_of_counter(blkin_counter_of_id(id) + number * (BLKIN_ID_INCREMENT << 44));

    return step_id ? step_id : 1; /* 0 is no id */
}

/* Sets *number to the number of `id` minus the number of from_id, modulo 2^20. Returns false if the
 * two ids belong to different spans. */
static inline bool blkin_step_number(uint64_t from_id, uint64_t id, uint64_t *number)
{
    const uint64_t distance = blkin_counter_of_id(id) - blkin_counter_of_id(from_id);

    /* the inverse of BLKIN_ID_INCREMENT modulo 2^20 */
    *number = (distance >> 44) * UINT64_C(0x7733d) & BLKIN_STEPS_MAX;
    return distance << 20 == 0;
}

#endif
