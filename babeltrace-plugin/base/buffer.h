/*
 * A growing byte buffer with a hard limit. Writers reserve room for a whole piece of output, then
 * write without further checks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BUFFER_H
#define BLKIN_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
    size_t limit; /* the most bytes; 0: no limit */
};

/* Makes room for size more bytes. Returns false at the limit or when out of memory: the buffer
 * stays as it is. */
static inline bool buffer_reserve(struct buffer *buffer, size_t size)
{
    size_t capacity = buffer->capacity ? buffer->capacity : 4096;
    char *data;

    if (size <= buffer->capacity - buffer->length)
        return true;
    if (buffer->limit && size > buffer->limit - buffer->length)
        return false;
    while (capacity - buffer->length < size)
        capacity *= 2;
    if (buffer->limit && capacity > buffer->limit)
        capacity = buffer->limit;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    capacity = buffer->length + size; /* a caller that reserves too little is caught at once */
#endif
    data = realloc(buffer->data, capacity);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

/* Appends bytes for which the caller has reserved room. */
static inline void buffer_put(struct buffer *buffer, const char *data, size_t length)
{
    if (length)
        memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
}

static inline void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.limit = buffer->limit};
}

#endif
