/*
 * Arrays that grow.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_ARRAY_H
#define BLKIN_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline bool array_grow(void *array, size_t *room, size_t count, size_t size)
{
    size_t larger = *room ? *room : 8;
    void *things, *more;

    while (larger <= count)
        larger *= 2;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    larger = count + 1; /* a caller that reserves too few elements is caught at once */
#endif
    memcpy(&things, array, sizeof(things));
    more = reallocarray(things, larger, size);
    if (!more)
        return false;
    memcpy(array, &more, sizeof(more));
    *room = larger;
    return true;
}

/*
 * Makes room in the array for one element more than count. `room` is a size_t: the number of
 * elements that the array can have. Returns false when out of memory: then the array and its room
 * stay as they are.
 */
#define ARRAY_FITS(array, room, count) \
    ((count) < (room) || array_grow(&(array), &(room), count, sizeof(*(array))))

#endif
